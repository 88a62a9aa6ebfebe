"""Scans of all boxes of an image, O(H^2 W^2): sums over all, the best around each cell, several that are apart."""

from __future__ import annotations

import math

from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.boxes.subwindow import meet, output_cost, sum_columns

NEGLIGIBLE = -40.0  # the logarithm of a share that does not matter


@helper
def sum_of_exponentials(image, top_score, corners):
    """Sum exp(score - top_score) over all outputs, and the same times their costs; then the share of the empty box.

    Each term is also written to the four corners of its box: prefix sums of `corners` over rows and columns are then
    the sums over the boxes that contain a cell.
    """
    for row in range(corners.shape[0]):
        for column in range(corners.shape[1]):
            corners[row, column] = 0
    limits = image.limits
    none = 0.0
    costs = output_cost(image.target, 0, 0, 0, 0)
    if image.has_none:
        none = math.exp(max(min(image.weight * costs - top_score, 0.0), NEGLIGIBLE))
    total = none
    costs *= none
    top_score -= image.constant
    for top in range(limits[0][0], limits[0][1] + 1):
        for bottom in range(max(top + image.smallest[0], limits[2][0]), limits[2][1] + 1):
            sum_columns(image, top, bottom)
            for left in range(limits[1][0], limits[1][1] + 1):
                for right in range(max(left + image.smallest[1], limits[3][0]), limits[3][1] + 1):
                    cost = output_cost(image.target, top, left, bottom, right)
                    gap = image.sums[0, right] - image.sums[0, left] + image.weight * cost - top_score
                    if gap > NEGLIGIBLE:
                        term = math.exp(min(gap, 0.0))  # above zero by rounding only
                        total += term
                        costs += term * cost
                        corners[top, left] += term
                        corners[bottom, left] -= term
                        corners[top, right] -= term
                        corners[bottom, right] += term
    return total, costs, none


@helper
def best_around_cells(image, best):
    """best[r, c] = the highest score of a box that contains the cell, by enumeration of all boxes, O(H^2 W^2)."""
    height, width = best.shape
    least_height, least_width = image.smallest
    limits = image.limits
    through = image.sums[1]  # of the boxes of one top, and of a bottom or one further down: the best through a column
    for row in range(height):
        for column in range(width):
            best[row, column] = 2 * IMPOSSIBLE
    for top in range(limits[0][0], min(limits[0][1], height - least_height) + 1):
        for column in range(width):
            through[column] = 2 * IMPOSSIBLE
        first_bottom = max(top + least_height, limits[2][0])
        for bottom in range(limits[2][1], first_bottom - 1, -1):
            sum_columns(image, top, bottom)
            for left in range(limits[1][0], min(limits[1][1], width - least_width) + 1):
                score = 2 * IMPOSSIBLE
                first_right = max(left + least_width, limits[3][0])
                for column in range(limits[3][1] - 1, left - 1, -1):
                    right = column + 1
                    if right >= first_right:
                        gain = image.sums[0, right] - image.sums[0, left]
                        if image.weight > 0:
                            gain += image.weight * output_cost(image.target, top, left, bottom, right)
                        score = max(score, gain)
                    through[column] = max(through[column], score)
            first = top if bottom == first_bottom else bottom - 1
            for row in range(first, bottom):
                for column in range(width):
                    best[row, column] = max(best[row, column], through[column] + image.constant)


@helper
def is_apart(found, count, threshold, top, left, bottom, right):
    """Whether a box overlaps none of those found by more than a threshold of the IoU."""
    for k in range(count):
        shared, joint = meet((found[k, 0], found[k, 1], found[k, 2], found[k, 3]), top, left, bottom, right)
        if shared / joint > threshold:
            return False
    return True


@helper
def detect(image, threshold, least, boxes, values):
    """Find boxes one after the other: the best one that is apart from those before and has a score above `least`.

    Return how many there are. Each takes one scan of all pairs of rows, and of columns where these promise more.
    """
    height, width = image.positive.shape[0] - 1, image.positive.shape[1]
    sums = image.sums
    least_height, least_width = image.smallest
    for count in range(values.size):
        best = least - image.constant
        for top in range(height - least_height + 1):
            for bottom in range(top + least_height, height + 1):
                sum_columns(image, top, bottom)
                highest = sums[0, width]  # the highest sum from a column on
                for left in range(width - least_width, -1, -1):
                    highest = max(highest, sums[0, left + least_width])
                    if highest - sums[0, left] <= best:
                        continue
                    for right in range(left + least_width, width + 1):
                        score = sums[0, right] - sums[0, left]
                        if score > best and is_apart(boxes, count, threshold, top, left, bottom, right):
                            best = score
                            boxes[count, 0] = top
                            boxes[count, 1] = left
                            boxes[count, 2] = bottom
                            boxes[count, 3] = right
        if best <= least - image.constant:
            return count
        values[count] = best + image.constant
    return values.size
