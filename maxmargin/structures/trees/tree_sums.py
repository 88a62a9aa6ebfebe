"""Sums over all labellings of rooted forests: sum-product in probabilities and, where these underflow, in logarithms.

Arguments and tables are those of `maxmargin.structures.trees.tree_dp`, with sums in place of best scores; the columns
of tables beyond the labels hold zeros, or what is multiplied by zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.lanes import (
    LANES,
    copy_row,
    fetch,
    lower,
    lowest,
    padded,
    plus,
    splat,
    store,
    times,
    total,
    where_below,
)
from maxmargin.arrays.semirings import PlusTimes, times_matrix
from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_dp import exact, subtract_highest
from maxmargin.structures.chains.chain_sums import count_labels, exponentiate, exponentiate_rows
from maxmargin.structures.chains.pruned_steps import highest_of


class ForestSums(NamedTuple):
    """What sums over labellings of up to T nodes work in, W >= L columns wide; at least four rows."""

    belief: np.ndarray  # (T, W)
    message: np.ndarray  # (T, W)
    marginals: np.ndarray  # (T, W)
    known: np.ndarray  # (kinds, L * L) the pairs whose exponentials are in `factors`
    factors: np.ndarray  # (kinds, 2, W, W) exp(pairs - their maximum), and its transpose
    extents: np.ndarray  # (kinds, 2) the maximum and the spread of possible pairs


def new_tables(length: int, n_kinds: int, n_labels: int, dtype: DTypeLike) -> ForestSums:
    """Tables for labellings of so many nodes, with so many kinds of edges."""
    rows, width = max(length, 4), padded(n_labels)
    known = aligned((n_kinds, n_labels**2), dtype)
    known[:] = 2 * IMPOSSIBLE  # no pair's potential: nothing is there yet
    belief, message, marginals = (aligned((rows, width), dtype) for _ in range(3))
    factors = aligned((n_kinds, 2, width, width), dtype)
    return ForestSums(belief, message, marginals, known, factors, aligned((n_kinds, 2), dtype))


@helper
def upward_shares(nodes, pairs, forest, tables):
    """Fill belief[c] with the probabilities of the labels of c given its subtree, and `message` with the inverses.

    Probabilities are rescaled at each node, with exp(pairs) kept from one call to the next for as long as the pairs
    stay the same. One factor multiplies a label's share by no less than exp(-spread), the spread of its potentials, so
    as long as all shares and messages are above `tiny` nothing underflows. Return the log-partition function, and
    whether this was so: if not, the log domain must take over.
    """
    length, n_labels = nodes.shape
    parent, kind, order = forest
    belief = tables.belief
    message = tables.message
    factors = tables.factors
    extents = tables.extents
    width = belief.shape[1]
    number = nodes.dtype.type
    tiny = number(1e-18 if nodes.itemsize == 4 else 1e-90)
    smallest = number(1.4e-45 if nodes.itemsize == 4 else 4.9e-324)  # above zero
    log_z, spread = exponentiate_rows(nodes, belief)
    for k in range(pairs.size // (n_labels * n_labels)):
        table = matrix(pairs, k * n_labels**2, n_labels, n_labels)
        exponentiate(table, tables.known[k : k + 1], factors[k], extents[k])
        spread = max(spread, extents[k, 1])
    is_safe = spread <= number(41.0 if nodes.itemsize == 4 else 207.0)
    if not is_safe:
        return log_z, is_safe
    product = 1.0  # of the totals: one logarithm for many of them
    least = splat(number(1))
    for s in range(length):
        c = order[s]
        p = parent[c]
        if p < 0:
            p = c
            for b in range(0, width, LANES):
                store(message, c, b, splat(number(1)))
        else:
            factor = matrix(factors, 2 * kind[c] * width**2, width, width)
            times_matrix(PlusTimes(), belief, c, factor, n_labels, message, c)
            log_z += extents[kind[c], 0]
        sums = splat(number(0))
        for b in range(0, width, LANES):
            x = fetch(message, c, b)
            least = lower(least, where_below(x, smallest, splat(number(1)), x))
            store(message, c, b, where_below(x, tiny, splat(number(1)), x))
            share = times(x, fetch(belief, p, b))
            store(belief, p, b, share)
            sums = plus(sums, share)
        for b in range(width):
            message[c, b] = number(1) / message[c, b]
        sum_of_shares = total(sums)
        is_safe = is_safe and sum_of_shares > tiny
        scale = number(1) / max(sum_of_shares, tiny)
        for b in range(0, width, LANES):
            share = times(scale, fetch(belief, p, b))
            store(belief, p, b, share)
            least = lower(least, where_below(share, smallest, splat(number(1)), share))
        product *= np.float64(sum_of_shares)
        if product < 1e-150 or product > 1e150:
            log_z += math.log(max(product, 1e-300))
            product = 1.0
    return log_z + math.log(product), is_safe and lowest(least) >= tiny


@helper
def downward_shares(means, counts, forest, tables):
    """After `upward_shares`: marginals into `means`, expected counts of edges' labels into `counts`."""
    length, n_labels = means.shape
    parent, kind, order = forest
    belief = tables.belief
    message = tables.message
    marginals = tables.marginals
    factors = tables.factors
    width = belief.shape[1]
    for s in range(length - 1, -1, -1):
        c = order[s]
        p = parent[c]
        if p < 0:
            copy_row(belief, c, marginals, c, width)
        else:
            for b in range(0, width, LANES):  # a label that no message allows has no share in its parent
                store(message, c, b, times(fetch(marginals, p, b), fetch(message, c, b)))
            transposed = matrix(factors, (2 * kind[c] + 1) * width**2, width, width)
            times_matrix(PlusTimes(), message, c, transposed, n_labels, marginals, c)
            for b in range(0, width, LANES):
                store(marginals, c, b, times(fetch(marginals, c, b), fetch(belief, c, b)))
        copy_row(marginals, c, means, c, n_labels)
    count_edges(kind, belief, message, n_labels, factors, marginals, counts)


