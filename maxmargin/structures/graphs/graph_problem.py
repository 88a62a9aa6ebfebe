"""Labels of the nodes of any graphs, scored by nodes and by edges.

Nodes and edges are *cliques* of some type. A type of nodes has a number of states; a type of edges joins nodes of two
types. An output of example i is a row of states, one per node. The parts are the indicators of (node, state), then of
(edge, state of its first end, state of its second end), one graph's cliques after the other. A type of cliques has
columns of weights, each with as many weights as features: the score of a part is that of its column, or zero if it has
none. Parts of nodes have a column each, unless said otherwise; those of edges as their `EdgeType` says.

A `PairwiseProblem` has no oracle: `IDAL` needs none. `with_elimination` makes an `EliminationProblem` of it, where the
treewidths allow, with all exact oracles; `with_oracles` gives any graphs a max oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.execution.threads import aligned
from maxmargin.problem import spread
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.graphs import elimination
from maxmargin.structures.graphs.cliques import (
    Cliques,
    EdgeType,
    clear_cliques,
    columns_of,
    make_cliques,
    score_cliques,
    spread_cliques,
    squared_diameters,
)
from maxmargin.structures.graphs.elimination import Tables, new_tables
from maxmargin.structures.graphs.elimination_plan import Plan, make_plan, n_operations


class PairwiseProblem(NamedTuple):
    """Graphs one after the other, without an oracle."""

    nodes: Cliques
    edges: Cliques
    ends: np.ndarray  # (M, 2) int32, nodes counted from the first one of the graph
    labels: np.ndarray  # (N,) int32, the true states
    cost: np.ndarray  # (N,) cost of each node's wrong state


class EliminationProblem(NamedTuple):
    """The same with a plan of elimination, and so with all oracles."""

    nodes: Cliques
    edges: Cliques
    ends: np.ndarray
    labels: np.ndarray
    cost: np.ndarray
    plan: Plan


class PairwiseWork(NamedTuple):
    """The buffer of direction norms."""

    spread: np.ndarray  # as the weights, zero


class EliminationWork(NamedTuple):
    """As `PairwiseWork`, with the tables of the oracles."""

    spread: np.ndarray
    tables: Tables
    branches: np.ndarray  # (K, 3) of the top-K oracle


# --- making problems ------------------------------------------------------------------------------------------------


def make_pairwise(
    features: Any,
    edge_features: Any,
    widths: tuple[int, int],
    starts: np.ndarray,
    edge_starts: np.ndarray,
    ends: np.ndarray,
    labels: np.ndarray,
    cost: np.ndarray,
    n_states: Sequence[int],
    edge_types: Sequence[EdgeType] = (EdgeType(),),
    node_type: np.ndarray | None = None,
    edge_type: np.ndarray | None = None,
    node_row: np.ndarray | None = None,
    edge_row: np.ndarray | None = None,
    node_columns: Sequence[np.ndarray] | None = None,
) -> PairwiseProblem:
    """Put graphs together whose edges are known to be sound: no loops, none twice, none to a missing node.

    The edges of a graph are sorted by the later of their nodes: those of neighbours lie together in memory.

    Parameters
    ----------
    features, edge_features : rows of features of nodes and of edges
    widths : the numbers of features of a node and of an edge
    starts, edge_starts : (n + 1,) the nodes and edges of graph i are starts[i]:starts[i + 1]
    ends : (M, 2) the nodes of each edge, counted from the first one of the graph
    labels : (N,) true states
    cost : (N,) cost of each node's wrong state, in the dtype of the weights
    n_states : the number of states of each type of nodes
    edge_types : the types of edges
    node_type, edge_type : the type of each node and edge, by default the first for all
    node_row, edge_row : the row of features of each node and edge, by default one after the other
    node_columns : for each type of nodes the column of each state, -1 for none, by default one each
    """
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
    edge_part, _ = _places(np.prod(sizes[joined], axis=1), edge_starts)
    columns = [columns_of(sizes[kind.first], sizes[kind.second], kind.ties) for kind in edge_types]
    own = [*map(np.arange, sizes)] if node_columns is None else [*node_columns]
    nodes = make_cliques(features, widths[0], starts, node_type, node_row, node_part, own, 0)
    edge_part += after_nodes[graph]
    return PairwiseProblem(
        nodes=nodes,
        edges=make_cliques(
            edge_features, widths[1], edge_starts, edge_type, edge_row, edge_part, columns, int(nodes.weight[-1])
        ),
        ends=np.ascontiguousarray(ends, np.int32),
        labels=np.ascontiguousarray(labels, np.int32),
        cost=np.ascontiguousarray(cost),
    )


def with_elimination(problem: PairwiseProblem) -> EliminationProblem:
    """The same problem with exact oracles; raises where a graph has too large a treewidth."""
    return EliminationProblem(*problem, plan=make_plan(graphs_of(problem)))


def graphs_of(problem: PairwiseProblem) -> list[tuple[np.ndarray, np.ndarray]]:
    """The numbers of states and the ends of edges of each graph."""
    nodes, edges = problem.nodes, problem.edges
    n_states = np.split(nodes.n_parts[nodes.kind], nodes.starts[1:-1])
    return [*zip(n_states, np.split(problem.ends, edges.starts[1:-1]), strict=True)]


def _or_zeros(kinds: np.ndarray | None, count: int) -> np.ndarray:
    return np.zeros(count, np.int32) if kinds is None else np.ascontiguousarray(kinds, np.int32)


def _places(sizes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where blocks of the given sizes begin, counted in their graph, and where those of each graph end."""
    places = starts_of(sizes)
    at = places[starts]
    return places[:-1] - np.repeat(at[:-1], np.diff(starts)), np.diff(at)


