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
    LANES,
    at,
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
    sum_products,
)
from maxmargin.structures.second_order.contexts import ALONE, Contexts, count_states, find_state
from maxmargin.structures.second_order.state_paths import StateTables, new_state_tables

TILE = 16  # positions whose transitions are counted at once
FEW = 3  # states of a label that are summed one by one, and not a vector at once


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
    cells: np.ndarray  # (K,) uint32, of the labels of each context in a table of W columns


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
        cells=(contexts.before * width + contexts.label).astype(np.uint32),
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
        for c in range(n_labels):
            factor = splat(at(factors, b, c))
            for s in range(width + contexts.starts[b], width + contexts.starts[b + 1], LANES):
                store(tables.transposed, c, s, factor)  # what is beyond them comes next
    for q in range(n_trigrams):
        s = width + contexts.context[q]
        c = contexts.after[q]
        factor = tables.ratios[0, q] * at(table, contexts.label[contexts.context[q]], c)
        factors[s, c] = factor
        tables.transposed[c, s] = factor


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
            steps = matrix(tables.states.steps, 0, 1, n_labels * width)
            states = matrix(forward, t * n_states + width, 1, n_contexts)
            for k in range(n_contexts):
                states[0, k] = steps[0, tables.cells[k]]
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
        first = width + contexts.starts[b]
        last = width + contexts.starts[b + 1]
        for c in range(0, width, LANES):
            sums = times(at(forward, t - 1, b), fetch(factors, b, c))
            for s in range(first, last):
                sums = fma(at(forward, t - 1, s), fetch(factors, s, c), sums)
            store(steps, b, c, times(fetch(gains, t, c), sums))
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
    pairs = matrix(onward, row * width, 1, n_labels * width)
    for k in range(contexts.label.size):
        pairs[0, tables.cells[k]] = at(gains, t, contexts.label[k]) * at(backward, t, width + k)
    for b in range(n_labels):
        backward[t - 1, b] = inner_of_rows(factors, b, onward, row + b)
        s = width + contexts.starts[b]
        last = width + contexts.starts[b + 1]
        while s + FEW < last:
            sums0 = sums1 = sums2 = sums3 = zero  # four at a time, as each waits for its last addition
            for c in range(0, n_labels, 4):
                sums0 = fma(at(onward, row + b, c), fetch(transposed, c, s), sums0)
                sums1 = fma(at(onward, row + b, c + 1), fetch(transposed, c + 1, s), sums1)
                sums2 = fma(at(onward, row + b, c + 2), fetch(transposed, c + 2, s), sums2)
                sums3 = fma(at(onward, row + b, c + 3), fetch(transposed, c + 3, s), sums3)
            store(backward, t - 1, s, plus(plus(sums0, sums1), plus(sums2, sums3)))  # what is beyond them comes next
            s += LANES
        while s < last:
            backward[t - 1, s] = inner_of_rows(factors, s, onward, row + b)
            s += 1


@helper
def inner_of_rows(a, s, b, t):
    """The inner product of a[s] and b[t]."""
    sums = times(fetch(a, s, 0), fetch(b, t, 0))
    for c in range(LANES, a.shape[1], LANES):
        sums = fma(fetch(a, s, c), fetch(b, t, c), sums)
    return total(sums)


@helper
def count_tile(n_labels, contexts, begin, end, tables):
    """Add the transitions into the positions from begin to end, whose rows of `onward` are filled, to the counts."""
    forward, counts, onward = tables.states.forward, tables.counts, tables.onward
    for b in range(n_labels):
        last = count_states(contexts, b) - 1
        for j in range(0, last + 1, 4):
            p = find_state(contexts, b, j, counts.shape[1])
            q = find_state(contexts, b, min(j + 1, last), counts.shape[1])
            r = find_state(contexts, b, min(j + 2, last), counts.shape[1])
            s = find_state(contexts, b, min(j + 3, last), counts.shape[1])
            for c in range(0, counts.shape[1], LANES):
                into_p, into_q, into_r, into_s = sum_products(
                    forward, begin - 1, (p, q, r, s), onward, b, n_labels, end - begin, c
                )
                into_p = plus(into_p, fetch(counts, p, c))
                into_q = plus(into_q, fetch(counts, q, c))
                into_r = plus(into_r, fetch(counts, r, c))
                into_s = plus(into_s, fetch(counts, s, c))
                store(counts, p, c, into_p)  # after all are read: some may be the same
                store(counts, q, c, into_q)
                store(counts, r, c, into_r)
                store(counts, s, c, into_s)


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
        for c in range(0, width, LANES):
            sums = fetch(counts, b, c)
            for s in range(width + contexts.starts[b], width + contexts.starts[b + 1]):
                sums = plus(sums, fetch(counts, s, c))
            store(counts, b, c, sums)
        for c in range(n_labels):
            pairs[b, c] += at(counts, b, c)
    for q in range(contexts.after.size):
        trigrams[q] += at(counts, width + contexts.context[q], contexts.after[q])
