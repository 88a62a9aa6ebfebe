"""Checks of examples, true outputs and weights: what passes is safe for the loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import LARGEST, as_numbers, check_unmasked
from maxmargin.supervision.label_supervision import NO_LABEL
from maxmargin.wording import count_of, name_type, quote


def check_examples(X: object, kind: str, noun: str) -> Sequence[Any] | np.ndarray:
    """X, which must be a list, of `kind` in messages, with at least one entry, `noun` in messages."""
    if not isinstance(X, (Sequence, np.ndarray)) or isinstance(X, str) or (isinstance(X, np.ndarray) and not X.ndim):
        raise TypeError(f"X must be a list of {kind}, not {name_type(X)}.")
    if len(X) == 0:
        raise ValueError(f"X must hold at least one {noun}, but it is empty.")
    return X


def check_truths(y: Any, n: int, kind: str, noun: str, name: str = "y") -> Sequence[Any]:
    """What y holds, `name` in messages, which must be a list of n entries, `kind` in messages, one for each `noun`."""
    if isinstance(y, str) or not hasattr(y, "__len__") or not hasattr(y, "__iter__"):
        raise TypeError(f"{name} must be a list with {kind}.")
    if len(y) != n:
        raise ValueError(f"X has {n} {noun}s, but {name} has {len(y)}.")
    return y


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, and no flag."""
    return isinstance(value, (int, Integral)) and not isinstance(value, bool)  # int is quicker to tell


def members_of(known: object) -> Collection[Any]:
    """The members of a set, or the one that stands for itself."""
    return known if isinstance(known, (set, frozenset)) else (known,)


def check_sparse(x: Any, name: str) -> None:
    """Raise where an index of a sparse matrix leads out of it: SciPy trusts them, and so do loops."""
    if x.format == "coo":
        indices = getattr(x, "coords", None) or (x.row, x.col)  # the latter before SciPy 1.13
        is_whole = all(not c.size or (c.min() >= 0 and c.max() < n) for c, n in zip(indices, x.shape, strict=True))
    elif x.format in ("csr", "csc"):
        n_rows, n_columns = x.shape if x.format == "csr" else x.shape[::-1]
        is_whole = (
            x.indptr.dtype.kind == x.indices.dtype.kind == "i"
            and len(x.indptr) == n_rows + 1
            and x.indptr[0] == 0
            and bool((x.indptr[1:] >= x.indptr[:-1]).all())
            and x.indptr[-1] <= min(len(x.indices), len(x.data))
            and (not len(x.indices) or (x.indices.min() >= 0 and x.indices.max() < n_columns))
        )
    else:
        is_whole = True
    if not is_whole:
        raise ValueError(f"{name} is a broken sparse matrix: its indices do not fit its shape, {x.shape}.")


def check_array(x: object, name: str, kind: str, *shapes: tuple[int | None, ...], dtypes: str = "biuf") -> np.ndarray:
    """Raise unless x is an array, `kind` in messages, of one of these shapes, with None for any length, and dtypes."""
    check_unmasked(name, x)
    try:
        array = np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} must be {kind}, but its rows have different lengths.") from None
    fits = any(
        len(shape) == array.ndim and all(size in (None, found) for size, found in zip(shape, array.shape, strict=True))
        for shape in shapes
    )
    if not fits or (array.size and array.dtype.kind not in dtypes):
        raise ValueError(f"{name} must be {kind}, not one of shape {array.shape} and dtype {array.dtype}.")
    return array


def locate(row: int | np.integer, starts: np.ndarray) -> tuple[int, int]:
    """The example that a row belongs to, and its place there."""
    example = int(np.searchsorted(starts, row, side="right") - 1)
    return example, int(row - starts[example])


def flatten_labels(y: Any, lengths: np.ndarray, noun: str, name: str = "y", *, is_stacked: bool = False) -> np.ndarray:
    """Check sequences of labels against the numbers of rows of X, `noun` in messages, and concatenate them."""
    check_unmasked(name, y)
    y = [*y] if isinstance(y, Iterator) else y
    is_flat = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object
    is_long = is_stacked and hasattr(y, "__len__") and len(y) == lengths.sum()
    if is_long and (is_flat or all(np.ndim(label) == 0 for label in y)):
        return as_labels(list(y), name)
    check_truths(y, len(lengths), f"one sequence of labels per {noun} of X", noun, name)
    sequences = [as_labels(labels, f"{name}[{i}]") for i, labels in enumerate(y)]
    filled = [labels for labels in sequences if labels.size]
    for i, (labels, length) in enumerate(zip(sequences, lengths, strict=True)):
        if len(labels) != length:
            raise ValueError(
                f"{name}[{i}] has {count_of(len(labels), 'label')}, but X[{i}] has {count_of(length, 'row')}."
            )
        if labels.size and (labels.dtype.kind == "U") != (filled[0].dtype.kind == "U"):
            raise TypeError(f"{name}[{i}] holds labels of another type than {name}[0].")
    return np.concatenate(filled or sequences)


