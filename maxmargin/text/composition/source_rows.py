"""What several sources make of sentences, side by side, as models ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self, TypeVar

import numpy as np

from maxmargin.text.token_features.named_features import (
    NO_COLUMN,
    DenseColumns,
    FeatureColumns,
    NamedFeatures,
    Sliced,
    find_dense,
    find_edges,
    find_listed,
    is_named,
)
from maxmargin.text.token_features.token_blocks import pad_rows
from maxmargin.wording import count_of, quote

T = TypeVar("T")

Maker = Callable[[Any], Any]  # from a sentence to a list of names, or a dict, for each of its tokens


class SourceRows(Sliced[list[list[str]]]):
    """The features of sentences by several sources: the names of all, and the dense columns of one."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts[0])

    def make_some(self, which: slice) -> Self:
        return type(self)([part[which] for part in self.parts])

    def make_one(self, i: int) -> list[list[str]]:
        return join_items([part[i] for part in self.parts], i)

    def look_up(self, columns: FeatureColumns) -> Iterator[list[list[int]]]:
        """The same with the columns of the names in their place."""
        found = zip(*(part.look_up(columns) for part in self.parts), strict=True)
        return (join_items(items, i) for i, items in enumerate(found))

    def column_tables(self, columns: FeatureColumns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same of all sentences at once: a table with the columns of each token, and the lengths of sentences."""
        tables, lengths = zip(*(table_of(part, columns) for part in self.parts), strict=True)
        for i, sizes in enumerate(zip(*lengths, strict=True)):
            check_sizes(sizes, i)
        yield np.concatenate(tables, axis=1), lengths[0]

    def dense_columns(self) -> DenseColumns | None:
        """Those of the source that has some."""
        return find_only(map(find_dense, self.parts), "vectors, or other dense columns,")

    def edge_features(self) -> SourceRows | None:
        """The features of transitions of the sources that have some."""
        found = [edges for edges in map(find_edges, self.parts) if edges is not None]
        return SourceRows(found) if found else None

    def segment_features(self) -> object:
        """The features of segments of the source that has some."""
        return find_only(map(find_listed, self.parts), "features of segments")


def find_only(found: Iterable[T | None], what: str) -> T | None:
    """The only one of several that is not None, or None; raises if there are more."""
    known = [one for one in found if one is not None]
    if len(known) > 1:
        raise ValueError(f"sources must have {what} in one place, not in {len(known)}.")
    return known[0] if known else None


class ItemRows(Sliced[list[list[str]]]):
    """The features of sentences as lists of items: lists of names, or dicts of strings and bools by name.

    Parameters
    ----------
    sentences
        Those lists, or what they are made of.
    make
        Makes them of a sentence.
    """

    def __init__(self, sentences: Sequence[object], make: Maker | None = None) -> None:
        self.sentences, self.make = sentences, make

    def __len__(self) -> int:
        return len(self.sentences)

    def make_some(self, which: slice) -> Self:
        return type(self)(self.sentences[which], self.make)

    def make_one(self, i: int) -> list[list[str]]:
        return self._names(self.sentences[i], i)

    def _names(self, sentence: Any, i: int) -> list[list[str]]:
        if self.make is None:
            items, title = sentence, "what a source returns"
        else:
            sentence = sentence if isinstance(sentence, Sequence) else [*sentence]
            items, title = self.make(sentence), f"what {name_of(self.make)} returns"
        if not isinstance(items, Sequence) or isinstance(items, str):
            raise TypeError(f"{title} for X[{i}] must be a list of the features of each token, not {quote(items)}.")
        if self.make is not None and len(items) != len(sentence):
            tokens = count_of(len(sentence), "token")
            raise ValueError(f"{title} for X[{i}] must be a list for {tokens}, but it has {len(items)}.")
        return [names_of(item, title, i, t) for t, item in enumerate(items)]

    def look_up(self, columns: FeatureColumns) -> Iterator[list[list[int]]]:
        """The same with the columns of the names in their place."""
        for i, sentence in enumerate(self.sentences):
            yield [columns.find(names) for names in self._names(sentence, i)]


def as_rows(features: Any) -> NamedFeatures:
    """What a transformer has made, as a sequence that looks up its columns."""
    return features if is_named(features) else ItemRows(features)


def name_of(function: object) -> str:
    """What messages call a function."""
    return getattr(function, "__name__", type(function).__name__)


def names_of(item: object, title: str, i: int, t: int) -> list[str]:
    """The names of an item: of a dict those that are True, and those of a string with it, as models have them."""
    names: list[Any] = [*item] if isinstance(item, list | tuple) else [None]
    if isinstance(item, Mapping):
        pairs = [(name, value) for name, value in item.items() if value is not False]
        names = [name if value is True else f"{name}:{value}" for name, value in pairs]
        if not all(isinstance(name, str) and (value is True or isinstance(value, str)) for name, value in pairs):
            names = [None]
    if not all(isinstance(name, str) for name in names):
        expected = "a list of names, or a dict of strings and bools by name: numbers go into vectors"
        raise TypeError(f"{title} for X[{i}] has {quote(item)} at position {t}, but it must be {expected}.")
    return names


def join_items(found: Sequence[Sequence[Sequence[T]]], i: int) -> list[list[T]]:
    """The features of each token of sentence i, by all sources."""
    check_sizes([len(items) for items in found], i)
    return [[*chain(*items)] for items in zip(*found, strict=True)]


def check_sizes(sizes: Iterable[int], i: int) -> None:
    """Raise unless all sources have features for as many tokens of sentence i."""
    if len({*map(int, sizes)}) > 1:
        raise ValueError(f"sources must have features for each token of X[{i}], but have {quote([*map(int, sizes)])}.")


def table_of(part: Any, columns: FeatureColumns) -> tuple[np.ndarray, np.ndarray]:
    """The columns of all tokens by one source, a row each, and the lengths of sentences."""
    if not hasattr(part, "column_tables"):
        rows = [*part.look_up(columns)]
        return pad_rows([*chain(*rows)]), np.array([len(items) for items in rows], np.int64)
    found = [*part.column_tables(columns)]
    width = max((table.shape[1] for table, _ in found), default=0)
    tables = [np.pad(table, [(0, 0), (0, width - table.shape[1])], constant_values=NO_COLUMN) for table, _ in found]
    return np.concatenate([np.zeros((0, width), np.int32), *tables]), np.concatenate(
        [np.zeros(0, np.int64), *(lengths for _, lengths in found)]
    )
