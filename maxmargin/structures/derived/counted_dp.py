"""The dynamic program of slack rescaling: the best scores of the labellings of a rooted forest by what they cost.

It takes what those of `tree_dp` do, and the `count` of each node and label, by how many units the label adds to the
cost. Tables know the best score within the subtree of node c where it has label b and the subtree costs k units: as the
best of a child and its edge are added to its parent, every cost of the parent is split in the best way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.views import matrix
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper

NEVER = -1e300  # the score of what cannot be


class CountTables(NamedTuple):
    """Tables for the largest forest, T nodes, and the highest cost, K - 1 units."""

    best: np.ndarray  # (T, K, L) the best scores of subtrees, by cost and label
    label: np.ndarray  # (T, K, L) the best label of a node, by the cost of its subtree and the label of its parent
    split: np.ndarray  # (T, K, L) the best cost of its subtree, by that of the parent's so far and the parent's label
    message: np.ndarray  # (K, L) the best scores of a subtree and the edge above, by cost and label of the parent
    total: np.ndarray  # (K,) the best scores of the trees so far, by cost
    most: np.ndarray  # (T,) the highest cost of each subtree
    nothing: np.ndarray  # (L, 1) zeros, in place of the potentials of an edge above a root


@helper
def count_scores(nodes, pairs, forest, count, tables):
    """Fill the tables, from the leaves up; return the highest cost. Roots have a parent of a single label."""
    length, n_labels = nodes.shape
    for c in range(length):
        tables.most[c] = 0
        for b in range(n_labels):
            tables.most[c] = max(tables.most[c], count[c, b])
        for k in range(tables.most[c] + 1):
            for b in range(n_labels):
                tables.best[c, k, b] = nodes[c, b] if count[c, b] == k else NEVER
    tables.total[0] = 0
    most = 0
    for s in range(length):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            send(tables.nothing, tables, c)
            most = merge(tables.total.reshape(-1, 1), most, tables, c, 1)
        else:
            send(matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels), tables, c)
            tables.most[p] = merge(tables.best[p], tables.most[p], tables, c, n_labels)
    return most


@helper
def send(table, tables, c):
    """Fill the message of node c to its parent, given the potentials of the edge."""
    n_labels, n_columns = table.shape
    for k in range(tables.most[c] + 1):
        for a in range(n_columns):
            tables.message[k, a] = tables.best[c, k, 0] + table[0, a]
            tables.label[c, k, a] = 0
        for b in range(1, n_labels):
            for a in range(n_columns):
                score = tables.best[c, k, b] + table[b, a]
                if score > tables.message[k, a]:
                    tables.message[k, a] = score
                    tables.label[c, k, a] = b


@helper
def merge(scores, most, tables, c, n_columns):
    """Add the message of node c to scores of costs up to `most`, in place; return the highest cost of the sums.

    From high costs to low ones, so that those that are still to be read are as they were.
    """
    own = tables.most[c]
    for k in range(most + own, -1, -1):
        first = max(0, k - most)
        for a in range(n_columns):
            scores[k, a] = scores[k - first, a] + tables.message[first, a]
            tables.split[c, k, a] = first
        for part in range(first + 1, min(own, k) + 1):
            for a in range(n_columns):
                score = scores[k - part, a] + tables.message[part, a]
                if score > scores[k, a]:
                    scores[k, a] = score
                    tables.split[c, k, a] = part
    return most + own


@helper
def best_product(tables, most, ahead):
    """The cost that maximises itself times the best score, less that of the truth, plus the margin; and the product."""
    best = 0
    value = 0.0
    for k in range(1, most + 1):
        product = k * (tables.total[k] + ahead)
        if tables.total[k] > IMPOSSIBLE / 2 and product > value:
            best = k
            value = product
    return best, value


@helper
def decode_count(forest, tables, count, y):
    """Write the best labelling of this cost into `y`, from the roots down; overwrites the highest costs of subtrees."""
    cost = tables.most  # of each subtree, less the children that are known
    for s in range(forest.order.size - 1, -1, -1):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            cost[c] = tables.split[c, count, 0]
            count -= cost[c]
            y[c] = tables.label[c, cost[c], 0]
        else:
            cost[c] = tables.split[c, cost[p], y[p]]
            cost[p] -= cost[c]
            y[c] = tables.label[c, cost[c], y[p]]
