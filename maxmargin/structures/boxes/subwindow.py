"""Subwindow search: the boxes of the highest scores by best-first branch and bound.

A box is (top, left, bottom, right), half-open: it has the rows top:bottom and the columns left:right. Its score is the
sum of the potentials of its cells plus `weight` times its cost, 1 - IoU with the true box G. Sides may have limits, an
interval for each. A node is a set of boxes:
an interval of tops, an interval of bottoms, any columns. Let U be the rows of its tallest boxes, S the rows that all
its boxes have (there may be none), A the most cells that G and a box of the node can have together, and

    v_c = positive potentials in the rows U + negative potentials in the rows S - weight |rows of G in S| / A

for each column c, the last term for the columns of G only. As IoU >= |rows of G in S| |columns of G in the box| / A, no
box has a score above weight + the best sum of v over consecutive columns, which one scan finds. Nodes wait in a heap,
the highest bound first; nodes of a single top and bottom are searched through, and the search ends when no node
promises more than the K-th best box found so far. If the heap is full, a node is searched through instead of split:
slower, but as exact. Where images need not have a box, "none" is one of the outputs, the empty
box (0, 0, 0, 0), and all others have a constant more, which is added in the end.

This is the efficient subwindow search of Lampert, Blaschko, Hofmann (2008), Beyond sliding windows, with the columns
maximised out, as in An, Peursum, Liu, Venkatesh (2009), Efficient algorithms for subwindow search: no more than
H (H + 1) / 2 pairs of rows are left to branch on, so the search stays fast where scores are mere noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.losses.smoothing import has_weight
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.k_best import make_room

# The entries of a node: the first and last top, the first and last bottom.
TOP, BOTTOM = 0, 2
# Entries of `Heap.counts`.
N_NODES, N_BOXES = 0, 1


class Target(NamedTuple):
    """What outputs cost: 1 - IoU with the true box or, where less is known, 1 for all that do not agree with it."""

    box: tuple[int, int, int, int]  # the true one
    is_exact: bool  # whether it is known
    sides: np.ndarray  # (4, 2) else the first and the last place of each side
    has_none: bool  # and whether the empty box agrees


class Image(NamedTuple):
    """The potentials of one image, summed from the top to each row, of shape (H + 1, W), and its cost."""

    positive: np.ndarray
    negative: np.ndarray
    sums: np.ndarray  # (2, W + 1) room for sums over columns
    weight: float  # of the cost, not negative
    target: Target
    smallest: tuple[int, int]  # the least height and width of a box
    limits: tuple[tuple[int, int], ...]  # the first and the last place of the top, the left, the bottom and the right
    has_none: bool  # whether the empty box is one of the outputs
    constant: float  # what all others have besides their cells and costs


class Heap(NamedTuple):
    """Nodes, and a binary heap of their slots. `slots` is a permutation, its entries beyond the heap are free."""

    bounds: np.ndarray  # (capacity,)
    slots: np.ndarray  # (capacity,)
    nodes: np.ndarray  # (capacity + 1, 4); the last one is the node at hand
    counts: np.ndarray  # (2,) nodes bounded and boxes scored so far


@helper
def sum_from_top(cells, positive, negative):
    """Sum the positive and the negative cells of each column from the top."""
    for column in range(cells.shape[1]):
        positive[0, column] = 0
        negative[0, column] = 0
    for row in range(cells.shape[0]):
        for column in range(cells.shape[1]):
            positive[row + 1, column] = positive[row, column] + max(cells[row, column], 0)
            negative[row + 1, column] = negative[row, column] + min(cells[row, column], 0)


@helper
def length_of_overlap(first_start, first_stop, second_start, second_stop):
    return max(min(first_stop, second_stop) - max(first_start, second_start), 0)


@helper
def area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


@helper
def meet(truth, top, left, bottom, right):
    """How many cells two boxes have in common, and how many in all."""
    shared = length_of_overlap(top, bottom, truth[0], truth[2]) * length_of_overlap(left, right, truth[1], truth[3])
    return shared, (bottom - top) * (right - left) + area(truth) - shared


@helper
def box_cost(truth, top, left, bottom, right):
    """1 - IoU with the true box, or 0 if both are empty."""
    shared, joint = meet(truth, top, left, bottom, right)
    return (joint - shared) / max(joint, 1)


@helper
def agrees(target, top, left, bottom, right):
    """Whether a box is such as is known."""
    if bottom == 0:
        return target.has_none
    sides = target.sides
    has_rows = sides[0, 0] <= top <= sides[0, 1] and sides[2, 0] <= bottom <= sides[2, 1]
    return has_rows and sides[1, 0] <= left <= sides[1, 1] and sides[3, 0] <= right <= sides[3, 1]


@helper
def output_cost(target, top, left, bottom, right):
    """What a box costs."""
    if target.is_exact:
        return box_cost(target.box, top, left, bottom, right)
    return 0.0 if agrees(target, top, left, bottom, right) else 1.0


@helper
def upper_bound(image, node):
    """No box of the node has a higher score."""
    width = image.positive.shape[1]
    values = image.sums
    first_top = node[TOP]
    last_top = node[TOP + 1]
    first_bottom = node[BOTTOM]
    last_bottom = node[BOTTOM + 1]
    for column in range(width):
        values[0, column] = image.positive[last_bottom, column] - image.positive[first_top, column]
    if last_top < first_bottom:
        for column in range(width):
            values[0, column] += image.negative[first_bottom, column] - image.negative[last_top, column]
    if image.weight > 0 and image.target.is_exact:
        truth = image.target.box
        rows = length_of_overlap(last_top, first_bottom, truth[0], truth[2])
        shared = length_of_overlap(first_top, last_bottom, truth[0], truth[2]) * (truth[3] - truth[1])
        largest = (last_bottom - first_top) * width + area(truth) - shared
        least = image.weight * rows / largest
        for column in range(truth[1], truth[3]):
            values[0, column] -= least
    least_width = image.smallest[1]
    first_left = image.limits[1][0]  # the last one, and the first on the right, are left out: this stays a bound
    best = 2 * IMPOSSIBLE
    lowest = -2 * IMPOSSIBLE
    total = 0.0
    for column in range(image.limits[3][1]):
        values[1, column] = total  # the sum left of the column
        total += values[0, column]
        left = column + 1 - least_width
        if left >= first_left:
            lowest = min(lowest, values[1, left])
            best = max(best, total - lowest)
    return best + image.weight


@helper
def sum_columns(image, top, bottom):
    """sums[0, c] = the sum of the rows top:bottom over the columns :c."""
    total = 0.0
    image.sums[0, 0] = 0
    for column in range(image.positive.shape[1]):
        total += image.positive[bottom, column] - image.positive[top, column]
        total += image.negative[bottom, column] - image.negative[top, column]
        image.sums[0, column + 1] = total


@helper
def search_rows(image, top, bottom, boxes, scores):
    """Score the boxes of one top and bottom that may be among the best; return how many these are."""
    sums = image.sums
    sum_columns(image, top, bottom)
    last_right = image.limits[3][1]
    sums[1, last_right] = sums[0, last_right]
    for column in range(last_right - 1, -1, -1):  # the highest sum from a column on
        sums[1, column] = max(sums[1, column + 1], sums[0, column])
    truth = image.target.box
    rows = length_of_overlap(top, bottom, truth[0], truth[2])
    count = 0
    for left in range(image.limits[1][0], min(image.limits[1][1], last_right - image.smallest[1]) + 1):
        start = sums[0, left]
        first_right = max(left + image.smallest[1], image.limits[3][0])
        if sums[1, first_right] - start + image.weight <= scores[-1]:
            continue
        for right in range(first_right, last_right + 1):
            score = sums[0, right] - start
            if image.weight > 0 and not image.target.is_exact:
                score += image.weight * output_cost(image.target, top, left, bottom, right)
            elif image.weight > 0:
                shared = rows * length_of_overlap(left, right, truth[1], truth[3])
                joint = (bottom - top) * (right - left) + area(truth) - shared
                score += image.weight * (1.0 - shared / joint)
            if score > scores[-1]:
                insert(boxes, scores, score, top, left, bottom, right)
        count += last_right + 1 - first_right
    return count


@helper
def insert(boxes, scores, score, top, left, bottom, right):
    """Insert a box into the list sorted by falling score, in place of the last."""
    k = make_room(scores, boxes, 0, score)
    boxes[k, 0] = top
    boxes[k, 1] = left
    boxes[k, 2] = bottom
    boxes[k, 3] = right


@helper
def search_node(image, node, boxes, scores):
    """Search all rows of a node through; return how many boxes were scored."""
    count = 0
    for top in range(node[TOP], node[TOP + 1] + 1):
        for bottom in range(max(node[BOTTOM], top + image.smallest[0]), node[BOTTOM + 1] + 1):
            count += search_rows(image, top, bottom, boxes, scores)
    return count


@helper
def push(heap, size, bound):
    """Push the node at hand; return the new size of the heap."""
    slot = heap.slots[size]
    for k in range(4):
        heap.nodes[slot, k] = heap.nodes[-1, k]
    k = size
    while k > 0 and heap.bounds[(k - 1) // 2] < bound:
        heap.bounds[k] = heap.bounds[(k - 1) // 2]
        heap.slots[k] = heap.slots[(k - 1) // 2]
        k = (k - 1) // 2
    heap.bounds[k] = bound
    heap.slots[k] = slot
    return size + 1


@helper
def pop(heap, size):
    """Take the highest node off, to be the node at hand; return the new size of the heap."""
    free = heap.slots[0]
    for k in range(4):
        heap.nodes[-1, k] = heap.nodes[free, k]
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


@helper
def set_node(node, first_top, last_top, first_bottom, last_bottom, least_height):
    """Make the node that of the boxes of these rows; return whether there are any."""
    node[TOP] = first_top
    node[TOP + 1] = min(last_top, last_bottom - least_height)
    node[BOTTOM] = max(first_bottom, first_top + least_height)
    node[BOTTOM + 1] = last_bottom
    return node[TOP] <= node[TOP + 1] and node[BOTTOM] <= node[BOTTOM + 1]


@helper
def least_weighty(scores, level):
    """The score up to which further boxes have no weight: max over k of (sum of the k best - level) / k."""
    total = 0.0
    least = 2.0 * IMPOSSIBLE
    for k in range(scores.size):
        total += scores[k]
        least = max(least, (total - level) / (k + 1))
    return least


@helper
def search(image, heap, boxes, scores, level):
    """Write the K best boxes and their scores, best first, as long as they have a weight; return how many there are."""
    for k in range(scores.size):
        scores[k] = 2 * IMPOSSIBLE
    if image.has_none:
        insert(boxes, scores, image.weight * output_cost(image.target, 0, 0, 0, 0) - image.constant, 0, 0, 0, 0)
    node = heap.nodes[-1]
    limits = image.limits
    height_limit = image.smallest[0]
    size = 0
    if set_node(node, limits[0][0], limits[0][1], limits[2][0], limits[2][1], height_limit):
        size = push(heap, 0, upper_bound(image, node))
        heap.counts[N_NODES] += 1
    least = max(scores[-1], least_weighty(scores, level))
    while size > 0 and heap.bounds[0] > least:
        size = pop(heap, size)
        top = node[TOP]
        last_top = node[TOP + 1]
        bottom = node[BOTTOM]
        last_bottom = node[BOTTOM + 1]
        if (top == last_top and bottom == last_bottom) or size + 2 > heap.slots.size:
            heap.counts[N_BOXES] += search_node(image, node, boxes, scores)
            least = max(scores[-1], least_weighty(scores, level))
            continue
        splits_tops = last_top - top > last_bottom - bottom
        middle = (top + last_top) // 2 if splits_tops else (bottom + last_bottom) // 2
        for half in range(2):
            if splits_tops and half == 0:
                is_possible = set_node(node, top, middle, bottom, last_bottom, height_limit)
            elif splits_tops:
                is_possible = set_node(node, middle + 1, last_top, bottom, last_bottom, height_limit)
            elif half == 0:
                is_possible = set_node(node, top, last_top, bottom, middle, height_limit)
            else:
                is_possible = set_node(node, top, last_top, middle + 1, last_bottom, height_limit)
            if is_possible:
                bound = upper_bound(image, node)
                heap.counts[N_NODES] += 1
                if bound > least:
                    size = push(heap, size, bound)
    count = 0
    while count < scores.size and scores[count] > 2 * IMPOSSIBLE and has_weight(scores, count, level):
        count += 1
    for k in range(count):
        scores[k] += image.constant
    return count
