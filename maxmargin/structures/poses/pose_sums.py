"""Sums over all poses: messages along springs that add up, probabilities of cells, mean ways along edges, and samples.

All takes place in logarithms. A spring is the sum of a force along x and one along y, so that a message is passed row
by row and then column by column, in O(HW (H + W)) products; where these are too small to be told from nothing, the
logarithms are added one by one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import first_best
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.poses.pose_dp import (
    count_options,
    fill_cost,
    goes_back,
    score_option,
    see_child,
    see_parent,
    take_option,
)
from maxmargin.structures.scalar_semirings import NEVER, LogSums, add, pick, sum_range

LEAST_SUM = 1e-150  # beside which terms that are too small for a number are nothing
LOG_MOST = 300.0  # of a factor, with which such terms are nothing
LOG_LEAST = -800.0  # below which all terms are zero


class Force(NamedTuple):
    """What ways along x, or along y, score: entry n - 1 + way, for ways of less than n cells."""

    log: np.ndarray  # (2 n - 1,)
    share: np.ndarray  # exp(log - the highest)
    expected: np.ndarray  # how often each way occurs


class PoseSumWork(NamedTuple):
    """Tables for the largest image, of logarithms."""

    belief: np.ndarray  # (J, cells) sums over a joint's subtree; then the probabilities of its cells
    message: np.ndarray  # (E, cells)
    rest: np.ndarray  # (cells,) sums over all but a subtree, by the cell of its parent
    turned: np.ndarray  # (3, cells) tables by columns
    candidate: np.ndarray  # (cells,) the message of an option
    ends: np.ndarray  # (2, cells) what an option has at parent and child, but for what is between them
    cost: np.ndarray  # (5,) of ways
    along_x: Force
    along_y: Force
    line: np.ndarray  # (2, n) exponentials of a row or column
    options: np.ndarray  # (cells * options,) of a draw


def new_pose_sum_work(n_joints: int, n_edges: int, n_options: int, n_cells: int, longest: int) -> PoseSumWork:
    """Tables for grids of up to `n_cells` cells and sides up to `longest`."""
    forces = (Force(*(aligned((2 * longest - 1,), np.float64) for _ in Force._fields)) for _ in range(2))
    return PoseSumWork(
        belief=aligned((n_joints, n_cells), np.float64),
        message=aligned((n_edges, n_cells), np.float64),
        rest=aligned((n_cells,), np.float64),
        turned=aligned((3, n_cells), np.float64),
        candidate=aligned((n_cells,), np.float64),
        ends=aligned((2, n_cells), np.float64),
        cost=aligned((5,), np.float64),
        along_x=next(forces),
        along_y=next(forces),
        line=aligned((2, longest), np.float64),
        options=aligned((n_cells * n_options,), np.float64),
    )


@helper
def fill_force(square, linear, anchor, n, force):
    """The scores of all ways of less than n cells, by what it costs to be beyond the anchor."""
    highest = NEVER
    for k in range(2 * n - 1):
        u = k - n + 1 - anchor
        force.log[k] = -(square * u + linear) * u
        highest = max(highest, force.log[k])
    for k in range(2 * n - 1):
        force.share[k] = math.exp(force.log[k] - highest)
        force.expected[k] = 0


@helper
def fill_forces(problem, i, edges, e, option, sign, work):
    """Those of an option of an edge along x and y; return what the option scores besides."""
    width = problem.width[i]
    height = (problem.starts[i + 1] - problem.starts[i]) // width
    _, n_back = count_options(problem)
    anchor = problem.anchor[e, option // n_back]
    fill_cost(problem, edges, e, option, sign, work.cost)
    fill_force(work.cost[0], work.cost[1], sign * anchor[0], width, work.along_x)
    fill_force(work.cost[2], work.cost[3], sign * anchor[1], height, work.along_y)
    return -work.cost[4]


@helper
def highest_of(force, n):
    """The highest score of all ways of less than n cells."""
    return force.log[first_best(force.log[: 2 * n - 1])]


@helper
def exponentiate(values, lo, n, line):
    """Line = exp(values[lo : lo + n] - the highest); return that."""
    top = values[lo]
    for x in range(1, n):
        top = max(top, values[lo + x])
    for x in range(n):
        line[x] = math.exp(values[lo + x] - top)
    return top


@helper
def sum_line(values, lo, n, force, highest, out, at, step, line):
    """out[at + step q] = log sum_x exp(values[lo + x] + force(x - q)), for 0 <= x, q < n."""
    top = exponentiate(values, lo, n, line)
    for q in range(n):
        total = 0.0
        for x in range(n):
            total += line[x] * force.share[x - q + n - 1]
        if total > LEAST_SUM:
            out[at + step * q] = math.log(total) + top + highest
        else:
            log_sum = NEVER
            for x in range(n):
                log_sum = add(LogSums(), log_sum, values[lo + x] + force.log[x - q + n - 1])
            out[at + step * q] = log_sum


@helper
def sum_grid(values, height, width, out, work):
    """The sums over a grid, flat by rows, with the forces along x and y."""
    highest = highest_of(work.along_x, width)
    turned = work.turned[0]
    for y in range(height):
        sum_line(values, y * width, width, work.along_x, highest, turned, y, height, work.line[0])
    highest = highest_of(work.along_y, height)
    for x in range(width):
        sum_line(turned, x * height, height, work.along_y, highest, out, x, width, work.line[0])


@helper
def sum_message(problem, i, cells, edges, e, towards_parent, values, message, work):
    """Message = the sum over all options of edge e, by the cell of the receiving joint; from `values` of the other."""
    n_cells = cells.shape[0]
    n_options, _ = count_options(problem)
    sent = work.ends[0]
    for option in range(n_options):
        sent[:n_cells] = values[:n_cells]
        if towards_parent:
            see_child(problem, cells, e, option, sent)
        else:
            see_parent(problem, cells, e, option, sent)
        constant = fill_forces(problem, i, edges, e, option, 1.0 if towards_parent else -1.0, work)
        sum_grid(sent, n_cells // problem.width[i], problem.width[i], work.candidate, work)
        if towards_parent:
            see_parent(problem, cells, e, option, work.candidate)
        else:
            see_child(problem, cells, e, option, work.candidate)
        for t in range(n_cells):
            value = work.candidate[t] + constant
            message[t] = value if option == 0 else add(LogSums(), message[t], value)


@helper
def sum_upwards(problem, i, cells, edges, work):
    """Fill the tables of sums, from the leaves up; return the logarithm of the sum over all poses."""
    n_cells = cells.shape[0]
    for t in range(n_cells):
        for j in range(work.belief.shape[0]):
            work.belief[j, t] = cells[t, j]
    for k in range(problem.upward.size):
        e = problem.upward[k]
        sum_message(problem, i, cells, edges, e, True, work.belief[problem.child[e]], work.message[e], work)
        for t in range(n_cells):
            work.belief[problem.parent[e], t] += work.message[e, t]
    total = 0.0
    for r in range(problem.roots.size):
        total += sum_range(LogSums(), work.belief[problem.roots[r]], 0, n_cells)
    return total


@helper
def turn_grid(values, height, width, out):
    """A grid by columns."""
    for y in range(height):
        for x in range(width):
            out[x * height + y] = values[y * width + x]


@helper
def count_ways(near, far, n_lines, n, force, constant, lines):
    """Add the probabilities of ways from q to x on the same line: exp(near[q] + far[x] + force(x - q) + constant)."""
    highest = highest_of(force, n)
    for k in range(n_lines):
        lo = k * n
        factor = exponentiate(near, lo, n, lines[0]) + exponentiate(far, lo, n, lines[1]) + highest + constant
        if factor < LOG_LEAST:
            continue
        is_safe = factor < LOG_MOST
        scale = math.exp(min(factor, LOG_MOST))
        for q in range(n):
            for x in range(n):
                way = x - q + n - 1
                if is_safe:
                    force.expected[way] += scale * lines[0, q] * lines[1, x] * force.share[way]
                else:
                    force.expected[way] += math.exp(near[lo + q] + far[lo + x] + force.log[way] + constant)


@helper
def average_edge(problem, i, cells, edges, e, cell_means, edge_means, work):
    """Add the mean parts of the arcs of an edge, with `work.rest` of its parent and the sums of its child at hand."""
    n_cells = cells.shape[0]
    width = problem.width[i]
    height = n_cells // width
    n_options, n_back = count_options(problem)
    near = work.ends[0]
    far = work.ends[1]
    for option in range(n_options):
        near[:n_cells] = work.rest[:n_cells]
        far[:n_cells] = work.belief[problem.child[e], :n_cells]
        see_parent(problem, cells, e, option, near)
        see_child(problem, cells, e, option, far)
        constant = fill_forces(problem, i, edges, e, option, 1.0, work)
        turn_grid(far, height, width, work.turned[0])
        highest = highest_of(work.along_y, height)
        for x in range(width):  # the child's rows are summed, its column stays
            sum_line(work.turned[0], x * height, height, work.along_y, highest, work.candidate, x, width, work.line[0])
        count_ways(near, work.candidate, height, width, work.along_x, constant, work.line)
        highest = highest_of(work.along_x, width)
        for y in range(height):  # and the other way around
            sum_line(far, y * width, width, work.along_x, highest, work.turned[1], y, height, work.line[0])
        turn_grid(near, height, width, work.turned[2])
        count_ways(work.turned[2], work.turned[1], width, height, work.along_y, constant, work.line)
        average_ways(problem, e, option // n_back, 1.0, width, height, edge_means, work)
        if goes_back(problem):
            average_ways(problem, problem.upward.size + e, option % n_back, -1.0, width, height, edge_means, work)
        if problem.has_image_types:
            sum_grid(far, height, width, work.candidate, work)
            average_types(problem, e, option // n_back, near, constant, cell_means, work)
            if goes_back(problem):
                fill_forces(problem, i, edges, e, option, -1.0, work)
                sum_grid(near, height, width, work.candidate, work)
                back = problem.upward.size + e
                average_types(problem, back, option % n_back, far, constant, cell_means, work)


@helper
def average_ways(problem, a, kind, sign, width, height, means, work):
    """Add the mean statistics of an arc of a type, by how often each way along its edge occurs."""
    row = a * problem.anchor.shape[1] + kind
    for k in range(2 * width - 1):
        share = work.along_x.expected[k]
        u = (sign * (k - width + 1) - problem.anchor[a, kind, 0]) / problem.scale[a, 0]
        means[row, 0] += share * u * u
        means[row, 1] += share * u
        means[row, 4] += share
    for k in range(2 * height - 1):
        share = work.along_y.expected[k]
        v = (sign * (k - height + 1) - problem.anchor[a, kind, 1]) / problem.scale[a, 1]
        means[row, 2] += share * v * v
        means[row, 3] += share * v


@helper
def average_types(problem, a, kind, values, constant, means, work):
    """Add the probabilities of an arc of a type, by the cell that it leads from: exp(values + candidate + constant)."""
    column = problem.supervision.joint_cost.shape[1] + a * problem.anchor.shape[1] + kind
    for t in range(means.shape[0]):
        means[t, column] += math.exp(values[t] + work.candidate[t] + constant)


@helper
def average_poses(problem, i, cells, edges, cell_means, edge_means, work):
    """Write mean parts, which are zeros, after `sum_upwards`, from the roots down."""
    n_cells = cells.shape[0]
    for r in range(problem.roots.size):
        belief = work.belief[problem.roots[r], :n_cells]
        total = sum_range(LogSums(), belief, 0, n_cells)
        for t in range(n_cells):
            belief[t] -= total
    for k in range(problem.upward.size - 1, -1, -1):
        e = problem.upward[k]
        for t in range(n_cells):
            work.rest[t] = work.belief[problem.parent[e], t] - work.message[e, t]
        average_edge(problem, i, cells, edges, e, cell_means, edge_means, work)
        sum_message(problem, i, cells, edges, e, False, work.rest, work.message[e], work)
        for t in range(n_cells):
            work.belief[problem.child[e], t] += work.message[e, t]
    for t in range(n_cells):
        for j in range(work.belief.shape[0]):
            cell_means[t, j] = math.exp(work.belief[j, t])


@helper
def draw_pose(problem, i, cells, edges, draws, y, work):
    """Write a pose that is drawn from the roots down, after `sum_upwards`, by one number per root and edge."""
    n_cells = cells.shape[0]
    n_options, _ = count_options(problem)
    for r in range(problem.roots.size):
        j = problem.roots[r]
        y[j], _ = pick(LogSums(), work.belief[j, :n_cells], draws[r])
    for k in range(problem.upward.size):
        e = problem.upward[problem.upward.size - 1 - k]
        for at in range(n_cells * n_options):
            t = at // n_options
            score = score_option(problem, i, cells, edges, e, at % n_options, y[problem.parent[e]], t)
            work.options[at] = work.belief[problem.child[e], t] + score
        at, _ = pick(LogSums(), work.options[: n_cells * n_options], draws[problem.roots.size + k])
        y[problem.child[e]] = at // n_options
        take_option(problem, e, at % n_options, y)
