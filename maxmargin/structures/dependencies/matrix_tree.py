"""Sums over all trees whose arcs may cross: the matrix-tree theorem without subtractions.

The sum over all trees is a determinant (Tutte 1984; Koo et al. 2007), whose terms cancel down to nothing where the
heaviest arcs are on cycles. Words are eliminated instead, as the states of Markov chains are (Grassmann, Taksar and
Heyman 1985): a word k, with arcs into it of the total weight d_k, is passed over by arcs from its heads to all words,
those that are gone included,

    weights[h, m] += weights[h, k] / d_k * weights[k, m],

and the sum is the product of all d_k: there is nothing but sums and products of positive numbers. With a single root,
d_k leaves the root out, but for the last word.

The head of word k is that to which a random walk from word to head leaves k for the last time, before it gets to the
root (Wilson 1996): the arc from h to k has the probability weights[h, k] * escape[h], as a share of the sum over h,
where escape[h] is that of a walk from h that gets to the root and not to k. When k alone is left, it is in the row of
the root, times what the arcs into h have added up to since h is gone. Halves of the words are eliminated once for all
words in the other half, so that the probabilities of all arcs take 3/2 n^3 products, half as many again as the inverse
of a matrix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import BLOCK, columns_of_block, copy_row, fetch, fma, padded, store
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import generic, helper, implements
from maxmargin.structures.dependencies.arc_tables import ROOT
from maxmargin.structures.scalar_semirings import (
    NEVER,
    LogSums,
    Sums,
    add,
    is_safe,
    log_of,
    one,
    over,
    times,
    zero,
)


class Walk(NamedTuple):
    """Tables for N = n + 1 words with the root, W >= N columns in full vectors."""

    tables: np.ndarray  # (levels, N x W), weights of arcs
    steps: np.ndarray  # (N,) the probabilities of steps from a word to each head
    totals: np.ndarray  # (N,) of the column of each word that is gone
    passed: np.ndarray  # (N,) d_k of the words that are gone
    stack: np.ndarray  # (2 levels, 4) int64


def new_walk(longest: int) -> Walk:
    """Tables for sentences of so many words."""
    size = longest + 1
    n_levels = 2 + math.ceil(math.log2(size))
    return Walk(
        tables=aligned((n_levels, size * padded(size)), np.float64),
        steps=aligned((size,), np.float64),
        totals=aligned((size,), np.float64),
        passed=aligned((size,), np.float64),
        stack=aligned((2 * n_levels, 4), np.int64),
    )


@helper
def table_of(walk, level, size):
    """One of the tables, of a sentence of that many words with the root."""
    return matrix(walk.tables, level * walk.tables.shape[1], size, padded(size))


@generic
def add_steps(semiring, weights, lo, hi, k, steps):
    """Add row k, times steps[h], to row h, that of the root and those of the words lo:hi."""


@implements(add_steps, Sums)
def add_plain_steps(semiring, weights, lo, hi, k, steps):
    width = weights.shape[1]
    for begin in range(0, width, BLOCK):
        c0, c1, c2, c3 = columns_of_block(begin, width)
        x0 = fetch(weights, k, c0)
        x1 = fetch(weights, k, c1)
        x2 = fetch(weights, k, c2)
        x3 = fetch(weights, k, c3)
        for r in range(lo - 1, hi):
            h = ROOT if r < lo else r
            step = steps[h]
            y0 = fma(step, x0, fetch(weights, h, c0))
            y1 = fma(step, x1, fetch(weights, h, c1))
            y2 = fma(step, x2, fetch(weights, h, c2))
            y3 = fma(step, x3, fetch(weights, h, c3))
            store(weights, h, c0, y0)
            store(weights, h, c1, y1)
            store(weights, h, c2, y2)
            store(weights, h, c3, y3)


@implements(add_steps, LogSums)
def add_log_steps(semiring, weights, lo, hi, k, steps):
    for r in range(lo - 1, hi):
        h = ROOT if r < lo else r
        for m in range(1, weights.shape[0]):
            weights[h, m] = add(semiring, weights[h, m], times(semiring, steps[h], weights[k, m]))


@helper
def eliminate(semiring, weights, lo, hi, k, single_root, walk):
    """Eliminate word k, where the words lo:hi are left; return whether that is safe."""
    steps = walk.steps
    into = zero(semiring) if single_root else weights[ROOT, k]
    for h in range(lo, hi):
        steps[h] = weights[h, k]
        into = add(semiring, into, steps[h])
    if not (is_safe(semiring, into) and is_safe(semiring, add(semiring, one(semiring), weights[ROOT, k]))):
        return False
    walk.passed[k] = into
    walk.totals[k] = add(semiring, into, weights[k, k])  # what has come to the diagonal goes on with the steps
    inverse = over(semiring, one(semiring), into)
    steps[ROOT] = times(semiring, weights[ROOT, k], inverse)
    for h in range(lo, hi):
        steps[h] = times(semiring, steps[h], inverse)
    add_steps(semiring, weights, lo, hi, k, steps)
    return True


@helper
def eliminate_range(semiring, weights, lo, hi, first, last, single_root, walk):
    """Eliminate the words first:last, at one end of lo:hi; return whether that is safe."""
    while first < last:
        if first == lo:
            k = first
            lo += 1
            first += 1
        else:
            hi -= 1
            last -= 1
            k = last
        if not eliminate(semiring, weights, lo, hi, k, single_root, walk):
            return False
    return True


@helper
def copy_left(weights, lo, hi, left):
    """Copy the rows of the root and of the words that are left."""
    copy_row(weights, ROOT, left, ROOT, left.shape[1])
    for h in range(lo, hi):
        copy_row(weights, h, left, h, left.shape[1])


@helper
def share_heads(semiring, weights, left, k, totals, shares):
    """Column k of `shares`: those of its heads, by the weights, and by what is left of them without all other words."""
    totals[k] = left[ROOT, k]
    inverse = over(semiring, one(semiring), left[ROOT, k])
    for h in range(weights.shape[0]):
        escape = one(semiring) if h == ROOT else over(semiring, left[ROOT, h], totals[h])
        shares[h, k] = times(semiring, times(semiring, weights[h, k], escape), inverse)
    shares[k, k] = zero(semiring)


@helper
def share_all_heads(semiring, size, single_root, walk, shares):
    """Write the shares of the heads of all words; return the logarithm of the sum over all trees, NEVER if not safe.

    The first table of `walk` holds the weights, the others have room for what is left of them at each level of halving.
    """
    stack = walk.stack
    weights = table_of(walk, 0, size)
    lo = 1
    hi = size
    level = 0
    n_open = 0
    while True:
        left = table_of(walk, level, size)
        if hi - lo == 1:
            if not is_safe(semiring, left[ROOT, lo]):
                return NEVER
            walk.passed[lo] = left[ROOT, lo]
            share_heads(semiring, weights, left, lo, walk.totals, shares)
            if n_open == 0:
                break
        else:
            for is_upper in range(2):
                stack[n_open, 0] = lo
                stack[n_open, 1] = hi
                stack[n_open, 2] = level
                stack[n_open, 3] = is_upper
                n_open += 1
        n_open -= 1
        lo = stack[n_open, 0]
        hi = stack[n_open, 1]
        level = stack[n_open, 2] + 1
        middle = (lo + hi) // 2
        first, last = (lo, middle) if stack[n_open, 3] == 1 else (middle, hi)
        copy_left(table_of(walk, level - 1, size), lo, hi, table_of(walk, level, size))
        if not eliminate_range(semiring, table_of(walk, level, size), lo, hi, first, last, single_root, walk):
            return NEVER
        if first == lo:
            lo = middle
        else:
            hi = middle
    log_z = 0.0
    for k in range(1, size):
        log_z += log_of(semiring, walk.passed[k])
    return log_z
