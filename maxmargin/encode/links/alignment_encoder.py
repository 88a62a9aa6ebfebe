"""Pairs of sequences to an `AlignmentProblem`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.encode.inputs.base_encoder import Encoder, RowEncoder, check_exclusions, complete_outputs
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import check_array, check_truths
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.encode.links.link_paths import flag_links, links_of, match_of, path_costs, read_path, read_paths
from maxmargin.encode.links.matching_encoder import as_exclusions, is_partial, open_links
from maxmargin.encode.links.two_sequences import KINDS, ROWS, STRINGS, Alphabet, read_kind, read_rows, read_strings
from maxmargin.problem import true_outputs
from maxmargin.structures.monotone.alignment_problem import N_TURNS, AlignmentProblem, AlignmentSupervision
from maxmargin.structures.monotone.grid_paths import ENDED, N_MOVES
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned, Weak


@dataclass(frozen=True, eq=False, kw_only=True)
class AlignmentEncoder(RowEncoder[AlignmentProblem]):
    """The encoder of pairs of sequences."""

    kind: str  # what they are given as
    warps: bool
    alphabet: Alphabet | None = None  # of strings

    @property
    def n_blocks(self) -> int:
        """How many weights there are of each feature: of links and, of rows, of deleted and of inserted items."""
        return 3 if self.kind == ROWS and not self.warps else 1

    @property
    def n_columns(self) -> int:
        """The number of weights but for those of moves after each other."""
        return self.n_features_in * self.n_blocks

    @property
    def n_weights(self) -> int:
        return self.n_columns + N_TURNS

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "kind", self.kind in KINDS
        alphabet = self.alphabet
        yield "alphabet", (alphabet is not None and alphabet.is_sound) if self.kind == STRINGS else alphabet is None
        yield "n_features_in", alphabet is None or self.n_features_in == 1 + len(alphabet.pairs)

    @classmethod
    def learn(
        cls,
        X: object,
        y: Any,
        *,
        dtype: DTypeLike,
        warp: bool,
        wrong_cost: float = 1.0,
        missed_cost: float = 1.0,
        former: AlignmentEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training data; arguments are those of `AlignmentSVM`."""
        kind, known = (read_kind(X), None) if former is None else (read_kind(X, former.kind), former.alphabet)
        if kind == STRINGS:
            rows, sides, alphabet = read_strings(X, warp, known, learns=True)
            encoder = cls.of(rows, dtype, former=former, kind=kind, warps=warp, alphabet=alphabet)
        else:
            rows, sides = read_rows(X, kind, warp, None)
            encoder = cls.of(rows, dtype, former=former, kind=kind, warps=warp)
            encoder = replace(encoder, n_features_in=encoder.n_features_in // encoder.n_blocks)
        encoder = encoder.after(former)
        tables, paths = encoder.read_known(y, sides, "y")
        is_weak = np.array([is_partly_known(known, warp) for known in y])
        if all(known is None for known in y):
            raise ValueError("y must say something of at least one link, but nothing of it is known.")
        costs = []
        for is_open, is_open_path in zip(tables, is_weak, strict=True):
            costs += path_costs(is_open, wrong_cost, 0 if warp and is_open_path else missed_cost, warp)
        problem = encoder.assemble(rows, sides, paths, np.concatenate(costs))
        if not is_weak.any():
            return Learned(encoder, problem)
        problem, consistent = complete_outputs(problem, encoder.as_exclusions(tables), "paths")
        return Learned(encoder, problem, Weak(consistent, is_weak=is_weak))

    def joined(self, other: AlignmentEncoder) -> AlignmentEncoder:
        if self.alphabet is None or other.alphabet is None or self.warps != other.warps:
            return super().joined(other)
        alphabet = self.alphabet.joined(other.alphabet)
        return replace(self, alphabet=alphabet, n_features_in=1 + len(alphabet.pairs))

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if self.alphabet is None or not isinstance(other, AlignmentEncoder) or other.alphabet is None:
            return super().weights_of(other, w)
        columns, n = self.alphabet.find(other.alphabet), other.n_columns
        moved = np.zeros(self.n_weights, w.dtype)
        moved[[0, *1 + columns[columns >= 0]]] = w[:n][np.append(True, columns >= 0)]
        moved[self.n_columns :] = w[n:]
        return moved if self.warps == other.warps else None

    def read_known(self, known: object, sides: np.ndarray, name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Which links outputs may have and, in the last column, which left items may have none; and true paths."""
        known = check_truths(known, len(sides), "one alignment per example", "example", name)
        tables, paths = [], []
        for i, (some, (m, n)) in enumerate(zip(known, sides.tolist(), strict=True)):
            path = np.full(m + n, ENDED, np.int32)
            if is_partly_known(some, self.warps):
                table = (open_cells if self.warps else open_links)(some, sides[i], f"{name}[{i}]")
            else:
                path = read_path(some, sides[i], self.warps, f"{name}[{i}]")
                table = flag_links(path, sides[i], self.warps)
            tables.append(table)
            paths.append(path)
        return tables, paths

    def as_exclusions(self, tables: list[np.ndarray]) -> Blocks:
        """Flags of parts that outputs may not have."""
        if not self.warps:
            return as_exclusions(tables)
        return as_blocks([~is_open[:, :-1].ravel() for is_open in tables], bool)

    def problem(self, X: object, y: object = None) -> AlignmentProblem:
        kind = read_kind(X, self.kind)
        if kind == STRINGS:
            rows, sides, _ = read_strings(X, self.warps, self.alphabet)
        else:
            rows, sides = read_rows(X, kind, self.warps, self.n_features_in)
        paths = [np.full(sides.sum(), ENDED)] if y is None else read_paths(y, sides, self.warps)
        return self.assemble(rows, sides, paths, np.zeros(0))

    def assemble(self, rows: Rows, sides: np.ndarray, paths: list[np.ndarray], costs: np.ndarray) -> AlignmentProblem:
        """Put features, true paths and costs together."""
        return AlignmentProblem(
            features=row_features(self.stored(rows), self.dtype),
            starts=rows.starts.astype(np.int64),
            path_starts=starts_of(sides.sum(axis=1)),
            sides=sides,
            supervision=AlignmentSupervision(np.concatenate(paths).astype(np.int32), costs.astype(self.dtype)),
            excluded=nothing_excluded(len(sides)),
            n_features=self.n_columns,
            warps=self.warps,
        )

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(is_partly_known(known, self.warps) for known in y)

    def exclusions(self, problem: AlignmentProblem, known: object, name: str) -> Blocks:
        return check_exclusions(problem, self.as_exclusions(self.read_known(known, problem.sides, name)[0]), name)

    def dual_shape(self, problem: AlignmentProblem) -> tuple[object, ...]:
        return (problem.sides,)

    def names(self, w: np.ndarray) -> Bunch:
        n, width = self.n_columns, self.n_features_in
        moves = w[n:].reshape(N_MOVES, N_MOVES)
        if self.alphabet is not None:
            return Bunch(same=w[:1], pairs=w[1:n], moves=moves)
        if self.n_blocks == 1:
            return Bunch(links=w[:n], moves=moves)
        return Bunch(links=w[:width], deleted=w[width : 2 * width], inserted=w[2 * width : n], moves=moves)

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        of_strings = {} if self.alphabet is None else {"pairs_": self.alphabet.named_pairs}
        return {**super().attributes(w), **of_strings}

    def decode(self, problem: AlignmentProblem, i: int, rows: np.ndarray) -> Any:
        sides = problem.sides[i]
        if self.warps:
            return [links_of(row, sides[1], warps=True) for row in rows]
        return np.array([match_of(row, sides) for row in rows], np.int32).reshape(len(rows), sides[0])

    def arrange(self, problem: AlignmentProblem, parts: Blocks) -> list[np.ndarray]:
        tables = zip(problem.sides.tolist(), super().arrange(problem, parts), strict=True)
        if self.warps:
            return [part[: m * n].reshape(m, n) for (m, n), part in tables]
        return [np.column_stack([part[: m * n].reshape(m, n), part[m * n : m * n + m]]) for (m, n), part in tables]

    def judge(self, problem: AlignmentProblem, outputs: Blocks) -> Merits:
        """Which left items have the right link or, where one side is warped, the F1 of links of each example."""
        both = [self.decode_all(problem, each) for each in (outputs, true_outputs(problem))]
        if not self.warps:
            return Merits(np.concatenate([*map(np.equal, *both)]), problem.sides[:, 0])
        found, true = ([{*map(tuple, links.tolist())} for links in each] for each in both)
        return Merits(np.array([2 * len(a & b) / (len(a) + len(b)) for a, b in zip(found, true, strict=True)]))


def is_partly_known(known: object, warps: bool) -> bool:
    """Whether less than one alignment is given: of what is warped, flags of the links it may have."""
    return (
        is_partial(known) if not warps else known is None or (isinstance(known, np.ndarray) and known.dtype.kind == "b")
    )


def open_cells(known: object, sides: np.ndarray, name: str) -> np.ndarray:
    """Flags of links that a path may have, from the same or None, with a last column of none."""
    n_left, n_right = sides.tolist()
    if known is None:
        known = np.ones((n_left, n_right), bool)
    kind = f"({n_left}, {n_right}) flags of links that there may be"
    cells = check_array(known, name, kind, (n_left, n_right), dtypes="b")
    return np.column_stack([cells, np.zeros(n_left, bool)])
