"""Solvers that look at all examples before each step: L-BFGS, Frank-Wolfe, cutting planes."""
