"""The tables of elimination: sums of factors, and what is collected from them for each factor.

An entry of a factor lies at base + <strides, assignment>.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import add_scaled, copy_into
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.graphs.elimination_plan import NONE, EliminationPlan


class Tables(NamedTuple):
    """Room for the largest graph."""

    values: np.ndarray
    messages: np.ndarray  # from earlier steps to later ones
    returned: np.ndarray  # the other way
    digits: np.ndarray  # an assignment


def new_tables(plan: EliminationPlan) -> Tables:
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
