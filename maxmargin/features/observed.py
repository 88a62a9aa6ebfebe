"""Sparse features that have weights only for observed pairs of a feature and a label.

There is one weight per pair, by feature; all others are zero and are not stored. On text, where most features go with
one or two labels, there are far fewer of them, and they fit in the processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.features import linear_map
from maxmargin.features.pairs import ROWS, Pairs
from maxmargin.features.sparse import SparseFeatures, SparseRows, entry
from maxmargin.runtime.dispatch import implements


class ObservedFeatures(NamedTuple):
    """Sparse or binary rows whose entries say which weights they meet.

    Entry p meets the weights rows.indices[p]:ends[p], those of its feature; weight k is that of labels[k].
    """

    rows: SparseRows
    ends: np.ndarray  # uint32
    labels: np.ndarray  # (P,) uint32


def observed_features(rows: SparseRows, pairs: Pairs, *, is_once: bool = False) -> ObservedFeatures:
    """Sparse or binary rows with weights for these pairs; for a single pass, if said so, sorting is not worth it."""
    if is_once:
        starts, ends = pairs.start[rows.indices], pairs.start[1:][rows.indices]
        return ObservedFeatures(rows._replace(indices=starts), ends, pairs.labels)
    n_met = np.diff(pairs.start)
    rows = select_entries(rows, n_met > 0, pairs.start[:-1], n_met)
    return ObservedFeatures(rows, pairs.start[np.searchsorted(pairs.start, rows.indices, side="right")], pairs.labels)


def select_entries(
    rows: SparseRows, is_in: np.ndarray, numbers: np.ndarray, n_met: np.ndarray | None = None
) -> SparseRows:
    """The rows with their entries of some features only, which have new numbers.

    The entries of a row are sorted by the number of weights that they meet, if that of each feature is given: then
    loops over these are of similar length, and a pass takes a third less time.
    """
    lengths, indices = [], []
    values: list[np.ndarray] = []
    for lo in range(0, len(rows.indptr) - 1, ROWS):
        starts = rows.indptr[lo : lo + ROWS + 1]
        found = rows.indices[starts[0] : starts[-1]]
        kept = np.flatnonzero(is_in[found])
        lengths.append(np.diff(np.searchsorted(kept, starts - starts[0])))
        if n_met is not None:
            row = np.repeat(np.arange(len(lengths[-1])), lengths[-1])
            kept = kept[np.lexsort((n_met[found[kept]], row))]
        indices.append(numbers[found[kept]])
        if isinstance(rows, SparseFeatures):
            values.append(rows.values[starts[0] + kept])
    chosen = rows._replace(indptr=starts_of(np.concatenate(lengths)), indices=np.concatenate(indices))
    return chosen._replace(values=np.concatenate(values)) if isinstance(chosen, SparseFeatures) else chosen


@implements(linear_map.weight_shape, ObservedFeatures)
def one_column(features, n_features, n_labels):
    return features.labels.size, 1


@implements(linear_map.as_matrix, ObservedFeatures)
def observed_matrix(features, n_rows):
    """A feature is known by the first of its weights; those without any are left out."""
    rows = linear_map.as_matrix(features.rows, n_rows)
    rows.data = np.where(features.ends > features.rows.indices, rows.data, 0)
    return rows


@implements(linear_map.score_rows, ObservedFeatures)
def score_observed(features, weights, lo, hi, out):
    rows, ends, labels = features.rows, features.ends, features.labels
    for t in range(lo, hi):
        for label in range(out.shape[1]):
            out[t - lo, label] = 0
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            x = entry(rows, p)
            for k in range(rows.indices[p], ends[p]):
                out[t - lo, labels[k]] += x * weights[k, 0]


@implements(linear_map.spread_rows, ObservedFeatures)
def spread_observed(features, weights, lo, hi, delta, scale):
    rows, ends, labels = features.rows, features.ends, features.labels
    step = weights.dtype.type(scale)
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            x = entry(rows, p) * step
            for k in range(rows.indices[p], ends[p]):
                weights[k, 0] += x * delta[t - lo, labels[k]]


@implements(linear_map.squared_norm_rows, ObservedFeatures)
def squared_norm_observed(features, i, lo, hi, delta, buffer):
    linear_map.spread_rows(features, buffer, lo, hi, delta, 1.0)
    rows = features.rows
    total = 0.0
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            for k in range(rows.indices[p], features.ends[p]):  # cleared as read: each weight counts once
                total += buffer[k, 0] * buffer[k, 0]
                buffer[k, 0] = 0
    return total
