"""Dynamic programs on a chain: Viterbi, its K best paths and max-marginals.

All take `nodes`, the T x L potentials of (position, label), and `pairs`, the L x L potentials of transitions, or a flat
array with such a table for each position but the first, of the transitions into it. Tables have at least T rows and
`padded(L)` columns; what is in those beyond the labels is never looked at. Viterbi's `forward[t, b]` is the best score
of a path that ends in label b at t, `arrivals[t, b]` the same before the node's own potential is added.

Both are relative, or float32 would lose the differences of labels in what long chains add up to. Row t of `forward`
lacks what row t - 1 lacks plus the highest number there, the same for all labels; row t of `arrivals` lacks what row
t - 1 of `forward` does. With potentials of nodes within N and of pairs within P, all of them possible, the three
additions of a position give numbers within 2 P + N (arrivals), P + 2 N (the node's potential less the highest) and
P + N (forward). So a position adds rounding errors of at most 4 u (N + P), where u = eps / 2, and as maxima do not
enlarge errors, the path that is found is within 4 eps T (N + P) of the best one: a few times what the rounding of the
potentials themselves can decide. What rows lack is summed in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import LANES, copy_row, fetch, plus, store
from maxmargin.arrays.semirings import MaxPlus, times_matrix
from maxmargin.arrays.vectors import first_best
from maxmargin.arrays.views import matrix
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.chains import pruned_steps
from maxmargin.structures.chains.pruned_steps import highest_of
from maxmargin.structures.k_best import branch_off, offer, offer_others, take

# Back-tracking recomputes sums and compares them for equality, so additions must not be reordered.
exact = pruned_steps.exact


@exact
def pairs_into(pairs, t, n_labels):
    """The L x L potentials of the transitions into position t, as a view."""
    if pairs.ndim == 2:
        return pairs
    return matrix(pairs, (t - 1) * n_labels * n_labels, n_labels, n_labels)


@helper(forceinline=True)  # or chains with tables of their own wait for it at each position
def copy_pairs(pairs, t, n_labels, table):
    """Put them into padded rows."""
    into = pairs_into(pairs, t, n_labels)
    for a in range(n_labels):
        copy_row(into, a, table, a, n_labels)


@exact
def viterbi(nodes, pairs, forward, arrivals, table, pruning):
    """Fill the tables of the best paths, and `table` with the pairs, in padded rows; return what the last row lacks."""
    length, n_labels = nodes.shape
    next_look = length  # at which position to look whether few labels do
    if pairs.ndim == 2:
        copy_pairs(pairs, 1, n_labels, table)
        if pruned_steps.is_worth(pruning, length):
            pruned_steps.find_highs(table, pruning)
            next_look = 1
    gap = 0.0
    rest = pruned_steps.REST
    copy_row(nodes, 0, forward, 0, n_labels)
    lacking = 0.0
    for t in range(1, length):
        if pairs.ndim == 1:
            copy_pairs(pairs, t, n_labels, table)
        is_whole = t < next_look
        if not is_whole:
            gap = pruned_steps.arrive(forward, table, t, gap, pruning, arrivals)
            is_whole = gap < 0
            if is_whole:
                gap = 0.0
                next_look = t + rest
                rest *= 2
        if is_whole:
            times_matrix(MaxPlus(), forward, t - 1, table, n_labels, arrivals, t)
        top = highest_of(forward, t - 1, n_labels)  # of the row before: the next one need not wait for it
        add_rows(arrivals, nodes, t, -top, forward, n_labels)
        lacking += top
    return lacking


@exact
def add_rows(left, right, t, shift, out, n):
    """out[t, :n] = left[t, :n] + (right[t, :n] + shift)."""
    if n < LANES:
        for c in range(n):
            out[t, c] = left[t, c] + (right[t, c] + shift)
    else:
        for c in range(0, n, LANES):
            first = min(c, n - LANES)
            store(out, t, first, plus(fetch(left, t, first), plus(shift, fetch(right, t, first))))


@exact
def best_source(into, forward, arrivals, t, b):
    """The lowest label a at t - 1 on a best path into label b at t, by the transitions into t."""
    a = 0
    while a < into.shape[0] - 1 and forward[t - 1, a] + into[a, b] < arrivals[t, b]:
        a += 1
    return a


@exact
def backtrack(nodes, pairs, forward, arrivals, y):
    """Write the best path into `y`; of several, the one that is lowest when read from the end.

    Return its score, relative as the last row is.
    """
    length, n_labels = nodes.shape
    label = first_best(forward[length - 1, :n_labels])
    y[length - 1] = label
    for t in range(length - 1, 0, -1):
        label = best_source(pairs_into(pairs, t, n_labels), forward, arrivals, t, label)
        y[t - 1] = label
    return forward[length - 1, y[length - 1]]


class Paths(NamedTuple):
    """Labels chosen from the last position down to the first."""

    nodes: np.ndarray
    pairs: np.ndarray
    forward: np.ndarray
    arrivals: np.ndarray


@implements(take, Paths)
def take_label(choices, y, s, option):
    y[y.size - 1 - s] = option


@implements(branch_off, Paths)
def branch_off_path(choices, y, s, branches):
    nodes, pairs, forward, arrivals = choices
    n_labels = nodes.shape[1]
    t = y.size - 1 - s
    if s == 0:
        best = offer_others(branches, s, forward[t, :n_labels])
    else:
        b = y[t + 1]
        into = pairs_into(pairs, t + 1, n_labels)
        best = best_source(into, forward, arrivals, t + 1, b)
        top = arrivals[t + 1, b]
        for a in range(n_labels):
            if a != best:
                offer(branches, s, a, less(top, forward[t, a], into[a, b]))
    y[t] = best


@exact
def less(top, score, potential):
    """How much less a score and a potential are than the best sum of such."""
    return top - (score + potential)


@exact
def max_marginals(nodes, pairs, forward, backward, lacking, best):
    """best[t, b], the score of the best path through label b at t, from Viterbi's `forward`; fills `backward`.

    The best path goes through a label of each position, so the highest of each row is its score.
    """
    length, n_labels = nodes.shape
    total = lacking + highest_of(forward, length - 1, n_labels)
    for b in range(n_labels):
        backward[length - 1, b] = 0
    for t in range(length - 1, -1, -1):
        join_rows(forward, backward, t, total, best)
        if t > 0:
            into = pairs_into(pairs, t, n_labels)
            for a in range(n_labels):
                onward = into[a, 0] + (nodes[t, 0] + backward[t, 0])
                for b in range(1, n_labels):
                    onward = max(onward, into[a, b] + (nodes[t, b] + backward[t, b]))
                backward[t - 1, a] = onward
            subtract_highest(backward, t - 1, n_labels)


@exact
def join_rows(forward, backward, t, total, best):
    """best[t], the sum of what is before and after each label, relative, so that the highest is the total."""
    n_labels = best.shape[1]
    for b in range(n_labels):
        best[t, b] = forward[t, b] + backward[t, b]
    subtract_highest(best, t, n_labels)
    for b in range(n_labels):
        best[t, b] += total


@exact
def subtract_highest(rows, t, n_labels):
    """Make the highest of the labels in a row zero; return what it was."""
    top = rows[t, 0]
    for b in range(1, n_labels):
        top = max(top, rows[t, b])
    for b in range(n_labels):
        rows[t, b] -= top
    return top
