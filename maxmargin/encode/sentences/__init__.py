"""Encoders of sentences whose outputs are more than a label per word."""
