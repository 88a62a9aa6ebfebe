"""Encoders of structures whose rows are scored by a kernel: what they share, and one for each structure."""
