"""Observed pairs as solvers keep them: rows of weights for features that meet many labels, pairs for the others.

On text a few thousand features, such as tags, prefixes and frequent words, meet many labels each, and nearly all of the
work is theirs: with a weight for every label, and zero for pairs that were not observed, they are rows of vectors. The
others meet one or two labels, and keep a weight for each. Both stand in the order in which memory is best used: rows by
how often they occur, pairs by their first use.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.features.base import (
    Gram,
    as_matrix,
    fill_gram,
    gram_squared_norm,
    row_is_zero,
    score_rows,
    spread_rows,
    squared_norm_rows,
    squared_sums,
    squared_sums_of_rows,
    weight_shape,
    with_gram,
)
from maxmargin.features.observed import ObservedFeatures
from maxmargin.features.sparse import SparseFeatures, entry
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.runtime.lanes import BLOCK, LANES, as_precise, fetch, fma, store, times, without_first
from maxmargin.runtime.views import matrix

MANY = 1 / 4  # of all labels: features that meet more have a row of weights
LONG = 100  # rows of an example: those with more have no Gram matrix
ENOUGH_VISITS = 1_000_000  # of weights in a pass: with fewer there is little to gain


class SplitFeatures(NamedTuple):
    """Sparse or binary rows, in two parts: their entries of frequent features, and the others."""

    frequent: Any
    is_observed: np.ndarray  # (F, L) which weights of frequent features there are, as numbers 0 and 1
    rare: ObservedFeatures  # whose weights come after those of the frequent ones
    gram: Gram  # of all features, whatever pairs they have


def split_features(
    features: ObservedFeatures, n_labels: int, n_examples: int, dtype: Any
) -> tuple[SplitFeatures, np.ndarray] | None:
    """The features in two parts, and where each of their weights is then; None if that is not worth it."""
    rows, starts, counts = features.rows, features.rows.indices, features.ends - features.rows.indices
    if counts.sum() < ENOUGH_VISITS:
        return None
    n_weights = features.labels.size
    is_frequent, is_rare = counts > MANY * n_labels, (counts > 0) & (counts <= MANY * n_labels)
    place = np.full(n_weights, -1, np.int64)

    often = np.bincount(starts[is_frequent], minlength=n_weights)
    firsts = np.argsort(-often, kind="stable")[: np.count_nonzero(often)]  # the first weights of frequent features
    number = np.zeros(n_weights, np.int32)
    number[firsts] = np.arange(len(firsts))
    lengths = np.zeros(n_weights, np.int64)
    lengths[starts] = counts
    owner, weights = _ranges(firsts, lengths[firsts])
    is_observed = np.zeros((len(firsts), n_labels), dtype)
    is_observed[owner, features.labels[weights]] = 1
    place[weights] = owner * n_labels + features.labels[weights]

    first_use = np.full(n_weights, -1, np.int64)
    used = starts[is_rare]
    first_use[used[::-1]] = np.arange(len(used))[::-1]
    firsts = np.argsort(first_use, kind="stable")[np.count_nonzero(first_use < 0) :]
    begin = np.zeros(n_weights, np.uint32)
    begin[firsts] = np.cumsum(lengths[firsts]) - lengths[firsts]
    _, weights = _ranges(firsts, lengths[firsts])
    unused = np.setdiff1d(np.flatnonzero(place < 0), weights, assume_unique=True)
    place[weights] = is_observed.size + np.arange(len(weights))
    place[unused] = is_observed.size + len(weights) + np.arange(len(unused))

    rare = _entries(rows, is_rare, begin[used])
    labels = features.labels[np.concatenate([weights, unused])]
    gram = Gram(np.empty(0, np.float32), np.full(n_examples, -1, np.int64))
    frequent = _entries(rows, is_frequent, number[starts[is_frequent]])
    rare_part = ObservedFeatures(rare, (rare.indices + counts[is_rare]).astype(np.uint32), labels)
    return SplitFeatures(frequent, is_observed, rare_part, gram), place


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of ranges, each as often as it is long, and all that is in them."""
    owner = np.repeat(np.arange(len(starts)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, starts[owner] + within


def _entries(rows: Any, which: np.ndarray, indices: np.ndarray) -> Any:
    """The rows with some of their entries only, which have new indices."""
    indptr = np.searchsorted(np.flatnonzero(which), rows.indptr)
    kept = rows._replace(indptr=indptr, indices=indices)
    return kept._replace(values=rows.values[which]) if isinstance(rows, SparseFeatures) else kept


@implements(weight_shape, SplitFeatures)
def table_and_column(features, n_features, n_labels):
    return features.is_observed.size + features.rare.labels.size, 1


implements(squared_sums, SplitFeatures)(squared_sums_of_rows)


@implements(as_matrix, SplitFeatures)
def split_matrix(features, n_rows):
    return sp.hstack([as_matrix(features.frequent, n_rows), as_matrix(features.rare, n_rows)], format="csr")


@implements(score_rows, SplitFeatures)
def score_split(features, weights, lo, hi, out):
    table = matrix(weights, 0, features.is_observed.shape[0], features.is_observed.shape[1])
    score_rows(features.frequent, table, lo, hi, out)
    rows, ends, labels = features.rare.rows, features.rare.ends, features.rare.labels
    after = features.is_observed.size
    for t in range(lo, hi):
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            x = entry(rows, p)
            for k in range(rows.indices[p], ends[p]):
                out[t - lo, labels[k]] += x * weights[after + k, 0]


@implements(spread_rows, SplitFeatures)
def spread_split(features, weights, lo, hi, delta, scale):
    rows, ends, labels = features.rare.rows, features.rare.ends, features.rare.labels
    table = matrix(weights, 0, features.is_observed.shape[0], features.is_observed.shape[1])
    after = features.is_observed.size
    n_labels = delta.shape[1]
    step = weights.dtype.type(scale)
    for t in range(lo, hi):
        if row_is_zero(delta, t - lo):
            continue
        begin = features.frequent.indptr[t]
        end = features.frequent.indptr[t + 1]
        if n_labels >= LANES:
            for c in range(0, n_labels, BLOCK):
                spread_observed_block(features, table, begin, end, delta, t - lo, c, step)
        else:
            for p in range(begin, end):
                f = np.int64(features.frequent.indices[p])
                x = entry(features.frequent, p) * step
                for label in range(n_labels):
                    table[f, label] += x * features.is_observed[f, label] * delta[t - lo, label]
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            x = entry(rows, p) * step
            for k in range(rows.indices[p], ends[p]):
                weights[after + k, 0] += x * delta[t - lo, labels[k]]


@helper
def spread_observed_block(features, weights, begin, end, delta, t, c0, step):
    """As `maxmargin.features.sparse.spread_block`, for the weights that there are."""
    rows, is_observed = features.frequent, features.is_observed
    last = delta.shape[1] - LANES
    begun = c0
    c0 = min(c0, last)
    c1 = min(c0 + LANES, last)
    c2 = min(c0 + 2 * LANES, last)
    c3 = min(c0 + 3 * LANES, last)
    d0 = times(step, as_precise(without_first(fetch(delta, t, c0), begun - c0), weights))
    d1 = times(step, as_precise(without_first(fetch(delta, t, c1), begun - c1), weights))
    d2 = times(step, as_precise(without_first(fetch(delta, t, c2), begun - c2), weights))
    d3 = times(step, as_precise(without_first(fetch(delta, t, c3), begun - c3), weights))
    for p in range(begin, end):
        f = np.int64(rows.indices[p])
        x = entry(rows, p)
        w0 = fma(times(x, as_precise(fetch(is_observed, f, c0), weights)), d0, fetch(weights, f, c0))
        w1 = fma(times(x, as_precise(fetch(is_observed, f, c1), weights)), d1, fetch(weights, f, c1))
        w2 = fma(times(x, as_precise(fetch(is_observed, f, c2), weights)), d2, fetch(weights, f, c2))
        w3 = fma(times(x, as_precise(fetch(is_observed, f, c3), weights)), d3, fetch(weights, f, c3))
        store(weights, f, c0, w0)
        store(weights, f, c1, w1)
        store(weights, f, c2, w2)
        store(weights, f, c3, w3)


@implements(squared_norm_rows, SplitFeatures)
def squared_norm_split(features, i, lo, hi, delta, buffer):
    """With a Gram matrix an upper bound: it is that of directions in which all pairs have a weight."""
    if features.gram.start[i] >= 0:
        return gram_squared_norm(features.gram, i, hi - lo, delta)
    spread_rows(features, buffer, lo, hi, delta, 1.0)
    frequent, rare = features.frequent, features.rare
    table = matrix(buffer, 0, features.is_observed.shape[0], features.is_observed.shape[1])
    after = features.is_observed.size
    total = 0.0
    for p in range(frequent.indptr[lo], frequent.indptr[hi]):  # cleared as read: each weight counts once
        f = np.int64(frequent.indices[p])
        for label in range(table.shape[1]):
            total += table[f, label] * table[f, label]
            table[f, label] = 0
    for p in range(rare.rows.indptr[lo], rare.rows.indptr[hi]):
        for k in range(rare.rows.indices[p], rare.ends[p]):
            total += buffer[after + k, 0] * buffer[after + k, 0]
            buffer[after + k, 0] = 0
    return total


@implements(with_gram, SplitFeatures)
def split_with_gram(features, offsets, width):
    """Of all examples: it is cheaper than the sums of both parts, but for very long ones."""
    lengths = np.diff(offsets)
    is_short = lengths <= LONG
    ends = np.cumsum(np.where(is_short, lengths**2, 0))
    start = np.where(is_short, ends - lengths**2, -1)
    values, more = (np.empty(int(ends[-1]), np.float32) for _ in range(2))
    fill_gram(features.frequent, offsets, start, values, len(features.is_observed))
    fill_gram(features.rare.rows, offsets, start, more, features.rare.labels.size)
    values += more
    return features._replace(gram=Gram(values, start))
