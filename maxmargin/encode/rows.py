"""Sequences of feature rows and of labels.

Every check of the user's data is here: what passes is safe for the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

# Dense rows with fewer non-zeros than this are stored sparse: scoring and updates then cost less.
SPARSE_BELOW = 0.35


class Rows(NamedTuple):
    """The rows of all sequences; those of sequence i are offsets[i]:offsets[i + 1]."""

    matrix: Any  # (N, F) array or CSR
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of each sequence."""
        return np.diff(self.offsets)


def check_examples(X: Any, kind: str, noun: str) -> None:
    """Raise unless X is a list, of `kind` in messages, with at least one entry, `noun` in messages."""
    if not isinstance(X, (Sequence, np.ndarray)) or isinstance(X, str):
        raise TypeError(f"X must be a list of {kind}, not a {type(X).__name__}.")
    if len(X) == 0:
        raise ValueError(f"X must hold at least one {noun}, but it is empty.")


def check_truths(y: Any, n: int, kind: str, noun: str, name: str = "y") -> None:
    """Raise unless y, `name` in messages, is a list of n entries, `kind` in messages, for what they call `noun`."""
    if isinstance(y, str) or not hasattr(y, "__len__") or not hasattr(y, "__iter__"):
        raise TypeError(f"{name} must be a list with {kind}.")
    if len(y) != n:
        raise ValueError(f"X has {n} {noun}s, but {name} has {len(y)}.")


def check_array(x: Any, name: str, kind: str, *shapes: tuple[int | None, ...], dtypes: str = "biuf") -> np.ndarray:
    """Raise unless x is an array, `kind` in messages, of one of these shapes, with None for any length, and dtypes."""
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


def stack_rows(
    X: Any,
    lengths: Any = None,
    n_features: int | None = None,
    dtype: Any = np.float64,
    *,
    noun: str = "sequence",
    may_be_empty: bool = False,
) -> Rows:
    """Check a list of matrices, or one with `lengths`, and stack their rows, of `n_features` numbers within `dtype`.

    Messages call an entry of X `noun`; it may have no rows if said so.
    """
    rows = _stack_list(X, noun, may_be_empty) if lengths is None else _cut_matrix(X, lengths)
    width = rows.matrix.shape[1]
    if n_features is not None and width != n_features:
        raise ValueError(f"X has {width} features, but the model was fitted with {n_features}.")
    if width == 0:
        raise ValueError("X must have at least one feature, but its rows are empty.")
    check_finite(rows, dtype)
    return rows


def _stack_list(X: Any, noun: str, may_be_empty: bool) -> Rows:
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        raise ValueError("X is one matrix: pass lengths, the numbers of rows of its sequences, or a list of matrices.")
    check_examples(X, "matrices, or one matrix with lengths", noun)
    matrices = [_as_matrix(x, f"X[{i}]") for i, x in enumerate(X)]
    for i, matrix in enumerate(matrices):
        if matrix.shape[0] == 0 and not may_be_empty:
            raise ValueError(f"X[{i}] is empty: every {noun} needs at least one row.")
        if matrix.shape[1] != matrices[0].shape[1]:
            raise ValueError(f"X[{i}] has {matrix.shape[1]} features, but X[0] has {matrices[0].shape[1]}.")
    offsets = np.concatenate([[0], np.cumsum([matrix.shape[0] for matrix in matrices])])
    if any(sp.issparse(matrix) for matrix in matrices):
        return Rows(sp.csr_array(sp.vstack(matrices, format="csr")), offsets)
    return Rows(np.concatenate(matrices), offsets)


def _cut_matrix(X: Any, lengths: Any) -> Rows:
    if isinstance(X, Sequence) and any(getattr(x, "ndim", 0) == 2 for x in X):
        raise ValueError("X is a list of matrices: leave out lengths, which cut one matrix.")
    matrix = _as_matrix(X, "X")
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or (counts < 1).any():
        raise ValueError("lengths must be a list of positive integers, one per sequence.")
    if counts.sum() != matrix.shape[0]:
        raise ValueError(f"lengths add up to {counts.sum()}, but X has {matrix.shape[0]} rows.")
    return Rows(matrix, np.concatenate([[0], np.cumsum(counts)]))


def _as_matrix(x: Any, name: str) -> Any:
    if not sp.issparse(x):
        try:
            x = np.asarray(x)
        except ValueError:
            raise ValueError(f"{name} has rows of different widths; it must be a (T, F) matrix.") from None
        if x.size and (x.dtype.kind in "US" or isinstance(x.flat[0], (dict, str))):
            raise TypeError(
                f"{name} must be a (T, F) matrix of numbers: scikit-learn's DictVectorizer makes one of dictionaries "
                "of features, its FeatureHasher of lists of strings."
            )
    if x.ndim != 2:
        dimensions = f"has {x.ndim} dimension{'s' if x.ndim != 1 else ''}" if x.size else "is empty"
        raise ValueError(f"{name} must be a (T, F) matrix, but {dimensions}.")
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, but its dtype is {x.dtype}.")
    if x.dtype == np.float16:  # which SciPy cannot store
        x = x.astype(np.float32)
    return x.tocsr() if sp.issparse(x) else x


