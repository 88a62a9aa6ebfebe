"""The names of features that a model knows, and what it learns them from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, pairwise
from typing import Any, Protocol

import numpy as np

from maxmargin.checks import check_count
from maxmargin.encode.inputs.example_checks import check_examples
from maxmargin.encode.inputs.rows import DenseBlock, Rows
from maxmargin.encode.names.forked_reading import read_all_codes
from maxmargin.encode.names.kept_rows import put_rows, take_rows
from maxmargin.encode.names.name_columns import NOWHERE, Columns, HashedColumns, RareColumns
from maxmargin.encode.names.name_table import JoinedNames, NameTable
from maxmargin.encode.names.named_rows import Codes, have_names, is_empty, make_matrix
from maxmargin.persist.registry import register
from maxmargin.runtime.modes import is_enough, is_interpreted
from maxmargin.supervision.tallies import is_frequent
from maxmargin.text.token_features.named_features import DenseColumns, Sliced, dense_factor, find_dense
from maxmargin.wording import count_of, quote

MOST_COLUMNS = 2**31 - 1  # of sparse rows with int32 columns
MANY = 50_000  # names: a dictionary of fewer is in the caches of a processor
HASHED = "hashed"  # what names of columns begin with that rare names are hashed onto

Known = Columns | HashedColumns | NameTable


@register
class Vocabulary:
    """The names that a model knows, or the number of columns that it hashes them onto.

    If some columns are for names that are rare, or unknown, which are hashed onto them, these are the last `n_rare`.
    The last `n_dense` names, or as many more columns, are those of dense columns, whose numbers are multiplied by
    `dense_factor`. While names are not looked up one by one, they are one text and the places where each ends: a sixth
    of the memory of a dictionary. Of many names, there is a `NameTable`.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        n_hashed: int | None = None,
        n_dense: int = 0,
        dense_factor: float = 1.0,
        n_rare: int = 0,
    ) -> None:
        names = [*names]
        self._joined = None if n_rare or not is_for_table(len(names)) else JoinedNames.of(names)
        self._columns = Columns(names) if self._joined is None else None
        self.n_hashed, self.n_dense, self.dense_factor, self.n_rare = n_hashed, n_dense, dense_factor, n_rare
        self._known: Known | None = None if self._joined is None else NameTable(self._joined)

    @classmethod
    def packed(cls, columns: Columns, n_dense: int = 0, dense_factor: float = 1.0, n_rare: int = 0) -> Vocabulary:
        """That of columns, whose table is not kept."""
        vocabulary = cls(n_dense=n_dense, dense_factor=dense_factor, n_rare=n_rare)
        vocabulary._columns, vocabulary._joined = None, JoinedNames.of([*columns])
        return vocabulary

    @property
    def columns(self) -> Columns:
        """The columns of names."""
        if self._columns is None:
            self._columns, self._joined = Columns(self.names), None
        return self._columns

    @property
    def names(self) -> list[str]:
        """The names that it knows, in the order of their columns."""
        return [*self.columns] if self._joined is None else self._joined.unpack()

    @property
    def dense_names(self) -> list[str]:
        """Those of dense columns, if names are not hashed."""
        if not self.n_dense or self.n_hashed is not None:
            return []
        return self.names[self.n_named :] if self._joined is None else self._joined.unpack(self.n_named)

    @property
    def size(self) -> int:
        """The number of columns."""
        if self.n_hashed is not None:
            return self.n_hashed + self.n_dense
        return len(self.columns) if self._joined is None else len(self._joined.ends)

    def selected(self, is_kept: Iterable[bool]) -> Vocabulary:
        """That of some of its names; columns that are dense, or for rare names, must be among them."""
        return self._with(compress(self.names, is_kept))

    def _with(self, names: Iterable[str]) -> Vocabulary:
        return Vocabulary(names, None, self.n_dense, self.dense_factor, self.n_rare)

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[object, ...]]:
        return Vocabulary, (self.names, self.n_hashed, self.n_dense, self.dense_factor, self.n_rare)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return False
        numbers = [(v.n_hashed, v.n_dense, v.dense_factor, v.n_rare) for v in (self, other)]
        mine, its = self._joined, other._joined
        if mine is not None and its is not None:
            return numbers[0] == numbers[1] and mine.text == its.text and np.array_equal(mine.ends, its.ends)
        return numbers[0] == numbers[1] and self.size == other.size and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_named(self) -> int:
        """The number of columns that are not dense."""
        return self.size - self.n_dense

    @property
    def n_own(self) -> int:
        """The number of columns that belong to a name each, which come first."""
        return self.n_named - self.n_rare

    def columns_in(self, other: Vocabulary) -> np.ndarray:
        """The columns of its names, or that names are hashed onto, in another vocabulary, or NOWHERE."""
        if self._begins(other):
            return np.arange(self.size)
        if self.n_hashed is None:
            return np.array(other.columns.find(self.names), np.int64)
        return np.arange(self.size) if self == other else np.full(self.size, NOWHERE)

    def joined(self, other: Vocabulary) -> Vocabulary:
        """The names of both: its own, those that only the other has, then those of columns that no name has alone."""
        self.check_extended(other)
        if self.n_hashed is not None:
            return self
        if self._begins(other):
            return other
        names = dict.fromkeys([*self.names[: self.n_own], *other.names[: other.n_own]])
        return self._with([*names, *self.names[self.n_own :]])

    def _begins(self, other: Vocabulary) -> bool:
        """Whether the names of another one are known to begin with its own, and to be followed by no others."""
        mine, its = self._joined, other._joined
        if mine is None or its is None or any(v.n_dense or v.n_rare for v in (self, other)):
            return False
        return its.text.startswith(mine.text) and np.array_equal(mine.ends, its.ends[: len(mine.ends)])

    def check_extended(self, other: Vocabulary) -> None:
        """Raise where the names of another one cannot be added to its own."""
        before, now = (vocabulary.n_rare or vocabulary.n_hashed for vocabulary in (self, other))
        if before != now:
            raise ValueError(f"n_hashed must be {before}, as before, not {now}.")
        if self.n_rare != other.n_rare:
            usual = "above 1" if self.n_rare else "1"
            raise ValueError(f"min_count must be {usual}, as before: with n_hashed, it tells which names are hashed.")
        if self.dense_names != other.dense_names:
            raise ValueError("X must have the same dense columns as before.")

    @property
    def known(self) -> Known:
        """The columns of names, also of those that are hashed."""
        if self._known is None:
            self._known = self._look_up_in()
        return self._known

    def _look_up_in(self) -> Known:
        if self.n_hashed is not None:
            return HashedColumns(self.n_hashed)
        if self.n_rare:
            return RareColumns(self.names, self.n_rare, self.n_dense)
        return self.columns if self._joined is None or not is_for_table(self.size) else NameTable(self._joined)

    def rows(self, X: Iterable[object], *, may_be_empty: bool = False) -> Rows:
        """The rows of sequences, which may be empty if said so, without the features that it does not know."""
        dense = find_dense(X)
        n_dense = 0 if dense is None else len(dense.names)
        if n_dense != self.n_dense:
            raise ValueError(
                f"X has {count_of(n_dense, 'dense column')}, but the model was fitted with {self.n_dense}."
            )
        rows = read_rows(X, self.known, self.size, may_be_empty=may_be_empty)
        return rows if dense is None else with_dense(rows, dense, self.size - n_dense, self.dense_factor)


