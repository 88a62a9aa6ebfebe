"""Small sets of neighbouring cliques: what is visited together lies together in memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import places_in, starts_of
from maxmargin.structures.graphs.graph_problem import LabelledGraphs

SIZE = 32  # cliques: with fewer, memory is waited for; with many, visits in turn are alike and the weights follow them


class Neighborhoods(NamedTuple):
    """Sets of nodes and edges of one graph: set k holds cliques[starts[k] : starts[k + 1]], edges after all nodes."""

    starts: np.ndarray  # (sets + 1,) int64
    cliques: np.ndarray  # (N + M,) int64


def single_cliques(graphs: LabelledGraphs) -> Neighborhoods:
    """Every clique by itself."""
    n_cliques = len(graphs.nodes.row) + len(graphs.ends)
    return Neighborhoods(np.arange(n_cliques + 1), np.arange(n_cliques))


def whole_graphs(graphs: LabelledGraphs) -> Neighborhoods:
    """All cliques of each graph."""
    n_nodes, n_edges = np.diff(graphs.nodes.starts), np.diff(graphs.edges.starts)
    graph = np.concatenate([np.repeat(np.arange(len(n)), n) for n in (n_nodes, n_edges)])
    return Neighborhoods(starts_of(n_nodes + n_edges), np.argsort(graph, kind="stable").astype(np.int64))


def find_neighborhoods(graphs: LabelledGraphs) -> Neighborhoods:
    """Cut every graph into nodes that follow one another, each with its edges to earlier ones."""
    nodes, edges = graphs.nodes, graphs.edges
    n_nodes, n_edges = np.diff(nodes.starts), np.diff(edges.starts)
    n_sets = np.minimum(-(-(n_nodes + n_edges) // SIZE), n_nodes)
    first_set = starts_of(n_sets)
    graph = np.repeat(np.arange(len(n_nodes)), n_nodes)
    set_of_node = first_set[graph] + places_in(n_nodes) * n_sets[graph] // n_nodes[graph]
    latest = graphs.ends.max(axis=1, initial=0) + np.repeat(nodes.starts[:-1], n_edges)
    sets = np.concatenate([set_of_node, set_of_node[latest]])
    counts = np.bincount(sets, minlength=first_set[-1])
    return Neighborhoods(starts_of(counts), np.argsort(sets, kind="stable").astype(np.int64))
