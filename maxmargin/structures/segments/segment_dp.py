"""Dynamic programs on segments, in O(T D L + T L^2): forward, backward, from the end, and what covers each row.

Places are between rows: segment (s, e) has the rows s to e - 1. With `sums`, the potentials of rows that go on with a
segment added up from the beginning,

    ended[e, l]   = sums[e, l] + last[e - 1, l] + the sum over s of opened[s, l] * length[e - s, l]
    arrived[e, l] = the sum over l' of ended[e, l'] * pairs[l', l]
    opened[s, l]  = arrived[s, l] + first[s, l] - sums[s + 1, l]

and backwards likewise `begun`, `rest` and `closed`. What no segment may contain is not in the sums: segments that end
at e may begin from reach[l, e] on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.exponential import fast_exp
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.scalar_semirings import NEVER, one
from maxmargin.structures.segments.segment_parts import (
    beginning_at,
    count_rows,
    ending_at,
    longest_segment,
    split_parts,
)
from maxmargin.structures.segments.segment_windows import (
    Lengths,
    PairPotentials,
    Window,
    finish_gather,
    finish_put,
    gather,
    join,
    new_lengths,
    new_pairs,
    new_window,
    open_window,
    put,
    total,
)

FAR_LENGTH = 100.0  # potentials of listed segments above those of lengths: then factors are relative to them


class SegmentTables(NamedTuple):
    """Tables of one example of up to T rows, N = T + 1 places."""

    sums: np.ndarray  # (L, N)
    reach: np.ndarray  # (L, N) int64
    opened: Window
    closed: Window
    arrived: np.ndarray  # (N, L)
    ended: np.ndarray  # (N, L)
    rest: np.ndarray  # (N, L)
    begun: np.ndarray  # (N, L)
    lengths: Lengths  # 1, 2, ... of segments that begin at a place
    reversed_lengths: Lengths  # ..., 2, 1 of those that end there
    pairs: PairPotentials
    reversed_pairs: PairPotentials  # from the second label to the first
    stop: np.ndarray  # (L,) int64, where segments that begin at a place must end at the latest


def new_tables(longest_example: int, n_labels: int, longest: int) -> SegmentTables:
    """Tables to be filled."""
    n_places = longest_example + 1
    by_place = n_places, n_labels
    return SegmentTables(
        sums=aligned((n_labels, n_places), np.float64),
        reach=aligned((n_labels, n_places), np.int64),
        opened=new_window(n_labels, n_places),
        closed=new_window(n_labels, n_places),
        arrived=aligned(by_place, np.float64),
        ended=aligned(by_place, np.float64),
        rest=aligned(by_place, np.float64),
        begun=aligned(by_place, np.float64),
        lengths=new_lengths(n_labels, longest),
        reversed_lengths=new_lengths(n_labels, longest),
        pairs=new_pairs(n_labels),
        reversed_pairs=new_pairs(n_labels),
        stop=aligned((n_labels,), np.int64),
    )


@helper
def last_potential(rows, n_labels, end, label):
    """That of the last row of a segment, zero where such rows have none."""
    return 0.0 if rows.shape[1] == 2 * n_labels else np.float64(rows[end - 1, 2 * n_labels + label])


@helper
def fill_tables(problem, i, theta, tables):
    """Fill what does not depend on the semiring: sums of rows, and potentials of lengths and pairs."""
    rows, _, lengths, pairs = split_parts(problem, i, theta)
    n_labels = problem.limits.size
    length = rows.shape[0]
    sums, reach = tables.sums, tables.reach
    for label in range(n_labels):
        sums[label, 0] = 0.0
        reach[label, 0] = 0
        for t in range(length):
            potential = np.float64(rows[t, n_labels + label])
            is_possible = potential > IMPOSSIBLE / 2
            sums[label, t + 1] = sums[label, t] + (potential if is_possible else 0.0)
            earliest = max(reach[label, t], t + 1 - problem.limits[label])
            reach[label, t + 1] = earliest if is_possible else t
    longest = longest_segment(problem)
    forth, back = tables.lengths, tables.reversed_lengths
    for label in range(n_labels):
        n_lengths = min(problem.limits[label], length)
        top = NEVER
        for d in range(n_lengths):
            forth.logs[label, d] = lengths[d, label]
            top = max(top, forth.logs[label, d])
        forth.top[label] = top
        back.top[label] = top
        for d in range(n_lengths):
            forth.factors[label, d] = fast_exp(forth.logs[label, d] - top)
            back.logs[label, longest - 1 - d] = forth.logs[label, d]
            back.factors[label, longest - 1 - d] = forth.factors[label, d]
    top = NEVER
    for a in range(n_labels):
        for b in range(n_labels):
            top = max(top, np.float64(pairs[a, b]))
    tables.pairs.top[0] = top
    tables.reversed_pairs.top[0] = top
    for a in range(n_labels):
        for b in range(n_labels):
            tables.pairs.logs[a, b] = pairs[a, b]
            tables.pairs.factors[a, b] = fast_exp(tables.pairs.logs[a, b] - top)
            tables.reversed_pairs.logs[b, a] = tables.pairs.logs[a, b]
            tables.reversed_pairs.factors[b, a] = tables.pairs.factors[a, b]


@helper
def lengths_to(problem, i, listed, label, end, tables):
    """The row of reversed lengths of segments with a label that end there, with what those that are listed add."""
    lo, hi = ending_at(problem, i, end)
    if lo == hi:
        return label
    lengths = tables.reversed_lengths
    longest = lengths.logs.shape[1]
    n_lengths = min(problem.limits[label], end)
    copy_row(lengths, label, longest - n_lengths, longest)
    for k in range(lo, hi):
        d = end - problem.listed.begin[k]
        if d <= n_lengths:
            add_to_row(lengths, longest - d, listed[k - problem.listed.starts[i], label])
    finish_row(lengths, longest - n_lengths, longest)
    return np.int64(problem.limits.size)


@helper
def lengths_from(problem, i, listed, label, begin, tables):
    """As `lengths_to`, of segments that begin there."""
    lo, hi = beginning_at(problem, i, begin)
    if lo == hi:
        return label
    lengths = tables.lengths
    n_lengths = min(problem.limits[label], count_rows(problem, i) - begin)
    copy_row(lengths, label, 0, n_lengths)
    for k in range(lo, hi):
        segment = problem.listed.by_begin[k]
        d = problem.listed.end[segment] - begin
        if d <= n_lengths:
            add_to_row(lengths, d - 1, listed[segment - problem.listed.starts[i], label])
    finish_row(lengths, 0, n_lengths)
    return np.int64(problem.limits.size)


@helper
def copy_row(lengths, label, lo, hi):
    """Begin the last row with those of a label."""
    row = lengths.top.size - 1
    lengths.top[row] = lengths.top[label]
    for d in range(lo, hi):
        lengths.logs[row, d] = lengths.logs[label, d]
        lengths.factors[row, d] = lengths.factors[label, d]


@helper
def add_to_row(lengths, d, potential):
    """Add the potential of a listed segment to the last row."""
    row = lengths.top.size - 1
    lengths.logs[row, d] += potential
    lengths.factors[row, d] = fast_exp(min(lengths.logs[row, d] - lengths.top[row], FAR_LENGTH))


@helper
def finish_row(lengths, lo, hi):
    """Make factors relative to the highest one, if that is far above."""
    row = lengths.top.size - 1
    top = NEVER
    for d in range(lo, hi):
        top = max(top, lengths.logs[row, d])
    if top > lengths.top[row] + FAR_LENGTH:
        lengths.top[row] = top
        for d in range(lo, hi):
            lengths.factors[row, d] = fast_exp(lengths.logs[row, d] - top)


@helper
def run_forward(semiring, problem, i, theta, tables):
    """Fill `opened`, `arrived` and `ended`; return the sum over all outputs."""
    rows, listed, _, _ = split_parts(problem, i, theta)
    n_labels = problem.limits.size
    length = rows.shape[0]
    longest = longest_segment(problem)
    if length == 0:
        return 0.0
    opened = tables.opened
    fill_tables(problem, i, theta, tables)
    open_window(opened)
    for label in range(n_labels):
        tables.arrived[0, label] = one(semiring)
    for p in range(length + 1):
        if p > 0:
            first_listed, last_listed = ending_at(problem, i, p)
            for label in range(n_labels):
                lo = tables.reach[label, p]
                row = label  # of lengths: problems and tables take long to hand over
                if first_listed < last_listed:
                    row = lengths_to(problem, i, listed, label, p, tables)
                at = longest - p + lo
                gather(semiring, opened, label, lo, p, tables.reversed_lengths, row, at)
            finish_gather(semiring, opened)
            for label in range(n_labels):
                together = opened.gathered[label]
                tables.ended[p, label] = together + tables.sums[label, p] + last_potential(rows, n_labels, p, label)
            if p < length:
                join(semiring, tables.ended, p, tables.pairs, tables.arrived, p)
        if p < length:
            for label in range(n_labels):
                value = tables.arrived[p, label] + rows[p, label] - tables.sums[label, p + 1]
                put(semiring, opened, label, p, value, max(0, p + 1 - longest), p)
            finish_put(semiring, opened, p)
    return total(semiring, tables.ended, length, n_labels)


@helper
def run_backward_step(semiring, problem, i, rows, listed, p, tables):
    """Fill `rest` and `closed` of place p, where segments end, then `begun` of p - 1, where others begin.

    Places before come after: tables.stop tells where segments that begin at p - 1 must end.
    """
    n_labels = problem.limits.size
    length = rows.shape[0]
    longest = longest_segment(problem)
    if p == length:
        open_window(tables.closed)
        for label in range(n_labels):
            tables.rest[p, label] = one(semiring)
            tables.stop[label] = length
    else:
        join(semiring, tables.begun, p, tables.reversed_pairs, tables.rest, p)
    begin = p - 1
    for label in range(n_labels):
        value = tables.rest[p, label] + last_potential(rows, n_labels, p, label) + tables.sums[label, p]
        put(semiring, tables.closed, label, p, value, p + 1, min(length, p + longest) + 1)
    finish_put(semiring, tables.closed, p)
    first_listed, last_listed = beginning_at(problem, i, begin)
    for label in range(n_labels):
        if p < length and rows[p, n_labels + label] < IMPOSSIBLE / 2:
            tables.stop[label] = p
        row = label
        if first_listed < last_listed:
            row = lengths_from(problem, i, listed, label, begin, tables)
        hi = min(tables.stop[label], begin + problem.limits[label]) + 1
        gather(semiring, tables.closed, label, p, hi, tables.lengths, row, 0)
    finish_gather(semiring, tables.closed)
    for label in range(n_labels):
        tables.begun[begin, label] = tables.closed.gathered[label] + rows[begin, label] - tables.sums[label, p]
