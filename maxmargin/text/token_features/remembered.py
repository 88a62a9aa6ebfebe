"""Functions whose values are remembered: the features of most words and tags are needed again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

MOST_KEPT = 100_000  # words, or tags, whose features are remembered

Key = TypeVar("Key")
Value = TypeVar("Value")


class ValuesOf(dict[Key, Value]):
    """The values of a function, each computed once; when there are too many, all are forgotten."""

    def __init__(self, function: Callable[[Key], Value]) -> None:
        self.function = function

    def __missing__(self, key: Key) -> Value:
        if len(self) >= MOST_KEPT:
            self.clear()
        value = self[key] = self.function(key)
        return value


class ValuesOfLists(dict[Key, Value]):
    """The same of a function of lists of keys, which is faster for many at once."""

    def __init__(self, function: Callable[[Sequence[Key]], Iterable[Value]]) -> None:
        self.function = function

    def __missing__(self, key: Key) -> Value:
        self.meet([key])
        return self[key]

    def meet(self, keys: Sequence[Key]) -> None:
        """Remember the values of keys."""
        if len(self) + len(keys) > MOST_KEPT:
            self.clear()
        self.update(zip(keys, self.function(keys), strict=True))
