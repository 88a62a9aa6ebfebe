"""Texts as they come: tokens by their characters, entities that stand apart from the text, and files of both."""
