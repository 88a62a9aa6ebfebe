"""Dynamic programs on chains whose transitions have potentials of their own at each position.

As those of `chain_dp`, `chain_logs` and `chain_sums`, whose tables they share; `pairs` is a flat array with an L x L
table for each position but the first, of the transitions into it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import copy_row
from maxmargin.arrays.semirings import MaxPlus, times_matrix
from maxmargin.arrays.vectors import first_best
from maxmargin.arrays.views import matrix
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.chains.chain_dp import add_rows, best_source, exact, highest_of, less, subtract_highest
from maxmargin.structures.chains.chain_logs import (
    log_end,
    log_of_last,
    log_start,
    log_step,
    log_step_back,
    pad_pairs,
)
from maxmargin.structures.chains.chain_sums import draw_label
from maxmargin.structures.k_best import branch_off, offer, take


@helper
def pairs_into(pairs, t, n_labels):
    """The potentials of the transitions into position t, as a view."""
    return matrix(pairs, (t - 1) * n_labels * n_labels, n_labels, n_labels)


@exact
def viterbi(nodes, pairs, forward, arrivals, table):
    """Fill the tables of the best paths; return what the last row lacks."""
    length, n_labels = nodes.shape
    copy_row(nodes, 0, forward, 0, n_labels)
    lacking = 0.0
    for t in range(1, length):
        into = pairs_into(pairs, t, n_labels)
        for a in range(n_labels):
            copy_row(into, a, table, a, n_labels)
        times_matrix(MaxPlus(), forward, t - 1, table, n_labels, arrivals, t)
        top = highest_of(forward, t - 1, n_labels)
        add_rows(arrivals, nodes, t, -top, forward, n_labels)
        lacking += top
    return lacking


@exact
def backtrack(nodes, pairs, forward, arrivals, y):
    """Write the best path into `y`, the lowest from the end of several; return its score, relative as the last row."""
    length, n_labels = nodes.shape
    label = first_best(forward[length - 1, :n_labels])
    y[length - 1] = label
    for t in range(length - 1, 0, -1):
        label = best_source(pairs_into(pairs, t, n_labels), forward, arrivals, t, label)
        y[t - 1] = label
    return forward[length - 1, y[length - 1]]


class EdgePaths(NamedTuple):
    """Labels chosen from the last position down to the first."""

    nodes: np.ndarray
    pairs: np.ndarray
    forward: np.ndarray
    arrivals: np.ndarray


@implements(take, EdgePaths)
def take_label(choices, y, s, option):
    y[y.size - 1 - s] = option


@implements(branch_off, EdgePaths)
def branch_off_path(choices, y, s, branches):
    nodes, pairs, forward, arrivals = choices
    n_labels = nodes.shape[1]
    t = y.size - 1 - s
    if s == 0:
        best = first_best(forward[t, :n_labels])
        for a in range(n_labels):
            if a != best:
                offer(branches, s, a, forward[t, best] - forward[t, a])
    else:
        b = y[t + 1]
        into = pairs_into(pairs, t + 1, n_labels)
        best = best_source(into, forward, arrivals, t + 1, b)
        for a in range(n_labels):
            if a != best:
                offer(branches, s, a, less(arrivals[t + 1, b], forward[t, a], into[a, b]))
    y[t] = best


@exact
def max_marginals(nodes, pairs, forward, backward, lacking, best):
    """best[t, b], the score of the best path through label b at t, from Viterbi's `forward`; fills `backward`."""
    length, n_labels = nodes.shape
    total = lacking + highest_of(forward, length - 1, n_labels)
    for b in range(n_labels):
        backward[length - 1, b] = 0
    for t in range(length - 1, -1, -1):
        for b in range(n_labels):
            best[t, b] = forward[t, b] + backward[t, b]
        subtract_highest(best, t, n_labels)
        for b in range(n_labels):
            best[t, b] += total
        if t > 0:
            into = pairs_into(pairs, t, n_labels)
            for a in range(n_labels):
                onward = into[a, 0] + (nodes[t, 0] + backward[t, 0])
                for b in range(1, n_labels):
                    onward = max(onward, into[a, b] + (nodes[t, b] + backward[t, b]))
                backward[t - 1, a] = onward
            subtract_highest(backward, t - 1, n_labels)


@exact
def log_forward(nodes, pairs, tables):
    """Logs of sums over paths into `tables.forward`, up to a constant per row; return the log-partition function."""
    length, n_labels = nodes.shape
    log_z = log_start(nodes, tables)
    for t in range(1, length):
        pad_pairs(pairs_into(pairs, t, n_labels), tables)
        log_z += log_step(nodes, t, tables)
    return log_z + log_of_last(nodes.shape, tables)


@exact
def log_backward(nodes, pairs, means, counts, tables):
    """After `log_forward`: marginals into `means`, the probabilities of transitions at each position into `counts`."""
    length, n_labels = nodes.shape
    log_end(means, tables)
    for p in range((length - 1) * n_labels * n_labels):
        counts[p] = 0
    for t in range(length - 1, 0, -1):
        pad_pairs(pairs_into(pairs, t, n_labels), tables)
        log_step_back(nodes, t, means, pairs_into(counts, t, n_labels), tables)


@exact
def sample_paths(nodes, pairs, draws, outputs, tables):
    """Draw a path into each row of `outputs`, from its last label to the first; see `chain_sums.sample_paths`."""
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
