"""Boxes: one box in each image, scored by the sum over its cells.

An image is a grid of H x W cells with features; an output is a box (top, left, bottom, right), half-open: the rows
top:bottom and the columns left:right. Its parts are the H W indicators of the cells inside, in row-major order, then
its cost, 1 - IoU with the true box, of which `augment` raises the potential from 0 to 1: so both scores and costs are
linear in the parts. The weights are those of a cell's features.

Where some images have no box, the empty one, (0, 0, 0, 0), is one more output, of score 0; it costs 1 in place of a
box, as a box does in place of it. All other boxes have one more part, with a weight of its own, the last one.

What is known of a box, and what is ruled out, are limits of its four sides: `restrict` takes `BoxLimits`. Where less
than one box is known, all that agree with it cost nothing, and all others 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import rows_of, score_rows, spread_rows, squared_norm_rows, squared_sums
from maxmargin.losses.smoothing import EVERY
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.boxes.all_boxes import best_around_cells, sum_of_exponentials
from maxmargin.structures.boxes.subwindow import Heap, Image, Target, output_cost, search, sum_from_top
from maxmargin.supervision.exclusions import NoFlags

# Nodes that may wait at the same time, enough for any image of up to 361 rows of cells; beyond, the search slows down.
HEAP_SIZE = 1 << 16


class BoxLimits(NamedTuple):
    """Which boxes there can be in each image."""

    sides: np.ndarray  # (n, 4, 2) int64, the first and the last place of the top, the left, the bottom and the right
    none: np.ndarray  # (n,) whether there can be no box


class BoxSupervision(NamedTuple):
    """The true boxes or, where less is known, boxes that agree with it, and which do."""

    boxes: np.ndarray  # (n, 4) int32, -1 where they are unknown
    is_exact: np.ndarray  # (n,) whether the true box is known
    known: BoxLimits


class BoxProblem(NamedTuple):
    """Cells of all images, one image after the other; those of example i are the rows starts[i]:starts[i + 1]."""

    features: Any
    starts: np.ndarray  # (n + 1,) int64
    shapes: np.ndarray  # (n, 2) int64, height and width in cells
    supervision: BoxSupervision
    limits: BoxLimits
    smallest: np.ndarray  # (2,) int64, the least height and width of a box
    weights: np.ndarray  # (F,) zeros of the weights' dtype, or (F + 1,) with none
    has_none: bool  # whether "no box", (0, 0, 0, 0), is an output of all examples


class BoxWork(NamedTuple):
    """Sums over the rows and columns of the largest image, the heap of the search, its K best scores, a buffer."""

    positive: np.ndarray  # ((H + 1) W,)
    negative: np.ndarray
    sums: np.ndarray  # (2 (W + 1),)
    corners: np.ndarray  # of the exp oracle
    heap: Heap
    scores: np.ndarray  # (K,)
    best: np.ndarray  # (1, 4)
    spread: np.ndarray  # (F, 1), or empty where every example has its Gram matrix


@helper
def load_image(problem, i, theta, work):
    """What the search needs to know of example i, computed into `work`."""
    height = problem.shapes[i, 0]
    width = problem.shapes[i, 1]
    positive = matrix(work.positive, 0, height + 1, width)
    negative = matrix(work.negative, 0, height + 1, width)
    sum_from_top(matrix(theta, 0, height, width), positive, negative)
    sums = matrix(work.sums, 0, 2, width + 1)
    smallest = (problem.smallest[0], problem.smallest[1])
    weight = np.float64(theta[height * width])
    constant = np.float64(theta[height * width + 1]) if problem.has_none else 0.0
    sides, has_none = problem.limits.sides[i], problem.limits.none[i]
    limits = pair(sides, 0), pair(sides, 1), pair(sides, 2), pair(sides, 3)
    return Image(positive, negative, sums, weight, target_of(problem, i), smallest, limits, has_none, constant)


@helper
def pair(sides, side):
    return sides[side, 0], sides[side, 1]


@helper
def target_of(problem, i):
    """What is known of example i; its true box as a tuple, cheaper to pass around than a row."""
    known = problem.supervision
    box = (known.boxes[i, 0], known.boxes[i, 1], known.boxes[i, 2], known.boxes[i, 3])
    return Target(box, known.is_exact[i], known.known.sides[i], known.known.none[i])


@implements(generics.true_outputs, BoxProblem)
def true_boxes(problem):
    return problem.supervision.boxes


@implements(generics.new_weights, BoxProblem)
def new_box_weights(problem):
    return np.zeros_like(problem.weights)


@implements(generics.part_sizes, BoxProblem)
def box_part_sizes(problem):
    return np.diff(problem.starts) + 1 + problem.has_none


@implements(generics.restrict, BoxProblem)
def restrict_boxes(problem, excluded):
    if not isinstance(excluded, BoxLimits):
        raise NoFlags(f"Boxes are restricted by BoxLimits, not by {type(excluded).__name__}.")
    (sides, none), (more, other) = problem.limits, excluded
    first, last = np.maximum(sides[:, :, 0], more[:, :, 0]), np.minimum(sides[:, :, 1], more[:, :, 1])
    return problem._replace(limits=BoxLimits(np.stack([first, last], axis=2), none & other))


@implements(generics.squared_diameters, BoxProblem)
def box_squared_diameters(problem):
    """A feature's sums over two boxes differ by no more than the sum of its magnitudes over all cells."""
    return squared_sums(problem.features, rows_of(problem.starts)) + problem.has_none


