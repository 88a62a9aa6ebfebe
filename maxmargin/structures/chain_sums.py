"""Sums over all labellings of a chain: forward-backward, in probabilities or in logarithms, and samples.

Arguments are those of `maxmargin.structures.chain_dp`; tables have `table_width(L)` columns.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.runtime.numeric import fast_exp
from maxmargin.structures.chain_dp import exact


@helper
def forward_shares(nodes, pairs, gains, forward, factors, extent):
    """Fill forward[t] with the probabilities of the labels at t given what comes before, and `gains` with exp(nodes).

    Probabilities are rescaled at each position, and `gains` with them; exp(pairs) is kept in `factors` from one call
    to the next for as long as the transitions stay the same. One step multiplies a label's share by no less than
    exp(-spread), the spread of the potentials, so as long as all shares are above `tiny` nothing underflows. Return the
    log-partition function, and whether this was so: if not, the log domain must take over.
    """
    length, n_labels = nodes.shape
    width = forward.shape[1]
    exponentiate(pairs, factors, extent)
    tiny = 1e-18 if nodes.itemsize == 4 else 1e-90
    allowed_spread = nodes.dtype.type(43.0 if nodes.itemsize == 4 else 500.0) - extent[1]
    impossible = nodes.dtype.type(IMPOSSIBLE / 2)  # shares of impossible labels are zero, not small
    log_z = extent[0] * (length - 1)
    for t in range(length):
        top = highest(nodes, t)
        n_far = 0
        for b in range(n_labels):
            n_far += (nodes[t, b] < top - allowed_spread) & (nodes[t, b] > impossible)
            gains[t, b] = nodes[t, b] - top
        for b in range(n_labels, width):
            gains[t, b] = IMPOSSIBLE
        for b in range(width):
            gains[t, b] = fast_exp(gains[t, b])
        if n_far > 0:
            return log_z, False
        if t == 0:
            for b in range(width):
                forward[0, b] = gains[0, b]
        else:
            times_matrix(forward, t - 1, factors[0], forward, t)
            for b in range(width):
                forward[t, b] *= gains[t, b]
        total = nodes.dtype.type(0)
        for b in range(width):
            total += forward[t, b]
        inverse = 1 / max(total, nodes.dtype.type(tiny))
        n_tiny = 0
        for b in range(width):
            share = forward[t, b] * inverse
            forward[t, b] = share
            gains[t, b] *= inverse
            n_tiny += (share > 0) & (share < tiny)
        if not total > tiny or n_tiny > 0:
            return log_z, False
        log_z += top + math.log(total)
    return log_z, True


@helper
def backward_shares(means, counts, forward, backward, gains, factors):
    """After `forward_shares`: marginals into `means`, expected transitions into `counts`."""
    length, n_labels = means.shape
    width = forward.shape[1]
    for b in range(width):
        backward[length - 1, b] = 1
    for t in range(length - 1, -1, -1):
        for b in range(n_labels):
            means[t, b] = forward[t, b] * backward[t, b]
        if t > 0:
            for b in range(width):
                backward[t, b] *= gains[t, b]
            times_matrix(backward, t, factors[1], backward, t - 1)
    count_transitions(forward, backward, factors[0], length, gains, counts)


@helper
def highest(rows, t):
    """The maximum of a row: of four at a time, as each comparison has to wait for the last one."""
    n = rows.shape[1]
    top0 = rows[t, 0]
    top1 = top0
    top2 = top0
    top3 = top0
    b = 0
    while b + 4 <= n:
        top0 = max(top0, rows[t, b])
        top1 = max(top1, rows[t, b + 1])
        top2 = max(top2, rows[t, b + 2])
        top3 = max(top3, rows[t, b + 3])
        b += 4
    while b < n:
        top0 = max(top0, rows[t, b])
        b += 1
    return max(max(top0, top1), max(top2, top3))


@helper
def sample_paths(nodes, pairs, draws, outputs, forward, weights, factors, extent):
    """Draw a path into each row of `outputs`: its last label, then one after the other down to the first.

    `draws` holds a number in [0, 1) for each label to be drawn; `weights` is a table to work in.
    """
    length, n_labels = nodes.shape
    _, is_safe = forward_shares(nodes, pairs, weights, forward, factors, extent)
    if not is_safe:
        log_forward(nodes, pairs, forward)
    for k in range(outputs.shape[0]):
        for t in range(length - 1, -1, -1):
            for a in range(n_labels):
                weights[0, a] = forward[t, a]
                if t < length - 1:
                    after = outputs[k, t + 1]
                    if is_safe:
                        weights[0, a] *= factors[0, a, after]
                    else:
                        weights[0, a] += pairs[a, after]
            if not is_safe:
                top = weights[0, np.argmax(weights[0, :n_labels])]
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


@helper
def count_transitions(forward, backward, factor, length, sums, counts):
    """The sum of the outer products forward[t - 1]' backward[t], times `factor` elementwise; works in sums[0]."""
    n_labels = counts.shape[0]
    width = factor.shape[0]
    for a in range(n_labels):
        for b in range(width):
            sums[0, b] = 0
        t = 1
        while t + 4 <= length:  # four positions for one load and store of the counts
            m0 = forward[t - 1, a]
            m1 = forward[t, a]
            m2 = forward[t + 1, a]
            m3 = forward[t + 2, a]
            for b in range(width):
                first = m0 * backward[t, b] + m1 * backward[t + 1, b]
                second = m2 * backward[t + 2, b] + m3 * backward[t + 3, b]
                sums[0, b] += first + second
            t += 4
        while t < length:
            m0 = forward[t - 1, a]
            for b in range(width):
                sums[0, b] += m0 * backward[t, b]
            t += 1
        for b in range(n_labels):
            counts[a, b] = sums[0, b] * factor[a, b]


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


