"""The local polytope of a graph, and steps on single nodes and edges in it, which oracles and solvers take alike.

Mean parts mu_c are in the simplex for every node and edge c, and A mu = 0: the margins of the table of an edge are the
mean parts of its nodes. Multipliers xi, a number for each edge, end of it and state of that end, and rho > 0 make an
augmented Lagrangian of it. With delta = xi - A mu / rho, which is kept up to date, its gradient has the potentials

    theta'_p = theta_p + sum of delta_{e,p} over the edges e of p,    theta'_e = theta_e - delta_{e,p} - delta_{e,q}

in place of theta. Nodes and edges take prox steps one after the other, and now and then xi = delta. For any delta, all
outputs have the same score by theta' as by theta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.graphs.cliques import Cliques, size_of


class Constraints(NamedTuple):
    """Where the multipliers of A mu = 0 lie: those of end k of edge e from starts[2 e + k] to starts[2 e + k + 1]."""

    starts: np.ndarray  # (2 M + 1,) int64
    first: np.ndarray  # (N + 1,) int64, those of the edges of node c begin at incident[first[c] : first[c + 1]]
    incident: np.ndarray  # (2 M,) int64


def make_constraints(nodes: Cliques, ends: np.ndarray) -> Constraints:
    """The constraints of edges, whose (M, 2) ends are counted over the nodes of all graphs."""
    starts = starts_of(nodes.n_parts[nodes.type[ends]])
    order = np.argsort(ends.ravel(), kind="stable")
    degree = np.bincount(ends.ravel(), minlength=len(nodes.type))
    return Constraints(starts, starts_of(degree), starts[:-1][order])


# --- steps on single nodes and edges --------------------------------------------------------------------------------


@helper
def shape_of(constraints, e):
    """The numbers of rows and columns of the table of edge e."""
    starts = constraints.starts
    return starts[2 * e + 1] - starts[2 * e], starts[2 * e + 2] - starts[2 * e + 1]


@helper
def tilt_node(constraints, c, size, delta, theta):
    """Turn theta_c of node c into theta'_c."""
    for k in range(constraints.first[c], constraints.first[c + 1]):
        at = constraints.incident[k]
        for x in range(size):
            theta[x] += delta[at + x]


@helper
def tilt_edge(constraints, e, n_first, n_second, delta, theta):
    """Turn theta_e of edge e into theta'_e."""
    first = constraints.starts[2 * e]
    second = first + n_first
    for x in range(n_first):
        for z in range(n_second):
            theta[x * n_second + z] -= delta[first + x] + delta[second + z]


@helper
def find_prox_step(theta, mu, at, size, a, bend, step):
    """Within the simplex, the step d that maximises <G, d> - bend/2 ||d||^2 for the gradient G = theta - 2 a mu_c."""
    for p in range(size):
        step[p] = mu[at + p] + (theta[p] - 2 * a * mu[at + p]) / bend
    project(step, size)
    for p in range(size):
        step[p] -= mu[at + p]


@helper
def take_step(mu, at, size, share, step):
    """Move mu_c by a share of a step, which becomes that."""
    for p in range(size):
        step[p] *= share
        mu[at + p] = max(mu[at + p] + step[p], 0.0)


@helper
def follow_node(constraints, c, size, step, scale, delta):
    """Keep delta = xi - scale A mu after a step of node c."""
    for k in range(constraints.first[c], constraints.first[c + 1]):
        at = constraints.incident[k]
        for x in range(size):
            delta[at + x] -= scale * step[x]


@helper
def follow_edge(constraints, e, rows, columns, scale, delta):
    """Keep delta = xi - scale A mu after a step of edge e, whose margins are given."""
    n_first, n_second = shape_of(constraints, e)
    at = constraints.starts[2 * e]
    for x in range(n_first):
        delta[at + x] += scale * rows[x]
    for z in range(n_second):
        delta[at + n_first + z] += scale * columns[z]


@helper
def step_multipliers(constraints, begin, end, delta, xi):
    """Take xi - A mu / rho, which is delta, as the multipliers of edges from `begin` to `end`."""
    for x in range(constraints.starts[2 * begin], constraints.starts[2 * end]):
        step = xi[x] - delta[x]
        xi[x] = delta[x]
        delta[x] -= step


