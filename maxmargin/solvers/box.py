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


def make_box(lower: Any, upper: Any, weights: np.ndarray) -> Box:
    """Check bounds, numbers or arrays with one entry per weight, None or infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.box import make_box
    >>> make_box([0.0, -float("inf")], None, np.zeros(2)).which
    array([0])
    """
    low = _as_bound("lower", lower, -np.inf, weights.size)
    high = _as_bound("upper", upper, np.inf, weights.size)
    if (low > high).any():
        k = int(np.flatnonzero(low > high)[0])
        raise ValueError(f"lower must not exceed upper, but for weight {k} it is {low[k]} and {high[k]}.")
    index = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    largest = float(np.finfo(weights.dtype).max)  # kernels assume finite numbers
    low, high = np.maximum(low[index], -largest), np.minimum(high[index], largest)
    return Box(
        index, _rounded(low, weights.dtype, np.inf), _rounded(high, weights.dtype, -np.inf), np.zeros(len(index))
    )


def _rounded(bound: np.ndarray, dtype: Any, inwards: float) -> np.ndarray:
    """Bounds that weights of the dtype can take on exactly, none looser than asked for."""
    rounded = bound.astype(dtype)
    is_looser = rounded < bound if inwards > 0 else rounded > bound
    return np.where(is_looser, np.nextafter(rounded, dtype.type(inwards)), rounded).astype(np.float64)


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
