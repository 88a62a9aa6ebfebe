"""Steps on single nodes and edges that raise D_rho (`relaxed`), and on the multipliers that lower it."""

from __future__ import annotations

from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.relaxed.relaxed_passes import concavity, dot, shape_of, tilt_edge, tilt_node
from maxmargin.structures.graphs.cliques import spread_clique
from maxmargin.structures.graphs.margins import find_margins, project

# How to move a clique.
PROX, CONJUGATE, VERTEX, GREEDY = range(4)
SETTLED = 1e-4  # an edge is maximised when the squared length of a step is this share of the longest
NEVER = -1e300
ALL = -1  # steps of multipliers: one of all edges


@loop
def ascend(
    problem, layout, sets, strength, rho, curvature, rule, most, scratch, visits, multiplier_steps, w, mu, delta, xi
):
    """Visit sets of cliques, keeping w = w(mu) and delta = xi - A mu / rho; move edges up to `most` times in a row.

    The multipliers of the edges of a set are stepped as often as said for each visit, in equal distances, the last time
    at its end. The gradient of max_mu D_rho in those of one edge is its own A mu, with a Lipschitz constant of at most
    rho: these are steps of block coordinate descent, and need not wait for other edges. After a visit with `ALL`, those
    of all edges are stepped.
    """
    n_nodes = problem.labels.size
    for v in range(visits.size):
        lo = sets.starts[visits[v]]
        hi = sets.starts[visits[v] + 1]
        n_stepped = 0
        for k in range(lo, hi):
            c = sets.cliques[k]
            if c < n_nodes:
                move_node(problem, layout, strength, rho, curvature, rule, scratch, c, w, mu, delta)
            else:
                least = 0.0
                for _ in range(most):
                    length = move_edge(
                        problem, layout, strength, rho, curvature, rule, scratch, c - n_nodes, w, mu, delta
                    )
                    least = max(least, SETTLED * length)
                    if length <= least:
                        break
            if (k + 1 - lo) * multiplier_steps[v] // (hi - lo) > n_stepped:
                n_stepped += 1
                for other in range(lo, hi):
                    if sets.cliques[other] >= n_nodes:
                        step_multipliers(problem, layout, sets.cliques[other] - n_nodes, delta, xi)
        if multiplier_steps[v] == ALL:
            for e in range(layout.edge_at.size):
                step_multipliers(problem, layout, e, delta, xi)


@loop
def ascend_active(problem, layout, sets, strength, rho, curvature, scratch, visits, active, w, mu, delta, xi):
    """Visit sets: their clique whose step raises D_rho most becomes active, and all active ones are moved.

    The multipliers of the edges of a set are stepped at the end of its visit.
    """
    n_nodes = problem.labels.size
    for v in range(visits.size):
        lo = sets.starts[visits[v]]
        hi = sets.starts[visits[v] + 1]
        best = lo
        most = -1.0
        for k in range(lo, hi):
            gain = find_gain(problem, layout, curvature, scratch, sets.cliques[k], w, mu, delta)
            if gain > most and not active[sets.cliques[k]]:
                best = k
                most = gain
        active[sets.cliques[best]] = True
        for k in range(lo, hi):
            c = sets.cliques[k]
            if active[c] and c < n_nodes:
                move_node(problem, layout, strength, rho, curvature, PROX, scratch, c, w, mu, delta)
            elif active[c]:
                move_edge(problem, layout, strength, rho, curvature, PROX, scratch, c - n_nodes, w, mu, delta)
        for k in range(lo, hi):
            if sets.cliques[k] >= n_nodes:
                step_multipliers(problem, layout, sets.cliques[k] - n_nodes, delta, xi)


@helper
def find_gain(problem, layout, curvature, scratch, c, w, mu, delta):
    """By how much the prox step on clique c raises D_rho at least."""
    e = c - problem.labels.size
    if e < 0:
        at = layout.node_at[c]
        a = layout.node_entropy[c]
        size = tilt_node(problem, layout, c, w, delta, scratch[0])
    else:
        at = layout.edge_at[e]
        a = layout.edge_entropy[e, 0]
        size = tilt_whole_edge(problem, layout, e, w, mu, delta, scratch)
    bend = curvature[c] + 2 * a
    slope = find_step(scratch[0], mu, at, size, a, bend, PROX, scratch[3])
    return slope - bend / 2 * dot(scratch[3], scratch[3], 0, size)


