"""Pairs of nodes to a `MatchingProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.base import RowEncoder
from maxmargin.encode.features import row_features
from maxmargin.encode.rows import Rows, check_examples, check_truths, flatten_weights, stack_rows
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.matching import MatchingProblem


class Pairs(NamedTuple):
    """The features of all pairs of a left and a right node, and the numbers of both."""

    rows: Rows
    n_left: np.ndarray  # (n,)
    n_right: np.ndarray  # (n,)

    @property
    def left_offsets(self) -> np.ndarray:
        """Where the left nodes of each example begin."""
        return np.concatenate([[0], np.cumsum(self.n_left)])


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchingEncoder(RowEncoder):
    """The encoder of pairs of nodes."""

    @classmethod
    def learn(
        cls, X: Any, y: Any, *, dtype: Any, wrong_cost: float, missed_cost: float, link_weight: Any = None
    ) -> tuple[MatchingEncoder, MatchingProblem]:
        """The encoder and the problem of training data; arguments are those of `MatchingSVM`."""
        pairs = stack_pairs(X, dtype=dtype)
        matches = true_matches(y, pairs)
        costs = matching_costs(matches, link_weights(link_weight, pairs), wrong_cost, missed_cost, pairs)
        encoder = cls.of(pairs.rows, dtype)
        pairs = pairs._replace(rows=encoder.stored(pairs.rows))
        return encoder, matching_problem(pairs, matches, costs, dtype)

    def problem(self, X: Any, y: Any = None) -> MatchingProblem:
        pairs = stack_pairs(X, self.n_features_in, self.dtype)
        n_left, n_pairs = pairs.left_offsets[-1], pairs.rows.offsets[-1]
        matches = np.zeros(n_left) if y is None else true_matches(y, pairs)
        pairs = pairs._replace(rows=self.stored(pairs.rows))
        return matching_problem(pairs, matches, np.zeros(n_pairs + n_left), self.dtype)

    def layout(self, problem: MatchingProblem) -> tuple[Any, ...]:
        return problem.left_offsets, problem.n_right

    def arrange(self, problem: MatchingProblem, parts: Blocks) -> list[np.ndarray]:
        sizes = zip(np.diff(problem.left_offsets), problem.n_right, super().arrange(problem, parts), strict=True)
        return [np.column_stack([part[: n * m].reshape(n, m), part[n * m :]]) for n, m, part in sizes]

    def judge(self, problem: MatchingProblem, outputs: Blocks) -> tuple[np.ndarray, Any]:
        return outputs.values == problem.matches, np.diff(problem.left_offsets)


def stack_pairs(X: Any, n_features: int | None = None, dtype: Any = np.float64) -> Pairs:
    """Check the features of pairs and stack them.

    Parameters
    ----------
    X : a list with an (n_i, m_i, F) array per example or, for sparse features, a tuple of an (n_i m_i, F) matrix, whose
        row v m_i + z is that of the pair (v, z), and of (n_i, m_i)
    n_features : the expected F
    dtype : what the values will be stored as
    """
    check_examples(X, "(n, m, F) arrays, one per example", "pair of sides")
    matrices, shapes = [], []
    for i, x in enumerate(X):
        matrix, shape = _as_pairs(x, f"X[{i}]")
        matrices.append(matrix)
        shapes.append(shape)
    rows = stack_rows(matrices, None, n_features, dtype, noun="pair of sides", may_be_empty=True)
    n_left, n_right = (np.array(sizes, np.int64) for sizes in zip(*shapes, strict=True))
    return Pairs(rows, n_left, n_right)


def _as_pairs(x: Any, name: str) -> tuple[Any, tuple[int, int]]:
    if isinstance(x, tuple) and len(x) == 2 and np.shape(x[1]) == (2,):
        matrix, shape = x[0] if sp.issparse(x[0]) else np.asarray(x[0]), np.asarray(x[1])
        if shape.dtype.kind not in "iu" or (shape < 0).any():
            raise ValueError(f"{name} must give the numbers of left and right nodes, not {x[1]!r}.")
        n_left, n_right = shape.tolist()
        if matrix.ndim != 2 or matrix.shape[0] != n_left * n_right:
            raise ValueError(
                f"{name} must have {n_left} x {n_right} rows of features, one per pair, but has shape {matrix.shape}."
            )
        return matrix, (n_left, n_right)
    try:
        array = np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} has pairs of different widths; it must be an (n, m, F) array.") from None
    if array.ndim != 3:
        raise ValueError(
            f"{name} must be an (n, m, F) array, or a matrix with one row per pair and (n, m), but has shape "
            f"{array.shape}."
        )
    n_left, n_right, width = array.shape
    return array.reshape(n_left * n_right, width), (n_left, n_right)


def true_matches(y: Any, pairs: Pairs) -> np.ndarray:
    """Check matchings and concatenate the right nodes of all left nodes, -1 for none."""
    check_truths(y, len(pairs.n_left), "one matching per example", "example")
    sizes = zip(y, pairs.n_left, pairs.n_right, strict=True)
    return np.concatenate([_as_match(links, a, b, f"y[{i}]") for i, (links, a, b) in enumerate(sizes)])


def _as_match(links: Any, n_left: int, n_right: int, name: str) -> np.ndarray:
    """The right node of each left node, from the same or from pairs (left, right)."""
    array = np.array(sorted(links) if isinstance(links, (set, frozenset)) else links)
    if array.size == 0:
        array = array.reshape(0, 2).astype(np.int64)  # no links
    is_list_of_links = array.ndim == 2 and array.shape[1] == 2
    if array.dtype.kind not in "iu" or not (is_list_of_links or array.ndim == 1):
        raise TypeError(
            f"{name} must hold integers: the right node of each left node, or -1; or pairs of a left and a right node."
        )
    if is_list_of_links:
        left, right = array.T
        if ((left < 0) | (left >= n_left)).any():
            wrong = left[(left < 0) | (left >= n_left)][0]
            raise ValueError(f"{name} links the left node {wrong}, but there are {n_left} left nodes, from 0.")
        if len(np.unique(left)) < len(left):
            raise ValueError(f"{name} links the left node {_repeated(left)} twice.")
        if (right < 0).any():
            raise ValueError(f"{name} links the right node {right.min()}, but there are {n_right}, from 0.")
    else:
        if len(array) != n_left:
            raise ValueError(f"{name} has {len(array)} entries, but there are {n_left} left nodes.")
        left, right = np.flatnonzero(array >= 0), array[array >= 0]
        if (array < -1).any():
            raise ValueError(f"{name} contains {array.min()}; a left node without a link is -1.")
    if (right >= n_right).any():
        raise ValueError(f"{name} links the right node {right.max()}, but there are {n_right}, from 0.")
    if len(np.unique(right)) < len(right):
        raise ValueError(f"{name} links the right node {_repeated(right)} twice.")
    match = np.full(n_left, -1, np.int32)
    match[left] = right
    return match


def _repeated(values: np.ndarray) -> int:
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts > 1][0])


def link_weights(link_weight: Any, pairs: Pairs) -> np.ndarray:
    """Check the weights of wrong links and concatenate them."""
    shapes = np.column_stack([pairs.n_left, pairs.n_right])
    return flatten_weights(link_weight, shapes, "link_weight", "example")


def matching_costs(matches: np.ndarray, weights: np.ndarray, wrong: float, missed: float, pairs: Pairs) -> np.ndarray:
    """The costs of all parts, those of an example after those of the one before.

    A link that is not there costs `wrong` times its weight, a link that is missed `missed`: the latter is counted where
    the left node is linked elsewhere or to nobody.
    """
    blocks = []
    per_example = np.split(matches, pairs.left_offsets[1:-1]), np.split(weights, pairs.rows.offsets[1:-1])
    for match, weight, n_right in zip(*per_example, pairs.n_right, strict=True):
        misses = missed * (match >= 0)
        links = wrong * weight.reshape(len(match), n_right) + misses[:, np.newaxis]
        has_link = np.flatnonzero(match >= 0)
        links[has_link, match[has_link]] = 0
        blocks += [links.ravel(), misses]
    return np.concatenate(blocks)


def matching_problem(pairs: Pairs, matches: np.ndarray, costs: np.ndarray, dtype: Any) -> MatchingProblem:
    """Put the checked parts together."""
    return MatchingProblem(
        features=row_features(pairs.rows, dtype),
        pair_offsets=pairs.rows.offsets.astype(np.int64),
        left_offsets=pairs.left_offsets.astype(np.int64),
        n_right=pairs.n_right,
        matches=matches.astype(np.int32),
        costs=costs.astype(dtype),
        n_features=pairs.rows.matrix.shape[1],
    )
