"""The coefficients of the entropies of relaxed objectives (`relaxed`), which are sums over nodes and edges."""

from __future__ import annotations

import numpy as np

from maxmargin.solvers.oriented_trees import tree_probabilities
from maxmargin.structures.pairwise import PairwiseProblem


def gini(problem: PairwiseProblem) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of Gini's entropy of nodes and edges."""
    return np.ones(len(problem.labels)), np.tile([1.0, 0.0, 0.0], (len(problem.ends), 1))


def oriented_trees(problem: PairwiseProblem) -> tuple[np.ndarray, np.ndarray]:
    """Those of the mean entropy of spanning trees: of the root, and of each node given its parent.

    Graphs of the same edges share their trees.
    """
    nodes, edges = problem.nodes, problem.edges
    known: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]] = {}
    roots, children = [], []
    for n_nodes, ends in zip(np.diff(nodes.offsets), np.split(problem.ends, edges.offsets[1:-1]), strict=True):
        key = int(n_nodes), ends.tobytes()
        if key not in known:
            known[key] = tree_probabilities(int(n_nodes), ends)
        roots.append(known[key][0])
        children.append(known[key][1])
    sizes = nodes.n_parts[nodes.kind]
    ends = problem.ends + np.repeat(nodes.offsets[:-1], np.diff(edges.offsets))[:, np.newaxis]
    child = np.concatenate(children)
    given = sizes[ends] * child[:, ::-1]  # k_i, and how often i is the parent
    both = np.prod(sizes[ends], axis=1) * child.sum(axis=1)
    return sizes * np.concatenate(roots), np.column_stack([both, given])


ENTROPIES = {"gini": gini, "oriented_trees": oriented_trees}
