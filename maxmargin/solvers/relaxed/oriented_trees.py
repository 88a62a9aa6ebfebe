"""How often oriented spanning trees have a node as root, or one node as the parent of another.

Trees are drawn uniformly from all spanning trees of a component, their roots uniformly from its nodes. With the root r,
by the matrix-tree theorem, j is the parent of i with the probability G_r(i, i) - G_r(i, j), where G_r is the inverse of
the Laplacian without r. In terms of the pseudo-inverse K, G_r(i, j) = K_ij - K_ir - K_rj + K_rr, and as the rows of K
add up to zero, the mean over all roots is K_ii - K_ij. K is G_r, for any r and with zeros there, made to add up to zero
along rows and columns: with the mean g of the columns of G_r, K_ii - K_ij = G_r(i, i) - G_r(i, j) - g_i + g_j. Only the
entries of nodes and edges are kept, some columns at a time.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, laplacian, minimum_spanning_tree
from scipy.sparse.linalg import splu

COLUMNS = 256  # of an inverse at a time


def root_probabilities(n_nodes: int, ends: np.ndarray) -> np.ndarray:
    """That of each node as the root of its component."""
    _, component = connected_components(_joins(n_nodes, ends), directed=False)
    return 1 / np.bincount(component)[component]


def _joins(n_nodes: int, ends: np.ndarray) -> sp.csr_array:
    return sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n_nodes, n_nodes)).tocsr()


def tree_probabilities(n_nodes: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of each node as a root, and of each edge with its first, or its second, end as the child.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.relaxed.oriented_trees import tree_probabilities
    >>> roots, edges = tree_probabilities(3, np.array([(0, 1), (1, 2), (2, 0)]))
    >>> roots.round(3), edges.round(3)[0]  # an edge is in two of three trees
    (array([0.333, 0.333, 0.333]), array([0.333, 0.333]))
    """
    joins, roots = _joins(n_nodes, ends), root_probabilities(n_nodes, ends)
    _, grounded = np.unique(connected_components(joins, directed=False)[1], return_index=True)
    free = np.setdiff1d(np.arange(n_nodes), grounded)
    if not free.size:
        return roots, np.zeros((len(ends), 2))
    solve = splu(laplacian(joins + joins.T).tocsc()[free][:, free].tocsc(), permc_spec="MMD_AT_PLUS_A").solve
    mean, own, cross = np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(len(ends))
    mean[free] = solve(roots[free])
    for chosen in np.array_split(free, -(-free.size // COLUMNS)):
        column = np.full(n_nodes, -1)
        column[chosen] = np.arange(chosen.size)
        G = np.zeros((n_nodes, chosen.size))
        G[free] = solve(np.eye(chosen.size)[column[free]] * (column[free] >= 0)[:, np.newaxis])
        own[chosen] = G[chosen, column[chosen]]
        here = np.flatnonzero(column[ends[:, 1]] >= 0)
        cross[here] = G[ends[here, 0], column[ends[here, 1]]]
    return roots, (own - mean)[ends] - cross[:, np.newaxis] + mean[ends[:, ::-1]]


def heaviest_forest(n_nodes: int, ends: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The edges of the spanning forest of the largest total weight.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.relaxed.oriented_trees import heaviest_forest
    >>> heaviest_forest(3, np.array([(0, 1), (1, 2), (2, 0)]), np.array([0.1, -0.2, 0.3]))
    array([0, 2])
    """
    cost = 1 + weight.max(initial=0) - weight  # an entry of zero would be no edge
    joins = sp.coo_array((cost, (ends.min(axis=1), ends.max(axis=1))), (n_nodes, n_nodes))
    forest = minimum_spanning_tree(joins.tocsr()).tocoo()
    return np.flatnonzero(np.isin(_number(joins), _number(forest)))


def _number(joins: sp.coo_array) -> np.ndarray:
    return np.asarray(joins.row, np.int64) * joins.shape[1] + joins.col
