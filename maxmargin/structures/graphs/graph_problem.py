"""Labels of the nodes of any graphs, scored by nodes and by edges.

Nodes and edges are *cliques* of some type. A type of nodes has a number of states; a type of edges joins nodes of two
types. An output of example i is a row of states, one per node. The parts are the indicators of (node, state), then of
(edge, state of its first end, state of its second end), one graph's cliques after the other. A type of cliques has
columns of weights, each with as many weights as features: the score of a part is that of its column, or zero if it has
none. Parts of nodes have a column each, unless said otherwise; those of edges as their `EdgeType` says.

A `GraphProblem` has no oracle: `IDAL` needs none. `with_elimination` makes an `EliminationProblem` of it, where the
treewidths allow, with all exact oracles; `with_oracles` gives any graphs a max oracle. All hold the same `graphs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.cuts.max_flow import Arcs
from maxmargin.structures.graphs.cliques import (
    Cliques,
    EdgeType,
    columns_of,
    make_cliques,
    score_cliques,
    size_of,
    spread_cliques,
    squared_diameters,
    squared_norm_cliques,
)
from maxmargin.structures.graphs.elimination_plan import EliminationPlan
from maxmargin.structures.graphs.local_polytope import Constraints
from maxmargin.supervision.exclusions import exclude_more, nothing_excluded, rule_out
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision


class LabelledGraphs(NamedTuple):
    """Graphs one after the other."""

    nodes: Cliques
    edges: Cliques
    ends: np.ndarray  # (M, 2) int32, nodes counted from the first one of the graph
    supervision: LabelSupervision  # of the states of nodes, S at most
    edge_cost: Blocks  # of each edge, the costs of its parts; no values where there are none
    excluded: Blocks  # flags of states that nodes cannot have, and of pairs of states that edges cannot


class GraphProblem(NamedTuple):
    """Graphs without an oracle."""

    graphs: LabelledGraphs


class EliminationProblem(NamedTuple):
    """Graphs with all oracles, by elimination."""

    graphs: LabelledGraphs
    plan: EliminationPlan


class LoopyProblem(NamedTuple):
    """Graphs of any treewidth, with the oracles of `loopy`."""

    graphs: LabelledGraphs
    plan: EliminationPlan  # of the graphs of small treewidth
    arcs: Arcs
    constraints: Constraints


class FractionalProblem(NamedTuple):
    """Graphs whose outputs are points of the local polytope, with the oracle of `fractional`."""

    graphs: LabelledGraphs
    constraints: Constraints


WithOracles = EliminationProblem | LoopyProblem | FractionalProblem
WITH_LABELS = GraphProblem, EliminationProblem, LoopyProblem  # as outputs
ALL = *WITH_LABELS, FractionalProblem


class GraphWork(NamedTuple):
    """The buffer of direction norms."""

    spread: np.ndarray  # as the weights, zero


# --- making problems ------------------------------------------------------------------------------------------------


def make_graph_problem(
    features: object,
    edge_features: object,
    widths: tuple[int, int],
    starts: np.ndarray,
    edge_starts: np.ndarray,
    ends: np.ndarray,
    supervision: LabelSupervision,
    n_states: Sequence[int],
    edge_types: Sequence[EdgeType] = (EdgeType(),),
    node_type: np.ndarray | None = None,
    edge_type: np.ndarray | None = None,
    node_row: np.ndarray | None = None,
    edge_row: np.ndarray | None = None,
    node_columns: Sequence[np.ndarray] | None = None,
    edge_cost: Sequence[np.ndarray] | None = None,
) -> GraphProblem:
    """Put graphs together whose edges are known to be sound: no loops, none twice, none to a missing node.

    The edges of a graph are sorted by the later of their nodes: those of neighbours lie together in memory.

    Parameters
    ----------
    features, edge_features
        Rows of features of nodes and of edges.
    widths
        The numbers of features of a node and of an edge.
    starts, edge_starts
        (n + 1,) the nodes and edges of graph i are starts[i]:starts[i + 1].
    ends
        (M, 2) the nodes of each edge, counted from the first one of the graph.
    supervision
        The true states, and costs, in the dtype of the weights.
    n_states
        The number of states of each type of nodes.
    edge_types
        The types of edges.
    node_type, edge_type
        The type of each node and edge, by default the first for all.
    node_row, edge_row
        The row of features of each node and edge, by default one after the other.
    node_columns
        For each type of nodes the column of each state, -1 for none, by default one each.
    edge_cost
        For each edge, the costs of pairs of states of its ends, flat; by default none.
    """
    labels, dtype = supervision.labels, supervision.cost.dtype
    node_type, edge_type = _or_zeros(node_type, len(labels)), _or_zeros(edge_type, len(ends))
    sizes = np.asarray(n_states, np.int64)
    graph = np.repeat(np.arange(len(starts) - 1), np.diff(edge_starts))
    joined = node_type[ends + starts[graph][:, np.newaxis]]
    _check_types(joined, edge_type, edge_types, edge_starts)
    _check_labels(labels, sizes[node_type], starts)
    order = np.lexsort((ends.max(axis=1, initial=0), graph))
    ends, joined, edge_type = ends[order], joined[order], edge_type[order]
    edge_row = order if edge_row is None else np.asarray(edge_row)[order]
    node_part, after_nodes = _places(sizes[node_type], starts)
    n_pairs = np.prod(sizes[joined], axis=1)
    edge_part, _ = _places(n_pairs, edge_starts)
    columns = [columns_of(sizes[first], sizes[second], ties) for first, second, ties in edge_types]
    own = [*map(np.arange, sizes)] if node_columns is None else [*node_columns]
    nodes = make_cliques(features, widths[0], starts, node_type, node_row, node_part, own, 0)
    edge_part += after_nodes[graph]
    edges = make_cliques(
        edge_features, widths[1], edge_starts, edge_type, edge_row, edge_part, columns, int(nodes.weight[-1])
    )
    costs = [] if edge_cost is None else [edge_cost[e] for e in order.tolist()]
    return GraphProblem(
        LabelledGraphs(
            nodes,
            edges,
            np.ascontiguousarray(ends, np.int32),
            supervision,
            Blocks(np.concatenate([np.zeros(0), *costs]).astype(dtype), starts_of(n_pairs)),
            nothing_excluded(len(starts) - 1),
        )
    )


def split_graphs(graphs: LabelledGraphs) -> list[tuple[np.ndarray, np.ndarray]]:
    """The numbers of states and the ends of edges of each graph."""
    nodes, edges = graphs.nodes, graphs.edges
    n_states = np.split(nodes.n_parts[nodes.type], nodes.starts[1:-1])
    return [*zip(n_states, np.split(graphs.ends, edges.starts[1:-1]), strict=True)]


def ends_in_all(graphs: LabelledGraphs) -> np.ndarray:
    """The nodes of each edge, counted over all graphs."""
    return graphs.ends + np.repeat(graphs.nodes.starts[:-1], np.diff(graphs.edges.starts))[:, np.newaxis]


def _or_zeros(types: np.ndarray | None, count: int) -> np.ndarray:
    return np.zeros(count, np.int32) if types is None else np.ascontiguousarray(types, np.int32)


def _places(sizes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where blocks of the given sizes begin, counted in their graph, and where those of each graph end."""
    places = starts_of(sizes)
    at = places[starts]
    return places[:-1] - np.repeat(at[:-1], np.diff(starts)), np.diff(at)


