"""Sparse features with dense columns beside them, such as names of features and vectors of words.

Dense columns have weights for all labels, which stand together among those of the sparse ones. In these columns a row
has some rows of a table, one after the other: tokens of the same word share one, and what is unknown has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.lanes import BLOCK, LANES, columns_of_block, fetch, fma, plus, splat, store, without_first
from maxmargin.arrays.views import matrix
from maxmargin.features import linear_map
from maxmargin.features.layout import lay_out, layout_of_rows
from maxmargin.features.linear_map import Gram
from maxmargin.features.sparse import fetch_step
from maxmargin.runtime.dispatch import helper, implements, supports

LONG = 100  # rows of an example: those with more have no Gram matrix


class MixedFeatures(NamedTuple):
    """Any sparse storage, and the rows table[which[t, 0]], table[which[t, 1]] and so on beside its row t."""

    sparse: Any
    table: np.ndarray  # (V, D)
    which: np.ndarray  # (N, K) rows of the table, below 0 for zeros
    begin: int  # where the K D weights of dense columns begin, with all labels of the first
    dense_gram: Gram


def mix_features(sparse: object, table: np.ndarray, which: np.ndarray, begin: int, n_examples: int) -> MixedFeatures:
    """Sparse features with a table of dense ones beside them."""
    return MixedFeatures(sparse, table, which, begin, Gram(np.empty(0), np.full(n_examples, -1, np.int64)))


@implements(linear_map.weight_shape, MixedFeatures)
def mixed_shape(features, n_features, n_labels):
    return linear_map.weight_shape(features.sparse, n_features, n_labels)


@implements(lay_out, MixedFeatures)
def lay_out_mixed(features, n_features, n_labels):
    return layout_of_rows(features.sparse, n_features, n_labels)


@implements(linear_map.score_rows, MixedFeatures)
def score_mixed(features, weights, lo, hi, out):
    linear_map.score_rows(features.sparse, weights, lo, hi, out)
    table, which = features.table, features.which
    n_labels, width = out.shape[1], table.shape[1]
    dense = matrix(weights, features.begin, which.shape[1] * width, n_labels)
    for t in range(lo, hi):
        for k in range(which.shape[1]):
            v = np.int64(which[t, k])
            if v < 0:
                continue
            if n_labels >= LANES:
                for c in range(0, n_labels, BLOCK):
                    add_scores(table, v, dense, k * width, out, t - lo, c)
            else:
                for f in range(width):
                    for label in range(n_labels):
                        out[t - lo, label] += table[v, f] * dense[k * width + f, label]


@helper
def add_scores(table, v, dense, f0, out, t, c):
    """out[t, c] += sum_f table[v, f] dense[f0 + f, c], for up to four vectors of columns from c on.

    The last ones overlap, or are the same; what an earlier block has dealt with is left alone: see `spread_block`.
    """
    c0, c1, c2, c3 = columns_of_block(c, out.shape[1])
    s0 = s1 = s2 = s3 = splat(out.dtype.type(0))
    for f in range(table.shape[1]):
        x = table[v, f]
        s0 = fma(x, fetch(dense, f0 + f, c0), s0)
        s1 = fma(x, fetch(dense, f0 + f, c1), s1)
        s2 = fma(x, fetch(dense, f0 + f, c2), s2)
        s3 = fma(x, fetch(dense, f0 + f, c3), s3)
    s0 = plus(fetch(out, t, c0), without_first(s0, c - c0))
    s1 = plus(fetch(out, t, c1), without_first(s1, c - c1))
    s2 = plus(fetch(out, t, c2), without_first(s2, c - c2))
    s3 = plus(fetch(out, t, c3), without_first(s3, c - c3))
    store(out, t, c0, s0)
    store(out, t, c1, s1)
    store(out, t, c2, s2)
    store(out, t, c3, s3)


@implements(linear_map.spread_rows, MixedFeatures)
def spread_mixed(features, weights, lo, hi, delta, scale):
    linear_map.spread_rows(features.sparse, weights, lo, hi, delta, scale)
    spread_table(features, weights, lo, hi, delta, scale)


@helper
def spread_table(features, weights, lo, hi, delta, scale):
    """The share of dense columns in `spread_rows`."""
    table, which = features.table, features.which
    n_labels, width = delta.shape[1], table.shape[1]
    dense = matrix(weights, features.begin, which.shape[1] * width, n_labels)
    step = weights.dtype.type(scale)
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        for k in range(which.shape[1]):
            v = np.int64(which[t, k])
            if v < 0:
                continue
            if n_labels >= LANES:
                for c in range(0, n_labels, BLOCK):
                    spread_vector(table, v, dense, k * width, delta, t - lo, c, step)
            else:
                for f in range(width):
                    x = table[v, f] * step
                    for label in range(n_labels):
                        dense[k * width + f, label] += x * delta[t - lo, label]


@helper
def spread_vector(table, v, dense, f0, delta, t, c, step):
    """dense[f0 + f, c] += step table[v, f] delta[t, c], for the columns of `add_scores`."""
    c0, c1, c2, c3 = columns_of_block(c, delta.shape[1])
    d0 = fetch_step(step, delta, t, c0, c, dense)
    d1 = fetch_step(step, delta, t, c1, c, dense)
    d2 = fetch_step(step, delta, t, c2, c, dense)
    d3 = fetch_step(step, delta, t, c3, c, dense)
    for f in range(table.shape[1]):
        x = table[v, f]
        w0 = fma(x, d0, fetch(dense, f0 + f, c0))
        w1 = fma(x, d1, fetch(dense, f0 + f, c1))
        w2 = fma(x, d2, fetch(dense, f0 + f, c2))
        w3 = fma(x, d3, fetch(dense, f0 + f, c3))
        store(dense, f0 + f, c0, w0)
        store(dense, f0 + f, c1, w1)
        store(dense, f0 + f, c2, w2)
        store(dense, f0 + f, c3, w3)


@implements(linear_map.squared_norm_rows, MixedFeatures)
def squared_norm_mixed(features, i, lo, hi, delta, buffer):
    total = linear_map.squared_norm_rows(features.sparse, i, lo, hi, delta, buffer)
    if features.dense_gram.at[i] >= 0:
        return total + linear_map.gram_squared_norm(features.dense_gram, i, hi - lo, delta)
    spread_table(features, buffer, lo, hi, delta, 1.0)
    dense = matrix(buffer, features.begin, features.which.shape[1] * features.table.shape[1], delta.shape[1])
    return total + linear_map.clear_squares(dense)


@implements(linear_map.with_gram, MixedFeatures)
def mixed_with_gram(features, starts, width):
    """Of the dense columns those of all examples but very long ones."""
    lengths = np.diff(starts)
    gram = linear_map.new_gram(lengths, lengths <= LONG)
    for i in np.flatnonzero(gram.at >= 0):
        rows = dense_rows(features.table, features.which[starts[i] : starts[i + 1]]).astype(np.float64)
        linear_map.add_folded(rows, gram.at[i], gram.values)
    sparse = features.sparse
    if supports(linear_map.with_gram, sparse):
        sparse = linear_map.with_gram(sparse, starts, width)
    return features._replace(sparse=sparse, dense_gram=gram)


def dense_rows(table: np.ndarray, which: np.ndarray) -> np.ndarray:
    """The dense columns, (N, K D)."""
    rows = np.where((which >= 0)[:, :, np.newaxis], table[which], 0) if len(table) else np.zeros((*which.shape, 0))
    return rows.reshape(len(which), which.shape[1] * table.shape[1])


@implements(linear_map.as_matrix, MixedFeatures)
def mixed_matrix(features, n_rows):
    dense = sp.csr_array(dense_rows(features.table, features.which))
    return sp.hstack([linear_map.as_matrix(features.sparse, n_rows), dense], format="csr")


@implements(linear_map.bound_sums, MixedFeatures)
def bound_mixed_sums(features, counts):
    """Of one column of the table after the other: all rows of all columns need not fit in memory."""
    total = linear_map.squared_sums(features.sparse, counts)
    for which in features.which.T:
        there = np.flatnonzero(which >= 0)
        met = sp.csr_array((np.ones(len(there)), (there, which[there])), (len(which), len(features.table)))
        sums = counts @ met @ np.abs(features.table).astype(np.float64)
        total = total + (sums * sums).sum(axis=1)
    return total
