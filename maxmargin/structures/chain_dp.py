"""Dynamic programs on a chain: Viterbi, its K best paths, forward-backward sums, and samples.

All take `nodes`, the T x L potentials of (position, label), and `pairs`, the L x L potentials of transitions. Tables
have at least T rows and `table_width(L)` columns. Viterbi's `forward[t, b]` is the best score of a path that ends in
label b at t, `arrivals[t, b]` the same before the node's own potential is added.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from maxmargin.numeric import fast_exp
from maxmargin.problem import IMPOSSIBLE

# Back-tracking recomputes sums and compares them for equality, so additions must not be reordered.
exact = register_jitable(fastmath={"nnan", "ninf", "nsz"})


def table_width(n_labels: int) -> int:
    """The columns of tables with a column per label: full registers are up to twice as fast as single numbers.

    Forward-backward sums keep zeros in the columns beyond the labels.
    """
    return -(-n_labels // 4) * 4


@exact
def viterbi(nodes, pairs, forward, arrivals):
    """Fill the tables of the best paths."""
    n_labels = nodes.shape[1]
    for b in range(n_labels):
        forward[0, b] = nodes[0, b]
    for t in range(1, nodes.shape[0]):
        s0 = forward[t - 1, 0]
        for b in range(n_labels):
            arrivals[t, b] = s0 + pairs[0, b]
        a = 1
        while a + 4 <= n_labels:  # four sources for one load and store of the arrivals
            s0 = forward[t - 1, a]
            s1 = forward[t - 1, a + 1]
            s2 = forward[t - 1, a + 2]
            s3 = forward[t - 1, a + 3]
            for b in range(n_labels):
                first = max(s0 + pairs[a, b], s1 + pairs[a + 1, b])
                second = max(s2 + pairs[a + 2, b], s3 + pairs[a + 3, b])
                arrivals[t, b] = max(arrivals[t, b], max(first, second))
            a += 4
        while a < n_labels:
            s0 = forward[t - 1, a]
            for b in range(n_labels):
                arrivals[t, b] = max(arrivals[t, b], s0 + pairs[a, b])
            a += 1
        for b in range(n_labels):
            forward[t, b] = arrivals[t, b] + nodes[t, b]


@exact
def best_source(pairs, forward, arrivals, t, b):
    """The lowest label a at t - 1 on a best path into label b at t."""
    a = 0
    while a < pairs.shape[0] - 1 and forward[t - 1, a] + pairs[a, b] < arrivals[t, b]:
        a += 1
    return a


@exact
def backtrack(pairs, forward, arrivals, length, y):
    """Write the best path into `y`; of several, the one that is lowest when read from the end."""
    last = length - 1
    label = 0
    for b in range(1, pairs.shape[0]):
        if forward[last, b] > forward[last, label]:
            label = b
    y[last] = label
    for t in range(last, 0, -1):
        label = best_source(pairs, forward, arrivals, t, label)
        y[t - 1] = label
    return forward[last, y[last]]


@exact
def insert(values, branches, first, value, parent, t, label):
    """Insert a branch into the list, sorted by falling value, of which the entries before `first` are final."""
    k = values.size - 1
    if values[k] >= value or k < first:
        return
    while k > first and values[k - 1] < value:
        values[k] = values[k - 1]
        for field in range(3):
            branches[k, field] = branches[k - 1, field]
        k -= 1
    values[k] = value
    branches[k, 0] = parent
    branches[k, 1] = t
    branches[k, 2] = label


@exact
def k_best(pairs, forward, arrivals, length, outputs, values, branches):
    """Write the K best paths and their scores, best first; return how many there are.

    Every path but the best follows a better one from the end down to some position t and branches off there. The
    list holds the K best branches (parent path, t, label at t) found so far: once entry k is reached it is final, and
    following it down the tables yields its own branches. Cost O(T L^2 + K T L), exact.
    """
    n_labels = pairs.shape[0]
    nothing = 2 * IMPOSSIBLE * length
    for k in range(values.size):
        values[k] = nothing
    for label in range(n_labels):
        insert(values, branches, 0, forward[length - 1, label], -1, length - 1, label)
    for k in range(values.size):
        if values[k] < IMPOSSIBLE / 2:
            return k
        parent = branches[k, 0]
        branch = branches[k, 1]
        label = branches[k, 2]
        for t in range(branch + 1, length):
            outputs[k, t] = outputs[parent, t]
        outputs[k, branch] = label
        for t in range(branch, 0, -1):
            best = best_source(pairs, forward, arrivals, t, label)
            for a in range(n_labels):
                if a != best:
                    loss = arrivals[t, label] - (forward[t - 1, a] + pairs[a, label])
                    insert(values, branches, k + 1, values[k] - loss, k, t - 1, a)
            label = best
            outputs[k, t - 1] = label
    return values.size


@exact
def max_marginals(nodes, pairs, forward, backward, best):
    """best[t, b], the score of the best path through label b at t, from Viterbi's `forward`; fills `backward`."""
    length, n_labels = nodes.shape
    for b in range(n_labels):
        backward[length - 1, b] = 0
        best[length - 1, b] = forward[length - 1, b]
    for t in range(length - 1, 0, -1):
        for a in range(n_labels):
            onward = pairs[a, 0] + nodes[t, 0] + backward[t, 0]
            for b in range(1, n_labels):
                onward = max(onward, pairs[a, b] + nodes[t, b] + backward[t, b])
            backward[t - 1, a] = onward
            best[t - 1, a] = forward[t - 1, a] + onward


