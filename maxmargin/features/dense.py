"""Dense features: one row of F numbers per token."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.views import multiply
from maxmargin.features import linear_map
from maxmargin.features.linear_map import Gram
from maxmargin.runtime.dispatch import implements


class DenseFeatures(NamedTuple):
    """Rows of all examples, C-contiguous, shape (N, F)."""

    rows: np.ndarray
    gram: Gram


linear_map.have_full_table(DenseFeatures)


@implements(linear_map.as_matrix, DenseFeatures)
def dense_matrix(features, n_rows):
    return features.rows


@implements(linear_map.score_rows, DenseFeatures)
def score_dense(features, weights, lo, hi, out):
    if hi - lo > 1:
        multiply(features.rows[lo:hi], weights, out[: hi - lo])
        return
    for label in range(out.shape[1]):  # of one row, in less time than it takes to call BLAS
        out[0, label] = 0
    row = features.rows[lo]
    f = 0
    while f + 4 <= row.size:  # four rows of weights for one load and store of the scores
        for label in range(out.shape[1]):
            first = row[f] * weights[f, label] + row[f + 1] * weights[f + 1, label]
            second = row[f + 2] * weights[f + 2, label] + row[f + 3] * weights[f + 3, label]
            out[0, label] += first + second
        f += 4
    while f < row.size:
        for label in range(out.shape[1]):
            out[0, label] += row[f] * weights[f, label]
        f += 1


@implements(linear_map.spread_rows, DenseFeatures)
def spread_dense(features, weights, lo, hi, delta, scale):
    rows = features.rows
    step = weights.dtype.type(scale)
    t = lo
    while t + 4 <= hi:  # four rows for one load and store of the weights
        for f in range(rows.shape[1]):
            x0 = rows[t, f] * step
            x1 = rows[t + 1, f] * step
            x2 = rows[t + 2, f] * step
            x3 = rows[t + 3, f] * step
            for label in range(delta.shape[1]):
                first = x0 * delta[t - lo, label] + x1 * delta[t - lo + 1, label]
                second = x2 * delta[t - lo + 2, label] + x3 * delta[t - lo + 3, label]
                weights[f, label] += first + second
        t += 4
    while t < hi:
        for f in range(rows.shape[1]):
            x0 = rows[t, f] * step
            if x0 != 0:
                for label in range(delta.shape[1]):
                    weights[f, label] += x0 * delta[t - lo, label]
        t += 1


@implements(linear_map.squared_norm_rows, DenseFeatures)
def squared_norm_dense(features, i, lo, hi, delta, buffer):
    if features.gram.at[i] >= 0:
        return linear_map.gram_squared_norm(features.gram, i, hi - lo, delta)
    linear_map.spread_rows(features, buffer, lo, hi, delta, 1.0)
    return linear_map.clear_squares(buffer)


@implements(linear_map.add_row, DenseFeatures)
def add_dense_row(features, t, scale, dense):
    step = dense.dtype.type(scale)
    for f in range(dense.size):
        dense[f] += step * features.rows[t, f]


@implements(linear_map.dot_row, DenseFeatures)
def dot_dense_row(features, t, dense):
    total = dense.dtype.type(0)
    for f in range(dense.size):
        total += features.rows[t, f] * dense[f]
    return total


@implements(linear_map.clear_row, DenseFeatures)
def clear_dense_row(features, t, dense):
    squares = dense.dtype.type(0)
    for f in range(dense.size):
        squares += dense[f] * dense[f]
        dense[f] = 0
    return squares


@implements(linear_map.row_stretches, DenseFeatures)
def dense_stretches(features, lo, hi):
    return [(features.rows, lo, hi), *linear_map.gram_stretches(features.gram, lo, hi)]


@implements(linear_map.with_gram, DenseFeatures)
def dense_with_gram(features, starts, width):
    return features._replace(gram=linear_map.gram_blocks(features, starts, np.diff(starts) * width, width))


@implements(linear_map.fill_gram, DenseFeatures)
def fill_dense_gram(features, starts, at, values, width):
    for i in np.flatnonzero(at >= 0):
        linear_map.add_folded(features.rows[starts[i] : starts[i + 1]].astype(np.float64), at[i], values)
