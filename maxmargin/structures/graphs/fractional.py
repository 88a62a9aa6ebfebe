"""Graphs whose outputs are points of the local polytope: over-generating training (Finley, Joachims 2008).

The max oracle then is the relaxation itself, a linear program, and the loss that solvers minimise is `RelaxedLoss`
without entropy: at least the hinge loss, and equal to it where relaxations are tight. An output is a row with the
number of units of each part, 2**30 of which are one, and satisfies the constraints exactly: parts of a node add up to
one, rows and columns of an edge to the parts of its nodes. With as many numbers as there are parts in every stored
output, this is for graphs of some thousand parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.graphs.cliques import size_of
from maxmargin.structures.graphs.graph_problem import FractionalProblem, LoopyProblem, ends_in_all, new_spread
from maxmargin.structures.graphs.local_polytope import shape_of
from maxmargin.structures.graphs.relaxation import RelaxationWork, make_uniform, maximise, new_relaxation

UNITS = 2**30
RELAXATION_WORK = 300.0  # operations per part: a few, there and back, in some dozen rounds


class FractionalWork(NamedTuple):
    """The buffer of direction norms, and where the relaxation of every example got to."""

    spread: np.ndarray  # as the weights, zero
    relaxation: RelaxationWork
    means: np.ndarray  # of all examples
    starts: np.ndarray  # (n + 1,) where those of each begin
    is_begun: np.ndarray  # (n,) bool


@implements(generics.true_outputs, FractionalProblem)
def true_points(problem):
    graphs = problem.graphs
    nodes, edges, labels = graphs.nodes, graphs.edges, graphs.supervision.labels
    starts = starts_of(generics.part_sizes(problem))
    ends = ends_in_all(graphs)
    both = labels[ends[:, 0]] * nodes.n_parts[nodes.type[ends[:, 1]]] + labels[ends[:, 1]]
    values = np.zeros(starts[-1], np.int32)
    values[nodes.part + np.repeat(starts[:-1], np.diff(nodes.starts)) + labels] = UNITS
    values[edges.part + np.repeat(starts[:-1], np.diff(edges.starts)) + both] = UNITS
    return Blocks(values, starts)


@implements(generics.oracle_work, FractionalProblem)
def fractional_work(problem):
    return RELAXATION_WORK


@implements(generics.workspace, FractionalProblem)
def fractional_workspace(problem, n_best):
    starts = starts_of(generics.part_sizes(problem))
    means, is_begun = aligned((starts[-1],), np.float64), aligned((len(starts) - 1,), np.bool_)
    return FractionalWork(new_spread(problem), new_relaxation(problem), means, starts, is_begun)


@implements(generics.add_output, FractionalProblem)
def add_point(problem, i, y, scale, mu):
    for p in range(mu.size):
        if y[p] != 0:
            mu[p] += scale * (y[p] / UNITS)


@implements(generics.score_output, FractionalProblem)
def score_point(problem, i, theta, y):
    total = 0.0
    for p in range(theta.size):
        total += theta[p] * (y[p] / UNITS)
    return total


@implements(generics.max_oracle, LoopyProblem, FractionalProblem)
def max_of_bounded(problem, i, theta, y, work):
    generics.bound_oracle(problem, i, theta, y, work)
    return generics.score_output(problem, i, theta, y)


@implements(generics.bound_oracle, FractionalProblem)
def fractional_bound(problem, i, theta, y, work):
    means = work.means[work.starts[i] : work.starts[i + 1]]
    if not work.is_begun[i]:
        make_uniform(problem.graphs.nodes, i, means)
        make_uniform(problem.graphs.edges, i, means)
        work.is_begun[i] = True
    bound = maximise(problem, i, theta, 0.0, means, work.relaxation)
    count_units(problem, i, work.relaxation.feasible, y, work.relaxation.scratch)
    return max(bound, generics.score_output(problem, i, theta, y))


@helper
def count_units(problem, i, mu, y, scratch):
    """Write mu in units into y: what rounding leaves of a node goes to its largest part, of an edge where both of its
    ends lack some.
    """
    nodes = problem.graphs.nodes
    edges = problem.graphs.edges
    lo = nodes.starts[i]
    for c in range(lo, nodes.starts[i + 1]):
        at = nodes.part[c]
        rest = UNITS
        top = at
        for p in range(at, at + size_of(nodes, c)):
            y[p] = np.int32(mu[p] * UNITS)
            rest -= y[p]
            top = p if mu[p] > mu[top] else top
        y[top] += rest
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = shape_of(problem.constraints, e)
        at = edges.part[e]
        rows = scratch[0]  # units that are missing in each; floats hold them exactly
        columns = scratch[1]
        for x in range(n_first):
            rows[x] = y[nodes.part[lo + problem.graphs.ends[e, 0]] + x]
        for z in range(n_second):
            columns[z] = y[nodes.part[lo + problem.graphs.ends[e, 1]] + z]
        for x in range(n_first):
            for z in range(n_second):
                p = at + x * n_second + z
                y[p] = np.int32(min(max(mu[p] * UNITS - 1, 0.0), rows[x], columns[z]))
                rows[x] -= y[p]
                columns[z] -= y[p]
        x = 0
        z = 0
        while x < n_first and z < n_second:
            units = min(rows[x], columns[z])
            y[at + x * n_second + z] += np.int32(units)
            rows[x] -= units
            columns[z] -= units
            if rows[x] == 0:
                x += 1
            else:
                z += 1
