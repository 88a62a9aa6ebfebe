"""Rows read from features by name: dictionaries and lists of strings to sparse rows.

An item, the features of one position, is a list of names or a dictionary. In a dictionary a number or a bool is the
value of a name, while a string becomes part of it, and so do names in a nested list or dictionary:
``{"word": "the", "length": 3, "in": ["title"]}`` has the features ``word:the`` = 1, ``length`` = 3, ``in:title`` = 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.names.name_columns import NOWHERE
from maxmargin.garbage import no_garbage_collection
from maxmargin.text.token_features.named_features import is_named
from maxmargin.wording import name_type, quote

LISTS = (list, tuple, set, frozenset)


class Codes(dict):
    """Numbers that stand for pairs of a name and a value: the column, of a feature of 1, or below NOWHERE.

    The latter count down the other features, which have columns and values of their own. Most pairs come again and
    again: they are looked up as they are, and a name is put together but once.
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        self.other_columns, self.other_values = array("i"), array("d")

    def __missing__(self, feature: tuple[object, object]) -> int:
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

    def matrix(self, entries: np.ndarray, ends: np.ndarray, width: int) -> sp.csr_array:
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
        return make_matrix(data, entries, ends, width)


def make_matrix(data: np.ndarray, columns: np.ndarray, ends: np.ndarray, width: int) -> sp.csr_array:
    """The sparse matrix of these rows, sorted; what occurs more than once in a row is added up."""
    matrix = sp.csr_array((data, columns, ends), (len(ends) - 1, width))
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        matrix.data = matrix.data.astype(np.float64)
        matrix.sum_duplicates()
    return matrix


def read_codes(X: Iterable[object], codes: Codes) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """One pass over sequences of items: codes of their features, where those of each item end, and each sequence."""
    columns = codes.columns
    if hasattr(X, "column_tables") and not columns.grows:
        with no_garbage_collection:
            return read_tables(X.column_tables(columns))
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


def read_tables(tables: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """As `read_codes`, of tables with the columns of items, and the numbers of items of sequences."""
    entries, n_entries, lengths = [], [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for table, sizes in tables:
        table.sort(axis=1)
        is_known = table != NOWHERE
        entries.append(table[is_known])
        n_entries.append(is_known.sum(axis=1))
        lengths.append(sizes)
    found = np.concatenate(entries) if entries else np.zeros(0, np.int32)
    return found, np.cumsum(np.concatenate(n_entries)), np.cumsum(np.concatenate(lengths)).tolist()


def _items(sequence: object, i: int) -> Iterable[object]:
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "OU":
        return sequence.tolist()
    if isinstance(sequence, str) or not isinstance(sequence, (Sequence, Iterator)):
        raise TypeError(f"X[{i}] must be a list of items, dictionaries or lists of names, not {name_type(sequence)}.")
    return sequence


def _names(item: object) -> Iterable[str]:
    if isinstance(item, LISTS):
        return item
    raise TypeError


def _features(item: object) -> Iterator[tuple[object, object]]:
    """The pairs of names and values in a dictionary, or in a list of names."""
    return iter(item.items()) if isinstance(item, Mapping) else ((name, 1) for name in _names(item))


def _nested_codes(codes: Codes, item: object, i: int, t: int) -> Iterator[int]:
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


def _flatten(name: object, value: object) -> Iterator[tuple[object, object]]:
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


def have_names(X: Any) -> tuple[bool, object]:
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


def is_empty(sequence: object) -> bool:
    """Whether a sequence is an empty list."""
    return isinstance(sequence, (list, tuple)) and not sequence


def has_names(sequence: object) -> bool:
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
