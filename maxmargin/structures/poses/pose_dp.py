"""Dynamic programs of deformable parts: messages along springs, the best poses, and max-marginals of the joints.

All take a `DeformableProblem`, an example of it, `cells`, the potentials of (cell, joint) and, if there are any, of
(cell, arc, type), one row per cell, and `edges`, the (A K, 5) potentials of the statistics of arcs and types, and work
in a `DeformableWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.vectors import first_best
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import branch_off, offer, offer_others, take
from maxmargin.structures.poses.distance_transform import transform_grid


@helper
def displacement(problem, i, a, kind, from_cell, to_cell):
    """U and v of an arc and type between two cells."""
    width = problem.width[i]
    dx = to_cell % width - from_cell % width
    dy = to_cell // width - from_cell // width
    u = (dx - problem.anchor[a, kind, 0]) / problem.scale[a, 0]
    return u, (dy - problem.anchor[a, kind, 1]) / problem.scale[a, 1]


@helper
def spring(row, edges, u, v):
    """The score of an arc by the way it takes, of the type in `row` of the edges' potentials."""
    squares = edges[row, 0] * u * u + edges[row, 2] * v * v
    return squares + edges[row, 1] * u + edges[row, 3] * v + edges[row, 4]


@helper
def goes_back(problem):
    """Whether each edge has a second arc, from child to parent: that of edge e is E + e."""
    return problem.parent.size > problem.upward.size


@helper
def count_options(problem):
    """How many options an edge has, each a type of all its arcs: type * n + type of the arc back; and n."""
    n_types = problem.anchor.shape[1]
    n_back = n_types if goes_back(problem) else 1
    return n_types * n_back, n_back


@helper
def take_option(problem, e, option, y):
    """Write the types of the arcs of edge e."""
    n_joints = problem.supervision.joint_cost.shape[1]
    _, n_back = count_options(problem)
    y[n_joints + e] = option // n_back
    if goes_back(problem):
        y[n_joints + problem.upward.size + e] = option % n_back


@helper
def score_arc(problem, i, cells, edges, a, kind, from_cell, to_cell):
    """The score of an arc of a type between two cells."""
    n_joints = problem.supervision.joint_cost.shape[1]
    row = a * problem.anchor.shape[1] + kind
    u, v = displacement(problem, i, a, kind, from_cell, to_cell)
    seen = cells[from_cell, n_joints + row] if problem.has_image_types else 0.0
    return spring(row, edges, u, v) + seen


