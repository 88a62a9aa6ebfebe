"""The best mean parts over the local polytope of a graph, at given potentials, with or without an entropy.

    maximise <theta, mu> + temperature * sum of (1 - ||mu_c||^2) over nodes and edges c, mu in the local polytope,

that is, mu_c in the simplex for every node and edge c and A mu = 0: the margins of edges are those of their nodes
(`relaxed_objective`). As there, by an augmented Lagrangian with multipliers xi and delta = xi - A mu / rho:
nodes and edges take prox steps one after the other, then xi = delta. Without entropy this is the relaxation of the best
output, a linear program, whose solutions are outputs or fractional vertices.

Any delta gives a bound, the sum of the maxima over the simplices, and any mu is near a point of the local polytope:
together they tell when to stop. Message passing (`messages`) finds nearly as good a bound in far less time, but not the
best one, and no mean parts.
"""

from __future__ import annotations

from maxmargin.runtime.dispatch import helper
from maxmargin.structures.graphs.margins import couple, find_margins, project
from maxmargin.structures.graphs.messages import multipliers_at, tilt_node

MOST_PASSES = 1000
CHECK_EVERY = 10  # passes
ACCURACY = 1e-4  # of the bound
LEAST_BEND = 1e-9  # where nothing else bends: nodes without edges, and graphs without potentials
INTEGRAL = 1e-3  # how far from 1 a mean part may be


