"""Parts that have a row of features each: one weight per feature, and as many scores as rows.

Directions are zero on most rows, above all those between two outputs, so the rows of a direction's norm cost little
beside those of the scores, and no Gram matrices are kept.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin.features.dense import DenseFeatures
from maxmargin.features.linear_map import add_row, as_matrix, clear_row, dot_row, rows_of
from maxmargin.features.sparse import BinaryFeatures, SparseFeatures
from maxmargin.runtime.dispatch import generic, helper, implements


@generic
def squared_norm_parts(features, i, lo, hi, delta, buffer):
    """Return ||sum_t delta[t - lo] x_t||^2 over the rows lo:hi, which are those of example i.

    `buffer` is zero before and after.
    """


@generic
def squared_spreads(features, starts):
    """Upper bounds of the squared distances between rows starts[i]:starts[i + 1]; called from Python only."""


@helper
def score_parts(features, w, lo, hi, theta):
    """theta[t - lo] = <x_t, w> for the rows lo:hi."""
    for t in range(lo, hi):
        theta[t - lo] = dot_row(features, t, w)


@helper
def spread_parts(features, w, lo, hi, delta, scale):
    """W += scale * sum_t delta[t - lo] x_t over the rows lo:hi."""
    for t in range(lo, hi):
        if delta[t - lo] != 0:
            add_row(features, t, scale * delta[t - lo], w)


@implements(squared_norm_parts, DenseFeatures, SparseFeatures, BinaryFeatures)
def squared_norm_linear_parts(features, i, lo, hi, delta, buffer):
    spread_parts(features, buffer, lo, hi, delta, 1.0)
    total = 0.0
    for t in range(lo, hi):
        if delta[t - lo] != 0:
            total += clear_row(features, t, buffer)
    return total


@implements(squared_spreads, DenseFeatures, SparseFeatures, BinaryFeatures)
def squared_linear_spreads(features, starts):
    """By the largest distance from the mean of an example's rows."""
    rows = as_matrix(features, int(starts[-1])).astype(np.float64)
    lengths = np.diff(starts)
    example = np.repeat(np.arange(lengths.size), lengths)
    means = sp.diags_array(1 / lengths) @ rows_of(starts) @ rows
    away = rows - means[example]
    return 4 * np.maximum.reduceat(np.asarray((away * away).sum(axis=1)).ravel(), starts[:-1])
