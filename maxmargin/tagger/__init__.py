"""Taggers: features of words, a model of sequences and a scheme of tags, in one estimator."""
