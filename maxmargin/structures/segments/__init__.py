"""Segments: sequences cut into labelled segments, which have features as wholes (semi-Markov models)."""
