"""Rows of features: checked, stacked, and stored as loops read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import starts_of
from maxmargin.checks import LARGEST, check_unmasked
from maxmargin.encode.inputs.example_checks import check_examples, check_sparse, locate
from maxmargin.features import BinaryFeatures, DenseFeatures, SparseFeatures, with_gram
from maxmargin.features.linear_map import Gram
from maxmargin.features.mixed import dense_rows
from maxmargin.features.observed import observed_features
from maxmargin.features.pairs import Pairs
from maxmargin.features.split import split_features
from maxmargin.wording import count_of

WRITABLE: Any = ("C", "W")  # read-only and strided arrays would compile all loops anew


class DenseBlock(NamedTuple):
    """Columns of sparse rows that are stored dense: row t has table[which[t, 0]], table[which[t, 1]] and so on.

    What is below 0 has zeros. The matrix of the rows has nothing in these columns.
    """

    first: int  # column
    table: np.ndarray  # (V, D)
    which: np.ndarray  # (N, K)

    @property
    def columns(self) -> slice:
        """The columns."""
        return slice(self.first, self.first + self.which.shape[1] * self.table.shape[1])


class Rows(NamedTuple):
    """The rows of all sequences; those of sequence i are starts[i]:starts[i + 1]."""

    matrix: Any  # (N, F) array or CSR
    starts: np.ndarray
    dense: DenseBlock | None = None

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of each sequence."""
        return np.diff(self.starts)

    @property
    def dense_columns(self) -> slice:
        """The columns that are stored dense."""
        return slice(0) if self.dense is None else self.dense.columns

    def split(self) -> list[np.ndarray | sp.csr_array]:
        """The matrix of each sequence."""
        return [self.matrix[lo:hi] for lo, hi in pairwise(self.starts.tolist())]


def stack_rows(
    X: object,
    lengths: object = None,
    n_features: int | None = None,
    *,
    noun: str = "sequence",
    may_be_empty: bool = False,
) -> Rows:
    """Check a list of matrices, or one with `lengths`, or `Rows`, and stack their rows, of `n_features` numbers.

    Messages call an entry of X `noun`; it may have no rows, and be an empty list, if said so.
    """
    if isinstance(X, Rows):
        rows = X
        if lengths is not None:
            raise ValueError("X holds features by name: leave out lengths, which cut one matrix.")
    else:
        rows = _stack_list(X, noun, may_be_empty, n_features) if lengths is None else _cut_matrix(X, lengths)
    width = rows.matrix.shape[1]
    if n_features is not None and width != n_features:
        raise ValueError(f"X has {count_of(width, 'feature')}, but the model was fitted with {n_features}.")
    if width == 0:
        raise ValueError("X must have at least one feature, but its rows are empty.")
    check_finite(rows)
    return rows


def _stack_list(X: object, noun: str, may_be_empty: bool, n_features: int | None) -> Rows:
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        raise ValueError(f"X is one matrix: pass a list of matrices, one per {noun}, or the lengths of sequences.")
    X = check_examples(X, "matrices, or one matrix with lengths", noun)
    if may_be_empty and n_features is not None:
        X = [np.zeros((0, n_features)) if isinstance(x, Sequence) and not len(x) else x for x in X]
    matrices = [_as_matrix(x, f"X[{i}]") for i, x in enumerate(X)]
    for i, matrix in enumerate(matrices):
        if matrix.shape[0] == 0 and not may_be_empty:
            raise ValueError(f"X[{i}] is empty: every {noun} needs at least one row.")
        if matrix.shape[1] != matrices[0].shape[1]:
            raise ValueError(f"X[{i}] has {count_of(matrix.shape[1], 'feature')}, but X[0] has {matrices[0].shape[1]}.")
    starts = starts_of([matrix.shape[0] for matrix in matrices])
    if any(not isinstance(matrix, np.ndarray) for matrix in matrices):
        return Rows(sp.csr_array(sp.vstack(matrices, format="csr")), starts)
    return Rows(np.concatenate(matrices), starts)


