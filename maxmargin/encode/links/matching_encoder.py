"""Pairs of nodes to a `MatchingProblem`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.checks import check_unmasked
from maxmargin.encode.inputs.base_encoder import RowEncoder, check_exclusions, complete_outputs
from maxmargin.encode.inputs.edges import first_repeated
from maxmargin.encode.inputs.example_checks import (
    check_array,
    check_examples,
    check_truths,
    flatten_weights,
    is_integer,
    members_of,
)
from maxmargin.encode.inputs.rows import Rows, row_features, stack_rows
from maxmargin.problem import REACH
from maxmargin.structures.matchings.matching_problem import MatchingProblem, MatchingSupervision
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.wording import quote


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchingEncoder(RowEncoder[MatchingProblem]):
    """The encoder of pairs of nodes."""

    published = ("n_features_in", "threshold")

    complete: bool = False  # whether every left node has a link
    threshold: float = field(default=0.0, compare=False)  # of predictions

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "threshold", abs(self.threshold) <= REACH

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        wrong_cost: float,
        missed_cost: float,
        complete: bool = False,
        link_weight: object = None,
        dtype: DTypeLike,
    ) -> Learned:
        """The encoder and the problem of training data; arguments are those of `MatchingSVM`."""
        rows, sides = stack_pairs(X)
        tables = left_open(y, sides, "y")
        if complete:
            for i, is_open in enumerate(tables):
                check_linked(is_open[:, :-1].sum(axis=1) == 0, f"y[{i}]")
        weights = flatten_weights(link_weight, sides, "link_weight", "example")
        blocks: list[np.ndarray] = []
        for is_open, weight in zip(tables, np.split(weights, rows.starts[1:-1]), strict=True):
            blocks += link_costs(is_open, wrong_cost * weight, missed_cost)
        encoder = cls.of(rows, dtype, complete=complete)
        matches = [np.where(is_open[:, -1], -1, is_open.argmax(axis=1)) for is_open in tables]
        problem = encoder.assemble(rows, sides, matches, np.concatenate(blocks))
        if not encoder.is_partial(y):
            return Learned(encoder, problem)
        is_weak = np.array([(is_open.sum(axis=1) > 1).any() for is_open in tables])
        if all(is_open.all() for is_open in tables):
            raise ValueError("y must say something of at least one link, but nothing of it is known.")
        problem, consistent = complete_outputs(problem, as_exclusions(tables), "matches")
        return Learned(encoder, problem, Weak(consistent, is_weak=is_weak) if is_weak.any() else None)

    def problem(self, X: object, y: object = None) -> MatchingProblem:
        rows, sides = stack_pairs(X, self.n_features_in)
        matches = [np.full(sides[:, 0].sum(), -1)] if y is None else true_matches(y, sides)
        if self.complete and y is not None:
            for i, match in enumerate(matches):
                check_linked(match < 0, f"y[{i}]")
        problem = self.assemble(rows, sides, matches, np.zeros(0))
        return problem._replace(threshold=float(self.threshold))

    def best_links(self, X: object, w: np.ndarray) -> np.ndarray:
        """The scores of the best links of all left nodes that can have one."""
        rows, sides = stack_pairs(X, self.n_features_in)
        scores = np.split(np.asarray(rows.matrix @ w), rows.starts[1:-1])
        tables = [part.reshape(shape) for part, shape in zip(scores, sides, strict=True) if part.size]
        return np.concatenate([table.max(axis=1) for table in tables]) if tables else np.zeros(0)

    def assemble(self, rows: Rows, sides: np.ndarray, matches: list[np.ndarray], costs: np.ndarray) -> MatchingProblem:
        return MatchingProblem(
            features=row_features(self.stored(rows), self.dtype),
            pair_starts=rows.starts.astype(np.int64),
            left_starts=starts_of(sides[:, 0]),
            n_right=np.ascontiguousarray(sides[:, 1]),
            supervision=MatchingSupervision(np.concatenate(matches).astype(np.int32), costs.astype(self.dtype)),
            excluded=without_gaps(sides) if self.complete else nothing_excluded(len(sides)),
            n_features=self.n_features_in,
        )

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(is_partial(links) for links in y)

    def exclusions(self, problem: MatchingProblem, known: object, name: str) -> Blocks:
        sides = np.column_stack([np.diff(problem.left_starts), problem.n_right])
        return check_exclusions(problem, as_exclusions(left_open(known, sides, name)), name)

    def dual_shape(self, problem: MatchingProblem) -> tuple[object, ...]:
        return problem.left_starts, problem.n_right

    def arrange(self, problem: MatchingProblem, parts: Blocks) -> list[np.ndarray]:
        sizes = zip(np.diff(problem.left_starts), problem.n_right, super().arrange(problem, parts), strict=True)
        tables = [(part[: n * m].reshape(n, m), part[n * m :]) for n, m, part in sizes]
        return [links if self.complete else np.column_stack([links, alone]) for links, alone in tables]


def link_costs(
    is_open: np.ndarray, wrong_cost: float | np.ndarray, missed_cost: float
) -> tuple[np.ndarray, np.ndarray]:
    """What links cost, flat, and what left nodes without one do, from flags of those that may be true (`left_open`)."""
    misses = missed_cost * ~is_open[:, -1]  # counted where the left node is linked elsewhere or to nobody
    links = (np.repeat(misses, is_open.shape[1] - 1) + wrong_cost) * ~is_open[:, :-1].ravel()
    return links, misses


def without_gaps(sides: np.ndarray) -> Blocks:
    """Flags of parts that a matching in which every left node has a link does not have; raises where there is none."""
    for i, (n_left, n_right) in enumerate(sides.tolist()):
        if n_left > n_right:
            raise ValueError(
                f"X[{i}] has {n_left} left and {n_right} right nodes, but with complete=True every left one needs one."
            )
    return as_blocks([np.repeat([False, True], [n * m, n]) for n, m in sides.tolist()], bool)


def check_linked(is_alone: np.ndarray, name: str) -> None:
    """Raise where a left node has no link."""
    if is_alone.any():
        raise ValueError(f"{name} leaves left node {is_alone.argmax()} without a link, but complete=True.")


def stack_pairs(X: object, n_features: int | None = None) -> tuple[Rows, np.ndarray]:
    """Check the features of pairs and stack them; with the numbers of left and right nodes, (n, 2)."""
    X = check_examples(X, "(n, m, F) arrays, one per example", "pair of sides")
    matrices, sides = zip(*(as_pairs(x, f"X[{i}]") for i, x in enumerate(X)), strict=True)
    rows = stack_rows(matrices, None, n_features, noun="pair of sides", may_be_empty=True)
    return rows, np.array(sides, np.int64)


def as_pairs(x: object, name: str) -> tuple[np.ndarray | sp.csr_array, tuple[int, int]]:
    """The features of pairs, a matrix with a row for each, and the numbers of left and right nodes."""
    if isinstance(x, tuple) and len(x) == 2 and np.shape(x[1]) == (2,):
        check_unmasked(name, x[0])
        matrix, shape = x[0] if sp.issparse(x[0]) else np.asarray(x[0]), np.asarray(x[1])
        if shape.dtype.kind not in "iu" or (shape < 0).any():
            raise ValueError(f"{name} must give the numbers of left and right nodes, not {x[1]!r}.")
        n_left, n_right = shape.tolist()
        if matrix.ndim != 2 or matrix.shape[0] != n_left * n_right:
            raise ValueError(
                f"{name} must have {n_left} x {n_right} rows of features, one per pair, but has shape {matrix.shape}."
            )
        return matrix, (n_left, n_right)
    array = check_array(x, name, "an (n, m, F) array, or a matrix with one row per pair and (n, m)", (None,) * 3)
    n_left, n_right, width = array.shape
    return array.reshape(n_left * n_right, width), (n_left, n_right)


def true_matches(y: object, sides: np.ndarray) -> list[np.ndarray]:
    """Check matchings: for each example the right nodes of its left nodes, -1 for none."""
    y = check_truths(y, len(sides), "one matching per example", "example")
    return [as_match(links, sides[i], f"y[{i}]") for i, links in enumerate(y)]


def is_partial(links: Any) -> bool:
    """Whether a matching is given by what is known of each left node, be it None or a set of right nodes."""
    is_list = isinstance(links, (list, tuple, np.ndarray))
    return links is None or (is_list and any(entry is None or isinstance(entry, (set, frozenset)) for entry in links))


def left_open(known: object, sides: np.ndarray, name: str) -> list[np.ndarray]:
    """Which right nodes each left node may be linked to, and in the last column, whether to none: (n, m + 1) flags."""
    known = check_truths(known, len(sides), "one matching per example", "example", name)
    return [open_links(links, sides[i], f"{name}[{i}]") for i, links in enumerate(known)]


def open_links(links: Collection[object], sides: np.ndarray, name: str) -> np.ndarray:
    """The flags of `left_open` of one example."""
    n_left, n_right = sides.tolist()
    if links is None:
        return np.ones((n_left, n_right + 1), bool)
    is_open = np.zeros((n_left, n_right + 1), bool)
    if not is_partial(links):
        is_open[np.arange(n_left), as_match(links, sides, name)] = True  # the last column is that of -1
        return is_open
    if len(links) != n_left:
        raise ValueError(f"{name} has {len(links)} entries, but there are {n_left} left nodes.")
    for v, entry in enumerate(links):
        if entry is None:
            is_open[v] = True
            continue
        some = members_of(entry)
        if not some:
            raise ValueError(f"{name} has an empty set at left node {v}: -1 is for nodes without a link.")
        for right in some:
            if not is_integer(right):
                raise TypeError(f"{name} must hold right nodes, -1, None or sets, not {quote(right)} at left node {v}.")
            if not -1 <= int(right) < n_right:
                raise ValueError(f"{name} links the right node {right}, but there are {n_right}, from 0.")
            is_open[v, int(right)] = True
    return is_open


def as_exclusions(tables: list[np.ndarray]) -> Blocks:
    """Flags of links, then of nodes without one, that are not open."""
    flags = [np.concatenate([~is_open[:, :-1].ravel(), ~is_open[:, -1]]) for is_open in tables]
    return as_blocks(flags, bool)


def as_match(links: object, sides: np.ndarray, name: str) -> np.ndarray:
    """The right node of each left node, from the same or from pairs (left, right)."""
    array = np.array(sorted(links) if isinstance(links, (set, frozenset)) else links)
    if array.size == 0:
        array = array.reshape(0, 2).astype(np.int64)  # no links
    is_list_of_links = array.ndim == 2 and array.shape[1] == 2
    if array.dtype.kind not in "iu" or not (is_list_of_links or array.ndim == 1):
        raise TypeError(
            f"{name} must hold integers: the right node of each left node, or -1; or pairs of a left and a right node."
        )
    if not is_list_of_links:
        if len(array) != sides[0]:
            raise ValueError(f"{name} has {len(array)} entries, but there are {sides[0]} left nodes.")
        if (array < -1).any():
            raise ValueError(f"{name} contains {array.min()}; a left node without a link is -1.")
        array = np.column_stack([np.flatnonzero(array >= 0), array[array >= 0]])
    left, right = array.T
    for side, nodes, size in zip(("left", "right"), (left, right), sides, strict=True):
        is_missing = (nodes < 0) | (nodes >= size)
        if is_missing.any():
            raise ValueError(f"{name} links the {side} node {nodes[is_missing][0]}, but there are {size}, from 0.")
        repeated = first_repeated(nodes)
        if repeated:
            raise ValueError(f"{name} links the {side} node {nodes[repeated[0]]} twice.")
    match = np.full(sides[0], -1, np.int32)
    match[left] = right
    return match
