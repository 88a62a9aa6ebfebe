"""Measured claims: one command each, ``python -m benchmarks.<name>``."""

import warnings

warnings.filterwarnings("ignore", message="Not solved to tol")  # tables tell how far fits got
