"""Sparse features in compressed rows, with values or binary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.lanes import (
    BLOCK,
    LANES,
    as_precise,
    columns_of_block,
    fetch,
    fma,
    is_zero,
    plus,
    splat,
    store,
    times,
    without_first,
)
from maxmargin.features import linear_map
from maxmargin.features.linear_map import Gram
from maxmargin.runtime.dispatch import generic, helper, implements, loop


class SparseFeatures(NamedTuple):
    """Row t has the entries indptr[t]:indptr[t + 1] of `indices` and `values`."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    gram: Gram


class BinaryFeatures(NamedTuple):
    """As `SparseFeatures`, with all values 1."""

    indptr: np.ndarray
    indices: np.ndarray
    gram: Gram


SparseRows = SparseFeatures | BinaryFeatures


@generic
def entry(features, p):
    """The value of the stored entry at `p`."""


@implements(entry, SparseFeatures)
def sparse_entry(features, p):
    return features.values[p]


@implements(entry, BinaryFeatures)
def binary_entry(features, p):
    return np.float32(1)


@generic
def meet(features, x, f, c, weights):
    """The value x of feature f for its weights from column c on, a vector of them: zero where there are none."""


@implements(meet, SparseFeatures, BinaryFeatures)
def meet_all(features, x, f, c, weights):
    return x


linear_map.have_full_table(SparseFeatures, BinaryFeatures)


@implements(linear_map.as_matrix, SparseFeatures, BinaryFeatures)
def sparse_matrix(features, n_rows):
    width = int(features.indices.max(initial=0)) + 1
    values = features.values if isinstance(features, SparseFeatures) else np.ones(features.indices.size)
    return sp.csr_array((values, features.indices, features.indptr), shape=(n_rows, width))


@implements(linear_map.score_rows, SparseFeatures, BinaryFeatures)
def score_sparse(features, weights, lo, hi, out):
    n_labels = out.shape[1]
    for t in range(lo, hi):
        begin = features.indptr[t]
        end = features.indptr[t + 1]
        if n_labels >= LANES:
            for c in range(0, n_labels, BLOCK):
                score_block(features, weights, begin, end, out, t - lo, c)
        else:
            for label in range(n_labels):
                out[t - lo, label] = 0
            for p in range(begin, end):
                f = np.int64(features.indices[p])
                x = entry(features, p)
                for label in range(n_labels):
                    out[t - lo, label] += x * weights[f, label]


@helper
def score_block(features, weights, begin, end, out, t, c):
    """out[t, c] = sum_p x_p weights[f_p, c] over the entries begin:end, for up to four vectors of columns from c on.

    They stay in registers; the last ones overlap, or are the same, so that there is no column beyond the labels.
    """
    c0, c1, c2, c3 = columns_of_block(c, out.shape[1])
    even0 = even1 = even2 = even3 = odd0 = odd1 = odd2 = odd3 = splat(out.dtype.type(0))
    p = begin
    while p + 2 <= end:
        f = np.int64(features.indices[p])
        x = entry(features, p)
        even0 = fma(x, fetch(weights, f, c0), even0)
        even1 = fma(x, fetch(weights, f, c1), even1)
        even2 = fma(x, fetch(weights, f, c2), even2)
        even3 = fma(x, fetch(weights, f, c3), even3)
        f = np.int64(features.indices[p + 1])
        x = entry(features, p + 1)
        odd0 = fma(x, fetch(weights, f, c0), odd0)
        odd1 = fma(x, fetch(weights, f, c1), odd1)
        odd2 = fma(x, fetch(weights, f, c2), odd2)
        odd3 = fma(x, fetch(weights, f, c3), odd3)
        p += 2
    if p < end:
        f = np.int64(features.indices[p])
        x = entry(features, p)
        even0 = fma(x, fetch(weights, f, c0), even0)
        even1 = fma(x, fetch(weights, f, c1), even1)
        even2 = fma(x, fetch(weights, f, c2), even2)
        even3 = fma(x, fetch(weights, f, c3), even3)
    store(out, t, c0, plus(even0, odd0))
    store(out, t, c1, plus(even1, odd1))
    store(out, t, c2, plus(even2, odd2))
    store(out, t, c3, plus(even3, odd3))


@implements(linear_map.spread_rows, SparseFeatures, BinaryFeatures)
def spread_sparse(features, weights, lo, hi, delta, scale):
    n_labels = delta.shape[1]
    step = weights.dtype.type(scale)
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        begin = features.indptr[t]
        end = features.indptr[t + 1]
        if n_labels >= LANES:
            for c in range(0, n_labels, BLOCK):
                spread_block(features, features, weights, begin, end, delta, t - lo, c, step)
        else:
            for p in range(begin, end):
                f = np.int64(features.indices[p])
                x = entry(features, p) * step
                for label in range(n_labels):
                    weights[f, label] += x * delta[t - lo, label]


@helper
def fetch_step(step, delta, t, c, begin, weights):
    """A vector of step delta[t] from column c on, zero in columns before `begin`, as precise as the weights."""
    return times(step, as_precise(without_first(fetch(delta, t, c), begin - c), weights))


