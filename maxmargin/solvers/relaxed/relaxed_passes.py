"""Passes over the cliques of a relaxed objective (`relaxed`): its values and its bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.features.linear_map import add_row, clear_row
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.structures.graphs.cliques import score_clique, spread_clique
from maxmargin.structures.graphs.local_polytope import make_consistent, peak
from maxmargin.structures.graphs.margins import find_margins, project

ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of what potentials are summed up from, relative to the largest


class Layout(NamedTuple):
    """Where the cliques of all graphs have their mean parts and multipliers, one flat array of each."""

    starts: np.ndarray  # (n + 1,) those of graph i are starts[i]:starts[i + 1]
    node_at: np.ndarray  # (N,) the first mean part of each node
    edge_at: np.ndarray  # (M,)
    node_weight: np.ndarray  # (N,) the weight of its example
    edge_weight: np.ndarray  # (M,)
    ends_at: np.ndarray  # (M, 2) the first multiplier of each edge and end
    first: np.ndarray  # (N + 1,) of each node, the edges incident[first[c]:first[c + 1]]
    incident: np.ndarray  # (2 M,) the first multiplier of node and edge
    stiffness: np.ndarray  # (N + M,) the largest ||B_c d||^2 / ||d||^2
    cost: np.ndarray  # (N,) of a wrong label, zero without margin
    node_entropy: np.ndarray  # (N,) a of the entropy a (1 - ||mu_i||^2), times the temperature
    edge_entropy: np.ndarray  # (M, 3) a, b, c of a (1 - ||mu_e||^2) - b (1 - ||A_i mu_e||^2) - c (1 - ||A_j mu_e||^2)


@loop
def squared_norms(features, row, buffer, out):
    """The squared norms of rows of features; `buffer` is zero before and after."""
    for c in range(row.size):
        add_row(features, row[c], 1.0, buffer)
        out[c] = clear_row(features, row[c], buffer)


@helper
def tilt_node(problem, layout, c, w, delta, theta):
    """Theta_c = theta_c(w) + cost + (A' delta)_c of node c; return its size."""
    score_clique(problem.nodes, w, c, theta)
    size = problem.nodes.n_parts[problem.nodes.kind[c]]
    for x in range(size):
        theta[x] += layout.cost[c]
    theta[problem.labels[c]] -= layout.cost[c]
    for k in range(layout.first[c], layout.first[c + 1]):
        for x in range(size):
            theta[x] += delta[layout.incident[k] + x]
    return size


@helper
def shape_of(problem, layout, e):
    """The numbers of rows and columns of the table of edge e."""
    n_first = layout.ends_at[e, 1] - layout.ends_at[e, 0]
    return n_first, problem.edges.n_parts[problem.edges.kind[e]] // n_first


@helper
def tilt_edge(problem, layout, e, w, delta, theta):
    """Theta_e = theta_e(w) + (A' delta)_e of edge e; return its numbers of rows and columns."""
    score_clique(problem.edges, w, e, theta)
    n_first, n_second = shape_of(problem, layout, e)
    for a in range(n_first):
        for b in range(n_second):
            theta[a * n_second + b] -= delta[layout.ends_at[e, 0] + a] + delta[layout.ends_at[e, 1] + b]
    return n_first, n_second


@helper
def true_pair(problem, i, e, n_second):
    """The part of edge e of graph i that the true labels have, counted from its first."""
    lo = problem.nodes.starts[i]
    return problem.labels[lo + problem.ends[e, 0]] * n_second + problem.labels[lo + problem.ends[e, 1]]


@helper
def dot(a, b, start, size):
    """<a, b[start : start + size]>."""
    total = 0.0
    for p in range(size):
        total += a[p] * b[start + p]
    return total


@helper
def entropy_of_edge(layout, e, mu, n_first, n_second, rows, columns):
    """The entropy of edge e, whose margins are given."""
    at = layout.edge_at[e]
    squares = 0.0
    for p in range(at, at + n_first * n_second):
        squares += mu[p] * mu[p]
    value = layout.edge_entropy[e, 0] * (1 - squares)
    value -= layout.edge_entropy[e, 1] * (1 - dot(rows, rows, 0, n_first))
    return value - layout.edge_entropy[e, 2] * (1 - dot(columns, columns, 0, n_second))


@helper
def concavity(layout, e, n_first, n_second):
    """How strongly concave the entropy of edge e is along directions that add up to zero: those of both margins are
    orthogonal then.
    """
    most = max(layout.edge_entropy[e, 1] * n_second, layout.edge_entropy[e, 2] * n_first)
    return 2 * (layout.edge_entropy[e, 0] - most)


@helper
def bound_edge(layout, e, theta, mu, n_first, n_second, scratch):
    """At least the maximum over the simplex of <theta, u> + entropy(u), and equal to it for Gini or at its maximiser.

    This function q is at most q(mu) + <q'(mu), u - mu> - sigma/2 ||u - mu||^2, which has its maximum at a projection.
    """
    rows = scratch[1]
    columns = scratch[2]
    u = scratch[3]
    at = layout.edge_at[e]
    size = n_first * n_second
    find_margins(mu, at, n_first, n_second, rows, columns)
    value = dot(theta, mu, at, size) + entropy_of_edge(layout, e, mu, n_first, n_second, rows, columns)
    sigma = concavity(layout, e, n_first, n_second)
    for a in range(n_first):
        for b in range(n_second):
            p = a * n_second + b
            theta[p] -= 2 * layout.edge_entropy[e, 0] * mu[at + p]
            theta[p] += 2 * (layout.edge_entropy[e, 1] * rows[a] + layout.edge_entropy[e, 2] * columns[b])
            u[p] = mu[at + p] + theta[p] / sigma
    project(u, size)
    for p in range(size):
        step = u[p] - mu[at + p]
        value += (theta[p] - sigma / 2 * step) * step
    return value


@helper
def largest(theta, size):
    """The magnitude of the largest potential of a clique."""
    most = 0.0
    for p in range(size):
        most = max(most, abs(theta[p]))
    return most


@loop
def bound_losses(problem, layout, scratch, w, mu, delta, start, stop):
    """At least U(w, delta) without regularization: as A s = 0, delta adds nothing to the true score.

    It is rounded up by the size of potentials; return the largest of them, too.
    """
    theta = scratch[0]
    total = 0.0
    most = 0.0
    for i in range(start, stop):
        for c in range(problem.nodes.starts[i], problem.nodes.starts[i + 1]):
            size = tilt_node(problem, layout, c, w, delta, theta)
            truth = theta[problem.labels[c]]
            reach = largest(theta, size)
            loss = peak(theta, size, layout.node_entropy[c], scratch[1]) - truth
            total += layout.node_weight[c] * (max(loss, 0.0) + ROUNDING * reach)
            most = max(most, reach)
        for e in range(problem.edges.starts[i], problem.edges.starts[i + 1]):
            n_first, n_second = tilt_edge(problem, layout, e, w, delta, theta)
            truth = theta[true_pair(problem, i, e, n_second)]
            reach = largest(theta, n_first * n_second)
            loss = bound_edge(layout, e, theta, mu, n_first, n_second, scratch) - truth
            total += layout.edge_weight[e] * (max(loss, 0.0) + ROUNDING * reach)
            most = max(most, reach)
    return total, most


@loop
def weigh(problem, layout, scratch, strength, mu, w, start, stop):
    """W += w(mu); return <cost, mu> and the entropy of mu, added up."""
    step = scratch[0]
    total = 0.0
    for i in range(start, stop):
        for c in range(problem.nodes.starts[i], problem.nodes.starts[i + 1]):
            at = layout.node_at[c]
            squares = leave(mu, at, problem.nodes.n_parts[problem.nodes.kind[c]], problem.labels[c], step)
            cost = layout.cost[c] * (1 - mu[at + problem.labels[c]])
            total += layout.node_weight[c] * (cost + layout.node_entropy[c] * (1 - squares))
            spread_clique(problem.nodes, w, c, step, layout.node_weight[c] / strength)
        for e in range(problem.edges.starts[i], problem.edges.starts[i + 1]):
            n_first, n_second = shape_of(problem, layout, e)
            find_margins(mu, layout.edge_at[e], n_first, n_second, scratch[1], scratch[2])
            entropy = entropy_of_edge(layout, e, mu, n_first, n_second, scratch[1], scratch[2])
            total += layout.edge_weight[e] * entropy
            leave(mu, layout.edge_at[e], n_first * n_second, true_pair(problem, i, e, n_second), step)
            spread_clique(problem.edges, w, e, step, layout.edge_weight[e] / strength)
    return total


@helper
def leave(mu, at, size, truth, step):
    """Write s_c - mu_c into `step`; return ||mu_c||^2."""
    squares = 0.0
    for p in range(size):
        step[p] = -mu[at + p]
        squares += mu[at + p] * mu[at + p]
    step[truth] += 1
    return squares


@loop
def correct(problem, layout, scratch, mu, feasible, start, stop):
    """Write a point of the local polytope near mu into `feasible`."""
    for i in range(start, stop):
        lo = layout.starts[i]
        hi = layout.starts[i + 1]
        make_consistent(problem, i, mu[lo:hi], feasible[lo:hi], scratch)


@loop
def residuals(problem, layout, scratch, mu, xi, residual, start, stop):
    """Write A mu; return, weighted by the examples, ||A mu||^2 and <xi, A mu>, and the plain ||A mu||^2."""
    penalty = 0.0
    linear = 0.0
    violation = 0.0
    for i in range(start, stop):
        for e in range(problem.edges.starts[i], problem.edges.starts[i + 1]):
            n_first, n_second = shape_of(problem, layout, e)
            find_margins(mu, layout.edge_at[e], n_first, n_second, scratch[1], scratch[2])
            for end in range(2):
                node = layout.node_at[problem.nodes.starts[i] + problem.ends[e, end]]
                at = layout.ends_at[e, end]
                for x in range(n_second if end else n_first):
                    residual[at + x] = mu[node + x] - scratch[1 + end, x]
                    squared = residual[at + x] * residual[at + x]
                    linear += layout.edge_weight[e] * xi[at + x] * residual[at + x]
                    penalty += layout.edge_weight[e] * squared
                    violation += squared
    return penalty, linear, violation
