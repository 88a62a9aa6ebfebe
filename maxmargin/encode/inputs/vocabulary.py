"""Features by name: dictionaries and lists of strings to sparse rows, and the names that a model knows.

An item, the features of one position, is a list of names or a dictionary. In a dictionary a number or a bool is the
value of a name, while a string becomes part of it, and so do names in a nested list or dictionary:
``{"word": "the", "length": 3, "in": ["title"]}`` has the features ``word:the`` = 1, ``length`` = 3, ``in:title`` = 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, islice, pairwise
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_count
from maxmargin.encode.inputs.example_checks import check_examples
from maxmargin.encode.inputs.name_columns import NOWHERE, Columns, HashedColumns
from maxmargin.encode.inputs.rows import DenseBlock, Rows
from maxmargin.garbage import no_garbage_collection
from maxmargin.persist.registry import register
from maxmargin.text.token_features.named_features import DenseColumns, dense_factor, find_dense, is_named
from maxmargin.wording import count_of, quote

LISTS = (list, tuple, set, frozenset)
MOST_COLUMNS = 2**31 - 1  # of sparse rows with int32 columns


@register
class Vocabulary:
    """The names that a model knows, or the number of columns that it hashes them onto.

    The last `n_dense` names, or as many more columns, are those of dense columns, whose numbers are multiplied by
    `dense_factor`. While names are not
    looked up, they are one text and the places where each ends: a sixth of the memory of a table.
    """

    def __init__(
        self, names: Iterable[str] = (), n_hashed: int | None = None, n_dense: int = 0, dense_factor: float = 1.0
    ) -> None:
        self._columns: Columns | None = Columns(names)
        self._text, self._ends = b"", array("q")
        self.n_hashed, self.n_dense, self.dense_factor = n_hashed, n_dense, dense_factor
        self._hashed: HashedColumns | None = None

    @classmethod
    def packed(cls, columns: Columns, n_dense: int = 0, dense_factor: float = 1.0) -> Vocabulary:
        """That of columns, whose table is not kept."""
        text, ends = bytearray(), array("q")
        for name in columns:
            text += name.encode("utf-8", "surrogatepass")
            ends.append(len(text))
        vocabulary = cls(n_dense=n_dense, dense_factor=dense_factor)
        vocabulary._columns, vocabulary._text, vocabulary._ends = None, bytes(text), ends
        return vocabulary

    @property
    def columns(self) -> Columns:
        """The columns of names."""
        if self._columns is None:
            self._columns = Columns(self.names)
            self._text, self._ends = b"", array("q")
        return self._columns

    @property
    def names(self) -> list[str]:
        """The names that it knows, in the order of their columns."""
        if self._columns is not None:
            return [*self._columns]
        places = pairwise([0, *self._ends])
        return [self._text[start:end].decode("utf-8", "surrogatepass") for start, end in places]

    @property
    def size(self) -> int:
        """The number of columns."""
        if self.n_hashed is not None:
            return self.n_hashed + self.n_dense
        return len(self._ends) if self._columns is None else len(self._columns)

    def selected(self, is_kept: Iterable[bool]) -> Vocabulary:
        """That of some of its names; dense columns must be among them."""
        return Vocabulary(compress(self.names, is_kept), n_dense=self.n_dense, dense_factor=self.dense_factor)

    def __reduce__(self) -> Any:
        return Vocabulary, (self.names, self.n_hashed, self.n_dense, self.dense_factor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return False
        numbers = [(v.n_hashed, v.n_dense, v.dense_factor) for v in (self, other)]
        return numbers[0] == numbers[1] and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]

    @property
    def known(self) -> Columns | HashedColumns:
        """The columns of names, also of those that are hashed."""
        if self.n_hashed is not None and self._hashed is None:
            self._hashed = HashedColumns(self.n_hashed)
        return self.columns if self._hashed is None else self._hashed

    def rows(self, X: Iterable[Any], *, may_be_empty: bool = False) -> Rows:
        """The rows of sequences, which may be empty if said so, without the features that it does not know."""
        dense = find_dense(X)
        n_dense = 0 if dense is None else len(dense.names)
        if n_dense != self.n_dense:
            raise ValueError(
                f"X has {count_of(n_dense, 'dense column')}, but the model was fitted with {self.n_dense}."
            )
        rows = read_rows(X, self.known, self.size, may_be_empty=may_be_empty)
        return rows if dense is None else with_dense(rows, dense, self.size - n_dense, self.dense_factor)


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


def learn_names(X: Any, *, min_count: Any, n_hashed: Any) -> tuple[Vocabulary | None, Any]:
    """The vocabulary of training sequences and their rows; None and the sequences where features have no names.

    Names that occur in fewer than `min_count` items are left out.
    """
    check_count("min_count", min_count)
    if n_hashed is not None:
        check_count("n_hashed", n_hashed)
        if n_hashed > MOST_COLUMNS:
            raise ValueError(f"n_hashed must be at most {MOST_COLUMNS}, not {quote(n_hashed)}.")
        if min_count > 1:
            raise ValueError("min_count must be 1 with n_hashed: names that are hashed are not counted.")
    are_named, X = have_names(X)
    if not are_named:
        return None, X
    dense = find_dense(X)
    n_dense, factor = (0, 1.0) if dense is None else (len(dense.names), dense_factor(dense))
    if n_hashed is not None:
        vocabulary = Vocabulary(n_hashed=n_hashed, n_dense=n_dense, dense_factor=factor)
        return vocabulary, vocabulary.rows(X)
    columns = Columns(grows=True)
    rows = read_rows(X, columns)
    if min_count > 1 and columns:
        is_kept = np.bincount(rows.matrix.indices, minlength=len(columns)) >= min_count
        columns, rows = Columns(compress(columns, is_kept)), rows._replace(matrix=rows.matrix[:, is_kept])
        if not columns:
            raise ValueError(f"X must have at least one feature, but min_count={min_count} leaves none.")
    if dense is not None:
        rows = with_dense(rows, dense, len(columns), factor)
        columns = Columns([*columns, *dense.names])
    if not columns:
        raise ValueError("X must have at least one feature, but its items are empty.")
    return Vocabulary.packed(columns, n_dense, factor), rows


def with_dense(rows: Rows, dense: DenseColumns, first: int, factor: float) -> Rows:
    """The rows with dense columns times a factor, from the `first` on, where the matrix has nothing."""
    matrix, table = rows.matrix, dense.table if factor == 1 else dense.table * dense.table.dtype.type(factor)
    matrix.resize((matrix.shape[0], first + len(dense.names)))
    return rows._replace(matrix=matrix, dense=DenseBlock(first, table, dense.which))


def have_names(X: Any) -> tuple[bool, Any]:
    """Whether features have names, judged by the first item, and X again: iterators as lists, unless they have."""
    if is_named(X):
        return True, X
    if isinstance(X, Iterator):
        first = [*islice(X, 1)]
        X = chain(first, X)
        are_named = bool(first) and has_names(first[0])
        return are_named, X if are_named else [*X]
    is_list = (isinstance(X, Sequence) and not isinstance(X, str)) or (isinstance(X, np.ndarray) and X.ndim > 0)
    return is_list and has_names(next((sequence for sequence in X if not is_empty(sequence)), [])), X


def is_empty(sequence: Any) -> bool:
    """Whether a sequence is an empty list."""
    return isinstance(sequence, (list, tuple)) and not sequence


def has_names(sequence: Any) -> bool:
    """Whether a sequence is one of items, not a matrix of numbers; judged by its first item, if it has any."""
    if isinstance(sequence, Iterator):
        return True
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "OU":
        sequence = sequence.tolist()
    if not isinstance(sequence, Sequence):
        return False
    if isinstance(sequence, str) or not len(sequence):
        return isinstance(sequence, str)
    item = sequence[0]
    are_names = isinstance(item, LISTS) and all(isinstance(name, str) for name in islice(item, 1))
    return are_names or isinstance(item, (str, Mapping))


class Codes(dict):
    """Numbers that stand for pairs of a name and a value: the column, of a feature of 1, or below NOWHERE.

    The latter count down the other features, which have columns and values of their own. Most pairs come again and
    again: they are looked up as they are, and a name is put together but once.
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        self.other_columns, self.other_values = array("i"), array("d")

    def __missing__(self, feature: tuple[Any, Any]) -> int:
        name, value = feature
        if not (isinstance(name, str) and isinstance(value, (str, Real, np.bool_))):
            raise TypeError
        number = 1.0 if isinstance(value, str) else float(value)
        column = NOWHERE
        if number:
            column = self.columns[f"{name}:{value}" if isinstance(value, str) else name]
        if number in (0, 1):
            self[feature] = column
            return column
        self.other_columns.append(column)
        self.other_values.append(number)
        return NOWHERE - len(self.other_columns)

    def matrix(self, entries: np.ndarray, ends: np.ndarray, width: int) -> Any:
        """The sparse matrix whose row t has the codes entries[ends[t] : ends[t + 1]]."""
        # Ones take a byte each, unless a name occurs more than once in an item: sums of bytes may overflow.
        data = np.ones(len(entries), np.float64 if self.other_columns else np.int8)
        if self.other_columns:
            is_other = entries < NOWHERE
            which = NOWHERE - 1 - entries[is_other]
            entries[is_other] = np.asarray(self.other_columns)[which]
            data[is_other] = np.asarray(self.other_values)[which]
        is_known = entries != NOWHERE
        if not is_known.all():
            entries, data, ends = entries[is_known], data[is_known], np.append(0, np.cumsum(is_known))[ends]
        ends = ends.astype(np.int32 if len(entries) < 2**31 else np.int64)  # as that of columns, or SciPy copies these
        matrix = sp.csr_array((data, entries, ends), (len(ends) - 1, width))
        matrix.sort_indices()
        if not matrix.has_canonical_format:
            matrix.data = matrix.data.astype(np.float64)
            matrix.sum_duplicates()
        return matrix


