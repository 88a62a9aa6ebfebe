"""Monotone alignments: paths through the grid of two sequences."""