class HasVocabulary(Protocol):
    """An encoder whose features may have names."""

    @property
    def vocabulary(self) -> Vocabulary | None: ...
    @property
    def n_features_in(self) -> int: ...


def join_features(former: HasVocabulary, other: HasVocabulary) -> tuple[Vocabulary | None, int]:
    """The names of the features of two encoders, None where these have none, and how many there are."""
    if former.vocabulary is not None and other.vocabulary is not None:
        both = former.vocabulary.joined(other.vocabulary)
        return both, both.size
    if former.vocabulary is not None or other.vocabulary is not None:
        raise TypeError("X must hold features by name, or none of them, as before.")
    if former.n_features_in != other.n_features_in:
        raise ValueError(f"X has {other.n_features_in} features, but {former.n_features_in} before.")
    return None, former.n_features_in


def is_for_table(n_names: int) -> bool:
    """Whether so many names are looked up in a `NameTable`."""
    return n_names > 0 and is_enough(n_names, MANY) and not is_interpreted.get()


def places_of(other: HasVocabulary, encoder: HasVocabulary) -> np.ndarray | None:
    """The columns of another's features in an encoder, or NOWHERE; None where they cannot be compared."""
    if other.vocabulary is not None and encoder.vocabulary is not None:
        return other.vocabulary.columns_in(encoder.vocabulary)
    are_alike = other.vocabulary is encoder.vocabulary is None and other.n_features_in == encoder.n_features_in
    return np.arange(other.n_features_in) if are_alike else None


def known_by_name(X: Any, vocabulary: Vocabulary | None, *, may_be_empty: bool = False) -> Any:
    """Sequences, which may be empty if said so, as a model knows their features: `Rows`, if these have names."""
    are_named, X = have_names(X)
    if vocabulary is None:
        return X
    if not are_named and not (may_be_empty and isinstance(X, Sequence) and all(map(is_empty, X))):
        check_examples(X, "sequences of items", "sequence")
        if isinstance(X[0], Sequence) and not len(X[0]):
            raise ValueError("X[0] is empty: every example needs at least one item.")
        raise TypeError("X must hold features by name, dictionaries or lists of strings, as in fit.")
    return vocabulary.rows(X, may_be_empty=may_be_empty)


