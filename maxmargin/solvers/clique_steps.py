"""Steps on single nodes and edges that raise D_rho (`relaxed`), for `IDAL`."""

from __future__ import annotations

from maxmargin.runtime.dispatch import helper, kernel
from maxmargin.solvers.relaxed_passes import concavity, dot, find_margins, project, tilt_edge, tilt_node
from maxmargin.structures.cliques import spread_clique

SETTLED = 1e-4  # an edge is maximised when the squared length of a step is this share of the longest


@kernel
def ascend(problem, layout, strength, rho, curvature, searches, most, scratch, picks, w, mu, delta):
    """Move the chosen cliques, nodes before edges, keeping w = w(mu) and delta = xi - A mu / rho."""
    n_nodes = problem.labels.size
    for k in range(picks.size):
        if picks[k] < n_nodes:
            move_node(problem, layout, strength, rho, curvature, searches, scratch, picks[k], w, mu, delta)
        else:
            least = 0.0
            for _ in range(most):
                e = picks[k] - n_nodes
                length = move_edge(problem, layout, strength, rho, curvature, searches, scratch, e, w, mu, delta)
                least = max(least, SETTLED * length)
                if length <= least:
                    break


@helper
def move_node(problem, layout, strength, rho, curvature, searches, scratch, c, w, mu, delta):
    """Take a step on node c; as D_rho bends alike in all directions there, the prox step is exact."""
    step = scratch[3]
    at = layout.node_at[c]
    a = layout.node_entropy[c]
    bend = curvature[c] + 2 * a
    size = tilt_node(problem, layout, c, w, delta, scratch[0])
    slope = find_step(scratch[0], mu, at, size, a, 2 * a if searches else bend, step)
    take_step(mu, at, size, step, slope, bend * dot(step, step, 0, size), searches)
    for k in range(layout.first[c], layout.first[c + 1]):
        for x in range(size):
            delta[layout.incident[k] + x] -= step[x] / rho
    spread_clique(problem.nodes, w, c, step, -layout.node_weight[c] / strength)


@helper
def move_edge(problem, layout, strength, rho, curvature, searches, scratch, e, w, mu, delta):
    """Take a step on edge e; return its squared length."""
    theta = scratch[0]
    rows = scratch[1]
    columns = scratch[2]
    step = scratch[3]
    c = problem.labels.size + e
    at = layout.edge_at[e]
    a = layout.edge_entropy[e, 0]
    n_first, n_second = tilt_edge(problem, layout, e, w, delta, theta)
    size = n_first * n_second
    if layout.edge_entropy[e, 1] > 0:
        add_slope_of_margins(layout, e, mu, n_first, n_second, scratch)
    bend = concavity(layout, e, n_first, n_second) if searches else curvature[c] + 2 * a
    slope = find_step(theta, mu, at, size, a, bend, step)
    find_margins(step, 0, n_first, n_second, rows, columns)
    length = dot(step, step, 0, size)
    bent = 0.0
    if searches:
        bent = (layout.edge_weight[e] * layout.stiffness[c] / strength + 2 * a) * length
        bent += (1 / rho - 2 * layout.edge_entropy[e, 1]) * dot(rows, rows, 0, n_first)
        bent += (1 / rho - 2 * layout.edge_entropy[e, 2]) * dot(columns, columns, 0, n_second)
    share = take_step(mu, at, size, step, slope, bent, searches)
    for x in range(n_first):
        delta[layout.ends_at[e, 0] + x] += share * rows[x] / rho
    for x in range(n_second):
        delta[layout.ends_at[e, 1] + x] += share * columns[x] / rho
    spread_clique(problem.edges, w, e, step, -layout.edge_weight[e] / strength)
    return share * share * length


@helper
def add_slope_of_margins(layout, e, mu, n_first, n_second, scratch):
    """Add the gradient of the terms of the entropy of edge e in its margins to scratch[0]."""
    find_margins(mu, layout.edge_at[e], n_first, n_second, scratch[1], scratch[2])
    for a in range(n_first):
        for b in range(n_second):
            slope = layout.edge_entropy[e, 1] * scratch[1, a] + layout.edge_entropy[e, 2] * scratch[2, b]
            scratch[0, a * n_second + b] += 2 * slope


@helper
def find_step(theta, mu, at, size, a, bend, step):
    """Within the simplex, the step d that maximises <G, d> - bend/2 ||d||^2 for the gradient G = theta - 2 a mu_c.

    Return <G, d>. With `bend` that of D_rho this is the prox step, with that of the entropy alone the way to its
    conjugate.
    """
    for p in range(size):
        step[p] = mu[at + p] + (theta[p] - 2 * a * mu[at + p]) / bend
    project(step, size)
    slope = 0.0
    for p in range(size):
        step[p] -= mu[at + p]
        slope += (theta[p] - 2 * a * mu[at + p]) * step[p]
    return slope


@helper
def take_step(mu, at, size, step, slope, bent, searches):
    """Add the step, or, if searching, the best share of it, where D_rho rises by share * slope - share^2/2 * bent."""
    share = 1.0
    if searches and bent > slope:
        share = max(slope, 0.0) / bent
    for p in range(size):
        step[p] *= share
        mu[at + p] = max(mu[at + p] + step[p], 0.0)
    return share
