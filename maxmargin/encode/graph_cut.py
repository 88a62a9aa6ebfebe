"""Graphs to a `GraphCutProblem`. Every check of the user's graphs is here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from maxmargin.costs import label_costs
from maxmargin.encode.base import LabellingEncoder
from maxmargin.encode.features import append_constant, row_features
from maxmargin.encode.rows import (
    Rows,
    as_stored,
    check_examples,
    flatten_labels,
    flatten_weights,
    stack_rows,
)
from maxmargin.structures.graph_cut import GraphCutProblem


class Graphs(NamedTuple):
    """Checked graphs: rows of node features, the ends of edges, and rows of edge features."""

    nodes: Rows
    ends: np.ndarray  # (M, 2) int64, nodes counted from the first one of the graph
    edges: Rows

    @property
    def ends_in_all(self) -> np.ndarray:
        """The ends of edges with nodes counted over all graphs."""
        return self.ends + np.repeat(self.nodes.offsets[:-1], self.edges.lengths)[:, np.newaxis]


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphCutEncoder(LabellingEncoder):
    """The encoder of graphs of two labels."""

    published = ("classes", "n_features_in", "n_edge_features_in")

    n_edge_features_in: int

    @classmethod
    def learn(
        cls, X: Any, y: Any, *, dtype: Any, fit_bias: bool, cost: Any, class_weight: Any, node_weight: Any = None
    ) -> tuple[GraphCutEncoder, GraphCutProblem]:
        """The encoder and the problem of training graphs; arguments are those of `GraphCutSVM`."""
        graphs = stack_graphs(X, dtype=dtype)
        classes, labels = np.unique(flatten_labels(y, graphs.nodes, "graph"), return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"y must hold labels of two classes, but has {len(classes)}: {classes[:5].tolist()}.")
        encoder = cls.of(
            graphs.nodes, dtype, has_bias=fit_bias, classes=classes, n_edge_features_in=graphs.edges.matrix.shape[1]
        )
        costs = wrong_label_costs(graphs, labels, classes, cost, class_weight, node_weight)
        return encoder, encoder._assemble(graphs, labels, costs, for_training=True)

    def problem(self, X: Any, y: Any = None, *, node_weight: Any = None) -> GraphCutProblem:
        graphs = stack_graphs(X, self.n_features_in, self.n_edge_features_in, self.dtype)
        weights = flatten_weights(node_weight, graphs.nodes.lengths, "node_weight", "graph")
        return self._assemble(graphs, self.truth(y, graphs.nodes, "graph"), weights)

    def _assemble(
        self, graphs: Graphs, labels: np.ndarray, costs: np.ndarray, for_training: bool = False
    ) -> GraphCutProblem:
        graphs = graphs._replace(nodes=as_stored(graphs.nodes, self.stores_sparse))
        return graph_problem(graphs, labels, costs, self.dtype, with_bias=self.has_bias, for_training=for_training)

    def layout(self, problem: GraphCutProblem) -> tuple[Any, ...]:
        return problem.offsets, problem.ends, problem.labels

    def names(self, w: np.ndarray) -> Bunch:
        width = self.n_features_in
        bias = {"bias": w[width : width + 1]} if self.has_bias else {}
        return Bunch(nodes=w[:width], edges=w[-self.n_edge_features_in :], **bias)

    def importance(self, problem: GraphCutProblem) -> np.ndarray:
        return problem.cost.astype(np.float64)


def wrong_label_costs(
    graphs: Graphs, labels: np.ndarray, classes: np.ndarray, cost: Any, class_weight: Any, node_weight: Any
) -> np.ndarray:
    """The cost of the wrong label of every node; arguments are those of `GraphCutSVM`."""
    scales = flatten_weights(node_weight, graphs.nodes.lengths, "node_weight", "graph")
    by_class = np.bincount(labels, scales, minlength=2)
    if not by_class.all():
        raise ValueError(f"node_weight is zero for all nodes of the class {classes[by_class == 0][0].item()!r}.")
    costs = label_costs(cost, classes, by_class, class_weight)
    if isinstance(cost, str) and cost == "normalized_hamming":
        totals = np.add.reduceat(scales, graphs.nodes.offsets[:-1])
        scales = scales / np.repeat(np.where(totals > 0, totals, 1), graphs.nodes.lengths)
    return scales * costs[labels, 1 - labels]


def stack_graphs(
    X: Any, n_features: int | None = None, n_edge_features: int | None = None, dtype: Any = np.float64
) -> Graphs:
    """Check graphs and stack them.

    Parameters
    ----------
    X : list of pairs (nodes, edges) or triples (nodes, edges, edge features): an array or sparse matrix (V_i, F), pairs
        of nodes (E_i, 2), and an array (E_i, G) without negative numbers, a column of ones by default
    n_features, n_edge_features : the expected F and G
    dtype : what the values will be stored as

    Examples
    --------
    >>> from maxmargin.encode.graph_cut import stack_graphs
    >>> graphs = stack_graphs([([[1.0], [2.0]], [(0, 1)]), ([[3.0]], [])])
    >>> graphs.nodes.offsets.tolist(), graphs.ends.tolist(), graphs.edges.matrix.tolist()
    ([0, 2, 3], [[0, 1]], [[1.0]])
    """
    check_examples(X, "graphs", "graph")
    for i, graph in enumerate(X):
        if not isinstance(graph, (tuple, list)) or len(graph) not in (2, 3):
            raise TypeError(f"X[{i}] must be a pair (nodes, edges) or a triple (nodes, edges, edge features).")
        if len(graph) != len(X[0]):
            raise ValueError(f"X[{i}] has {len(graph)} parts, but X[0] has {len(X[0])}: edge features for all or none.")
    for i, graph in enumerate(X):
        if not sp.issparse(graph[0]) and len(graph[0]) == 0:
            raise ValueError(f"X[{i}] has no nodes.")
    nodes = stack_rows([graph[0] for graph in X], None, n_features, dtype)
    ends = [
        _as_ends(graph[1], int(n_nodes), i) for i, (graph, n_nodes) in enumerate(zip(X, nodes.lengths, strict=True))
    ]
    rows = [
        _as_edge_rows(graph[2], pairs, i) if len(graph) == 3 else np.ones((len(pairs), 1))
        for i, (graph, pairs) in enumerate(zip(X, ends, strict=True))
    ]
    width = next((row.shape[1] for row, pairs in zip(rows, ends, strict=True) if len(pairs)), 1)
    if n_edge_features is not None:
        if width != n_edge_features and any(len(pairs) for pairs in ends):
            raise ValueError(f"X has {width} edge features, but the model was fitted with {n_edge_features}.")
        width = n_edge_features
    for i, (row, pairs) in enumerate(zip(rows, ends, strict=True)):
        if len(pairs) and row.shape[1] != width:
            raise ValueError(f"X[{i}] has {row.shape[1]} edge features, but others have {width}.")
        _check_edge_rows(row, pairs, i, dtype)
    offsets = np.concatenate([[0], np.cumsum([len(pairs) for pairs in ends])])
    matrix = np.concatenate([row.reshape(len(row), width) if len(row) else np.empty((0, width)) for row in rows])
    return Graphs(nodes, np.concatenate(ends), Rows(matrix, offsets))


def _as_ends(edges: Any, n_nodes: int, i: int) -> np.ndarray:
    ends = np.asarray(edges)
    if ends.size == 0:
        return np.empty((0, 2), np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(f"The edges of X[{i}] must be an (E, 2) array of integers, pairs of nodes.")
    ends = ends.astype(np.int64)
    is_missing = ((ends < 0) | (ends >= n_nodes)).any(axis=1)
    if is_missing.any():
        e = int(np.flatnonzero(is_missing)[0])
        raise ValueError(f"Edge {e} of X[{i}] is {_pair(ends[e])}, but the nodes are 0 to {n_nodes - 1}.")
    is_loop = ends[:, 0] == ends[:, 1]
    if is_loop.any():
        e = int(np.flatnonzero(is_loop)[0])
        raise ValueError(f"Edge {e} of X[{i}] joins node {ends[e, 0]} to itself.")
    keys = ends.min(axis=1) * n_nodes + ends.max(axis=1)
    order = np.argsort(keys, kind="stable")
    repeats = np.flatnonzero(np.diff(keys[order]) == 0)
    if repeats.size:
        e, again = (int(order[repeats[0] + k]) for k in (0, 1))
        raise ValueError(f"Edges {e} and {again} of X[{i}], {_pair(ends[e])} and {_pair(ends[again])}, are the same.")
    return ends


def _pair(ends: np.ndarray) -> str:
    return f"({ends[0]}, {ends[1]})"


def _as_edge_rows(features: Any, ends: np.ndarray, i: int) -> np.ndarray:
    rows = np.asarray(features)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if rows.ndim != 2 or (rows.size and rows.dtype.kind not in "biuf"):
        raise TypeError(f"The edge features of X[{i}] must be an (E, G) array of numbers.")
    if len(rows) != len(ends):
        raise ValueError(f"X[{i}] has {len(ends)} edges, but {len(rows)} rows of edge features.")
    if len(ends) and rows.shape[1] == 0:
        raise ValueError(f"X[{i}] must have at least one edge feature.")
    return rows.astype(np.float64)


def _check_edge_rows(rows: np.ndarray, ends: np.ndarray, i: int, dtype: Any) -> None:
    is_bad = ~((rows >= 0) & (rows <= np.finfo(dtype).max))
    if is_bad.any():
        e, g = (int(k) for k in np.argwhere(is_bad)[0])
        raise ValueError(
            f"Feature {g} of edge {e} of X[{i}], {_pair(ends[e])}, is {rows[e, g]:.3g}: edge features must be finite "
            "and not negative."
        )


def graph_problem(
    graphs: Graphs, labels: np.ndarray, cost: np.ndarray, dtype: Any, *, with_bias: bool, for_training: bool
) -> GraphCutProblem:
    """Put checked graphs, labels 0 and 1 of all nodes and costs of their wrong labels together."""
    nodes, edges = graphs.nodes, graphs.edges
    n, n_nodes, n_edges = len(nodes.lengths), int(nodes.offsets[-1]), len(graphs.ends)
    if with_bias:
        nodes = append_constant(nodes)

    tails = graphs.ends_in_all.T.ravel()  # of the arcs of all edges, first end to second, then the other way
    order = np.argsort(tails, kind="stable")
    at = np.empty(2 * n_edges, np.int64)
    at[order] = np.arange(2 * n_edges)
    there, back = np.split(at, 2)
    head, sister = np.empty(2 * n_edges, np.int64), np.empty(2 * n_edges, np.int64)
    head[there], head[back] = graphs.ends[:, 1], graphs.ends[:, 0]
    before = 2 * np.repeat(edges.offsets[:-1], edges.lengths)  # arcs of earlier graphs
    sister[there], sister[back] = back - before, there - before
    ends_of_rows = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n_nodes))])
    graph = np.repeat(np.arange(n), nodes.lengths + 1)
    first = ends_of_rows[np.arange(n_nodes + n) - graph] - 2 * edges.offsets[graph]

    return GraphCutProblem(
        features=row_features(nodes, dtype, with_grams=for_training),
        edge_features=row_features(edges._replace(matrix=-edges.matrix), dtype, with_grams=for_training),
        offsets=nodes.offsets.astype(np.int64),
        edge_offsets=edges.offsets.astype(np.int64),
        ends=graphs.ends.astype(np.int32),
        labels=labels.astype(np.int32),
        cost=np.ascontiguousarray(cost, dtype),
        first=first.astype(np.int32),
        head=head.astype(np.int32),
        sister=sister.astype(np.int32),
        arc=(there - before).astype(np.int32),
        n_features=nodes.matrix.shape[1],
        n_edge_features=edges.matrix.shape[1],
    )
