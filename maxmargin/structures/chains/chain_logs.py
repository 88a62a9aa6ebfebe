"""Sums over all labellings of a chain in logarithms: forward-backward that is safe for any potentials.

Arguments and tables are those of `chain_sums`, whose probabilities underflow where potentials
differ by hundreds. A pair of labels takes one exponential on the way forward and one on the way back, where the shares
of the labels that may follow another are kept until it is known how probable that one is.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin.arrays.exponential import exp
from maxmargin.arrays.lanes import LANES, at, copy_row, fetch, highest, plus, splat, store, times, total, upper
from maxmargin.arrays.vectors import first_best
from maxmargin.arrays.views import matrix
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_dp import exact, pairs_into, subtract_highest


@exact
def log_forward(nodes, pairs, tables):
    """Fill forward[t, b] with the log of the sum over paths that end in label b at t, up to a constant for each t.

    The largest of each t is zero, so that rounding is that of the potentials, not of their sums. Return the
    log-partition function.
    """
    length, n_labels = nodes.shape
    forward = tables.forward
    copy_row(nodes, 0, forward, 0, n_labels)
    log_z = np.float64(subtract_highest(forward, 0, n_labels))
    for t in range(1, length):
        if t == 1 or pairs.ndim == 1:
            pad_pairs(pairs_into(pairs, t, n_labels), tables)
        log_z += log_step(nodes, t, tables)
    sum_of_shares = 0.0
    for b in range(n_labels):
        sum_of_shares += math.exp(forward[length - 1, b])
    return log_z + math.log(sum_of_shares)


@exact
def log_step(nodes, t, tables):
    """Position t of `log_forward`, by the pairs that `pad_pairs` has put there: return what its row lacks more."""
    n_labels = nodes.shape[1]
    forward = tables.forward
    tops = tables.gains
    table = tables.factors[1]
    number = nodes.dtype.type
    for c in range(0, table.shape[1], LANES):
        top = plus(at(forward, t - 1, 0), fetch(table, 0, c))
        for a in range(1, n_labels):
            top = upper(top, plus(at(forward, t - 1, a), fetch(table, a, c)))
        low = times(number(-1), top)
        sums = splat(number(0))
        for a in range(n_labels):
            sums = plus(sums, exp(plus(low, plus(at(forward, t - 1, a), fetch(table, a, c)))))
        store(tops, 0, c, top)
        store(forward, t, c, sums)
    for b in range(n_labels):
        forward[t, b] = nodes[t, b] + (tops[0, b] + math.log(forward[t, b]))
    return subtract_highest(forward, t, n_labels)


@exact
def log_backward(nodes, pairs, means, counts, tables):
    """After `log_forward`: marginals into `means`, expected transitions into `counts`, which lie as the pairs do.

    The marginals of each position, and the labels that follow a label, are divided by their sum.
    """
    length, n_labels = nodes.shape
    every = matrix(counts, 0, 1, counts.size)
    for p in range(counts.size):
        every[0, p] = 0
    for b in range(n_labels):
        tables.backward[length - 1, b] = 0
    fill_marginals(tables.forward, tables.backward, means, length - 1)
    for t in range(length - 1, 0, -1):
        if pairs.ndim == 1:
            pad_pairs(pairs_into(pairs, t, n_labels), tables)
        log_step_back(nodes, t, means, pairs_into(counts, t, n_labels), tables)


@exact
def log_step_back(nodes, t, means, counts, tables):
    """From position t of `log_backward` to the one before; the transitions between them are added to `counts`."""
    n_labels = nodes.shape[1]
    backward = tables.backward
    table = tables.factors[1]
    follow = tables.factors[0]
    rows = tables.gains  # of the scores from a label on, and of the inverse sums of their exponentials
    number = nodes.dtype.type
    width = table.shape[1]
    store(rows, 0, width - LANES, splat(number(IMPOSSIBLE)))
    for b in range(n_labels):
        rows[0, b] = nodes[t, b] + backward[t, b]
    for a in range(n_labels):
        tops = plus(fetch(table, a, 0), fetch(rows, 0, 0))
        for c in range(LANES, width, LANES):
            tops = upper(tops, plus(fetch(table, a, c), fetch(rows, 0, c)))
        top = highest(tops)
        sums = splat(number(0))
        for c in range(0, width, LANES):
            share = exp(plus(-top, plus(fetch(table, a, c), fetch(rows, 0, c))))
            store(follow, a, c, share)
            sums = plus(sums, share)
        sum_of_shares = total(sums)
        rows[1, a] = number(1) / sum_of_shares
        backward[t - 1, a] = top + math.log(sum_of_shares)
    subtract_highest(backward, t - 1, n_labels)
    fill_marginals(tables.forward, backward, means, t - 1)
    for a in range(n_labels):
        share = means[t - 1, a] * rows[1, a]
        if share > 0:
            for b in range(n_labels):
                counts[a, b] += share * follow[a, b]


@exact
def sample_log_paths(nodes, pairs, draws, outputs, tables):
    """Draw a path into each row of `outputs`; see `chain_sums.sample_paths`."""
    length, n_labels = nodes.shape
    weights = tables.gains
    log_forward(nodes, pairs, tables)
    for k in range(outputs.shape[0]):
        for t in range(length - 1, -1, -1):
            for a in range(n_labels):
                weights[0, a] = tables.forward[t, a]
                if t < length - 1:
                    weights[0, a] += pairs_into(pairs, t + 1, n_labels)[a, outputs[k, t + 1]]
            top = weights[0, first_best(weights[0, :n_labels])]
            for a in range(n_labels):
                weights[0, a] = math.exp(weights[0, a] - top)
            outputs[k, t] = draw_label(weights[0, :n_labels], draws[k, t])


@helper
def draw_label(weights, draw):
    """A label with a probability proportional to its weight: where the running sum exceeds the share `draw` of all."""
    total = 0.0
    for a in range(weights.size):
        total += weights[a]
    label = 0
    below = 0.0
    for a in range(weights.size):
        if weights[a] > 0 and (below <= draw * total):
            label = a
        below += weights[a]
    return label


@exact
def transition_marginals(nodes, pairs, chosen, out, tables):
    """out[t K + k] = p(y_t = a, y_{t+1} = b), where chosen[k] = a L + b is one of K pairs; tables in float64.

    The labels that follow a label have probabilities that add up to one, so that what is multiplied, forwards, are
    probabilities all the way.
    """
    length, n_labels = nodes.shape
    backward = tables.backward  # the log of the sum over what comes after a label, up to a constant for each t
    shares = tables.forward  # of labels
    follow = tables.factors[0]
    tables.known[0, 0] = 2 * IMPOSSIBLE  # whose exponentials are no longer there
    for b in range(n_labels):
        backward[length - 1, b] = 0
    for t in range(length - 1, 0, -1):
        for a in range(n_labels):
            backward[t - 1, a] = log_sum_after(nodes, pairs, backward, t, a)
        subtract_highest(backward, t - 1, n_labels)
    for b in range(n_labels):
        shares[0, b] = nodes[0, b] + backward[0, b]
    share_out(shares, 0, n_labels)
    for t in range(1, length):
        for b in range(n_labels):
            shares[t, b] = 0
        for a in range(n_labels):
            for b in range(n_labels):
                follow[a, b] = pairs[a, b] + (nodes[t, b] + backward[t, b])
            share_out(follow, a, n_labels)
            for b in range(n_labels):
                follow[a, b] *= shares[t - 1, a]
                shares[t, b] += follow[a, b]
        for k in range(chosen.size):
            out[(t - 1) * chosen.size + k] = follow[chosen[k] // n_labels, chosen[k] % n_labels]


@exact
def log_sum_after(nodes, pairs, backward, t, a):
    """The log of the sum over the labels at t, and what comes after them, that follow label a."""
    n_labels = nodes.shape[1]
    top = np.float64(pairs[a, 0]) + (nodes[t, 0] + backward[t, 0])
    for b in range(1, n_labels):
        top = max(top, pairs[a, b] + (nodes[t, b] + backward[t, b]))
    total_share = 0.0
    for b in range(n_labels):
        total_share += math.exp(pairs[a, b] + (nodes[t, b] + backward[t, b]) - top)
    return top + math.log(total_share)


@exact
def share_out(rows, t, n_labels):
    """Put probabilities in the place of their logarithms, which are up to a constant."""
    subtract_highest(rows, t, n_labels)
    sum_of_shares = 0.0
    for b in range(n_labels):
        rows[t, b] = math.exp(rows[t, b])
        sum_of_shares += rows[t, b]
    for b in range(n_labels):
        rows[t, b] /= sum_of_shares


@exact
def fill_marginals(forward, backward, means, t):
    """Fill means[t] with the probabilities of the labels at t."""
    n_labels = means.shape[1]
    for b in range(n_labels):
        means[t, b] = forward[t, b] + backward[t, b]
    share_out(means, t, n_labels)


@exact
def pad_pairs(pairs, tables):
    """Put the pairs into padded rows, in place of their exponentials."""
    n_labels = pairs.shape[0]
    table = tables.factors[1]
    tables.known[0, 0] = 2 * IMPOSSIBLE
    for a in range(n_labels):
        store(table, a, table.shape[1] - LANES, splat(pairs.dtype.type(IMPOSSIBLE)))
        copy_row(pairs, a, table, a, n_labels)