@helper
def spread_block(features, rows, weights, begin, end, delta, t, c, step):
    """weights[f_p, c] += step x_p delta[t, c] over the entries begin:end, for the columns of `score_block`.

    Entries are those of the rows in features. All vectors of a row are loaded before the first is stored: where they
    overlap, they store the same numbers. What an earlier block has dealt with is left alone.
    """
    c0, c1, c2, c3 = columns_of_block(c, delta.shape[1])
    d0 = fetch_step(step, delta, t, c0, c, weights)
    d1 = fetch_step(step, delta, t, c1, c, weights)
    d2 = fetch_step(step, delta, t, c2, c, weights)
    d3 = fetch_step(step, delta, t, c3, c, weights)
    if is_zero(d0) or is_zero(d1) or is_zero(d2):  # as in directions from one output to another
        spread_vector(features, rows, weights, begin, end, d0, c0)
        spread_vector(features, rows, weights, begin, end, without_first(d1, c0 + LANES - c1), c1)
        spread_vector(features, rows, weights, begin, end, without_first(d2, c1 + LANES - c2), c2)
        spread_vector(features, rows, weights, begin, end, without_first(d3, c2 + LANES - c3), c3)
        return
    for p in range(begin, end):
        f = np.int64(rows.indices[p])
        x = entry(rows, p)
        w0 = fma(meet(features, x, f, c0, weights), d0, fetch(weights, f, c0))
        w1 = fma(meet(features, x, f, c1, weights), d1, fetch(weights, f, c1))
        w2 = fma(meet(features, x, f, c2, weights), d2, fetch(weights, f, c2))
        w3 = fma(meet(features, x, f, c3, weights), d3, fetch(weights, f, c3))
        store(weights, f, c0, w0)
        store(weights, f, c1, w1)
        store(weights, f, c2, w2)
        store(weights, f, c3, w3)


@helper
def spread_vector(features, rows, weights, begin, end, d, c):
    """weights[f_p, c] += x_p d over the entries begin:end, for one vector of columns from c on."""
    if not is_zero(d):
        for p in range(begin, end):
            f = np.int64(rows.indices[p])
            store(weights, f, c, fma(meet(features, entry(rows, p), f, c, weights), d, fetch(weights, f, c)))


@implements(linear_map.squared_norm_rows, SparseFeatures, BinaryFeatures)
def squared_norm_sparse(features, i, lo, hi, delta, buffer):
    if features.gram.at[i] >= 0:
        return linear_map.gram_squared_norm(features.gram, i, hi - lo, delta)
    linear_map.spread_rows(features, buffer, lo, hi, delta, 1.0)
    total = 0.0
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        for p in range(features.indptr[t], features.indptr[t + 1]):  # cleared as read: each row counts once
            f = features.indices[p]
            for label in range(buffer.shape[1]):
                total += buffer[f, label] * buffer[f, label]
                buffer[f, label] = 0
    return total


@implements(linear_map.add_row, SparseFeatures, BinaryFeatures)
def add_sparse_row(features, t, scale, dense):
    step = dense.dtype.type(scale)
    for p in range(features.indptr[t], features.indptr[t + 1]):
        dense[features.indices[p]] += step * entry(features, p)


@implements(linear_map.dot_row, SparseFeatures, BinaryFeatures)
def dot_sparse_row(features, t, dense):
    total = dense.dtype.type(0)
    for p in range(features.indptr[t], features.indptr[t + 1]):
        total += entry(features, p) * dense[features.indices[p]]
    return total


@implements(linear_map.clear_row, SparseFeatures, BinaryFeatures)
def clear_sparse_row(features, t, dense):
    squares = dense.dtype.type(0)
    for p in range(features.indptr[t], features.indptr[t + 1]):
        value = dense[features.indices[p]]
        squares += value * value
        dense[features.indices[p]] = 0
    return squares


@implements(linear_map.row_stretches, BinaryFeatures)
def binary_stretches(features, lo, hi):
    entries = features.indices, features.indptr[lo], features.indptr[hi]
    return [entries, (features.indptr, lo, hi + 1), *linear_map.gram_stretches(features.gram, lo, hi)]


@implements(linear_map.row_stretches, SparseFeatures)
def sparse_stretches(features, lo, hi):
    return [*binary_stretches(features, lo, hi), (features.values, features.indptr[lo], features.indptr[hi])]


@implements(linear_map.with_gram, SparseFeatures, BinaryFeatures)
def sparse_with_gram(features, starts, width):
    n_entries, dtype = np.diff(features.indptr[starts]), features.gram.values.dtype
    return features._replace(gram=linear_map.gram_blocks(features, starts, n_entries, width, dtype))


@implements(linear_map.fill_gram, SparseFeatures, BinaryFeatures)
def fill_sparse_gram(features, starts, at, values, width):
    multiply_rows(features, starts, at, values, np.zeros(width))


@loop
def multiply_rows(features, starts, at, values, dense):
    """As `fill_gram`; `dense` holds zeros, before and after."""
    for i in range(at.size):
        if at[i] < 0:
            continue
        p = at[i]
        for t in range(starts[i], starts[i + 1]):
            linear_map.add_row(features, t, 1.0, dense)
            for u in range(starts[i], t + 1):
                values[p] += (1 if u == t else 2) * linear_map.dot_row(features, u, dense)
                p += 1
            linear_map.clear_row(features, t, dense)
