"""Edges between the nodes of trees, graphs and skeletons, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.arrays.blocks import starts_of
from maxmargin.checks import LARGEST
from maxmargin.encode.inputs.example_checks import check_array, check_sparse, locate
from maxmargin.encode.inputs.rows import Rows, stack_rows


class Graphs(NamedTuple):
    """Checked graphs or trees, one after the other: their nodes, the ends of edges, and rows of edge features."""

    nodes: Rows
    ends: np.ndarray  # (M, 2) int64, nodes counted from the first one of their graph
    edges: Rows

    @property
    def ends_in_all(self) -> np.ndarray:
        """The ends of edges with nodes counted over all graphs."""
        return self.ends + np.repeat(self.nodes.starts[:-1], self.edges.lengths)[:, np.newaxis]


def join_graphs(
    parts: Sequence[tuple[object, ArrayLike, object]],
    noun: str,
    check: Callable[[ArrayLike, str, int], np.ndarray],
    n_features: int | None,
    n_edge_features: int | None,
    *,
    with_constant: bool = False,
) -> Graphs:
    """Check nodes, edges, by `check`, and edge features, none or a constant where they are None, and stack them."""
    nodes = stack_rows([rows for rows, _, _ in parts], None, n_features, noun=noun)
    pairs, tables, width = [], [], n_edge_features
    for i, (_, edges, features) in enumerate(parts):
        ends = check(edges, f"X[{i}]", int(nodes.lengths[i]))
        missing = np.ones((len(ends), int(with_constant)))
        table = missing if features is None else check_edge_features(features, len(ends), i)
        if len(ends):
            width = table.shape[1] if width is None else width
            if table.shape[1] != width:
                raise ValueError(f"X[{i}] has {table.shape[1]} features per edge, but {width} are expected.")
            tables.append(table)
        pairs.append(ends)
    matrix = np.concatenate(tables) if tables else np.zeros((0, int(with_constant) if width is None else width))
    starts = starts_of([len(ends) for ends in pairs])
    return Graphs(nodes, np.concatenate(pairs), Rows(matrix, starts))


def check_edges(edges: ArrayLike, name: str, n_nodes: int) -> np.ndarray:
    """Check edges, pairs of nodes that are there."""
    kind = "an (E, 2) array of integers, pairs of nodes"
    ends = check_array(edges, f"The edges of {name}", kind, (None, 2), (0,), dtypes="iu").reshape(-1, 2)
    is_missing = ((ends < 0) | (ends >= n_nodes)).any(axis=1)
    if is_missing.any():
        e = int(np.flatnonzero(is_missing)[0])
        raise ValueError(f"Edge {e} of {name} is {tuple(ends[e].tolist())}, but the nodes are 0 to {n_nodes - 1}.")
    return ends.astype(np.int64)


def first_repeated(keys: np.ndarray) -> tuple[int, int] | None:
    """The places of the first two equal keys, if there are any."""
    order = np.argsort(keys, kind="stable")
    repeats = np.flatnonzero(np.diff(keys[order]) == 0)
    return (int(order[repeats[0]]), int(order[repeats[0] + 1])) if repeats.size else None


def check_ends(edges: ArrayLike, name: str, n_nodes: int) -> np.ndarray:
    """Check edges that have no direction: no loops, and none twice."""
    ends = check_edges(edges, name, n_nodes)
    is_loop = ends[:, 0] == ends[:, 1]
    if is_loop.any():
        e = int(np.flatnonzero(is_loop)[0])
        raise ValueError(f"Edge {e} of {name} joins node {ends[e, 0]} to itself.")
    repeated = first_repeated(ends.min(axis=1) * n_nodes + ends.max(axis=1))
    if repeated:
        one, other = map(tuple, ends[[*repeated]].tolist())
        raise ValueError(f"Edges {repeated[0]} and {repeated[1]} of {name}, {one} and {other}, are the same.")
    return ends


def check_parents(edges: ArrayLike, name: str, n_nodes: int) -> np.ndarray:
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


def check_edge_features(features: Any, n_edges: int, i: int) -> np.ndarray:
    """Check the features of the edges of example i, a row per edge; a flat array is one feature."""
    table = features
    if sp.issparse(features):
        check_sparse(features, f"The edge features of X[{i}]")
        table = features.toarray()
    name, kind = f"The edge features of X[{i}]", f"a matrix of numbers with {n_edges} rows, one per edge"
    rows = check_array(table, name, kind, (n_edges, None), (n_edges,)).astype(np.float64)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if n_edges and rows.shape[1] == 0:
        raise ValueError(f"X[{i}] must have at least one edge feature.")
    if not (np.abs(rows) <= LARGEST).all():
        raise ValueError(f"{name} must be numbers within {LARGEST:g}.")
    return rows


def children_first(parent: np.ndarray, starts: np.ndarray, name: str = "X[{}]") -> np.ndarray:
    """The nodes of each tree, deepest first, from their parents, -1 for roots; raise where edges form a cycle."""
    lengths = np.diff(starts)
    first = np.repeat(starts[:-1], lengths)
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
        example, _ = locate(node, starts)
        shown = ", ".join(map(str, sorted(cycle)[:5])) + (", ..." if len(cycle) > 5 else "")
        nodes = f"node{'s' if len(cycle) > 1 else ''} {shown}"
        raise ValueError(
            f"The edges of {name.format(example)} form a cycle through {nodes}, but must form a tree or a forest."
        )
    return np.lexsort((everyone, -depth, first)) - first
