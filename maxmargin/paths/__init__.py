"""Regularization paths: how to get solutions for every strength, and what they are."""
