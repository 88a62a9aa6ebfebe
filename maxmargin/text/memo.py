"""Functions whose values are remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

MOST_KEPT = 100_000  # words, or tags, whose features are remembered


class Cache(dict):
    """Values of a function, kept: the features of most words and tags are needed again and again.

    When there are too many, all are forgotten.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __missing__(self, key: Any) -> Any:
        if len(self) >= MOST_KEPT:
            self.clear()
        value = self[key] = self.function(key)
        return value


class BlockCache(Cache):
    """The same of a function of lists, which is faster for many keys at once."""

    def __missing__(self, key: Any) -> Any:
        self.meet([key])
        return self[key]

    def meet(self, keys: Sequence[Any]) -> None:
        """Remember the values of keys."""
        if len(self) + len(keys) > MOST_KEPT:
            self.clear()
        self.update(zip(keys, self.function(keys), strict=True))
