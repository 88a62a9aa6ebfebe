"""Bounds of the best score of any graph, and labels of a high score: sequential reweighted message passing.

The dual of the local-polytope relaxation. For any multipliers delta_{e,p}, a number for each edge e, end p and state,

    theta'_p = theta_p + sum of delta_{e,p} over the edges e of p,    theta'_e = theta_e - delta_{e,p} - delta_{e,q}

give every output the same score as theta, so that the sum of the maxima of all theta'_p and theta'_e is a bound. A
sweep visits the nodes in order. Node p takes from each edge behind it all that the edge can give, the largest entries
of theta'_e for each state of p, and hands equal shares of what it then has to the edges ahead of it, keeping a share
where there are more edges behind. Neither raises the bound (Kolmogorov 2006, 2015). Sweeps go forth and back.

Where sweeps do not lower the bound any more it can still be above that of the relaxation, though seldom by much; in
trees, and where the relaxation is tight and its solution unique, labels are found that attain it.
"""

from __future__ import annotations

from maxmargin.arrays.vectors import first_best
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper

MOST_VISITS = 20  # to each node, when labels are improved one by one


@helper
def copy_potentials(theta, out):
    """In float64, with impossible parts at a loss that no output could make up for: their own would swamp the rest."""
    loss = 1.0
    for p in range(theta.size):
        if theta[p] > IMPOSSIBLE / 2:
            loss += 2 * abs(theta[p])
    for p in range(theta.size):
        out[p] = theta[p] if theta[p] > IMPOSSIBLE / 2 else -loss


@helper
def give(problem, i, theta, delta, a, out):
    """Write the largest entries of theta'_e, for each state of p, of the edge e that arc a of p is along; return where
    the multipliers of p begin.
    """
    nodes = problem.nodes
    e = problem.edges.starts[i] + a // 2
    n_first = nodes.n_parts[nodes.kind[nodes.starts[i] + problem.ends[e, 0]]]
    n_second = nodes.n_parts[nodes.kind[nodes.starts[i] + problem.ends[e, 1]]]
    first_at = problem.ends_at[e, 0]
    second_at = problem.ends_at[e, 1]
    at = problem.edges.part[e]
    first = delta[first_at : first_at + n_first]
    second = delta[second_at : second_at + n_second]
    if a % 2 == 0:
        for x in range(n_first):
            row = theta[at + x * n_second : at + (x + 1) * n_second]
            best = row[0] - second[0]
            for z in range(1, n_second):
                best = max(best, row[z] - second[z])
            out[x] = best - first[x]
        return first_at
    for x in range(n_first):
        row = theta[at + x * n_second : at + (x + 1) * n_second]
        if x == 0:
            for z in range(n_second):
                out[z] = row[z] - first[0]
        else:
            for z in range(n_second):
                out[z] = max(out[z], row[z] - first[x])
    for z in range(n_second):
        out[z] -= second[z]
    return second_at


@helper
def sweep(problem, i, theta, delta, is_forward, scratch):
    """Visit every node of graph i once."""
    sums = scratch[0]
    given = scratch[1]
    nodes = problem.nodes
    lo = nodes.starts[i]
    out = problem.arcs.out[2 * problem.edges.starts[i] :]
    n_nodes = nodes.starts[i + 1] - lo
    for visit in range(n_nodes):
        p = visit if is_forward else n_nodes - 1 - visit
        c = lo + p
        size = nodes.n_parts[nodes.kind[c]]
        n_behind = 0
        n_ahead = 0
        for x in range(size):
            sums[x] = theta[nodes.part[c] + x]
        for k in range(problem.arcs.first[c + i], problem.arcs.first[c + i + 1]):
            a = out[k]
            if (head(problem, i, a) < p) == is_forward:
                n_behind += 1
                at = give(problem, i, theta, delta, a, given)
                for x in range(size):
                    delta[at + x] += given[x]
            else:
                n_ahead += 1
                at = multipliers_at(problem, i, a)
            for x in range(size):
                sums[x] += delta[at + x]
        if n_ahead == 0:
            continue
        share = 1.0 / max(n_behind, n_ahead)
        for k in range(problem.arcs.first[c + i], problem.arcs.first[c + i + 1]):
            a = out[k]
            if (head(problem, i, a) < p) != is_forward:
                at = multipliers_at(problem, i, a)
                for x in range(size):
                    delta[at + x] -= share * sums[x]


@helper
def multipliers_at(problem, i, a):
    """Where the multipliers begin of the edge that arc a is along, at the end that it leaves."""
    return problem.ends_at[problem.edges.starts[i] + a // 2, a % 2]


@helper
def head(problem, i, a):
    """The node that arc a leads to."""
    return problem.ends[problem.edges.starts[i] + a // 2, 1 - a % 2]


@helper
def tilt_node(problem, i, theta, delta, c, out):
    """Write theta'_p of node c, counted over all graphs."""
    nodes = problem.nodes
    size = nodes.n_parts[nodes.kind[c]]
    leaving = problem.arcs.out[2 * problem.edges.starts[i] :]
    for x in range(size):
        out[x] = theta[nodes.part[c] + x]
    for k in range(problem.arcs.first[c + i], problem.arcs.first[c + i + 1]):
        at = multipliers_at(problem, i, leaving[k])
        for x in range(size):
            out[x] += delta[at + x]


@helper
def add_given(problem, i, theta, a, label, size, sums):
    """Add the scores of the edge along arc a for each state of the node that it leaves, given the label at its head."""
    nodes = problem.nodes
    e = problem.edges.starts[i] + a // 2
    n_second = nodes.n_parts[nodes.kind[nodes.starts[i] + problem.ends[e, 1]]]
    at = problem.edges.part[e]
    if a % 2 == 0:
        for x in range(size):
            sums[x] += theta[at + x * n_second + label]
    else:
        for x in range(size):
            sums[x] += theta[at + label * n_second + x]


@helper
def read_labels(problem, i, theta, delta, y, sums):
    """Label node after node, given the labels before and the multipliers after it, once a sweep came back."""
    nodes = problem.nodes
    lo = nodes.starts[i]
    out = problem.arcs.out[2 * problem.edges.starts[i] :]
    for c in range(lo, nodes.starts[i + 1]):
        size = nodes.n_parts[nodes.kind[c]]
        for x in range(size):
            sums[x] = theta[nodes.part[c] + x]
        for k in range(problem.arcs.first[c + i], problem.arcs.first[c + i + 1]):
            a = out[k]
            q = head(problem, i, a)
            if q < c - lo:
                add_given(problem, i, theta, a, y[q], size, sums)
            else:
                at = multipliers_at(problem, i, a)
                for x in range(size):
                    sums[x] += delta[at + x]
        y[c - lo] = first_best(sums[:size])


@helper
def improve_nodes(problem, i, theta, y, sums):
    """Give every node its best label given those of its neighbours, until none changes (Besag 1986)."""
    nodes = problem.nodes
    lo = nodes.starts[i]
    out = problem.arcs.out[2 * problem.edges.starts[i] :]
    for _ in range(MOST_VISITS):
        has_changed = False
        for c in range(lo, nodes.starts[i + 1]):
            size = nodes.n_parts[nodes.kind[c]]
            for x in range(size):
                sums[x] = theta[nodes.part[c] + x]
            for k in range(problem.arcs.first[c + i], problem.arcs.first[c + i + 1]):
                a = out[k]
                add_given(problem, i, theta, a, y[head(problem, i, a)], size, sums)
            best = first_best(sums[:size])
            if sums[best] > sums[y[c - lo]]:
                y[c - lo] = best
                has_changed = True
        if not has_changed:
            break
