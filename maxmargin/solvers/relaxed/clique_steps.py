"""Steps on single nodes and edges that raise D_rho (`relaxed_objective`), and on the multipliers that lower it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.relaxed.relaxed_passes import add_slope_of_margins, concavity, dot, score_edge, score_node
from maxmargin.structures.graphs.cliques import spread_clique
from maxmargin.structures.graphs.local_polytope import (
    find_margins,
    find_prox_step,
    follow_edge,
    follow_node,
    project,
    shape_of,
    step_multipliers,
    take_step,
)

# How to move a clique.
PROX, CONJUGATE, VERTEX, GREEDY = range(4)
SETTLED = 1e-4  # an edge is maximised when the squared length of a step is this share of the longest
NEVER = -1e300
ALL = -1  # steps of multipliers: one of all edges


class Ascent(NamedTuple):
    """A point, and how D_rho bends there."""

    w: np.ndarray  # w(mu)
    mu: np.ndarray
    delta: np.ndarray  # xi - A mu / rho
    xi: np.ndarray
    n_lambda: float
    rho: float
    curvature: np.ndarray  # of each clique
    scratch: np.ndarray  # (4, parts of the largest node or edge)


@loop
def ascend(problem, terms, sets, ascent, rule, most, visits, multiplier_steps):
    """Visit sets of cliques; move edges up to `most` times in a row.

    The multipliers of the edges of a set are stepped as often as said for each visit, in equal distances, the last time
    at its end. The gradient of max_mu D_rho in those of one edge is its own A mu, with a Lipschitz constant of at most
    rho: these are steps of block coordinate descent, and need not wait for other edges. After a visit with `ALL`, those
    of all edges are stepped.
    """
    n_nodes = problem.graphs.nodes.row.size
    for v in range(visits.size):
        lo = sets.starts[visits[v]]
        hi = sets.starts[visits[v] + 1]
        n_stepped = 0
        for k in range(lo, hi):
            c = sets.cliques[k]
            if c < n_nodes:
                move_node(problem, terms, ascent, rule, c)
            else:
                least = 0.0
                for _ in range(most):
                    length = move_edge(problem, terms, ascent, rule, c)
                    least = max(least, SETTLED * length)
                    if length <= least:
                        break
            if (k + 1 - lo) * multiplier_steps[v] // (hi - lo) > n_stepped:
                n_stepped += 1
                step_set(problem, terms, sets, lo, hi, ascent)
        if multiplier_steps[v] == ALL:
            step_multipliers(terms.constraints, 0, problem.graphs.edges.row.size, ascent.delta, ascent.xi)


@loop
def ascend_active(problem, terms, sets, ascent, visits, active):
    """Visit sets: their clique whose step raises D_rho most becomes active, and all active ones are moved.

    The multipliers of the edges of a set are stepped at the end of its visit.
    """
    n_nodes = problem.graphs.nodes.row.size
    for v in range(visits.size):
        lo = sets.starts[visits[v]]
        hi = sets.starts[visits[v] + 1]
        best = lo
        most = -1.0
        for k in range(lo, hi):
            gain = find_gain(problem, terms, ascent, sets.cliques[k])
            if gain > most and not active[sets.cliques[k]]:
                best = k
                most = gain
        active[sets.cliques[best]] = True
        for k in range(lo, hi):
            c = sets.cliques[k]
            if active[c] and c < n_nodes:
                move_node(problem, terms, ascent, PROX, c)
            elif active[c]:
                move_edge(problem, terms, ascent, PROX, c)
        step_set(problem, terms, sets, lo, hi, ascent)


@helper
def step_set(problem, terms, sets, lo, hi, ascent):
    """Step the multipliers of the edges among some cliques."""
    for k in range(lo, hi):
        e = sets.cliques[k] - problem.graphs.nodes.row.size
        if e >= 0:
            step_multipliers(terms.constraints, e, e + 1, ascent.delta, ascent.xi)


@helper
def find_gain(problem, terms, ascent, c):
    """By how much the prox step on clique c raises D_rho at least."""
    scratch = ascent.scratch
    if c < problem.graphs.nodes.row.size:
        size = score_node(problem, terms, c, ascent.w, ascent.delta, scratch[0])
    else:
        size = score_bent_edge(problem, terms, ascent, c)
    bend = ascent.curvature[c] + 2 * terms.entropy[c]
    slope = find_step(scratch[0], ascent.mu, terms.at[c], size, terms.entropy[c], bend, PROX, scratch[3])
    return slope - bend / 2 * dot(scratch[3], scratch[3], 0, size)


@helper
def score_bent_edge(problem, terms, ascent, c):
    """Theta_e, with the slope of the entropy of its margins, in scratch[0], of the edge that is clique c; return its
    size.
    """
    scratch = ascent.scratch
    e = c - problem.graphs.nodes.row.size
    n_first, n_second = score_edge(problem, terms, e, ascent.w, ascent.delta, scratch[0])
    if terms.margin_entropy[e, 0] > 0:
        find_margins(ascent.mu, terms.at[c], n_first, n_second, scratch[1], scratch[2])
        add_slope_of_margins(terms, e, scratch[1], scratch[2], n_first, n_second, scratch[0])
    return n_first * n_second


@helper
def move_node(problem, terms, ascent, rule, c):
    """Take a step on node c; as D_rho bends alike in all directions there, the prox step is exact."""
    w, mu, delta, scratch = ascent.w, ascent.mu, ascent.delta, ascent.scratch
    step = scratch[3]
    a = terms.entropy[c]
    bend = ascent.curvature[c] + 2 * a
    size = score_node(problem, terms, c, w, delta, scratch[0])
    slope = find_step(scratch[0], mu, terms.at[c], size, a, 2 * a if rule == CONJUGATE else bend, rule, step)
    share = best_share(slope, bend * dot(step, step, 0, size), rule)
    take_step(mu, terms.at[c], size, share, step)
    follow_node(terms.constraints, c, size, step, 1 / ascent.rho, delta)
    spread_clique(problem.graphs.nodes, w, c, step, -terms.weight[c] / ascent.n_lambda)


@helper
def move_edge(problem, terms, ascent, rule, c):
    """Take a step on the edge that is clique c; return its squared length."""
    w, mu, delta, scratch = ascent.w, ascent.mu, ascent.delta, ascent.scratch
    n_lambda, rho = ascent.n_lambda, ascent.rho
    e = c - problem.graphs.nodes.row.size
    rows = scratch[1]
    columns = scratch[2]
    step = scratch[3]
    a = terms.entropy[c]
    n_first, n_second = shape_of(terms.constraints, e)
    size = score_bent_edge(problem, terms, ascent, c)
    bend = concavity(terms, e, a, n_first, n_second) if rule == CONJUGATE else ascent.curvature[c] + 2 * a
    slope = find_step(scratch[0], mu, terms.at[c], size, a, bend, rule, step)
    find_margins(step, 0, n_first, n_second, rows, columns)
    length = dot(step, step, 0, size)
    bent = 0.0
    if rule in (CONJUGATE, VERTEX):
        bent = (terms.weight[c] * terms.stiffness[c] / n_lambda + 2 * a) * length
        bent += (1 / rho - 2 * terms.margin_entropy[e, 0]) * dot(rows, rows, 0, n_first)
        bent += (1 / rho - 2 * terms.margin_entropy[e, 1]) * dot(columns, columns, 0, n_second)
    share = best_share(slope, bent, rule)
    take_step(mu, terms.at[c], size, share, step)
    follow_edge(terms.constraints, e, rows, columns, share / rho, delta)
    spread_clique(problem.graphs.edges, w, e, step, -terms.weight[c] / n_lambda)
    return share * share * length


@helper
def find_step(theta, mu, at, size, a, bend, rule, step):
    """Within the simplex, a step d where the gradient of D_rho is G = theta - 2 a mu_c; return <G, d>.

    The prox step if `bend` is that of D_rho, the way to the conjugate if it is that of the entropy alone. To a vertex
    the step maximises <G, d>. A greedy one is a prox step among the parts of mu_c that are not zero and the one of the
    largest gradient.
    """
    if rule in (PROX, CONJUGATE):
        find_prox_step(theta, mu, at, size, a, bend, step)
    else:
        best = 0
        top = NEVER
        for p in range(size):
            step[p] = theta[p] - 2 * a * mu[at + p]
            if step[p] > top:
                best = p
                top = step[p]
        for p in range(size):
            if rule == VERTEX:
                step[p] = p == best
            else:
                step[p] = mu[at + p] + step[p] / bend if mu[at + p] > 0 or p == best else NEVER
        if rule == GREEDY:
            project(step, size)
        for p in range(size):
            step[p] -= mu[at + p]
    slope = 0.0
    for p in range(size):
        slope += (theta[p] - 2 * a * mu[at + p]) * step[p]
    return slope


@helper
def best_share(slope, bent, rule):
    """All of a step, or, if searching, where D_rho rises most by share * slope - share^2/2 * bent."""
    return max(slope, 0.0) / bent if rule in (CONJUGATE, VERTEX) and bent > slope else 1.0
