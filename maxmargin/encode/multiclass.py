"""Rows of features with a class each to a `MulticlassProblem`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.features import append_constant, row_features
from maxmargin.encode.rows import Rows, as_stored, check_finite
from maxmargin.structures.multiclass import MulticlassProblem


def as_rows(X: Any, dtype: Any) -> Rows:
    """One row per example, each of which `dtype` can hold."""
    rows = Rows(sp.csr_array(X) if sp.issparse(X) else X, np.arange(X.shape[0] + 1))
    check_finite(rows, dtype)
    return rows


def multiclass_problem(
    rows: Rows, labels: np.ndarray, costs: np.ndarray, dtype: Any, *, sparse: bool, with_intercept: bool
) -> MulticlassProblem:
    """Put the checked parts together; an intercept is the weight of one more feature, 1 everywhere."""
    rows = as_stored(rows, sparse)
    if with_intercept:
        rows = append_constant(rows)
    matrix = rows.matrix
    squares = matrix.multiply(matrix) if sparse else np.square(matrix, dtype=np.float64)
    return MulticlassProblem(
        features=row_features(rows, dtype),
        labels=labels.astype(np.int32),
        cost_matrix=np.ascontiguousarray(costs, dtype),
        squared_norms=np.asarray(squares.sum(axis=1), np.float64),
        n_features=matrix.shape[1],
    )
