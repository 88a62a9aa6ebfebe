"""Losses of potentials: of true outputs, and of what is known of them in part."""