def _check_types(
    joined: np.ndarray, edge_type: np.ndarray, edge_types: Sequence[EdgeType], edge_starts: np.ndarray
) -> None:
    expected = np.array([kind[:2] for kind in edge_types], int).reshape(-1, 2)[edge_type]
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
    is_wrong = (labels < 0) | (labels >= n_states)
    if is_wrong.any():
        node = int(np.argmax(is_wrong))
        i = _graph_of(node, starts)
        raise ValueError(
            f"Node {node - starts[i]} of graph {i} has the label {labels[node]}, but its states are 0 to "
            f"{n_states[node] - 1}."
        )


# --- generics of both problems --------------------------------------------------------------------------------------

BOTH = (PairwiseProblem, EliminationProblem)


@implements(generics.true_outputs, *BOTH)
def true_states(problem):
    return Blocks(problem.labels, problem.nodes.starts)


@implements(generics.new_weights, *BOTH)
def new_pairwise_weights(problem):
    return np.zeros(problem.edges.weight[-1], problem.cost.dtype)


@implements(generics.part_sizes, *BOTH)
def pairwise_part_sizes(problem):
    sizes = np.zeros(len(problem.nodes.starts) - 1, np.int64)
    for cliques in (problem.nodes, problem.edges):
        ends = starts_of(cliques.n_parts[cliques.kind])
        sizes += np.diff(ends[cliques.starts])
    return sizes


@implements(generics.squared_diameters, *BOTH)
def pairwise_squared_diameters(problem):
    return squared_diameters(problem.nodes) + squared_diameters(problem.edges)


@implements(generics.workspace, PairwiseProblem)
def pairwise_workspace(problem, n_best):
    return PairwiseWork(spread=aligned((problem.edges.weight[-1],), problem.cost.dtype))


@implements(generics.workspace, EliminationProblem)
def elimination_workspace(problem, n_best):
    return EliminationWork(
        spread=aligned((problem.edges.weight[-1],), problem.cost.dtype),
        tables=new_tables(problem.plan),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, *BOTH)
def pairwise_scores(problem, w, i, theta):
    score_cliques(problem.nodes, w, i, theta)
    score_cliques(problem.edges, w, i, theta)


