"""How often oriented spanning trees have a node as root, or one node as the parent of another.

Trees are drawn uniformly from all spanning trees of a component, their roots uniformly from its nodes. With the root r,
by the matrix-tree theorem, j is the parent of i with the probability G_r(i, i) - G_r(i, j), where G_r is the inverse of
the Laplacian without r. In terms of the pseudo-inverse K, G_r(i, j) = K_ij - K_ir - K_rj + K_rr, and as the rows of K
add up to zero, the mean over all roots is K_ii - K_ij.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components


def tree_probabilities(n_nodes: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of each node as a root, and of each edge with its first, or its second, end as the child.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.oriented_trees import tree_probabilities
    >>> roots, edges = tree_probabilities(3, np.array([(0, 1), (1, 2), (2, 0)]))
    >>> roots.round(3), edges.round(3)[0]  # an edge is in two of three trees
    (array([0.333, 0.333, 0.333]), array([0.333, 0.333]))
    """
    joins = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n_nodes, n_nodes))
    _, component = connected_components(joins, directed=False)
    roots = 1 / np.bincount(component)[component]
    edges = np.zeros((len(ends), 2))
    for k in range(component.max() + 1):
        mine = np.flatnonzero(component == k)
        place = np.zeros(n_nodes, int)
        place[mine] = np.arange(mine.size)
        chosen = np.flatnonzero(component[ends[:, 0]] == k)
        a, b = place[ends[chosen]].T
        laplacian = np.full((mine.size, mine.size), 1 / mine.size)  # which makes it regular, and adds as much to K
        np.add.at(laplacian, (np.r_[a, b], np.r_[a, b]), 1)
        np.add.at(laplacian, (np.r_[a, b], np.r_[b, a]), -1)
        K = np.linalg.inv(laplacian)
        edges[chosen] = np.stack([K[a, a], K[b, b]], axis=1) - K[a, b][:, np.newaxis]
    return roots, edges