@helper
def score_option(problem, i, cells, edges, e, option, parent_cell, child_cell):
    """The score of an edge, with types of all its arcs, between two cells."""
    _, n_back = count_options(problem)
    total = score_arc(problem, i, cells, edges, e, option // n_back, parent_cell, child_cell)
    if goes_back(problem):
        back = problem.upward.size + e
        total += score_arc(problem, i, cells, edges, back, option % n_back, child_cell, parent_cell)
    return total


@helper
def fill_cost(problem, edges, e, option, sign, cost):
    """What ways along an edge cost: quadratic and linear beyond the anchor of its type, along x, y, and a constant.

    The springs of both arcs are one parabola together. With sign -1, ways and anchor are seen from the child.
    """
    n_types = problem.anchor.shape[1]
    _, n_back = count_options(problem)
    kind = option // n_back
    row = e * n_types + kind
    cost[4] = -edges[row, 4]
    for axis in range(2):
        scale = problem.scale[e, axis]
        cost[2 * axis] = -edges[row, 2 * axis] / (scale * scale)
        cost[2 * axis + 1] = -edges[row, 2 * axis + 1] / scale * sign
    if goes_back(problem):
        a = problem.upward.size + e
        kind_back = option % n_back
        row = a * n_types + kind_back
        cost[4] -= edges[row, 4]
        for axis in range(2):  # a way of u beyond the anchor is one of -(u + shift) beyond that of the arc back
            scale = problem.scale[a, axis]
            shift = problem.anchor[e, kind, axis] + problem.anchor[a, kind_back, axis]
            square = -edges[row, 2 * axis] / (scale * scale)
            linear = -edges[row, 2 * axis + 1] / scale
            cost[2 * axis] += square
            cost[2 * axis + 1] += (2 * square * shift - linear) * sign
            cost[4] += (square * shift - linear) * shift


@helper
def see_parent(problem, cells, e, option, values):
    """Add what the cells of the parent say on the type of the arc that leaves from there."""
    _, n_back = count_options(problem)
    add_column(problem, cells, e, option // n_back, values)


@helper
def see_child(problem, cells, e, option, values):
    """Add what the cells of the child say on the type of the arc back, if there is one."""
    _, n_back = count_options(problem)
    if goes_back(problem):
        add_column(problem, cells, problem.upward.size + e, option % n_back, values)


@helper
def add_column(problem, cells, a, kind, values):
    """Add the potentials of an arc of a type by cell."""
    if problem.has_image_types:
        column = problem.supervision.joint_cost.shape[1] + a * problem.anchor.shape[1] + kind
        for t in range(cells.shape[0]):
            values[t] += cells[t, column]


@helper
def pass_message(problem, i, cells, edges, e, towards_parent, values, message, source, work):
    """Message = the best of all options of edge e, by the cell of the receiving joint; from `values` of the other."""
    n_cells = cells.shape[0]
    n_options, n_back = count_options(problem)
    width = problem.width[i]
    sign = 1.0 if towards_parent else -1.0
    for option in range(n_options):
        work.sent[:n_cells] = values[:n_cells]
        if towards_parent:
            see_child(problem, cells, e, option, work.sent)
        else:
            see_parent(problem, cells, e, option, work.sent)
        fill_cost(problem, edges, e, option, sign, work.cost)
        anchor_x = sign * problem.anchor[e, option // n_back, 0]
        anchor_y = sign * problem.anchor[e, option // n_back, 1]
        transform_grid(
            work.sent,
            n_cells // width,
            width,
            work.cost,
            anchor_x,
            anchor_y,
            work.candidate,
            work.candidate_source,
            work.transform,
        )
        if towards_parent:
            see_parent(problem, cells, e, option, work.candidate)
        else:
            see_child(problem, cells, e, option, work.candidate)
        for t in range(n_cells):
            value = work.candidate[t] - work.cost[4]
            if option == 0 or value > message[t]:
                message[t] = value
                source[t] = work.candidate_source[t] * n_options + option


@helper
def pass_upwards(problem, i, cells, edges, work):
    """Fill the tables of the best scores, from the leaves up."""
    for t in range(cells.shape[0]):
        for j in range(problem.supervision.joint_cost.shape[1]):
            work.belief[j, t] = cells[t, j]
    for k in range(problem.upward.size):
        e = problem.upward[k]
        p = problem.parent[e]
        belief = work.belief[problem.child[e]]
        pass_message(problem, i, cells, edges, e, True, belief, work.message[e], work.source[e], work)
        for t in range(cells.shape[0]):
            work.belief[p, t] += work.message[e, t]


@helper
def decode(problem, n_cells, y, work):
    """Write the best output into `y`, from the roots down; return its score."""
    n_options, _ = count_options(problem)
    total = 0.0
    for r in range(problem.roots.size):
        j = problem.roots[r]
        y[j] = first_best(work.belief[j, :n_cells])
        total += work.belief[j, y[j]]
    for k in range(problem.upward.size - 1, -1, -1):
        e = problem.upward[k]
        source = work.source[e, y[problem.parent[e]]]
        y[problem.child[e]] = source // n_options
        take_option(problem, e, source % n_options, y)
    return total


@helper
def best_option(problem, i, cells, edges, e, parent_cell, child_cell):
    """The option with which edge e scores highest between two cells."""
    n_options, _ = count_options(problem)
    best = 0
    highest = 0.0
    for option in range(n_options):
        score = score_option(problem, i, cells, edges, e, option, parent_cell, child_cell)
        if option == 0 or score > highest:
            best = option
            highest = score
    return best


class Poses(NamedTuple):
    """Cells of the roots, then cells and options along the edges from the roots down: cell * options + option.

    Where types are hidden, the option of an edge follows from the cells of its joints.
    """

    problem: Any
    i: int
    cells: np.ndarray
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
        n_options, _ = count_options(problem)
        y[problem.child[at]] = option // n_options
        take_option(problem, at, option % n_options, y)


@implements(branch_off, Poses)
def branch_off_pose(choices, y, s, branches):
    problem, i, cells, edges, work = choices
    n_cells = cells.shape[0]
    is_root, at = root_or_edge(problem, s)
    if is_root:
        best = offer_others(branches, s, work.belief[at, :n_cells])
    else:
        a = y[problem.parent[at]]
        n_options, _ = count_options(problem)
        n_listed = 1 if problem.hides_types else n_options  # of each cell
        best = work.source[at, a]
        listed = best // n_options * n_listed + best % n_listed
        for other in range(n_cells * n_listed):
            t = other // n_listed
            option = best_option(problem, i, cells, edges, at, a, t) if problem.hides_types else other % n_options
            reached = work.belief[problem.child[at], t] + score_option(problem, i, cells, edges, at, option, a, t)
            if other != listed:
                offer(branches, s, t * n_options + option, max(work.message[at, a] - reached, 0.0))
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
        pass_message(problem, i, cells, edges, e, False, work.rest, work.message[e], work.source[e], work)
        for t in range(n_cells):
            work.belief[c, t] += work.message[e, t]
    for t in range(n_cells):
        for j in range(problem.supervision.joint_cost.shape[1]):
            best[t, j] = work.belief[j, t]
