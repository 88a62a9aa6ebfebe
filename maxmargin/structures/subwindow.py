"""Efficient subwindow search: the boxes of the highest scores by best-first branch and bound.

A box is (top, left, bottom, right), half-open: it has the rows top:bottom and the columns left:right. Its score is the
sum of the potentials of its cells plus `weight` times its cost, 1 - IoU with the true box. A node is a set of boxes,
one interval of values for each of the four sides. With U the largest and S the smallest box of a node (S may be
empty) and G the true box,

    score(box) <= positive potentials in U + negative potentials in S + weight (1 - |S and G| / |U or G|).

Sums over a box take four look-ups in an integral image. Nodes wait in a heap, the highest bound first; the search ends
when no node promises more than the K-th best box found so far. If the heap is full, the boxes of a node are scored one
by one instead of splitting it: slower, but as exact.

Lampert, Blaschko, Hofmann (2008), Beyond sliding windows: object localization by efficient subwindow search.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from maxmargin.problem import IMPOSSIBLE

# Nodes of at most this many boxes are not split any further: each box is scored.
FEW_BOXES = 16
# The sides of a node, first and last value of each, in the order of a box.
TOP, LEFT, BOTTOM, RIGHT = 0, 2, 4, 6
# Entries of `Heap.counts`.
N_NODES, N_BOXES = 0, 1
NEGLIGIBLE = -40.0  # the logarithm of a share that does not matter


class Image(NamedTuple):
    """The potentials of one image, as integral images of shape (H + 1, W + 1), and its cost."""

    positive: np.ndarray
    negative: np.ndarray
    weight: float  # of the cost, not negative
    truth: tuple[int, int, int, int]
    smallest: tuple[int, int]  # the least height and width of a box


class Heap(NamedTuple):
    """Nodes, and a binary heap of their slots. `slots` is a permutation, its entries beyond the heap are free."""

    bounds: np.ndarray  # (capacity,)
    slots: np.ndarray  # (capacity,)
    nodes: np.ndarray  # (capacity + 1, 8); the last one is the node at hand
    counts: np.ndarray  # (2,) nodes bounded and boxes scored so far


@register_jitable
def integrate(cells, positive, negative):
    """Fill the integral images of the positive and of the negative cells."""
    for column in range(positive.shape[1]):
        positive[0, column] = 0
        negative[0, column] = 0
    for row in range(cells.shape[0]):
        above = 0.0
        below = 0.0
        positive[row + 1, 0] = 0
        negative[row + 1, 0] = 0
        for column in range(cells.shape[1]):
            value = cells[row, column]
            above += max(value, 0.0)
            below += min(value, 0.0)
            positive[row + 1, column + 1] = positive[row, column + 1] + above
            negative[row + 1, column + 1] = negative[row, column + 1] + below


@register_jitable
def box_sum(integral, top, left, bottom, right):
    return integral[bottom, right] - integral[top, right] - integral[bottom, left] + integral[top, left]


@register_jitable
def shared_area(truth, top, left, bottom, right):
    """The number of cells that a box, which may be empty, shares with the true one."""
    height = min(bottom, truth[2]) - max(top, truth[0])
    width = min(right, truth[3]) - max(left, truth[1])
    return max(height, 0) * max(width, 0)


@register_jitable
def joint_area(truth, top, left, bottom, right):
    """The number of cells in a box or in the true one."""
    area = (bottom - top) * (right - left) + (truth[2] - truth[0]) * (truth[3] - truth[1])
    return area - shared_area(truth, top, left, bottom, right)


@register_jitable
def box_cost(truth, top, left, bottom, right):
    """1 - IoU with the true box."""
    return 1.0 - shared_area(truth, top, left, bottom, right) / joint_area(truth, top, left, bottom, right)


@register_jitable
def box_score(image, top, left, bottom, right):
    total = box_sum(image.positive, top, left, bottom, right) + box_sum(image.negative, top, left, bottom, right)
    if image.weight > 0:
        total += image.weight * box_cost(image.truth, top, left, bottom, right)
    return total


@register_jitable
def upper_bound(image, node):
    """No box of the node has a higher score."""
    total = box_sum(image.positive, node[TOP], node[LEFT], node[BOTTOM + 1], node[RIGHT + 1])
    if node[TOP + 1] < node[BOTTOM] and node[LEFT + 1] < node[RIGHT]:
        total += box_sum(image.negative, node[TOP + 1], node[LEFT + 1], node[BOTTOM], node[RIGHT])
    if image.weight > 0:
        shared = shared_area(image.truth, node[TOP + 1], node[LEFT + 1], node[BOTTOM], node[RIGHT])
        joint = joint_area(image.truth, node[TOP], node[LEFT], node[BOTTOM + 1], node[RIGHT + 1])
        total += image.weight * (1.0 - shared / joint)
    return total


@register_jitable
def tighten(node, first, second, least):
    """Leave out values of two opposite sides that are in no box; return whether any box remains."""
    node[first + 1] = min(node[first + 1], node[second + 1] - least)
    node[second] = max(node[second], node[first] + least)
    return node[first] <= node[first + 1] and node[second] <= node[second + 1]


@register_jitable
def widest_side(node):
    side = TOP
    for other in (LEFT, BOTTOM, RIGHT):
        if node[other + 1] - node[other] > node[side + 1] - node[side]:
            side = other
    return side


@register_jitable
def push(heap, size, bound):
    """Push the node at hand; return the new size of the heap."""
    slot = heap.slots[size]
    for side in range(8):
        heap.nodes[slot, side] = heap.nodes[-1, side]
    k = size
    while k > 0 and heap.bounds[(k - 1) // 2] < bound:
        heap.bounds[k] = heap.bounds[(k - 1) // 2]
        heap.slots[k] = heap.slots[(k - 1) // 2]
        k = (k - 1) // 2
    heap.bounds[k] = bound
    heap.slots[k] = slot
    return size + 1


@register_jitable
def pop(heap, size):
    """Take the highest node off, into the node at hand; return the new size of the heap."""
    free = heap.slots[0]
    for side in range(8):
        heap.nodes[-1, side] = heap.nodes[free, side]
    last = size - 1
    bound = heap.bounds[last]
    slot = heap.slots[last]
    k = 0
    while 2 * k + 1 < last:
        child = 2 * k + 1
        if child + 1 < last and heap.bounds[child + 1] > heap.bounds[child]:
            child += 1
        if heap.bounds[child] <= bound:
            break
        heap.bounds[k] = heap.bounds[child]
        heap.slots[k] = heap.slots[child]
        k = child
    heap.bounds[k] = bound
    heap.slots[k] = slot
    heap.slots[last] = free
    return last


@register_jitable
def insert(boxes, scores, score, top, left, bottom, right):
    """Insert a box into the list sorted by falling score, if it is better than the last."""
    k = scores.size - 1
    if score <= scores[k]:
        return
    while k > 0 and scores[k - 1] < score:
        scores[k] = scores[k - 1]
        for side in range(4):
            boxes[k, side] = boxes[k - 1, side]
        k -= 1
    scores[k] = score
    boxes[k, 0] = top
    boxes[k, 1] = left
    boxes[k, 2] = bottom
    boxes[k, 3] = right


@register_jitable
def score_all(image, node, boxes, scores):
    """Score every box of the node; return how many there are."""
    count = 0
    for top in range(node[TOP], node[TOP + 1] + 1):
        for bottom in range(max(node[BOTTOM], top + image.smallest[0]), node[BOTTOM + 1] + 1):
            for left in range(node[LEFT], node[LEFT + 1] + 1):
                for right in range(max(node[RIGHT], left + image.smallest[1]), node[RIGHT + 1] + 1):
                    score = box_score(image, top, left, bottom, right)
                    insert(boxes, scores, score, top, left, bottom, right)
                    count += 1
    return count


@register_jitable
def n_combinations(node):
    """The number of boxes of a node, if its sides were free of each other."""
    count = 1
    for side in (TOP, LEFT, BOTTOM, RIGHT):
        count *= node[side + 1] - node[side] + 1
    return count


@register_jitable
def all_boxes(image, node):
    """Make the node that of all boxes of the image."""
    height = image.positive.shape[0] - 1
    width = image.positive.shape[1] - 1
    node[TOP] = 0
    node[TOP + 1] = height - image.smallest[0]
    node[LEFT] = 0
    node[LEFT + 1] = width - image.smallest[1]
    node[BOTTOM] = image.smallest[0]
    node[BOTTOM + 1] = height
    node[RIGHT] = image.smallest[1]
    node[RIGHT + 1] = width


@register_jitable
def search(image, heap, boxes, scores):
    """Write the K best boxes and their scores, best first; return how many there are."""
    for k in range(scores.size):
        scores[k] = 2 * IMPOSSIBLE
    node = heap.nodes[-1]
    all_boxes(image, node)
    size = push(heap, 0, upper_bound(image, node))
    heap.counts[N_NODES] += 1
    while size > 0 and heap.bounds[0] > scores[-1]:
        size = pop(heap, size)
        if n_combinations(node) <= FEW_BOXES or size + 2 > heap.slots.size:
            heap.counts[N_BOXES] += score_all(image, node, boxes, scores)
            continue
        side = widest_side(node)
        first, last = node[side], node[side + 1]
        middle = (first + last) // 2
        other = (node[TOP], node[TOP + 1], node[LEFT], node[LEFT + 1])
        opposite = (node[BOTTOM], node[BOTTOM + 1], node[RIGHT], node[RIGHT + 1])
        for half in range(2):
            for k in range(4):
                node[k] = other[k]
                node[k + 4] = opposite[k]
            node[side] = first if half == 0 else middle + 1
            node[side + 1] = middle if half == 0 else last
            if tighten(node, TOP, BOTTOM, image.smallest[0]) and tighten(node, LEFT, RIGHT, image.smallest[1]):
                bound = upper_bound(image, node)
                heap.counts[N_NODES] += 1
                if bound > scores[-1]:
                    size = push(heap, size, bound)
    count = 0
    while count < scores.size and scores[count] > 2 * IMPOSSIBLE:
        count += 1
    return count


@register_jitable
def sum_of_exponentials(image, node, top_score, corners):
    """Sum exp(score - top_score) over all boxes and write each box's term to its four corners; also sum the costs.

    Prefix sums of `corners` over rows and columns are then the sums over the boxes that contain a cell.
    """
    for row in range(corners.shape[0]):
        for column in range(corners.shape[1]):
            corners[row, column] = 0
    all_boxes(image, node)
    total = 0.0
    costs = 0.0
    for top in range(node[TOP], node[TOP + 1] + 1):
        for bottom in range(top + image.smallest[0], node[BOTTOM + 1] + 1):
            for left in range(node[LEFT], node[LEFT + 1] + 1):
                for right in range(left + image.smallest[1], node[RIGHT + 1] + 1):
                    gap = box_score(image, top, left, bottom, right) - top_score
                    if gap > NEGLIGIBLE:
                        term = math.exp(gap)
                        total += term
                        costs += term * box_cost(image.truth, top, left, bottom, right)
                        corners[top, left] += term
                        corners[bottom, left] -= term
                        corners[top, right] -= term
                        corners[bottom, right] += term
    return total, costs