@exact
def log_forward(nodes, pairs, forward):
    """Fill forward[t, b] with the log of the sum over paths that end in label b at t, up to a constant for each t.

    The largest of each t is zero, so that rounding is that of the potentials, not of their sums. Return the
    log-partition function.
    """
    length, n_labels = nodes.shape
    log_z = 0.0
    for t in range(length):
        for b in range(n_labels):
            forward[t, b] = nodes[t, b]
            if t > 0:
                top = forward[t - 1, 0] + pairs[0, b]
                for a in range(1, n_labels):
                    top = max(top, forward[t - 1, a] + pairs[a, b])
                total = 0.0
                for a in range(n_labels):
                    total += math.exp(forward[t - 1, a] + pairs[a, b] - top)
                forward[t, b] += top + math.log(total)
        log_z += subtract_highest(forward, t, n_labels)
    total = 0.0
    for b in range(n_labels):
        total += math.exp(forward[length - 1, b])
    return log_z + math.log(total)


@exact
def subtract_highest(rows, t, n_labels):
    """Make the highest of the labels in a row zero; return what it was."""
    top = rows[t, np.argmax(rows[t, :n_labels])]
    for b in range(n_labels):
        rows[t, b] -= top
    return top


@exact
def log_forward_backward(nodes, pairs, means, counts, forward, backward):
    """Both passes in logarithms: slow, and safe for any potentials; return the log-partition function.

    The marginals of each position and each pair of positions are divided by their sum.
    """
    length, n_labels = nodes.shape
    log_z = log_forward(nodes, pairs, forward)
    for b in range(n_labels):
        backward[length - 1, b] = 0
        for a in range(n_labels):
            counts[a, b] = 0
    for t in range(length - 1, 0, -1):
        best = -np.inf
        for a in range(n_labels):
            top = pairs[a, 0] + nodes[t, 0] + backward[t, 0]
            for b in range(1, n_labels):
                top = max(top, pairs[a, b] + nodes[t, b] + backward[t, b])
            total = 0.0
            for b in range(n_labels):
                total += math.exp(pairs[a, b] + nodes[t, b] + backward[t, b] - top)
            backward[t - 1, a] = top + math.log(total)
            best = max(best, forward[t - 1, a] + top)
        total = 0.0
        for a in range(n_labels):
            for b in range(n_labels):
                total += math.exp(forward[t - 1, a] + (pairs[a, b] + nodes[t, b] + backward[t, b]) - best)
        for a in range(n_labels):
            for b in range(n_labels):
                share = math.exp(forward[t - 1, a] + (pairs[a, b] + nodes[t, b] + backward[t, b]) - best)
                counts[a, b] += share / total
        subtract_highest(backward, t - 1, n_labels)
    for t in range(length):
        for b in range(n_labels):
            means[t, b] = forward[t, b] + backward[t, b]
        subtract_highest(means, t, n_labels)
        total = 0.0
        for b in range(n_labels):
            means[t, b] = math.exp(means[t, b])
            total += means[t, b]
        for b in range(n_labels):
            means[t, b] /= total
    return log_z
