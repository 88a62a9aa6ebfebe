"""Features by name: dictionaries and lists of strings to sparse rows, and the names that a model knows.

An item, the features of one position, is a list of names or a dictionary. In a dictionary a number or a bool is the
value of a name, while a string becomes part of it, and so do names in a nested list or dictionary:
``{"word": "the", "length": 3, "in": ["title"]}`` has the features ``word:the`` = 1, ``length`` = 3, ``in:title`` = 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import murmurhash3_32

from maxmargin.checks import check_count, shown
from maxmargin.encode.rows import Rows

LISTS = (list, tuple, set, frozenset)
NOWHERE = -1  # the column of names that a model does not know, and of zeros


class Vocabulary:
    """The columns of names: those of training, in the order in which they come, or those they are hashed onto.

    Parameters
    ----------
    names : the names of all columns
    n_hashed : the number of columns onto which names are hashed, in place of `names`
    """

    def __init__(self, names: Sequence[str] = (), n_hashed: int | None = None) -> None:
        self.n_hashed = n_hashed
        self.columns = {name: column for column, name in enumerate(names)}

    def __reduce__(self) -> Any:
        return Vocabulary, ([*self.columns], self.n_hashed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.n_hashed == other.n_hashed and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.columns) if self.n_hashed is None else self.n_hashed

    def rows(self, X: Iterable[Any]) -> Rows:
        """The rows of sequences, without the features that it does not know."""
        n_hashed, columns = self.n_hashed, self.columns
        if n_hashed is not None:
            return read_rows(X, lambda name: murmurhash3_32(name, positive=True) % n_hashed, self)
        return read_rows(X, lambda name: columns.get(name, NOWHERE), self)


def learn_names(X: Any, *, min_count: Any, n_hashed: Any) -> tuple[Vocabulary | None, Any]:
    """The vocabulary of training sequences and their rows; None and the sequences where features have no names.

    Names that occur in fewer than `min_count` items are left out.
    """
    check_count("min_count", min_count)
    if n_hashed is not None:
        check_count("n_hashed", n_hashed)
        if min_count > 1:
            raise ValueError("min_count must be 1 with n_hashed: names that are hashed are not counted.")
    are_named, X = have_names(X)
    vocabulary = Vocabulary((), n_hashed)
    if not are_named:
        return None, X
    if n_hashed is not None:
        return vocabulary, vocabulary.rows(X)
    columns = vocabulary.columns
    rows = read_rows(X, lambda name: columns.setdefault(name, len(columns)), vocabulary)
    if min_count > 1:
        kept = np.flatnonzero(np.bincount(rows.matrix.indices, minlength=len(columns)) >= min_count)
        names = [*columns]
        vocabulary, rows = Vocabulary([names[k] for k in kept]), rows._replace(matrix=rows.matrix[:, kept])
    if not len(vocabulary):
        least = f"but min_count={min_count} leaves none." if columns else "but its items are empty."
        raise ValueError(f"X must have at least one feature, {least}")
    return vocabulary, rows


def have_names(X: Any) -> tuple[bool, Any]:
    """Whether features have names, judged by the first item, and X again: iterators as lists, unless they have."""
    if isinstance(X, Iterator):
        first = [*islice(X, 1)]
        X = chain(first, X)
        are_named = bool(first) and has_names(first[0])
        return are_named, X if are_named else [*X]
    is_list = (isinstance(X, Sequence) and not isinstance(X, str)) or (isinstance(X, np.ndarray) and X.ndim > 0)
    return is_list and len(X) > 0 and has_names(X[0]), X


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
    are_names = isinstance(item, LISTS) and all(isinstance(feature, (str, tuple)) for feature in islice(item, 1))
    return are_names or isinstance(item, (str, Mapping))


class _Codes(dict):
    """Numbers of features, which are names or pairs of a name and a value; `columns` and `numbers` say what they mean.

    Most features come again and again: they are looked up as they are, and a name is put together but once.
    """

    def __init__(self, column_of: Callable[[str], int]) -> None:
        self.column_of = column_of
        self.columns, self.numbers = array("i"), array("d")

    def __missing__(self, feature: Any) -> int:
        name, value = (feature, 1) if isinstance(feature, str) else feature
        if not (isinstance(name, str) and isinstance(value, (str, Real, np.bool_))):
            raise TypeError
        if isinstance(value, str):
            name, value = f"{name}:{value}", 1
        number, code = float(value), len(self.columns)
        self.columns.append(self.column_of(name) if number else NOWHERE)
        self.numbers.append(number)
        if number in (0.0, 1.0):  # others hardly ever come again
            self[feature] = code
        return code


def read_rows(X: Iterable[Any], column_of: Callable[[str], int], vocabulary: Vocabulary) -> Rows:
    """One pass over sequences of items, in which `column_of` finds, or adds, the columns of `vocabulary`."""
    codes = _Codes(column_of)
    entries, ends, offsets = array("i"), array("q", [0]), [0]
    for i, sequence in enumerate(X):
        for t, item in enumerate(_items(sequence, i)):
            try:
                entries.extend(map(codes.__getitem__, item.items() if type(item) is dict else _listed(item)))
            except (TypeError, ValueError, OverflowError):
                del entries[ends[-1] :]
                entries.extend(_nested_codes(codes, item, i, t))
            ends.append(len(entries))
        offsets.append(len(ends) - 1)
        if offsets[-1] == offsets[-2]:
            raise ValueError(f"X[{i}] is empty: every sequence needs at least one item.")
    if len(offsets) == 1:
        raise ValueError("X must hold at least one sequence, but it is empty.")
    chosen, indptr, columns, values = map(np.asarray, (entries, ends, codes.columns, codes.numbers))
    is_known = columns >= 0
    if not is_known.all():
        kept = is_known[chosen]
        chosen, indptr = chosen[kept], np.concatenate([[0], np.cumsum(kept)])[indptr]
    ones = (values[is_known] == 1).all()
    data = np.ones(len(chosen), np.float32) if ones else values[chosen]
    matrix = sp.csr_array((data, columns[chosen], indptr), (len(ends) - 1, len(vocabulary)))
    return Rows(matrix, np.array(offsets))


def _items(sequence: Any, i: int) -> Iterable[Any]:
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "OU":
        return sequence.tolist()
    if isinstance(sequence, str) or not isinstance(sequence, (Sequence, Iterator)):
        raise TypeError(
            f"X[{i}] must be a list of items, dictionaries or lists of names, not a {type(sequence).__name__}."
        )
    return sequence


def _listed(item: Any) -> Iterable[Any]:
    if isinstance(item, LISTS):
        return item
    if isinstance(item, Mapping):
        return item.items()
    raise TypeError


def _nested_codes(codes: _Codes, item: Any, i: int, t: int) -> Iterator[int]:
    """The numbers of the features of an item, with what is nested in it; raises at the first that is none."""
    try:
        features = [*_listed(item)]
    except TypeError:
        kind = "an item must be a dictionary or a list of names"
        raise TypeError(f"X[{i}] has {shown(item)} at position {t}, but {kind}.") from None
    for feature in features:
        try:
            yield from [codes[name] for name in _flatten(feature)]
        except (TypeError, ValueError, OverflowError, RecursionError):
            kinds = "names must be strings, and values numbers, bools or strings"
            raise TypeError(f"X[{i}] has the feature {shown(feature)} at position {t}, but {kinds}.") from None


def _flatten(feature: Any) -> Iterator[Any]:
    """The features nested in one: its name begins theirs."""
    name, value = (feature, 1) if isinstance(feature, str) else feature
    if not isinstance(value, (Mapping, *LISTS)):
        yield feature
        return
    if not isinstance(name, str):
        raise TypeError
    for inner in _listed(value):
        for nested in _flatten(inner):
            yield f"{name}:{nested}" if isinstance(nested, str) else (f"{name}:{nested[0]}", nested[1])
