"""Products of rows and tables, from one source for the best sums and for sums of products.

A semiring says what is added and what is multiplied: vectors of `maxmargin.arrays.lanes`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import BLOCK, at, columns_of_block, fetch, fma, plus, splat, store, times, upper
from maxmargin.runtime.dispatch import generic, helper, implements


class MaxPlus(NamedTuple):
    """Maxima of sums."""


class PlusTimes(NamedTuple):
    """Sums of products."""


@generic
def nothing(semiring, table):
    """What changes nothing when it is added, in the precision of a table."""


@generic
def product(semiring, x, y):
    """X times y, where x is a number."""


@generic
def add(semiring, x, y):
    """X plus y."""


@generic
def add_product(semiring, x, y, total):
    """The total plus x times y, where x is a number."""


implements(nothing, MaxPlus)(lambda semiring, table: splat(table.dtype.type(-np.inf)))
implements(product, MaxPlus)(lambda semiring, x, y: plus(x, y))
implements(add, MaxPlus)(lambda semiring, x, y: upper(x, y))
implements(add_product, MaxPlus)(lambda semiring, x, y, total: upper(plus(x, y), total))

implements(nothing, PlusTimes)(lambda semiring, table: splat(table.dtype.type(0)))
implements(product, PlusTimes)(lambda semiring, x, y: times(x, y))
implements(add, PlusTimes)(lambda semiring, x, y: plus(x, y))
implements(add_product, PlusTimes)(lambda semiring, x, y, total: fma(x, y, total))


@helper
def times_matrix(semiring, rows, s, table, n, out, t):
    """out[t] = rows[s, :n] @ table[:n]."""
    width = out.shape[1]
    for begin in range(0, width, BLOCK):  # four vectors in registers; where there are fewer, the last more than once
        c0, c1, c2, c3 = columns_of_block(begin, width)
        x = at(rows, s, 0)
        even0 = product(semiring, x, fetch(table, 0, c0))
        even1 = product(semiring, x, fetch(table, 0, c1))
        even2 = product(semiring, x, fetch(table, 0, c2))
        even3 = product(semiring, x, fetch(table, 0, c3))
        odd0 = odd1 = odd2 = odd3 = nothing(semiring, out)  # two sums at a time: each waits for its last addition
        a = 1
        while a + 2 <= n:
            x = at(rows, s, a)
            odd0 = add_product(semiring, x, fetch(table, a, c0), odd0)
            odd1 = add_product(semiring, x, fetch(table, a, c1), odd1)
            odd2 = add_product(semiring, x, fetch(table, a, c2), odd2)
            odd3 = add_product(semiring, x, fetch(table, a, c3), odd3)
            x = at(rows, s, a + 1)
            even0 = add_product(semiring, x, fetch(table, a + 1, c0), even0)
            even1 = add_product(semiring, x, fetch(table, a + 1, c1), even1)
            even2 = add_product(semiring, x, fetch(table, a + 1, c2), even2)
            even3 = add_product(semiring, x, fetch(table, a + 1, c3), even3)
            a += 2
        if a < n:
            x = at(rows, s, a)
            odd0 = add_product(semiring, x, fetch(table, a, c0), odd0)
            odd1 = add_product(semiring, x, fetch(table, a, c1), odd1)
            odd2 = add_product(semiring, x, fetch(table, a, c2), odd2)
            odd3 = add_product(semiring, x, fetch(table, a, c3), odd3)
        store(out, t, c0, add(semiring, even0, odd0))
        store(out, t, c1, add(semiring, even1, odd1))
        store(out, t, c2, add(semiring, even2, odd2))
        store(out, t, c3, add(semiring, even3, odd3))
