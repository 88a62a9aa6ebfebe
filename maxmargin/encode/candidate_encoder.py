"""Candidate sets to a `CandidateProblem`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import shown
from maxmargin.encode.inputs.base_encoder import RowEncoder
from maxmargin.encode.inputs.example_checks import check_truths, flatten_weights
from maxmargin.encode.inputs.rows import Rows, row_features, stack_rows
from maxmargin.encode.inputs.vocabulary import Vocabulary, known_by_name, learn_names
from maxmargin.structures.choices.candidate_problem import CandidateProblem
from maxmargin.supervision.weak import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateEncoder(RowEncoder):
    """The encoder of candidate sets."""

    vocabulary: Vocabulary | None = None  # of features that have names

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "vocabulary", self.vocabulary is None or self.vocabulary.size == self.n_features_in

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        dtype: DTypeLike,
        min_count: int = 1,
        n_hashed: int | None = None,
        costs: Any = None,
    ) -> Learned:
        """The encoder and the problem of training data; arguments are those of `CandidateSVM`."""
        vocabulary, given = learn_names(X, min_count=min_count, n_hashed=n_hashed)
        rows = stack_rows(given, noun="candidate set")
        labels = true_candidates(y, rows)
        truth, flat = rows.starts[:-1] + labels, flatten_weights(costs, rows.lengths, "costs", "candidate set")
        if costs is None:
            flat[truth] = 0
        if flat[truth].any():
            i = int(np.flatnonzero(flat[truth])[0])
            raise ValueError(f"costs[{i}] must be zero for the true candidate {labels[i]}, not {flat[truth[i]]:g}.")
        encoder = cls.of(rows, dtype, vocabulary=vocabulary)
        return Learned(encoder, encoder.assemble(rows, labels, flat))

    def problem(self, X: object, y: object = None) -> CandidateProblem:
        rows = stack_rows(known_by_name(X, self.vocabulary), None, self.n_features_in, noun="candidate set")
        labels = np.zeros(len(rows.lengths)) if y is None else true_candidates(y, rows)
        return self.assemble(rows, labels, np.zeros(rows.starts[-1]))

    def assemble(self, rows: Rows, labels: np.ndarray, costs: np.ndarray) -> CandidateProblem:
        return CandidateProblem(
            features=row_features(self.stored(rows), self.dtype),
            starts=rows.starts.astype(np.int64),
            labels=labels.astype(np.int32),
            costs=costs.astype(self.dtype),
            n_features=self.n_features_in,
        )

    def dual_shape(self, problem: CandidateProblem) -> tuple[Any, ...]:
        return (problem.starts,)

    def decode(self, problem: Any, i: int, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0]

    def decode_all(self, problem: Any, outputs: Blocks) -> np.ndarray:
        return outputs.values


def true_candidates(y: Any, rows: Rows) -> np.ndarray:
    """Check the indices of the true candidates."""
    check_truths(y, len(rows.lengths), "the index of the true candidate of each example", "candidate set")
    for i, (index, size) in enumerate(zip(y, rows.lengths, strict=True)):
        if not isinstance(index, Integral) or isinstance(index, (bool, np.bool_)):
            raise TypeError(f"y[{i}] must be the index of a candidate, an integer, not {shown(index)}.")
        if not 0 <= int(index) < size:
            raise ValueError(f"y[{i}] is {index}, but X[{i}] has only the candidates 0 to {size - 1}.")
    return np.asarray(y, np.int32)
