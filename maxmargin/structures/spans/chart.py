"""Sums over trees of spans by the algorithm of Cocke, Younger and Kasami, in any semiring.

Tables have an entry for each span lo:hi, and where both have their use another one at [hi, lo]. ``left[lo, hi]`` adds
up all that can be a left part from lo to hi, ``right[lo, hi]`` all that can be a right part, or the sentence:

    below[lo, hi] = sum over k between lo and hi of left[lo, k] * right[k, hi],   one of a single word
    left[lo, hi]  = scores[lo, hi] * below[lo, hi]
    right[lo, hi] = scores[hi, lo] * below[lo, hi]

where scores[lo, hi] adds up the labels of a left part, and scores[hi, lo] those of a right part, or none. Derivatives
go the other way: ``above[lo, hi]`` that of the sum over all trees by the left part, ``above[hi, lo]`` by the right one.
All sums are over neighbours in memory, as tables that are read both by rows and by columns are symmetric.
"""

from __future__ import annotations

from maxmargin.arrays.views import matrix
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.scalar_semirings import NEVER, add, one, pick, sum_products, sum_range, times
from maxmargin.structures.spans.span_parts import ABOVE, ABOVE_BELOW, BELOW, LEFT, RIGHT, SCORES, bare_part, span_number


@helper
def table_of(work, level, n_words):
    """One of the tables, of a sentence of so many words."""
    return matrix(work.tables, level * work.tables.shape[1], n_words + 1, n_words + 1)


@helper
def fill_scores(semiring, problem, theta, n_words, work):
    """The sums over the labels of spans."""
    scores = table_of(work, SCORES, n_words)
    first = 0
    for lo in range(n_words):
        for hi in range(lo + 1, n_words + 1):
            labelled = sum_range(semiring, theta, first, first + problem.n_labels)
            bare = theta[bare_part(problem, n_words, first // problem.n_labels)]
            either = add(semiring, labelled, bare)
            scores[lo, hi] = either if hi == lo + 1 else labelled
            scores[hi, lo] = either
            first += problem.n_labels


@helper
def scale_scores(n_words, work):
    """Divide the sums over labels by the largest of them, which is returned: then no tree has a weight above 1."""
    scores = table_of(work, SCORES, n_words)
    largest = 0.0
    for lo in range(n_words):
        for hi in range(lo + 1, n_words + 1):
            largest = max(largest, scores[hi, lo])
    for lo in range(n_words):
        for hi in range(lo + 1, n_words + 1):
            scores[lo, hi] /= largest
            scores[hi, lo] /= largest
    return largest


@helper
def fill_inside(semiring, n_words, work):
    """Fill the tables of what is below spans; return the sum over all trees."""
    scores = table_of(work, SCORES, n_words)
    below = table_of(work, BELOW, n_words)
    left = table_of(work, LEFT, n_words)
    right = table_of(work, RIGHT, n_words)
    for width in range(1, n_words + 1):
        for lo in range(n_words - width + 1):
            hi = lo + width
            if width == 1:
                below[lo, hi] = one(semiring)
            else:
                below[lo, hi] = sum_products(semiring, left, lo, right, hi, lo + 1, hi)
            left[lo, hi] = times(semiring, scores[lo, hi], below[lo, hi])
            left[hi, lo] = left[lo, hi]
            right[lo, hi] = times(semiring, scores[hi, lo], below[lo, hi])
            right[hi, lo] = right[lo, hi]
    return right[0, n_words]


@helper
def fill_outside(semiring, n_words, work):
    """Fill the tables of derivatives of the sum over all trees."""
    scores = table_of(work, SCORES, n_words)
    left = table_of(work, LEFT, n_words)
    right = table_of(work, RIGHT, n_words)
    above = table_of(work, ABOVE, n_words)
    above_below = table_of(work, ABOVE_BELOW, n_words)
    for width in range(n_words, 0, -1):
        for lo in range(n_words - width + 1):
            hi = lo + width
            above[lo, hi] = sum_products(semiring, above_below, lo, right, hi, hi + 1, n_words + 1)
            if width == n_words:
                above[hi, lo] = one(semiring)
            else:
                above[hi, lo] = sum_products(semiring, above_below, hi, left, lo, 0, lo)
            as_left = times(semiring, above[lo, hi], scores[lo, hi])
            as_right = times(semiring, above[hi, lo], scores[hi, lo])
            above_below[lo, hi] = add(semiring, as_left, as_right)
            above_below[hi, lo] = above_below[lo, hi]


@helper
def multiply_around(semiring, problem, theta, n_words, work, out):
    """Write for each part the sum over all trees that have it."""
    below = table_of(work, BELOW, n_words)
    above = table_of(work, ABOVE, n_words)
    first = 0
    for lo in range(n_words):
        for hi in range(lo + 1, n_words + 1):
            either = times(semiring, add(semiring, above[lo, hi], above[hi, lo]), below[lo, hi])
            for p in range(first, first + problem.n_labels):
                out[p] = times(semiring, either, theta[p])
            bare = bare_part(problem, n_words, first // problem.n_labels)
            around = either if hi == lo + 1 else times(semiring, above[hi, lo], below[lo, hi])
            out[bare] = times(semiring, around, theta[bare])
            first += problem.n_labels


@helper
def read_tree(semiring, problem, theta, n_words, draws, y, work):
    """Write a tree, picked from the top down by one number per span; the best one has no label in case of doubt."""
    left = table_of(work, LEFT, n_words)
    right = table_of(work, RIGHT, n_words)
    options, stack = work.options, work.stack
    stack[0, 0] = 0
    stack[0, 1] = n_words
    n_open = 1
    for k in range(y.size):
        n_open -= 1
        is_right = stack[n_open, 1] >= 0  # the end of a left part is marked by its sign
        lo = stack[n_open, 0]
        hi = abs(stack[n_open, 1])
        span = span_number(n_words, lo, hi)
        first = span * problem.n_labels
        bare = bare_part(problem, n_words, span)
        options[0] = theta[bare] if is_right or hi == lo + 1 else NEVER
        for label in range(problem.n_labels):
            options[1 + label] = theta[first + label]
        chosen, rest = pick(semiring, options[: 1 + problem.n_labels], draws[k])
        y[k] = bare if chosen == 0 else first + chosen - 1
        if hi == lo + 1:
            continue
        for split in range(lo + 1, hi):
            options[split - lo - 1] = times(semiring, left[lo, split], right[split, hi])
        chosen, _ = pick(semiring, options[: hi - lo - 1], rest)
        split = lo + 1 + chosen
        stack[n_open, 0] = split
        stack[n_open, 1] = hi
        stack[n_open + 1, 0] = lo
        stack[n_open + 1, 1] = -split
        n_open += 2
