"""Outputs, parts and features of segments: a sequence of T rows is cut into segments, each with a label.

An output of example i has an entry for each row: its label if a segment begins there, or L plus its label if one goes
on. So has a table of parts, with columns for each label of rows that begin a segment (*first*), of those that go on
with it (*later*) and, if there are any, of its *last* row. After these T x K indicators, K = 2 L or 3 L, come those of
segments that are *listed*, as they have features of their own, S x L; then counts: of lengths and labels of segments,
D x L, and of transitions between the labels of segments that follow each other, L x L.

The score of a segment is that of its rows, its length and, if it is listed, its own. So potentials are few, however
long segments may be, and dynamic programs add up rows by differences of sums from the beginning. The weights are those
of rows, (F, K), of listed segments, (F_segment, L), of lengths, (D, L), and of transitions, (L, L), flat.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, in_precision
from maxmargin.arrays.views import matrix
from maxmargin.features import (
    ConstantFeatures,
    join_layouts,
    layout_of_rows,
    rows_of,
    score_rows,
    spread_rows,
    squared_norm_rows,
    squared_sums,
    weight_shape,
    with_gram,
)
from maxmargin.runtime.dispatch import helper, implements, supports
from maxmargin.supervision.exclusions import exclude_parts, rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs


class ListedSegments(NamedTuple):
    """Segments with features of their own: those of example i are starts[i]:starts[i + 1], sorted by their ends."""

    starts: np.ndarray  # (n + 1,) int64
    begin: np.ndarray  # (S,) int64, the first row of each, counted in its example
    end: np.ndarray  # (S,) int64, the row after the last
    by_begin: np.ndarray  # (S,) int64, the segments of each example sorted by `begin`


def list_segments(starts: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[ListedSegments, np.ndarray]:
    """Segments of all examples, one after the other, in their order, and that order."""
    example = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((begin, end, example))
    begin, end = begin[order].astype(np.int64), end[order].astype(np.int64)
    by_begin = np.lexsort((end, begin, example)).astype(np.int64)
    return ListedSegments(starts.astype(np.int64), begin, end, by_begin), order


class SegmentProblem(NamedTuple):
    """Sequences stored one after the other; those of example i are the rows starts[i]:starts[i + 1]."""

    features: Any
    segment_features: Any
    starts: np.ndarray  # (n + 1,) int64
    listed: ListedSegments
    supervision: LabelSupervision  # of entries of outputs; columns of last rows cost nothing
    excluded: Blocks  # flags of indicators that are ruled out
    penalty: np.ndarray  # (L, L) zero, or IMPOSSIBLE for forbidden transitions
    limits: np.ndarray  # (L,) int64, the longest segment of each label
    n_features: int
    n_segment_features: int
    n_columns: int  # K


@helper
def count_rows(problem, i):
    """The number of rows of example i."""
    return problem.starts[i + 1] - problem.starts[i]


@helper
def longest_segment(problem):
    """D, the longest segment of any label."""
    longest = np.int64(1)
    for label in range(problem.limits.size):
        longest = max(longest, problem.limits[label])
    return longest


@helper
def split_parts(problem, i, parts):
    """The parts of example i as views: of rows (T, K), listed segments (S, L), lengths (D, L) and pairs (L, L)."""
    n_labels = problem.penalty.shape[0]
    length = count_rows(problem, i)
    n_listed = problem.listed.starts[i + 1] - problem.listed.starts[i]
    longest = longest_segment(problem)
    at = length * problem.n_columns
    rows = matrix(parts, 0, length, problem.n_columns)
    listed = matrix(parts, at, n_listed, n_labels)
    at += n_listed * n_labels
    return (
        rows,
        listed,
        matrix(parts, at, longest, n_labels),
        matrix(parts, at + longest * n_labels, n_labels, n_labels),
    )


@helper
def split_weights(problem, w):
    """The weights as views: of rows, of listed segments, and of counts in one row."""
    n_labels = problem.penalty.shape[0]
    rows, columns = weight_shape(problem.features, problem.n_features, problem.n_columns)
    more_rows, more_columns = weight_shape(problem.segment_features, problem.n_segment_features, n_labels)
    at = rows * columns + more_rows * more_columns
    n_counts = (longest_segment(problem) + n_labels) * n_labels
    return (matrix(w, 0, rows, columns), matrix(w, rows * columns, more_rows, more_columns), matrix(w, at, 1, n_counts))


@helper
def counts_of(problem, i, parts):
    """The counts of lengths and of transitions of example i in one row, as a view."""
    n_counts = (longest_segment(problem) + problem.penalty.shape[0]) * problem.penalty.shape[0]
    return matrix(parts, parts.size - n_counts, 1, n_counts)


@implements(generics.true_outputs, SegmentProblem)
def true_segmentations(problem):
    return Blocks(problem.supervision.labels, problem.starts)


@implements(generics.new_weights, SegmentProblem)
def new_segment_weights(problem):
    n_labels = len(problem.limits)
    rows = weight_shape(problem.features, problem.n_features, problem.n_columns)
    more = weight_shape(problem.segment_features, problem.n_segment_features, n_labels)
    n_counts = (int(problem.limits.max()) + n_labels) * n_labels
    return np.zeros(math.prod(rows) + math.prod(more) + n_counts, problem.penalty.dtype)


@implements(generics.part_sizes, SegmentProblem)
def segment_part_sizes(problem):
    n_labels = len(problem.limits)
    rows = np.diff(problem.starts) * problem.n_columns
    return rows + (np.diff(problem.listed.starts) + int(problem.limits.max()) + n_labels) * n_labels


@implements(generics.squared_diameters, SegmentProblem)
def segment_squared_diameters(problem):
    """Rows choose a column, and another if they are the last ones; two outputs have at most T segments each."""
    rows = squared_sums(problem.features, rows_of(problem.starts)) * (problem.n_columns // len(problem.limits) - 1)
    listed = squared_sums(problem.segment_features, rows_of(problem.listed.starts))
    return 2 * (rows + listed + 2 * np.diff(problem.starts) ** 2)


@implements(generics.layout, SegmentProblem)
def segment_layout(problem):
    n_labels = len(problem.limits)
    rows = layout_of_rows(problem.features, problem.n_features, problem.n_columns)
    more = layout_of_rows(problem.segment_features, problem.n_segment_features, n_labels)
    n_counts = (int(problem.limits.max()) + n_labels) * n_labels
    return join_layouts(rows, more, layout_of_rows(ConstantFeatures(), 1, n_counts))


@implements(generics.prepare, SegmentProblem)
def prepare_segments(problem, dtype):
    prepared = in_precision(problem, dtype)
    rows = {"features": (problem.starts, problem.n_features)}
    rows["segment_features"] = problem.listed.starts, problem.n_segment_features
    found = {name: getattr(prepared, name) for name in rows}
    return prepared._replace(
        **{name: with_gram(part, *rows[name]) for name, part in found.items() if supports(with_gram, part)}
    )


implements(generics.restrict, SegmentProblem)(exclude_parts)


@implements(generics.oracle_work, SegmentProblem)
def segment_work(problem):
    lengths, n_labels = np.diff(problem.starts), len(problem.limits)
    options = np.minimum(problem.limits, lengths[:, np.newaxis]).sum(axis=1) + n_labels**2
    return 2 * (lengths * options).sum() / segment_part_sizes(problem).sum()


@implements(generics.scores, SegmentProblem)
def segment_scores(problem, w, i, theta):
    of_rows, of_listed, of_counts = split_weights(problem, w)
    rows, listed, _, pairs = split_parts(problem, i, theta)
    counts = counts_of(problem, i, theta)
    score_rows(problem.features, of_rows, problem.starts[i], problem.starts[i + 1], rows)
    if listed.shape[0] > 0:
        lo = problem.listed.starts[i]
        score_rows(problem.segment_features, of_listed, lo, problem.listed.starts[i + 1], listed)
    for p in range(counts.shape[1]):
        counts[0, p] = of_counts[0, p]
    for a in range(pairs.shape[0]):
        for b in range(pairs.shape[0]):
            pairs[a, b] += problem.penalty[a, b]
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, SegmentProblem)
def spread_segments(problem, w, i, delta, scale):
    of_rows, of_listed, of_counts = split_weights(problem, w)
    rows, listed, _, _ = split_parts(problem, i, delta)
    counts = counts_of(problem, i, delta)
    spread_rows(problem.features, of_rows, problem.starts[i], problem.starts[i + 1], rows, scale)
    spread_rows(
        problem.segment_features, of_listed, problem.listed.starts[i], problem.listed.starts[i + 1], listed, scale
    )
    spread_rows(ConstantFeatures(), of_counts, 0, 1, counts, scale)


@implements(generics.squared_norm, SegmentProblem)
def segment_squared_norm(problem, i, delta, work):
    rows, listed, _, _ = split_parts(problem, i, delta)
    total = squared_norm_rows(problem.features, i, problem.starts[i], problem.starts[i + 1], rows, work.spread)
    lo = problem.listed.starts[i]
    hi = problem.listed.starts[i + 1]
    total += squared_norm_rows(problem.segment_features, i, lo, hi, listed, work.segment_spread)
    return total + squared_norm_rows(ConstantFeatures(), i, 0, 1, counts_of(problem, i, delta), work.spread)


@implements(generics.augment, SegmentProblem)
def augment_segments(problem, i, theta):
    rows, _, _, _ = split_parts(problem, i, theta)
    add_costs(problem.supervision, problem.starts[i], rows)


@helper
def find_end(problem, y, begin):
    """The row after the last of the segment that begins at a row."""
    end = begin + 1
    while end < y.size and y[end] >= problem.limits.size:
        end += 1
    return end


@helper
def find_listed(problem, i, begin, end):
    """The number of a segment among those that are listed of example i, or -1."""
    lo, hi = ending_at(problem, i, end)
    for k in range(lo, hi):
        if problem.listed.begin[k] == begin:
            return k - problem.listed.starts[i]
    return np.int64(-1)


@helper
def ending_at(problem, i, end):
    """The first of the listed segments of example i that end there, and the one after the last."""
    lo = problem.listed.starts[i]
    hi = problem.listed.starts[i + 1]
    while lo < hi:
        middle = (lo + hi) // 2
        if problem.listed.end[middle] < end:
            lo = middle + 1
        else:
            hi = middle
    hi = lo
    while hi < problem.listed.starts[i + 1] and problem.listed.end[hi] == end:
        hi += 1
    return lo, hi


@helper
def beginning_at(problem, i, begin):
    """As `ending_at`, of places in `by_begin`."""
    lo = problem.listed.starts[i]
    hi = problem.listed.starts[i + 1]
    while lo < hi:
        middle = (lo + hi) // 2
        if problem.listed.begin[problem.listed.by_begin[middle]] < begin:
            lo = middle + 1
        else:
            hi = middle
    hi = lo
    while hi < problem.listed.starts[i + 1] and problem.listed.begin[problem.listed.by_begin[hi]] == begin:
        hi += 1
    return lo, hi


@implements(generics.add_output, SegmentProblem)
def add_segmentation(problem, i, y, scale, mu):
    rows, listed, lengths, pairs = split_parts(problem, i, mu)
    n_labels = problem.limits.size
    begin = 0
    before = np.int64(-1)
    while begin < y.size:
        end = find_end(problem, y, begin)
        label = np.int64(y[begin])
        for t in range(begin, end):
            rows[t, y[t]] += scale
        if problem.n_columns > 2 * n_labels:
            rows[end - 1, 2 * n_labels + label] += scale
        k = find_listed(problem, i, begin, end)
        if k >= 0:
            listed[k, label] += scale
        lengths[end - begin - 1, label] += scale
        if begin > 0:
            pairs[before, label] += scale
        before = label
        begin = end


@implements(generics.score_output, SegmentProblem)
def score_segmentation(problem, i, theta, y):
    rows, listed, lengths, pairs = split_parts(problem, i, theta)
    n_labels = problem.limits.size
    total = 0.0
    begin = 0
    before = np.int64(-1)
    while begin < y.size:
        end = find_end(problem, y, begin)
        label = np.int64(y[begin])
        for t in range(begin, end):
            total += rows[t, y[t]]
        if problem.n_columns > 2 * n_labels:
            total += rows[end - 1, 2 * n_labels + label]
        k = find_listed(problem, i, begin, end)
        if k >= 0:
            total += listed[k, label]
        total += lengths[end - begin - 1, label]
        if begin > 0:
            total += pairs[before, label]
        before = label
        begin = end
    return total
