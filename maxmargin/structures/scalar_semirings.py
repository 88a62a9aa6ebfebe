"""What is added and what is multiplied in sums over outputs: best scores, sums, and sums of logarithms."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import first_best
from maxmargin.arrays.views import matrix, part_of_row
from maxmargin.runtime.dispatch import generic, helper, implements
from maxmargin.structures.chains.chain_dp import exact

NEVER = -1e30  # the logarithm of nothing: below every sum of scores that can occur, impossible ones included


class Best(NamedTuple):
    """Maxima of sums."""


class Sums(NamedTuple):
    """Sums of products."""


class LogSums(NamedTuple):
    """The same of logarithms: slow, and safe for any scores."""


@generic
def zero(semiring):
    """What changes nothing when it is added."""


@generic
def one(semiring):
    """What changes nothing when it is multiplied."""


@generic
def add(semiring, x, y):
    """X plus y."""


@generic
def times(semiring, x, y):
    """X times y."""


@generic
def sum_range(semiring, values, lo, hi):
    """The sum of values[lo:hi]."""


@generic
def sum_products(semiring, a, r, b, s, lo, hi):
    """The sum of products of a[r, lo:hi] and b[s, lo:hi]."""


@generic
def over(semiring, x, y):
    """X divided by y."""


@generic
def pick(semiring, options, draw):
    """The option that a number, uniform in [0, 1), decides on, and a number that is uniform again."""


@exact
def add_logs(semiring, x, y):
    """log(exp(x) + exp(y))."""
    top = max(x, y)
    return top + math.log1p(math.exp(min(x, y) - top))


@helper
def best_of_range(semiring, values, lo, hi):
    """The largest of values[lo:hi]."""
    part = matrix(values, lo, 1, hi - lo)
    top = NEVER
    for k in range(part.size):
        top = max(top, np.float64(part[0, k]))
    return top


@helper
def best_of_products(semiring, a, r, b, s, lo, hi):
    """The largest sum of an entry of a row and one of another."""
    x = part_of_row(a, r, lo, hi)
    y = part_of_row(b, s, lo, hi)
    top = NEVER
    for k in range(x.size):
        top = max(top, x[0, k] + y[0, k])
    return top


# Sums of exponentials of what is far below zero may lose all their digits, but not more: what is impossible stays so.
LEAST_SUM = 1e-300


@helper
def log_sum_range(semiring, values, lo, hi):
    """The logarithm of the sum of exponentials of values[lo:hi]."""
    top = best_of_range(semiring, values, lo, hi)
    part = matrix(values, lo, 1, hi - lo)
    total = 0.0
    for k in range(part.size):
        total += fast_exp(min(part[0, k] - top, 0.0))
    return top + math.log(max(total, LEAST_SUM))


@helper
def log_sum_products(semiring, a, r, b, s, lo, hi):
    """The same of sums of an entry of a row and one of another."""
    top = best_of_products(semiring, a, r, b, s, lo, hi)
    x = part_of_row(a, r, lo, hi)
    y = part_of_row(b, s, lo, hi)
    total = 0.0
    for k in range(x.size):
        total += fast_exp(min(x[0, k] + y[0, k] - top, 0.0))
    return top + math.log(max(total, LEAST_SUM))


@helper
def plain_sum_of_range(semiring, values, lo, hi):
    """The sum of values[lo:hi]."""
    part = matrix(values, lo, 1, hi - lo)
    total = 0.0
    for k in range(part.size):
        total += part[0, k]
    return total


@helper
def plain_sum_of_products(semiring, a, r, b, s, lo, hi):
    """The inner product of parts of two rows."""
    x = part_of_row(a, r, lo, hi)
    y = part_of_row(b, s, lo, hi)
    total = 0.0
    for k in range(x.size):
        total += x[0, k] * y[0, k]
    return total


@helper
def pick_best(semiring, options, draw):
    """The first of the best, whatever the number."""
    return first_best(options), draw


@helper
def pick_share(semiring, options, draw):
    """An option with the probability that is its share of the sum."""
    total = zero(semiring)
    for k in range(options.size):
        total = add(semiring, total, options[k])
    left = draw
    last = 0
    for k in range(options.size):
        share = as_share(semiring, options[k], total)
        if share > 0:
            if left < share:
                return k, left / share
            last = k
            left -= share
    return last, 0.5  # rounding has left nothing of the number


@generic
def as_share(semiring, x, total):
    """X as a share of a total, a plain number."""


MOST_WORDS = 150  # whose sums cannot overflow: n words have fewer than 6.75^n trees, of weights of at most 1
LOG_TREES = math.log(6.75)


@helper
def has_underflown(total, n_words):
    """Whether a sum over trees of words is so small that parts of it may be missing, or so large that it may overflow.

    Otherwise what has underflown is nothing beside it, times any number of trees.
    """
    return n_words > MOST_WORDS or total <= 0 or math.log(total) < LOG_TREES * n_words - 500


@generic
def log_of(semiring, x):
    """The logarithm of what x stands for."""


@generic
def is_safe(semiring, x):
    """Whether x is so far from zero and infinity that what is lost in sums beside it is nothing."""


implements(is_safe, Sums)(lambda semiring, x: 1e-100 < x < 1e100)
implements(is_safe, LogSums)(lambda semiring, x: True)
implements(log_of, Sums)(lambda semiring, x: math.log(x))
implements(log_of, LogSums)(lambda semiring, x: x)
implements(zero, Best, LogSums)(lambda semiring: NEVER)
implements(zero, Sums)(lambda semiring: 0.0)
implements(one, Best, LogSums)(lambda semiring: 0.0)
implements(one, Sums)(lambda semiring: 1.0)
implements(add, Best)(lambda semiring, x, y: max(x, y))
implements(add, Sums)(lambda semiring, x, y: x + y)
implements(add, LogSums)(add_logs)
implements(sum_range, Best)(best_of_range)
implements(sum_range, Sums)(plain_sum_of_range)
implements(sum_range, LogSums)(log_sum_range)
implements(sum_products, Best)(best_of_products)
implements(sum_products, Sums)(plain_sum_of_products)
implements(sum_products, LogSums)(log_sum_products)
implements(times, Best, LogSums)(lambda semiring, x, y: x + y)
implements(times, Sums)(lambda semiring, x, y: x * y)
implements(over, LogSums)(lambda semiring, x, y: x - y)
implements(over, Sums)(lambda semiring, x, y: x / y)
implements(as_share, Sums)(lambda semiring, x, total: x / total)
implements(as_share, LogSums)(lambda semiring, x, total: math.exp(x - total))
implements(pick, Best)(pick_best)
implements(pick, Sums, LogSums)(pick_share)
