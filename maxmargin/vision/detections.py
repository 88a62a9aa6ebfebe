"""Several boxes of every image, none of which overlaps a better one much."""

from __future__ import annotations

import numpy as np

from maxmargin.arrays.blocks import new_blocks
from maxmargin.arrays.views import matrix
from maxmargin.execution.prediction_loops import NONE, find_scores
from maxmargin.execution.runner import Runner
from maxmargin.inference import run
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import loop
from maxmargin.structures.boxes.all_boxes import detect
from maxmargin.structures.boxes.box_problem import BoxProblem
from maxmargin.structures.boxes.subwindow import Image, Target, sum_from_top


@loop
def _detect(
    problem, w, n_parts, shapes, sides, smallest, threshold, least, boxes, values, counts, room, lo, hi, scratch
):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not find_scores(problem, w, i, theta):
            return i
        height, width = shapes[i]
        positive = matrix(room.values, room.starts[i], height + 1, width)
        negative = matrix(room.values, room.starts[i] + positive.size, height + 1, width)
        sums = matrix(room.values, room.starts[i] + 2 * positive.size, 2, width + 1)
        sum_from_top(matrix(theta, 0, height, width), positive, negative)
        constant = np.float64(theta[height * width + 1]) if theta.size > height * width + 1 else 0.0
        whole = ((0, height), (0, width), (0, height), (0, width))
        target = Target((0, 0, 0, 0), True, sides[i], False)
        least_sides = (smallest[0], smallest[1])
        image = Image(positive, negative, sums, 0.0, target, least_sides, whole, False, constant)
        counts[i] = detect(image, threshold, least, boxes[i], values[i])
    return NONE


def find_detections(
    problem: BoxProblem, w: np.ndarray, max_boxes: int, threshold: float, min_score: float, n_jobs: int | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For every image boxes of at least a score that overlap no better one by more than a threshold, best first."""
    runner = Runner(problem, n_jobs)
    height, width = problem.shapes.T
    room, counts = new_blocks((height + 1) * 2 * width + 2 * (width + 1), np.float64), np.zeros(runner.n, np.int64)
    boxes, values = np.zeros((runner.n, max_boxes, 4), np.int32), np.zeros((runner.n, max_boxes))
    least = np.nextafter(max(min_score, IMPOSSIBLE), -np.inf)
    args = problem.shapes, problem.limits.sides, problem.smallest, float(threshold), least, boxes, values, counts, room
    run(runner, _detect, w, runner.part_sizes, *args)
    return [(boxes[i, :count], values[i, :count]) for i, count in enumerate(counts.tolist())]
