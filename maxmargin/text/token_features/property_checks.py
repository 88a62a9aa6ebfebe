"""Checks of what is known of words: nothing else is loaded for them, as the options of the command line need them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from maxmargin.wording import quote

OWN_TITLES = re.compile(r"(word|lower|shape|prefix|suffix|words|tag\d+|chars|elsewhere)(?![^\[=|])")
MOST_PREFIX = 1_000  # characters of the path of a class


def check_own_titles(name: str, titles: Iterable[object]) -> None:
    """Raise where a title is one of features that words have in any case."""
    for title in titles:
        if isinstance(title, str) and OWN_TITLES.match(title):
            raise ValueError(f"{name} must have another title for {title!r}, which is one of features of words.")


def check_patterns(name: str, patterns: object) -> None:
    """Raise unless patterns are regular expressions by title."""
    if not isinstance(patterns, Mapping | None):
        raise TypeError(f"{name} must be a dict of regular expressions by title, not {quote(patterns)}.")
    for title, text in (patterns or {}).items():
        try:
            re.compile(text)
        except (re.error, TypeError) as error:
            raise ValueError(f"{name}[{title!r}] must be a regular expression, not {quote(text)}: {error}.") from None


def check_classes(name: str, tables: object) -> None:
    """Raise unless these are classes of words by title."""
    if not isinstance(tables, Mapping | None):
        raise TypeError(f"{name} must be a dict of classes of words by title, not {quote(tables)}.")
    for title, table in (tables or {}).items():
        is_one = isinstance(table, Mapping) and table
        if not is_one or not all(type(text) is str and text for pair in table.items() for text in pair):
            raise ValueError(
                f"{name}[{title!r}] must be a dict of the class of each word, strings that are not empty: "
                "maxmargin.text.read_classes reads one from a file."
            )


def check_prefixes(name: str, lengths: object) -> None:
    """Raise unless these are lengths of prefixes of classes."""
    are_lengths = isinstance(lengths, tuple | list) and all(type(n) is int and 1 <= n <= MOST_PREFIX for n in lengths)
    if not are_lengths:
        raise ValueError(f"{name} must be a tuple of integers from 1 to {MOST_PREFIX}, not {quote(lengths)}.")


def check_vectors(name: str, vectors: object) -> None:
    """Raise unless these are vectors of words."""
    if vectors is not None and not (hasattr(vectors, "find") and hasattr(vectors, "width")):
        raise TypeError(
            f"{name} must be what maxmargin.text.read_vectors returns, or WordVectors, not {quote(vectors)}."
        )


def check_length(name: str, length: object) -> None:
    """Raise unless this is a length, or none."""
    from maxmargin.checks import check_positive  # which loads NumPy

    if length is not None:
        check_positive(name, length)
