"""Encoders of structures whose outputs are links between two sides."""
