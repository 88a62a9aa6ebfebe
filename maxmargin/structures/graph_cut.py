"""Binary labels on graphs with attractive edges.

An output of example i is a row of labels 0 and 1, one per node. Its parts are the indicators of label 0 at each node,
then of label 1, then of each edge being cut, that is, of its ends having different labels. The weights are those of the
node features, for label 1, then those of the edge features. Edge features are stored with a negative sign: they are
what a cut costs, and with non-negative weights the best output is a minimum cut.

Max-marginals are those of the node parts; the parts of edges are left alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.features import score_rows, spread_rows, squared_norm_rows
from maxmargin.problem import max_oracle, score_output
from maxmargin.runtime.blocks import Blocks
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.runtime.threads import aligned
from maxmargin.runtime.views import index, matrix
from maxmargin.smoothing import has_weight
from maxmargin.structures.max_flow import (
    SOURCE,
    Flow,
    change_excess,
    new_flow,
    plant_trees,
    push_along_edges,
    saturate,
)

# Potentials become integers, so that flows are exact: the sum of all capacities stays below this power of two.
CAPACITY_BITS = 60
FORCE = 2**61  # more than all capacities together
ROUNDING = 1e-5  # positive potentials of cut edges, relative to the largest potential, that are taken for zero
UNFIXED = -1  # a node whose label is not fixed

# Of a part of the outputs, what its best one loses against the best of all, what its second best one loses, and a node
# where the two differ, -1 if there is no second one.
LOSS, NEXT_LOSS, NEXT_NODE = range(3)


class NotSubmodularError(ValueError):
    """Raised where cutting an edge is rewarded, so that the best output is no minimum cut."""

    def __str__(self) -> str:
        return (
            "An edge rewards different labels at its ends: weights and features of edges must not be negative "
            "(solvers keep weights so by the bound lower=0)."
        )


class GraphCutProblem(NamedTuple):
    """Graphs stored one after the other: of example i, the nodes offsets[i]:offsets[i + 1], and likewise the edges."""

    features: Any  # of nodes
    edge_features: Any  # negative
    offsets: np.ndarray  # (n + 1,) int64
    edge_offsets: np.ndarray  # (n + 1,) int64
    ends: np.ndarray  # (M, 2) int32, nodes counted from the first one of the example
    labels: np.ndarray  # (N,) int32, the true labels
    cost: np.ndarray  # (N,) cost of each node's wrong label
    first: np.ndarray  # (N + n,) int32, arcs of example i as in `max_flow`, from offsets[i] + i on
    out: np.ndarray  # (2 M,) int32
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


@helper
def sizes(problem, i):
    """The numbers of nodes and edges of example i."""
    return problem.offsets[i + 1] - problem.offsets[i], problem.edge_offsets[i + 1] - problem.edge_offsets[i]


@helper
def arcs(problem, i):
    """The arcs of example i: first, out, ends."""
    n_nodes, n_edges = sizes(problem, i)
    lo = problem.offsets[i] + i
    begin = 2 * problem.edge_offsets[i]
    ends = matrix(problem.ends, begin, 1, 2 * n_edges)[0]
    return problem.first[lo : lo + n_nodes + 1], problem.out[begin : begin + 2 * n_edges], ends


@implements(generics.true_outputs, GraphCutProblem)
def true_cuts(problem):
    return Blocks(problem.labels, problem.offsets)


@implements(generics.new_weights, GraphCutProblem)
def new_graph_weights(problem):
    return np.zeros(problem.n_features + problem.n_edge_features, problem.cost.dtype)


@implements(generics.part_sizes, GraphCutProblem)
def graph_part_sizes(problem):
    return 2 * np.diff(problem.offsets) + np.diff(problem.edge_offsets)


@implements(generics.workspace, GraphCutProblem)
def graph_workspace(problem, n_best):
    n_nodes, n_edges = np.diff(problem.offsets).max(), np.diff(problem.edge_offsets).max()
    dtype = problem.cost.dtype
    return GraphCutWork(
        flow=new_flow(n_nodes, 2 * n_edges),
        last=aligned((problem.edge_offsets[-1],), np.float64),
        spread=aligned((problem.n_features, 1), dtype),
        edge_spread=aligned((problem.n_edge_features, 1), dtype),
        fixed=aligned((n_best, n_nodes), np.int8),
        parts=aligned((n_best, 3), np.int64),
        y=aligned((n_nodes,), np.int32),
    )


@implements(generics.scores, GraphCutProblem)
def graph_scores(problem, w, i, theta):
    n_nodes, n_edges = sizes(problem, i)
    for p in range(n_nodes):
        theta[p] = 0
    of_nodes = matrix(w, 0, problem.n_features, 1)
    of_edges = matrix(w, problem.n_features, problem.n_edge_features, 1)
    ones = matrix(theta, n_nodes, n_nodes, 1)
    cuts = matrix(theta, 2 * n_nodes, n_edges, 1)
    score_rows(problem.features, of_nodes, problem.offsets[i], problem.offsets[i + 1], ones)
    if n_edges > 0:
        score_rows(problem.edge_features, of_edges, problem.edge_offsets[i], problem.edge_offsets[i + 1], cuts)


@implements(generics.spread, GraphCutProblem)
def spread_graph(problem, w, i, delta, scale):
    n_nodes, n_edges = sizes(problem, i)
    of_nodes = matrix(w, 0, problem.n_features, 1)
    of_edges = matrix(w, problem.n_features, problem.n_edge_features, 1)
    ones = matrix(delta, n_nodes, n_nodes, 1)
    cuts = matrix(delta, 2 * n_nodes, n_edges, 1)
    spread_rows(problem.features, of_nodes, problem.offsets[i], problem.offsets[i + 1], ones, scale)
    spread_rows(problem.edge_features, of_edges, problem.edge_offsets[i], problem.edge_offsets[i + 1], cuts, scale)


@implements(generics.squared_norm, GraphCutProblem)
def graph_squared_norm(problem, i, delta, work):
    n_nodes, n_edges = sizes(problem, i)
    lo = problem.offsets[i]
    begin = problem.edge_offsets[i]
    ones = matrix(delta, n_nodes, n_nodes, 1)
    cuts = matrix(delta, 2 * n_nodes, n_edges, 1)
    total = squared_norm_rows(problem.features, i, lo, lo + n_nodes, ones, work.spread)
    return total + squared_norm_rows(problem.edge_features, i, begin, begin + n_edges, cuts, work.edge_spread)


@implements(generics.augment, GraphCutProblem)
def augment_graph(problem, i, theta):
    n_nodes, _ = sizes(problem, i)
    labels = problem.labels[problem.offsets[i] : problem.offsets[i + 1]]
    cost = problem.cost[problem.offsets[i] : problem.offsets[i + 1]]
    for p in range(n_nodes):
        theta[(1 - labels[p]) * n_nodes + p] += cost[p]


@implements(generics.add_output, GraphCutProblem)
def add_cut(problem, i, y, scale, mu):
    n_nodes, n_edges = sizes(problem, i)
    ends = problem.ends[problem.edge_offsets[i] : problem.edge_offsets[i + 1]]  # loops over a slice are fast
    for p in range(n_nodes):
        mu[y[p] * n_nodes + p] += scale
    for e in range(n_edges):
        if y[ends[e, 0]] != y[ends[e, 1]]:
            mu[2 * n_nodes + e] += scale


@implements(generics.score_output, GraphCutProblem)
def score_cut(problem, i, theta, y):
    n_nodes, n_edges = sizes(problem, i)
    ends = problem.ends[problem.edge_offsets[i] : problem.edge_offsets[i + 1]]  # loops over a slice are fast
    total = 0.0
    for p in range(n_nodes):
        total += theta[y[p] * n_nodes + p]
    for e in range(n_edges):
        total += theta[2 * n_nodes + e] * (y[ends[e, 0]] != y[ends[e, 1]])  # a branch would be guessed wrong too often
    return total


@helper
def capacity_scale(problem, i, theta):
    """The power of two that takes potentials to integers; raises where an edge rewards being cut."""
    n_nodes, n_edges = sizes(problem, i)
    total = 0.0
    largest = 0.0
    for p in range(n_nodes):
        gain = abs(np.float64(theta[n_nodes + p]) - theta[p])
        total += gain
        largest = max(largest, gain)
    reward = 0.0
    for e in range(n_edges):
        potential = np.float64(theta[2 * n_nodes + e])
        total += 2 * abs(potential)
        largest = max(largest, abs(potential))
        reward = max(reward, potential)
    if reward > ROUNDING * largest:
        raise NotSubmodularError
    return math.ldexp(1.0, min(CAPACITY_BITS - math.frexp(total)[1], 1000))


@helper
def cut(problem, i, theta, work, fixed, scale):
    """Find the maximum flow of example i, whose source side are the nodes of label 1.

    The flow starts from the last one of the example. `fixed` holds labels that nodes must have, or UNFIXED; it may be
    empty.
    """
    n_nodes, n_edges = sizes(problem, i)
    first, out, ends = arcs(problem, i)
    residual = work.flow.residual
    excess = work.flow.excess
    last = work.last[problem.edge_offsets[i] : problem.edge_offsets[i + 1]]
    for p in range(n_nodes):
        excess[p] = np.int64((np.float64(theta[n_nodes + p]) - theta[p]) * scale)
    for p in range(fixed.size):
        if fixed[p] != UNFIXED:
            excess[p] += FORCE if fixed[p] == 1 else -FORCE
    for e in range(n_edges):
        capacity = max(-theta[2 * n_nodes + e], 0) * scale
        along = np.int64(min(max(last[e] * scale, -capacity), capacity))
        excess[index(ends[2 * e])] -= along
        excess[index(ends[2 * e + 1])] += along
        residual[2 * e] = np.int64(capacity) - along
        residual[2 * e + 1] = np.int64(capacity) + along
    push_along_edges(work.flow, ends)
    plant_trees(work.flow, n_nodes, ends)
    saturate(first, out, ends, work.flow)
    half_unit = 0.5 / scale
    for e in range(n_edges):
        last[e] = half_unit * (residual[2 * e + 1] - residual[2 * e])


@helper
def read_labels(problem, i, flow, y):
    """The nodes on the source's side have label 1: the fewest that any best output has."""
    for p in range(problem.offsets[i + 1] - problem.offsets[i]):
        y[p] = flow.tree[p] == SOURCE


