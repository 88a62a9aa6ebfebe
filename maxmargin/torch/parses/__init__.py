"""Potentials of trees of words, and of segments."""
