"""Many strings, and parts of them, as one text, in which they are looked up without a string for each part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

NONE = -1  # where None begins
END = ord("\n")
FOLLOWS = 0xC0, 0x80  # the mask and the value of bytes of UTF-8 that go on with a character


class Texts(NamedTuple):
    """Strings as stretches of one text in UTF-8; None begins at NONE."""

    text: np.ndarray  # uint8
    begins: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, strings: Sequence[str | None]) -> Texts:
        """Those of a list, with a line end after each."""
        found = [string or "" for string in strings]
        text = np.frombuffer("\n".join([*found, ""]).encode("utf-8", "surrogatepass"), np.uint8)
        ends = np.flatnonzero(text == END)
        if len(ends) != len(found):  # some are of several lines
            ends = np.cumsum([len(string.encode("utf-8", "surrogatepass")) + 1 for string in found]) - 1
        begins = np.append(0, ends + 1)[:-1]
        begins[[k for k in np.flatnonzero(begins == ends).tolist() if strings[k] is None]] = NONE
        return cls(text, begins, ends)


class Strings(list[Any]):
    """A list of strings, or of None, that remembers what is made of it."""

    def __init__(self, strings: Iterable[str | None]) -> None:
        super().__init__(strings)
        self.made: dict[object, Strings] = {}

    def map(self, function: Callable[[str], str]) -> Strings:
        """What a function makes of each."""
        if function not in self.made:
            self.made[function] = Strings(map(function, self))
        return self.made[function]

    @cached_property
    def texts(self) -> Texts:
        """The same as one text."""
        return Texts.of(self)

    @cached_property
    def characters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where in the text characters are, and the numbers of those at which strings begin and end."""
        text, begins, ends = self.texts
        is_first = (text & FOLLOWS[0]) != FOLLOWS[1]
        number = np.cumsum(is_first) - 1
        return np.flatnonzero(is_first), number[begins], number[ends]


class Affixes(Sequence[Any]):
    """The first n characters of strings or, with a negative n, the last -n; None of those that have fewer."""

    def __init__(self, strings: Strings, n: int) -> None:
        self.strings, self.n = strings, n

    def __len__(self) -> int:
        return len(self.strings)

    def __getitem__(self, k: Any) -> Any:
        return (
            cut_affixes(self.strings[k], self.n) if isinstance(k, slice) else cut_affixes([self.strings[k]], self.n)[0]
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(cut_affixes(self.strings, self.n))

    @property
    def texts(self) -> Texts:
        """The same as parts of the text of the strings."""
        text, begins, ends = self.strings.texts
        places, first, last = self.strings.characters
        is_there = last - first >= abs(self.n)
        if self.n > 0:
            return Texts(text, np.where(is_there, begins, NONE), places[np.where(is_there, first + self.n, 0)])
        return Texts(text, np.where(is_there, places[np.maximum(last + self.n, 0)], NONE), ends)


def cut_affixes(strings: Sequence[str], n: int) -> list[str | None]:
    """The `Affixes` of strings."""
    if n > 0:
        return [string[:n] if len(string) >= n else None for string in strings]
    return [string[n:] if len(string) >= -n else None for string in strings]


def affixes_of(strings: Sequence[str], n: int) -> Sequence[str | None]:
    """The `Affixes` of strings that are many, or those of a few."""
    return Affixes(strings, n) if isinstance(strings, Strings) else cut_affixes(strings, n)


def made_of(strings: Sequence[str], function: Callable[[str], str]) -> Sequence[str]:
    """What a function makes of each string."""
    return strings.map(function) if isinstance(strings, Strings) else [*map(function, strings)]
