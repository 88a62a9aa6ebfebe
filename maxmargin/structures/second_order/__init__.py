"""Chains of second order: labels of sequences, scored by three in a row, too."""