def read_rows(X: Iterable[Any], columns: Any, width: int | None = None, *, may_be_empty: bool = False) -> Rows:
    """The rows of sequences of items, whose names `columns` has, or comes to have, the columns of."""
    codes = Codes(columns)
    entries, ends, starts = read_codes(X, codes)
    if len(starts) == 1 and not may_be_empty:
        raise ValueError("X must hold at least one sequence, but it is empty.")
    for i, (start, end) in enumerate(pairwise([] if may_be_empty else starts)):
        if start == end:
            raise ValueError(f"X[{i}] is empty: every sequence needs at least one item.")
    return Rows(codes.matrix(entries, ends, len(columns) if width is None else width), np.array(starts))


def read_codes(X: Iterable[Any], codes: Codes) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """One pass over sequences of items: codes of their features, where those of each item end, and each sequence."""
    columns = codes.columns
    entries, ends, starts = array("i"), array("q", [0]), [0]
    if is_named(X):
        with no_garbage_collection:
            for rows in X.look_up(columns):
                entries.extend(chain.from_iterable(rows))
                ends.extend(accumulate(map(len, rows), initial=ends.pop()))
                starts.append(len(ends) - 1)
        X = ()
    for i, sequence in enumerate(X):
        for t, item in enumerate(_items(sequence, i)):
            try:
                if type(item) is dict:
                    entries.extend(map(codes.__getitem__, item.items()))
                else:
                    entries.extend(map(columns.__getitem__, _names(item)))
            except (TypeError, ValueError, OverflowError):
                del entries[ends[-1] :]
                entries.extend(_nested_codes(codes, item, i, t))
            ends.append(len(entries))
        starts.append(len(ends) - 1)
    return np.asarray(entries), np.asarray(ends), starts