@helper
def write_residual(graphs, constraints, i, e, mu, out, scratch):
    """Write A mu of edge e of graph i, whose mean parts are given."""
    n_first, n_second = shape_of(constraints, e)
    find_margins(mu, graphs.edges.part[e], n_first, n_second, scratch[1], scratch[2])
    for end in range(2):
        at = graphs.nodes.part[graphs.nodes.starts[i] + graphs.ends[e, end]]
        for x in range(n_second if end else n_first):
            out[constraints.starts[2 * e + end] + x] = mu[at + x] - scratch[1 + end, x]


# --- points of it ---------------------------------------------------------------------------------------------------


@helper
def make_consistent(graphs, constraints, i, mu, feasible, scratch):
    """Write a point of the local polytope near mu: nodes take the mean of mu and all margins, edges those of nodes."""
    nodes = graphs.nodes
    edges = graphs.edges
    lo = nodes.starts[i]
    for p in range(feasible.size):
        feasible[p] = mu[p]
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = shape_of(constraints, e)
        find_margins(mu, edges.part[e], n_first, n_second, scratch[1], scratch[2])
        for x in range(n_first):
            feasible[nodes.part[lo + graphs.ends[e, 0]] + x] += scratch[1, x]
        for z in range(n_second):
            feasible[nodes.part[lo + graphs.ends[e, 1]] + z] += scratch[2, z]
    for c in range(lo, nodes.starts[i + 1]):
        total = 0.0
        for p in range(nodes.part[c], nodes.part[c] + size_of(nodes, c)):
            total += feasible[p]
        for p in range(nodes.part[c], nodes.part[c] + size_of(nodes, c)):
            feasible[p] /= total
    for e in range(edges.starts[i], edges.starts[i + 1]):
        n_first, n_second = shape_of(constraints, e)
        first = nodes.part[lo + graphs.ends[e, 0]]
        second = nodes.part[lo + graphs.ends[e, 1]]
        couple(feasible, edges.part[e], first, n_first, second, n_second, scratch[1], scratch[2])


@helper
def project(v, size):
    """Replace v[:size] by the nearest point of the simplex: drop what lies below the mean excess until nothing does."""
    top = v[0]
    for p in range(1, size):
        top = max(top, v[p])
    for p in range(size):
        v[p] -= top  # kept: of large numbers, top + tau would be top
    count = size + 1
    tau = -2.0  # below the threshold of any point whose largest entry is 0
    while True:
        n_above = 0
        total = 0.0
        for p in range(size):
            if v[p] > tau:
                n_above += 1
                total += v[p]
        if n_above >= count:  # never more, but for rounding
            break
        count = n_above
        tau = (total - 1) / count
    for p in range(size):
        v[p] = max(v[p] - tau, 0.0)


@helper
def find_margins(mu, at, n_first, n_second, rows, columns):
    """The margins of the table of an edge."""
    for b in range(n_second):
        columns[b] = 0
    for a in range(n_first):
        rows[a] = 0
        for b in range(n_second):
            rows[a] += mu[at + a * n_second + b]
            columns[b] += mu[at + a * n_second + b]


@helper
def couple(feasible, at, first, n_first, second, n_second, rows, columns):
    """Give the table at `at` the margins at `first` and `second`, with little change; `rows`, `columns` are buffers."""
    for b in range(n_second):
        columns[b] = 0
    for a in range(n_first):
        total = 0.0
        for b in range(n_second):
            total += feasible[at + a * n_second + b]
        scale = feasible[first + a] / total if total > feasible[first + a] else 1.0
        for b in range(n_second):
            feasible[at + a * n_second + b] *= scale
            columns[b] += feasible[at + a * n_second + b]
    for b in range(n_second):
        columns[b] = feasible[second + b] / columns[b] if columns[b] > feasible[second + b] else 1.0
    missing = 0.0
    for a in range(n_first):
        rows[a] = feasible[first + a]
        for b in range(n_second):
            feasible[at + a * n_second + b] *= columns[b]
            rows[a] -= feasible[at + a * n_second + b]
        rows[a] = max(rows[a], 0.0)
        missing += rows[a]
    for b in range(n_second):
        columns[b] = feasible[second + b]
        for a in range(n_first):
            columns[b] -= feasible[at + a * n_second + b]
    if missing > 0:
        for a in range(n_first):
            for b in range(n_second):
                feasible[at + a * n_second + b] += rows[a] * max(columns[b], 0.0) / missing
