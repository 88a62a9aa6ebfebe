"""Trees of labelled spans of words: constituents, which may be as wide as they like, and are binarized inside."""