def stack_grids(grids: Sequence[np.ndarray], n_features: int | None, dtype: Any) -> Rows:
    """The cells of (H, W, F) arrays, row by row."""
    return stack_rows([grid.reshape(-1, grid.shape[2]) for grid in grids], None, n_features, dtype, noun="image")


def is_better_sparse(rows: Rows) -> bool:
    """Whether rows are sparse, or dense with so few non-zeros that they are better stored sparse."""
    matrix = rows.matrix
    return sp.issparse(matrix) or np.count_nonzero(matrix) < SPARSE_BELOW * matrix.size


def as_stored(rows: Rows, sparse: bool) -> Rows:
    """The rows as a CSR or as a dense matrix."""
    if sparse == sp.issparse(rows.matrix):
        return rows
    if not sparse:
        return Rows(rows.matrix.toarray(), rows.offsets)
    # SciPy's conversion takes several times the memory of its result: convert a million entries at a time.
    n_pieces = 1 + rows.matrix.size // 1_000_000
    pieces = [sp.csr_array(piece) for piece in np.array_split(rows.matrix, n_pieces)]
    return Rows(sp.vstack(pieces, format="csr"), rows.offsets)


def check_finite(rows: Rows, dtype: Any) -> None:
    """Raise where a row holds NaN, infinity or a number that `dtype` cannot hold."""
    values = rows.matrix.data if sp.issparse(rows.matrix) else rows.matrix
    limit = float(np.finfo(dtype).max)
    if not values.size or (-limit <= float(values.min()) and float(values.max()) <= limit):  # False for NaN
        return
    is_bad = ~(np.abs(values.astype(np.float64)) <= limit)
    if sp.issparse(rows.matrix):
        entry = np.flatnonzero(is_bad)[0]
        row = np.searchsorted(rows.matrix.indptr, entry, side="right") - 1
    else:
        row = np.flatnonzero(is_bad.any(axis=1))[0]
    value = float(values[is_bad][0])
    what = f"{value:.3g}, too large for {np.dtype(dtype).name}" if np.isfinite(value) else "NaN or infinity"
    example, place = locate(row, rows.offsets)
    raise ValueError(f"X[{example}] contains {what}, in row {place}.")


def locate(row: Any, offsets: np.ndarray) -> tuple[int, int]:
    """The example that a row belongs to, and its place there."""
    example = int(np.searchsorted(offsets, row, side="right") - 1)
    return example, int(row - offsets[example])


def flatten_labels(y: Any, rows: Rows, noun: str = "sequence", *, is_stacked: bool = False) -> np.ndarray:
    """Check sequences of labels against those of rows, `noun` in messages, and concatenate them."""
    n = len(rows.lengths)
    is_flat = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object
    is_long = is_stacked and hasattr(y, "__len__") and len(y) == rows.offsets[-1]
    if is_long and (is_flat or all(np.ndim(label) == 0 for label in y)):
        return _as_labels(list(y), "y")
    check_truths(y, n, f"one sequence of labels per {noun} of X", noun)
    sequences = [_as_labels(labels, f"y[{i}]") for i, labels in enumerate(y)]
    for i, (labels, length) in enumerate(zip(sequences, rows.lengths, strict=True)):
        if len(labels) != length:
            raise ValueError(f"y[{i}] has {len(labels)} labels, but X[{i}] has {length} rows.")
        if (labels.dtype.kind == "U") != (sequences[0].dtype.kind == "U"):
            raise TypeError(f"y[{i}] holds labels of another type than y[0].")
    return np.concatenate(sequences)


def _as_labels(labels: Any, name: str) -> np.ndarray:
    array = np.asarray(labels)
    if array.dtype.kind in "OU" and all(isinstance(label, str) for label in np.asarray(labels, dtype=object).flat):
        array = array.astype(str)
    elif array.dtype.kind == "U":  # NumPy has turned numbers into strings
        array = array.astype(object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biuU"):
        raise TypeError(f"{name} must be a list of integers or of strings.")
    return array


def find_labels(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The indices of labels in the sorted `classes`, -1 for those that are not there."""
    are_numbers = labels.dtype.kind in "biuf"
    if are_numbers != (classes.dtype.kind in "biuf"):
        return np.full(len(labels), -1, np.int32)
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[codes] == labels, codes, -1).astype(np.int32)


def flatten_weights(weights: Any, shapes: Any, name: str, noun: str) -> np.ndarray:
    """Check non-negative weights, an array of the given shape per example, and concatenate them; by default 1."""
    shapes = np.reshape(shapes, (len(shapes), -1))
    if weights is None:
        return np.ones(shapes.prod(axis=1).sum())
    check_truths(weights, len(shapes), f"one array of weights per {noun}", noun, name)
    arrays = [np.asarray(weight, dtype=np.float64) for weight in weights]
    for i, (weight, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if weight.shape != (expected := tuple(shape.tolist())):
            raise ValueError(f"{name}[{i}] must have the shape {expected}, to go with X[{i}], but has {weight.shape}.")
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError(f"{name}[{i}] must be finite and non-negative.")
    return np.concatenate([weight.ravel() for weight in arrays])


def check_sample_weight(sample_weight: Any, n: int) -> np.ndarray | None:
    """Check the weights of the n examples."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold {n} numbers, one per example, but has shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight must be finite and non-negative, and not all zero.")
    return weights
