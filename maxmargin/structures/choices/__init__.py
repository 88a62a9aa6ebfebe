"""Choices: one of a list, of candidates of each example or of classes that all share."""
