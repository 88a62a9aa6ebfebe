"""Pairs of nodes to a `MatchingProblem`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.checks import check_unmasked
from maxmargin.encode.inputs.base_encoder import RowEncoder
from maxmargin.encode.inputs.edges import first_repeated
from maxmargin.encode.inputs.example_checks import check_array, check_examples, check_truths, flatten_weights
from maxmargin.encode.inputs.rows import Rows, row_features, stack_rows
from maxmargin.inference import possible_outputs
from maxmargin.problem import REACH, restrict
from maxmargin.structures.matchings.matching_problem import MatchingProblem, MatchingSupervision
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.wording import quote


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchingEncoder(RowEncoder[MatchingProblem]):
    """The encoder of pairs of nodes."""

    published = ("n_features_in", "threshold")

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
        dtype: DTypeLike,
        wrong_cost: float,
        missed_cost: float,
        link_weight: object = None,
    ) -> Learned:
        """The encoder and the problem of training data; arguments are those of `MatchingSVM`."""
        rows, sides = stack_pairs(X)
        tables = left_open(y, sides, "y")
        weights = flatten_weights(link_weight, sides, "link_weight", "example")
        blocks = []
        for is_open, shape, weight in zip(tables, sides, np.split(weights, rows.starts[1:-1]), strict=True):
            misses = missed_cost * ~is_open[:, -1]  # counted where the left node is linked elsewhere or to nobody
            links = wrong_cost * weight.reshape(shape) + misses[:, np.newaxis]
            links[is_open[:, :-1]] = 0
            blocks += [links.ravel(), misses]
        encoder = cls.of(rows, dtype)
        matches = [np.where(is_open[:, -1], -1, is_open.argmax(axis=1)) for is_open in tables]
        problem = encoder.assemble(rows, sides, matches, np.concatenate(blocks))
        if not encoder.is_partial(y):
            return Learned(encoder, problem)
        is_weak = np.array([(is_open.sum(axis=1) > 1).any() for is_open in tables])
        if all(is_open.all() for is_open in tables):
            raise ValueError("y must say something of at least one link, but nothing of it is known.")
        consistent = restrict(problem, as_exclusions(tables))
        supervision = problem.supervision._replace(matches=possible_outputs(consistent, "y").values)
        problem, consistent = (each._replace(supervision=supervision) for each in (problem, consistent))
        return Learned(encoder, problem, Weak(consistent, is_weak=is_weak) if is_weak.any() else None)

    def problem(self, X: object, y: object = None) -> MatchingProblem:
        rows, sides = stack_pairs(X, self.n_features_in)
        matches = [np.full(sides[:, 0].sum(), -1)] if y is None else true_matches(y, sides)
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
            excluded=nothing_excluded(len(sides)),
            n_features=self.n_features_in,
        )

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(is_partial(links) for links in y)

    def exclusions(self, problem: MatchingProblem, known: object, name: str) -> Blocks:
        sides = np.column_stack([np.diff(problem.left_starts), problem.n_right])
        excluded = as_exclusions(left_open(known, sides, name))
        possible_outputs(restrict(problem, excluded), name)
        return excluded

    def dual_shape(self, problem: MatchingProblem) -> tuple[object, ...]:
        return problem.left_starts, problem.n_right

    def arrange(self, problem: MatchingProblem, parts: Blocks) -> list[np.ndarray]:
        sizes = zip(np.diff(problem.left_starts), problem.n_right, super().arrange(problem, parts), strict=True)
        return [np.column_stack([part[: n * m].reshape(n, m), part[n * m :]]) for n, m, part in sizes]


def stack_pairs(X: Any, n_features: int | None = None) -> tuple[Rows, np.ndarray]:
    """Check the features of pairs and stack them; with the numbers of left and right nodes, (n, 2)."""
    check_examples(X, "(n, m, F) arrays, one per example", "pair of sides")
    matrices, sides = zip(*(_as_pairs(x, f"X[{i}]") for i, x in enumerate(X)), strict=True)
    rows = stack_rows(matrices, None, n_features, noun="pair of sides", may_be_empty=True)
    return rows, np.array(sides, np.int64)


def _as_pairs(x: object, name: str) -> tuple[object, tuple[int, int]]:
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


def true_matches(y: Any, sides: np.ndarray) -> list[np.ndarray]:
    """Check matchings: for each example the right nodes of its left nodes, -1 for none."""
    check_truths(y, len(sides), "one matching per example", "example")
    return [_as_match(links, sides[i], f"y[{i}]") for i, links in enumerate(y)]


def is_partial(links: Any) -> bool:
    """Whether a matching is given by what is known of each left node, be it None or a set of right nodes."""
    is_list = isinstance(links, (list, tuple, np.ndarray))
    return links is None or (is_list and any(entry is None or isinstance(entry, (set, frozenset)) for entry in links))


def left_open(known: Any, sides: np.ndarray, name: str) -> list[np.ndarray]:
    """Which right nodes each left node may be linked to, and in the last column, whether to none: (n, m + 1) flags."""
    check_truths(known, len(sides), "one matching per example", "example", name)
    return [_open_links(links, sides[i], f"{name}[{i}]") for i, links in enumerate(known)]


def _open_links(links: Collection[object], sides: np.ndarray, name: str) -> np.ndarray:
    n_left, n_right = sides.tolist()
    if links is None:
        return np.ones((n_left, n_right + 1), bool)
    is_open = np.zeros((n_left, n_right + 1), bool)
    if not is_partial(links):
        is_open[np.arange(n_left), _as_match(links, sides, name)] = True  # the last column is that of -1
        return is_open
    if len(links) != n_left:
        raise ValueError(f"{name} has {len(links)} entries, but there are {n_left} left nodes.")
    for v, entry in enumerate(links):
        if entry is None:
            is_open[v] = True
            continue
        some = entry if isinstance(entry, (set, frozenset)) else (entry,)
        if not some:
            raise ValueError(f"{name} has an empty set at left node {v}: -1 is for nodes without a link.")
        for right in some:
            if not isinstance(right, Integral) or isinstance(right, (bool, np.bool_)):
                raise TypeError(f"{name} must hold right nodes, -1, None or sets, not {quote(right)} at left node {v}.")
            if not -1 <= int(right) < n_right:
                raise ValueError(f"{name} links the right node {right}, but there are {n_right}, from 0.")
            is_open[v, int(right)] = True
    return is_open


def as_exclusions(tables: list[np.ndarray]) -> Blocks:
    """Flags of links, then of nodes without one, that are not open."""
    flags = [np.concatenate([~is_open[:, :-1].ravel(), ~is_open[:, -1]]) for is_open in tables]
    return as_blocks(flags, bool)


def _as_match(links: object, sides: np.ndarray, name: str) -> np.ndarray:
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
