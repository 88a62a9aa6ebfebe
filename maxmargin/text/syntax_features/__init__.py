"""Features of words that belong together: of arcs between them, and of spans."""
