"""Passes over the cliques of a relaxed objective (`relaxed_objective`): its values and its bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.features.linear_map import add_row, clear_row
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.structures.graphs.cliques import score_clique, size_of, spread_clique
from maxmargin.structures.graphs.graph_problem import part_of_edge
from maxmargin.structures.graphs.local_polytope import (
    Constraints,
    find_margins,
    find_prox_step,
    make_consistent,
    shape_of,
    tilt_edge,
    tilt_node,
    write_residual,
)
from maxmargin.structures.graphs.relaxation import peak
from maxmargin.supervision.label_supervision import LabelSupervision

ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of what potentials are summed up from, relative to the largest


class CliqueTerms(NamedTuple):
    """The terms of D_rho of each clique, of all nodes and then of all edges; mean parts are one flat array."""

    constraints: Constraints
    starts: np.ndarray  # (n + 1,) the mean parts of graph i are starts[i]:starts[i + 1]
    at: np.ndarray  # (N + M,) the first mean part
    weight: np.ndarray  # (N + M,) of its example
    stiffness: np.ndarray  # (N + M,) the largest ||B_c d||^2 / ||d||^2
    entropy: np.ndarray  # (N + M,) a of a (1 - ||mu_c||^2), times the temperature
    margin_entropy: np.ndarray  # (M, 2) b, c of - b (1 - ||A_i mu_e||^2) - c (1 - ||A_j mu_e||^2), likewise
    costs: LabelSupervision  # of nodes
    edge_costs: Blocks  # of the parts of each edge; no values where there are none


@loop
def squared_norms(features, row, buffer, out):
    """The squared norms of rows of features; `buffer` is zero before and after."""
    for c in range(row.size):
        add_row(features, row[c], 1.0, buffer)
        out[c] = clear_row(features, row[c], buffer)


@helper
def cost_of_label(terms, c, label):
    """What it costs to predict a label of node c."""
    return terms.costs.weight[c] * terms.costs.cost[terms.costs.annotation[c], label]


@helper
def score_node(problem, terms, c, w, delta, theta):
    """Theta_c = theta_c(w) + cost + (A' delta)_c of node c; return its size."""
    size = size_of(problem.graphs.nodes, c)
    score_clique(problem.graphs.nodes, w, c, theta)
    for x in range(size):
        theta[x] += cost_of_label(terms, c, x)
    tilt_node(terms.constraints, c, size, delta, theta)
    return size


@helper
def score_edge(problem, terms, e, w, delta, theta):
    """Theta_e = theta_e(w) + cost + (A' delta)_e of edge e; return its numbers of rows and columns."""
    score_clique(problem.graphs.edges, w, e, theta)
    n_first, n_second = shape_of(terms.constraints, e)
    if terms.edge_costs.values.size > 0:
        for p in range(n_first * n_second):
            theta[p] += terms.edge_costs.values[terms.edge_costs.starts[e] + p]
    tilt_edge(terms.constraints, e, n_first, n_second, delta, theta)
    return n_first, n_second


@helper
def dot(a, b, start, size):
    """<a, b[start : start + size]>."""
    total = 0.0
    for p in range(size):
        total += a[p] * b[start + p]
    return total


@helper
def entropy_of_edge(terms, e, a, mu, at, n_first, n_second, rows, columns):
    """The entropy of edge e, whose coefficient is a and whose margins are given."""
    squares = 0.0
    for p in range(at, at + n_first * n_second):
        squares += mu[p] * mu[p]
    value = a * (1 - squares)
    value -= terms.margin_entropy[e, 0] * (1 - dot(rows, rows, 0, n_first))
    return value - terms.margin_entropy[e, 1] * (1 - dot(columns, columns, 0, n_second))


@helper
def concavity(terms, e, a, n_first, n_second):
    """How strongly concave the entropy of edge e is along directions that add up to zero: those of both margins are
    orthogonal then.
    """
    return 2 * (a - max(terms.margin_entropy[e, 0] * n_second, terms.margin_entropy[e, 1] * n_first))


@helper
def add_slope_of_margins(terms, e, rows, columns, n_first, n_second, theta):
    """Add the gradient of the terms of the entropy of edge e in its margins, which are given."""
    for x in range(n_first):
        for z in range(n_second):
            slope = terms.margin_entropy[e, 0] * rows[x] + terms.margin_entropy[e, 1] * columns[z]
            theta[x * n_second + z] += 2 * slope


@helper
def bound_edge(terms, e, a, theta, mu, at, n_first, n_second, scratch):
    """At least the maximum over the simplex of <theta, u> + entropy(u), and equal to it for Gini or at its maximiser.

    This function q is at most q(mu) + <q'(mu), u - mu> - sigma/2 ||u - mu||^2, which has its maximum at a projection.
    """
    rows = scratch[1]
    columns = scratch[2]
    u = scratch[3]
    size = n_first * n_second
    find_margins(mu, at, n_first, n_second, rows, columns)
    value = dot(theta, mu, at, size) + entropy_of_edge(terms, e, a, mu, at, n_first, n_second, rows, columns)
    sigma = concavity(terms, e, a, n_first, n_second)
    add_slope_of_margins(terms, e, rows, columns, n_first, n_second, theta)
    find_prox_step(theta, mu, at, size, a, sigma, u)
    for p in range(size):
        value += (theta[p] - 2 * a * mu[at + p] - sigma / 2 * u[p]) * u[p]
    return value


@helper
def largest(theta, size):
    """The magnitude of the largest potential of a clique."""
    most = 0.0
    for p in range(size):
        most = max(most, abs(theta[p]))
    return most


@loop
def bound_losses(problem, terms, scratch, w, mu, delta, start, stop):
    """At least U(w, delta) without regularization: as A s = 0, delta adds nothing to the true score.

    It is rounded up by the size of potentials; return the largest of them, too.
    """
    graphs = problem.graphs
    n_nodes = graphs.nodes.row.size
    theta = scratch[0]
    total = 0.0
    most = 0.0
    for i in range(start, stop):
        labels = graphs.supervision.labels[graphs.nodes.starts[i] : graphs.nodes.starts[i + 1]]
        for c in range(graphs.nodes.starts[i], graphs.nodes.starts[i + 1]):
            size = score_node(problem, terms, c, w, delta, theta)
            label = graphs.supervision.labels[c]
            true_score = theta[label] - cost_of_label(terms, c, label)  # which is zero, unless labels are soft
            reach = largest(theta, size)
            bound = peak(theta, size, terms.entropy[c], scratch[1])
            total += terms.weight[c] * (max(bound - true_score, 0.0) + ROUNDING * reach)
            most = max(most, reach)
        for e in range(graphs.edges.starts[i], graphs.edges.starts[i + 1]):
            c = n_nodes + e
            n_first, n_second = score_edge(problem, terms, e, w, delta, theta)
            true_score = theta[part_of_edge(graphs, i, e, labels)]
            reach = largest(theta, n_first * n_second)
            bound = bound_edge(terms, e, terms.entropy[c], theta, mu, terms.at[c], n_first, n_second, scratch)
            total += terms.weight[c] * (max(bound - true_score, 0.0) + ROUNDING * reach)
            most = max(most, reach)
    return total, most


@loop
def weigh(problem, terms, scratch, n_lambda, mu, w, start, stop):
    """W += w(mu); return <cost, mu> and the entropy of mu, added up."""
    graphs = problem.graphs
    n_nodes = graphs.nodes.row.size
    step = scratch[0]
    total = 0.0
    for i in range(start, stop):
        labels = graphs.supervision.labels[graphs.nodes.starts[i] : graphs.nodes.starts[i + 1]]
        for c in range(graphs.nodes.starts[i], graphs.nodes.starts[i + 1]):
            at = terms.at[c]
            size = size_of(graphs.nodes, c)
            squares = leave(mu, at, size, graphs.supervision.labels[c], step)
            cost = 0.0
            for x in range(size):
                cost += cost_of_label(terms, c, x) * mu[at + x]
            total += terms.weight[c] * (cost + terms.entropy[c] * (1 - squares))
            spread_clique(graphs.nodes, w, c, step, terms.weight[c] / n_lambda)
        for e in range(graphs.edges.starts[i], graphs.edges.starts[i + 1]):
            c = n_nodes + e
            n_first, n_second = shape_of(terms.constraints, e)
            find_margins(mu, terms.at[c], n_first, n_second, scratch[1], scratch[2])
            total += terms.weight[c] * entropy_of_edge(
                terms, e, terms.entropy[c], mu, terms.at[c], n_first, n_second, scratch[1], scratch[2]
            )
            if terms.edge_costs.values.size > 0:
                costs = terms.edge_costs.values[terms.edge_costs.starts[e] : terms.edge_costs.starts[e + 1]]
                total += terms.weight[c] * dot(costs, mu, terms.at[c], n_first * n_second)
            leave(mu, terms.at[c], n_first * n_second, part_of_edge(graphs, i, e, labels), step)
            spread_clique(graphs.edges, w, e, step, terms.weight[c] / n_lambda)
    return total


@helper
def leave(mu, at, size, true_part, step):
    """Write s_c - mu_c into `step`; return ||mu_c||^2."""
    squares = 0.0
    for p in range(size):
        step[p] = -mu[at + p]
        squares += mu[at + p] * mu[at + p]
    step[true_part] += 1
    return squares


@loop
def correct(problem, terms, scratch, mu, feasible, start, stop):
    """Write a point of the local polytope near mu into `feasible`."""
    for i in range(start, stop):
        lo = terms.starts[i]
        hi = terms.starts[i + 1]
        make_consistent(problem.graphs, terms.constraints, i, mu[lo:hi], feasible[lo:hi], scratch)


@loop
def residuals(problem, terms, scratch, mu, xi, residual, start, stop):
    """Write A mu; return, weighted by the examples, ||A mu||^2 and <xi, A mu>, and the plain ||A mu||^2."""
    edges = problem.graphs.edges
    multipliers = terms.constraints.starts
    penalty = 0.0
    linear = 0.0
    violation = 0.0
    for i in range(start, stop):
        means = mu[terms.starts[i] : terms.starts[i + 1]]
        for e in range(edges.starts[i], edges.starts[i + 1]):
            write_residual(problem.graphs, terms.constraints, i, e, means, residual, scratch)
            weight = terms.weight[problem.graphs.nodes.row.size + e]
            for x in range(multipliers[2 * e], multipliers[2 * e + 2]):
                squared = residual[x] * residual[x]
                linear += weight * xi[x] * residual[x]
                penalty += weight * squared
                violation += squared
    return penalty, linear, violation
