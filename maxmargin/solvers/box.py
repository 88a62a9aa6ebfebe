"""Box constraints lower <= w <= upper (*Gaps*, Appendix H).

The dual point determines v = A alpha; the weights are its projection to the box. The dual objective gains the term
-lambda (<beta_u, upper> - <beta_l, lower>) with the multipliers beta_u = [v - upper]_+ and beta_l = [lower - v]_+.
Only the constrained weights are kept apart: elsewhere w = v.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable


class Box(NamedTuple):
    """The constrained weights, their bounds, and v there."""

    which: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    free: np.ndarray


def make_box(lower: Any, upper: Any, n_weights: int) -> Box:
    """Check bounds, numbers or arrays with one entry per weight, None or infinite where there is none.

    Examples
    --------
    >>> from maxmargin.solvers.box import make_box
    >>> make_box([0.0, -float("inf")], None, 2).which
    array([0])
    """
    low = _as_bound("lower", lower, -np.inf, n_weights)
    high = _as_bound("upper", upper, np.inf, n_weights)
    if (low > high).any():
        k = int(np.flatnonzero(low > high)[0])
        raise ValueError(f"lower must not exceed upper, but for weight {k} it is {low[k]} and {high[k]}.")
    index = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    largest = np.finfo(np.float64).max  # kernels assume finite numbers
    return Box(index, np.maximum(low[index], -largest), np.minimum(high[index], largest), np.zeros(len(index)))


def _as_bound(name: str, bound: Any, nothing: float, n_weights: int) -> np.ndarray:
    values = np.asarray(nothing if bound is None else bound, dtype=np.float64)
    if values.shape not in ((), (n_weights,)):
        raise ValueError(f"{name} must be a number or hold {n_weights} numbers, but has shape {values.shape}.")
    if np.isnan(values).any() or (values == -nothing).any():
        raise ValueError(f"{name} must not contain NaN, nor {-nothing}.")
    return np.broadcast_to(values, (n_weights,))


def project(v: np.ndarray, box: Box) -> np.ndarray:
    """The weights of v: a copy, clipped to the box."""
    w = v.copy()
    w[box.which] = np.clip(v[box.which], box.lower, box.upper)
    return w


def dual_term(v: np.ndarray, box: Box) -> float:
    """<beta_u, upper> - <beta_l, lower> at v."""
    constrained = v[box.which]
    above = np.maximum(constrained - box.upper, 0)
    below = np.maximum(box.lower - constrained, 0)
    is_above, is_below = above > 0, below > 0
    return float(above[is_above] @ box.upper[is_above] - below[is_below] @ box.lower[is_below])


@register_jitable
def release(w, box):
    """Put v in place of the constrained weights, so that w can be updated like v."""
    for k in range(box.which.size):
        w[box.which[k]] = box.free[k]


@register_jitable
def confine(w, box):
    """Keep v of the constrained weights and clip them again."""
    for k in range(box.which.size):
        box.free[k] = w[box.which[k]]
        w[box.which[k]] = min(max(box.free[k], box.lower[k]), box.upper[k])
