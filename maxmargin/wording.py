"""How messages put things into words; nothing else is loaded for it."""

from __future__ import annotations


def quote(value: object) -> str:
    """A value as messages show it."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def count_of(n: int, noun: str) -> str:
    """A number of things."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def name_type(value: object) -> str:
    """What kind of value was given, with its article."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name.startswith((*'aeioAEIO', 'ndarray')) else 'a'} {name}"
