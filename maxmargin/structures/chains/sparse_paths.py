"""Viterbi, its K best paths and max-marginals on a chain with few transitions.

As `chain_dp`, where `scores` are those of the transitions in their order, and `sorted_scores` those in the order in
which they arrive. Labels that no transition arrives at are impossible but at the first position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import copy_row
from maxmargin.arrays.vectors import first_best
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.chains.chain_dp import exact, join_rows, less, subtract_highest, take_label
from maxmargin.structures.chains.pruned_steps import highest_of
from maxmargin.structures.chains.sparse_transitions import Transitions
from maxmargin.structures.k_best import branch_off, offer, take


@exact
def viterbi(nodes, sorted_scores, transitions, forward, arrivals):
    """Fill the tables of the best paths; return what the last row lacks."""
    length, n_labels = nodes.shape
    before, ends = transitions.before, transitions.ends
    copy_row(nodes, 0, forward, 0, n_labels)
    lacking = 0.0
    for t in range(1, length):
        row = forward[t - 1]
        top = highest_of(forward, t - 1, n_labels)
        for b in range(n_labels):
            best = nodes.dtype.type(IMPOSSIBLE)
            for k in range(ends[b], ends[b + 1]):
                best = max(best, row[before[k]] + sorted_scores[k])
            arrivals[t, b] = best
            forward[t, b] = best + (nodes[t, b] - top)
        lacking += top
    return lacking


@exact
def best_source(sorted_scores, transitions, forward, arrivals, t, b):
    """The lowest label at t - 1 on a best path into label b at t."""
    k = transitions.ends[b]
    last = transitions.ends[b + 1] - 1
    while k < last and forward[t - 1, transitions.before[k]] + sorted_scores[k] < arrivals[t, b]:
        k += 1
    return transitions.before[k]


@exact
def backtrack(nodes, sorted_scores, transitions, forward, arrivals, y):
    """As that of `chain_dp`."""
    length, n_labels = nodes.shape
    y[length - 1] = first_best(forward[length - 1, :n_labels])
    for t in range(length - 1, 0, -1):
        y[t - 1] = best_source(sorted_scores, transitions, forward, arrivals, t, y[t])
    return forward[length - 1, y[length - 1]]


class SparsePaths(NamedTuple):
    """Labels chosen from the last position down to the first."""

    n_labels: int
    sorted_scores: np.ndarray
    transitions: Transitions
    forward: np.ndarray
    arrivals: np.ndarray


implements(take, SparsePaths)(take_label)


@implements(branch_off, SparsePaths)
def branch_off_path(choices, y, s, branches):
    n_labels, sorted_scores, transitions, forward, arrivals = choices
    t = y.size - 1 - s
    if s == 0:
        best = first_best(forward[t, :n_labels])
        for a in range(n_labels):
            if a != best:
                offer(branches, s, a, forward[t, best] - forward[t, a])
        y[t] = best
    else:
        b = y[t + 1]
        source = best_source(sorted_scores, transitions, forward, arrivals, t + 1, b)
        for k in range(transitions.ends[b], transitions.ends[b + 1]):
            a = transitions.before[k]
            if a != source:
                offer(branches, s, a, less(arrivals[t + 1, b], forward[t, a], sorted_scores[k]))
        y[t] = source


@exact
def max_marginals(nodes, scores, transitions, forward, backward, lacking, best):
    """best[t, b], the score of the best path through label b at t, from Viterbi's `forward`; fills `backward`."""
    length, n_labels = nodes.shape
    total = lacking + highest_of(forward, length - 1, n_labels)
    for b in range(n_labels):
        backward[length - 1, b] = 0
    for t in range(length - 1, -1, -1):
        join_rows(forward, backward, t, total, best)
        if t > 0:
            for b in range(n_labels):
                backward[t, b] += nodes[t, b]
            for a in range(n_labels):
                onward = nodes.dtype.type(IMPOSSIBLE)
                for p in range(transitions.starts[a], transitions.starts[a + 1]):
                    onward = max(onward, scores[p] + backward[t, transitions.after[p]])
                backward[t - 1, a] = onward
            subtract_highest(backward, t - 1, n_labels)
