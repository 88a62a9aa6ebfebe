"""Generic functions of features, and direction norms by Gram matrices.

Features hold the rows x_t of all examples; rows lo:hi belong to one example i. With weights W of shape (F, L) the
scores of a row are x_t W. For a direction D of shape (hi - lo, L), ||X' D||^2 = sum_tu <x_t, x_u> <D_t, D_u> costs
T^2 L / 2 operations with the example's Gram matrix at hand, against nnz(X) L for forming X' D. Each example takes the
cheaper way.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import starts_of
from maxmargin.arrays.lanes import (
    BLOCK,
    LANES,
    columns_of_block,
    fetch,
    fma,
    is_zero,
    plus,
    splat,
    times,
    total,
    without_first,
)
from maxmargin.arrays.prefetch import Stretch
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import generic, helper, implements, supports

CANCELLED = 1e-4  # of the magnitudes of terms: sums in float32 that are less have lost too many digits


@generic
def score_rows(features, weights, lo, hi, out):
    """out[t - lo] = x_t W for the rows lo:hi."""


@generic
def spread_rows(features, weights, lo, hi, delta, scale):
    """W += scale * sum_t x_t' delta[t - lo] over the rows lo:hi."""


@generic
def squared_norm_rows(features, i, lo, hi, delta, buffer):
    """Return ||sum_t x_t' delta[t - lo]||^2 over the rows lo:hi, which are those of example i."""


@generic
def weight_shape(features, n_features, n_labels):
    """The shape of the weights W as the functions above take them: (F, L), unless some are left out."""


@generic
def add_row(features, t, scale, dense):
    """Dense += scale * x_t."""


@generic
def dot_row(features, t, dense):
    """Return <x_t, dense>."""


@generic
def clear_row(features, t, dense):
    """Set `dense` to zero where x_t is not; return the sum of squares of what was there."""


@generic
def fill_gram(features, starts, at, values, width):
    """Add the folded Gram matrix of each example i whose at[i] >= 0 to what is there; called from Python only."""


@generic
def with_gram(features, starts, width):
    """The features with the Gram matrices that are worth it, of examples with the rows starts[i]:starts[i + 1].

    `width` is the number of features; called from Python only.
    """


@generic
def row_stretches(features, lo, hi):
    """The stretches of memory of the rows lo[i]:hi[i] of each example i; called from Python only."""


@generic
def as_matrix(features, n_rows):
    """The rows as a matrix of NumPy or SciPy, without the gram matrices; called from Python only."""


Size = TypeVar("Size", int, np.ndarray)


class Gram(NamedTuple):
    """Gram matrices of the examples that have one, folded and flat; `at` is -1 for the others."""

    values: np.ndarray
    at: np.ndarray


def gram_stretches(gram: Gram, lo: np.ndarray, hi: np.ndarray) -> list[Stretch]:
    """The stretches of memory of Gram matrices of examples with the rows lo[i]:hi[i]."""
    if not gram.values.size:
        return []
    at, n = np.maximum(gram.at, 0), np.arange(len(lo))
    return [(gram.values, at, at + (gram.at >= 0) * folded_size(hi - lo)), (gram.at, n, n + 1)]


def fold(matrix: np.ndarray) -> np.ndarray:
    """The lower triangle of a symmetric matrix, row by row, with what stands above the diagonal added to it."""
    return (matrix + np.tril(matrix, -1))[np.tril_indices(len(matrix))]


def add_folded(rows: np.ndarray, at: int, values: np.ndarray) -> None:
    """Add the folded Gram matrix of rows to the values from `at` on."""
    values[at : at + folded_size(len(rows))] += fold(rows @ rows.T)


def unfold(gram: Gram, i: int, n: int) -> np.ndarray:
    """The Gram matrix of example i, which has n rows."""
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = gram.values[gram.at[i] : gram.at[i] + folded_size(n)]
    return (matrix + matrix.T) / 2


def folded_size(n: Size) -> Size:
    """The number of entries of folded matrices with n rows."""
    return n * (n + 1) // 2


@helper
def clear_squares(table):
    """The sum of the squares of a table, which becomes zero."""
    total = 0.0
    for f in range(table.shape[0]):
        for label in range(table.shape[1]):
            total += table[f, label] * table[f, label]
            table[f, label] = 0
    return total


@helper
def row_is_zero(delta, t):
    """Whether row t of a direction vanishes: directions are zero wherever the prediction has settled."""
    n_labels = delta.shape[1]
    if n_labels < LANES:
        for label in range(n_labels):
            if delta[t, label] != 0:
                return False
        return True
    for c in range(0, n_labels, LANES):
        if not is_zero(fetch(delta, t, min(c, n_labels - LANES))):
            return False
    return True


