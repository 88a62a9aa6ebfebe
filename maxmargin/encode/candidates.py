"""Candidate sets to a `CandidateProblem`."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.features import row_features
from maxmargin.encode.rows import Rows, stack_rows
from maxmargin.structures.candidates import CandidateProblem


def stack_candidates(X: Any, n_features: int | None = None, dtype: Any = np.float64) -> Rows:
    """Check candidate sets, a list of (K_i, F) arrays or sparse matrices, and stack their rows."""
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        raise ValueError("X must be a list of matrices, the candidates of each example, but it is one matrix.")
    return stack_rows(X, None, n_features, dtype, noun="candidate set")


def true_candidates(y: Any, rows: Rows) -> np.ndarray:
    """Check the indices of the true candidates."""
    n = len(rows.lengths)
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise TypeError("y must be a list with the index of the true candidate of each example.")
    if len(y) != n:
        raise ValueError(f"X has {n} candidate sets, but y has {len(y)} entries.")
    for i, (index, size) in enumerate(zip(y, rows.lengths, strict=True)):
        if not isinstance(index, Integral) or isinstance(index, (bool, np.bool_)):
            raise TypeError(f"y[{i}] must be the index of a candidate, an integer, not {index!r}.")
        if not 0 <= int(index) < size:
            raise ValueError(f"y[{i}] is {index}, but X[{i}] has only the candidates 0 to {size - 1}.")
    return np.asarray(y, np.int32)


def candidate_costs(costs: Any, labels: np.ndarray, rows: Rows) -> np.ndarray:
    """Check the costs of all candidates and concatenate them; by default 1 for all but the true ones."""
    truth = rows.offsets[:-1] + labels
    if costs is None:
        flat = np.ones(rows.offsets[-1])
        flat[truth] = 0
        return flat
    if len(costs) != len(labels):
        raise ValueError(f"X has {len(labels)} candidate sets, but costs has {len(costs)} entries.")
    arrays = [np.asarray(cost, np.float64) for cost in costs]
    for i, (cost, size) in enumerate(zip(arrays, rows.lengths, strict=True)):
        if cost.shape != (size,):
            raise ValueError(f"costs[{i}] must hold {size} numbers, one per candidate of X[{i}].")
        if not (np.isfinite(cost).all() and (cost >= 0).all()):
            raise ValueError(f"costs[{i}] must be finite and non-negative.")
        if cost[labels[i]] != 0:
            raise ValueError(f"costs[{i}] must be zero for the true candidate {labels[i]}, not {cost[labels[i]]:g}.")
    return np.concatenate(arrays)


def candidate_problem(rows: Rows, labels: np.ndarray, costs: np.ndarray, dtype: Any) -> CandidateProblem:
    """Put the checked parts together."""
    return CandidateProblem(
        features=row_features(rows, dtype),
        offsets=rows.offsets.astype(np.int64),
        labels=labels.astype(np.int32),
        costs=costs.astype(dtype),
        n_features=rows.matrix.shape[1],
    )
