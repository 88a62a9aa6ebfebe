"""Exact inference in graphs of small treewidth: nodes are eliminated one after the other, in an order of little fill.

Step t eliminates a node v. Its *scope* are the nodes that v is joined to by then, all of them eliminated later, and v
itself, last; its table has an entry for each assignment of states to the scope. The table is the sum of its *factors*:
the potentials of v and of its edges within the scope, and the messages of those earlier steps whose first node to be
eliminated next is v. Its own message, over the scope without v, is the maximum (or log-sum) over the states of v. The
steps form a forest, so that the best labels are found from the last step to the first, as in a tree: given the labels
of the later nodes, every choice of a label of v loses the same score whatever is chosen next.

An entry of a factor lies at base + <strides, assignment>.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import add_scaled, copy_into, first_best
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.chains.chain_dp import insert, list_best
from maxmargin.structures.graphs.elimination_plan import NONE, Plan


class Tables(NamedTuple):
    """Room for the largest graph."""

    values: np.ndarray
    messages: np.ndarray  # from earlier steps to later ones
    returned: np.ndarray  # the other way
    digits: np.ndarray  # an assignment


def new_tables(plan: Plan) -> Tables:
    """Tables for every graph of a plan."""
    lasts = plan.first[1:] - 1
    n_states = plan.states[plan.scope_first[1:] - 1]
    n_messages = int((plan.message + plan.n_rows)[lasts].max(initial=0))
    return Tables(
        values=aligned((int((plan.table + plan.n_rows * n_states)[lasts].max(initial=0)),), np.float64),
        messages=aligned((n_messages,), np.float64),
        returned=aligned((n_messages,), np.float64),
        digits=aligned((int(np.diff(plan.scope_first).max(initial=0)),), np.int64),
    )


# --- tables and their factors ---------------------------------------------------------------------------------------


@helper
def planes_of(plan, t, k):
    """The part of the table of step t that factor k varies over, as planes of the last two nodes of the scope.

    Return their number, their rows and columns, and the strides of the factor down the rows and along them.
    """
    lo = plan.scope_first[t]
    last = plan.scope_first[t + 1] - lo - 1
    stride = plan.stride_first[k] + last
    n_planes = 1
    for d in range(plan.lead[k], last - 1):
        n_planes *= plan.states[lo + d]
    return n_planes, plan.states[lo + last - 1], plan.states[lo + last], plan.stride[stride - 1], plan.stride[stride]


@helper
def next_plane(plan, t, k, digits, at):
    """Turn `digits`, an assignment to the nodes from the lead of factor k to the last but two, to the next.

    Return where the factor is.
    """
    lo = plan.scope_first[t]
    d = plan.scope_first[t + 1] - lo - 3
    while d >= plan.lead[k]:
        stride = plan.stride[plan.stride_first[k] + d]
        digits[d] += 1
        at += stride
        if digits[d] < plan.states[lo + d]:
            return at
        at -= stride * digits[d]
        digits[d] = 0
        d -= 1
    return at


@helper
def add_factor(plan, t, k, factor, tables):
    """Add factor k, which lies in `factor`, to the beginning of the table of step t, as far as the factor varies."""
    n_planes, n_rows, n_states, across, step = planes_of(plan, t, k)
    begin = plan.table[t]
    plane = plan.base[k]
    if plan.is_dense[k]:
        size = n_planes * n_rows * n_states
        add_scaled(tables.values[begin : begin + size], factor[plane : plane + size], 1.0)
        return
    for _ in range(n_planes):
        for r in range(n_rows):
            at = plane + r * across
            row = tables.values[begin : begin + n_states]
            if step == 1:  # what vectorises
                added = factor[at : at + n_states]
                for x in range(n_states):
                    row[x] += added[x]
            elif step == 0:
                for x in range(n_states):
                    row[x] += factor[at]
            else:
                for x in range(n_states):
                    row[x] += factor[at + step * x]
            begin += n_states
        plane = next_plane(plan, t, k, tables.digits, plane)


@helper
def fill_table(plan, t, theta, tables):
    """Add up the factors of step t: those of its node first, then, node by node from the last, copies and what is added
    to them, so that a factor is added as often as it varies.
    """
    lo = plan.scope_first[t]
    last = plan.scope_first[t + 1] - lo - 1
    values = tables.values[plan.table[t] : plan.table[t] + plan.n_rows[t] * plan.states[lo + last]]
    size = plan.states[lo + last]
    for x in range(size):
        values[x] = 0
    for k in range(plan.factor_first[t], plan.own_end[t]):
        for x in range(size):
            values[x] += theta[plan.base[k] + x] if plan.source[k] == NONE else tables.messages[plan.base[k] + x]
    k = plan.own_end[t]
    for d in range(last - 1, -1, -1):
        for x in range(1, plan.states[lo + d]):
            copy_into(values[x * size : (x + 1) * size], values[:size])
        size *= plan.states[lo + d]
        while k < plan.factor_first[t + 1] and plan.lead[k] == d:
            if plan.source[k] == NONE:
                add_factor(plan, t, k, theta, tables)
            else:
                add_factor(plan, t, k, tables.messages, tables)
            k += 1


@helper
def collect(plan, t, k, tables, out, takes_sum):
    """For each entry of factor k, the sum or maximum over the entries at the beginning of the table of step t."""
    n_planes, n_rows, n_states, across, step = planes_of(plan, t, k)
    begin = plan.table[t]
    plane = plan.base[k]
    if plan.is_dense[k] and takes_sum:
        size = n_planes * n_rows * n_states
        add_scaled(out[plane : plane + size], tables.values[begin : begin + size], 1.0)
        return
    for _ in range(n_planes):
        for r in range(n_rows):
            at = plane + r * across
            row = tables.values[begin : begin + n_states]
            if takes_sum and step == 1:  # what vectorises
                gathered = out[at : at + n_states]
                for x in range(n_states):
                    gathered[x] += row[x]
            elif takes_sum and step == 0:
                total = 0.0
                for x in range(n_states):
                    total += row[x]
                out[at] += total
            elif takes_sum:
                for x in range(n_states):
                    out[at + step * x] += row[x]
            else:
                for x in range(n_states):
                    out[at + step * x] = max(out[at + step * x], row[x])
            begin += n_states
        plane = next_plane(plan, t, k, tables.digits, plane)


@helper
def fold(values, size, n_states, takes_sum):
    """Sum up, or take the maximum of, as many tables of a size as a node has states, into the first."""
    first = values[:size]
    for x in range(1, n_states):
        other = values[x * size : (x + 1) * size]
        if takes_sum:
            for p in range(size):
                first[p] += other[p]
        else:
            for p in range(size):
                first[p] = max(first[p], other[p])


@helper
def collect_all(plan, t, tables, out, takes_sum):
    """`collect` every factor of step t: those of potentials into `out`, those of messages to return them.

    The way of `fill_table` back: what a factor does not vary over is folded before. The table is not needed any more.
    """
    nothing = 0.0 if takes_sum else 2 * IMPOSSIBLE
    lo = plan.scope_first[t]
    last = plan.scope_first[t + 1] - lo - 1
    size = plan.n_rows[t] * plan.states[lo + last]
    values = tables.values[plan.table[t] : plan.table[t] + size]
    k = plan.factor_first[t + 1] - 1
    for d in range(last):
        while k >= plan.own_end[t] and plan.lead[k] == d:
            child = plan.source[k]
            if child == NONE:
                collect(plan, t, k, tables, out, takes_sum)
            else:
                for p in range(plan.message[child], plan.message[child] + plan.n_rows[child]):
                    tables.returned[p] = nothing
                collect(plan, t, k, tables, tables.returned, takes_sum)
            k -= 1
        size //= plan.states[lo + d]
        fold(values, size, plan.states[lo + d], takes_sum)
    for k in range(plan.factor_first[t], plan.own_end[t]):
        for x in range(size):
            if plan.source[k] == NONE:
                out[plan.base[k] + x] = values[x]
            else:
                tables.returned[plan.base[k] + x] = values[x]


@helper
def row_of(plan, t, y):
    """The row of the table of step t that the labels of later nodes choose: where it begins and ends."""
    row = 0
    last = plan.scope_first[t + 1] - 1
    for d in range(plan.scope_first[t], last):
        row = row * plan.states[d] + y[plan.scope[d]]
    begin = plan.table[t] + row * plan.states[last]
    return begin, begin + plan.states[last]


# --- the oracles ----------------------------------------------------------------------------------------------------


@helper
def eliminate(plan, i, theta, tables, takes_sum):
    """Fill the tables and messages of the best scores; return the best of all.

    If it takes sums, the tables have the probabilities of a node's labels given those of later ones, messages are the
    logarithms of sums, and so is what it returns: the log-partition function.
    """
    total = 0.0
    for t in range(plan.first[plan.which[i]], plan.first[plan.which[i] + 1]):
        fill_table(plan, t, theta, tables)
        n_states = plan.states[plan.scope_first[t + 1] - 1]
        for k in range(plan.n_rows[t]):
            row = tables.values[plan.table[t] + k * n_states : plan.table[t] + (k + 1) * n_states]
            message = row[0]
            for x in range(1, n_states):
                message = max(message, row[x])
            if takes_sum:
                shares = 0.0
                for x in range(n_states):
                    row[x] = fast_exp(row[x] - message)
                    shares += row[x]
                scale = 1 / shares
                for x in range(n_states):
                    row[x] *= scale
                message += math.log(shares)
            tables.messages[plan.message[t] + k] = message
        if plan.parent[t] == NONE:
            total += tables.messages[plan.message[t]]
    return total


@helper
def decode(plan, i, tables, y):
    """Write the best labels into `y`, from the last step to the first, low labels first."""
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        begin, end = row_of(plan, t, y)
        y[plan.node[t]] = first_best(tables.values[begin:end])


@helper
def k_best(plan, i, best, tables, outputs, values, level, branches):
    """Write the K best labellings and their scores, best first, as long as they have a weight; return their number.

    As in `tree_dp.k_best`: every labelling but the best, whose score is `best`, follows a better one from the last step
    to some step t, takes another label there, and only best choices at earlier steps.
    """
    first = plan.first[plan.which[i]]
    end = plan.first[plan.which[i] + 1]
    last = values.size - 1
    list_best(values, branches, best, end)
    least = IMPOSSIBLE / 2
    total = 0.0
    for k in range(values.size):
        if values[k] <= least:
            return k
        total += values[k]
        least = max(least, (total - level) / (k + 1))
        source = branches[k, 0]
        branch = branches[k, 1]
        for t in range(branch + 1, end):
            outputs[k, plan.node[t]] = outputs[source, plan.node[t]]
        if branch < end:
            outputs[k, plan.node[branch]] = branches[k, 2]
        for t in range(branch - 1, first - 1, -1):
            row_begin, row_end = row_of(plan, t, outputs[k])
            row = tables.values[row_begin:row_end]
            label = first_best(row)
            for x in range(row.size):
                value = values[k] - (row[label] - row[x])
                if x != label and value > max(values[last], least):
                    insert(values, branches, k + 1, value, k, t, x)
            outputs[k, plan.node[t]] = label
    return values.size


@helper
def max_marginals(plan, i, total, tables, out):
    """For each potential the best score of a labelling that has it, where `total` is the best of all."""
    for p in range(out.size):
        out[p] = 2 * IMPOSSIBLE
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        n_states = plan.states[plan.scope_first[t + 1] - 1]
        message = plan.message[t]
        if plan.parent[t] == NONE:
            tables.returned[message] = total
        for row in range(plan.n_rows[t]):
            begin = plan.table[t] + row * n_states
            for x in range(n_states):
                tables.values[begin + x] += tables.returned[message + row] - tables.messages[message + row]
        collect_all(plan, t, tables, out, False)


@helper
def marginals(plan, i, tables, mu):
    """The probability of each potential, after `eliminate`; the tables become those of whole scopes."""
    for p in range(mu.size):
        mu[p] = 0
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        n_states = plan.states[plan.scope_first[t + 1] - 1]
        if plan.parent[t] == NONE:
            tables.returned[plan.message[t]] = 1
        for row in range(plan.n_rows[t]):
            begin = plan.table[t] + row * n_states
            for x in range(n_states):
                tables.values[begin + x] *= tables.returned[plan.message[t] + row]
        collect_all(plan, t, tables, mu, True)


@helper
def sample(plan, i, tables, draws, y):
    """Draw labels after `eliminate`, by one number of [0, 1) for each node."""
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        begin, end = row_of(plan, t, y)
        row = tables.values[begin:end]
        rest = draws[plan.node[t]]
        x = 0
        while x < row.size - 1 and rest >= row[x]:
            rest -= row[x]
            x += 1
        y[plan.node[t]] = x
