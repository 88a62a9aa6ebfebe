"""Passes over the cliques of a relaxed objective (`relaxed`): its values, its bounds, and a feasible point nearby."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.features.base import add_row, clear_row
from maxmargin.runtime.dispatch import helper, kernel
from maxmargin.structures.cliques import score_clique, spread_clique


class Layout(NamedTuple):
    """Where the cliques of all graphs have their mean parts and multipliers, one flat array of each."""

    node_at: np.ndarray  # (N,) the first mean part of each node
    edge_at: np.ndarray  # (M,)
    node_weight: np.ndarray  # (N,) the weight of its example
    edge_weight: np.ndarray  # (M,)
    ends_at: np.ndarray  # (M, 2) the first multiplier of each edge and end
    first: np.ndarray  # (N + 1,) of each node, the edges incident[first[c]:first[c + 1]]
    incident: np.ndarray  # (2 M,) the first multiplier of node and edge
    stiffness: np.ndarray  # (N + M,) the largest ||B_c d||^2 / ||d||^2
    cost: np.ndarray  # (N,) of a wrong label, zero without margin
    temperature: float


@kernel
def squared_norms(features, row, buffer, out):
    """The squared norms of rows of features; `buffer` is zero before and after."""
    for c in range(row.size):
        add_row(features, row[c], 1.0, buffer)
        out[c] = clear_row(features, row[c], buffer)


@helper
def project(v, size):
    """Replace v[:size] by the nearest point of the simplex: drop what lies below the mean excess until nothing does."""
    top = v[0]
    for p in range(1, size):
        top = max(top, v[p])
    count = 0
    tau = -2.0  # below the threshold of any point whose largest entry is 0
    while True:
        n_above = 0
        total = 0.0
        for p in range(size):
            if v[p] - top > tau:
                n_above += 1
                total += v[p] - top
        if n_above == count:
            break
        count = n_above
        tau = (total - 1) / count
    for p in range(size):
        v[p] = max(v[p] - top - tau, 0.0)


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
def tilt_edge(problem, layout, e, w, delta, theta):
    """Theta_e = theta_e(w) + (A' delta)_e of edge e; return its numbers of rows and columns."""
    score_clique(problem.edges, w, e, theta)
    n_first = layout.ends_at[e, 1] - layout.ends_at[e, 0]
    n_second = problem.edges.n_parts[problem.edges.kind[e]] // n_first
    for a in range(n_first):
        for b in range(n_second):
            theta[a * n_second + b] -= delta[layout.ends_at[e, 0] + a] + delta[layout.ends_at[e, 1] + b]
    return n_first, n_second


@helper
def true_pair(problem, i, e, n_second):
    """The part of edge e of graph i that the true labels have, counted from its first."""
    lo = problem.nodes.offsets[i]
    return problem.labels[lo + problem.ends[e, 0]] * n_second + problem.labels[lo + problem.ends[e, 1]]


@helper
def smooth_max(theta, size, temperature, u):
    """Max over the simplex of <theta, u> + g (1 - ||u||^2), attained at u."""
    for p in range(size):
        u[p] = theta[p] / (2 * temperature)
    project(u, size)
    value = temperature
    for p in range(size):
        value += (theta[p] - temperature * u[p]) * u[p]
    return value


@kernel
def bound_losses(problem, layout, scratch, w, delta):
    """U(w, delta) without regularization: as A s = 0, delta adds nothing to the true score."""
    theta = scratch[0]
    total = 0.0
    for i in range(problem.nodes.offsets.size - 1):
        for c in range(problem.nodes.offsets[i], problem.nodes.offsets[i + 1]):
            size = tilt_node(problem, layout, c, w, delta, theta)
            value = smooth_max(theta, size, layout.temperature, scratch[1])
            total += layout.node_weight[c] * (value - theta[problem.labels[c]])
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            n_first, n_second = tilt_edge(problem, layout, e, w, delta, theta)
            value = smooth_max(theta, n_first * n_second, layout.temperature, scratch[1])
            total += layout.edge_weight[e] * (value - theta[true_pair(problem, i, e, n_second)])
    return total


@kernel
def weigh(problem, layout, strength, scratch, mu, w):
    """W += w(mu); return <cost, mu> + g h(mu)."""
    step = scratch[0]
    total = 0.0
    for i in range(problem.nodes.offsets.size - 1):
        for c in range(problem.nodes.offsets[i], problem.nodes.offsets[i + 1]):
            size = problem.nodes.n_parts[problem.nodes.kind[c]]
            truth = problem.labels[c]
            entropy = away_from(mu, layout.node_at[c], size, truth, step)
            cost = layout.cost[c] * (1 - mu[layout.node_at[c] + truth])
            total += layout.node_weight[c] * (cost + layout.temperature * entropy)
            spread_clique(problem.nodes, w, c, step, layout.node_weight[c] / strength)
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            size = problem.edges.n_parts[problem.edges.kind[e]]
            n_second = size // (layout.ends_at[e, 1] - layout.ends_at[e, 0])
            entropy = away_from(mu, layout.edge_at[e], size, true_pair(problem, i, e, n_second), step)
            total += layout.edge_weight[e] * layout.temperature * entropy
            spread_clique(problem.edges, w, e, step, layout.edge_weight[e] / strength)
    return total


@helper
def away_from(mu, at, size, truth, step):
    """Write s_c - mu_c into `step`; return the entropy of mu_c."""
    entropy = 1.0
    for p in range(size):
        step[p] = -mu[at + p]
        entropy -= mu[at + p] * mu[at + p]
    step[truth] += 1
    return entropy


@kernel
def residuals(problem, layout, mu, xi, residual):
    """Write A mu; return, weighted by the examples, ||A mu||^2 and <xi, A mu>, and the plain ||A mu||^2."""
    penalty = 0.0
    linear = 0.0
    violation = 0.0
    for i in range(problem.nodes.offsets.size - 1):
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            lo = layout.ends_at[e, 0]
            middle = layout.ends_at[e, 1]
            n_second = problem.edges.n_parts[problem.edges.kind[e]] // (middle - lo)
            for a in range(middle - lo):
                residual[lo + a] = mu[layout.node_at[problem.nodes.offsets[i] + problem.ends[e, 0]] + a]
            for b in range(n_second):
                residual[middle + b] = mu[layout.node_at[problem.nodes.offsets[i] + problem.ends[e, 1]] + b]
            for a in range(middle - lo):
                for b in range(n_second):
                    residual[lo + a] -= mu[layout.edge_at[e] + a * n_second + b]
                    residual[middle + b] -= mu[layout.edge_at[e] + a * n_second + b]
            for p in range(lo, middle + n_second):
                linear += layout.edge_weight[e] * xi[p] * residual[p]
                penalty += layout.edge_weight[e] * residual[p] * residual[p]
                violation += residual[p] * residual[p]
    return penalty, linear, violation


@kernel
def correct(problem, layout, scratch, mu, feasible):
    """Write a point of the local polytope near mu into `feasible`."""
    rows = scratch[1]
    columns = scratch[2]
    for p in range(mu.size):
        feasible[p] = mu[p]
    for i in range(problem.nodes.offsets.size - 1):
        lo = problem.nodes.offsets[i]
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            first = layout.node_at[lo + problem.ends[e, 0]]
            second = layout.node_at[lo + problem.ends[e, 1]]
            n_first = layout.ends_at[e, 1] - layout.ends_at[e, 0]
            n_second = problem.edges.n_parts[problem.edges.kind[e]] // n_first
            for a in range(n_first):
                for b in range(n_second):
                    feasible[first + a] += mu[layout.edge_at[e] + a * n_second + b]
                    feasible[second + b] += mu[layout.edge_at[e] + a * n_second + b]
        for c in range(lo, problem.nodes.offsets[i + 1]):
            total = 0.0
            for p in range(layout.node_at[c], layout.node_at[c] + problem.nodes.n_parts[problem.nodes.kind[c]]):
                total += feasible[p]
            for p in range(layout.node_at[c], layout.node_at[c] + problem.nodes.n_parts[problem.nodes.kind[c]]):
                feasible[p] /= total
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            first = layout.node_at[lo + problem.ends[e, 0]]
            second = layout.node_at[lo + problem.ends[e, 1]]
            n_first = layout.ends_at[e, 1] - layout.ends_at[e, 0]
            n_second = problem.edges.n_parts[problem.edges.kind[e]] // n_first
            couple(feasible, layout.edge_at[e], first, n_first, second, n_second, rows, columns)


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
