"""Smoothing of the maximum (*Smoother*, section 2): values, gradients, and when K terms are enough.

The smoothed maximum of m scores z is h(z) = max over the simplex of <z, u> - level omega(u), and its gradient is the
maximiser u:

    entropy   h(z) = level log sum_k exp(z_k / level)          u = softmax(z / level)
    l2        h(z) = <z, u> - (level/2) (||u||^2 - 1)          u = the projection of z / level to the simplex

Both lie above the maximum, by at most level log m and level/2. The l2 maximiser is sparse: it is found from the largest
scores alone as soon as the smallest of these has no weight (Proposition 4), whatever the others are.
"""

from __future__ import annotations

import numpy as np

from maxmargin.checks import check_choice, check_positive
from maxmargin.runtime.dispatch import helper

__all__ = ["SMOOTHINGS", "project_to_simplex", "smooth_max"]

SMOOTHINGS = ("l2", "entropy")
EVERY = 1e30  # a level of l2 at which every output has a weight, and a number in float32, too


def project_to_simplex(v: object) -> np.ndarray:
    """The point of the probability simplex nearest to v.

    Examples
    --------
    >>> from maxmargin.losses.smoothing import project_to_simplex
    >>> project_to_simplex([0.9, 0.5, -1.0])
    array([0.7, 0.3, 0. ])
    """
    v = np.asarray(v, np.float64)
    if v.ndim != 1 or not v.size or not np.isfinite(v).all():
        raise ValueError("v must be a non-empty vector of finite numbers.")
    order = np.argsort(-v, kind="stable")
    weights, projected = np.empty(v.size), np.empty(v.size)
    smooth_sorted(v[order], v.size, 1.0, weights)
    projected[order] = weights
    return projected


def smooth_max(z: object, level: float, smoothing: str = "l2") -> tuple[float, np.ndarray]:
    """The smoothed maximum of scores and its gradient.

    Parameters
    ----------
    z
        (m,) scores.
    level
        How much to smooth, positive.
    smoothing
        "l2" or "entropy".

    Examples
    --------
    >>> from maxmargin.losses.smoothing import smooth_max
    >>> smooth_max([2.0, 1.5, -9.0], level=1.0)
    (2.0625, array([0.75, 0.25, 0.  ]))
    """
    check_positive("level", level)
    check_choice("smoothing", smoothing, SMOOTHINGS)
    z = np.asarray(z, np.float64)
    if smoothing == "l2":
        u = project_to_simplex(z / level)
        return float(np.dot(z, u) - level / 2 * (np.dot(u, u) - 1)), u
    top = z.max()
    p = np.exp((z - top) / level)
    return float(top + level * np.log(p.sum())), p / p.sum()


@helper
def has_weight(values, k, level):
    """Whether values[k] has a weight in the maximum, smoothed by l2, of values sorted best first (Proposition 4)."""
    value = np.float64(values[k])
    below = 0.0
    for j in range(k):
        below += values[j] - value
    return below < level


@helper
def smooth_sorted(values, count, level, weights):
    """Smooth the maximum of values[:count], sorted best first, by l2; fill their weights and return its value.

    The support is the longest prefix with sum_{i <= k} (z_i - z_k) < level (Proposition 3). Differences to the best
    value are exact where the values themselves are large.
    """
    top = np.float64(values[0])
    below = 0.0  # sum over the support of (top - z_i)
    size = 1
    while size < count and size * (top - values[size]) - below < level:
        below += top - values[size]
        size += 1
    tau = (1 + below / level) / size
    h = top + level / 2
    for k in range(count):
        weights[k] = 0
        if k < size:
            u = max(tau - (top - values[k]) / level, 0.0)
            weights[k] = u
            h -= u * (top - values[k]) + level / 2 * u * u
    return h


@helper
def bound_sorted(values, last, level):
    """At least the maximum, smoothed by l2, of values[:last] and of any number of values up to values[last].

    These can share a weight among so many that it costs nothing: each value above them has the weight z_k - z_last over
    level, and the rest of the weight has the value z_last. That the sum of these is less than 1 is what `has_weight`
    says.
    """
    least = np.float64(values[last])
    h = least + level / 2
    for k in range(last):
        h += (values[k] - least) * ((values[k] - least) / (2 * level))
    return h
