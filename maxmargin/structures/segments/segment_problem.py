"""Oracles of segments: the best segmentations, sums over all of them, and the best through each part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import clear
from maxmargin.execution.threads import aligned
from maxmargin.features import norm_buffer
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import branch_off, k_best, offer, take
from maxmargin.structures.scalar_semirings import NEVER, Best, LogSums, pick
from maxmargin.structures.segments import segment_dp
from maxmargin.structures.segments.segment_dp import SegmentTables
from maxmargin.structures.segments.segment_parts import (
    ListedSegments,
    SegmentProblem,
    beginning_at,
    count_rows,
    split_parts,
)
from maxmargin.structures.segments.segment_windows import count_lengths, highest_value

__all__ = ["ListedSegments", "SegmentProblem"]

FAR_PAIRS = 400.0  # above what is possible: then pairs of labels are counted by logarithms


class SegmentWork(NamedTuple):
    """Tables for the longest example, and room for up to K outputs."""

    tables: SegmentTables
    counts: np.ndarray  # (L, D) of lengths
    pair_counts: np.ndarray  # (L, L)
    shares: np.ndarray  # (2, L)
    options: np.ndarray  # (max(L, D),)
    cover: np.ndarray  # (levels, N) the best segment over runs of 1, 2, 4, ... rows
    spread: np.ndarray  # as the weights of rows, or empty
    segment_spread: np.ndarray  # as those of listed segments, or empty
    branches: np.ndarray  # (K, 3)


@implements(generics.workspace, SegmentProblem)
def segment_workspace(problem, n_best):
    n_labels, dtype = len(problem.limits), problem.penalty.dtype
    longest, longest_example = int(problem.limits.max()), int(np.diff(problem.starts).max(initial=0))
    return SegmentWork(
        tables=segment_dp.new_tables(longest_example, n_labels, longest),
        counts=aligned((n_labels, longest), np.float64),
        pair_counts=aligned((n_labels, n_labels), np.float64),
        shares=aligned((2, n_labels), np.float64),
        options=aligned((max(n_labels, longest),), np.float64),
        cover=aligned((min(longest, longest_example).bit_length() + 1, longest_example + 1), np.float64),
        spread=norm_buffer(problem.features, problem.n_features, problem.n_columns, dtype),
        segment_spread=norm_buffer(problem.segment_features, problem.n_segment_features, n_labels, dtype),
        branches=aligned((n_best, 3), np.int64),
    )


# --- the best -------------------------------------------------------------------------------------------------------


class Cuts(NamedTuple):
    """Segments chosen from the last one to the first: choice s is that of the one that ends s rows before the end."""

    problem: SegmentProblem
    i: int
    theta: np.ndarray
    tables: SegmentTables


@helper
def onward_potential(tables, y, end, label):
    """That of the transition from a label to the segment that begins at `end`, if there is one."""
    return tables.pairs.logs[label, y[end]] if end < y.size else 0.0


@helper
def find_best(problem, i, theta, y, end, tables):
    """The best segment that ends there, before what `y` has from there on: its score, its first row and its label."""
    rows, listed, _, _ = split_parts(problem, i, theta)
    n_labels = problem.limits.size
    longest = tables.reversed_lengths.logs.shape[1]
    best = 2 * NEVER
    best_begin = end - 1
    best_label = 0
    for label in range(n_labels):
        row = segment_dp.lengths_to(problem, i, listed, label, end, tables)
        onward = onward_potential(tables, y, end, label) + segment_dp.last_potential(rows, n_labels, end, label)
        onward += tables.sums[label, end]
        for begin in range(tables.reach[label, end], end):
            score = tables.opened.values[label, begin] + tables.reversed_lengths.logs[row, longest - end + begin]
            if score + onward > best:
                best = score + onward
                best_begin = begin
                best_label = label
    return best, best_begin, best_label


@helper
def write_segment(problem, y, begin, end, label):
    """Write a segment into an output."""
    y[begin] = label
    for t in range(begin + 1, end):
        y[t] = problem.limits.size + label


@implements(generics.max_oracle, SegmentProblem)
def best_segmentation(problem, i, theta, y, work):
    segment_dp.run_forward(Best(), problem, i, theta, work.tables)
    end = y.size
    while end > 0:
        _, begin, label = find_best(problem, i, theta, y, end, work.tables)
        write_segment(problem, y, begin, end, label)
        end = begin
    return generics.score_output(problem, i, theta, y)


@implements(take, Cuts)
def take_segment(choices, y, s, option):
    n_labels = choices.problem.limits.size
    end = y.size - s
    write_segment(choices.problem, y, option // n_labels, end, option % n_labels)


@implements(branch_off, Cuts)
def branch_off_segment(choices, y, s, branches):
    problem, i, theta, tables = choices
    n_labels = problem.limits.size
    end = y.size - s
    if s > 0 and y[end] >= n_labels:
        return  # within a segment that is chosen already
    rows, listed, _, _ = split_parts(problem, i, theta)
    longest = tables.reversed_lengths.logs.shape[1]
    best, best_begin, best_label = find_best(problem, i, theta, y, end, tables)
    for label in range(n_labels):
        row = segment_dp.lengths_to(problem, i, listed, label, end, tables)
        onward = onward_potential(tables, y, end, label) + segment_dp.last_potential(rows, n_labels, end, label)
        onward += tables.sums[label, end]
        for begin in range(tables.reach[label, end], end):
            if label != best_label or begin != best_begin:
                score = tables.opened.values[label, begin] + tables.reversed_lengths.logs[row, longest - end + begin]
                offer(branches, s, begin * n_labels + label, max(best - (score + onward), 0.0))
    write_segment(problem, y, best_begin, end, best_label)


@implements(generics.topk_oracle, SegmentProblem)
def topk_segmentations(problem, i, theta, outputs, values, level, work):
    best = segment_dp.run_forward(Best(), problem, i, theta, work.tables)
    choices = Cuts(problem, i, theta, work.tables)
    count = k_best(choices, outputs.shape[1], best, outputs, values, level, work.branches)
    generics.rank(problem, i, theta, outputs, values, count)
    return count


@helper
def score_listed(problem, i, k, label, rows, listed, tables):
    """The sum over outputs with a listed segment, or the best of them, after forward and backward; NEVER if none."""
    begin = problem.listed.begin[problem.listed.starts[i] + k]
    end = problem.listed.end[problem.listed.starts[i] + k]
    if begin < tables.reach[label, end]:
        return NEVER
    score = tables.arrived[begin, label] + rows[begin, label] + listed[k, label]
    score += tables.sums[label, end] - tables.sums[label, begin + 1] + tables.lengths.logs[label, end - begin - 1]
    return score + segment_dp.last_potential(rows, problem.limits.size, end, label) + tables.rest[end, label]


@implements(generics.max_marginals, SegmentProblem)
def segment_max_marginals(problem, i, theta, out, work):
    tables = work.tables
    rows, listed, _, _ = split_parts(problem, i, theta)
    best, best_listed, _, _ = split_parts(problem, i, out)
    n_labels = problem.limits.size
    segment_dp.run_forward(Best(), problem, i, theta, tables)
    for p in range(rows.shape[0], 0, -1):
        segment_dp.run_backward_step(Best(), problem, i, rows, listed, p, tables)
    for label in range(n_labels):
        cover_rows(problem, i, rows, listed, label, work)
        for t in range(rows.shape[0]):
            best[t, label] = max(tables.arrived[t, label] + tables.begun[t, label], IMPOSSIBLE)
            is_possible = rows[t, n_labels + label] > IMPOSSIBLE / 2
            best[t, n_labels + label] = max(work.cover[0, t], IMPOSSIBLE) if is_possible else IMPOSSIBLE
            if problem.n_columns > 2 * n_labels:
                ending = tables.ended[t + 1, label] + tables.rest[t + 1, label]
                best[t, 2 * n_labels + label] = max(ending, IMPOSSIBLE)
        for k in range(best_listed.shape[0]):
            best_listed[k, label] = max(score_listed(problem, i, k, label, rows, listed, tables), IMPOSSIBLE)


@helper
def cover_rows(problem, i, rows, listed, label, work):
    """The best score of a segment that goes on at each row into cover[0], in O(T D): runs are halved again and again.

    A run of n rows is two runs of 2^k rows each, which may overlap.
    """
    tables, cover = work.tables, work.cover
    length = rows.shape[0]
    longest = tables.reversed_lengths.logs.shape[1]
    for k in range(cover.shape[0]):
        for t in range(length):
            cover[k, t] = NEVER
    for end in range(2, length + 1):
        row = segment_dp.lengths_to(problem, i, listed, label, end, tables)
        for begin in range(tables.reach[label, end], end - 1):
            score = tables.opened.values[label, begin] + tables.reversed_lengths.logs[row, longest - end + begin]
            score += tables.closed.values[label, end]
            k = 0
            while 2 << k <= end - 1 - begin:
                k += 1
            cover[k, begin + 1] = max(cover[k, begin + 1], score)
            cover[k, end - (1 << k)] = max(cover[k, end - (1 << k)], score)
    for k in range(cover.shape[0] - 1, 0, -1):
        half = 1 << (k - 1)
        for t in range(length - half):
            cover[k - 1, t] = max(cover[k - 1, t], cover[k, t])
            cover[k - 1, t + half] = max(cover[k - 1, t + half], cover[k, t])


# --- sums -----------------------------------------------------------------------------------------------------------


@implements(generics.exp_oracle, SegmentProblem)
def sum_segmentations(problem, i, theta, mu, work):
    tables = work.tables
    rows, listed, _, _ = split_parts(problem, i, theta)
    means, listed_means, lengths, pairs = split_parts(problem, i, mu)
    n_labels = problem.limits.size
    length = rows.shape[0]
    shares = work.shares[0]
    log_z = segment_dp.run_forward(LogSums(), problem, i, theta, tables)
    clear(mu)
    for label in range(n_labels):
        clear(work.counts[label])
        clear(work.pair_counts[label])
    for p in range(length, 0, -1):
        segment_dp.run_backward_step(LogSums(), problem, i, rows, listed, p, tables)
        for label in range(n_labels):
            shares[label] = as_share(tables.arrived[p - 1, label] + tables.begun[p - 1, label], log_z)
        first_listed, last_listed = beginning_at(problem, i, p - 1)
        for label in range(n_labels):
            share = shares[label]
            means[p - 1, label] = share
            if share > 0:
                row = label
                if first_listed < last_listed:
                    row = segment_dp.lengths_from(problem, i, listed, label, p - 1, tables)
                hi = min(tables.stop[label], p - 1 + problem.limits[label]) + 1
                value = tables.closed.gathered[label]
                count_lengths(tables.closed, label, p, hi, tables.lengths, row, value, share, work.counts)
        if p < length:
            count_pairs(tables, p, log_z, work.shares, work.pair_counts)
    covered = work.shares[0]
    ending = work.shares[1]
    clear(covered)
    for t in range(length):
        for label in range(n_labels):
            ending[label] = as_share(tables.ended[t + 1, label] + tables.rest[t + 1, label], log_z)
        for label in range(n_labels):
            is_possible = rows[t, n_labels + label] > IMPOSSIBLE / 2
            means[t, n_labels + label] = max(covered[label], 0.0) if is_possible else 0.0
            covered[label] += means[t, label] - ending[label]
        if problem.n_columns > 2 * n_labels:
            for label in range(n_labels):
                means[t, 2 * n_labels + label] = ending[label]
    for label in range(n_labels):
        for d in range(lengths.shape[0]):
            lengths[d, label] = work.counts[label, d]
        for b in range(n_labels):
            pairs[label, b] = work.pair_counts[label, b]
        for k in range(listed.shape[0]):
            score = score_listed(problem, i, k, label, rows, listed, tables)
            listed_means[k, label] = as_share(score, log_z)
    return log_z


@helper
def as_share(score, log_z):
    """The probability of what has a sum over outputs, by its logarithm."""
    return fast_exp(min(score - log_z, 0.0))


@helper
def count_pairs(tables, p, log_z, shares, counts):
    """Add the probabilities of the labels of segments that end, and that begin, at place p to those of other places."""
    n_labels = counts.shape[0]
    top_ended = highest_value(tables.ended, p, n_labels)
    top_begun = highest_value(tables.begun, p, n_labels)
    lacking = top_ended + top_begun + tables.pairs.top[0] - log_z
    if lacking < FAR_PAIRS:
        for label in range(n_labels):
            shares[0, label] = fast_exp(tables.ended[p, label] - top_ended)
            shares[1, label] = fast_exp(tables.begun[p, label] - top_begun)
        scale = fast_exp(lacking)
        for a in range(n_labels):
            share = scale * shares[0, a]
            for b in range(n_labels):
                counts[a, b] += share * shares[1, b] * tables.pairs.factors[a, b]
    else:
        for a in range(n_labels):
            for b in range(n_labels):
                counts[a, b] += as_share(tables.ended[p, a] + tables.pairs.logs[a, b] + tables.begun[p, b], log_z)


@implements(generics.sample_oracle, SegmentProblem)
def draw_segmentations(problem, i, theta, draws, outputs, work):
    tables = work.tables
    _, listed, _, _ = split_parts(problem, i, theta)
    n_labels = problem.limits.size
    longest = tables.reversed_lengths.logs.shape[1]
    segment_dp.run_forward(LogSums(), problem, i, theta, tables)
    for k in range(outputs.shape[0]):
        y = outputs[k]
        end = count_rows(problem, i)
        while end > 0:
            for label in range(n_labels):
                work.options[label] = tables.ended[end, label] + onward_potential(tables, y, end, label)
            label, left = pick(LogSums(), work.options[:n_labels], draws[k, end - 1])
            row = segment_dp.lengths_to(problem, i, listed, label, end, tables)
            first = tables.reach[label, end]
            for begin in range(first, end):
                length = tables.reversed_lengths.logs[row, longest - end + begin]
                work.options[begin - first] = tables.opened.values[label, begin] + length
            chosen, _ = pick(LogSums(), work.options[: end - first], left)
            write_segment(problem, y, first + chosen, end, label)
            end = first + chosen