def _items(sequence: Any, i: int) -> Iterable[Any]:
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "OU":
        return sequence.tolist()
    if isinstance(sequence, str) or not isinstance(sequence, (Sequence, Iterator)):
        raise TypeError(
            f"X[{i}] must be a list of items, dictionaries or lists of names, not a {type(sequence).__name__}."
        )
    return sequence


def _names(item: Any) -> Any:
    if isinstance(item, LISTS):
        return item
    raise TypeError


def _features(item: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of names and values in a dictionary, or in a list of names."""
    return iter(item.items()) if isinstance(item, Mapping) else ((name, 1) for name in _names(item))


def _nested_codes(codes: Codes, item: Any, i: int, t: int) -> Iterator[int]:
    """The codes of the features of an item, with what is nested in it; raises at the first that is none."""
    if not isinstance(item, (Mapping, *LISTS)):
        kind = "an item must be a dictionary or a list of names"
        raise TypeError(f"X[{i}] has {quote(item)} at position {t}, but {kind}.")
    for name, value in _features(item):
        try:
            yield from [codes[feature] for feature in _flatten(name, value)]
        except (TypeError, ValueError, OverflowError, RecursionError):
            feature = quote((name, value) if isinstance(item, Mapping) else name)
            kinds = "names must be strings, and values numbers, bools or strings"
            if isinstance(value, np.ndarray):
                kinds += "; arrays go beside names, by maxmargin.text.JoinedFeatures"
            raise TypeError(f"X[{i}] has the feature {feature} at position {t}, but {kinds}.") from None


def _flatten(name: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """The features nested in one: its name begins theirs."""
    if not isinstance(value, (Mapping, *LISTS)):
        yield name, value
        return
    if not isinstance(name, str):
        raise TypeError
    for inner, nested in _features(value):
        if not isinstance(inner, str):
            raise TypeError
        yield from _flatten(f"{name}:{inner}", nested)
