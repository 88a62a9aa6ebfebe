"""Weights whose dense changes cost nothing: w = a u + b r, with scalars a and b and a fixed direction r.

A step of SGD shrinks w; one of SVRG also moves it by a dense average gradient. Written as w = a u + b r, both change
only the scalars, and u changes just where the example's features are. Averages of the iterates need no dense work
either: with weights omega_t and A_t = sum_{s <= t} omega_s a_s,

    sum_t omega_t w_t = A_T u_T - sum_t A_{t-1} (u_t - u_{t-1}) + (sum_t omega_t b_t) r,

whose second term, the lag, is as sparse to update as u. Bounds are kept by clipping u after every step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import add_scaled
from maxmargin.arrays.vectors import scale as scale_by
from maxmargin.losses import add_costs, combine
from maxmargin.persist.registry import register_state
from maxmargin.problem import accumulate, scores, spread
from maxmargin.runtime.dispatch import helper
from maxmargin.solvers.objective.bounds import Bounds

A, B, SUM_A, SUM_B, TOTAL, STEPS = range(6)

SMALLEST_SCALE = 0.1  # u is rescaled below it: keeps precision, and impossible parts far below the others


@register_state
class LazyWeights(NamedTuple):
    """w = a u + b r, and what its average is made of."""

    u: np.ndarray
    r: np.ndarray  # empty if there is no direction
    lag: np.ndarray  # empty if no average is wanted
    state: np.ndarray  # a, b, sums of omega a, omega b and omega, and the number of steps


def lazy_weights(
    w: np.ndarray, dtype: np.dtype, direction: np.ndarray | None = None, averages: bool = True
) -> LazyWeights:
    """The weights w, before any step."""
    return LazyWeights(
        u=w.astype(dtype),
        r=np.zeros(0, dtype) if direction is None else direction.astype(dtype),
        lag=np.zeros(w.size if averages else 0),
        state=np.array([1.0, 0, 0, 0, 0, 0]),
    )


def current(lazy: LazyWeights) -> np.ndarray:
    """The weights after the last step, in float64."""
    w = lazy.state[A] * lazy.u.astype(np.float64)
    return w + lazy.state[B] * lazy.r if lazy.r.size else w


def average(lazy: LazyWeights) -> np.ndarray:
    """The weighted average of the iterates, in float64."""
    state = lazy.state
    if state[TOTAL] == 0 or not lazy.lag.size:
        return current(lazy)
    total = state[SUM_A] * lazy.u.astype(np.float64) - lazy.lag
    return (total + state[SUM_B] * lazy.r if lazy.r.size else total) / state[TOTAL]


@helper
def lazy_potentials(problem, loss, lazy, i, theta, other):
    """Theta = B_i' w + margin * cost_i, using `other` as room; return the score of the true output."""
    scores(problem, lazy.u, i, theta)
    a = lazy.state[A]
    b = lazy.state[B]
    if lazy.r.size > 0:
        scores(problem, lazy.r, i, other)
        combine(theta, a, other, b)
    elif a != 1:
        combine(theta, a, theta, 0.0)
    return add_costs(problem, loss, i, theta)


@helper
def lazy_step(problem, lazy, bounds, i, delta, scale, shrink, drift, omega):
    """W = shrink w + drift r + scale B_i delta, which counts omega in the average."""
    state = lazy.state
    state[A] *= shrink
    state[B] = shrink * state[B] + drift
    if state[A] < SMALLEST_SCALE:
        rescale(lazy)
    spread(problem, lazy.u, i, delta, scale / state[A])
    if lazy.lag.size > 0:
        accumulate(problem, lazy.lag, i, delta, state[SUM_A] * scale / state[A])
    clip(lazy, bounds)
    state[SUM_A] += omega * state[A]
    state[SUM_B] += omega * state[B]
    state[TOTAL] += omega
    state[STEPS] += 1


@helper
def turn(problem, lazy, i, delta, scale):
    """R += scale B_i delta, leaving w and the average as they are."""
    state = lazy.state
    shift = -scale * state[B] / state[A]
    spread(problem, lazy.r, i, delta, scale)
    spread(problem, lazy.u, i, delta, shift)
    accumulate(problem, lazy.lag, i, delta, state[SUM_A] * shift + state[SUM_B] * scale)


@helper
def rescale(lazy):
    """Make a = 1, leaving w and the average as they are; SUM_A would grow without bound, so the lag takes it over."""
    state = lazy.state
    if lazy.lag.size > 0:
        add_scaled(lazy.lag, lazy.u, -state[SUM_A])
    scale_by(lazy.u, state[A])
    state[A] = 1.0
    state[SUM_A] = 0.0


def _clip(lazy: LazyWeights, bounds: Bounds) -> None:
    if not bounds.which.size:
        return
    state, which = lazy.state, bounds.which
    w = state[A] * lazy.u[which] + (state[B] * lazy.r[which] if lazy.r.size else 0.0)
    change = (np.clip(w, bounds.lower, bounds.upper) - w) / state[A]
    lazy.u[which] += change
    if lazy.lag.size:
        lazy.lag[which] += state[SUM_A] * change


@helper(interpreted=_clip)
def clip(lazy, bounds):
    """Move the constrained weights back into the bounds."""
    state = lazy.state
    for k in range(bounds.which.size):
        j = bounds.which[k]
        shift = state[B] * lazy.r[j] if lazy.r.size > 0 else 0.0
        w = state[A] * lazy.u[j] + shift
        clipped = min(max(w, bounds.lower[k]), bounds.upper[k])
        if clipped != w:
            change = (clipped - w) / state[A]
            lazy.u[j] += change
            if lazy.lag.size > 0:
                lazy.lag[j] += state[SUM_A] * change
