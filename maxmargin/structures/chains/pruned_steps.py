"""Viterbi's steps from those labels alone whose paths can be the best into another label: what they find is the same.

A path that ends in label a arrives nowhere with more than its score and the highest potential of a transition out of a,
its *promise*. Where that is below what every label is reached with already, a is left out: no maximum changes, and no
tie, as promises are rounded as the sums are that they stand for. How far the lowest arrival was below the highest
promise at the last position is a guess of what it will be at the next; what is left out by a wrong guess follows. Where
more than half of the labels stay, all are taken, here and at the next positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.lanes import (
    BLOCK,
    LANES,
    at,
    columns_of_block,
    fetch,
    highest,
    lower,
    lowest,
    padded,
    plus,
    splat,
    store,
    upper,
)
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper

MANY = 200  # labels: with fewer, to look takes as long as what it may spare
LONG = 8  # positions: the same of shorter sequences
STAGES = 4  # in which labels of lower promises follow
REST = 16  # positions that are not looked at after the first one where most labels stay; then twice as many

IN_ORDER = {"nnan", "ninf", "nsz"}  # sums are rounded as they are written
exact = helper(fastmath=IN_ORDER)


class Pruning(NamedTuple):
    """Memory of steps from few labels."""

    highs: np.ndarray  # (1, W) the highest potential of a transition out of each label
    promises: np.ndarray  # (1, W)
    which: np.ndarray  # (L,) int64, the labels to go on from


def new_pruning(n_labels: int, dtype: DTypeLike) -> Pruning:
    """The memory for so many labels."""
    shape = 1, padded(n_labels)
    return Pruning(aligned(shape, dtype), aligned(shape, dtype), aligned((n_labels,), np.int64))


@exact
def is_worth(pruning, length):
    """Whether to look at all."""
    return pruning.which.size >= MANY and length >= LONG


@exact
def find_highs(table, pruning):
    """The highest potential of the transitions out of each label, from a table with all of them."""
    n = pruning.which.size
    for a in range(n):
        pruning.highs[0, a] = highest_of(table, a, n)


@exact
def highest_of(rows, t, n):
    """The largest of rows[t, :n]."""
    if n < LANES:
        top = rows[t, 0]
        for c in range(1, n):
            top = max(top, rows[t, c])
        return top
    tops = fetch(rows, t, 0)
    for c in range(LANES, n, LANES):
        tops = upper(tops, fetch(rows, t, min(c, n - LANES)))
    return highest(tops)


@exact
def lowest_of(rows, t, n):
    """The smallest of rows[t, :n], of at least eight."""
    lows = fetch(rows, t, 0)
    for c in range(LANES, n, LANES):
        lows = lower(lows, fetch(rows, t, min(c, n - LANES)))
    return lowest(lows)


@exact
def arrive(forward, table, t, gap, pruning, arrivals):
    """arrivals[t], from what is at t - 1 in `forward`; return how far the lowest is below the highest promise.

    `gap` is the same of the last position, or 0. Where most labels stay, return a negative number, and find nothing.
    """
    promises, which = pruning.promises, pruning.which
    n = which.size
    for c in range(0, promises.shape[1], LANES):
        store(promises, 0, c, plus(fetch(forward, t - 1, c), fetch(pruning.highs, 0, c)))
        store(arrivals, t, c, splat(arrivals.dtype.type(-np.inf)))
    top = highest_of(promises, 0, n)
    limit = top - gap
    count = 0
    for a in range(n):
        if promises[0, a] >= limit:
            which[count] = a
            count += 1
    begin = 0
    stage = 0
    while count <= n // 2:
        go_on_from(which, begin, count, forward, table, t, arrivals)
        low = lowest_of(arrivals, t, n)
        if low >= limit:
            return top - low
        begin = count
        stage += 1
        next_limit = low + 0.5 * (limit - low) if stage < STAGES else low  # not at once: the lowest rises meanwhile
        for a in range(n):
            if next_limit <= promises[0, a] < limit:
                which[count] = a
                count += 1
        limit = next_limit
    return -1.0


@exact
def go_on_from(which, begin, end, forward, table, t, arrivals):
    """Let arrivals[t] be as high as they are by the labels which[begin:end]."""
    width = arrivals.shape[1]
    for first in range(0, width, BLOCK):
        c0, c1, c2, c3 = columns_of_block(first, width)
        best0 = fetch(arrivals, t, c0)
        best1 = fetch(arrivals, t, c1)
        best2 = fetch(arrivals, t, c2)
        best3 = fetch(arrivals, t, c3)
        for k in range(begin, end):
            a = which[k]
            x = at(forward, t - 1, a)
            best0 = upper(plus(x, fetch(table, a, c0)), best0)
            best1 = upper(plus(x, fetch(table, a, c1)), best1)
            best2 = upper(plus(x, fetch(table, a, c2)), best2)
            best3 = upper(plus(x, fetch(table, a, c3)), best3)
        store(arrivals, t, c0, best0)
        store(arrivals, t, c1, best1)
        store(arrivals, t, c2, best2)
        store(arrivals, t, c3, best3)
