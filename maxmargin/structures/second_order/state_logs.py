"""Sums over all labellings of chains of second order in logarithms, safe for any potentials; samples.

Arguments are those of `state_sums`. Rows of tables are up to a constant each, the highest number zero.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin.arrays.exponential import exp
from maxmargin.arrays.lanes import LANES, at, fetch, highest, plus, splat, store, times, total, upper
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.chains.chain_dp import exact, pairs_into
from maxmargin.structures.chains.chain_logs import draw_label
from maxmargin.structures.second_order.contexts import count_states, find_state, label_of, state_after
from maxmargin.structures.second_order.state_paths import (
    add_pairs,
    arrive,
    fill_steps,
    highest_state,
    subtract_highest_state,
)
from maxmargin.structures.second_order.state_sums import add_counts


@exact
def log_forward(nodes, pairs, contexts, tables):
    """Fill forward[t, s] with the log of the sum over paths to state s at t; return the log-partition function."""
    length, n_labels = nodes.shape
    states = tables.states
    steps, bypass, forward = states.steps, states.bypass, states.forward
    width = steps.shape[1]
    log_z = 0.0
    for t in range(length):
        if t > 0:
            log_steps(n_labels, contexts, t, states)
            add_pairs(pairs, t, steps)
        for c in range(n_labels):
            forward[t, c] = nodes[t, c]
            if t > 0:
                forward[t, c] += log_bypass(steps, bypass, c)
        for k in range(contexts.label.size):
            c = contexts.label[k]
            forward[t, width + k] = nodes[t, c] + steps[contexts.before[k], c] if t > 0 else IMPOSSIBLE
        log_z += subtract_highest_state(forward, t, n_labels, width, contexts)
    shares = 0.0
    for b in range(n_labels):
        for j in range(count_states(contexts, b)):
            shares += math.exp(forward[length - 1, find_state(contexts, b, j, width)])
    return log_z + math.log(shares)


@exact
def log_steps(n_labels, contexts, t, states):
    """steps[b, c], the log of the sum over paths whose labels at t - 1 and t are b and c, by the table of scores."""
    scores, steps, forward = states.scores, states.steps, states.forward
    sums = states.follow
    width = scores.shape[1]
    for b in range(n_labels):
        first = width + contexts.starts[b]
        last = width + contexts.starts[b + 1]
        for c in range(0, width, LANES):
            alone = plus(at(forward, t - 1, b), fetch(scores, b, c))
            top = alone
            for s in range(first, last):
                top = upper(top, plus(at(forward, t - 1, s), fetch(scores, s, c)))
            low = times(np.float64(-1), top)
            shares = exp(plus(low, alone))
            for s in range(first, last):
                shares = plus(shares, exp(plus(low, plus(at(forward, t - 1, s), fetch(scores, s, c)))))
            store(steps, b, c, top)
            store(sums, b, c, shares)
        for c in range(n_labels):
            steps[b, c] += math.log(sums[b, c])


@exact
def log_bypass(steps, bypass, c):
    """The log of the sum over steps to label c that end no context."""
    top = steps[0, c] + bypass[0, c]
    for b in range(1, steps.shape[0]):
        top = max(top, steps[b, c] + bypass[b, c])
    shares = 0.0
    for b in range(steps.shape[0]):
        shares += math.exp(steps[b, c] + bypass[b, c] - top)
    return top + math.log(shares)


@exact
def log_backward(nodes, pairs, contexts, means, counts, trigrams, tables):
    """After `log_forward`: marginals into `means`; adds the expected numbers of pairs and of trigrams to theirs."""
    length, n_labels = nodes.shape
    log_end(contexts, means, tables)
    for t in range(length - 1, 0, -1):
        log_step_back(nodes, pairs, contexts, t, means, tables)
        add_counts(contexts, tables, pairs_into(counts, t, n_labels), trigrams)


@exact
def log_end(contexts, means, tables):
    """The last position of `log_backward`."""
    length = means.shape[0]
    backward = tables.states.arrivals
    for s in range(backward.shape[1]):
        backward[length - 1, s] = 0
    fill_shares(contexts, length - 1, means, tables)


@exact
def log_step_back(nodes, pairs, contexts, t, means, tables):
    """From position t of `log_backward` to the one before; `counts` of the tables are those between them."""
    n_labels = nodes.shape[1]
    scores, steps, backward = tables.states.scores, tables.states.steps, tables.states.arrivals
    follow = tables.states.follow
    width = scores.shape[1]
    fill_steps(nodes, pairs, contexts, backward, t, steps)
    for b in range(n_labels):
        for j in range(count_states(contexts, b)):
            s = find_state(contexts, b, j, width)
            tops = plus(fetch(scores, s, 0), fetch(steps, b, 0))
            for c in range(LANES, width, LANES):
                tops = upper(tops, plus(fetch(scores, s, c), fetch(steps, b, c)))
            top = highest(tops)
            sums = splat(np.float64(0))
            for c in range(0, width, LANES):
                share = exp(plus(-top, plus(fetch(scores, s, c), fetch(steps, b, c))))
                store(follow, s, c, share)
                sums = plus(sums, share)
            sum_of_shares = total(sums)
            backward[t - 1, s] = top + math.log(sum_of_shares)
            inverse = 1 / sum_of_shares
            for c in range(0, width, LANES):
                store(follow, s, c, times(inverse, fetch(follow, s, c)))  # the probability that label c comes next
    subtract_highest_state(backward, t - 1, n_labels, width, contexts)
    fill_shares(contexts, t - 1, means, tables)
    for b in range(n_labels):
        for j in range(count_states(contexts, b)):
            s = find_state(contexts, b, j, width)
            for c in range(0, width, LANES):
                store(tables.counts, s, c, times(at(tables.shares, 0, s), fetch(follow, s, c)))


@exact
def fill_shares(contexts, t, means, tables):
    """Fill `shares` with the probabilities of the states at t, and means[t] with those of labels."""
    n_labels = means.shape[1]
    forward, backward, shares = tables.states.forward, tables.states.arrivals, tables.shares
    width = tables.gains.shape[1]
    for s in range(width + contexts.label.size):
        shares[0, s] = forward[t, s] + backward[t, s]
    top = highest_state(shares, 0, n_labels, width, contexts)
    sum_of_shares = 0.0
    for b in range(n_labels):
        for j in range(count_states(contexts, b)):
            s = find_state(contexts, b, j, width)
            shares[0, s] = math.exp(shares[0, s] - top)
            sum_of_shares += shares[0, s]
    for b in range(n_labels):
        means[t, b] = 0
        for j in range(count_states(contexts, b)):
            s = find_state(contexts, b, j, width)
            shares[0, s] /= sum_of_shares
            means[t, b] += shares[0, s]


@exact
def transition_marginals(nodes, pairs, contexts, means, chosen, out, tables):
    """out[t K + k] = p(y_t = a, y_{t+1} = b), where chosen[k] = a L + b is one of K pairs; after `log_forward`."""
    length, n_labels = nodes.shape
    counts = tables.counts
    log_end(contexts, means, tables)
    for t in range(length - 1, 0, -1):
        log_step_back(nodes, pairs, contexts, t, means, tables)
        for k in range(chosen.size):
            a, b = chosen[k] // n_labels, chosen[k] % n_labels
            found = 0.0
            for j in range(count_states(contexts, a)):
                found += counts[find_state(contexts, a, j, counts.shape[1]), b]
            out[(t - 1) * chosen.size + k] = found


@exact
def sample_paths(nodes, pairs, contexts, draws, outputs, tables):
    """Draw a path into each row of `outputs`, from its last label to the first; after `log_forward`."""
    length, n_labels = nodes.shape
    forward = tables.states.forward
    width = tables.gains.shape[1]
    shares = tables.shares
    for k in range(outputs.shape[0]):
        after = 0
        for t in range(length - 1, -1, -1):
            c = label_of(contexts, after, width)
            top = np.float64(2 * IMPOSSIBLE)
            for b in range(n_labels):
                for j in range(count_states(contexts, b)):
                    s = find_state(contexts, b, j, width)
                    shares[0, s] = forward[t, s]
                    if t < length - 1 and state_after(contexts, b, c, width) == after:
                        shares[0, s] = arrive(pairs, tables.states, t + 1, s, b, c)
                    elif t < length - 1:
                        shares[0, s] += IMPOSSIBLE
                    top = max(top, shares[0, s])
            for s in range(width + contexts.label.size):
                is_state = s < n_labels or s >= width
                shares[0, s] = math.exp(shares[0, s] - top) if is_state else 0
            after = draw_label(shares[0, : width + contexts.label.size], draws[k, t])
            outputs[k, t] = label_of(contexts, after, width)
