"""What is added and what is multiplied in sums over outputs: best scores, sums, and sums of logarithms."""

from __future__ import annotations

import math
from typing import NamedTuple

from maxmargin.arrays.vectors import first_best
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
implements(times, Best, LogSums)(lambda semiring, x, y: x + y)
implements(times, Sums)(lambda semiring, x, y: x * y)
implements(over, LogSums)(lambda semiring, x, y: x - y)
implements(over, Sums)(lambda semiring, x, y: x / y)
implements(as_share, Sums)(lambda semiring, x, total: x / total)
implements(as_share, LogSums)(lambda semiring, x, total: math.exp(x - total))
implements(pick, Best)(pick_best)
implements(pick, Sums, LogSums)(pick_share)