def _cut_matrix(X: object, lengths: object) -> Rows:
    if isinstance(X, Sequence) and any(getattr(x, "ndim", 0) == 2 for x in X):
        raise ValueError("X is a list of matrices: leave out lengths, which cut one matrix.")
    matrix = _as_matrix(X, "X")
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or (counts < 1).any():
        raise ValueError("lengths must be a list of positive integers, one per sequence.")
    if counts.sum() != matrix.shape[0]:
        raise ValueError(f"lengths add up to {counts.sum()}, but X has {matrix.shape[0]} rows.")
    return Rows(matrix, starts_of(counts))


def _as_matrix(x: Any, name: str) -> np.ndarray | sp.csr_array:
    if type(x) is np.ndarray and x.ndim == 2 and x.dtype.kind in "biuf" and x.dtype != np.float16:
        return x  # as most are: there may be very many
    if not sp.issparse(x):
        check_unmasked(name, x)
        try:
            x = np.asarray(x)
        except ValueError:
            raise ValueError(f"{name} has rows of different widths; it must be a (T, F) matrix.") from None
        if x.size and (x.dtype.kind in "US" or isinstance(x.flat[0], (dict, str))):
            raise TypeError(
                f"{name} must be a (T, F) matrix of numbers, but holds dictionaries or strings, which models of chains "
                "and trees take in all examples or in none, without lengths."
            )
        if x.dtype == object and all(isinstance(value, (Real, np.bool_)) for value in x.flat):
            x = x.astype(np.float64)  # as those of data frames with columns of several types
    else:
        check_sparse(x, name)
    if x.ndim != 2:
        dimensions = f"has {count_of(x.ndim, 'dimension')}" if x.size else "is empty"
        raise ValueError(f"{name} must be a (T, F) matrix, but {dimensions}.")
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, but its dtype is {x.dtype}.")
    if x.dtype == np.float16:  # which SciPy cannot store
        x = x.astype(np.float32)
    return x.tocsr() if sp.issparse(x) else x


def stack_grids(grids: Sequence[np.ndarray], n_features: int | None) -> Rows:
    """The cells of (H, W, F) arrays, row by row."""
    return stack_rows(
        [grid.reshape(grid.shape[0] * grid.shape[1], grid.shape[2]) for grid in grids], None, n_features, noun="image"
    )


def as_stored(rows: Rows, sparse: bool) -> Rows:
    """The rows as a CSR or as a dense matrix."""
    if sparse == sp.issparse(rows.matrix):
        return rows
    if not sparse:
        return in_one_matrix(rows._replace(matrix=rows.matrix.toarray()))
    # a million entries at a time, which takes less memory than all at once
    n_pieces = 1 + rows.matrix.size // 1_000_000
    pieces = [_as_csr(piece) for piece in np.array_split(rows.matrix, n_pieces)]
    return Rows(sp.vstack(pieces, format="csr"), rows.starts)


def _as_csr(matrix: np.ndarray) -> sp.csr_array:
    """A dense matrix as a sparse one, without the detour by coordinates that SciPy makes."""
    is_entry = matrix != 0
    places = np.flatnonzero(is_entry)
    indptr = starts_of(np.count_nonzero(is_entry, axis=1))
    columns = (places % matrix.shape[1]).astype(np.int32)
    return sp.csr_array((matrix.ravel()[places], columns, indptr.astype(np.int32)), shape=matrix.shape)


def in_one_matrix(rows: Rows) -> Rows:
    """The rows with their dense columns in the matrix."""
    if rows.dense is None:
        return rows
    matrix, dense = rows.matrix, dense_rows(rows.dense.table, rows.dense.which)
    if sp.issparse(matrix):
        block = sp.csr_array(dense)
        block = sp.csr_array((block.data, block.indices + rows.dense.first, block.indptr), matrix.shape)
        return Rows(sp.csr_array(matrix + block), rows.starts)
    matrix = matrix.astype(np.result_type(matrix, dense))
    matrix[:, rows.dense.columns] = dense
    return Rows(matrix, rows.starts)


