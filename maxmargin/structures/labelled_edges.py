"""Labels of nodes, and edges with features: what problems of chains and of trees have in common.

The parts are the T x L indicators of (node, label), then a row of L^2 for each row of features of edges. The weights
are those of nodes, shape (F, L), then those of edges, shape (F_edge, L^2), flat; of both only those of observed pairs,
if the features say so.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.views import matrix
from maxmargin.features import (
    join_layouts,
    layout_of_rows,
    norm_buffer,
    score_rows,
    spread_rows,
    squared_norm_rows,
    weight_shape,
)
from maxmargin.runtime.dispatch import generic, helper, implements
from maxmargin.supervision.exclusions import exclude_parts


@generic
def edge_rows(problem, i):
    """Where the rows of features of the edges of example i begin and end."""


@helper
def weight_shapes(problem):
    """The shapes of the weights of nodes and of those of edges."""
    n_labels = problem.supervision.cost.shape[1]
    nodes = weight_shape(problem.features, problem.n_features, n_labels)
    return nodes, weight_shape(problem.edge_features, problem.n_edge_features, n_labels * n_labels)


@helper
def node_and_edge_weights(problem, w):
    """The weights of nodes and those of edges, as views."""
    (rows, columns), (rows_of_edges, columns_of_edges) = weight_shapes(problem)
    return matrix(w, 0, rows, columns), matrix(w, rows * columns, rows_of_edges, columns_of_edges)


@helper
def nodes_and_edges(problem, i, parts):
    """The T x L parts of nodes of example i, and a row of L^2 for each row of features of edges, as views."""
    n_labels = problem.supervision.cost.shape[1]
    length = problem.starts[i + 1] - problem.starts[i]
    lo, hi = edge_rows(problem, i)
    return matrix(parts, 0, length, n_labels), matrix(parts, length * n_labels, hi - lo, n_labels * n_labels)


@helper
def nodes_and_tables(problem, i, parts):
    """As `nodes_and_edges`, with the parts of edges in one flat array."""
    n_labels = problem.supervision.cost.shape[1]
    length = problem.starts[i + 1] - problem.starts[i]
    lo, hi = edge_rows(problem, i)
    first = length * n_labels
    return matrix(parts, 0, length, n_labels), parts[first : first + (hi - lo) * n_labels * n_labels]


def norm_buffers(problem):
    """The buffers of direction norms, as fields of a workspace."""
    n_labels, dtype = problem.supervision.cost.shape[1], problem.supervision.cost.dtype
    return {
        "spread": norm_buffer(problem.features, problem.n_features, n_labels, dtype),
        "edge_spread": norm_buffer(problem.edge_features, problem.n_edge_features, n_labels**2, dtype),
    }


@helper
def score_features(problem, w, i, theta):
    """Theta = B_i' w; return its views, as `nodes_and_edges`."""
    node_weights, edge_weights = node_and_edge_weights(problem, w)
    nodes, edges = nodes_and_edges(problem, i, theta)
    lo, hi = edge_rows(problem, i)
    score_rows(problem.features, node_weights, problem.starts[i], problem.starts[i + 1], nodes)
    if lo < hi:
        score_rows(problem.edge_features, edge_weights, lo, hi, edges)
    return nodes, edges


def have_labelled_edges(*classes: type) -> None:
    """Say of classes of problems that their weights and parts are those of labelled nodes and edges."""

    @implements(generics.true_outputs, *classes)
    def true_labels(problem):
        return Blocks(problem.supervision.labels, problem.starts)

    @implements(generics.new_weights, *classes)
    def zero_weights(problem):
        return np.zeros(sum(map(math.prod, weight_shapes(problem))), problem.supervision.cost.dtype)

    @implements(generics.layout, *classes)
    def join_nodes_and_edges(problem):
        n_labels = problem.supervision.cost.shape[1]
        nodes = layout_of_rows(problem.features, problem.n_features, n_labels)
        return join_layouts(nodes, layout_of_rows(problem.edge_features, problem.n_edge_features, n_labels**2))

    @implements(generics.spread, *classes)
    def spread_features(problem, w, i, delta, scale):
        node_weights, edge_weights = node_and_edge_weights(problem, w)
        nodes, edges = nodes_and_edges(problem, i, delta)
        lo, hi = edge_rows(problem, i)
        spread_rows(problem.features, node_weights, problem.starts[i], problem.starts[i + 1], nodes, scale)
        spread_rows(problem.edge_features, edge_weights, lo, hi, edges, scale)

    @implements(generics.squared_norm, *classes)
    def features_squared_norm(problem, i, delta, work):
        nodes, edges = nodes_and_edges(problem, i, delta)
        lo, hi = edge_rows(problem, i)
        total = squared_norm_rows(problem.features, i, problem.starts[i], problem.starts[i + 1], nodes, work.spread)
        return total + squared_norm_rows(problem.edge_features, i, lo, hi, edges, work.edge_spread)

    implements(generics.restrict, *classes)(exclude_parts)
