"""Sums over all labellings of chains of second order: forward-backward in probabilities.

Arguments are those of `state_paths`. Where probabilities leave the range of numbers,
`maxmargin.structures.second_order.state_logs` takes over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.lanes import (
    BLOCK,
    LANES,
    at,
    columns_of_block,
    copy_row,
    fetch,
    fma,
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
from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_sums import (
    UNTIL_DRIFT,
    SumTables,
    exponentiate,
    exponentiate_rows,
    new_tables,
    restore_total,
)
from maxmargin.structures.second_order.contexts import ALONE, Contexts, count_states, find_state
from maxmargin.structures.second_order.state_paths import StateTables, new_state_tables

TILE = 16  # positions whose transitions are counted at once


class StateSums(NamedTuple):
    """What sums work in; S = W + K states, in full vectors."""

    states: StateTables  # which are also Viterbi's
    pairs: SumTables  # exponentials of transitions
    trigrams: np.ndarray  # (1, Q + 1) the trigrams whose exponentials are in `ratios`, and zero, for none
    ratios: np.ndarray  # (1, Q + 1) exp(trigrams - their maximum), in full vectors
    extent: np.ndarray  # (2,) the maximum and the spread of possible scores of transitions with trigrams
    gains: np.ndarray  # (T, W) exp(nodes - their maximum)
    factors: np.ndarray  # (S, W) exp(scores - their maximum)
    counts: np.ndarray  # (S, W) expected transitions from each state to each label
    transposed: np.ndarray  # (W, S) the transpose of the factors
    onward: np.ndarray  # (TILE L, W) shares of what comes from positions of a tile on, by that label and the one before
    passes: np.ndarray  # (L, W) 1 for two labels that are no context, else 0
    shares: np.ndarray  # (1, S) probabilities of the states of one position


def new_state_sums(length: int, contexts: Contexts, dtype: DTypeLike) -> StateSums:
    """Tables for labellings of that length."""
    states = new_state_tables(length, contexts, dtype)
    n_labels, n_trigrams = len(contexts.number), len(contexts.after)
    width = padded(n_labels)
    passes = aligned((n_labels, width), dtype)
    passes[:, :n_labels] = contexts.number == ALONE
    trigrams = aligned((1, n_trigrams + 1), dtype)
    trigrams[:] = 0
    return StateSums(
        states=states,
        pairs=new_tables(0, n_labels, dtype),
        trigrams=trigrams,
        ratios=aligned((1, padded(n_trigrams + 1)), dtype),
        extent=aligned((2,), dtype),
        gains=aligned((length, width), dtype),
        factors=aligned(states.scores.shape, dtype),
        counts=aligned(states.scores.shape, dtype),
        transposed=aligned((width, states.forward.shape[1]), dtype),
        onward=aligned((min(length, TILE) * n_labels, width), dtype),
        passes=passes,
        shares=aligned((1, len(states.scores)), dtype),
    )


@helper
def exponentiate_scores(pairs, trigrams, contexts, tables):
    """Factors = exp(scores - their maximum), of transitions and of trigrams; fills `extent`, too.

    They are there already if potentials are the same as last time.
    """
    n_labels = pairs.shape[0]
    n_trigrams = trigrams.size
    given = matrix(pairs, 0, 1, pairs.size)
    n_same = 0  # counts vectorise, early exits do not
    for p in range(pairs.size):
        n_same += given[0, p] == tables.pairs.known[0, p]
    for q in range(n_trigrams):
        n_same += trigrams[q] == tables.trigrams[0, q]
    if n_same == pairs.size + n_trigrams:
        return
    for q in range(n_trigrams):
        tables.trigrams[0, q] = trigrams[q]
    exponentiate(pairs, tables.pairs.known, tables.pairs.factors, tables.pairs.extent)
    top, spread = exponentiate_rows(tables.trigrams, tables.ratios)
    tables.extent[0] = tables.pairs.extent[0] + top
    tables.extent[1] = tables.pairs.extent[1] + spread
    factors = tables.factors
    table = tables.pairs.factors[0]
    width = factors.shape[1]
    alone = tables.ratios[0, n_trigrams]
    for b in range(n_labels):
        for c in range(0, width, LANES):
            factor = times(alone, fetch(table, b, c))
            store(factors, b, c, factor)
            for k in range(contexts.starts[b], contexts.starts[b + 1]):
                store(factors, width + k, c, factor)
    for q in range(n_trigrams):
        k = contexts.context[q]
        c = contexts.after[q]
        factors[width + k, c] = table[contexts.label[k], c] * tables.ratios[0, q]
    for k in range(contexts.label.size):
        for c in range(n_labels):
            tables.transposed[c, width + k] = at(factors, width + k, c)


@helper
def forward_shares(nodes, contexts, tables):
    """Fill forward[t] with the probabilities of the states at t given what comes before, and `gains` with exp(nodes).

    Probabilities are rescaled at each position, and `gains` with them; after `exponentiate_scores`. One step multiplies
    the share of a state by no less than exp(-spread), the spread of the potentials, so as long as all shares are so
    far above the smallest number nothing underflows. Return the log-partition function, and whether this was so: if
    not, more digits or the log domain must take over.
    """
    length, n_labels = nodes.shape
    number = nodes.dtype.type
    forward = tables.states.forward
    gains = tables.gains
    width = gains.shape[1]
    n_states = forward.shape[1]
    n_contexts = contexts.label.size
    log_z, spread = exponentiate_rows(nodes, gains)
    spread += tables.extent[1]
    is_safe = spread <= number(43.0 if nodes.itemsize == 4 else 500.0)
    if not is_safe:
        return log_z, is_safe
    tiny = number(math.exp(spread)) * number(1e-37 if nodes.itemsize == 4 else 1e-300)
    smallest = number(1.4e-45 if nodes.itemsize == 4 else 4.9e-324)  # above zero
    log_z += np.float64(tables.extent[0]) * (length - 1)
    product = 1.0  # of the totals: one logarithm for many of them
    least = splat(number(1))
    for t in range(length):
        for s in range(width, n_states, LANES):
            store(forward, t, s, splat(number(0)))
        if t == 0:
            copy_row(gains, 0, forward, 0, width)
        else:
            step_forward(n_labels, contexts, t, tables)
            for k in range(n_contexts):
                forward[t, width + k] = at(tables.states.steps, contexts.before[k], contexts.label[k])
        sums = splat(number(0))
        for s in range(0, n_states, LANES):
            sums = plus(sums, fetch(forward, t, s))
        sum_of_shares = total(sums)
        inverse = number(1) / max(sum_of_shares, tiny)
        for s in range(0, n_states, LANES):
            share = times(inverse, fetch(forward, t, s))
            store(forward, t, s, share)
            least = lower(least, where_below(share, smallest, splat(number(1)), share))
        for c in range(0, width, LANES):
            store(gains, t, c, times(inverse, fetch(gains, t, c)))
        is_safe = is_safe and sum_of_shares > tiny
        product *= np.float64(sum_of_shares)
        if product < 1e-150 or product > 1e150:
            log_z += math.log(max(product, 1e-300))
            product = 1.0
    return log_z + math.log(product), is_safe and lowest(least) >= tiny


@helper
def step_forward(n_labels, contexts, t, tables):
    """Fill `steps` with the shares of the labels at t - 1 and t, and forward[t] with those of labels alone."""
    steps, forward = tables.states.steps, tables.states.forward
    gains, factors, passes = tables.gains, tables.factors, tables.passes
    width = gains.shape[1]
    for b in range(n_labels):
        for begin in range(0, width, BLOCK):
            c0, c1, c2, c3 = columns_of_block(begin, width)
            share = at(forward, t - 1, b)
            sums0 = times(share, fetch(factors, b, c0))
            sums1 = times(share, fetch(factors, b, c1))
            sums2 = times(share, fetch(factors, b, c2))
            sums3 = times(share, fetch(factors, b, c3))
            for s in range(width + contexts.starts[b], width + contexts.starts[b + 1]):
                share = at(forward, t - 1, s)
                sums0 = fma(share, fetch(factors, s, c0), sums0)
                sums1 = fma(share, fetch(factors, s, c1), sums1)
                sums2 = fma(share, fetch(factors, s, c2), sums2)
                sums3 = fma(share, fetch(factors, s, c3), sums3)
            store(steps, b, c0, times(fetch(gains, t, c0), sums0))
            store(steps, b, c1, times(fetch(gains, t, c1), sums1))
            store(steps, b, c2, times(fetch(gains, t, c2), sums2))
            store(steps, b, c3, times(fetch(gains, t, c3), sums3))
    for c in range(0, width, LANES):
        sums = times(fetch(passes, 0, c), fetch(steps, 0, c))
        for b in range(1, n_labels):
            sums = fma(fetch(passes, b, c), fetch(steps, b, c), sums)
        store(forward, t, c, sums)


@helper
def backward_shares(contexts, means, tables):
    """After `forward_shares`: marginals into `means`, expected transitions into `counts` of the tables."""
    length, n_labels = means.shape
    number = means.dtype.type
    forward, backward = tables.states.forward, tables.states.arrivals
    counts = tables.counts
    clear(matrix(counts, 0, 1, counts.size)[0])
    for s in range(0, backward.shape[1], LANES):
        store(backward, length - 1, s, splat(number(1)))
    for t in range(length - 1, -1, -1):
        if t % UNTIL_DRIFT == UNTIL_DRIFT - 1:
            restore_total(forward, backward, t)
        fill_means(contexts, forward, backward, t, counts.shape[1], means)
        if t > 0:
            step_back(n_labels, contexts, t, (t - 1) % TILE * n_labels, tables)
            if (t - 1) % TILE == 0:
                count_tile(n_labels, contexts, t, min(t + TILE, length), tables)
    for s in range(counts.shape[0]):
        for c in range(0, counts.shape[1], LANES):
            store(counts, s, c, times(fetch(tables.factors, s, c), fetch(counts, s, c)))


@helper
def step_back(n_labels, contexts, t, row, tables):
    """Fill backward[t - 1], and the rows of `onward` from that one on, one for each label at t - 1."""
    backward, gains, factors, onward = tables.states.arrivals, tables.gains, tables.factors, tables.onward
    transposed = tables.transposed
    width = gains.shape[1]
    zero = splat(gains.dtype.type(0))
    for s in range(width, backward.shape[1], LANES):
        store(backward, t - 1, s, zero)
    for c in range(0, width, LANES):
        alone = times(fetch(gains, t, c), fetch(backward, t, c))
        for b in range(n_labels):
            store(onward, row + b, c, alone)
    for k in range(contexts.label.size):
        c = contexts.label[k]
        onward[row + contexts.before[k], c] = at(gains, t, c) * at(backward, t, width + k)
    for b in range(n_labels):
        sums = zero
        for c in range(0, width, LANES):
            sums = fma(fetch(factors, b, c), fetch(onward, row + b, c), sums)
        backward[t - 1, b] = total(sums)
        for s in range(width + contexts.starts[b], width + contexts.starts[b + 1], LANES):
            sums0 = sums1 = sums2 = sums3 = zero  # four at a time, as each waits for its last addition
            for c in range(0, n_labels, 4):
                sums0 = fma(at(onward, row + b, c), fetch(transposed, c, s), sums0)
                sums1 = fma(at(onward, row + b, c + 1), fetch(transposed, c + 1, s), sums1)
                sums2 = fma(at(onward, row + b, c + 2), fetch(transposed, c + 2, s), sums2)
                sums3 = fma(at(onward, row + b, c + 3), fetch(transposed, c + 3, s), sums3)
            store(backward, t - 1, s, plus(plus(sums0, sums1), plus(sums2, sums3)))  # what is beyond them comes next


@helper
def count_tile(n_labels, contexts, begin, end, tables):
    """Add the transitions into the positions from begin to end, whose rows of `onward` are filled, to the counts."""
    forward, counts, onward = tables.states.forward, tables.counts, tables.onward
    width = counts.shape[1]
    for b in range(n_labels):
        n_states = count_states(contexts, b)
        for j in range(0, n_states, 2):  # two states and four vectors in registers, as in `count_transitions`
            r = find_state(contexts, b, j, width)
            s = find_state(contexts, b, min(j + 1, n_states - 1), width)
            for first in range(0, width, BLOCK):
                c0, c1, c2, c3 = columns_of_block(first, width)
                r0 = fetch(counts, r, c0)
                r1 = fetch(counts, r, c1)
                r2 = fetch(counts, r, c2)
                r3 = fetch(counts, r, c3)
                s0 = fetch(counts, s, c0)
                s1 = fetch(counts, s, c1)
                s2 = fetch(counts, s, c2)
                s3 = fetch(counts, s, c3)
                for t in range(begin, end):
                    row = (t - begin) * n_labels + b
                    x0 = fetch(onward, row, c0)
                    x1 = fetch(onward, row, c1)
                    x2 = fetch(onward, row, c2)
                    x3 = fetch(onward, row, c3)
                    share = at(forward, t - 1, r)
                    r0 = fma(share, x0, r0)
                    r1 = fma(share, x1, r1)
                    r2 = fma(share, x2, r2)
                    r3 = fma(share, x3, r3)
                    share = at(forward, t - 1, s)
                    s0 = fma(share, x0, s0)
                    s1 = fma(share, x1, s1)
                    s2 = fma(share, x2, s2)
                    s3 = fma(share, x3, s3)
                store(counts, r, c0, r0)
                store(counts, r, c1, r1)
                store(counts, r, c2, r2)
                store(counts, r, c3, r3)
                store(counts, s, c0, s0)
                store(counts, s, c1, s1)
                store(counts, s, c2, s2)
                store(counts, s, c3, s3)


@helper
def fill_means(contexts, forward, backward, t, width, means):
    """Fill means[t] with the probabilities of labels, given the shares of what is before and after states."""
    for b in range(means.shape[1]):
        share = forward[t, b] * backward[t, b]
        for s in range(width + contexts.starts[b], width + contexts.starts[b + 1]):
            share += at(forward, t, s) * at(backward, t, s)
        means[t, b] = share


@helper
def add_counts(contexts, tables, pairs, trigrams):
    """Add those of the tables to the expected numbers of pairs and of trigrams."""
    counts = tables.counts
    n_labels = pairs.shape[0]
    width = counts.shape[1]
    for b in range(n_labels):
        for c in range(n_labels):
            pairs[b, c] += counts[b, c]
    for k in range(contexts.label.size):
        for c in range(n_labels):
            pairs[contexts.label[k], c] += at(counts, width + k, c)
    for q in range(contexts.after.size):
        trigrams[q] += at(counts, width + contexts.context[q], contexts.after[q])
