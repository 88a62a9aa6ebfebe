"""Sparse features in compressed rows, with values or binary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.features.base import (
    Gram,
    add_row,
    as_matrix,
    clear_row,
    dot_row,
    fill_gram,
    full_table,
    gram_squared_norm,
    row_is_zero,
    score_rows,
    spread_rows,
    squared_norm_rows,
    squared_sums,
    squared_sums_of_rows,
    weight_shape,
)
from maxmargin.runtime.dispatch import generic, implements, kernel


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


@generic
def entry(features, p):
    """The value of the stored entry at `p`."""


@implements(entry, SparseFeatures)
def sparse_entry(features, p):
    return features.values[p]


@implements(entry, BinaryFeatures)
def binary_entry(features, p):
    return np.float32(1)


implements(weight_shape, SparseFeatures, BinaryFeatures)(full_table)
implements(squared_sums, SparseFeatures, BinaryFeatures)(squared_sums_of_rows)


@implements(as_matrix, SparseFeatures)
def sparse_matrix(features, n_rows):
    width = int(features.indices.max(initial=0)) + 1
    return sp.csr_array((features.values, features.indices, features.indptr), shape=(n_rows, width))


@implements(as_matrix, BinaryFeatures)
def binary_matrix(features, n_rows):
    width = int(features.indices.max(initial=0)) + 1
    ones = np.ones(features.indices.size)
    return sp.csr_array((ones, features.indices, features.indptr), shape=(n_rows, width))


@implements(score_rows, SparseFeatures, BinaryFeatures)
def score_sparse(features, weights, lo, hi, out):
    indices = features.indices
    for t in range(lo, hi):
        for label in range(out.shape[1]):
            out[t - lo, label] = 0
        p = features.indptr[t]
        end = features.indptr[t + 1]
        while p + 4 <= end:  # four rows of weights for one load and store of the scores
            f0 = indices[p]
            f1 = indices[p + 1]
            f2 = indices[p + 2]
            f3 = indices[p + 3]
            x0 = entry(features, p)
            x1 = entry(features, p + 1)
            x2 = entry(features, p + 2)
            x3 = entry(features, p + 3)
            for label in range(out.shape[1]):
                first = x0 * weights[f0, label] + x1 * weights[f1, label]
                second = x2 * weights[f2, label] + x3 * weights[f3, label]
                out[t - lo, label] += first + second
            p += 4
        while p < end:
            f0 = indices[p]
            x0 = entry(features, p)
            for label in range(out.shape[1]):
                out[t - lo, label] += x0 * weights[f0, label]
            p += 1


@implements(spread_rows, SparseFeatures, BinaryFeatures)
def spread_sparse(features, weights, lo, hi, delta, scale):
    for t in range(lo, hi):
        if row_is_zero(delta, t - lo):
            continue
        for p in range(features.indptr[t], features.indptr[t + 1]):
            f = features.indices[p]
            x = entry(features, p) * weights.dtype.type(scale)
            for label in range(delta.shape[1]):
                weights[f, label] += x * delta[t - lo, label]


@implements(squared_norm_rows, SparseFeatures, BinaryFeatures)
def squared_norm_sparse(features, i, lo, hi, delta, buffer):
    if features.gram.start[i] >= 0:
        return gram_squared_norm(features.gram, i, hi - lo, delta)
    spread_rows(features, buffer, lo, hi, delta, 1.0)
    total = 0.0
    for p in range(features.indptr[lo], features.indptr[hi]):  # cleared as read: each row counts once
        f = features.indices[p]
        for label in range(buffer.shape[1]):
            total += buffer[f, label] * buffer[f, label]
            buffer[f, label] = 0
    return total


@implements(add_row, SparseFeatures, BinaryFeatures)
def add_sparse_row(features, t, scale, dense):
    step = dense.dtype.type(scale)
    for p in range(features.indptr[t], features.indptr[t + 1]):
        dense[features.indices[p]] += step * entry(features, p)


@implements(dot_row, SparseFeatures, BinaryFeatures)
def dot_sparse_row(features, t, dense):
    total = dense.dtype.type(0)
    for p in range(features.indptr[t], features.indptr[t + 1]):
        total += entry(features, p) * dense[features.indices[p]]
    return total


@implements(clear_row, SparseFeatures, BinaryFeatures)
def clear_sparse_row(features, t, dense):
    squares = dense.dtype.type(0)
    for p in range(features.indptr[t], features.indptr[t + 1]):
        value = dense[features.indices[p]]
        squares += value * value
        dense[features.indices[p]] = 0
    return squares


@implements(fill_gram, SparseFeatures, BinaryFeatures)
def fill_sparse_gram(features, offsets, start, values, width):
    multiply_rows(features, offsets, start, values, np.zeros(width))


@kernel
def multiply_rows(features, offsets, start, values, dense):
    """As `fill_gram`; `dense` holds zeros, before and after."""
    for i in range(start.size):
        if start[i] < 0:
            continue
        lo = offsets[i]
        n = offsets[i + 1] - lo
        for t in range(n):
            add_row(features, lo + t, 1.0, dense)
            for u in range(n):
                values[start[i] + t * n + u] = dot_row(features, lo + u, dense)
            clear_row(features, lo + t, dense)