def _check_types(
    joined: np.ndarray, edge_type: np.ndarray, edge_types: Sequence[EdgeType], edge_starts: np.ndarray
) -> None:
    expected = np.array([edges[:2] for edges in edge_types], int).reshape(-1, 2)[edge_type]
    is_wrong = (joined != expected).any(axis=1)
    if is_wrong.any():
        e = int(np.argmax(is_wrong))
        i, found, wanted = _graph_of(e, edge_starts), tuple(joined[e].tolist()), tuple(expected[e].tolist())
        raise ValueError(
            f"Edge {e - edge_starts[i]} of graph {i} joins nodes of types {found}, but edges of type {edge_type[e]} "
            f"join nodes of types {wanted}."
        )


def _graph_of(k: int, starts: np.ndarray) -> int:
    return int(np.searchsorted(starts, k, side="right") - 1)


def _check_labels(labels: np.ndarray, n_states: np.ndarray, starts: np.ndarray) -> None:
    is_wrong = ((labels < 0) & (labels != NO_LABEL)) | (labels >= n_states)
    if is_wrong.any():
        node = int(np.argmax(is_wrong))
        i = _graph_of(node, starts)
        raise ValueError(
            f"Node {node - starts[i]} of graph {i} has the label {labels[node]}, but its states are 0 to "
            f"{n_states[node] - 1}."
        )


