"""Encoders of sentences whose outputs are more than a label per word, and features of what is between words."""