def row_features(rows: Rows, dtype: DTypeLike, *, with_grams: bool = False) -> Any:
    """Store rows as features; with Gram matrices, by which most solvers find norms of directions."""
    # Gram matrices are only looked up while training; elsewhere every example may claim an empty one.
    matrix, gram = rows.matrix, Gram(np.empty(0), np.zeros(len(rows.lengths), np.int64))
    if sp.issparse(matrix):
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        indptr = np.require(matrix.indptr, np.int64, WRITABLE)
        indices = np.require(matrix.indices, np.int32, WRITABLE)
        if (matrix.data == 1).all():
            counts = gram._replace(values=gram.values.astype(np.float32))  # which are exact
            features: Any = BinaryFeatures(indptr, indices, counts)
        else:
            features = SparseFeatures(indptr, indices, np.require(matrix.data, dtype, WRITABLE), gram)
    else:
        features = DenseFeatures(np.require(matrix, dtype, WRITABLE), gram)
    return with_gram(features, rows.starts, matrix.shape[1]) if with_grams else features


def pair_features(
    rows: Rows, pairs: Pairs, n_labels: int, dtype: DTypeLike, *, may_split: bool = False, is_once: bool = False
) -> Any:
    """Store rows as features that have weights for these pairs.

    They may be split in two parts, whose weights lie in another order, or be for one pass only.
    """
    sparse = row_features(rows._replace(matrix=sp.csr_array(rows.matrix)), dtype)
    split = split_features(sparse, pairs, n_labels, len(rows.lengths), dtype) if may_split else None
    return split or observed_features(sparse, pairs, is_once=is_once)


def append_columns(rows: Rows, columns: np.ndarray) -> Rows:
    """The rows, dense or sparse as they are, with more columns."""
    matrix, columns = rows.matrix, columns.astype(rows.matrix.dtype)
    if not sp.issparse(matrix):
        return rows._replace(matrix=np.hstack([matrix, columns]))
    row, column = np.nonzero(columns)  # SciPy's hstack takes several times the memory of its result
    at, width = matrix.indptr[row + 1], matrix.shape[1]
    data = np.insert(matrix.data, at, columns[row, column])
    indices = np.insert(matrix.indices, at, (column + width).astype(matrix.indices.dtype))
    indptr = matrix.indptr + np.append(0, np.cumsum((columns != 0).sum(axis=1))).astype(matrix.indptr.dtype)
    return rows._replace(matrix=sp.csr_array((data, indices, indptr), (len(columns), width + columns.shape[1])))


def append_constant(rows: Rows) -> Rows:
    """The rows with one more column, of ones."""
    return append_columns(rows, np.ones((rows.matrix.shape[0], 1)))


def check_finite(rows: Rows) -> None:
    """Raise where a row holds NaN, infinity or a number too large to compute with."""
    if rows.dense is not None and not (np.abs(rows.dense.table) <= LARGEST).all():
        is_bad = np.append(~(np.abs(rows.dense.table) <= LARGEST).all(axis=1), False)
        example, place = locate(np.flatnonzero(is_bad[rows.dense.which].any(axis=1))[0], rows.starts)
        raise ValueError(f"X[{example}] contains NaN, infinity or a number beyond {LARGEST:g}, in row {place}.")
    values = rows.matrix.data if sp.issparse(rows.matrix) else rows.matrix
    if not values.size or (float(values.min()) >= -LARGEST and float(values.max()) <= LARGEST):  # False for NaN
        return
    is_bad = ~(np.abs(values.astype(np.float64)) <= LARGEST)
    if sp.issparse(rows.matrix):
        entry = np.flatnonzero(is_bad)[0]
        row = np.searchsorted(rows.matrix.indptr, entry, side="right") - 1
    else:
        row = np.flatnonzero(is_bad.any(axis=1))[0]
    value = float(values[is_bad][0])
    what = f"{value:.3g}, which is beyond {LARGEST:g}" if np.isfinite(value) else "NaN or infinity"
    example, place = locate(row, rows.starts)
    raise ValueError(f"X[{example}] contains {what}, in row {place}.")
