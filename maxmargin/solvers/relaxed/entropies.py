"""The coefficients of the entropies of relaxed objectives, which are sums over nodes and edges."""

from __future__ import annotations

import numpy as np

from maxmargin.solvers.relaxed.oriented_trees import heaviest_forest, root_probabilities, tree_probabilities
from maxmargin.structures.graphs.graph_problem import LabelledGraphs, ends_in_all


def gini(graphs: LabelledGraphs) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of Gini's entropy of nodes and edges."""
    return np.ones(len(graphs.nodes.row)), np.tile([1.0, 0.0, 0.0], (len(graphs.ends), 1))


def oriented_trees(
    graphs: LabelledGraphs, child: np.ndarray | None = None, epsilon: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the mean entropy of spanning trees: of the root, and of each node given its parent.

    `child` holds how often each edge has its first, or its second, end as the child: by default in all trees alike. Of
    the entropy of a pair, the share `epsilon` of the parent's is taken away.
    """
    sizes, ends = graphs.nodes.n_parts[graphs.nodes.type], ends_in_all(graphs)
    child = uniform_trees(graphs) if child is None else child
    given = epsilon * sizes[ends] * child[:, ::-1]  # k_i, and how often i is the parent
    both = np.prod(sizes[ends], axis=1) * child.sum(axis=1)
    return sizes * root_probabilities(len(sizes), ends), np.column_stack([both, given])


def uniform_trees(graphs: LabelledGraphs) -> np.ndarray:
    """How often edges have either end as the child, over all spanning trees and roots; equal graphs share them."""
    known: dict[tuple[int, bytes], np.ndarray] = {}
    found = []
    counts = np.diff(graphs.nodes.starts).tolist()
    for n_nodes, ends in zip(counts, np.split(graphs.ends, graphs.edges.starts[1:-1]), strict=True):
        key = n_nodes, ends.tobytes()
        if key not in known:
            known[key] = tree_probabilities(n_nodes, ends)[1]
        found.append(known[key])
    return np.concatenate(found)


def tightest_trees(
    graphs: LabelledGraphs, node_squares: np.ndarray, edge_squares: np.ndarray, epsilon: float = 1.0
) -> np.ndarray:
    """As `uniform_trees`, for the one tree of each graph with the lowest entropy at feasible mean parts.

    Given are ||mu_c||^2. As A mu = 0, node i of a tree takes epsilon h_i away from each of its children, and it has as
    many as edges, less one unless it is the root. So the mean entropy over all roots is a constant less the sum of
    epsilon (h_i + h_j) - h_e over the edges of the tree.
    """
    sizes, ends = graphs.nodes.n_parts[graphs.nodes.type], ends_in_all(graphs)
    entropy = epsilon * sizes * (1 - node_squares)
    information = entropy[ends].sum(axis=1) - np.prod(sizes[ends], axis=1) * (1 - edge_squares)
    chosen = heaviest_forest(len(sizes), ends, information)
    child = np.zeros(ends.shape)
    child[chosen] = tree_probabilities(len(sizes), ends[chosen])[1]
    return child