@implements(generics.workspace, BoxProblem)
def box_workspace(problem, n_best):
    size = (int(np.prod(problem.shapes + 1, axis=1).max()),)
    height, width = (int(side) for side in problem.shapes.max(axis=0))
    capacity = min(height * (height + 1) // 2 + 1, HEAP_SIZE)
    needs_spread = np.any(problem.features.gram.at < 0)
    heap = Heap(
        bounds=aligned((capacity,), np.float64),
        slots=aligned((capacity,), np.int64),
        nodes=aligned((capacity + 1, 4), np.int64),
        counts=aligned((2,), np.int64),
    )
    heap.slots[:] = np.arange(capacity)
    return BoxWork(
        positive=aligned(size, np.float64),
        negative=aligned(size, np.float64),
        sums=aligned((2 * (width + 1),), np.float64),
        corners=aligned(size, np.float64),
        heap=heap,
        scores=aligned((n_best,), np.float64),
        best=aligned((1, 4), np.int32),
        spread=aligned((problem.weights.size - problem.has_none if needs_spread else 0, 1), problem.weights.dtype),
    )


@implements(generics.scores, BoxProblem)
def box_scores(problem, w, i, theta):
    cells = matrix(theta, 0, problem.starts[i + 1] - problem.starts[i], 1)
    weights = matrix(w, 0, w.size - problem.has_none, 1)
    score_rows(problem.features, weights, problem.starts[i], problem.starts[i + 1], cells)
    theta[cells.shape[0]] = 0
    if problem.has_none:
        theta[cells.shape[0] + 1] = w[w.size - 1]


@implements(generics.spread, BoxProblem)
def spread_boxes(problem, w, i, delta, scale):
    cells = matrix(delta, 0, problem.starts[i + 1] - problem.starts[i], 1)
    weights = matrix(w, 0, w.size - problem.has_none, 1)
    spread_rows(problem.features, weights, problem.starts[i], problem.starts[i + 1], cells, scale)
    if problem.has_none:
        w[w.size - 1] += scale * delta[cells.shape[0] + 1]


@implements(generics.squared_norm, BoxProblem)
def box_squared_norm(problem, i, delta, work):
    cells = matrix(delta, 0, problem.starts[i + 1] - problem.starts[i], 1)
    squared = squared_norm_rows(problem.features, i, problem.starts[i], problem.starts[i + 1], cells, work.spread)
    return squared + delta[cells.shape[0] + 1] ** 2 if problem.has_none else squared


@implements(generics.augment, BoxProblem)
def augment_boxes(problem, i, theta):
    theta[problem.starts[i + 1] - problem.starts[i]] += 1


@implements(generics.add_output, BoxProblem)
def add_box(problem, i, y, scale, mu):
    cells = matrix(mu, 0, problem.shapes[i, 0], problem.shapes[i, 1])
    for row in range(y[0], y[2]):
        for column in range(y[1], y[3]):
            cells[row, column] += scale
    mu[cells.size] += scale * output_cost(target_of(problem, i), y[0], y[1], y[2], y[3])
    if problem.has_none and y[2] > 0:
        mu[cells.size + 1] += scale


@implements(generics.score_output, BoxProblem)
def score_box(problem, i, theta, y):
    cells = matrix(theta, 0, problem.shapes[i, 0], problem.shapes[i, 1])
    total = theta[cells.size] * output_cost(target_of(problem, i), y[0], y[1], y[2], y[3])
    if problem.has_none and y[2] > 0:
        total += theta[cells.size + 1]
    for row in range(y[0], y[2]):
        for column in range(y[1], y[3]):
            total += cells[row, column]
    return total


@implements(generics.max_oracle, BoxProblem)
def max_box(problem, i, theta, y, work):
    search(load_image(problem, i, theta, work), work.heap, work.best, work.scores[:1], EVERY)
    for side in range(4):
        y[side] = work.best[0, side]
    return work.scores[0]


@implements(generics.topk_oracle, BoxProblem)
def topk_boxes(problem, i, theta, outputs, values, level, work):
    count = search(load_image(problem, i, theta, work), work.heap, outputs, work.scores[: values.size], level)
    for k in range(count):
        values[k] = work.scores[k]
    return count


@implements(generics.exp_oracle, BoxProblem)
def exp_boxes(problem, i, theta, mu, work):
    """By enumeration of all boxes, O(H^2 W^2): for grids of up to some thousand cells."""
    image = load_image(problem, i, theta, work)
    search(image, work.heap, work.best, work.scores[:1], EVERY)
    corners = matrix(work.corners, 0, problem.shapes[i, 0] + 1, problem.shapes[i, 1] + 1)
    total, costs, none = sum_of_exponentials(image, work.scores[0], corners)
    means = matrix(mu, 0, problem.shapes[i, 0], problem.shapes[i, 1])
    for row in range(means.shape[0]):
        so_far = 0.0
        for column in range(means.shape[1]):
            so_far += corners[row, column]
            above = means[row - 1, column] if row > 0 else 0.0
            means[row, column] = above + so_far / total
    mu[means.size] = costs / total
    if problem.has_none:
        mu[means.size + 1] = 1 - none / total
    return work.scores[0] + math.log(total)


@implements(generics.max_marginals, BoxProblem)
def best_boxes_around(problem, i, theta, out, work):
    best_around_cells(load_image(problem, i, theta, work), matrix(out, 0, problem.shapes[i, 0], problem.shapes[i, 1]))
