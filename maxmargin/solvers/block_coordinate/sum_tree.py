"""A sum tree: draws an index with probability proportional to its value, and changes a value, in O(log n).

The tree is one flat array of 2 P numbers, P a power of two: entry 1 is the root, entry P + i the value of index i, and
every inner entry the sum of its two children, 2 p and 2 p + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.runtime.dispatch import helper

AHEAD = 2  # indices drawn before they are used
MANY = 2000  # indices to draw from: with fewer all is in the cache


def new_tree(n: int) -> np.ndarray:
    """A tree of n zeros."""
    return np.zeros(2 * (1 << max(n - 1, 0).bit_length()))


def leaves(tree: np.ndarray, n: int) -> np.ndarray:
    """The n values, as a view; call `sum_up` after writing to it."""
    return tree[tree.size // 2 : tree.size // 2 + n]


def sum_up(tree: np.ndarray) -> None:
    """Recompute all inner entries."""
    size = tree.size // 2
    while size > 1:
        size //= 2
        tree[size : 2 * size] = tree[2 * size : 4 * size : 2] + tree[2 * size + 1 : 4 * size : 2]


class RangeTrees:
    """A tree for the values of each of several ranges of indices.

    Parameters
    ----------
    ranges
        Where they begin and end.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.ranges = ranges
        self.trees = [new_tree(hi - lo) for lo, hi in ranges]

    def read(self, values: np.ndarray) -> None:
        """Take the values of all indices."""
        for tree, (lo, hi) in zip(self.trees, self.ranges, strict=True):
            leaves(tree, hi - lo)[:] = values[lo:hi]
            sum_up(tree)

    def write(self, values: np.ndarray) -> None:
        """Fill in the values of all indices."""
        for tree, (lo, hi) in zip(self.trees, self.ranges, strict=True):
            values[lo:hi] = leaves(tree, hi - lo)


@helper
def change(tree, i, value):
    """Set the value of index i."""
    p = tree.size // 2 + i
    tree[p] = value
    while p > 1:
        p //= 2
        tree[p] = tree[2 * p] + tree[2 * p + 1]


@helper
def draw(tree, n, u):
    """The index at the fraction u of the total; all are equally likely where every value is zero."""
    if not tree[1] > 0:
        return min(int(u * n), n - 1)
    rest = u * tree[1]
    p = 1
    while p < tree.size // 2:
        p *= 2
        if rest >= tree[p] and tree[p + 1] > 0:
            rest -= tree[p]
            p += 1
    return p - tree.size // 2


@helper
def last_drawn(order, k, n):
    """The place in an order up to which indices are drawn, n of them, before that at k is used."""
    return min(k + AHEAD, order.size - 1) if n >= MANY else k


@helper
def draw_ahead(tree, order, draws, k, first, n):
    """Draw order[k], and some of those to come, where they are negative, by the fractions `draws`; add `first`.

    So the memory of what is drawn can be asked for in time. Changes of values count two draws later.
    """
    for ahead in range(k, last_drawn(order, k, n) + 1):
        if order[ahead] < 0:
            order[ahead] = first + draw(tree, n, draws[ahead])
