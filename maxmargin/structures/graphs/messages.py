"""Bounds of the best score of any graph, and labels of a high score: sequential reweighted message passing.

The dual of the relaxation to the local polytope (`local_polytope`). For any multipliers delta, all outputs have the
same score by theta' as by theta, so that the sum of the maxima of all theta'_p and theta'_e is a bound. A sweep visits
the nodes in order. Node p takes from each edge behind it all that the edge can give, the largest entries of theta'_e
for each state of p, and hands equal shares of what it then has to the edges ahead of it, keeping a share where there
are more edges behind. Neither raises the bound (Kolmogorov 2006, 2015). Sweeps go forth and back.

Where sweeps do not lower the bound any more it can still be above that of the relaxation, though seldom by much; in
trees, and where the relaxation is tight and its solution unique, labels are found that attain it.
"""

from __future__ import annotations

from maxmargin.arrays.vectors import first_best
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.graphs.cliques import copy_parts
from maxmargin.structures.graphs.local_polytope import shape_of

MOST_VISITS = 20  # to each node, when labels are improved one by one


@helper
def give(problem, i, theta, delta, a, out):
    """Write the largest entries of theta'_e, for each state of p, of the edge e that arc a of p is along."""
    edges = problem.graphs.edges
    e = edges.starts[i] + a // 2
    n_first, n_second = shape_of(problem.constraints, e)
    at = problem.constraints.starts[2 * e]
    first = delta[at : at + n_first]
    second = delta[at + n_first : at + n_first + n_second]
    at = edges.part[e]
    if a % 2 == 0:
        for x in range(n_first):
            row = theta[at + x * n_second : at + (x + 1) * n_second]
            best = row[0] - second[0]
            for z in range(1, n_second):
                best = max(best, row[z] - second[z])
            out[x] = best - first[x]
        return
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


@helper
def sweep(problem, i, theta, delta, is_forward, scratch):
    """Visit every node of graph i once."""
    sums = scratch[0]
    given = scratch[1]
    nodes = problem.graphs.nodes
    lo = nodes.starts[i]
    first = problem.constraints.first
    n_nodes = nodes.starts[i + 1] - lo
    for visit in range(n_nodes):
        p = visit if is_forward else n_nodes - 1 - visit
        c = lo + p
        size = copy_parts(nodes, c, theta, sums)
        n_behind = 0
        n_ahead = 0
        for k in range(first[c], first[c + 1]):
            a = problem.arcs.out[k]
            at = problem.constraints.incident[k]
            if (head(problem, i, a) < p) == is_forward:
                n_behind += 1
                give(problem, i, theta, delta, a, given)
                for x in range(size):
                    delta[at + x] += given[x]
            else:
                n_ahead += 1
            for x in range(size):
                sums[x] += delta[at + x]
        if n_ahead == 0:
            continue
        share = 1.0 / max(n_behind, n_ahead)
        for k in range(first[c], first[c + 1]):
            if (head(problem, i, problem.arcs.out[k]) < p) != is_forward:
                at = problem.constraints.incident[k]
                for x in range(size):
                    delta[at + x] -= share * sums[x]


@helper
def head(problem, i, a):
    """The node that arc a leads to."""
    return problem.graphs.ends[problem.graphs.edges.starts[i] + a // 2, 1 - a % 2]


@helper
def add_given(problem, i, theta, a, label, size, sums):
    """Add the scores of the edge along arc a for each state of the node that it leaves, given the label at its head."""
    edges = problem.graphs.edges
    e = edges.starts[i] + a // 2
    _, n_second = shape_of(problem.constraints, e)
    at = edges.part[e]
    if a % 2 == 0:
        for x in range(size):
            sums[x] += theta[at + x * n_second + label]
    else:
        for x in range(size):
            sums[x] += theta[at + label * n_second + x]


@helper
def read_labels(problem, i, theta, delta, y, sums):
    """Label node after node, given the labels before and the multipliers after it, once a sweep came back."""
    nodes = problem.graphs.nodes
    lo = nodes.starts[i]
    first = problem.constraints.first
    for c in range(lo, nodes.starts[i + 1]):
        size = copy_parts(nodes, c, theta, sums)
        for k in range(first[c], first[c + 1]):
            a = problem.arcs.out[k]
            q = head(problem, i, a)
            if q < c - lo:
                add_given(problem, i, theta, a, y[q], size, sums)
            else:
                at = problem.constraints.incident[k]
                for x in range(size):
                    sums[x] += delta[at + x]
        y[c - lo] = first_best(sums[:size])


@helper
def improve_nodes(problem, i, theta, y, sums):
    """Give every node its best label given those of its neighbours, until none changes (Besag 1986)."""
    nodes = problem.graphs.nodes
    lo = nodes.starts[i]
    first = problem.constraints.first
    for _ in range(MOST_VISITS):
        has_changed = False
        for c in range(lo, nodes.starts[i + 1]):
            size = copy_parts(nodes, c, theta, sums)
            for k in range(first[c], first[c + 1]):
                a = problem.arcs.out[k]
                add_given(problem, i, theta, a, y[head(problem, i, a)], size, sums)
            best = first_best(sums[:size])
            if sums[best] > sums[y[c - lo]]:
                y[c - lo] = best
                has_changed = True
        if not has_changed:
            break
