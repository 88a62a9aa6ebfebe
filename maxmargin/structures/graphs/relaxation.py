"""The best mean parts over the local polytope of a graph, at given potentials, with or without an entropy.

    maximise <theta, mu> + temperature * sum of (1 - ||mu_c||^2) over nodes and edges c, mu in the local polytope,

by the augmented Lagrangian of `local_polytope`. Without entropy this is the relaxation of the best output, a linear
program, whose solutions are outputs or fractional vertices.

Any delta gives a bound, the sum of the maxima over the simplices, and any mu is near a point of the local polytope:
together they tell when to stop. Message passing (`messages`) finds nearly as good a bound in far less time, but not the
best one, and no mean parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE, part_sizes
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.graphs.cliques import copy_parts, size_of
from maxmargin.structures.graphs.graph_problem import FractionalProblem, LoopyProblem
from maxmargin.structures.graphs.local_polytope import (
    find_margins,
    find_prox_step,
    follow_edge,
    follow_node,
    make_consistent,
    project,
    shape_of,
    step_multipliers,
    take_step,
    tilt_edge,
    tilt_node,
    write_residual,
)

MOST_PASSES = 1000
CHECK_EVERY = 10  # passes
ACCURACY = 1e-4  # of the bound
LEAST_BEND = 1e-9  # where nothing else bends: nodes without edges, and graphs without potentials
INTEGRAL = 1e-3  # how far from 1 a mean part may be


class RelaxationWork(NamedTuple):
    """Where relaxations got to, and buffers for the largest graph."""

    multipliers: np.ndarray  # of all graphs
    delta: np.ndarray  # likewise
    theta: np.ndarray
    feasible: np.ndarray
    scratch: np.ndarray  # (3, parts of the largest node or edge)


def new_relaxation(problem: LoopyProblem | FractionalProblem) -> RelaxationWork:
    """Room for the graphs of a problem."""
    of_all, largest = (problem.constraints.starts[-1],), (part_sizes(problem).max(),)
    n_parts = max(cliques.n_parts.max(initial=0) for cliques in (problem.graphs.nodes, problem.graphs.edges))
    return RelaxationWork(*(aligned(shape, np.float64) for shape in (of_all, of_all, largest, largest, (3, n_parts))))


@helper
def copy_potentials(theta, most, out):
    """In float64, with impossible parts at a loss that no output could make up for: their own would swamp the rest.

    Nor could the entropy, which is `most` at most. Return the loss.
    """
    loss = 1.0 + 2 * most
    for p in range(theta.size):
        if theta[p] > IMPOSSIBLE / 2:
            loss += 2 * abs(theta[p])
    for p in range(theta.size):
        out[p] = theta[p] if theta[p] > IMPOSSIBLE / 2 else -loss
    return loss


@helper
def copy_to_pairs(problem, i, potentials, loss, theta):
    """Let pairs of states lose as much as impossible states that are in them, whose mean parts are zero then, too."""
    graphs = problem.graphs
    lo = graphs.nodes.starts[i]
    for e in range(graphs.edges.starts[i], graphs.edges.starts[i + 1]):
        n_first, n_second = shape_of(problem.constraints, e)
        first = graphs.nodes.part[lo + graphs.ends[e, 0]]
        second = graphs.nodes.part[lo + graphs.ends[e, 1]]
        for x in range(n_first):
            for z in range(n_second):
                if min(potentials[first + x], potentials[second + z]) <= IMPOSSIBLE / 2:
                    theta[graphs.edges.part[e] + x * n_second + z] = -loss


@helper
def maximise(problem, i, potentials, temperature, mu, work):
    """Write mean parts of graph i, about the best ones, into `work.feasible`; return a bound of the maximum.

    It starts from `mu` and the last multipliers, and leaves there where it got to.
    """
    theta = work.theta[: potentials.size]
    feasible = work.feasible[: potentials.size]
    multipliers = work.multipliers
    delta = work.delta
    scratch = work.scratch
    graphs = problem.graphs
    constraints = problem.constraints
    nodes = graphs.nodes
    edges = graphs.edges
    n_cliques = nodes.starts[i + 1] - nodes.starts[i] + edges.starts[i + 1] - edges.starts[i]
    loss = copy_potentials(potentials, temperature * n_cliques, theta)
    copy_to_pairs(problem, i, potentials, loss, theta)
    ranges = sum_of_ranges(nodes, i, theta) + sum_of_ranges(edges, i, theta)
    rho = 1 / (0.1 * ranges / n_cliques + 2 * temperature + LEAST_BEND)
    for e in range(edges.starts[i], edges.starts[i + 1]):
        write_residual(graphs, constraints, i, e, mu, delta, scratch)
    for x in range(constraints.starts[2 * edges.starts[i]], constraints.starts[2 * edges.starts[i + 1]]):
        delta[x] = multipliers[x] - delta[x] / rho
    bound = 1e300
    for _ in range(MOST_PASSES // CHECK_EVERY):
        for _ in range(CHECK_EVERY):
            ascend_graph(problem, i, theta, temperature, rho, mu, delta, scratch)
            step_multipliers(constraints, edges.starts[i], edges.starts[i + 1], delta, multipliers)
        bound = min(bound, bound_score(problem, i, theta, temperature, delta, scratch))
        make_consistent(graphs, constraints, i, mu, feasible, scratch)
        value = temperature * n_cliques
        for p in range(theta.size):
            value += (theta[p] - temperature * feasible[p]) * feasible[p]
        if bound - value <= ACCURACY * (1 + abs(bound)):
            break
    return bound


@helper
def sum_of_ranges(cliques, i, theta):
    """The differences between the best and the worst potential of each node, or of each edge, added up."""
    total = 0.0
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        at = cliques.part[c]
        least = theta[at]
        most = theta[at]
        for p in range(at, at + size_of(cliques, c)):
            least = min(least, theta[p])
            most = max(most, theta[p])
        total += most - least
    return total


@helper
def ascend_graph(problem, i, theta, temperature, rho, mu, delta, scratch):
    """A prox step on every node and edge of graph i."""
    constraints = problem.constraints
    nodes = problem.graphs.nodes
    edges = problem.graphs.edges
    step = scratch[0]
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        size = write_node(problem, c, theta, delta, step)
        degree = constraints.first[c + 1] - constraints.first[c]
        bend = max(degree / rho, LEAST_BEND) + 2 * temperature
        find_prox_step(step, mu, nodes.part[c], size, temperature, bend, step)
        take_step(mu, nodes.part[c], size, 1.0, step)
        follow_node(constraints, c, size, step, 1 / rho, delta)
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = write_edge(problem, e, theta, delta, step)
        size = n_first * n_second
        bend = max(n_first, n_second) / rho + 2 * temperature
        find_prox_step(step, mu, edges.part[e], size, temperature, bend, step)
        take_step(mu, edges.part[e], size, 1.0, step)
        find_margins(step, 0, n_first, n_second, scratch[1], scratch[2])
        follow_edge(constraints, e, scratch[1], scratch[2], 1 / rho, delta)


@helper
def write_node(problem, c, theta, delta, out):
    """Write theta'_c of node c, counted over all graphs; return its size."""
    size = copy_parts(problem.graphs.nodes, c, theta, out)
    tilt_node(problem.constraints, c, size, delta, out)
    return size


