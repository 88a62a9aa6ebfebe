"""The best mixture of two labellings of a graph by a minimum cut: exact for two states, else moves that improve labels.

Each node keeps its label (x = 0) or takes the other one (x = 1), and the score of an edge (p, q) becomes

    s_00 + (s_10 - s_00) x_p + (s_11 - s_10) x_q - capacity (1 - x_p) x_q,  capacity = s_00 + s_11 - s_01 - s_10,

with an arc from q to p where the capacity is not negative: the edge is submodular. Where it is negative it is taken for
zero, which lowers s_01 and no other score. So the best cut of this lower bound, which is exact at x = 0, is never worse
than the labels were (Rother, Kumar, Kolmogorov, Blake 2005), and what was neglected says by how much the best mixture
may be better.

With labels 0 and 1 everywhere as the two labellings all outputs of a graph of two states are mixtures. With one label
everywhere as the other labelling it is an expansion move (Boykov, Veksler, Zabih 2001).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.cuts.max_flow import SOURCE, Flow, new_flow, plant_trees, saturate
from maxmargin.structures.cuts.minimum_cuts import scale_of

MOST_ROUNDS = 5  # of expansions of all states


class FusionWork(NamedTuple):
    """The flow at hand, and the numbers that it is made of."""

    flow: Flow
    gain: np.ndarray  # (V,) of a node that takes the other label
    capacity: np.ndarray  # (E,)
    other: np.ndarray  # (V,) int32, the other labelling


def new_fusion(n_nodes: int, n_edges: int) -> FusionWork:
    """Room for graphs of up to so many nodes and edges."""
    return FusionWork(
        flow=new_flow(n_nodes, 2 * n_edges),
        gain=aligned((n_nodes,), np.float64),
        capacity=aligned((n_edges,), np.float64),
        other=aligned((n_nodes,), np.int32),
    )


@helper
def fuse(problem, i, theta, y, flows, work):
    """Replace y by its best mixture with work.other.

    Return how many labels have changed, each set of changes for a better score, and what neglected capacities may hide.

    `flows` has the flow along each edge of the graph from which to start, and in the end the maximum flow.
    """
    scale, neglected = set_capacities(problem, i, theta, y, work)
    nodes = problem.graphs.nodes
    lo = nodes.starts[i] + i
    begin = problem.graphs.edges.starts[i]
    n_nodes = nodes.starts[i + 1] - nodes.starts[i]
    n_edges = problem.graphs.edges.starts[i + 1] - begin
    first = problem.arcs.first[lo : lo + n_nodes + 1]
    out = problem.arcs.out[2 * begin : 2 * begin + 2 * n_edges]
    ends = matrix(problem.graphs.ends, 2 * begin, 1, 2 * n_edges)[0]
    residual = work.flow.residual
    excess = work.flow.excess
    for p in range(n_nodes):
        excess[p] = np.int64(work.gain[p] * scale)
    for e in range(n_edges):
        capacity = np.int64(work.capacity[e] * scale)
        along = np.int64(min(max(flows[e], 0.0), work.capacity[e]) * scale)
        excess[ends[2 * e]] += along
        excess[ends[2 * e + 1]] -= along
        residual[2 * e] = along
        residual[2 * e + 1] = capacity - along
    plant_trees(work.flow, n_nodes, ends)
    saturate(first, out, ends, work.flow)
    for e in range(n_edges):
        flows[e] = residual[2 * e] / scale
    n_changed = 0
    for p in range(n_nodes):
        if work.flow.tree[p] == SOURCE:
            n_changed += 1
            y[p] = work.other[p]
    return n_changed, neglected


@helper
def set_capacities(problem, i, theta, y, work):
    """Write gains and capacities; return the power of two that takes them to integers, and the capacities neglected."""
    graphs = problem.graphs
    nodes = graphs.nodes
    edges = graphs.edges
    other = work.other
    lo = nodes.starts[i]
    total = 0.0
    neglected = 0.0
    for c in range(lo, nodes.starts[i + 1]):
        p = c - lo
        work.gain[p] = theta[nodes.part[c] + other[p]] - theta[nodes.part[c] + y[p]]
        total += abs(work.gain[p])
    for e in range(edges.starts[i], edges.starts[i + 1]):
        p = graphs.ends[e, 0]
        q = graphs.ends[e, 1]
        n_second = nodes.n_parts[nodes.type[lo + q]]
        keeps = edges.part[e] + y[p] * n_second
        moves = edges.part[e] + other[p] * n_second
        s_00 = theta[keeps + y[q]]
        s_10 = theta[moves + y[q]]
        s_11 = theta[moves + other[q]]
        capacity = (s_00 - s_10) + (s_11 - theta[keeps + other[q]])
        work.gain[p] += s_10 - s_00
        work.gain[q] += s_11 - s_10
        total += abs(s_10 - s_00) + abs(s_11 - s_10) + 2 * abs(capacity)
        neglected += max(-capacity, 0.0)
        work.capacity[e - edges.starts[i]] = max(capacity, 0.0)
    return scale_of(total), neglected


@helper
def expand(problem, i, theta, y, flows, work):
    """Expand one state after the other, until none improves the labels; return how often labels have changed."""
    nodes = problem.graphs.nodes
    lo = nodes.starts[i]
    n_nodes = nodes.starts[i + 1] - lo
    most = 0
    for c in range(lo, nodes.starts[i + 1]):
        most = max(most, nodes.n_parts[nodes.type[c]])
    n_changed = 0
    n_idle = 0
    for move in range(MOST_ROUNDS * most):
        state = move % most
        for p in range(n_nodes):
            work.other[p] = state if state < nodes.n_parts[nodes.type[lo + p]] else y[p]
        n_moved, _ = fuse(problem, i, theta, y, flows, work)
        n_changed += n_moved
        n_idle = 0 if n_moved > 0 else n_idle + 1
        if n_idle >= most:
            break
    return n_changed
