"""Lists of names, such as cities, and where they are in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class Gazetteers:
    """Names of one or more words, by the lists that they are in; case does not matter.

    Parameters
    ----------
    lists : dict of lists of names by title
    """

    def __init__(self, lists: Any) -> None:
        if not isinstance(lists, Mapping):
            raise TypeError(f"gazetteers must be a dict with lists of names, not a {type(lists).__name__}.")
        self.titles: dict[tuple[str, ...], list[str]] = {}
        for title, names in lists.items():
            names = [] if isinstance(names, str) or not isinstance(names, Iterable) else [*names]
            if not names or not all(isinstance(name, str) and name.strip() for name in names):
                raise ValueError(f"gazetteers[{title!r}] must be a list of names, strings that are not blank.")
            for name in dict.fromkeys(name.lower() for name in names):
                self.titles.setdefault(tuple(name.split()), []).append(title)
        self.longest = max(map(len, self.titles), default=0)

    def find(self, words: list[str]) -> Iterator[tuple[int, int, list[str]]]:
        """First word, end and titles of names, the longest that begins at a word that is not part of the one before."""
        lower = tuple(word.lower() for word in words) if self.longest else ()
        start = 0
        while start < len(lower):
            ends = range(min(start + self.longest, len(lower)), start, -1)
            end = next((end for end in ends if lower[start:end] in self.titles), None)
            if end is not None:
                yield start, end, self.titles[lower[start:end]]
            start = end or start + 1
