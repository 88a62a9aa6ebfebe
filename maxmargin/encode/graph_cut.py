"""Graphs to a `GraphCutProblem`. Every check of the user's graphs is here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from maxmargin.costs import label_costs
from maxmargin.encode.base import LabellingEncoder, by_row
from maxmargin.encode.edges import check_edge_features, check_edges, first_repeated, show
from maxmargin.encode.features import append_constant, row_features
from maxmargin.encode.rows import Rows, check_examples, flatten_labels, flatten_weights, stack_rows
from maxmargin.runtime.blocks import Blocks
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
        graphs = graphs._replace(nodes=self.stored(graphs.nodes))
        return graph_problem(graphs, labels, costs, self.dtype, with_bias=self.has_bias, for_training=for_training)

    def layout(self, problem: GraphCutProblem) -> tuple[Any, ...]:
        return problem.offsets, problem.ends, problem.labels

    def names(self, w: np.ndarray) -> Bunch:
        width = self.n_features_in
        bias = {"bias": w[width : width + 1]} if self.has_bias else {}
        return Bunch(nodes=w[:width], edges=w[-self.n_edge_features_in :], **bias)

    def arrange(self, problem: GraphCutProblem, parts: Blocks) -> list[np.ndarray]:
        return [table.reshape(2, -1).T for table in by_row(parts, problem.offsets, 2)]  # stored label by label

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
        _as_ends(graph[1], f"X[{i}]", int(size)) for i, (graph, size) in enumerate(zip(X, nodes.lengths, strict=True))
    ]
    rows = [
        _as_edge_rows(graph[2] if len(graph) == 3 else np.ones(len(pairs)), pairs, i, dtype)
        for i, (graph, pairs) in enumerate(zip(X, ends, strict=True))
    ]
    width = next((row.shape[1] for row in rows if len(row)), n_edge_features or 1)
    if n_edge_features is not None and width != n_edge_features:
        raise ValueError(f"X has {width} edge features, but the model was fitted with {n_edge_features}.")
    for i, row in enumerate(rows):
        if len(row) and row.shape[1] != width:
            raise ValueError(f"X[{i}] has {row.shape[1]} edge features, but others have {width}.")
    offsets = np.concatenate([[0], np.cumsum([len(pairs) for pairs in ends])])
    matrix = np.concatenate([row.reshape(len(row), width) for row in rows])
    return Graphs(nodes, np.concatenate(ends), Rows(matrix, offsets))


def _as_ends(edges: Any, name: str, n_nodes: int) -> np.ndarray:
    ends = check_edges(edges, name, n_nodes)
    is_loop = ends[:, 0] == ends[:, 1]
    if is_loop.any():
        e = int(np.flatnonzero(is_loop)[0])
        raise ValueError(f"Edge {e} of {name} joins node {ends[e, 0]} to itself.")
    repeated = first_repeated(ends.min(axis=1) * n_nodes + ends.max(axis=1))
    if repeated:
        e, again = repeated
        raise ValueError(f"Edges {e} and {again} of {name}, {show(ends[e])} and {show(ends[again])}, are the same.")
    return ends


def _as_edge_rows(features: Any, ends: np.ndarray, i: int, dtype: Any) -> np.ndarray:
    rows = check_edge_features(features, len(ends), i, dtype)
    if (rows < 0).any():
        e, g = np.argwhere(rows < 0)[0].tolist()
        edge = f"edge {e} of X[{i}], {show(ends[e])}"
        raise ValueError(f"Feature {g} of {edge}, is {rows[e, g]:.3g}, but edge features must not be negative.")
    return rows


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
