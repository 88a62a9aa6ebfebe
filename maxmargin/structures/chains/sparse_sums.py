"""Sums over all labellings of a chain with few transitions: forward-backward in probabilities or logarithms, samples.

Arguments are those of `sparse_paths`, in float64: a step along a single transition takes as long in float32. As in
`chain_sums`, where probabilities leave the range of numbers, logarithms take over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import copy_row, padded
from maxmargin.arrays.vectors import clear, copy_into, first_best, is_same
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_dp import exact, subtract_highest
from maxmargin.structures.chains.chain_logs import draw_label, fill_marginals
from maxmargin.structures.chains.chain_sums import UNTIL_DRIFT, exponentiate_rows, restore_total
from maxmargin.structures.chains.sparse_transitions import Transitions, sort_scores

TINY = 1e-90  # shares above it survive a step
MOST_SPREAD = 500.0  # of potentials, for which that is so


# Sums of a few terms each: in other orders, LLVM would gather vectors of them, which takes twice as long.
in_order = helper(fastmath={"nnan", "ninf", "nsz", "contract"})


class SparseSums(NamedTuple):
    """What sums over labellings of up to T labels work in, W >= L columns wide."""

    gains: np.ndarray  # (T, W)
    forward: np.ndarray  # (T, W)
    backward: np.ndarray  # (T, W)
    known: np.ndarray  # (A,) the scores whose exponentials are in `factors`
    factors: np.ndarray  # (A,) exp(scores - their maximum)
    sorted_factors: np.ndarray  # (A,) the same in the order in which they arrive, or sorted scores
    extent: np.ndarray  # (2,) the maximum and the spread of scores
    counts: np.ndarray  # (A,) expected transitions but for their factors
    onward: np.ndarray  # (W,) what comes from the labels of one position on
    chances: np.ndarray  # (W,) of labels to be drawn


def new_sparse_sums(length: int, transitions: Transitions) -> SparseSums:
    """Tables for labellings of that length."""
    width, n_transitions = padded(len(transitions.number)), len(transitions.after)
    gains, forward, backward = (aligned((length, width), np.float64) for _ in range(3))
    known, factors, sorted_factors, counts = (aligned((n_transitions,), np.float64) for _ in range(4))
    onward, chances = (aligned((width,), np.float64) for _ in range(2))
    forward[:] = backward[:] = 0  # of which columns beyond the labels are never written
    known[:] = 2 * IMPOSSIBLE  # no transition's score: nothing is there yet
    extent = np.zeros(2)
    return SparseSums(gains, forward, backward, known, factors, sorted_factors, extent, counts, onward, chances)


@helper
def exponentiate_scores(scores, transitions, tables):
    """Fill the factors and their extent, unless they are there already."""
    if is_same(scores, tables.known):
        return
    copy_into(tables.known, scores)
    top = IMPOSSIBLE
    low = -IMPOSSIBLE
    for p in range(scores.size):
        top = max(top, scores[p])
        low = min(low, scores[p])
    for p in range(scores.size):
        tables.factors[p] = math.exp(scores[p] - top)
    sort_scores(tables.factors, transitions, tables.sorted_factors)
    tables.extent[0] = top
    tables.extent[1] = top - low


@in_order
def forward_shares(nodes, scores, transitions, tables):
    """Fill forward[t] with the probabilities of the labels at t given what comes before, and `gains` with exp(nodes).

    See `chain_sums.forward_shares`. Return the log-partition function, and whether nothing was lost.
    """
    length, n_labels = nodes.shape
    forward, gains, factors = tables.forward, tables.gains, tables.sorted_factors
    exponentiate_scores(scores, transitions, tables)
    log_z, spread = exponentiate_rows(nodes, gains)
    if spread + tables.extent[1] > MOST_SPREAD:
        return log_z, False
    log_z += tables.extent[0] * (length - 1)
    product = 1.0  # of the totals: one logarithm for many of them
    least = 1.0
    for t in range(length):
        if t == 0:
            copy_row(gains, 0, forward, 0, n_labels)
        else:
            row = forward[t - 1]
            for b in range(n_labels):
                arrived = 0.0
                for k in range(transitions.ends[b], transitions.ends[b + 1]):
                    arrived += row[transitions.before[k]] * factors[k]
                forward[t, b] = gains[t, b] * arrived
        total, share = rescale(forward, gains, t, n_labels)
        least = min(least, min(total, share))
        product *= total
        if product < 1e-150 or product > 1e150:
            log_z += math.log(max(product, 1e-300))
            product = 1.0
    return log_z + math.log(max(product, 1e-300)), least > TINY


@helper
def rescale(forward, gains, t, n_labels):
    """Make the shares at t add up to one, and `gains` with them; return their total, and the least that is not zero."""
    total = 0.0
    for b in range(n_labels):
        total += forward[t, b]
    inverse = 1 / max(total, TINY)
    least = 1.0
    for b in range(n_labels):
        share = forward[t, b] * inverse
        forward[t, b] = share
        gains[t, b] *= inverse
        least = min(least, share if share > 0 else 1.0)
    return total, least


@in_order
def backward_shares(means, counts, transitions, tables):
    """After `forward_shares`: marginals into `means`, expected transitions into `counts`, in any precision."""
    length, n_labels = means.shape
    forward, backward, gains, onward = tables.forward, tables.backward, tables.gains, tables.onward
    clear(tables.counts)
    for b in range(n_labels):
        backward[length - 1, b] = 1
    for t in range(length - 1, -1, -1):
        if t % UNTIL_DRIFT == UNTIL_DRIFT - 1:
            restore_total(forward, backward, t)
        for b in range(n_labels):
            means[t, b] = forward[t, b] * backward[t, b]
            onward[b] = gains[t, b] * backward[t, b]
        if t > 0:
            for a in range(n_labels):
                share = forward[t - 1, a]
                total = 0.0
                for p in range(transitions.starts[a], transitions.starts[a + 1]):
                    after = onward[transitions.after[p]]
                    total += tables.factors[p] * after
                    tables.counts[p] += share * after
                backward[t - 1, a] = total
    for p in range(counts.size):
        counts[p] = tables.counts[p] * tables.factors[p]


@exact
def log_forward(nodes, scores, transitions, tables):
    """As `forward_shares` in logarithms, up to a constant for each t; return the log-partition function."""
    length, n_labels = nodes.shape
    forward, sorted_scores = tables.forward, tables.sorted_factors
    sort_scores(scores, transitions, sorted_scores)
    forget_factors(tables)
    log_z = 0.0
    for t in range(length):
        for b in range(n_labels):
            forward[t, b] = nodes[t, b]
            if t > 0:
                n = weigh_sources(forward, t - 1, sorted_scores, transitions, b, tables.chances)
                forward[t, b] += IMPOSSIBLE if n == 0 else log_sum(tables.chances[:n])
        log_z += subtract_highest(forward, t, n_labels)
    return log_z + log_sum(forward[length - 1, :n_labels])


@exact
def forget_factors(tables):
    """Something else is in their place."""
    if tables.known.size > 0:
        tables.known[0] = 2 * IMPOSSIBLE


@exact
def weigh_sources(forward, t, sorted_scores, transitions, b, chances):
    """The logarithms of the chances of the labels at t, given label b after them; return how many there are."""
    first = transitions.ends[b]
    n = transitions.ends[b + 1] - first
    for j in range(n):
        chances[j] = forward[t, transitions.before[first + j]] + sorted_scores[first + j]
    return n


@exact
def log_sum(values):
    """The logarithm of the sum of exponentials."""
    top = values[first_best(values)]
    total = 0.0
    for j in range(values.size):
        total += math.exp(values[j] - top)
    return top + math.log(total)


@exact
def log_step_back(nodes, scores, t, means, transitions, tables):
    """From position t to the one before, after `log_forward`: fill `onward`, backward[t - 1] and means[t - 1].

    Return what that row of `backward` lacks: see `transition_share`.
    """
    n_labels = nodes.shape[1]
    backward, onward, chances = tables.backward, tables.onward, tables.chances
    for b in range(n_labels):
        onward[b] = nodes[t, b] + backward[t, b]
    for a in range(n_labels):
        first = transitions.starts[a]
        n = transitions.starts[a + 1] - first
        for j in range(n):
            chances[j] = scores[first + j] + onward[transitions.after[first + j]]
        backward[t - 1, a] = IMPOSSIBLE if n == 0 else log_sum(chances[:n])
    lacking = subtract_highest(backward, t - 1, n_labels)
    fill_marginals(tables.forward, backward, means, t - 1)
    return lacking


@exact
def transition_share(scores, a, p, t, lacking, means, transitions, tables):
    """The probability of transition p, which leaves label a at t - 1, after `log_step_back`."""
    share = means[t - 1, a]
    if share <= 0:
        return 0.0
    after = scores[p] + tables.onward[transitions.after[p]]
    return share * math.exp(min(after - lacking - tables.backward[t - 1, a], 0.0))


@exact
def begin_back(nodes, means, tables):
    """The last position, on the way back after `log_forward`."""
    last = nodes.shape[0] - 1
    for b in range(nodes.shape[1]):
        tables.backward[last, b] = 0
    fill_marginals(tables.forward, tables.backward, means, last)


@exact
def log_backward(nodes, scores, means, counts, transitions, tables):
    """As `backward_shares`, after `log_forward`."""
    length, n_labels = nodes.shape
    clear(counts)
    begin_back(nodes, means, tables)
    for t in range(length - 1, 0, -1):
        lacking = log_step_back(nodes, scores, t, means, transitions, tables)
        for a in range(n_labels):
            for p in range(transitions.starts[a], transitions.starts[a + 1]):
                counts[p] += transition_share(scores, a, p, t, lacking, means, transitions, tables)


@exact
def transition_marginals(nodes, scores, chosen, out, means, transitions, tables):
    """As that of `chain_logs`."""
    length, n_labels = nodes.shape
    log_forward(nodes, scores, transitions, tables)
    begin_back(nodes, means, tables)
    for t in range(length - 1, 0, -1):
        lacking = log_step_back(nodes, scores, t, means, transitions, tables)
        for k in range(chosen.size):
            a = chosen[k] // n_labels
            p = transitions.number[a, chosen[k] % n_labels]
            place = (t - 1) * chosen.size + k
            out[place] = 0
            if p >= 0:
                out[place] = transition_share(scores, a, p, t, lacking, means, transitions, tables)


@helper
def sample_paths(nodes, scores, transitions, draws, outputs, tables):
    """Draw a path into each row of `outputs`; see `chain_sums.sample_paths`."""
    length, n_labels = nodes.shape
    forward, factors, chances = tables.forward, tables.sorted_factors, tables.chances
    _, is_safe = forward_shares(nodes, scores, transitions, tables)
    if not is_safe:
        log_forward(nodes, scores, transitions, tables)
    for k in range(outputs.shape[0]):
        copy_into(chances, forward[length - 1, :n_labels])
        outputs[k, length - 1] = draw(chances[:n_labels], draws[k, length - 1], is_safe)
        for t in range(length - 2, -1, -1):
            first = transitions.ends[outputs[k, t + 1]]
            n = transitions.ends[outputs[k, t + 1] + 1] - first
            if is_safe:
                for j in range(n):
                    chances[j] = forward[t, transitions.before[first + j]] * factors[first + j]
            else:
                weigh_sources(forward, t, factors, transitions, outputs[k, t + 1], chances)
            outputs[k, t] = transitions.before[first + draw(chances[:n], draws[k, t], is_safe)]


@helper
def draw(chances, number, is_safe):
    """As `draw_label`, of chances or, if these were not safe, of their logarithms."""
    if not is_safe:
        top = chances[first_best(chances)]
        for j in range(chances.size):
            chances[j] = math.exp(chances[j] - top)
    return draw_label(chances, number)
