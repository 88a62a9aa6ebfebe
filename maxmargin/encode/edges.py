"""Checks of edges between the nodes of trees, graphs and skeletons."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.rows import check_array, locate


def check_edges(edges: Any, name: str, n_nodes: int) -> np.ndarray:
    """Check edges, pairs of nodes that are there."""
    kind = "an (E, 2) array of integers, pairs of nodes"
    ends = check_array(edges, f"The edges of {name}", kind, (None, 2), (0,), dtypes="iu").reshape(-1, 2)
    is_missing = ((ends < 0) | (ends >= n_nodes)).any(axis=1)
    if is_missing.any():
        e = int(np.flatnonzero(is_missing)[0])
        raise ValueError(f"Edge {e} of {name} is {show(ends[e])}, but the nodes are 0 to {n_nodes - 1}.")
    return ends.astype(np.int64)


def show(ends: np.ndarray) -> str:
    """An edge in messages."""
    return f"({ends[0]}, {ends[1]})"


def first_repeated(keys: np.ndarray) -> tuple[int, int] | None:
    """The places of the first two equal keys, if there are any."""
    order = np.argsort(keys, kind="stable")
    repeats = np.flatnonzero(np.diff(keys[order]) == 0)
    return (int(order[repeats[0]]), int(order[repeats[0] + 1])) if repeats.size else None


def check_parents(edges: Any, name: str, n_nodes: int) -> np.ndarray:
    """Check the edges of a tree, pairs of parent and child; cycles are found by `children_first`."""
    ends = check_edges(edges, name, n_nodes)
    repeated = first_repeated(ends[:, 1])
    if repeated:
        (first, child), (second, _) = ends[[*repeated]].tolist()
        if first == second:
            raise ValueError(f"{name} has the edge ({first}, {child}) twice.")
        raise ValueError(
            f"Node {child} of {name} has two parents, {first} and {second}: edges run from parent to child."
        )
    return ends


def check_edge_features(features: Any, n_edges: int, i: int, dtype: Any) -> np.ndarray:
    """Check the features of the edges of example i, a row per edge; a flat array is one feature."""
    kind = f"a matrix of numbers with {n_edges} rows, one per edge"
    table = features.toarray() if sp.issparse(features) else features
    rows = check_array(table, f"The edge features of X[{i}]", kind, (n_edges, None), (n_edges,)).astype(np.float64)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if n_edges and rows.shape[1] == 0:
        raise ValueError(f"X[{i}] must have at least one edge feature.")
    if not (np.abs(rows) <= np.finfo(dtype).max).all():
        raise ValueError(f"The edge features of X[{i}] contain NaN, infinity or a number too large.")
    return rows


def children_first(parent: np.ndarray, offsets: np.ndarray, name: str = "X[{}]") -> np.ndarray:
    """The nodes of each tree, deepest first, from their parents, -1 for roots; raise where edges form a cycle."""
    lengths = np.diff(offsets)
    first = np.repeat(offsets[:-1], lengths)
    everyone = np.arange(len(parent))
    ancestor = np.where(parent < 0, everyone, parent + first)  # roots point at themselves
    depth = (parent >= 0).astype(np.int64)
    for _ in range(int(lengths.max()).bit_length()):  # pointers of twice the length each time
        depth += depth[ancestor]
        ancestor = ancestor[ancestor]
    is_cyclic = parent[ancestor] >= 0
    if is_cyclic.any():
        node = int(np.flatnonzero(is_cyclic)[0])
        cycle = [int(ancestor[node] - first[node])]  # far enough up to be on the cycle
        while (above := int(parent[first[node] + cycle[-1]])) != cycle[0]:
            cycle.append(above)
        example, _ = locate(node, offsets)
        shown = ", ".join(map(str, sorted(cycle)[:5])) + (", ..." if len(cycle) > 5 else "")
        nodes = f"node{'s' if len(cycle) > 1 else ''} {shown}"
        raise ValueError(
            f"The edges of {name.format(example)} form a cycle through {nodes}, but must form a tree or a forest."
        )
    return np.lexsort((everyone, -depth, first)) - first