def as_labels(labels: Iterable[object], name: str) -> np.ndarray:
    """Check a list of integers or strings, as an array."""
    check_unmasked(name, labels)
    array = np.asarray(labels)
    if array.dtype.kind == "U" and isinstance(labels, list) and {*map(type, labels)} == {str}:
        if "\0" in "".join(labels):
            check_last_characters(labels, name)
    elif array.dtype.kind in "OU" and all(isinstance(label, str) for label in np.asarray(labels, dtype=object).flat):
        check_last_characters(labels, name)
        array = array.astype(str)
    elif array.dtype.kind == "U":  # NumPy has turned numbers into strings
        array = array.astype(object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biuU"):
        raise TypeError(f"{name} must be a list of integers or of strings.")
    return array


def check_last_characters(labels: Iterable[object], name: str) -> None:
    """Raise where a label ends with the character 0, which NumPy would cut off."""
    for label in labels:
        if isinstance(label, str) and label.endswith("\0"):
            raise ValueError(f"{name} has the label {quote(label)}, which ends with a character that cannot be kept.")


def learn_classes(
    labels: np.ndarray, starts: np.ndarray, former: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes of flat labels, of rows that belong to examples as `starts` say, and the indices of labels.

    With those of a `former` model, if there is one. One that looks like an unknown label is an error.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    if seem_unknown(classes):
        refuse_unknown(labels, starts)
    joined = join_classes(former, classes)
    return joined, np.searchsorted(joined, classes)[codes]


def join_classes(former: np.ndarray | None, classes: np.ndarray, name: str = "y") -> np.ndarray:
    """The labels of a former model, if there is one, and of another, sorted."""
    if former is None or not len(former):
        return classes
    if len(classes) and (former.dtype.kind == "U") != (classes.dtype.kind == "U"):
        raise TypeError(f"{name} holds labels of another type than before, such as {quote(classes[0].item())}.")
    return np.union1d(former, classes)


def seem_unknown(classes: np.ndarray) -> bool:
    """Whether one of the sorted classes looks like an unknown label: -1, the only negative one beside two others."""
    return len(classes) > 2 and classes.dtype.kind == "i" and classes[0] == NO_LABEL and bool(classes[1] >= 0)


def refuse_unknown(labels: np.ndarray, starts: np.ndarray) -> None:
    """Raise for the first unknown label."""
    i, place = locate(int(np.argmax(labels == NO_LABEL)), starts)
    raise ValueError(
        f"y[{i}] has the label {NO_LABEL} at row {place}, which is taken to be unknown: write None for a label "
        f"that is not known in fit or, if {NO_LABEL} is a class of its own, call it something else."
    )


def find_labels(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The indices of labels in the sorted `classes`, -1 for those that are not there."""
    are_numbers = labels.dtype.kind in "biuf"
    if are_numbers != (classes.dtype.kind in "biuf") or not len(classes):
        return np.full(len(labels), -1, np.int32)
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[codes] == labels, codes, -1).astype(np.int32)


def flatten_weights(weights: object, shapes: ArrayLike, name: str, noun: str) -> np.ndarray:
    """Check non-negative weights, an array of the given shape per example, and concatenate them; by default 1."""
    shapes = np.asarray(shapes)
    shapes = shapes.reshape(len(shapes), -1)
    if weights is None:
        return np.ones(shapes.prod(axis=1).sum())
    given = check_truths(weights, len(shapes), f"one array of weights per {noun}", noun, name)
    arrays = [as_numbers(f"{name}[{i}]", weight) for i, weight in enumerate(given)]
    for i, (weight, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if weight.shape != (expected := tuple(shape.tolist())):
            raise ValueError(f"{name}[{i}] must have the shape {expected}, to go with X[{i}], but has {weight.shape}.")
        if not ((weight >= 0).all() and (weight <= LARGEST).all()):
            raise ValueError(f"{name}[{i}] must hold numbers from 0 to {LARGEST:g}.")
    return np.concatenate([weight.ravel() for weight in arrays])
