"""Dynamic programs of deformable parts: messages along springs, the best poses, and max-marginals of the joints.

All take a `DeformableProblem`, an example of it, `cells`, the (cells, J) potentials of (cell, joint), and `edges`, the
(E K, 5) potentials of the statistics of edges and types, and work in a `DeformableWork`.
"""

from __future__ import annotations

from maxmargin.arrays.vectors import first_best
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_dp import insert, list_best
from maxmargin.structures.poses.distance_transform import transform_grid


@helper
def displacement(problem, i, e, kind, parent_cell, child_cell):
    """U and v of an edge and type between two cells."""
    width = problem.width[i]
    dx = child_cell % width - parent_cell % width
    dy = child_cell // width - parent_cell // width
    u = (dx - problem.anchor[e, kind, 0]) / problem.scale[e, 0]
    return u, (dy - problem.anchor[e, kind, 1]) / problem.scale[e, 1]


@helper
def spring(row, edges, u, v):
    """The score of an edge of the type in `row` of the edges' potentials."""
    squares = edges[row, 0] * u * u + edges[row, 2] * v * v
    return squares + edges[row, 1] * u + edges[row, 3] * v + edges[row, 4]


@helper
def pass_message(problem, i, edges, e, towards_parent, values, message, source, work):
    """Message = the best of all types of edge e, by the cell of the receiving joint; from `values` of the other."""
    n_cells = problem.starts[i + 1] - problem.starts[i]
    n_types = problem.anchor.shape[1]
    width = problem.width[i]
    sign = 1.0 if towards_parent else -1.0  # the way from parent to child, seen from the other end
    for kind in range(n_types):
        row = e * n_types + kind
        work.cost[0] = -edges[row, 0] / (problem.scale[e, 0] * problem.scale[e, 0])
        work.cost[1] = -edges[row, 1] / problem.scale[e, 0] * sign
        work.cost[2] = -edges[row, 2] / (problem.scale[e, 1] * problem.scale[e, 1])
        work.cost[3] = -edges[row, 3] / problem.scale[e, 1] * sign
        anchor_x = sign * problem.anchor[e, kind, 0]
        anchor_y = sign * problem.anchor[e, kind, 1]
        transform_grid(
            values,
            n_cells // width,
            width,
            work.cost,
            anchor_x,
            anchor_y,
            work.candidate,
            work.candidate_source,
            work.transform,
        )
        for t in range(n_cells):
            value = work.candidate[t] + edges[row, 4]
            if kind == 0 or value > message[t]:
                message[t] = value
                source[t] = work.candidate_source[t] * n_types + kind


@helper
def pass_upwards(problem, i, cells, edges, work):
    """Fill the tables of the best scores, from the leaves up."""
    for t in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            work.belief[j, t] = cells[t, j]
    for k in range(problem.upward.size):
        e = problem.upward[k]
        p = problem.parent[e]
        belief = work.belief[problem.child[e]]
        pass_message(problem, i, edges, e, True, belief, work.message[e], work.source[e], work)
        for t in range(cells.shape[0]):
            work.belief[p, t] += work.message[e, t]


@helper
def decode(problem, n_cells, n_joints, y, work):
    """Write the best output into `y`, from the roots down; return its score."""
    n_types = problem.anchor.shape[1]
    total = 0.0
    for r in range(problem.roots.size):
        j = problem.roots[r]
        y[j] = first_best(work.belief[j, :n_cells])
        total += work.belief[j, y[j]]
    for k in range(problem.upward.size - 1, -1, -1):
        e = problem.upward[k]
        source = work.source[e, y[problem.parent[e]]]
        y[problem.child[e]] = source // n_types
        y[n_joints + e] = source % n_types
    return total