@helper
def count_edges(kind, belief, message, n_labels, factors, sums, counts):
    """The sums, over the edges of each kind, of the outer products belief[c]' message[c], times the kind's factor.

    Works in sums[:4].
    """
    length = kind.size
    width = belief.shape[1]
    clear(counts)
    begin = 0
    while begin < length:
        k = kind[begin]
        end = begin + 1
        while end < length and kind[end] == k:
            end += 1
        if k >= 0:
            factor = matrix(factors, 2 * k * width**2, width, width)
            for a in range(0, n_labels, 4):
                four = a, min(a + 1, n_labels - 1), min(a + 2, n_labels - 1), min(a + 3, n_labels - 1)
                count_labels(four, belief, begin, message, begin, end - begin, factor, sums)
                rows = matrix(counts, (k * n_labels + a) * n_labels, min(4, n_labels - a), n_labels)
                for j in range(rows.shape[0]):
                    for b in range(n_labels):
                        rows[j, b] += sums[j, b]
        begin = end


@exact
def log_sum_product(nodes, pairs, forest, means, counts, belief, message):
    """The same in logarithms, all at once: slow, and safe for any potentials; return the log-partition function."""
    length, n_labels = nodes.shape
    for t in range(length):
        for b in range(n_labels):
            belief[t, b] = nodes[t, b]
    log_z = 0.0
    clear(counts)
    for s in range(length):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            continue
        table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
        for a in range(n_labels):
            top, total = sum_over_labels(belief, c, table, a)
            message[c, a] = top + math.log(total)
        log_z += subtract_highest(message, c, n_labels)  # rounding is then that of the potentials, not of their sums
        for a in range(n_labels):
            belief[p, a] += message[c, a]
    for s in range(length - 1, -1, -1):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            top = highest_of(belief, c, n_labels)
            total = 0.0
            for b in range(n_labels):
                total += math.exp(belief[c, b] - top)
            for b in range(n_labels):
                means[c, b] = math.exp(belief[c, b] - top) / total
            log_z += top + math.log(total)
            continue
        table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
        sums = matrix(counts, forest.kind[c] * n_labels**2, n_labels, n_labels)
        for b in range(n_labels):
            means[c, b] = 0
        for a in range(n_labels):
            if means[p, a] > 0:
                top, total = sum_over_labels(belief, c, table, a)
                for b in range(n_labels):
                    share = means[p, a] * math.exp(belief[c, b] + table[b, a] - top) / total
                    sums[b, a] += share
                    means[c, b] += share
    return log_z


@exact
def sum_over_labels(belief, c, table, a):
    """The best of the scores of node c where its parent has label a, and the sum of exp(score - best)."""
    top = belief[c, 0] + table[0, a]
    for b in range(1, table.shape[0]):
        top = max(top, belief[c, b] + table[b, a])
    total = 0.0
    for b in range(table.shape[0]):
        total += math.exp(belief[c, b] + table[b, a] - top)
    return top, total
