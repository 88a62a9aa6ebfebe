"""Sparse features that have weights only for observed pairs of a feature and a label.

There is one weight per pair, by feature; all others are zero and are not stored. On text, where most features go with
one or two labels, there are far fewer of them, and they fit in the processor's cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.features.base import (
    as_matrix,
    row_is_zero,
    score_rows,
    spread_rows,
    squared_norm_rows,
    squared_sums,
    squared_sums_of_rows,
    weight_shape,
)
from maxmargin.features.sparse import SparseFeatures, entry
from maxmargin.persist.registry import register
from maxmargin.runtime.dispatch import implements


@register
class Pairs(NamedTuple):
    """The pairs that have a weight: feature f and labels[start[f]:start[f + 1]].

    Unsigned: Numba checks signed indices for negative ones, which doubles the time of a pass.
    """

    start: np.ndarray  # (F + 1,) uint32
    labels: np.ndarray  # (P,) uint32


class ObservedFeatures(NamedTuple):
    """Sparse or binary rows whose entries say which weights they meet.

    Entry p meets the weights rows.indices[p]:ends[p], those of its feature; weight k is that of labels[k].
    """

    rows: Any
    ends: np.ndarray  # uint32
    labels: np.ndarray  # (P,) uint32


def observed_features(rows: Any, pairs: Pairs, *, sorts: bool = True) -> ObservedFeatures:
    """Sparse or binary rows with weights for these pairs.

    The entries of a row are sorted by the number of their weights: then loops over these are of similar length, and a
    pass takes a third less time. For a single pass that is not worth it.
    """
    starts, ends = pairs.start[rows.indices], pairs.start[1:][rows.indices]
    if not sorts:
        return ObservedFeatures(rows._replace(indices=starts), ends, pairs.labels)
    arrays = [starts, ends]
    if isinstance(rows, SparseFeatures):
        rows = rows._replace(values=rows.values.copy())
        arrays.append(rows.values)
    for lo in range(0, len(starts), 500_000):  # less memory than all at once; a row that is cut is sorted in two parts
        part = slice(lo, lo + 500_000)
        row = np.searchsorted(rows.indptr, np.arange(lo, min(lo + 500_000, len(starts))), side="right")
        order = np.lexsort((ends[part] - starts[part], row))
        for array in arrays:
            array[part] = array[part][order]
    return ObservedFeatures(rows._replace(indices=starts), ends, pairs.labels)


@implements(weight_shape, ObservedFeatures)
def one_column(features, n_features, n_labels):
    return features.labels.size, 1


implements(squared_sums, ObservedFeatures)(squared_sums_of_rows)


@implements(as_matrix, ObservedFeatures)
def observed_matrix(features, n_rows):
    """A feature is known by the first of its weights; those without any are left out."""
    rows = as_matrix(features.rows, n_rows)
    rows.data = np.where(features.ends > features.rows.indices, rows.data, 0)
    return rows


@implements(score_rows, ObservedFeatures)
def score_observed(features, weights, lo, hi, out):
    rows, ends, labels = features.rows, features.ends, features.labels
    for t in range(lo, hi):
        for label in range(out.shape[1]):
            out[t - lo, label] = 0
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            x = entry(rows, p)
            for k in range(rows.indices[p], ends[p]):
                out[t - lo, labels[k]] += x * weights[k, 0]


@implements(spread_rows, ObservedFeatures)
def spread_observed(features, weights, lo, hi, delta, scale):
    rows, ends, labels = features.rows, features.ends, features.labels
    step = weights.dtype.type(scale)
    for t in range(lo, hi):
        if row_is_zero(delta, t - lo):
            continue
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            x = entry(rows, p) * step
            for k in range(rows.indices[p], ends[p]):
                weights[k, 0] += x * delta[t - lo, labels[k]]


@implements(squared_norm_rows, ObservedFeatures)
def squared_norm_observed(features, i, lo, hi, delta, buffer):
    spread_rows(features, buffer, lo, hi, delta, 1.0)
    rows = features.rows
    total = 0.0
    for p in range(rows.indptr[lo], rows.indptr[hi]):
        for k in range(rows.indices[p], features.ends[p]):  # cleared as read: each weight counts once
            total += buffer[k, 0] * buffer[k, 0]
            buffer[k, 0] = 0
    return total
