"""Deformable parts: joints at cells of a grid, held together by springs along the edges of a tree.

An output of example i, an image of H x W cells, is a row of J cells (y W + x), one per joint, then of A types, one per
arc. Each edge has an arc from its parent to its child, A = E, or one in each direction, A = 2 E. A cell scores by its
features, with weights of the joint. An arc from joint p to joint c of type t scores

    -(w1 u^2 + w2 u + w3 v^2 + w4 v) + w5,
    u = (x_c - x_p - anchor_x) / scale_x,   v = (y_c - y_p - anchor_y) / scale_y

with weights and anchor of its arc and type and, where types depend on the image, by the features of p's cell, with
weights of its arc and type. The parts are the H W x J indicators of (cell, joint), beside those of (cell, arc, type) if
types do, then for each arc and type the statistics u^2, u, v^2, v and 1 if the arc has that type, else five zeros.
The weights are those of cells, shape (F, J) or (F, J + A K), then those of arcs, shape (A, K, 5), flat.

The cost is that of *Minding the gaps*, App. I.4: sum_j weight_ij min(1, ||l_j - true l_j||^2 / radius_i^2).

Messages along edges are generalized distance transforms, linear in the number of cells as long as w1 and w3 are
positive: the estimator sees to it by bounds of the weights. Sums over all poses (`pose_sums`) take O(HW (H + W)). Both
are made for each type, and with arcs in both directions for each two types.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import score_rows, spread_rows
from maxmargin.features.linear_map import row_is_zero
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import k_best
from maxmargin.structures.poses import pose_dp, pose_sums
from maxmargin.structures.poses.distance_transform import TransformWork, new_transform_work
from maxmargin.structures.poses.pose_dp import count_options, displacement, score_arc
from maxmargin.structures.poses.pose_sums import PoseSumWork, new_pose_sum_work
from maxmargin.supervision.exclusions import exclude_parts, rule_out

N_STATISTICS = 5  # of an arc and type: u^2, u, v^2, v, 1


class PoseSupervision(NamedTuple):
    """The true poses, and what it costs to be away from them."""

    outputs: np.ndarray  # (n, J + A) int32, the true cells and types, -1 where they are unknown
    joint_cost: np.ndarray  # (n, J) weight of each joint's cost; (0, J) where there are none
    radius: np.ndarray  # (n,) the distance at which the cost is full; (0,) where there are none


class DeformableProblem(NamedTuple):
    """Images stored one after the other; the cells of example i are the rows starts[i]:starts[i + 1], by rows."""

    features: Any
    starts: np.ndarray  # (n + 1,) int64
    width: np.ndarray  # (n,) int64
    supervision: PoseSupervision
    excluded: Blocks  # flags of parts that are ruled out
    parent: np.ndarray  # (A,) int32, joints that arcs lead from; those of all edges, then those back, if there are any
    child: np.ndarray  # (A,) int32, joints that they lead to
    upward: np.ndarray  # (E,) int32, the edges, each after those below it
    roots: np.ndarray  # (R,) int32, the joints that are no child
    anchor: np.ndarray  # (A, K, 2)
    scale: np.ndarray  # (A, 2)
    n_features: int
    has_image_types: bool  # whether arcs score by the features of the cell that they lead from, too
    hides_types: bool  # whether outputs with the same cells are one to the top-K oracle, with the best types


class DeformableWork(NamedTuple):
    """Tables of the oracles for the largest image, and the buffer of direction norms."""

    belief: np.ndarray  # (J, cells) best score of a joint's subtree
    message: np.ndarray  # (E, cells) the same with the edge to the parent, by the parent's cell
    source: np.ndarray  # (E, cells) where it comes from: cell of the child * options + option
    sent: np.ndarray  # (cells,) what is passed on for an option
    rest: np.ndarray  # (cells,) what a message is made from
    candidate: np.ndarray  # (cells,) the transform of an option
    candidate_source: np.ndarray  # (cells,)
    cost: np.ndarray  # (5,) of a transform, and a constant
    transform: TransformWork
    sums: PoseSumWork
    spread: np.ndarray  # (F, columns)
    branches: np.ndarray  # (K, 3) of the top-K oracle


@helper
def count_columns(problem):
    """The number of parts of a cell: joints, then arcs and types if these depend on the image."""
    n_kinds = problem.anchor.shape[0] * problem.anchor.shape[1]
    return problem.supervision.joint_cost.shape[1] + (n_kinds if problem.has_image_types else 0)


@helper
def cells_and_edges(problem, i, parts):
    """The parts of cells, (cells, columns), and of arcs and types, (A K, 5), as views."""
    n_columns = count_columns(problem)
    n_cells = problem.starts[i + 1] - problem.starts[i]
    n_kinds = problem.anchor.shape[0] * problem.anchor.shape[1]
    return matrix(parts, 0, n_cells, n_columns), matrix(parts, n_cells * n_columns, n_kinds, N_STATISTICS)


@helper
def cell_and_edge_weights(problem, w):
    """The weights of cells, (F, columns), and of arcs and types, (A K, 5), as views."""
    n_columns = count_columns(problem)
    n_kinds = problem.anchor.shape[0] * problem.anchor.shape[1]
    edges = matrix(w, problem.n_features * n_columns, n_kinds, N_STATISTICS)
    return matrix(w, 0, problem.n_features, n_columns), edges


@implements(generics.true_outputs, DeformableProblem)
def true_poses(problem):
    return problem.supervision.outputs


@implements(generics.new_weights, DeformableProblem)
def new_deformable_weights(problem):
    n_arcs, n_types, _ = problem.anchor.shape
    size = problem.n_features * count_columns(problem) + n_arcs * n_types * N_STATISTICS
    return np.zeros(size, problem.supervision.joint_cost.dtype)


@implements(generics.part_sizes, DeformableProblem)
def deformable_part_sizes(problem):
    n_arcs, n_types, _ = problem.anchor.shape
    return np.diff(problem.starts) * count_columns(problem) + n_arcs * n_types * N_STATISTICS


implements(generics.restrict, DeformableProblem)(exclude_parts)


@implements(generics.workspace, DeformableProblem)
def deformable_workspace(problem, n_best):
    joint_cost = problem.supervision.joint_cost
    n_edges, n_joints, dtype = problem.upward.size, joint_cost.shape[1], joint_cost.dtype
    n_options, _ = count_options(problem)
    n_cells = np.diff(problem.starts)
    longest = max(problem.width.max(), (n_cells // problem.width).max())
    largest = n_cells.max()
    return DeformableWork(
        belief=aligned((n_joints, largest), dtype),
        message=aligned((n_edges, largest), dtype),
        source=aligned((n_edges, largest), np.int32),
        sent=aligned((largest,), dtype),
        rest=aligned((largest,), dtype),
        candidate=aligned((largest,), dtype),
        candidate_source=aligned((largest,), np.int32),
        cost=aligned((5,), np.float64),
        transform=new_transform_work(largest, longest, dtype),
        sums=new_pose_sum_work(n_joints, n_edges, n_options, largest, longest),
        spread=aligned((problem.n_features, count_columns(problem)), dtype),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, DeformableProblem)
def deformable_scores(problem, w, i, theta):
    cell_weights, edge_weights = cell_and_edge_weights(problem, w)
    cells, edges = cells_and_edges(problem, i, theta)
    score_rows(problem.features, cell_weights, problem.starts[i], problem.starts[i + 1], cells)
    for row in range(edges.shape[0]):
        for k in range(4):
            edges[row, k] = -edge_weights[row, k]
        edges[row, 4] = edge_weights[row, 4]
    rule_out(problem.excluded, i, theta)


@helper
def spread_cells(problem, weights, i, cells, scale):
    """Add the features of all cells, times the direction: a few cells only, unless it is a mixture of many outputs."""
    for t in range(cells.shape[0]):
        if not row_is_zero(cells, t):
            at = problem.starts[i] + t
            spread_rows(problem.features, weights, at, at + 1, cells[t : t + 1], scale)


@implements(generics.spread, DeformableProblem)
def spread_deformable(problem, w, i, delta, scale):
    cell_weights, edge_weights = cell_and_edge_weights(problem, w)
    cells, edges = cells_and_edges(problem, i, delta)
    spread_cells(problem, cell_weights, i, cells, scale)
    for row in range(edges.shape[0]):
        for k in range(4):
            edge_weights[row, k] -= scale * edges[row, k]
        edge_weights[row, 4] += scale * edges[row, 4]


@implements(generics.squared_norm, DeformableProblem)
def deformable_squared_norm(problem, i, delta, work):
    cells, edges = cells_and_edges(problem, i, delta)
    spread_cells(problem, work.spread, i, cells, 1.0)
    total = 0.0
    for f in range(work.spread.shape[0]):
        for j in range(work.spread.shape[1]):
            total += work.spread[f, j] * work.spread[f, j]
            work.spread[f, j] = 0
    for row in range(edges.shape[0]):
        for k in range(N_STATISTICS):
            total += edges[row, k] * edges[row, k]
    return total


@implements(generics.augment, DeformableProblem)
def augment_deformable(problem, i, theta):
    cells, _ = cells_and_edges(problem, i, theta)
    true_cells = problem.supervision.outputs
    joint_cost = problem.supervision.joint_cost
    if joint_cost.shape[0] > 0:
        width = problem.width[i]
        squared_radius = problem.supervision.radius[i] * problem.supervision.radius[i]
        for t in range(cells.shape[0]):
            for j in range(joint_cost.shape[1]):
                dx = t % width - true_cells[i, j] % width
                dy = t // width - true_cells[i, j] // width
                cells[t, j] += joint_cost[i, j] * min(1.0, (dx * dx + dy * dy) / squared_radius)


@implements(generics.add_output, DeformableProblem)
def add_pose(problem, i, y, scale, mu):
    cells, edges = cells_and_edges(problem, i, mu)
    n_joints = problem.supervision.joint_cost.shape[1]
    for j in range(n_joints):
        cells[y[j], j] += scale
    for a in range(problem.parent.size):
        kind = y[n_joints + a]
        from_cell = y[problem.parent[a]]
        u, v = displacement(problem, i, a, kind, from_cell, y[problem.child[a]])
        row = a * problem.anchor.shape[1] + kind
        if problem.has_image_types:
            cells[from_cell, n_joints + row] += scale
        edges[row, 0] += scale * u * u
        edges[row, 1] += scale * u
        edges[row, 2] += scale * v * v
        edges[row, 3] += scale * v
        edges[row, 4] += scale


@implements(generics.score_output, DeformableProblem)
def score_pose(problem, i, theta, y):
    cells, edges = cells_and_edges(problem, i, theta)
    n_joints = problem.supervision.joint_cost.shape[1]
    total = 0.0
    for j in range(n_joints):
        total += cells[y[j], j]
    for a in range(problem.parent.size):
        from_cell = y[problem.parent[a]]
        total += score_arc(problem, i, cells, edges, a, y[n_joints + a], from_cell, y[problem.child[a]])
    return total


@implements(generics.max_oracle, DeformableProblem)
def max_pose(problem, i, theta, y, work):
    cells, edges = cells_and_edges(problem, i, theta)
    pose_dp.pass_upwards(problem, i, cells, edges, work)
    return pose_dp.decode(problem, cells.shape[0], y, work)


@implements(generics.topk_oracle, DeformableProblem)
def topk_poses(problem, i, theta, outputs, values, level, work):
    cells, edges = cells_and_edges(problem, i, theta)
    pose_dp.pass_upwards(problem, i, cells, edges, work)
    best = pose_dp.decode(problem, cells.shape[0], outputs[0], work)
    choices = pose_dp.Poses(problem, i, cells, edges, work)
    count = k_best(choices, problem.roots.size + problem.upward.size, best, outputs, values, level, work.branches)
    generics.rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.exp_oracle, DeformableProblem)
def sum_poses(problem, i, theta, mu, work):
    cells, edges = cells_and_edges(problem, i, theta)
    log_z = pose_sums.sum_upwards(problem, i, cells, edges, work.sums)
    clear(mu)
    cell_means, edge_means = cells_and_edges(problem, i, mu)
    pose_sums.average_poses(problem, i, cells, edges, cell_means, edge_means, work.sums)
    return log_z


@implements(generics.sample_oracle, DeformableProblem)
def draw_poses(problem, i, theta, draws, outputs, work):
    cells, edges = cells_and_edges(problem, i, theta)
    pose_sums.sum_upwards(problem, i, cells, edges, work.sums)
    for k in range(outputs.shape[0]):
        pose_sums.draw_pose(problem, i, cells, edges, draws[k], outputs[k], work.sums)


@implements(generics.max_marginals, DeformableProblem)
def deformable_max_marginals(problem, i, theta, out, work):
    cells, edges = cells_and_edges(problem, i, theta)
    best, _ = cells_and_edges(problem, i, out)
    pose_dp.max_marginals(problem, i, cells, edges, best, work)