def read_sequences(X: Any, vocabulary: Vocabulary | None, n_features: int) -> Any:
    """As `known_by_name`, sequences of which there may be none."""
    is_list = (isinstance(X, Sequence) and not isinstance(X, str)) or (isinstance(X, np.ndarray) and X.ndim)
    if is_list and not len(X):
        return Rows(np.zeros((0, n_features)), np.zeros(1, np.int64))
    return known_by_name(X, vocabulary, may_be_empty=True)


def learn_names(
    X: Any, *, min_count: Any, n_hashed: Any, former: Vocabulary | None = None, may_be_empty: bool = False
) -> tuple[Vocabulary | None, Any]:
    """The vocabulary of training sequences and their rows; None and the sequences where features have no names.

    Names that occur in fewer than `min_count` items are left out or, with `n_hashed`, hashed onto so many columns, but
    for those that a `former` vocabulary has, which come first. With a `min_count` of 1, `n_hashed` hashes all of them.
    Sequences may be empty, if said so.
    """
    check_count("min_count", min_count)
    if n_hashed is not None:
        check_count("n_hashed", n_hashed)
        if n_hashed > MOST_COLUMNS:
            raise ValueError(f"n_hashed must be at most {MOST_COLUMNS}, not {quote(n_hashed)}.")
    are_named, X = have_names(X)
    if not are_named:
        return None, X
    dense = find_dense(X)
    n_dense, factor = (0, 1.0) if dense is None else (len(dense.names), dense_factor(dense))
    factor = factor if former is None else former.dense_factor
    if n_hashed is not None and min_count == 1:
        vocabulary = Vocabulary(n_hashed=n_hashed, n_dense=n_dense, dense_factor=factor)
        if former is not None:
            former.check_extended(vocabulary)
        return vocabulary, vocabulary.rows(X, may_be_empty=may_be_empty)
    known = take_rows(None if former is None else former.size)
    if former is not None and known is not None:
        return former, known
    before = [] if former is None else former.names[: former.n_own]
    columns = Columns(before, grows=True)
    if isinstance(X, Sliced):  # what stays of a first time, made later, would stay among all names,
        read_rows(X[:1], Columns(grows=True), may_be_empty=True)  # and keep their memory from the system
    rows = read_rows(X, columns, may_be_empty=may_be_empty)
    put_rows(rows if dense is None and min_count == 1 else None)
    if min_count > 1 and columns:
        is_kept = is_frequent(columns, np.bincount(rows.matrix.indices, minlength=len(columns)), min_count)
        is_kept[: len(before)] = True
        if n_hashed is None:
            columns, rows = Columns(compress(columns, is_kept)), rows._replace(matrix=rows.matrix[:, is_kept])
        else:
            columns, rows = hash_rare(columns, rows, is_kept, n_hashed)
        if not columns:
            raise ValueError(f"X must have at least one feature, but min_count={min_count} leaves none.")
    if dense is not None:
        rows = with_dense(rows, dense, len(columns), factor)
        columns = Columns([*columns, *dense.names])
    if not columns:
        raise ValueError("X must have at least one feature, but its items are empty.")
    vocabulary = Vocabulary.packed(columns, n_dense, factor, 0 if n_hashed is None else n_hashed)
    if former is not None:
        former.check_extended(vocabulary)
    return vocabulary, rows


def hash_rare(columns: Columns, rows: Rows, is_kept: np.ndarray, n_rare: int) -> tuple[Columns, Rows]:
    """Columns and rows in which the names that are not kept are hashed onto columns after the others."""
    shared = [f"{HASHED}:{k}" for k in range(n_rare)]
    is_kept[[columns[name] for name in shared if name in columns]] = False
    known = RareColumns([*compress(columns, is_kept), *shared], n_rare)
    places, matrix = np.array(known.find([*columns]), np.int32), rows.matrix
    return known, rows._replace(matrix=make_matrix(matrix.data, places[matrix.indices], matrix.indptr, len(known)))


def read_rows(X: Iterable[object], columns: Any, width: int | None = None, *, may_be_empty: bool = False) -> Rows:
    """The rows of sequences of items, whose names `columns` has, or comes to have, the columns of."""
    codes = Codes(columns)
    entries, ends, starts = read_all_codes(X, codes)
    if len(starts) == 1 and not may_be_empty:
        raise ValueError("X must hold at least one sequence, but it is empty.")
    for i, (start, end) in enumerate(pairwise([] if may_be_empty else starts)):
        if start == end:
            raise ValueError(f"X[{i}] is empty: every sequence needs at least one item.")
    return Rows(codes.matrix(entries, ends, len(columns) if width is None else width), np.array(starts))


def with_dense(rows: Rows, dense: DenseColumns, first: int, factor: float) -> Rows:
    """The rows with dense columns times a factor, from the `first` on, where the matrix has nothing."""
    matrix, table = rows.matrix, dense.table if factor == 1 else dense.table * dense.table.dtype.type(factor)
    matrix.resize((matrix.shape[0], first + len(dense.names)))
    return rows._replace(matrix=matrix, dense=DenseBlock(first, table, dense.which))
