"""Features of words that belong together: of arcs between them, of spans and of segments."""