@helper
def loss_of_flip(problem, i, flow, p, label, limit):
    """What the best output loses if p must not have its `label`, at most `limit`; the flow stays a maximum one."""
    if abs(flow.excess[p]) >= limit:
        return limit
    loss = abs(flow.excess[p])
    first, out, ends = arcs(problem, i)
    force = -limit if label == 1 else limit
    change_excess(first, out, ends, flow, p, force)
    loss += saturate(first, out, ends, flow)
    change_excess(first, out, ends, flow, p, -force)
    return loss


@implements(generics.max_oracle, GraphCutProblem)
def max_cut(problem, i, theta, y, work):
    cut(problem, i, theta, work, work.fixed[0, :0], capacity_scale(problem, i, theta))
    read_labels(problem, i, work.flow, y)
    return score_output(problem, i, theta, y)


@implements(generics.max_marginals, GraphCutProblem)
def graph_max_marginals(problem, i, theta, out, work):
    n_nodes, _ = sizes(problem, i)
    scale = capacity_scale(problem, i, theta)
    best = max_oracle(problem, i, theta, work.y, work)
    for p in range(n_nodes):
        label = work.y[p]
        out[label * n_nodes + p] = best
        out[(1 - label) * n_nodes + p] = best - loss_of_flip(problem, i, work.flow, p, label, FORCE) / scale


