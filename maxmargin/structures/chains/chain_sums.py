"""Sums over all labellings of a chain: forward-backward in probabilities, and samples.

Where probabilities leave the range of numbers, `maxmargin.structures.chains.chain_logs` takes over.

Arguments are those of `chain_dp`; the columns of tables beyond the labels hold zeros, or what is
multiplied by zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.exponential import exp
from maxmargin.arrays.lanes import (
    LANES,
    at,
    copy_row,
    fetch,
    fma,
    highest,
    lower,
    lowest,
    padded,
    plus,
    splat,
    store,
    times,
    total,
    upper,
    where_below,
)
from maxmargin.arrays.semirings import PlusTimes, times_matrix
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_logs import draw_label, sample_log_paths

UNTIL_DRIFT = 64  # positions, over which rounding does not add up to much


class SumTables(NamedTuple):
    """What sums over labellings of up to T labels work in, W >= L columns wide; at least four rows."""

    gains: np.ndarray  # (T, W)
    forward: np.ndarray  # (T, W)
    backward: np.ndarray  # (T, W)
    known: np.ndarray  # (1, L * L) the transitions whose exponentials are in `factors`
    factors: np.ndarray  # (2, W, W) exp(pairs - their maximum), and its transpose
    extent: np.ndarray  # (2,) the maximum and the spread of possible pairs


def new_tables(length: int, n_labels: int, dtype: DTypeLike) -> SumTables:
    """Tables for labellings of that length."""
    rows, width = max(length, 4), padded(n_labels)
    known = aligned((1, n_labels**2), dtype)
    known[:] = 2 * IMPOSSIBLE  # no transition's potential: nothing is there yet
    gains, forward, backward = (aligned((rows, width), dtype) for _ in range(3))
    return SumTables(gains, forward, backward, known, aligned((2, width, width), dtype), aligned((2,), dtype))


@helper
def forward_shares(nodes, pairs, tables):
    """Fill forward[t] with the probabilities of the labels at t given what comes before, and `gains` with exp(nodes).

    Probabilities are rescaled at each position, and `gains` with them. One step multiplies a label's share by no less
    than exp(-spread), the spread of the potentials, so as long as all shares are above `tiny` nothing underflows.
    Return the log-partition function, and whether this was so: if not, more digits or the log domain must take over.
    """
    length, n_labels = nodes.shape
    gains = tables.gains
    forward = tables.forward
    factor = tables.factors[0]
    width = forward.shape[1]
    number = nodes.dtype.type
    exponentiate(pairs, tables.known, tables.factors, tables.extent)
    tiny = number(1e-18 if nodes.itemsize == 4 else 1e-90)
    smallest = number(1.4e-45 if nodes.itemsize == 4 else 4.9e-324)  # above zero
    log_z, spread = exponentiate_rows(nodes, gains)
    is_safe = spread <= number(43.0 if nodes.itemsize == 4 else 500.0) - tables.extent[1]
    if not is_safe:
        return log_z, is_safe
    log_z += np.float64(tables.extent[0]) * (length - 1)
    product = 1.0  # of the totals: one logarithm for many of them
    least = splat(number(1))
    for t in range(length):
        if t == 0:
            copy_row(gains, 0, forward, 0, width)
        else:
            times_matrix(PlusTimes(), forward, t - 1, factor, n_labels, forward, t)
        sums = splat(number(0))
        for c in range(0, width, LANES):
            share = fetch(forward, t, c) if t == 0 else times(fetch(gains, t, c), fetch(forward, t, c))
            store(forward, t, c, share)
            sums = plus(sums, share)
        sum_of_shares = total(sums)
        is_safe = is_safe and sum_of_shares > tiny
        inverse = number(1) / max(sum_of_shares, tiny)
        for c in range(0, width, LANES):
            share = times(inverse, fetch(forward, t, c))
            store(forward, t, c, share)
            store(gains, t, c, times(inverse, fetch(gains, t, c)))
            least = lower(least, where_below(share, smallest, splat(number(1)), share))
        product *= np.float64(sum_of_shares)
        if product < 1e-150 or product > 1e150:
            log_z += math.log(max(product, 1e-300))
            product = 1.0
    return log_z + math.log(product), is_safe and lowest(least) >= tiny


@helper
def exponentiate_rows(nodes, gains):
    """gains[t] = exp(nodes[t] - their maximum), and zero in the columns beyond the labels.

    Return the sum of the maxima, and the largest spread of the possible labels of a row.
    """
    length, n_labels = nodes.shape
    width = gains.shape[1]
    number = nodes.dtype.type
    impossible = splat(number(IMPOSSIBLE))
    for t in range(length):
        store(gains, t, width - LANES, impossible)
        copy_row(nodes, t, gains, t, n_labels)
    sum_of_tops = 0.0
    spread = number(0)
    for t in range(length):
        tops = fetch(gains, t, 0)
        for c in range(LANES, width, LANES):
            tops = upper(tops, fetch(gains, t, c))
        top = highest(tops)
        bottoms = splat(number(0))
        for c in range(0, width, LANES):
            x = plus(-top, fetch(gains, t, c))
            bottoms = lower(bottoms, where_below(x, number(IMPOSSIBLE / 2), splat(number(0)), x))
            store(gains, t, c, exp(x))
        spread = max(spread, -lowest(bottoms))
        sum_of_tops += top
    return sum_of_tops, spread


@helper
def backward_shares(means, counts, tables):
    """After `forward_shares`: marginals into `means`, expected transitions into `counts`."""
    length, n_labels = means.shape
    gains = tables.gains
    forward = tables.forward
    backward = tables.backward
    transposed = tables.factors[1]
    width = forward.shape[1]
    for c in range(0, width, LANES):
        store(backward, length - 1, c, splat(forward.dtype.type(1)))
    for t in range(length - 1, -1, -1):
        if t % UNTIL_DRIFT == UNTIL_DRIFT - 1:
            restore_total(forward, backward, t)
        for c in range(0, width, LANES):
            onward = fetch(backward, t, c)
            gain = fetch(gains, t, c)
            store(gains, t, c, times(onward, fetch(forward, t, c)))
            store(backward, t, c, times(onward, gain))
        copy_row(gains, t, means, t, n_labels)
        if t > 0:
            times_matrix(PlusTimes(), backward, t, transposed, n_labels, backward, t - 1)
    count_transitions(forward, backward, tables.factors[0], length, gains, counts)


@helper
def restore_total(forward, backward, t):
    """Scale backward[t] so that the marginals at t add up to one again: rounding has moved them away."""
    number = forward.dtype.type
    sums = splat(number(0))
    for c in range(0, forward.shape[1], LANES):
        sums = plus(sums, times(fetch(forward, t, c), fetch(backward, t, c)))
    inverse = number(1) / total(sums)
    for c in range(0, forward.shape[1], LANES):
        store(backward, t, c, times(inverse, fetch(backward, t, c)))


@helper
def sample_paths(nodes, pairs, draws, outputs, tables):
    """Draw a path into each row of `outputs`: its last label, then one after the other down to the first.

    `draws` holds a number in [0, 1) for each label to be drawn.
    """
    length, n_labels = nodes.shape
    forward = tables.forward
    weights = tables.gains
    _, is_safe = forward_shares(nodes, pairs, tables)
    if not is_safe:
        sample_log_paths(nodes, pairs, draws, outputs, tables)
        return
    for k in range(outputs.shape[0]):
        for t in range(length - 1, -1, -1):
            for a in range(n_labels):
                weights[0, a] = forward[t, a]
                if t < length - 1:
                    weights[0, a] *= tables.factors[0, a, outputs[k, t + 1]]
            outputs[k, t] = draw_label(weights[0, :n_labels], draws[k, t])


@helper
def count_transitions(forward, backward, factor, length, sums, counts):
    """The sum of the outer products forward[t - 1]' backward[t], times `factor` elementwise; works in sums[:4]."""
    n_labels = counts.shape[0]
    for a in range(0, n_labels, 4):
        four = a, min(a + 1, n_labels - 1), min(a + 2, n_labels - 1), min(a + 3, n_labels - 1)
        count_labels(four, forward, 0, backward, 1, length - 1, factor, sums)
        copy_row(sums, 0, counts, four[0], n_labels)
        copy_row(sums, 1, counts, four[1], n_labels)
        copy_row(sums, 2, counts, four[2], n_labels)
        copy_row(sums, 3, counts, four[3], n_labels)


