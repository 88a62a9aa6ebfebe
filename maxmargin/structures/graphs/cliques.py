"""Cliques: nodes or edges that have parts, and weights that they share with others of their type."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_choice
from maxmargin.features import BinaryFeatures, DenseFeatures, SparseFeatures
from maxmargin.features.linear_map import add_row, clear_row, dot_row, squared_sums
from maxmargin.runtime.dispatch import generic, helper, implements

TIES = ("full", "symmetric", "potts")


class Cliques(NamedTuple):
    """The nodes, or the edges, of all graphs: of graph i, those starts[i]:starts[i + 1]."""

    features: Any
    n_features: int
    starts: np.ndarray  # (n + 1,) int64
    type: np.ndarray  # (M,) int32, of each
    row: np.ndarray  # (M,) int64, its row of features, which cliques can share
    part: np.ndarray  # (M,) int64, its first part, counted in its graph
    n_parts: np.ndarray  # (types,) int64
    weight: np.ndarray  # (types,) int64, the first weight of a type
    first: np.ndarray  # (types,) int64, where the columns of its parts begin
    column: np.ndarray  # int64, of each part of each type, -1 for none


class EdgeType(NamedTuple):
    """Edges that share weights: the types of nodes that they join, in this order, and which pairs have weights.

    `ties` is "full" (a weight for each pair of states and feature), "symmetric" (the same for both orders of two
    states) or "potts" (one weight per feature, for equal states).

    Examples
    --------
    >>> from maxmargin.structures.graphs.cliques import EdgeType
    >>> EdgeType(first=0, second=0, ties="potts").ties
    'potts'
    """

    first: int = 0
    second: int = 0
    ties: str = "full"


def make_cliques(
    features: object,
    width: int,
    starts: np.ndarray,
    clique_type: np.ndarray,
    row: np.ndarray | None,
    part: np.ndarray,
    columns: list[np.ndarray],
    first_weight: int,
) -> Cliques:
    """Put cliques together, given their first parts and, for each type, the columns of its parts."""
    n_weights = [width * (int(column.max()) + 1) for column in columns]
    n_parts = [len(column) for column in columns]
    return Cliques(
        features=features,
        n_features=width,
        starts=np.ascontiguousarray(starts, np.int64),
        type=clique_type,
        row=np.arange(len(clique_type)) if row is None else np.ascontiguousarray(row, np.int64),
        part=part,
        n_parts=np.array(n_parts, np.int64),
        weight=(first_weight + np.cumsum([0, *n_weights])).astype(np.int64),
        first=np.cumsum([0, *n_parts], dtype=np.int64),
        column=np.concatenate([np.zeros(0, int), *columns]).astype(np.int64),
    )


def columns_of(n_first: int, n_second: int, ties: str) -> np.ndarray:
    """The column of each pair of states."""
    check_choice("ties", ties, TIES)
    if ties == "full":
        return np.arange(n_first * n_second)
    if n_first != n_second:
        raise ValueError(f"{ties} weights need as many states at both ends of an edge, not {n_first} and {n_second}.")
    if ties == "potts":
        return np.eye(n_first, dtype=int).ravel() - 1
    a, b = np.divmod(np.arange(n_first**2), n_first)
    low, high = np.minimum(a, b), np.maximum(a, b)
    return low * n_first + high  # those below the diagonal are not used


def squared_diameters(cliques: Cliques) -> np.ndarray:
    """Upper bounds of how far apart the features of two outputs of each example are, as far as these cliques go."""
    n, n_types = len(cliques.starts) - 1, len(cliques.n_parts)
    if not len(cliques.row):
        return np.zeros(n)
    group = np.repeat(np.arange(n), np.diff(cliques.starts)) * n_types + cliques.type
    shape = n * n_types, int(cliques.row.max()) + 1
    counts = sp.csr_array((np.ones(len(group)), (group, cliques.row)), shape)
    return 2 * squared_sums(cliques.features, counts).reshape(n, n_types).sum(axis=1)


@generic
def score_column(features, t, w, at, width):
    """Return the score of row t by the column of weights w[at : at + width]."""


@generic
def squared_norm_cliques(features, cliques, i, delta, buffer):
    """Return ||B_i delta||^2, as far as these cliques go, of which these are the features.

    `buffer`, as the weights, is zero before and after.
    """


@helper
def size_of(cliques, c):
    """The number of parts of clique c."""
    return cliques.n_parts[cliques.type[c]]


@helper
def copy_parts(cliques, c, values, out):
    """Write the values of the parts of clique c; return how many there are."""
    size = size_of(cliques, c)
    for p in range(size):
        out[p] = values[cliques.part[c] + p]
    return size


@helper
def score_clique(cliques, w, c, theta):
    """Theta, the scores of the parts of clique c."""
    width = cliques.n_features
    of_type = cliques.type[c]
    for p in range(cliques.n_parts[of_type]):
        column = cliques.column[cliques.first[of_type] + p]
        theta[p] = 0
        if column >= 0:
            at = cliques.weight[of_type] + column * width
            theta[p] = score_column(cliques.features, cliques.row[c], w, at, width)


@implements(score_column, DenseFeatures, SparseFeatures, BinaryFeatures)
def score_linear_column(features, t, w, at, width):
    return dot_row(features, t, w[at : at + width])


@helper
def spread_clique(cliques, w, c, delta, scale):
    """W += scale * B_c delta, for a direction of the parts of clique c."""
    width = cliques.n_features
    of_type = cliques.type[c]
    for p in range(cliques.n_parts[of_type]):
        column = cliques.column[cliques.first[of_type] + p]
        if column >= 0 and delta[p] != 0:
            at = cliques.weight[of_type] + column * width
            add_row(cliques.features, cliques.row[c], scale * delta[p], w[at : at + width])


@helper
def clear_clique(cliques, w, c, delta):
    """Set to zero what `spread_clique` has changed; return the sum of squares of what was there."""
    width = cliques.n_features
    of_type = cliques.type[c]
    total = 0.0
    for p in range(cliques.n_parts[of_type]):
        column = cliques.column[cliques.first[of_type] + p]
        if column >= 0 and delta[p] != 0:
            at = cliques.weight[of_type] + column * width
            total += clear_row(cliques.features, cliques.row[c], w[at : at + width])
    return total


@helper
def score_cliques(cliques, w, i, theta):
    """The scores of the cliques of example i."""
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        score_clique(cliques, w, c, theta[cliques.part[c] : cliques.part[c] + size_of(cliques, c)])


@helper
def spread_cliques(cliques, w, i, delta, scale):
    """W += scale * B_i delta, as far as these cliques go."""
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        spread_clique(cliques, w, c, delta[cliques.part[c] : cliques.part[c] + size_of(cliques, c)], scale)


@helper
def clear_cliques(cliques, w, i, delta):
    """As `clear_clique`, for all cliques of example i."""
    total = 0.0
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        total += clear_clique(cliques, w, c, delta[cliques.part[c] : cliques.part[c] + size_of(cliques, c)])
    return total


@implements(squared_norm_cliques, DenseFeatures, SparseFeatures, BinaryFeatures)
def squared_norm_linear_cliques(features, cliques, i, delta, buffer):
    spread_cliques(cliques, buffer, i, delta, 1.0)
    return clear_cliques(cliques, buffer, i, delta)
