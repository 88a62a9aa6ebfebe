"""Sums over all labellings of rooted forests: sum-product in probabilities and, where these underflow, in logarithms.

Arguments and tables are those of `maxmargin.structures.trees.tree_dp`, with sums in place of best scores.
"""

from __future__ import annotations

import math

from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import clear, first_best
from maxmargin.arrays.views import matrix
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_dp import exact, subtract_highest


@helper
def sum_product(nodes, pairs, forest, means, counts, belief, message, factors, extents):
    """Marginals into `means`, expected counts of edges' labels into `counts`; return the log-partition function.

    Works on probabilities rescaled at each node, with exp(pairs) kept in `factors` from one call to the next for as
    long as the pairs stay the same. One factor multiplies a label's share by no less than exp(-spread), the spread of
    its potentials, so as long as all shares and messages are above `tiny` nothing underflows; otherwise the log domain
    takes over.
    """
    length, n_labels = nodes.shape
    tiny = nodes.dtype.type(1e-18 if nodes.itemsize == 4 else 1e-90)
    allowed_spread = 41.0 if nodes.itemsize == 4 else 207.0
    is_safe = True
    for k in range(pairs.size // (n_labels * n_labels)):
        exponentiate(matrix(pairs, k * n_labels**2, n_labels, n_labels), factors[k], extents[k])
        is_safe = is_safe and extents[k, 1] <= allowed_spread
    log_z = 0.0
    for t in range(length):
        top = nodes[t, 0]
        for b in range(1, n_labels):
            top = max(top, nodes[t, b])
        bottom = top
        for b in range(n_labels):
            bottom = min(bottom, nodes[t, b] if nodes[t, b] > IMPOSSIBLE / 2 else top)
        is_safe = is_safe and top - bottom <= allowed_spread
        for b in range(n_labels):
            belief[t, b] = fast_exp(nodes[t, b] - top)
        log_z += top
    if not is_safe:
        return log_sum_product(nodes, pairs, forest, means, counts, belief, message)

    for s in range(length):
        c = forest.order[s]
        p = forest.parent[c]
        row = c if p < 0 else p
        if p >= 0:
            times_matrix(belief, c, factors[forest.kind[c], 0], message, c)
            is_small = False
            for a in range(n_labels):
                is_small |= 0 < message[c, a] < tiny
                belief[p, a] *= message[c, a]
            is_safe = is_safe and not is_small
            log_z += extents[forest.kind[c], 0]
        total = nodes.dtype.type(0)
        for a in range(n_labels):
            total += belief[row, a]
        is_safe = is_safe and total > tiny
        inverse = 1 / max(total, tiny)
        is_small = False
        for a in range(n_labels):
            belief[row, a] *= inverse
            is_small |= 0 < belief[row, a] < tiny
        if is_small or not is_safe:
            return log_sum_product(nodes, pairs, forest, means, counts, belief, message)
        log_z += math.log(total)

    for s in range(length - 1, -1, -1):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            for b in range(n_labels):
                means[c, b] = belief[c, b]
            continue
        for a in range(n_labels):
            message[c, a] = means[p, a] / message[c, a] if message[c, a] > 0 else nodes.dtype.type(0)
        times_matrix(message, c, factors[forest.kind[c], 1], means, c)
        for b in range(n_labels):
            means[c, b] *= belief[c, b]
    count_edges(forest, belief, message, factors, counts)
    return log_z


@helper
def times_matrix(rows, s, factor, out, t):
    """out[t] = rows[s] @ factor."""
    n_labels = factor.shape[0]
    for b in range(n_labels):
        out[t, b] = 0
    a = 0
    while a + 4 <= n_labels:  # four rows of the matrix for one load and store of the sum
        m0 = rows[s, a]
        m1 = rows[s, a + 1]
        m2 = rows[s, a + 2]
        m3 = rows[s, a + 3]
        for b in range(n_labels):
            first = m0 * factor[a, b] + m1 * factor[a + 1, b]
            second = m2 * factor[a + 2, b] + m3 * factor[a + 3, b]
            out[t, b] += first + second
        a += 4
    while a < n_labels:
        m0 = rows[s, a]
        for b in range(n_labels):
            out[t, b] += m0 * factor[a, b]
        a += 1


@helper
def exponentiate(pairs, factors, extent):
    """Fill factors[0] with exp(pairs - their maximum), factors[1] with its transpose, factors[2] with the pairs.

    They are there already if factors[2] holds the same pairs. Fills `extent` with the maximum and the spread of
    possible pairs.
    """
    n_labels = pairs.shape[0]
    n_same = 0  # counts vectorise, minima and maxima do not
    for a in range(n_labels):
        for b in range(n_labels):
            n_same += factors[2, a, b] == pairs[a, b]
    if n_same == pairs.size:
        return
    top = pairs[0, 0]
    bottom = -pairs.dtype.type(IMPOSSIBLE)
    for a in range(n_labels):
        for b in range(n_labels):
            top = max(top, pairs[a, b])
            bottom = min(bottom, pairs[a, b] if pairs[a, b] > IMPOSSIBLE / 2 else bottom)
    for a in range(n_labels):
        for b in range(n_labels):
            factors[0, a, b] = fast_exp(pairs[a, b] - top)
            factors[1, b, a] = factors[0, a, b]
            factors[2, a, b] = pairs[a, b]
    extent[0] = top
    extent[1] = max(top - bottom, pairs.dtype.type(0))


@helper
def count_edges(forest, belief, message, factors, counts):
    """The sums, over the edges of each kind, of the outer products belief[c]' message[c], times the kind's factor."""
    length = forest.parent.size
    n_labels = belief.shape[1]
    clear(counts)
    c = 0
    while c < length:
        kind = forest.kind[c]
        if kind < 0:
            c += 1
            continue
        sums = matrix(counts, kind * n_labels**2, n_labels, n_labels)
        if (
            c + 4 <= length and kind == forest.kind[c + 1] and kind == forest.kind[c + 2] and kind == forest.kind[c + 3]
        ):  # four edges for one load and store of the counts
            for b in range(n_labels):
                m0 = belief[c, b]
                m1 = belief[c + 1, b]
                m2 = belief[c + 2, b]
                m3 = belief[c + 3, b]
                for a in range(n_labels):
                    first = m0 * message[c, a] + m1 * message[c + 1, a]
                    second = m2 * message[c + 2, a] + m3 * message[c + 3, a]
                    sums[b, a] += first + second
            c += 4
        else:
            for b in range(n_labels):
                m0 = belief[c, b]
                for a in range(n_labels):
                    sums[b, a] += m0 * message[c, a]
            c += 1
    for k in range(counts.size // (n_labels * n_labels)):
        sums = matrix(counts, k * n_labels**2, n_labels, n_labels)
        for b in range(n_labels):
            for a in range(n_labels):
                sums[b, a] *= factors[k, 0, b, a]


@exact
def log_sum_product(nodes, pairs, forest, means, counts, belief, message):
    """As `sum_product`, in logarithms: slow, and safe for any potentials."""
    length, n_labels = nodes.shape
    for t in range(length):
        for b in range(n_labels):
            belief[t, b] = nodes[t, b]
    log_z = 0.0
    clear(counts)
    for s in range(length):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            continue
        table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
        for a in range(n_labels):
            top, total = sum_over_labels(belief, c, table, a)
            message[c, a] = top + math.log(total)
        log_z += subtract_highest(message, c, n_labels)  # rounding is then that of the potentials, not of their sums
        for a in range(n_labels):
            belief[p, a] += message[c, a]
    for s in range(length - 1, -1, -1):
        c = forest.order[s]
        p = forest.parent[c]
        if p < 0:
            top = belief[c, first_best(belief[c])]
            total = 0.0
            for b in range(n_labels):
                total += math.exp(belief[c, b] - top)
            for b in range(n_labels):
                means[c, b] = math.exp(belief[c, b] - top) / total
            log_z += top + math.log(total)
            continue
        table = matrix(pairs, forest.kind[c] * n_labels**2, n_labels, n_labels)
        sums = matrix(counts, forest.kind[c] * n_labels**2, n_labels, n_labels)
        for b in range(n_labels):
            means[c, b] = 0
        for a in range(n_labels):
            if means[p, a] > 0:
                top, total = sum_over_labels(belief, c, table, a)
                for b in range(n_labels):
                    share = means[p, a] * math.exp(belief[c, b] + table[b, a] - top) / total
                    sums[b, a] += share
                    means[c, b] += share
    return log_z


@exact
def sum_over_labels(belief, c, table, a):
    """The best of the scores of node c where its parent has label a, and the sum of exp(score - best)."""
    top = belief[c, 0] + table[0, a]
    for b in range(1, belief.shape[1]):
        top = max(top, belief[c, b] + table[b, a])
    total = 0.0
    for b in range(belief.shape[1]):
        total += math.exp(belief[c, b] + table[b, a] - top)
    return top, total
