"""Structures made of others: with linearized potentials or rescaled slacks, and those that users write in Python."""