@helper
def gram_squared_norm(gram, i, n, delta):
    """sum_tu K_tu <D_t, D_u> for the Gram matrix K of example i.

    In float32, sums are exact for differences of two outputs where features are binary, but rounded for others. Where
    the terms may almost cancel, they are summed again in float64: their magnitudes add up to at most the number of rows
    that are not zero times sum_t K_tt ||D_t||^2.
    """
    if delta.shape[1] >= LANES:
        squares = 0.0
        size = 0.0
        n_rows = 0
        for c in range(0, delta.shape[1], BLOCK):
            of_block, size_of_block, n_rows_of_block = gram_block(gram.values, gram.at[i], n, delta, c)
            squares += of_block
            size += size_of_block
            n_rows = max(n_rows, n_rows_of_block)
        if delta.itemsize == 8 or squares >= CANCELLED * n_rows * size:
            return max(squares, 0.0)
    squares = 0.0
    p = gram.at[i]
    for t in range(n):
        if not row_is_zero(delta, t):
            for u in range(t + 1):
                dot = 0.0
                for label in range(delta.shape[1]):
                    dot += np.float64(delta[t, label]) * np.float64(delta[u, label])
                squares += gram.values[p + u] * dot
        p += t + 1
    return max(squares, 0.0)


@helper
def gram_block(values, p, n, delta, c):
    """As `gram_squared_norm`, over four vectors of columns from c on, with K folded from values[p] on.

    Return it, sum_t K_tt ||D_t||^2, and the number of rows that are not zero. Columns that vectors share count once.
    """
    c0, c1, c2, c3 = columns_of_block(c, delta.shape[1])
    number = delta.dtype.type
    sum_of_rows = 0.0
    size = 0.0
    n_rows = 0
    for t in range(n):
        d0 = without_first(fetch(delta, t, c0), c - c0)
        d1 = without_first(fetch(delta, t, c1), c + LANES - c1)
        d2 = without_first(fetch(delta, t, c2), c + 2 * LANES - c2)
        d3 = without_first(fetch(delta, t, c3), c + 3 * LANES - c3)
        square = total(plus(fma(d0, d0, times(d1, d1)), fma(d2, d2, times(d3, d3))))
        if square > 0:
            a0 = a1 = a2 = a3 = splat(number(0))
            for u in range(t + 1):
                k = number(values[p + u])
                a0 = fma(k, fetch(delta, u, c0), a0)
                a1 = fma(k, fetch(delta, u, c1), a1)
                a2 = fma(k, fetch(delta, u, c2), a2)
                a3 = fma(k, fetch(delta, u, c3), a3)
            sum_of_rows += total(plus(fma(d0, a0, times(d1, a1)), fma(d2, a2, times(d3, a3))))
            size += values[p + t] * square
            n_rows += 1
        p += t + 1
    return sum_of_rows, size, n_rows


def have_full_table(*classes: type) -> None:
    """Say of classes of features that they have a weight for every label."""

    @implements(weight_shape, *classes)
    def full_table(features, n_features, n_labels):
        return n_features, n_labels


def rows_of(starts: np.ndarray) -> sp.csr_array:
    """How often each example has each row, (n, rows): once from starts[i] to starts[i + 1]."""
    n_rows = int(starts[-1])
    return sp.csr_array((np.ones(n_rows), np.arange(n_rows), starts), shape=(len(starts) - 1, n_rows))


@generic
def bound_sums(features, counts):
    """As `squared_sums`, of features that cannot be had as a matrix; called from Python only."""


def squared_sums(features: object, counts: sp.csr_array) -> np.ndarray:
    """||sum_t counts[i, t] |x_t| ||^2 of each example i, or a bound of that.

    Where an output chooses a column of weights for each row, no two outputs of an example are further apart than by
    twice that: a feature f has the weights sum_t x_tf (e_t - e'_t), and columns e_t - e'_t are of the norm sqrt(2).
    """
    if supports(bound_sums, features):
        return bound_sums(features, counts)
    sums = counts @ abs(as_matrix(features, counts.shape[1])).astype(np.float64)
    return np.asarray((sums * sums).sum(axis=1), np.float64).ravel()


def norm_buffer(features: object, n_features: int, n_labels: int, dtype: DTypeLike) -> np.ndarray:
    """The buffer of `squared_norm_rows`, of the shape of the weights; empty where every example has its Gram matrix."""
    rows, columns = weight_shape(features, n_features, n_labels)
    has_grams = hasattr(features, "gram") and bool(np.all(features.gram.at >= 0))
    return aligned((0 if has_grams else rows, columns), dtype)


def new_gram(lengths: np.ndarray, is_wanted: np.ndarray, dtype: DTypeLike = np.float64) -> Gram:
    """Room for the matrices of the examples that are to have one, with so many rows each."""
    starts = starts_of(np.where(is_wanted, folded_size(lengths), 0))
    return Gram(np.zeros(starts[-1], dtype), np.where(is_wanted, starts[:-1], -1))


def needs_gram(lengths: np.ndarray, n_entries: np.ndarray) -> np.ndarray:
    """The examples whose Gram matrix is cheaper than forming X' D, by measurement; its entries are stored, too."""
    return lengths**2 <= 1.5 * n_entries


def gram_blocks(
    features: object, starts: np.ndarray, n_entries: np.ndarray, width: int, dtype: DTypeLike = np.float64
) -> Gram:
    """Compute the Gram matrices of the examples that are to have one.

    Parameters
    ----------
    features
        Features without Gram matrices.
    starts
        (n + 1,) the rows of example i are starts[i]:starts[i + 1].
    n_entries
        (n,) the number of stored entries of each example.
    width
        The number of features.
    dtype
        That of the matrices.
    """
    lengths = np.diff(starts)
    gram = new_gram(lengths, needs_gram(lengths, n_entries), dtype)
    fill_gram(features, starts, gram.at, gram.values, width)
    return gram