@helper
def count_labels(four, shares, t, rows, first, n, factor, sums):
    """sums[:4], four rows of the sum over j < n of shares[t + j]' rows[first + j], times `factor` elementwise."""
    for c in range(0, factor.shape[1], LANES):
        p, q, r, s = sum_products(shares, t, four, rows, first, 1, n, c)
        store(sums, 0, c, times(fetch(factor, four[0], c), p))
        store(sums, 1, c, times(fetch(factor, four[1], c), q))
        store(sums, 2, c, times(fetch(factor, four[2], c), r))
        store(sums, 3, c, times(fetch(factor, four[3], c), s))


@helper(forceinline=True)
def sum_products(shares, t, columns, rows, first, stride, n, c):
    """The sums over j < n of shares[t + j, s] rows[first + j stride, c : c + 8], of four columns s of shares."""
    p, q, r, s = columns
    sums_p = sums_q = sums_r = sums_s = splat(rows.dtype.type(0))
    for j in range(n):
        x = fetch(rows, first + j * stride, c)
        sums_p = fma(at(shares, t + j, p), x, sums_p)
        sums_q = fma(at(shares, t + j, q), x, sums_q)
        sums_r = fma(at(shares, t + j, r), x, sums_r)
        sums_s = fma(at(shares, t + j, s), x, sums_s)
    return sums_p, sums_q, sums_r, sums_s


@helper
def exponentiate(pairs, known, factors, extent):
    """Fill factors[0] with exp(pairs - their maximum), factors[1] with its transpose.

    They are there already if `known` holds the same pairs. Fills `extent` with the maximum and the spread of possible
    pairs.
    """
    n_labels = pairs.shape[0]
    given = matrix(pairs, 0, 1, pairs.size)
    n_same = 0  # counts vectorise, early exits do not
    for p in range(pairs.size):
        n_same += given[0, p] == known[0, p]
    if n_same == pairs.size:
        return
    copy_row(given, 0, known, 0, pairs.size)
    table = factors[0]
    width = table.shape[1]
    number = pairs.dtype.type
    impossible = splat(number(IMPOSSIBLE))
    for a in range(n_labels):
        store(table, a, width - LANES, impossible)
        copy_row(pairs, a, table, a, n_labels)
    tops = impossible
    bottoms = splat(number(-IMPOSSIBLE))
    for a in range(n_labels):
        for c in range(0, width, LANES):
            x = fetch(table, a, c)
            tops = upper(tops, x)
            bottoms = lower(bottoms, where_below(x, number(IMPOSSIBLE / 2), splat(number(-IMPOSSIBLE)), x))
    top = highest(tops)
    for a in range(n_labels):
        for c in range(0, width, LANES):
            store(table, a, c, exp(plus(-top, fetch(table, a, c))))
        for b in range(n_labels):
            factors[1, b, a] = table[a, b]
    extent[0] = top
    extent[1] = max(top - lowest(bottoms), number(0))
