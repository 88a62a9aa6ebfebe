"""Chains: labels of the positions of sequences."""
