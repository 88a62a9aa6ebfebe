"""Dynamic programs on rooted forests: max-product, its K best labellings and max-marginals.

All take `nodes`, the T x L potentials of (node, label), and `pairs`, the potentials of edges: an L x L table for each
kind of edge, rows for labels of the child, columns for labels of the parent, all in one flat array. A `Forest` says
where the edges are. Tables have at least T rows and `padded(L)` columns, of which those beyond the labels are never
looked at. `belief[c, b]` is the best score within the subtree of node c
where c has label b; `message[c, a]` is the same together with the edge to the parent, where that has label a. Both are
relative, as those of `maxmargin.structures.chains.chain_dp`: the highest belief of a node with children is zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.lanes import copy_row
from maxmargin.arrays.semirings import MaxPlus, times_matrix
from maxmargin.arrays.vectors import first_best
from maxmargin.arrays.views import matrix
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.chains.chain_dp import exact, less, subtract_highest
from maxmargin.structures.chains.pruned_steps import highest_of
from maxmargin.structures.k_best import branch_off, offer, offer_others, take


class Forest(NamedTuple):
    """The edges of one example."""

    parent: np.ndarray  # (T,) the parent of each node, -1 for roots
    kind: np.ndarray  # (T,) the kind of the edge to the parent, -1 for roots
    order: np.ndarray  # (T,) the nodes, each after its children


@exact
def max_product(nodes, pairs, forest, belief, message, rows):
    """Fill the tables of the best scores, from the leaves up, and `rows` with the pairs, padded.

    Return what the beliefs of all roots lack together.
    """
    length, n_labels = nodes.shape
    width = rows.shape[1]
    copy_rows(nodes, belief)
    copy_rows(matrix(pairs, 0, pairs.size // n_labels, n_labels), rows)
    lacking = 0.0
    for s in range(length):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            continue
        table = matrix(rows, forest.kind[c] * n_labels * width, n_labels, width)
        times_matrix(MaxPlus(), belief, c, table, n_labels, message, c)
        for a in range(n_labels):
            belief[p, a] += message[c, a]
        lacking += subtract_highest(belief, p, n_labels)
    return lacking


@exact
def copy_rows(source, out):
    for t in range(source.shape[0]):
        copy_row(source, t, out, t, source.shape[1])


@exact
def best_child_label(table, belief, message, c, a):
    """The lowest best label of node c whose parent has label a."""
    b = 0
    while b < table.shape[0] - 1 and belief[c, b] + table[b, a] < message[c, a]:
        b += 1
    return b


@exact
def best_of_roots(forest, belief, n_labels):
    """The score of the best labelling, relative as beliefs are."""
    total = 0.0
    for c in range(forest.parent.size):
        if forest.parent[c] < 0:
            total += highest_of(belief, c, n_labels)
    return total


@exact
def decode(nodes, pairs, forest, belief, message, y):
    """Write the best labelling into `y`, from the roots down, low labels first; return its score, which is relative."""
    n_labels = nodes.shape[1]
    total = 0.0
    for s in range(forest.order.size - 1, -1, -1):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            y[c] = first_best(belief[c, :n_labels])
            total += belief[c, y[c]]
        else:
            table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
            y[c] = best_child_label(table, belief, message, c, y[p])
    return total


class Labellings(NamedTuple):
    """Labels chosen from the roots down."""

    nodes: np.ndarray
    pairs: np.ndarray
    forest: Forest
    belief: np.ndarray
    message: np.ndarray


@implements(take, Labellings)
def take_label(choices, y, s, option):
    y[choices.forest.order[y.size - 1 - s]] = option


@implements(branch_off, Labellings)
def branch_off_labelling(choices, y, s, branches):
    """Costs O(L), exactly."""
    nodes, pairs, forest, belief, message = choices
    n_labels = nodes.shape[1]
    c = forest.order[y.size - 1 - s]
    p = forest.parent[c]
    if p < 0:
        label = offer_others(branches, s, belief[c, :n_labels])
    else:
        table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
        a = y[p]
        label = best_child_label(table, belief, message, c, a)
        top = message[c, a]
        for b in range(n_labels):
            if b != label:
                offer(branches, s, b, less(top, belief[c, b], table[b, a]))
    y[c] = label


@exact
def max_marginals(pairs, forest, belief, message, lacking, best):
    """best[c, b], the score of the best labelling with label b at node c; overwrites `message`.

    The best labelling of all has a label at each node, so the highest of each row is its score.
    """
    n_labels = best.shape[1]
    total = lacking + best_of_roots(forest, belief, n_labels)
    for s in range(forest.order.size - 1, -1, -1):
        c = forest.order[s]
        p = forest.parent[c]
        for b in range(n_labels):
            best[c, b] = belief[c, b]
        if p >= 0:
            table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
            for a in range(n_labels):
                message[c, a] = (best[p, a] - total) - message[c, a]
            for b in range(n_labels):
                onward = table[b, 0] + message[c, 0]
                for a in range(1, n_labels):
                    onward = max(onward, table[b, a] + message[c, a])
                best[c, b] += onward
        subtract_highest(best, c, n_labels)
        for b in range(n_labels):
            best[c, b] += total
