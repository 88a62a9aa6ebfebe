"""Features of words that belong together: arcs between them."""
