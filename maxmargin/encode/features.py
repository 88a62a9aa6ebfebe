"""Rows to the features that kernels read: dense, sparse or binary, as the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.rows import Rows
from maxmargin.features import BinaryFeatures, DenseFeatures, SparseFeatures
from maxmargin.features.base import Gram, gram_blocks

WRITABLE: Any = ("C", "W")  # read-only and strided arrays would compile all kernels anew


def row_features(rows: Rows, dtype: Any, *, with_grams: bool = False) -> Any:
    """Store rows as features; with Gram matrices, by which training on the hinge loss finds norms of directions."""
    # Gram matrices are only looked up while training; elsewhere every example may claim an empty one.
    matrix, gram = rows.matrix, Gram(np.empty(0), np.zeros(len(rows.lengths), np.int64))
    if sp.issparse(matrix):
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        indptr = np.require(matrix.indptr, np.int64, WRITABLE)
        indices = np.require(matrix.indices, np.int32, WRITABLE)
        n_entries = np.diff(indptr[rows.offsets])
        if (matrix.data == 1).all():
            features: Any = BinaryFeatures(indptr, indices, gram)
        else:
            features = SparseFeatures(indptr, indices, np.require(matrix.data, dtype, WRITABLE), gram)
    else:
        features, n_entries = DenseFeatures(np.require(matrix, dtype, WRITABLE), gram), rows.lengths * matrix.shape[1]
    if not with_grams:
        return features
    return features._replace(gram=gram_blocks(features, rows.offsets, n_entries, matrix.shape[1]))


def append_columns(rows: Rows, columns: np.ndarray) -> Rows:
    """The rows, dense or sparse as they are, with more columns."""
    columns = columns.astype(rows.matrix.dtype)
    if sp.issparse(rows.matrix):
        return rows._replace(matrix=sp.csr_array(sp.hstack([rows.matrix, sp.csr_array(columns)], format="csr")))
    return rows._replace(matrix=np.hstack([rows.matrix, columns]))


def append_constant(rows: Rows) -> Rows:
    """The rows with one more column, of ones."""
    return append_columns(rows, np.ones((rows.matrix.shape[0], 1)))
