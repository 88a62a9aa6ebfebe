"""Minimum cuts of the graphs of a `GraphCutProblem`: the best labels, what it costs to flip one, and the K best.

All take a problem, an example of it, its potentials `theta` and a `GraphCutWork`.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin.arrays.views import index, matrix
from maxmargin.losses.smoothing import has_weight
from maxmargin.problem import IMPOSSIBLE, score_output
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.cuts.max_flow import SOURCE, change_excess, plant_trees, push_along_edges, saturate

# Potentials become integers, so that flows are exact: the sum of all capacities stays below this power of two.
CAPACITY_BITS = 60
TOO_MUCH = 2**CAPACITY_BITS  # more than all capacities together: no possible output loses as much
FORCE = 2 * TOO_MUCH  # what rules out a label of a node, or that an edge is cut: too much, whatever else is gained
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


@helper
def sizes(problem, i):
    """The numbers of nodes and edges of example i."""
    return problem.starts[i + 1] - problem.starts[i], problem.edge_starts[i + 1] - problem.edge_starts[i]


@helper
def arcs(problem, i):
    """The arcs of example i: first, out, ends."""
    n_nodes, n_edges = sizes(problem, i)
    lo = problem.starts[i] + i
    begin = 2 * problem.edge_starts[i]
    ends = matrix(problem.ends, begin, 1, 2 * n_edges)[0]
    return problem.arcs.first[lo : lo + n_nodes + 1], problem.arcs.out[begin : begin + 2 * n_edges], ends


@helper
def is_ruled_out(potential):
    """Whether a part is impossible, but for costs that were added to its potential."""
    return abs(potential - IMPOSSIBLE) <= -1e-6 * IMPOSSIBLE


@helper
def sum_of_capacities(problem, i, theta):
    """All capacities of example i, edges in both directions; raises where an edge rewards being cut."""
    n_nodes, n_edges = sizes(problem, i)
    total = 0.0
    largest = 0.0
    for p in range(n_nodes):
        if not (is_ruled_out(theta[p]) or is_ruled_out(theta[n_nodes + p])):
            gain = abs(np.float64(theta[n_nodes + p]) - theta[p])
            total += gain
            largest = max(largest, gain)
    reward = 0.0
    for e in range(n_edges):
        potential = np.float64(theta[2 * n_nodes + e])
        if not is_ruled_out(potential):
            total += 2 * abs(potential)
            largest = max(largest, abs(potential))
            reward = max(reward, potential)
    if reward > ROUNDING * largest:
        raise NotSubmodularError
    return total


@helper
def scale_of(total):
    """The power of two that takes capacities of this sum to integers."""
    return math.ldexp(1.0, min(CAPACITY_BITS - math.frexp(total)[1], 1000))


@helper
def capacity_scale(problem, i, theta):
    """The power of two that takes potentials to integers; raises where an edge rewards being cut."""
    return scale_of(sum_of_capacities(problem, i, theta))


@helper
def open_arcs(problem, i, theta, flow, last, fixed, scale):
    """Write excesses of nodes and residual capacities of edges of example i, along which the `last` flow goes.

    `fixed` holds labels that nodes must have, or UNFIXED; it may be empty.
    """
    n_nodes, n_edges = sizes(problem, i)
    _, _, ends = arcs(problem, i)
    residual = flow.residual
    excess = flow.excess
    for p in range(n_nodes):
        if is_ruled_out(theta[n_nodes + p]):
            excess[p] = -FORCE
        elif is_ruled_out(theta[p]):
            excess[p] = FORCE
        else:
            excess[p] = np.int64((np.float64(theta[n_nodes + p]) - theta[p]) * scale)
    for p in range(fixed.size):
        if fixed[p] != UNFIXED:
            excess[p] += FORCE if fixed[p] == 1 else -FORCE
    for e in range(n_edges):
        if is_ruled_out(theta[2 * n_nodes + e]):
            capacity = np.float64(FORCE)
            along = np.int64(0)
        else:
            capacity = max(-theta[2 * n_nodes + e], 0) * scale
            along = np.int64(min(max(last[e] * scale, -capacity), capacity))
        excess[index(ends[2 * e])] -= along
        excess[index(ends[2 * e + 1])] += along
        residual[2 * e] = np.int64(capacity) - along
        residual[2 * e + 1] = np.int64(capacity) + along


@helper
def cut(problem, i, theta, work, fixed, scale):
    """Find the maximum flow of example i, whose source side are the nodes of label 1.

    The flow starts from the last one of the example. `fixed` is that of `open_arcs`.
    """
    n_nodes, n_edges = sizes(problem, i)
    first, out, ends = arcs(problem, i)
    residual = work.flow.residual
    last = work.last[problem.edge_starts[i] : problem.edge_starts[i + 1]]
    open_arcs(problem, i, theta, work.flow, last, fixed, scale)
    push_along_edges(work.flow, ends)
    plant_trees(work.flow, n_nodes, ends)
    saturate(first, out, ends, work.flow)
    half_unit = 0.5 / scale
    for e in range(n_edges):
        last[e] = half_unit * (residual[2 * e + 1] - residual[2 * e])


@helper
def read_labels(problem, i, flow, y):
    """The nodes on the source's side have label 1: the fewest that any best output has."""
    for p in range(problem.starts[i + 1] - problem.starts[i]):
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


@helper
def best_cut(problem, i, theta, y, work):
    """Write the best output into `y`; return its score."""
    cut(problem, i, theta, work, work.fixed[0, :0], capacity_scale(problem, i, theta))
    read_labels(problem, i, work.flow, y)
    return score_output(problem, i, theta, y)


@helper
def best_through_nodes(problem, i, theta, out, work):
    """The scores of the best outputs with each label of each node."""
    n_nodes, _ = sizes(problem, i)
    scale = capacity_scale(problem, i, theta)
    best = best_cut(problem, i, theta, work.y, work)
    for p in range(n_nodes):
        label = work.y[p]
        loss = loss_of_flip(problem, i, work.flow, p, label, TOO_MUCH)
        out[label * n_nodes + p] = best
        out[(1 - label) * n_nodes + p] = best - loss / scale if loss < TOO_MUCH else IMPOSSIBLE


@helper
def k_best(problem, i, theta, outputs, values, level, work):
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
    least = TOO_MUCH
    for p in range(problem.starts[i + 1] - problem.starts[i]):
        if work.fixed[part, p] == UNFIXED:
            loss = loss_of_flip(problem, i, work.flow, p, y[p], least)
            if loss < least:
                least = loss
                work.parts[part, NEXT_NODE] = p
    work.parts[part, NEXT_LOSS] = work.parts[part, LOSS] + least