@helper
def best_type(problem, i, edges, e, parent_cell, child_cell):
    """The type with which edge e scores highest between two cells."""
    n_types = problem.anchor.shape[1]
    best = 0
    highest = 0.0
    for kind in range(n_types):
        u, v = displacement(problem, i, e, kind, parent_cell, child_cell)
        score = spring(e * n_types + kind, edges, u, v)
        if kind == 0 or score > highest:
            best = kind
            highest = score
    return best


@helper
def k_best(problem, i, cells, edges, outputs, values, level, work):
    """As `tree_dp.k_best`: choices are made for the roots, then along the edges from the roots down.

    Where types are hidden, those of an edge follow from the cells of its joints.
    """
    n_cells, n_joints = cells.shape
    n_types = problem.anchor.shape[1]
    n_listed = 1 if problem.hides_types else n_types  # of each cell
    n_roots = problem.roots.size
    n_choices = n_roots + problem.upward.size
    last = values.size - 1
    pass_upwards(problem, i, cells, edges, work)
    list_best(values, work.branches, decode(problem, n_cells, n_joints, outputs[0], work), -1)
    least = IMPOSSIBLE / 2
    total = 0.0
    for k in range(values.size):
        if values[k] <= least:
            return k
        total += values[k]
        least = max(least, (total - level) / (k + 1))
        branch = work.branches[k, 1]
        for at in range(outputs.shape[1]):  # choices after the branch are made again
            outputs[k, at] = outputs[work.branches[k, 0], at]
        for s in range(max(branch, 0), n_choices):
            if s < n_roots:
                j = problem.roots[s]
                choice = work.branches[k, 2] if s == branch else first_best(work.belief[j, :n_cells])
                outputs[k, j] = choice
                if s > branch:
                    for t in range(n_cells):
                        value = values[k] - (work.belief[j, choice] - work.belief[j, t])
                        if t != choice and value > max(values[last], least):
                            insert(values, work.branches, k + 1, value, k, s, t)
                continue
            e = problem.upward[n_choices - 1 - s]
            c = problem.child[e]
            a = outputs[k, problem.parent[e]]
            choice = work.branches[k, 2] if s == branch else work.source[e, a]
            outputs[k, c] = choice // n_types
            outputs[k, n_joints + e] = choice % n_types
            if s > branch:
                chosen = choice // n_types * n_listed + choice % n_listed
                for other in range(n_cells * n_listed):
                    t = other // n_listed
                    kind = best_type(problem, i, edges, e, a, t) if problem.hides_types else other % n_types
                    u, v = displacement(problem, i, e, kind, a, t)
                    reached = work.belief[c, t] + spring(e * n_types + kind, edges, u, v)
                    value = values[k] - max(work.message[e, a] - reached, 0.0)
                    if other != chosen and value > max(values[last], least):
                        insert(values, work.branches, k + 1, value, k, s, t * n_types + kind)
    return values.size


@helper
def max_marginals(problem, i, cells, edges, best, work):
    """best[t, j], the score of the best output with joint j at cell t."""
    n_cells = cells.shape[0]
    pass_upwards(problem, i, cells, edges, work)
    total = 0.0
    for r in range(problem.roots.size):
        best_of_root = work.belief[problem.roots[r], :n_cells]
        total += best_of_root[first_best(best_of_root)]
    for r in range(problem.roots.size):
        j = problem.roots[r]
        other_trees = total - work.belief[j, first_best(work.belief[j, :n_cells])]
        for t in range(n_cells):
            work.belief[j, t] += other_trees
    for k in range(problem.upward.size - 1, -1, -1):
        e = problem.upward[k]
        c = problem.child[e]
        for t in range(n_cells):
            work.rest[t] = work.belief[problem.parent[e], t] - work.message[e, t]
        pass_message(problem, i, edges, e, False, work.rest, work.message[e], work.source[e], work)
        for t in range(n_cells):
            work.belief[c, t] += work.message[e, t]
    for t in range(n_cells):
        for j in range(cells.shape[1]):
            best[t, j] = work.belief[j, t]
