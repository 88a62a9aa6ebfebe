"""Graphs whose nodes and edges may be of several types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.encode.inputs.edges import Graphs, check_ends, join_graphs
from maxmargin.encode.inputs.example_checks import check_examples, flatten_labels
from maxmargin.wording import name_type


class Graph(NamedTuple):
    """A graph with features: one example of `GraphSVM` and `GraphCRF`.

    Nodes of a type share weights and labels. Edges share weights if their own types and those of the nodes that they
    join are the same.

    Attributes
    ----------
    features : (V, F) array or sparse matrix, a row per node
    edges
        (E, 2) integers, the two nodes of each edge.
    edge_features : (E, G) array, a row per edge, or None
    node_types : (V,) integers or strings, or None if all nodes are of one type
    edge_types : (E,) integers or strings, or None if all edges are of one type

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Graph
    >>> Graph(np.eye(3), edges=[(0, 1), (1, 2), (2, 0)]).edge_features is None
    True
    """

    features: Any
    edges: Any
    edge_features: Any = None
    node_types: Any = None
    edge_types: Any = None


class Typed(NamedTuple):
    """Checked graphs, and the names of the types of all nodes and edges."""

    graphs: Graphs
    node_types: np.ndarray
    edge_types: np.ndarray


def stack_graphs(
    X: Sequence[tuple[object, ...]], n_features: int | None = None, n_edge_features: int | None = None
) -> Typed:
    """Check graphs, `Graph` or tuples of its first two to five entries, and stack them."""
    check_examples(X, "graphs", "graph")
    for i, graph in enumerate(X):
        if not isinstance(graph, (tuple, list)) or not 2 <= len(graph) <= 5:
            raise TypeError(f"X[{i}] must be a Graph, or a tuple (features, edges), not {name_type(graph)}.")
    all_graphs = [Graph(*graph) for graph in X]
    graphs = join_graphs([graph[:3] for graph in all_graphs], "graph", check_ends, n_features, n_edge_features)
    names = []
    for noun, rows in (("node", graphs.nodes), ("edge", graphs.edges)):
        given = [getattr(graph, f"{noun}_types") for graph in all_graphs]
        filled = [[0] * n if types is None else types for types, n in zip(given, rows.lengths, strict=True)]
        for i, (types, n) in enumerate(zip(filled, rows.lengths, strict=True)):
            if np.ndim(types) == 1 and len(types) != n:
                raise ValueError(f"{noun}_types of X[{i}] must name {n} types, one per {noun}, not {len(types)}.")
        names.append(flatten_labels(filled, rows.lengths, "graph", f"{noun}_types"))
    return Typed(graphs, *names)