@implements(generics.topk_oracle, GraphCutProblem)
def topk_cuts(problem, i, theta, outputs, values, level, work):
    """Best max-marginal first (*Smoother*, Algorithm 10; Yanover, Weiss 2004), exact with ties, too.

    The outputs found so far lie in different parts of all outputs, described by fixed labels. The next one is the best
    of the second best outputs of the parts; its part is split in two.
    """
    n_nodes, _ = sizes(problem, i)
    scale = capacity_scale(problem, i, theta)
    for p in range(n_nodes):
        work.fixed[0, p] = UNFIXED
    work.parts[0, LOSS] = 0
    cut(problem, i, theta, work, work.fixed[0, :n_nodes], scale)
    read_labels(problem, i, work.flow, outputs[0])
    values[0] = score_output(problem, i, theta, outputs[0])
    split = 0
    for new in range(1, values.size):
        find_second_best(problem, i, outputs[new - 1], new - 1, work)
        if split != new - 1:
            cut(problem, i, theta, work, work.fixed[split, :n_nodes], scale)
            find_second_best(problem, i, outputs[split], split, work)
        split = -1
        for part in range(new):
            is_better = split < 0 or work.parts[part, NEXT_LOSS] < work.parts[split, NEXT_LOSS]
            if work.parts[part, NEXT_NODE] >= 0 and is_better:
                split = part
        if split < 0:
            return new
        node = work.parts[split, NEXT_NODE]
        for p in range(n_nodes):
            work.fixed[new, p] = work.fixed[split, p]
        work.fixed[split, node] = outputs[split, node]
        work.fixed[new, node] = 1 - outputs[split, node]
        work.parts[new, LOSS] = work.parts[split, NEXT_LOSS]
        cut(problem, i, theta, work, work.fixed[new, :n_nodes], scale)
        read_labels(problem, i, work.flow, outputs[new])
        values[new] = score_output(problem, i, theta, outputs[new])
        if not has_weight(values, new, level):
            return new
    return values.size


@helper
def find_second_best(problem, i, y, part, work):
    """Find where the second best output of a part differs from its best, y, whose flow is at hand."""
    work.parts[part, NEXT_NODE] = -1
    least = FORCE
    for p in range(problem.offsets[i + 1] - problem.offsets[i]):
        if work.fixed[part, p] == UNFIXED:
            loss = loss_of_flip(problem, i, work.flow, p, y[p], least)
            if loss < least:
                least = loss
                work.parts[part, NEXT_NODE] = p
    work.parts[part, NEXT_LOSS] = work.parts[part, LOSS] + least
