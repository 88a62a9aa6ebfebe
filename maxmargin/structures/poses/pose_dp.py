"""Dynamic programs of deformable parts: messages along springs, the best poses, and max-marginals of the joints.

All take a `DeformableProblem`, an example of it, `cells`, the (cells, J) potentials of (cell, joint), and `edges`, the
(E K, 5) potentials of the statistics of edges and types, and work in a `DeformableWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.vectors import first_best
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import branch_off, offer, take
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


class Poses(NamedTuple):
    """Cells of the roots, then cells and types along the edges from the roots down: cell * K + type.

    Where types are hidden, those of an edge follow from the cells of its joints.
    """

    problem: Any
    i: int
    n_cells: int
    edges: np.ndarray
    work: Any


@helper
def root_or_edge(problem, s):
    """Whether choice s is that of a root, and which root or edge it is of."""
    n_roots = problem.roots.size
    is_root = s < n_roots
    return is_root, problem.roots[s] if is_root else problem.upward[n_roots + problem.upward.size - 1 - s]


@implements(take, Poses)
def take_place(choices, y, s, option):
    problem = choices.problem
    is_root, at = root_or_edge(problem, s)
    if is_root:
        y[at] = option
    else:
        n_types = problem.anchor.shape[1]
        y[problem.child[at]] = option // n_types
        y[problem.supervision.joint_cost.shape[1] + at] = option % n_types


@implements(branch_off, Poses)
def branch_off_pose(choices, y, s, branches):
    problem, i, n_cells, edges, work = choices
    is_root, at = root_or_edge(problem, s)
    if is_root:
        best = first_best(work.belief[at, :n_cells])
        for t in range(n_cells):
            if t != best:
                offer(branches, s, t, work.belief[at, best] - work.belief[at, t])
    else:
        a = y[problem.parent[at]]
        n_types = problem.anchor.shape[1]
        n_listed = 1 if problem.hides_types else n_types  # of each cell
        best = work.source[at, a]
        listed = best // n_types * n_listed + best % n_listed
        for other in range(n_cells * n_listed):
            t = other // n_listed
            kind = best_type(problem, i, edges, at, a, t) if problem.hides_types else other % n_types
            u, v = displacement(problem, i, at, kind, a, t)
            reached = work.belief[problem.child[at], t] + spring(at * n_types + kind, edges, u, v)
            if other != listed:
                offer(branches, s, t * n_types + kind, max(work.message[at, a] - reached, 0.0))
    take(choices, y, s, best)


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
