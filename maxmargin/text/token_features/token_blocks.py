"""Columns of the features of many tokens at once, where a model knows all columns: as tables, without a list per token.

What a token has features of are keys: words, sequences of tags and the like. The columns of those that come again are
looked up once, and kept as rows of a table; the features of all tokens are then picked from it by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxmargin.text.strings import Strings
from maxmargin.text.token_features.named_features import NO_COLUMN, FeatureColumns
from maxmargin.text.token_features.tokens import Tokens

MOST_KEPT = 100_000  # values that are remembered
MOST_ROWS = 50_000  # keys whose features are remembered
MANY = 1_000  # tokens, from which on what they have in common is found before names are made
MANY_NAMES = 100  # that are worth a call for all of them
MOST_CELLS = 1 << 24  # of a table that numbers pairs
SAMPLE, MOST_NEW = 200, 0.9  # values, and the share of different ones above which each is looked up by itself

Feature = str | int  # a name, or its column
Rows = list[list[Feature]]
Names = Sequence[str | None]  # one of each key, or None where it has none
Values = Sequence[str | None]  # what is in them, after a title
NamesOf = Callable[[Sequence[str], int], Iterable[tuple[str, Values]]]  # of keys at a shift: titles and values
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


class Keys(NamedTuple):
    """Keys of tokens: token t has names[numbers[t]]."""

    names: list[Any]  # strings, or None where there is no key
    numbers: np.ndarray | slice = slice(None)  # by default there is a name for each token

    def map(self, function: Callable[[str], str]) -> Keys:
        """Those of what a function makes of names."""
        return Keys([*map(function, self.names)], self.numbers)


class TokenBlock:
    """The tokens of some sentences, with as many columns of tags each, one after the other; and columns of names."""

    def __init__(self, sentences: Sequence[Tokens], columns: FeatureColumns) -> None:
        self.sentences, self.columns = sentences, columns
        self.find_titled: Any = getattr(columns, "find_titled", None)
        self.lengths = np.array([len(tokens.words) for tokens in sentences], np.int64)
        self.numbers = np.repeat(np.arange(len(sentences)), self.lengths)  # of sentences
        self.ends = np.cumsum(self.lengths)[self.lengths > 0].tolist()  # of those that have tokens
        self.words = self._keys(tokens.words for tokens in sentences)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def tags(self) -> Iterator[Keys]:
        """Each column of tags."""
        n_columns = len(self.sentences[0].tags) if self.sentences else 0
        return (self._keys(tokens.tags[k] for tokens in self.sentences) for k in range(n_columns))

    def _keys(self, values: Iterable[Sequence[str]]) -> Keys:
        """The values of tokens, each once where there are many of them: their names are then made but once."""
        every = [*chain.from_iterable(values)]
        if len(every) < MANY:
            return Keys(every)
        numbers = {value: k for k, value in enumerate(dict.fromkeys(every))}
        return Keys([*numbers], np.array([*map(numbers.__getitem__, every)]))

    def find(self, title: str, values: Values) -> Sequence[int] | np.ndarray:
        """The columns of the names of values with a title, NO_COLUMN where there is none."""
        find_titled = self.find_titled if len(values) >= MANY_NAMES else None
        if find_titled is not None and hasattr(values, "texts"):
            return find_titled(title, values)
        sample = values[:SAMPLE]
        is_diverse = len({*sample}) > MOST_NEW * len(sample)
        distinct = values if is_diverse else [*dict.fromkeys(values)]
        names = [None if value is None else title + value for value in distinct]
        found = self.columns.find(names) if find_titled is None else find_titled("", Strings(names)).tolist()
        return found if is_diverse else [*map(dict(zip(distinct, found, strict=True)).__getitem__, values)]

    def ngrams(self, keys: Keys, n: int) -> Keys:
        """For each token n keys from there on, joined; None where its sentence has fewer."""
        if n == 1:
            return keys
        if len(self) >= MANY:
            return self._join_distinct(self.ngrams(keys, n - 1), keys, n - 1)
        found: list[Any] = [*map("|".join, zip(*(keys.names[k:] for k in range(n)), strict=False))]
        found += [None] * (len(self) - len(found))
        for end in self.ends:
            for k in range(1, min(n, end + 1)):
                found[end - k] = None
        return Keys(found)

    def pairs(self, keys: Keys, others: Keys, beside: int) -> Keys:
        """For each token its key joined with the other one that is at most one place beside it; or None."""
        if len(self) >= MANY:
            return self._join_distinct(keys, others, beside)
        found: list[Any] = [*map("|".join, zip(keys.names[beside < 0 :], others.names[beside > 0 :], strict=False))]
        if beside < 0:
            found.insert(0, None)
            for end in self.ends[:-1]:
                found[end] = None
        if beside > 0:
            found.append(None)
            for end in self.ends:
                found[end - 1] = None
        return Keys(found)

    def _join_distinct(self, keys: Keys, others: Keys, shift: int) -> Keys:
        """The key of each token joined with the other one `shift` places after it, or None beyond its sentence."""
        places = np.arange(len(self)) + shift
        within = np.clip(places, 0, len(self) - 1)
        is_there = (places == within) & (self.numbers[within] == self.numbers)
        first, second = np.asarray(keys.numbers)[is_there], np.asarray(others.numbers)[within[is_there]]
        both = first * len(others.names) + second
        distinct, which = number(both, len(keys.names) * len(others.names))
        pairs = zip(*(part.tolist() for part in np.divmod(distinct, len(others.names))), strict=True)
        numbers = np.full(len(self), len(distinct))
        numbers[is_there] = which
        return Keys([*(f"{keys.names[a]}|{others.names[b]}" for a, b in pairs), None], numbers)

    def beside(self, values: np.ndarray, shifts: np.ndarray) -> np.ndarray:
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
        From keys and a shift to titles and values of each key, as many as a key has features at most.
    shifts
        How many places after a token the keys are.
    code
        What finds the columns of names, or leaves these as they are.
    absent
        From a shift to a name, which tokens have where there is no key.
    """

    def __init__(
        self,
        names: NamesOf,
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

    def table(self, keys: Keys, block: TokenBlock) -> np.ndarray:
        """(N, S K) the columns of all tokens of a block, given their keys: the same, where all columns are known."""
        numbers, table = self._look_up(keys.names, block)
        of_tokens = np.array(numbers, np.int64)[keys.numbers]
        rows = table[block.beside(of_tokens, np.array(self.shifts, np.int64)), np.arange(len(self.shifts))]
        return rows.reshape(len(block), table.shape[1] * table.shape[2])

    def _nothing(self) -> KeyRows:
        """The row of no key."""
        first: Any = [NO_COLUMN if self.absent is None else self.code([self.absent(k)])[0] for k in self.shifts]
        return KeyRows({None: 0}, [np.array(first, np.int32).reshape(1, len(first), 1)])

    def _look_up(self, keys: Sequence[str | None], block: TokenBlock) -> tuple[list[int], np.ndarray]:
        """The rows of keys, and the table that they are in."""
        known = self.known or self._nothing()
        try:
            numbers = [*map(known.numbers.__getitem__, keys)]
        except KeyError:
            with self.lock:  # which other threads may wait for
                if len(known.numbers) + len(keys) > MOST_ROWS:
                    known = self._nothing()
                self._add(known, [key for key in dict.fromkeys(keys) if key not in known.numbers], block)
                self.known = known
            numbers = [*map(known.numbers.__getitem__, keys)]
        return numbers, known.tables[-1]

    def _add(self, known: KeyRows, keys: Sequence[Any], block: TokenBlock) -> None:
        """Write rows of keys; then they are known, so that other threads find them complete."""
        keys = Strings(keys) if block.find_titled and len(keys) >= MANY_NAMES else keys
        by_shift = [[block.find(*titled) for titled in self.names(keys, shift)] for shift in self.shifts]
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


def number(values: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
    """The integers from 0 to an end that there are, sorted, and the number of each value among them."""
    if end > MOST_CELLS:
        return np.unique(values, return_inverse=True)
    table = np.zeros(end, np.int32)
    table[values] = 1
    distinct = np.flatnonzero(table)
    table[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, table[values]


def names_of_key(names: NamesOf, shift: int, code: Code) -> Callable[[str], Sequence[Feature]]:
    """What finds the features of one key."""
    return lambda key: code([title + value for title, (value,) in names([key], shift) if value is not None])


def beside(rows: Rows, values: Sequence[Value], shift: int) -> Iterator[tuple[list[Feature], Value]]:
    """Pairs of a row and the value that is `shift` places after it."""
    return zip(rows[max(0, -shift) :], values[max(0, shift) :], strict=False)


def pad_rows(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """Rows of columns as a table."""
    lengths = np.array([len(row) for row in rows], np.int64)
    table = np.full((len(rows), int(lengths.max(initial=0))), NO_COLUMN, np.int32)
    table[np.arange(table.shape[1]) < lengths[:, np.newaxis]] = [column for row in rows for column in row]
    return table
