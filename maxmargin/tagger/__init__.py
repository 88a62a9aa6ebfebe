"""Taggers: features of words, a model of sequences and a scheme of tags, in one estimator."""

from maxmargin.tagger.word_tagger import Tagger, default_model

__all__ = ["Tagger", "default_model"]
