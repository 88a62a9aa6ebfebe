"""Candidate sets to a `CandidateProblem`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.encode.inputs.base_encoder import Encoder, RowEncoder
from maxmargin.encode.inputs.example_checks import check_truths, flatten_weights, is_integer, locate, members_of
from maxmargin.encode.inputs.rows import Rows, in_one_matrix, row_features, stack_rows
from maxmargin.encode.names.vocabulary import Vocabulary, join_features, known_by_name, learn_names, places_of
from maxmargin.features.pairs import PairTable, move_weights
from maxmargin.problem import restrict
from maxmargin.structures.choices.candidate_problem import CandidateProblem, CandidateSupervision
from maxmargin.supervision.exclusions import first_left, nothing_excluded
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.wording import quote

WHAT = "the index of the true candidate of each example"
ONE_COLUMN = np.zeros(1, np.int64)  # where the only one is


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateEncoder(RowEncoder[CandidateProblem]):
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
        min_count: int = 1,
        n_hashed: int | None = None,
        costs: object = None,
        dtype: DTypeLike,
        former: CandidateEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training data; arguments are those of `CandidateSVM`."""
        names = None if former is None else former.vocabulary
        vocabulary, given = learn_names(X, min_count=min_count, n_hashed=n_hashed, former=names)
        rows = stack_rows(given, noun="candidate set")
        excluded = excluded_candidates(y, rows.starts, "y")
        if all(known is None for known in y):  # type: ignore[attr-defined]
            raise ValueError("y must say something of at least one candidate set, but all of it is None.")
        labels, is_weak = first_left(excluded)
        flat = flatten_weights(costs, rows.lengths, "costs", "candidate set")
        if costs is None:
            flat[~excluded.values] = 0
        flat[np.repeat([known is None for known in y], rows.lengths)] = 0  # type: ignore[attr-defined]
        is_wrong = (flat > 0) & ~excluded.values
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            i, candidate = locate(row, rows.starts)
            raise ValueError(f"costs[{i}] must be zero for the true candidate {candidate}, not {flat[row]:g}.")
        encoder = cls.of(rows, dtype, former=former, vocabulary=vocabulary).after(former)
        problem = encoder.assemble(rows, labels, flat)
        if not is_weak.any():
            return Learned(encoder, problem)
        return Learned(encoder, problem, Weak(restrict(problem, excluded), is_weak=is_weak))

    @property
    def pair_table(self) -> PairTable:
        """The weights of features."""
        return PairTable(self.n_features_in, 1, None)

    def joined(self, other: CandidateEncoder) -> CandidateEncoder:
        vocabulary, n_features = join_features(self, other)
        return replace(self, vocabulary=vocabulary, n_features_in=n_features)

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(other, CandidateEncoder) or (features := places_of(other, self)) is None:
            return None
        return move_weights(w, other.pair_table.numbers_in(self.pair_table, features, ONE_COLUMN), self.pair_table)

    def problem(self, X: object, y: object = None) -> CandidateProblem:
        rows = stack_rows(known_by_name(X, self.vocabulary), None, self.n_features_in, noun="candidate set")
        labels = np.full(len(rows.lengths), -1) if y is None else true_candidates(y, rows)
        return self.assemble(rows, labels, np.zeros(0))

    def assemble(self, rows: Rows, labels: np.ndarray, costs: np.ndarray) -> CandidateProblem:
        return CandidateProblem(
            features=row_features(in_one_matrix(self.stored(rows)), self.dtype),
            starts=rows.starts.astype(np.int64),
            supervision=CandidateSupervision(labels.astype(np.int32), costs.astype(self.dtype)),
            excluded=nothing_excluded(len(rows.lengths)),
            n_features=self.n_features_in,
        )

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(known is None or isinstance(known, (set, frozenset)) for known in y)

    def exclusions(self, problem: CandidateProblem, known: object, name: str) -> Blocks:
        return excluded_candidates(known, problem.starts, name)

    def dual_shape(self, problem: CandidateProblem) -> tuple[object, ...]:
        return (problem.starts,)

    def decode(self, problem: CandidateProblem, i: int, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0]

    def decode_all(self, problem: CandidateProblem, outputs: Blocks) -> np.ndarray:
        return outputs.values


def true_candidates(y: object, rows: Rows) -> np.ndarray:
    """Check the indices of the true candidates."""
    y = check_truths(y, len(rows.lengths), WHAT, "candidate set")
    for i, (index, size) in enumerate(zip(y, rows.lengths, strict=True)):
        check_candidate(index, size, i, "y")
    return np.asarray(y, np.int32)


def excluded_candidates(known: object, starts: np.ndarray, name: str) -> Blocks:
    """Flags of candidates that do not agree with what is known: the index of one, a set of them, or None."""
    known = check_truths(known, len(starts) - 1, WHAT, "candidate set", name)
    excluded = np.ones(starts[-1], bool)
    for i, (indices, first, stop) in enumerate(zip(known, starts[:-1], starts[1:], strict=True)):
        if indices is None:
            excluded[first:stop] = False
            continue
        some = members_of(indices)
        if not some:
            raise ValueError(f"{name}[{i}] is an empty set, which leaves no candidate.")
        for index in some:
            check_candidate(index, stop - first, i, name)
            excluded[first + int(index)] = False
    return Blocks(excluded, starts)


def check_candidate(index: object, size: int, i: int, name: str) -> None:
    """Raise unless there is a candidate of this index in set i, of so many."""
    if not is_integer(index):
        raise TypeError(f"{name}[{i}] must be the index of a candidate, an integer, not {quote(index)}.")
    if not 0 <= int(index) < size:
        raise ValueError(f"{name}[{i}] is {index}, but X[{i}] has only the candidates 0 to {size - 1}.")
