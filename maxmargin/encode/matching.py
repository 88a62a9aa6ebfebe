"""Pairs of nodes to a `MatchingProblem`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.features import row_features
from maxmargin.encode.rows import Rows, as_stored, stack_rows
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


def stack_pairs(X: Any, n_features: int | None = None, dtype: Any = np.float64) -> Pairs:
    """Check the features of pairs and stack them.

    Parameters
    ----------
    X : a list with an (n_i, m_i, F) array per example or, for sparse features, a tuple of an (n_i m_i, F) matrix, whose
        row v m_i + z is that of the pair (v, z), and of (n_i, m_i)
    n_features : the expected F
    dtype : what the values will be stored as
    """
    if sp.issparse(X) or not isinstance(X, (Sequence, np.ndarray)):
        raise TypeError(f"X must be a list of (n, m, F) arrays, one per example, not a {type(X).__name__}.")
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
    n = len(pairs.n_left)
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise TypeError("y must be a list with one matching per example.")
    if len(y) != n:
        raise ValueError(f"X has {n} examples, but y has {len(y)}.")
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
    n = len(pairs.n_left)
    if link_weight is None:
        return np.ones(pairs.rows.offsets[-1])
    if len(link_weight) != n:
        raise ValueError(f"X has {n} examples, but link_weight has {len(link_weight)}.")
    arrays = [np.asarray(weight, np.float64) for weight in link_weight]
    for i, (weight, *shape) in enumerate(zip(arrays, pairs.n_left, pairs.n_right, strict=True)):
        if weight.shape != tuple(shape):
            raise ValueError(f"link_weight[{i}] must have the shape {tuple(map(int, shape))}, not {weight.shape}.")
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError(f"link_weight[{i}] must be finite and non-negative.")
    return np.concatenate([weight.ravel() for weight in arrays])


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


def stored_pairs(pairs: Pairs, sparse: bool) -> Pairs:
    """The pairs with their rows as a CSR or as a dense matrix."""
    return pairs._replace(rows=as_stored(pairs.rows, sparse))
