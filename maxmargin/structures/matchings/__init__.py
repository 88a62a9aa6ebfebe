"""Matchings: links between left and right nodes, at most one for each."""