@register_jitable
def forward_backward(nodes, pairs, means, counts, forward, backward, gains, factors, extent):
    """Marginals into `means`, expected transitions into `counts`; return the log-partition function."""
    length, n_labels = nodes.shape
    width = forward.shape[1]
    log_z, is_safe = forward_shares(nodes, pairs, gains, forward, factors, extent)
    if not is_safe:
        return log_forward_backward(nodes, pairs, means, counts, forward, backward)
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
    return log_z


@register_jitable
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
    log_z = extent[0] * (length - 1)
    for t in range(length):
        top = highest(nodes, t)
        n_far = 0
        for b in range(n_labels):
            n_far += nodes[t, b] < top - allowed_spread
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


@register_jitable
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


@register_jitable
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
                top = np.max(weights[0, :n_labels])
                for a in range(n_labels):
                    weights[0, a] = math.exp(weights[0, a] - top)
            outputs[k, t] = draw_label(weights[0, :n_labels], draws[k, t])


@register_jitable
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


@register_jitable
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


@register_jitable
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


@register_jitable
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


@register_jitable
def log_forward(nodes, pairs, forward):
    """Fill forward[t, b] with the log of the sum over paths that end in label b at t; return the log-partition."""
    length, n_labels = nodes.shape
    for b in range(n_labels):
        forward[0, b] = nodes[0, b]
    for t in range(1, length):
        for b in range(n_labels):
            top = forward[t - 1, 0] + pairs[0, b]
            for a in range(1, n_labels):
                top = max(top, forward[t - 1, a] + pairs[a, b])
            total = 0.0
            for a in range(n_labels):
                total += math.exp(forward[t - 1, a] + pairs[a, b] - top)
            forward[t, b] = nodes[t, b] + top + math.log(total)
    top = np.max(forward[length - 1, :n_labels])
    total = 0.0
    for b in range(n_labels):
        total += math.exp(forward[length - 1, b] - top)
    return top + math.log(total)


@register_jitable
def log_forward_backward(nodes, pairs, means, counts, forward, backward):
    """As `forward_backward`, in logarithms: slow, and safe for any potentials."""
    length, n_labels = nodes.shape
    log_z = log_forward(nodes, pairs, forward)
    for b in range(n_labels):
        backward[length - 1, b] = 0
    for t in range(length - 1, 0, -1):
        for a in range(n_labels):
            top = pairs[a, 0] + nodes[t, 0] + backward[t, 0]
            for b in range(1, n_labels):
                top = max(top, pairs[a, b] + nodes[t, b] + backward[t, b])
            total = 0.0
            for b in range(n_labels):
                total += math.exp(pairs[a, b] + nodes[t, b] + backward[t, b] - top)
            backward[t - 1, a] = top + math.log(total)
    for a in range(n_labels):
        for b in range(n_labels):
            total = 0.0
            for t in range(1, length):
                total += math.exp(forward[t - 1, a] + pairs[a, b] + nodes[t, b] + backward[t, b] - log_z)
            counts[a, b] = total
    for t in range(length):
        for b in range(n_labels):
            means[t, b] = math.exp(forward[t, b] + backward[t, b] - log_z)
    return log_z
