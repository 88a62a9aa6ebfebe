"""Bounds lower <= w <= upper (*Gaps*, Appendix H).

The dual point determines v = A alpha; the weights are its projection to the bounds. The dual objective gains the term
-lambda (<beta_u, upper> - <beta_l, lower>) with the multipliers beta_u = [v - upper]_+ and beta_l = [lower - v]_+.
Only the constrained weights are kept apart: elsewhere w = v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_numbers
from maxmargin.runtime.dispatch import helper


class Bounds(NamedTuple):
    """The constrained weights, their bounds, and v there."""

    which: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    free: np.ndarray

    def dense(self, n_weights: int) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of all weights."""
        lower, upper = np.full(n_weights, -np.inf), np.full(n_weights, np.inf)
        lower[self.which], upper[self.which] = self.lower, self.upper
        return lower, upper


def make_bounds(lower: ArrayLike | None, upper: ArrayLike | None, weights: np.ndarray) -> Bounds:
    """Check bounds, numbers or arrays with one entry per weight, None or infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.objective.bounds import make_bounds
    >>> make_bounds([0.0, -float("inf")], None, np.zeros(2)).which
    array([0])
    """
    if lower is None and upper is None:
        return Bounds(np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0))
    low = _as_bound("lower", lower, -np.inf, weights.size)
    high = _as_bound("upper", upper, np.inf, weights.size)
    if (low > high).any():
        k = int(np.flatnonzero(low > high)[0])
        raise ValueError(f"lower must not exceed upper, but for weight {k} it is {low[k]} and {high[k]}.")
    index = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    largest = float(np.finfo(weights.dtype).max)  # loops assume finite numbers
    low, high = np.maximum(low[index], -largest), np.minimum(high[index], largest)
    return Bounds(index, _round(low, weights.dtype, np.inf), _round(high, weights.dtype, -np.inf), np.zeros(len(index)))


def _round(bound: np.ndarray, dtype: np.dtype, inwards: float) -> np.ndarray:
    """Bounds that weights of the dtype can take on exactly, none looser than asked for."""
    rounded = bound.astype(dtype)
    is_looser = rounded < bound if inwards > 0 else rounded > bound
    return np.where(is_looser, np.nextafter(rounded, dtype.type(inwards)), rounded).astype(np.float64)


def _as_bound(name: str, bound: ArrayLike | None, nothing: float, n_weights: int) -> np.ndarray:
    values = as_numbers(name, nothing if bound is None else bound)
    if values.shape not in ((), (n_weights,)):
        raise ValueError(f"{name} must be a number or hold {n_weights} numbers, but has shape {values.shape}.")
    if np.isnan(values).any() or (values == -nothing).any():
        raise ValueError(f"{name} must not contain NaN, nor {-nothing}.")
    return np.broadcast_to(values, (n_weights,))


def project(v: np.ndarray, bounds: Bounds) -> np.ndarray:
    """The weights of v: a copy, clipped to the bounds."""
    w = v.copy()
    w[bounds.which] = np.clip(v[bounds.which], bounds.lower, bounds.upper)
    return w


def shrink(values: np.ndarray, by: float) -> np.ndarray:
    """Every number moved towards zero, at most to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.objective.bounds import shrink
    >>> shrink(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    return values - np.clip(values, -by, by)


def dual_term(v: np.ndarray, bounds: Bounds) -> float:
    """<beta_u, upper> - <beta_l, lower> at v."""
    constrained = v[bounds.which]
    above = np.maximum(constrained - bounds.upper, 0)
    below = np.maximum(bounds.lower - constrained, 0)
    is_above, is_below = above > 0, below > 0
    return float(above[is_above] @ bounds.upper[is_above] - below[is_below] @ bounds.lower[is_below])


def _release(w: np.ndarray, bounds: Bounds) -> None:
    w[bounds.which] = bounds.free


@helper(interpreted=_release)
def release(w, bounds):
    """Put v in place of the constrained weights, so that w can be updated like v."""
    for k in range(bounds.which.size):
        w[bounds.which[k]] = bounds.free[k]


def _confine(w: np.ndarray, bounds: Bounds) -> None:
    bounds.free[:] = w[bounds.which]
    w[bounds.which] = np.clip(bounds.free, bounds.lower, bounds.upper)


@helper(interpreted=_confine)
def confine(w, bounds):
    """Keep v of the constrained weights and clip them again."""
    for k in range(bounds.which.size):
        bounds.free[k] = w[bounds.which[k]]
        w[bounds.which[k]] = min(max(bounds.free[k], bounds.lower[k]), bounds.upper[k])