@helper
def tilt_whole_edge(problem, layout, e, w, mu, delta, scratch):
    """Theta_e, with the slope of the entropy of the margins of edge e, in scratch[0]; return its size."""
    n_first, n_second = tilt_edge(problem, layout, e, w, delta, scratch[0])
    if layout.edge_entropy[e, 1] > 0:
        add_slope_of_margins(layout, e, mu, n_first, n_second, scratch)
    return n_first * n_second


@helper
def step_multipliers(problem, layout, e, delta, xi):
    """Take xi_e - A mu_e / rho, which is delta_e, as the multipliers of edge e."""
    n_first, n_second = shape_of(problem, layout, e)
    at = layout.ends_at[e, 0]
    for x in range(at, at + n_first + n_second):
        step = xi[x] - delta[x]
        xi[x] = delta[x]
        delta[x] -= step


@helper
def move_node(problem, layout, strength, rho, curvature, rule, scratch, c, w, mu, delta):
    """Take a step on node c; as D_rho bends alike in all directions there, the prox step is exact."""
    step = scratch[3]
    at = layout.node_at[c]
    a = layout.node_entropy[c]
    bend = curvature[c] + 2 * a
    size = tilt_node(problem, layout, c, w, delta, scratch[0])
    slope = find_step(scratch[0], mu, at, size, a, 2 * a if rule == CONJUGATE else bend, rule, step)
    take_step(mu, at, size, step, slope, bend * dot(step, step, 0, size), rule)
    for k in range(layout.first[c], layout.first[c + 1]):
        for x in range(size):
            delta[layout.incident[k] + x] -= step[x] / rho
    spread_clique(problem.nodes, w, c, step, -layout.node_weight[c] / strength)


@helper
def move_edge(problem, layout, strength, rho, curvature, rule, scratch, e, w, mu, delta):
    """Take a step on edge e; return its squared length."""
    theta = scratch[0]
    rows = scratch[1]
    columns = scratch[2]
    step = scratch[3]
    c = problem.labels.size + e
    at = layout.edge_at[e]
    a = layout.edge_entropy[e, 0]
    n_first, n_second = shape_of(problem, layout, e)
    size = tilt_whole_edge(problem, layout, e, w, mu, delta, scratch)
    bend = concavity(layout, e, n_first, n_second) if rule == CONJUGATE else curvature[c] + 2 * a
    slope = find_step(theta, mu, at, size, a, bend, rule, step)
    find_margins(step, 0, n_first, n_second, rows, columns)
    length = dot(step, step, 0, size)
    bent = 0.0
    if rule in (CONJUGATE, VERTEX):
        bent = (layout.edge_weight[e] * layout.stiffness[c] / strength + 2 * a) * length
        bent += (1 / rho - 2 * layout.edge_entropy[e, 1]) * dot(rows, rows, 0, n_first)
        bent += (1 / rho - 2 * layout.edge_entropy[e, 2]) * dot(columns, columns, 0, n_second)
    share = take_step(mu, at, size, step, slope, bent, rule)
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
def find_step(theta, mu, at, size, a, bend, rule, step):
    """Within the simplex, the step d that maximises <G, d> - bend/2 ||d||^2 for the gradient G = theta - 2 a mu_c.

    Return <G, d>. With `bend` that of D_rho this is the prox step, with that of the entropy alone the way to its
    conjugate. To a vertex the step maximises <G, d>. A greedy one is a prox step among the parts of mu_c that are not
    zero and the one of the largest gradient.
    """
    best = 0
    top = NEVER
    for p in range(size):
        gradient = theta[p] - 2 * a * mu[at + p]
        step[p] = mu[at + p] + gradient / bend
        if gradient > top:
            best = p
            top = gradient
    if rule == VERTEX:
        for p in range(size):
            step[p] = 0
        step[best] = 1
    else:
        if rule == GREEDY:
            for p in range(size):
                if mu[at + p] == 0 and p != best:
                    step[p] = NEVER
        project(step, size)
    slope = 0.0
    for p in range(size):
        step[p] -= mu[at + p]
        slope += (theta[p] - 2 * a * mu[at + p]) * step[p]
    return slope


@helper
def take_step(mu, at, size, step, slope, bent, rule):
    """Add the step, or, if searching, the best share of it, where D_rho rises by share * slope - share^2/2 * bent."""
    share = 1.0
    if rule in (CONJUGATE, VERTEX) and bent > slope:
        share = max(slope, 0.0) / bent
    for p in range(size):
        step[p] *= share
        mu[at + p] = max(mu[at + p] + step[p], 0.0)
    return share
