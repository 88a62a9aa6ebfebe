"""Measured claims: one command each, ``python -m benchmarks.<name>``."""
