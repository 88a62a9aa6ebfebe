"""Sums over all trees whose arcs may cross: the matrix-tree theorem without subtractions.

The sum over all trees is a determinant (Tutte 1984; Koo et al. 2007), whose terms cancel down to nothing where the
heaviest arcs are on cycles. Words are eliminated instead, as the states of Markov chains are (Grassmann, Taksar and
Heyman 1985): a word k, with arcs into it of the total weight d_k, is passed over by arcs from its heads to its
dependents,

    weights[i, j] += weights[i, k] * weights[k, j] / d_k,

and the sum is the product of all d_k: there is nothing but sums and products of positive numbers. With a single root,
d_k leaves the root out, but for the last word.

The head of word k is that to which a random walk from word to head leaves k for the last time, before it gets to the
root (Wilson 1996): the arc from h to k has the probability weights[h, k] * escape[h], as a share of the sum over h,
where escape[h] is that of a walk from h that gets to the root and not to k. Halves of the words are eliminated once for
all words in the other half, so that the probabilities of all arcs take O(n^3), as a single elimination does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import copy_into
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.dependencies.arc_tables import ROOT
from maxmargin.structures.scalar_semirings import NEVER, add, is_safe, log_of, one, over, times, zero


class Walk(NamedTuple):
    """Tables for N = n + 1 words with the root."""

    tables: np.ndarray  # (levels, N x N), weights of arcs
    steps: np.ndarray  # (N, N) the probabilities of steps from a word to each head, when it was eliminated
    escape: np.ndarray  # (N,)
    order: np.ndarray  # (N, 3) int64, the words that were eliminated, and the range of those that were left
    n_gone: np.ndarray  # (1,) int64, how many they are
    n_before: np.ndarray  # (levels,) int64, how many they were at each level
    logs: np.ndarray  # (levels,) the logarithms of the products at each level
    stack: np.ndarray  # (2 levels, 4) int64


def new_walk(longest: int) -> Walk:
    """Tables for sentences of so many words."""
    size = longest + 1
    n_levels = 2 + math.ceil(math.log2(size))
    return Walk(
        tables=aligned((n_levels, size * size), np.float64),
        steps=aligned((size, size), np.float64),
        escape=aligned((size,), np.float64),
        order=aligned((size, 3), np.int64),
        n_gone=aligned((1,), np.int64),
        n_before=aligned((n_levels,), np.int64),
        logs=aligned((n_levels,), np.float64),
        stack=aligned((2 * n_levels, 4), np.int64),
    )


@helper
def eliminate(semiring, weights, lo, hi, k, single_root, steps):
    """Eliminate word k, where the words lo:hi are left; return the logarithm of d_k, NEVER if that is not safe.

    Row k of `steps` gets the probabilities of the next step of a walk from k. The diagonal is never looked at.
    """
    into = zero(semiring) if single_root else weights[ROOT, k]
    for h in range(lo, hi):
        into = add(semiring, into, weights[h, k])
    if not (is_safe(semiring, into) and is_safe(semiring, add(semiring, one(semiring), weights[ROOT, k]))):
        return NEVER
    steps[k, ROOT] = over(semiring, weights[ROOT, k], into)
    for m in range(lo, hi):
        weights[ROOT, m] = add(semiring, weights[ROOT, m], times(semiring, steps[k, ROOT], weights[k, m]))
    for h in range(lo, hi):
        step = over(semiring, weights[h, k], into)
        steps[k, h] = step
        for m in range(lo, hi):
            weights[h, m] = add(semiring, weights[h, m], times(semiring, step, weights[k, m]))
    return log_of(semiring, into)


@helper
def eliminate_range(semiring, weights, lo, hi, first, last, single_root, walk):
    """Eliminate the words first:last, at one end of lo:hi, those that are there; return the logarithm of the product.

    NEVER if that is not safe. Notes which words were left when each was eliminated.
    """
    log_product = 0.0
    while first < last:
        if first == lo:
            k = first
            lo += 1
            first += 1
        else:
            hi -= 1
            last -= 1
            k = last
        log_d = eliminate(semiring, weights, lo, hi, k, single_root, walk.steps)
        if log_d == NEVER:
            return NEVER
        log_product += log_d
        n_gone = walk.n_gone[0]
        walk.order[n_gone, 0] = k
        walk.order[n_gone, 1] = lo
        walk.order[n_gone, 2] = hi
        walk.n_gone[0] = n_gone + 1
    return log_product


@helper
def share_heads(semiring, weights, k, walk, shares):
    """Column k of `shares`: those of its heads, in the original weights, after all other words were eliminated."""
    escape = walk.escape
    escape[ROOT] = one(semiring)
    escape[k] = zero(semiring)
    for place in range(walk.n_gone[0] - 1, -1, -1):
        v = walk.order[place, 0]
        total = walk.steps[v, ROOT]
        for h in range(walk.order[place, 1], walk.order[place, 2]):
            total = add(semiring, total, times(semiring, walk.steps[v, h], escape[h]))
        escape[v] = total
    total = zero(semiring)
    for h in range(weights.shape[0]):
        shares[h, k] = zero(semiring) if h == k else times(semiring, weights[h, k], escape[h])
        total = add(semiring, total, shares[h, k])
    for h in range(weights.shape[0]):
        shares[h, k] = over(semiring, shares[h, k], total)


@helper
def share_all_heads(semiring, size, single_root, walk, shares):
    """Write the shares of the heads of all words; return the logarithm of the sum over all trees, NEVER if not safe.

    The first table of `walk` holds the weights, the others have room for what is left of them at each level of halving.
    """
    stack = walk.stack
    weights = matrix(walk.tables, 0, size, size)
    log_z = NEVER
    walk.n_gone[0] = 0
    walk.logs[0] = 0
    lo = 1
    hi = size
    level = 0
    n_open = 0
    while True:
        if hi - lo == 1:
            root_weight = walk.tables[level, lo]
            if not is_safe(semiring, root_weight):
                return NEVER
            log_z = walk.logs[level] + log_of(semiring, root_weight)
            share_heads(semiring, weights, lo, walk, shares)
            if n_open == 0:
                return log_z
        else:
            walk.n_before[level] = walk.n_gone[0]
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
        walk.n_gone[0] = walk.n_before[level - 1]
        copy_into(walk.tables[level], walk.tables[level - 1][: size * size])
        left = matrix(walk.tables, level * walk.tables.shape[1], size, size)
        log_product = eliminate_range(semiring, left, lo, hi, first, last, single_root, walk)
        if log_product == NEVER:
            return NEVER
        walk.logs[level] = walk.logs[level - 1] + log_product
        if first == lo:
            lo = middle
        else:
            hi = middle
