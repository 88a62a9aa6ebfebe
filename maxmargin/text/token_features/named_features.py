"""How features with names get columns without a list of names for each item: a protocol for transformers.

What a transformer returns is a list of sequences of items, an item being a list of names, and this is all that models
need. Where names come again and again, as those of words do, most of the time goes into making and looking up the same
strings. A transformer whose result is one of `NamedFeatures` is asked for columns instead, and may remember them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, Self, TypeGuard, TypeVar, overload, runtime_checkable

import numpy as np

T = TypeVar("T")

NO_COLUMN = -1  # of names that a model does not know


class FeatureColumns(Protocol):
    """The columns of the names that a model knows, or comes to know.

    Those of many known names have a method `find_titled`, too: of a title and values, which together are names, it
    returns the columns in an array.
    """

    grows: bool
    """Whether new names get columns, as they do while a model is trained: then what is remembered of other names, or
    in another order, changes the order of columns."""

    def find(self, names: Sequence[str | None]) -> list[int]:
        """The column of each name, -1 for those that the model does not know, and for None."""


@runtime_checkable
class NamedFeatures(Protocol):
    """Sequences of items that look up the columns of their names themselves.

    Besides, they are what they would be without: a sequence with the lists of names of each item, all of value 1. Where
    the columns of many items are found faster at once, a method `column_tables` does so, of columns that do not grow:
    it yields tables with the columns of an item in each row, -1 in what is left of it, and how many items sequences
    have. Where items have dense columns beside their names, there is a method `dense_columns`, too, which returns
    `DenseColumns`. Where transitions have features, a method `edge_features` returns sequences like these of one item
    less: what is between an item and the next one. Where whole segments have some, a method `segment_features` returns
    a list of (start, end, names) for each sequence.

    Examples
    --------
    >>> from maxmargin.text import NamedFeatures, WindowFeatures
    >>> features = WindowFeatures(window=0, affixes=0).fit_transform([["He", "sings"]])
    >>> isinstance(features, NamedFeatures), "lower=sings" in features[0][1]
    (True, True)
    """

    def look_up(self, columns: FeatureColumns) -> Iterator[Sequence[Sequence[int]]]:
        """For each sequence the columns of each item's names, in their order: what `columns.find` returns for them.

        Names that are found anew while `columns.grows` must be those of an item, and be found in the order of items.
        """


def is_named(X: object) -> TypeGuard[NamedFeatures]:
    """Whether X is one of `NamedFeatures`: what `isinstance` says, without its cost, felt by lone sentences."""
    return hasattr(X, "look_up")


class Sliced(Sequence[T]):
    """A sequence that makes what it is asked for: one entry, or the sequence of some of them."""

    @overload
    def __getitem__(self, i: int) -> T: ...
    @overload
    def __getitem__(self, i: slice) -> Self: ...
    def __getitem__(self, i: int | slice) -> T | Self:
        return self.make_some(i) if isinstance(i, slice) else self.make_one(i)

    @abstractmethod
    def make_one(self, i: int) -> T:
        """Entry i."""

    @abstractmethod
    def make_some(self, which: slice) -> Self:
        """The same of some entries."""


class DenseColumns(NamedTuple):
    """Numbers of items, beside their names: rows of a table, one after the other.

    Item t of all sequences has the rows table[which[t, 0]], table[which[t, 1]] and so on; zeros where `which` is below
    0. So items of the same word share a row. Models multiply all numbers by one factor, which gives the items to train
    on the `length`, and remember it: long rows beside names make training slow. None leaves them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.text import DenseColumns
    >>> table = np.array([[0.5, 1.0], [2.0, 0.0]])  # of two words
    >>> columns = DenseColumns(["size", "weight"], table, np.array([[0], [1], [0], [-1]]))  # the last of none
    >>> columns.which.shape
    (4, 1)
    """

    names: Sequence[str]  # of all columns: as many as `which` and the table have, multiplied
    table: np.ndarray  # (V, D)
    which: np.ndarray  # (N, K)
    length: float | None = None  # the root mean square of those of items


def dense_factor(dense: DenseColumns) -> float:
    """What to multiply dense columns by so that items have the length that is wanted."""
    if dense.length is None:
        return 1.0
    squares = np.append(np.square(dense.table, dtype=np.float64).sum(axis=1), 0.0)  # the last: what -1 has
    mean = squares[dense.which].sum() / max(len(dense.which), 1)
    return dense.length / float(np.sqrt(mean)) if 0 < mean < np.inf else 1.0


def find_edges(X: object) -> object:
    """The features of transitions of sequences, as sequences of one item less, if they have any."""
    return X.edge_features() if hasattr(X, "edge_features") else None


def find_listed(X: object) -> object:
    """The features of segments of sequences, as `SegmentCRF.fit` takes them, if they have any."""
    return X.segment_features() if hasattr(X, "segment_features") else None


def find_dense(X: object) -> DenseColumns | None:
    """The dense columns of sequences, if they have any."""
    return X.dense_columns() if hasattr(X, "dense_columns") else None