# --- generics of all problems ---------------------------------------------------------------------------------------


@implements(generics.true_outputs, *WITH_LABELS)
def true_states(problem):
    return Blocks(problem.graphs.supervision.labels, problem.graphs.nodes.starts)


@implements(generics.new_weights, *ALL)
def new_graph_weights(problem):
    return np.zeros(problem.graphs.edges.weight[-1], problem.graphs.supervision.cost.dtype)


@implements(generics.part_sizes, *ALL)
def graph_part_sizes(problem):
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    return sum(np.diff(starts_of(cliques.n_parts[cliques.type])[cliques.starts]) for cliques in (nodes, edges))


@implements(generics.squared_diameters, GraphProblem, EliminationProblem)
def graph_squared_diameters(problem):
    return squared_diameters(problem.graphs.nodes) + squared_diameters(problem.graphs.edges)


@implements(generics.workspace, GraphProblem)
def graph_workspace(problem, n_best):
    return GraphWork(spread=new_spread(problem))


def new_spread(problem: GraphProblem | WithOracles) -> np.ndarray:
    """The buffer of direction norms."""
    return aligned((problem.graphs.edges.weight[-1],), problem.graphs.supervision.cost.dtype)


@implements(generics.scores, *ALL)
def graph_scores(problem, w, i, theta):
    score_cliques(problem.graphs.nodes, w, i, theta)
    score_cliques(problem.graphs.edges, w, i, theta)
    rule_out(problem.graphs.excluded, i, theta)


@implements(generics.spread, *ALL)
def spread_graphs(problem, w, i, delta, scale):
    spread_cliques(problem.graphs.nodes, w, i, delta, scale)
    spread_cliques(problem.graphs.edges, w, i, delta, scale)


@implements(generics.squared_norm, *ALL)
def graph_squared_norm(problem, i, delta, work):
    nodes = problem.graphs.nodes
    edges = problem.graphs.edges
    total = squared_norm_cliques(nodes.features, nodes, i, delta, work.spread)
    return total + squared_norm_cliques(edges.features, edges, i, delta, work.spread)


@implements(generics.restrict, *ALL)
def restrict_graphs(problem, excluded):
    graphs = problem.graphs
    return problem._replace(graphs=graphs._replace(excluded=exclude_more(graphs.excluded, excluded)))


@implements(generics.augment, *ALL)
def augment_graphs(problem, i, theta):
    graphs = problem.graphs
    nodes = graphs.nodes
    edges = graphs.edges
    known = graphs.supervision
    if known.cost.shape[0] > 0:
        for c in range(nodes.starts[i], nodes.starts[i + 1]):
            for x in range(size_of(nodes, c)):
                theta[nodes.part[c] + x] += known.weight[c] * known.cost[known.annotation[c], x]
    if graphs.edge_cost.values.size > 0:
        for e in range(edges.starts[i], edges.starts[i + 1]):
            first = graphs.edge_cost.starts[e]
            for p in range(graphs.edge_cost.starts[e + 1] - first):
                theta[edges.part[e] + p] += graphs.edge_cost.values[first + p]


@helper
def part_of_edge(graphs, i, e, y):
    """The part of edge e, counted from its first, that labels of the nodes of graph i have."""
    a = graphs.ends[e, 0]
    b = graphs.ends[e, 1]
    return y[a] * size_of(graphs.nodes, graphs.nodes.starts[i] + b) + y[b]


@implements(generics.add_output, *WITH_LABELS)
def add_states(problem, i, y, scale, mu):
    graphs = problem.graphs
    lo = graphs.nodes.starts[i]
    for c in range(lo, graphs.nodes.starts[i + 1]):
        mu[graphs.nodes.part[c] + y[c - lo]] += scale
    for e in range(graphs.edges.starts[i], graphs.edges.starts[i + 1]):
        mu[graphs.edges.part[e] + part_of_edge(graphs, i, e, y)] += scale


@implements(generics.score_output, *WITH_LABELS)
def score_states(problem, i, theta, y):
    graphs = problem.graphs
    lo = graphs.nodes.starts[i]
    total = 0.0
    for c in range(lo, graphs.nodes.starts[i + 1]):
        total += theta[graphs.nodes.part[c] + y[c - lo]]
    for e in range(graphs.edges.starts[i], graphs.edges.starts[i + 1]):
        total += theta[graphs.edges.part[e] + part_of_edge(graphs, i, e, y)]
    return total
