"""Solvers whose dual points are Gibbs distributions: exponentiated and extragradient, excessive gap reduction."""
