"""One feature that is 1 in every row: its weights are the scores of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.features import linear_map
from maxmargin.runtime.dispatch import implements


class ConstantFeatures(NamedTuple):
    """As many rows as are asked for, each with the one feature 1."""


linear_map.have_full_table(ConstantFeatures)


@implements(linear_map.as_matrix, ConstantFeatures)
def constant_matrix(features, n_rows):
    return np.ones((n_rows, 1))


@implements(linear_map.score_rows, ConstantFeatures)
def score_constant(features, weights, lo, hi, out):
    for t in range(hi - lo):
        for label in range(out.shape[1]):
            out[t, label] = weights[0, label]


@implements(linear_map.spread_rows, ConstantFeatures)
def spread_constant(features, weights, lo, hi, delta, scale):
    step = weights.dtype.type(scale)
    for t in range(hi - lo):
        for label in range(delta.shape[1]):
            weights[0, label] += step * delta[t, label]


@implements(linear_map.squared_norm_rows, ConstantFeatures)
def squared_norm_constant(features, i, lo, hi, delta, buffer):
    total = 0.0
    for label in range(delta.shape[1]):
        column = 0.0
        for t in range(hi - lo):
            column += delta[t, label]
        total += column * column
    return total