@helper
def write_edge(problem, e, theta, delta, out):
    """Write theta'_e of edge e; return its numbers of rows and columns."""
    n_first, n_second = shape_of(problem.constraints, e)
    copy_parts(problem.graphs.edges, e, theta, out)
    tilt_edge(problem.constraints, e, n_first, n_second, delta, out)
    return n_first, n_second


@helper
def bound_score(problem, i, theta, temperature, delta, scratch):
    """The sum over nodes and edges of the maxima of <theta'_c, u> + temperature (1 - ||u||^2) over the simplex."""
    nodes = problem.graphs.nodes
    edges = problem.graphs.edges
    total = 0.0
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        size = write_node(problem, c, theta, delta, scratch[0])
        total += peak(scratch[0], size, temperature, scratch[1])
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = write_edge(problem, e, theta, delta, scratch[0])
        total += peak(scratch[0], n_first * n_second, temperature, scratch[1])
    return total


@helper
def peak(theta, size, temperature, u):
    """The maximum for one node or edge."""
    if temperature == 0:
        top = theta[0]
        for p in range(1, size):
            top = max(top, theta[p])
        return top
    for p in range(size):
        u[p] = theta[p] / (2 * temperature)
    project(u, size)
    total = temperature
    for p in range(size):
        total += (theta[p] - temperature * u[p]) * u[p]
    return total


@helper
def make_uniform(cliques, i, mu):
    """Set the mean parts where every node, or every edge, is uniform."""
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        size = size_of(cliques, c)
        for p in range(cliques.part[c], cliques.part[c] + size):
            mu[p] = 1.0 / size


@helper
def share_of_integral(nodes, i, mu):
    """The share of the nodes of graph i with a mean part of 1, which others then lack."""
    count = 0
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        top = 0.0
        for p in range(nodes.part[c], nodes.part[c] + size_of(nodes, c)):
            top = max(top, mu[p])
        count += top >= 1 - INTEGRAL
    return count / (nodes.starts[i + 1] - nodes.starts[i])
