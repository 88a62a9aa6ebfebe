"""Candidate sets to a `CandidateProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.base import RowEncoder
from maxmargin.encode.features import row_features
from maxmargin.encode.rows import Rows, check_truths, flatten_weights, stack_rows
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.candidates import CandidateProblem


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateEncoder(RowEncoder):
    """The encoder of candidate sets."""

    @classmethod
    def learn(cls, X: Any, y: Any, *, dtype: Any, costs: Any = None) -> tuple[CandidateEncoder, CandidateProblem]:
        """The encoder and the problem of training data; arguments are those of `CandidateSVM`."""
        rows = stack_candidates(X, dtype=dtype)
        labels = true_candidates(y, rows)
        encoder = cls.of(rows, dtype)
        return encoder, encoder.assemble(rows, labels, candidate_costs(costs, labels, rows))

    def problem(self, X: Any, y: Any = None) -> CandidateProblem:
        rows = stack_candidates(X, self.n_features_in, self.dtype)
        labels = np.zeros(len(rows.lengths)) if y is None else true_candidates(y, rows)
        return self.assemble(rows, labels, np.zeros(rows.offsets[-1]))

    def assemble(self, rows: Rows, labels: np.ndarray, costs: np.ndarray) -> CandidateProblem:
        return CandidateProblem(
            features=row_features(self.stored(rows), self.dtype),
            offsets=rows.offsets.astype(np.int64),
            labels=labels.astype(np.int32),
            costs=costs.astype(self.dtype),
            n_features=self.n_features_in,
        )

    def layout(self, problem: CandidateProblem) -> tuple[Any, ...]:
        return (problem.offsets,)

    def decode(self, problem: Any, i: int, rows: np.ndarray) -> list[int]:
        return rows[:, 0].tolist()

    def decode_all(self, problem: Any, outputs: Blocks) -> np.ndarray:
        return outputs.values

    def judge(self, problem: CandidateProblem, outputs: Blocks) -> tuple[np.ndarray, Any]:
        return outputs.values == problem.labels, 1


def stack_candidates(X: Any, n_features: int | None = None, dtype: Any = np.float64) -> Rows:
    """Check candidate sets, a list of (K_i, F) arrays or sparse matrices, and stack their rows."""
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        raise ValueError("X must be a list of matrices, the candidates of each example, but it is one matrix.")
    return stack_rows(X, None, n_features, dtype, noun="candidate set")


def true_candidates(y: Any, rows: Rows) -> np.ndarray:
    """Check the indices of the true candidates."""
    check_truths(y, len(rows.lengths), "the index of the true candidate of each example", "candidate set")
    for i, (index, size) in enumerate(zip(y, rows.lengths, strict=True)):
        if not isinstance(index, Integral) or isinstance(index, (bool, np.bool_)):
            raise TypeError(f"y[{i}] must be the index of a candidate, an integer, not {index!r}.")
        if not 0 <= int(index) < size:
            raise ValueError(f"y[{i}] is {index}, but X[{i}] has only the candidates 0 to {size - 1}.")
    return np.asarray(y, np.int32)


def candidate_costs(costs: Any, labels: np.ndarray, rows: Rows) -> np.ndarray:
    """Check the costs of all candidates and concatenate them; by default 1 for all but the true ones."""
    flat = flatten_weights(costs, rows.lengths, "costs", "candidate set")
    truth = rows.offsets[:-1] + labels
    if costs is None:
        flat[truth] = 0
    if flat[truth].any():
        i = int(np.flatnonzero(flat[truth])[0])
        raise ValueError(f"costs[{i}] must be zero for the true candidate {labels[i]}, not {flat[truth[i]]:g}.")
    return flat
