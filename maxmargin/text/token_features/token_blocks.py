"""Columns of the features of many tokens at once, where a model knows all columns: as tables, without a list per token.

What a token has features of are keys: words, sequences of tags and the like. The columns of those that come again are
looked up once, and kept as rows of a table; the features of all tokens are then picked from it by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxmargin.text.token_features.named_features import NO_COLUMN
from maxmargin.text.token_features.tokens import Tokens

MOST_KEPT = 100_000  # words, or tags, whose features are remembered

Feature = str | int  # a name, or its column
Rows = list[list[Feature]]
Names = Sequence[str | None]  # one of each key, or None where it has none
Code = Callable[[Any], Sequence[Feature]]  # puts columns in the place of names, or leaves them
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


class TokenBlock:
    """The tokens of some sentences, with as many columns of tags each, one after the other."""

    def __init__(self, sentences: Sequence[Tokens]) -> None:
        self.sentences = sentences
        self.words = [word for tokens in sentences for word in tokens.words]
        self.lengths = np.array([len(tokens.words) for tokens in sentences], np.int64)
        self.numbers = np.repeat(np.arange(len(sentences)), self.lengths)  # of sentences

    @property
    def tags(self) -> Iterator[list[Sequence[str]]]:
        """Each column of tags: those of each sentence."""
        n_columns = len(self.sentences[0].tags) if self.sentences else 0
        return ([tokens.tags[k] for tokens in self.sentences] for k in range(n_columns))

    def beside(self, values: Sequence[int], shifts: np.ndarray) -> np.ndarray:
        """(N, S) the values that are `shifts` places after each token, 0 beyond its sentence."""
        gap = int(np.abs(shifts).max(initial=0))  # of zeros between sentences
        at = np.arange(len(self.numbers)) + gap * (self.numbers + 1)
        spaced = np.zeros(len(at) + gap * (len(self.lengths) + 1), np.int64)
        spaced[at] = values
        return spaced[at[:, np.newaxis] + shifts]


class KeyRows(NamedTuple):
    """Keys, each with the number of its row; row 0 is that of no key."""

    numbers: dict[str | None, int]
    tables: list[np.ndarray]  # the one of now, (V, S, K): those of before have fewer rows or slots


class KeyedFeatures:
    """Features of tokens that come from keys, at some shifts.

    Parameters
    ----------
    names
        From keys and a shift to lists with a name of each key, as many lists as a key has features at most.
    shifts
        How many places after a token the keys are.
    code
        What finds the columns of names, or leaves these as they are.
    absent
        From a shift to a name, which tokens have where there is no key.
    """

    def __init__(
        self,
        names: Callable[[Sequence[str], int], Iterable[Names]],
        shifts: Iterable[int],
        code: Code,
        *,
        absent: Callable[[int], str] | None = None,
    ) -> None:
        self.names, self.code, self.absent = names, code, absent
        self.shifts = [*shifts]
        self.of_key = {shift: ValuesOf(names_of_key(names, shift, code)) for shift in self.shifts}
        self.known: KeyRows | None = None
        self.lock = Lock()

    def add(self, rows: Rows, keys: Sequence[str]) -> None:
        """Add features to the row of each token of a sentence, given their keys."""
        for shift, features in self.of_key.items():
            for row, key in beside(rows, keys, shift):
                row += features[key]
            if self.absent is not None:
                for row in rows[:-shift] if shift < 0 else rows[max(len(rows) - shift, 0) :]:
                    row += self.code([self.absent(shift)])

    def table(self, keys: Sequence[str | None], block: TokenBlock) -> np.ndarray:
        """(N, S K) the columns of all tokens of a block, given their keys: the same, where all columns are known."""
        numbers, table = self._look_up(keys)
        rows = table[block.beside(numbers, np.array(self.shifts, np.int64)), np.arange(len(self.shifts))]
        return rows.reshape(len(keys), table.shape[1] * table.shape[2])

    def _nothing(self) -> KeyRows:
        """The row of no key."""
        first: Any = [NO_COLUMN if self.absent is None else self.code([self.absent(k)])[0] for k in self.shifts]
        return KeyRows({None: 0}, [np.array(first, np.int32).reshape(1, len(first), 1)])

    def _look_up(self, keys: Sequence[str | None]) -> tuple[list[int], np.ndarray]:
        """The rows of keys, and the table that they are in."""
        known = self.known or self._nothing()
        if not known.numbers.keys() >= {*keys}:
            with self.lock:  # which other threads may wait for
                if len(known.numbers) + len(keys) > MOST_KEPT:
                    known = self._nothing()
                self._add(known, [key for key in dict.fromkeys(keys) if key not in known.numbers])
                self.known = known
        return [*map(known.numbers.__getitem__, keys)], known.tables[-1]

    def _add(self, known: KeyRows, keys: Sequence[Any]) -> None:
        """Write rows of keys; then they are known, so that other threads find them complete."""
        by_shift: Any = [[*map(self.code, self.names(keys, shift))] for shift in self.shifts]
        old, size = known.tables[-1], len(known.numbers)
        end, width = size + len(keys), max([old.shape[2], *map(len, by_shift)])
        table = old
        if end > len(old) or width > old.shape[2]:
            table = np.full((2 * end, len(self.shifts), width), NO_COLUMN, np.int32)
            table[:size, :, : old.shape[2]] = old[:size]
        for s, slots in enumerate(by_shift):
            for k, slot in enumerate(slots):
                table[size:end, s, k] = slot
        known.tables[:] = [table]
        known.numbers.update(zip(keys, range(size, end), strict=True))


def names_of_key(
    names: Callable[[Sequence[str], int], Iterable[Names]], shift: int, code: Code
) -> Callable[[str], Sequence[Feature]]:
    """What finds the features of one key."""
    return lambda key: code([name for (name,) in names([key], shift) if name is not None])


def beside(rows: Rows, values: Sequence[Value], shift: int) -> Iterator[tuple[list[Feature], Value]]:
    """Pairs of a row and the value that is `shift` places after it."""
    return zip(rows[max(0, -shift) :], values[max(0, shift) :], strict=False)


def pad_rows(rows: Any) -> np.ndarray:
    """Rows of columns as a table."""
    lengths = np.array([len(row) for row in rows], np.int64)
    table = np.full((len(rows), int(lengths.max(initial=0))), NO_COLUMN, np.int32)
    table[np.arange(table.shape[1]) < lengths[:, np.newaxis]] = [column for row in rows for column in row]
    return table


def ngram_keys(sentences: Iterable[Sequence[str]], n: int) -> Iterator[str | None]:
    """For each place the n values from there on, joined; None where there are fewer."""
    for values in sentences:
        if n == 1:
            yield from values
        else:
            yield from map("|".join, zip(*(values[k:] for k in range(n)), strict=False))
            yield from [None] * min(n - 1, len(values))
