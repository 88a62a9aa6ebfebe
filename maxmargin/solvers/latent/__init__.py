"""Solvers of outputs that are known in part: rounds of completions and convex problems."""
