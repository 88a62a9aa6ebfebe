"""Dependency trees of words: each word has a head, another word or the root, and arcs may cross or not."""
