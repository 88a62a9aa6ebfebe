"""Binary labels on graphs with attractive edges.

An output of example i is a row of labels 0 and 1, one per node. Its parts are the indicators of label 0 at each node,
then of label 1, then of each edge being cut, that is, of its ends having different labels. The weights are those of the
node features, for label 1, then those of the edge features. Edge features are stored with a negative sign: they are
what a cut costs, and with non-negative weights the best output is a minimum cut.

Max-marginals are those of the node parts; the parts of edges are left alone. Labels of nodes and cuts of edges whose
potentials are impossible (`maxmargin.problem`) are in no output.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import score_rows, spread_rows, squared_norm_rows
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.cuts.max_flow import Arcs, Flow, new_flow
from maxmargin.structures.cuts.minimum_cuts import best_cut, best_through_nodes, k_best, sizes
from maxmargin.supervision.exclusions import exclude_parts, rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs_by_label


class GraphCutProblem(NamedTuple):
    """Graphs stored one after the other: of example i, the nodes starts[i]:starts[i + 1], and likewise the edges."""

    features: Any  # of nodes
    edge_features: Any  # negative
    starts: np.ndarray  # (n + 1,) int64
    edge_starts: np.ndarray  # (n + 1,) int64
    ends: np.ndarray  # (M, 2) int32, nodes counted from the first one of the example
    supervision: LabelSupervision
    excluded: Blocks  # flags of labels that nodes cannot have, and of edges that cannot be cut
    arcs: Arcs
    n_features: int
    n_edge_features: int


class GraphCutWork(NamedTuple):
    """The flow at hand, the last flow of every example, buffers of direction norms, and the top-K oracle's own."""

    flow: Flow
    last: np.ndarray  # (M,) the flow along each edge when its example was last cut, where the next one starts
    spread: np.ndarray  # (F, 1)
    edge_spread: np.ndarray  # (G, 1)
    fixed: np.ndarray  # (K, V) int8, labels that a part of the outputs has, or UNFIXED
    parts: np.ndarray  # (K, 3) int64 of these parts: LOSS, NEXT_LOSS, NEXT_NODE
    y: np.ndarray  # (V,) an output


@implements(generics.true_outputs, GraphCutProblem)
def true_cuts(problem):
    return Blocks(problem.supervision.labels, problem.starts)


@implements(generics.new_weights, GraphCutProblem)
def new_graph_weights(problem):
    return np.zeros(problem.n_features + problem.n_edge_features, problem.supervision.cost.dtype)


@implements(generics.part_sizes, GraphCutProblem)
def graph_part_sizes(problem):
    return 2 * np.diff(problem.starts) + np.diff(problem.edge_starts)


implements(generics.restrict, GraphCutProblem)(exclude_parts)


@implements(generics.workspace, GraphCutProblem)
def graph_workspace(problem, n_best):
    n_nodes, n_edges = np.diff(problem.starts).max(), np.diff(problem.edge_starts).max()
    dtype = problem.supervision.cost.dtype
    return GraphCutWork(
        flow=new_flow(n_nodes, 2 * n_edges),
        last=aligned((problem.edge_starts[-1],), np.float64),
        spread=aligned((problem.n_features, 1), dtype),
        edge_spread=aligned((problem.n_edge_features, 1), dtype),
        fixed=aligned((n_best, n_nodes), np.int8),
        parts=aligned((n_best, 3), np.int64),
        y=aligned((n_nodes,), np.int32),
    )


@implements(generics.scores, GraphCutProblem)
def graph_scores(problem, w, i, theta):
    n_nodes, n_edges = sizes(problem, i)
    clear(theta[:n_nodes])
    of_nodes = matrix(w, 0, problem.n_features, 1)
    of_edges = matrix(w, problem.n_features, problem.n_edge_features, 1)
    ones = matrix(theta, n_nodes, n_nodes, 1)
    cuts = matrix(theta, 2 * n_nodes, n_edges, 1)
    score_rows(problem.features, of_nodes, problem.starts[i], problem.starts[i + 1], ones)
    if n_edges > 0:
        score_rows(problem.edge_features, of_edges, problem.edge_starts[i], problem.edge_starts[i + 1], cuts)
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, GraphCutProblem)
def spread_graph(problem, w, i, delta, scale):
    n_nodes, n_edges = sizes(problem, i)
    of_nodes = matrix(w, 0, problem.n_features, 1)
    of_edges = matrix(w, problem.n_features, problem.n_edge_features, 1)
    ones = matrix(delta, n_nodes, n_nodes, 1)
    cuts = matrix(delta, 2 * n_nodes, n_edges, 1)
    spread_rows(problem.features, of_nodes, problem.starts[i], problem.starts[i + 1], ones, scale)
    spread_rows(problem.edge_features, of_edges, problem.edge_starts[i], problem.edge_starts[i + 1], cuts, scale)


@implements(generics.squared_norm, GraphCutProblem)
def graph_squared_norm(problem, i, delta, work):
    n_nodes, n_edges = sizes(problem, i)
    lo = problem.starts[i]
    begin = problem.edge_starts[i]
    ones = matrix(delta, n_nodes, n_nodes, 1)
    cuts = matrix(delta, 2 * n_nodes, n_edges, 1)
    total = squared_norm_rows(problem.features, i, lo, lo + n_nodes, ones, work.spread)
    return total + squared_norm_rows(problem.edge_features, i, begin, begin + n_edges, cuts, work.edge_spread)


@implements(generics.augment, GraphCutProblem)
def augment_graph(problem, i, theta):
    n_nodes, _ = sizes(problem, i)
    add_costs_by_label(problem.supervision, problem.starts[i], theta[: 2 * n_nodes])


@implements(generics.add_output, GraphCutProblem)
def add_cut(problem, i, y, scale, mu):
    n_nodes, n_edges = sizes(problem, i)
    ends = problem.ends[problem.edge_starts[i] : problem.edge_starts[i + 1]]  # loops over a slice are fast
    for p in range(n_nodes):
        mu[y[p] * n_nodes + p] += scale
    for e in range(n_edges):
        if y[ends[e, 0]] != y[ends[e, 1]]:
            mu[2 * n_nodes + e] += scale


@implements(generics.score_output, GraphCutProblem)
def score_cut(problem, i, theta, y):
    n_nodes, n_edges = sizes(problem, i)
    ends = problem.ends[problem.edge_starts[i] : problem.edge_starts[i + 1]]  # loops over a slice are fast
    total = 0.0
    for p in range(n_nodes):
        total += theta[y[p] * n_nodes + p]
    for e in range(n_edges):
        total += theta[2 * n_nodes + e] * (y[ends[e, 0]] != y[ends[e, 1]])  # a branch would be guessed wrong too often
    return total


implements(generics.max_oracle, GraphCutProblem)(best_cut)
implements(generics.max_marginals, GraphCutProblem)(best_through_nodes)
implements(generics.topk_oracle, GraphCutProblem)(k_best)
