"""Parts that have a row of features each: one weight per feature, and as many scores as rows.

Directions are zero on most rows, above all those between two outputs, so the rows of a direction's norm cost little
beside those of the scores, and no Gram matrices are kept.
"""

from __future__ import annotations

from maxmargin.features.linear_map import add_row, clear_row, dot_row
from maxmargin.runtime.dispatch import helper


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


@helper
def squared_norm_parts(features, lo, hi, delta, buffer):
    """Return ||sum_t delta[t - lo] x_t||^2 over the rows lo:hi; `buffer` is zero before and after."""
    spread_parts(features, buffer, lo, hi, delta, 1.0)
    total = 0.0
    for t in range(lo, hi):
        if delta[t - lo] != 0:
            total += clear_row(features, t, buffer)
    return total