@implements(generics.spread, *BOTH)
def spread_pairwise(problem, w, i, delta, scale):
    spread_cliques(problem.nodes, w, i, delta, scale)
    spread_cliques(problem.edges, w, i, delta, scale)


@implements(generics.squared_norm, *BOTH)
def pairwise_squared_norm(problem, i, delta, work):
    spread(problem, work.spread, i, delta, 1.0)
    return clear_cliques(problem.nodes, work.spread, i, delta) + clear_cliques(problem.edges, work.spread, i, delta)


@implements(generics.augment, *BOTH)
def augment_pairwise(problem, i, theta):
    nodes = problem.nodes
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        for x in range(nodes.n_parts[nodes.kind[c]]):
            if x != problem.labels[c]:
                theta[nodes.part[c] + x] += problem.cost[c]


@helper
def edge_part(problem, i, e, y):
    """The part of edge e, counted over all graphs, that labels of the nodes of graph i have."""
    a = problem.ends[e, 0]
    b = problem.ends[e, 1]
    n_second = problem.nodes.n_parts[problem.nodes.kind[problem.nodes.starts[i] + b]]
    return problem.edges.part[e] + y[a] * n_second + y[b]


@implements(generics.add_output, *BOTH)
def add_states(problem, i, y, scale, mu):
    lo = problem.nodes.starts[i]
    for c in range(lo, problem.nodes.starts[i + 1]):
        mu[problem.nodes.part[c] + y[c - lo]] += scale
    for e in range(problem.edges.starts[i], problem.edges.starts[i + 1]):
        mu[edge_part(problem, i, e, y)] += scale


@implements(generics.score_output, *BOTH)
def score_states(problem, i, theta, y):
    lo = problem.nodes.starts[i]
    total = 0.0
    for c in range(lo, problem.nodes.starts[i + 1]):
        total += theta[problem.nodes.part[c] + y[c - lo]]
    for e in range(problem.edges.starts[i], problem.edges.starts[i + 1]):
        total += theta[edge_part(problem, i, e, y)]
    return total


def share_generics(cls: type, *functions: Any) -> None:
    """Let another kind of problem, with the same first fields, have implementations of a `PairwiseProblem`."""
    for function in functions:
        implements(function, cls)(function.implementations[PairwiseProblem])


# --- oracles by elimination -----------------------------------------------------------------------------------------


@implements(generics.oracle_work, EliminationProblem)
def elimination_work(problem):
    return n_operations(problem.plan).mean() / generics.part_sizes(problem).mean()


@implements(generics.max_oracle, EliminationProblem)
def max_states(problem, i, theta, y, work):
    total = elimination.eliminate(problem.plan, i, theta, work.tables, False)
    elimination.decode(problem.plan, i, work.tables, y)
    return total


@implements(generics.topk_oracle, EliminationProblem)
def topk_states(problem, i, theta, outputs, values, level, work):
    best = elimination.eliminate(problem.plan, i, theta, work.tables, False)
    return elimination.k_best(problem.plan, i, best, work.tables, outputs, values, level, work.branches)


@implements(generics.exp_oracle, EliminationProblem)
def exp_states(problem, i, theta, mu, work):
    log_z = elimination.eliminate(problem.plan, i, theta, work.tables, True)
    elimination.marginals(problem.plan, i, work.tables, mu)
    return log_z


@implements(generics.sample_oracle, EliminationProblem)
def sample_states(problem, i, theta, draws, outputs, work):
    elimination.eliminate(problem.plan, i, theta, work.tables, True)
    for k in range(outputs.shape[0]):
        elimination.sample(problem.plan, i, work.tables, draws[k], outputs[k])


@implements(generics.max_marginals, EliminationProblem)
def pairwise_max_marginals(problem, i, theta, out, work):
    total = elimination.eliminate(problem.plan, i, theta, work.tables, False)
    elimination.max_marginals(problem.plan, i, total, work.tables, out)
