"""Dynamic programs on chains of second order: Viterbi, its K best paths and max-marginals.

All take `nodes` and `pairs` as `chain_dp` does, and tables with the scores of transitions and trigrams. Paths go
through the states of `maxmargin.structures.second_order.contexts`, and tables have a column for each. Numbers are
relative as those of `chain_dp`.

From state s, whose label is b, label c leads to a state that depends on b and c only. So a step first finds the best
way into each two labels (b, c), for eight labels c at a time, and then what is best for each state. Where the pairs of
each position are its own, these are added in between, and the tables have the scores of trigrams alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.lanes import LANES, at, copy_row, fetch, padded, plus, store, upper
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.chains.chain_dp import exact, pairs_into, subtract_highest
from maxmargin.structures.k_best import branch_off, offer, take
from maxmargin.structures.second_order.contexts import ALONE, Contexts, count_states, find_state, label_of, state_after


class StateTables(NamedTuple):
    """What dynamic programs work in, with a row per position of the longest sequence; S = W + K states."""

    scores: np.ndarray  # (S, W) from each state to each label; impossible beyond the labels
    steps: np.ndarray  # (L, W) of each two labels at neighbouring positions
    follow: np.ndarray  # (S, W) probabilities of the labels that come next
    bypass: np.ndarray  # (L, W) 0 for two labels that are no context, else IMPOSSIBLE
    forward: np.ndarray  # (T, S)
    arrivals: np.ndarray  # (T, S), of sums what is to come


def new_state_tables(length: int, contexts: Contexts, dtype: DTypeLike) -> StateTables:
    """Tables for labellings of that length."""
    n_labels = len(contexts.number)
    width = padded(n_labels)
    n_states = width + padded(len(contexts.label) + LANES - 1)  # so that a vector may begin at each of them
    bypass = np.zeros((n_labels, width))
    bypass[:, :n_labels][contexts.number != ALONE] = IMPOSSIBLE
    tables = StateTables(
        scores=aligned((n_states, width), dtype),
        steps=aligned((n_labels, width), dtype),
        follow=aligned((n_states, width), dtype),
        bypass=aligned((n_labels, width), dtype),
        forward=aligned((length, n_states), dtype),
        arrivals=aligned((length, n_states), dtype),
    )
    for table, value in ((tables.scores, IMPOSSIBLE), (tables.forward, IMPOSSIBLE), (tables.bypass, bypass)):
        table[:] = value
    return tables


@exact
def fill_scores(pairs, trigrams, contexts, scores):
    """Put the scores from each state to each label into their table."""
    n_labels = contexts.number.shape[0]
    width = scores.shape[1]
    if pairs.ndim == 2:
        for b in range(n_labels):
            copy_row(pairs, b, scores, b, n_labels)
        for k in range(contexts.label.size):
            copy_row(pairs, contexts.label[k], scores, width + k, n_labels)
    else:
        for s in range(width + contexts.label.size):
            for c in range(n_labels):
                scores[s, c] = 0
    for q in range(contexts.after.size):
        scores[width + contexts.context[q], contexts.after[q]] += trigrams[q]


@exact
def add_pairs(pairs, t, steps):
    """Add the pairs into position t, where they are its own."""
    if pairs.ndim == 1:
        n_labels = steps.shape[0]
        into = pairs_into(pairs, t, n_labels)
        for b in range(n_labels):
            for c in range(n_labels):
                steps[b, c] += into[b, c]


@exact
def arrive(pairs, tables, t, s, b, c):
    """The score of the best path that ends in state s, of label b, at t - 1, with a step to label c at t."""
    score = tables.forward[t - 1, s] + tables.scores[s, c]
    if pairs.ndim == 1:
        score += pairs_into(pairs, t, tables.steps.shape[0])[b, c]
    return score


@exact
def viterbi(nodes, pairs, contexts, tables):
    """Fill the tables of the best paths, after `fill_scores`; return what the last row lacks."""
    length, n_labels = nodes.shape
    scores, steps, bypass = tables.scores, tables.steps, tables.bypass
    forward, arrivals = tables.forward, tables.arrivals
    width = scores.shape[1]
    copy_row(nodes, 0, forward, 0, n_labels)
    for k in range(contexts.label.size):
        forward[0, width + k] = IMPOSSIBLE
    lacking = 0.0
    for t in range(1, length):
        for b in range(n_labels):
            first = width + contexts.starts[b]
            last = width + contexts.starts[b + 1]
            for c in range(0, width, LANES):
                best = plus(at(forward, t - 1, b), fetch(scores, b, c))
                for s in range(first, last):
                    best = upper(best, plus(at(forward, t - 1, s), fetch(scores, s, c)))
                store(steps, b, c, best)
        add_pairs(pairs, t, steps)
        for c in range(0, width, LANES):
            best = plus(fetch(bypass, 0, c), fetch(steps, 0, c))
            for b in range(1, n_labels):
                best = upper(best, plus(fetch(bypass, b, c), fetch(steps, b, c)))
            store(arrivals, t, c, best)
        top = highest_state(forward, t - 1, n_labels, width, contexts)
        for c in range(n_labels):
            forward[t, c] = arrivals[t, c] + (nodes[t, c] - top)
        for k in range(contexts.label.size):
            c = contexts.label[k]
            arrivals[t, width + k] = steps[contexts.before[k], c]
            forward[t, width + k] = arrivals[t, width + k] + (nodes[t, c] - top)
        lacking += top
    return lacking


@exact
def highest_state(rows, t, n_labels, width, contexts):
    """The largest number of a state in rows[t]."""
    top = rows[t, 0]
    for b in range(1, n_labels):
        top = max(top, rows[t, b])
    for k in range(contexts.label.size):
        top = max(top, rows[t, width + k])
    return top


@exact
def best_last(forward, t, n_labels, width, contexts):
    """The state at the last position t of the best path."""
    top = highest_state(forward, t, n_labels, width, contexts)
    state = 0
    while forward[t, state] < top:
        state = state + 1 if state != n_labels - 1 else width
    return state


@exact
def best_source(pairs, tables, n_labels, contexts, t, state):
    """The first state at t - 1, by its label, on a best path into a state at t."""
    width = tables.scores.shape[1]
    c = label_of(contexts, state, width)
    found = 0
    for b in range(n_labels):
        if state_after(contexts, b, c, width) == state:
            for j in range(count_states(contexts, b)):
                found = find_state(contexts, b, j, width)
                if arrive(pairs, tables, t, found, b, c) >= tables.arrivals[t, state]:
                    return found
    return found  # of a state that cannot be


@exact
def backtrack(nodes, pairs, contexts, tables, y):
    """Write the labels of the best path into `y`; return its score, relative as the last row is."""
    length, n_labels = nodes.shape
    width = tables.scores.shape[1]
    state = best_last(tables.forward, length - 1, n_labels, width, contexts)
    score = tables.forward[length - 1, state]
    for t in range(length - 1, -1, -1):
        y[t] = label_of(contexts, state, width)
        if t > 0:
            state = best_source(pairs, tables, n_labels, contexts, t, state)
    return score


class StatePaths(NamedTuple):
    """States chosen from the last position down to the first; outputs hold states, not labels."""

    n_labels: int
    pairs: np.ndarray
    contexts: Contexts
    tables: StateTables


@implements(take, StatePaths)
def take_state(choices, y, s, option):
    y[y.size - 1 - s] = option


@implements(branch_off, StatePaths)
def branch_off_path(choices, y, s, branches):
    n_labels, pairs, contexts, tables = choices
    forward = tables.forward
    width = tables.scores.shape[1]
    t = y.size - 1 - s
    if s == 0:
        best = best_last(forward, t, n_labels, width, contexts)
        for b in range(n_labels):
            for j in range(count_states(contexts, b)):
                state = find_state(contexts, b, j, width)
                if state != best:
                    offer(branches, s, state, forward[t, best] - forward[t, state])
    else:
        after = y[t + 1]
        c = label_of(contexts, after, width)
        best = best_source(pairs, tables, n_labels, contexts, t + 1, after)
        for b in range(n_labels):
            if state_after(contexts, b, c, width) == after:
                for j in range(count_states(contexts, b)):
                    state = find_state(contexts, b, j, width)
                    if state != best:
                        arrived = arrive(pairs, tables, t + 1, state, b, c)
                        offer(branches, s, state, tables.arrivals[t + 1, after] - arrived)
    y[t] = best


@helper
def write_labels(contexts, width, outputs, count):
    """Put the labels of states in their place."""
    for k in range(count):
        for t in range(outputs.shape[1]):
            outputs[k, t] = label_of(contexts, outputs[k, t], width)


@exact
def max_marginals(nodes, pairs, contexts, tables, lacking, best):
    """best[t, b], the score of the best path through label b at t, after Viterbi; overwrites its arrivals."""
    length, n_labels = nodes.shape
    scores, steps = tables.scores, tables.steps
    forward, backward = tables.forward, tables.arrivals
    width = scores.shape[1]
    total = lacking + highest_state(forward, length - 1, n_labels, width, contexts)
    for s in range(width + contexts.label.size):
        backward[length - 1, s] = 0
    for t in range(length - 1, -1, -1):
        for b in range(n_labels):
            best[t, b] = forward[t, b] + backward[t, b]
            for s in range(width + contexts.starts[b], width + contexts.starts[b + 1]):
                best[t, b] = max(best[t, b], forward[t, s] + backward[t, s])
        subtract_highest(best, t, n_labels)
        for b in range(n_labels):
            best[t, b] += total
        if t > 0:
            fill_steps(nodes, pairs, contexts, backward, t, steps)
            for b in range(n_labels):
                for j in range(count_states(contexts, b)):
                    s = find_state(contexts, b, j, width)
                    onward = scores[s, 0] + steps[b, 0]
                    for c in range(1, n_labels):
                        onward = max(onward, scores[s, c] + steps[b, c])
                    backward[t - 1, s] = onward
            subtract_highest_state(backward, t - 1, n_labels, width, contexts)


@exact
def subtract_highest_state(rows, t, n_labels, width, contexts):
    """Make the highest number of a state in rows[t] zero; return what it was."""
    top = highest_state(rows, t, n_labels, width, contexts)
    for b in range(n_labels):
        rows[t, b] -= top
    for k in range(contexts.label.size):
        rows[t, width + k] -= top
    return top


@exact
def fill_steps(nodes, pairs, contexts, backward, t, steps):
    """steps[b, c], the score of label c at t, and of what comes after it, where b is the label before.

    With that of the pair, where pairs are of each position.
    """
    n_labels = nodes.shape[1]
    width = steps.shape[1]
    for b in range(n_labels):
        for c in range(n_labels):
            steps[b, c] = nodes[t, c] + backward[t, c]
    for k in range(contexts.label.size):
        c = contexts.label[k]
        steps[contexts.before[k], c] = nodes[t, c] + backward[t, width + k]
    add_pairs(pairs, t, steps)
