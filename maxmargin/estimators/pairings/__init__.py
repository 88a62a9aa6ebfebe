"""Models whose outputs are links between two sides."""