@helper
def maximise(problem, i, theta, temperature, mu, multipliers, delta, feasible, scratch):
    """Write mean parts of graph i, about the best ones, into `feasible`; return a bound of the maximum.

    It starts from `mu` and `multipliers`, and leaves there where it got to; `delta` and `scratch` are buffers.
    """
    ranges = sum_of_ranges(problem.nodes, i, theta) + sum_of_ranges(problem.edges, i, theta)
    rho = 1 / (0.1 * ranges / n_cliques(problem, i) + 2 * temperature + LEAST_BEND)
    begin, end = multipliers_of(problem, i)
    for p in range(begin, end):
        delta[p] = multipliers[p]
    add_residuals(problem, i, -1 / rho, mu, delta, scratch)
    bound = 1e300
    for _ in range(MOST_PASSES // CHECK_EVERY):
        for _ in range(CHECK_EVERY):
            ascend(problem, i, theta, temperature, rho, mu, delta, scratch)
            for p in range(begin, end):
                step = multipliers[p] - delta[p]  # A mu / rho
                multipliers[p] -= step
                delta[p] -= step
        bound = min(bound, bound_score(problem, i, theta, temperature, delta, scratch))
        make_consistent(problem, i, mu, feasible, scratch)
        value = 0.0
        for p in range(theta.size):
            value += (theta[p] - temperature * feasible[p]) * feasible[p]
        value += temperature * n_cliques(problem, i)
        if bound - value <= ACCURACY * (1 + abs(bound)):
            break
    return bound


@helper
def n_cliques(problem, i):
    """The number of nodes and edges of graph i."""
    n_nodes = problem.nodes.starts[i + 1] - problem.nodes.starts[i]
    return n_nodes + problem.edges.starts[i + 1] - problem.edges.starts[i]


@helper
def multipliers_of(problem, i):
    """Where the multipliers of graph i begin and end."""
    edges = problem.edges
    if edges.starts[i] == edges.starts[i + 1]:
        return 0, 0
    last = edges.starts[i + 1] - 1
    _, n_second = shape_of(problem, i, last)
    return problem.ends_at[edges.starts[i], 0], problem.ends_at[last, 1] + n_second


@helper
def shape_of(problem, i, e):
    """The numbers of rows and columns of the table of edge e."""
    nodes = problem.nodes
    n_first = nodes.n_parts[nodes.kind[nodes.starts[i] + problem.ends[e, 0]]]
    return n_first, problem.edges.n_parts[problem.edges.kind[e]] // n_first


@helper
def sum_of_ranges(cliques, i, theta):
    """The differences between the best and the worst potential of each node, or of each edge, added up."""
    total = 0.0
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        at = cliques.part[c]
        least = theta[at]
        most = theta[at]
        for p in range(at, at + cliques.n_parts[cliques.kind[c]]):
            least = min(least, theta[p])
            most = max(most, theta[p])
        total += most - least
    return total


@helper
def ascend(problem, i, theta, temperature, rho, mu, delta, scratch):
    """A prox step on every node and edge of graph i."""
    nodes = problem.nodes
    edges = problem.edges
    step = scratch[0]
    out = problem.arcs.out[2 * edges.starts[i] :]
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        size = nodes.n_parts[nodes.kind[c]]
        first_arc = problem.arcs.first[c + i]
        last_arc = problem.arcs.first[c + i + 1]
        tilt_node(problem, i, theta, delta, c, step)
        take_step(mu, nodes.part[c], size, temperature, max((last_arc - first_arc) / rho, LEAST_BEND), step)
        for k in range(first_arc, last_arc):
            at = multipliers_at(problem, i, out[k])
            for x in range(size):
                delta[at + x] -= step[x] / rho
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = shape_of(problem, i, e)
        tilt_edge(problem, i, theta, delta, e, step)
        take_step(mu, edges.part[e], n_first * n_second, temperature, max(n_first, n_second) / rho, step)
        find_margins(step, 0, n_first, n_second, scratch[1], scratch[2])
        for x in range(n_first):
            delta[problem.ends_at[e, 0] + x] += scratch[1, x] / rho
        for z in range(n_second):
            delta[problem.ends_at[e, 1] + z] += scratch[2, z] / rho


@helper
def take_step(mu, at, size, temperature, stiffness, step):
    """Turn theta' into the step, which is taken, that maximises <gradient, d> - bend/2 ||d||^2 within the simplex."""
    bend = stiffness + 2 * temperature
    for p in range(size):
        step[p] = mu[at + p] + (step[p] - 2 * temperature * mu[at + p]) / bend
    project(step, size)
    for p in range(size):
        moved = step[p]
        step[p] -= mu[at + p]
        mu[at + p] = moved


@helper
def tilt_edge(problem, i, theta, delta, e, out):
    """Write theta'_e."""
    n_first, n_second = shape_of(problem, i, e)
    for x in range(n_first):
        for z in range(n_second):
            lent = delta[problem.ends_at[e, 0] + x] + delta[problem.ends_at[e, 1] + z]
            out[x * n_second + z] = theta[problem.edges.part[e] + x * n_second + z] - lent


@helper
def add_residuals(problem, i, scale, mu, out, scratch):
    """Out += scale * A mu."""
    nodes = problem.nodes
    for e in range(problem.edges.starts[i], problem.edges.starts[i + 1]):
        n_first, n_second = shape_of(problem, i, e)
        find_margins(mu, problem.edges.part[e], n_first, n_second, scratch[1], scratch[2])
        for end in range(2):
            at = nodes.part[nodes.starts[i] + problem.ends[e, end]]
            for x in range(n_second if end else n_first):
                out[problem.ends_at[e, end] + x] += scale * (mu[at + x] - scratch[1 + end, x])


@helper
def bound_score(problem, i, theta, temperature, delta, scratch):
    """The sum over nodes and edges of the maxima of <theta'_c, u> + temperature (1 - ||u||^2) over the simplex."""
    nodes = problem.nodes
    edges = problem.edges
    total = 0.0
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        tilt_node(problem, i, theta, delta, c, scratch[0])
        total += peak(scratch[0], nodes.n_parts[nodes.kind[c]], temperature, scratch[1])
    for e in range(edges.starts[i], edges.starts[i + 1]):
        tilt_edge(problem, i, theta, delta, e, scratch[0])
        total += peak(scratch[0], edges.n_parts[edges.kind[e]], temperature, scratch[1])
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
def make_consistent(problem, i, mu, feasible, scratch):
    """Write a point of the local polytope near mu: nodes take the mean of mu and all margins, edges those of nodes."""
    nodes = problem.nodes
    edges = problem.edges
    lo = nodes.starts[i]
    for p in range(feasible.size):
        feasible[p] = mu[p]
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = shape_of(problem, i, e)
        find_margins(mu, edges.part[e], n_first, n_second, scratch[1], scratch[2])
        for x in range(n_first):
            feasible[nodes.part[lo + problem.ends[e, 0]] + x] += scratch[1, x]
        for z in range(n_second):
            feasible[nodes.part[lo + problem.ends[e, 1]] + z] += scratch[2, z]
    for c in range(lo, nodes.starts[i + 1]):
        total = 0.0
        for p in range(nodes.part[c], nodes.part[c] + nodes.n_parts[nodes.kind[c]]):
            total += feasible[p]
        for p in range(nodes.part[c], nodes.part[c] + nodes.n_parts[nodes.kind[c]]):
            feasible[p] /= total
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = shape_of(problem, i, e)
        first = nodes.part[lo + problem.ends[e, 0]]
        second = nodes.part[lo + problem.ends[e, 1]]
        couple(feasible, edges.part[e], first, n_first, second, n_second, scratch[1], scratch[2])


@helper
def make_uniform(cliques, i, mu):
    """Set the mean parts where every node, or every edge, is uniform."""
    for c in range(cliques.starts[i], cliques.starts[i + 1]):
        size = cliques.n_parts[cliques.kind[c]]
        for p in range(cliques.part[c], cliques.part[c] + size):
            mu[p] = 1.0 / size


@helper
def share_of_integral(problem, i, mu):
    """The share of the nodes of graph i with a mean part of 1, which others then lack."""
    nodes = problem.nodes
    count = 0
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        top = 0.0
        for p in range(nodes.part[c], nodes.part[c] + nodes.n_parts[nodes.kind[c]]):
            top = max(top, mu[p])
        count += top >= 1 - INTEGRAL
    return count / (nodes.starts[i + 1] - nodes.starts[i])
