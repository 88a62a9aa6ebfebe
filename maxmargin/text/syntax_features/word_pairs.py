"""Features of pairs of places in sentences, by name, looked up for many sentences at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin.arrays.blocks import Blocks, places_in, starts_of
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.text.token_features.named_features import FeatureColumns, Sliced
from maxmargin.text.token_features.tokens import Token, Tokens, split_tokens

MOST_PAIRS = 100_000  # looked up at once
DISTANCES = np.array([1, 2, 3, 4, 5, 10])  # the last distance of each bin
UNKNOWN = -1


class PairFeatures(SentenceTransformer):
    """A transformer of sentences into features of pairs of places in them."""

    def fit(self, X: object, y: object = None) -> Self:
        """Do nothing: there is nothing to learn.

        Parameters
        ----------
        X, y
            Ignored.
        """
        return self

    def fit_transform(self, X: Iterable[Iterable[Token]], y: object = None) -> WordPairs:
        """As `transform`.

        Parameters
        ----------
        X
            As in `transform`.
        y
            Ignored.
        """
        return self.transform(X)

    @abstractmethod
    def transform(self, X: Iterable[Iterable[Token]]) -> WordPairs:
        """The features of the pairs."""


class WordPairs(Sliced[list[list[str]]]):
    """The features of pairs of places in sentences, such as arcs, made when they are asked for.

    Pairs are rows, counted from 0 in each sentence: all of them, or those that are chosen.
    """

    def __init__(self, sentences: Sequence[Any]) -> None:
        self.sentences = sentences
        self.chosen: Sequence[np.ndarray] | None = None

    @staticmethod
    @abstractmethod
    def count_pairs(lengths: np.ndarray) -> np.ndarray:
        """The numbers of pairs of sentences of so many words."""

    @abstractmethod
    def find_pairs(
        self, columns: FeatureColumns, sentences: Sequence[Tokens], rows: np.ndarray, n_rows: np.ndarray
    ) -> FoundNames:
        """Look up the names of all rows, of which each sentence, made of tokens, has so many."""

    def __len__(self) -> int:
        return len(self.sentences)

    def make_some(self, which: slice) -> Self:
        return self._of(self.sentences[which], None if self.chosen is None else self.chosen[which])

    def make_one(self, i: int) -> list[list[str]]:
        one = self._of([self.sentences[i]], None if self.chosen is None else [self.chosen[i]])
        names = _Names()
        block = next(one.find_columns(names))
        known = [*names]
        return [[known[k] for k in row] for row in np.split(block.values, block.starts[1:-1])]

    def _of(self, sentences: Sequence[object], chosen: Sequence[np.ndarray] | None) -> Self:
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), sentences=sentences, chosen=chosen)
        return other

    @property
    def lengths(self) -> np.ndarray:
        """The numbers of words of sentences."""
        return np.array([len(sentence) for sentence in self.sentences], np.int64)

    @property
    def starts(self) -> np.ndarray:
        """Where the rows of each sentence start, and those of the last end."""
        return starts_of(self.count_pairs(self.lengths) if self.chosen is None else [*map(len, self.chosen)])

    def look_up(self, columns: FeatureColumns) -> Iterator[list[list[int]]]:
        """The columns of the names of each pair, without those that are not known."""
        for block in self.find_columns(columns):
            yield [row.tolist() for row in np.split(block.values, block.starts[1:-1])]

    def of_rows(self, chosen: Sequence[np.ndarray]) -> Self:
        """Those of these rows of each sentence alone."""
        return self._of(self.sentences, chosen)

    def find_columns(self, columns: FeatureColumns) -> Iterator[Blocks]:
        """The same, a block for each sentence: faster, as there are many."""
        waiting: list[tuple[Tokens, Any]] = []
        n_waiting = 0
        for i, sentence in enumerate(self.sentences):
            tokens = split_tokens(sentence, i)
            waiting.append((tokens, None if self.chosen is None else self.chosen[i]))
            n_waiting += len(tokens.words) ** 2
            if n_waiting > MOST_PAIRS:
                yield from self._look_up(waiting, columns)
                waiting, n_waiting = [], 0
        if waiting:
            yield from self._look_up(waiting, columns)

    def _look_up(self, waiting: Sequence[tuple[Tokens, Any]], columns: FeatureColumns) -> Iterator[Blocks]:
        sentences = [tokens for tokens, _ in waiting]
        if self.chosen is None:
            n_rows = self.count_pairs(np.array([len(tokens.words) for tokens in sentences]))
            rows = places_in(n_rows)
        else:
            n_rows = np.array([len(chosen) for _, chosen in waiting])
            rows = np.concatenate([chosen for _, chosen in waiting])
        found = self.find_pairs(columns, sentences, rows, n_rows)
        yield from found.blocks(starts_of(n_rows))


class _Names(dict):
    """Columns of names in the order in which they come."""

    grows = True

    def find(self, names: Sequence[str | None]) -> list[int]:
        return [self.setdefault(name, len(self)) for name in names]


class Field(NamedTuple):
    """What each pair has in one place: numbers of strings."""

    numbers: np.ndarray
    strings: list[str]

    def at(self, places: np.ndarray) -> Field:
        """Those of some pairs, or words."""
        return Field(self.numbers[places], self.strings)


def number_strings(strings: Iterable[str]) -> Field:
    """Strings by their numbers."""
    known: dict[str, int] = {}
    numbers = np.fromiter((known.setdefault(string, len(known)) for string in strings), np.int64)
    return Field(numbers, [*known])


def number_columns(sentences: Sequence[Tokens], before: tuple[str, ...], after: tuple[str, ...]) -> list[Field]:
    """The words of all sentences, with what is before and after each of them, then each of their columns of tags."""
    columns = [[(tokens.words, *tokens.tags)[k] for tokens in sentences] for k in range(1 + len(sentences[0].tags))]
    return [
        number_strings(chain.from_iterable((*before, *strings, *after) for strings in column)) for column in columns
    ]


def bin_distances(distances: np.ndarray, signs: str = "") -> Field:
    """Lengths by bins, with a sign for those below and one for those above zero, if signs are given."""
    bins = np.searchsorted(DISTANCES, np.abs(distances))
    names = [str(last) for last in DISTANCES] + [f"{DISTANCES[-1]}+"]
    if not signs:
        return Field(bins, names)
    return Field((distances > 0) * len(names) + bins, [f"{sign}{name}" for sign in signs for name in names])


class FoundNames:
    """The columns of the names of pairs, template by template.

    Parameters
    ----------
    columns
        Where they are looked up.
    signs
        What is at the end of names, and the same with the distance.
    pairs
        Which rows have names at all.
    """

    def __init__(self, columns: FeatureColumns, signs: tuple[Field, Field], pairs: np.ndarray) -> None:
        self.columns, self.signs, self.pairs = columns, signs, pairs
        self.all = np.arange(len(pairs))
        self.known: dict[str, np.ndarray] = {}  # by template, the pairs whose name is known
        self.rows: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def add(self, template: str, fields: dict[str, Field], prefix: str = "") -> None:
        """Look up the names of a template of fields, with the sign and, where that is known, with the distance.

        It is looked up only where the template after a slash is known, which is part of it: most pairs have none.
        """
        template, _, parent = template.partition(" / ")
        rows = self.known.get(prefix + parent, self.known.get(parent, self.all)) if parent else self.all
        parts = [fields[name].at(rows) for name in template.split()]
        self.known[prefix + template] = self.look_up(f"{prefix}{template}", parts, rows)

    def look_up(self, name: str, parts: list[Field], rows: np.ndarray) -> np.ndarray:
        """Look up names of some rows; return the rows where that with the direction is known."""
        known = self.find(name, [*parts, self.signs[0].at(rows)], rows)
        parts = [part.at(known) for part in parts]
        self.find(name, [*parts, self.signs[1].at(rows[known])], rows[known])
        return rows[known]

    def find(self, name: str, parts: list[Field], rows: np.ndarray) -> np.ndarray:
        """Note the columns of names where they are known; return the places where they are."""
        keys = np.zeros(len(rows), np.int64)
        size = 1
        for part in parts:
            if size * len(part.strings) >= 2**62:
                distinct, keys = np.unique(keys, return_inverse=True)
                size = len(distinct)
            keys = keys * len(part.strings) + part.numbers
            size *= len(part.strings)
        _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
        *texts, signs = ([part.strings[k] for k in part.numbers[firsts].tolist()] for part in parts)
        names = [f"{name}={' '.join(text)}{sign}" for *text, sign in zip(*texts, signs, strict=True)]
        columns = np.array(self.columns.find(names), np.int32).reshape(-1)[inverse.reshape(-1)]
        known = np.flatnonzero(columns != UNKNOWN)
        self.rows.append(rows[known])
        self.values.append(columns[known])
        return known

    def blocks(self, starts: np.ndarray) -> Iterator[Blocks]:
        """The columns of each sentence, whose rows start there."""
        rows = np.concatenate(self.rows)
        values = np.concatenate(self.values)[np.argsort(rows, kind="stable")]
        counts = np.zeros(starts[-1], np.int64)
        counts[self.pairs] = np.bincount(rows, minlength=len(self.pairs))
        ends = starts_of(counts)
        for lo, hi in pairwise(starts.tolist()):
            yield Blocks(values[ends[lo] : ends[hi]], ends[lo : hi + 1] - ends[lo])
