"""A few dual points and their best mixture.

The value of a dual point (`evaluation`) depends on its gain and its weights v, which are linear in its
mean parts, so mixtures need no mean parts. With the points as columns of V, the best mixture solves

    max over the simplex of D(alpha) = <gain, alpha> - lambda phi(V alpha),    slope = gain - lambda V'w,

where phi(v) = ||v||^2 / 2 and w = v; with bounds w is the projection of v, and phi goes on straight beyond them. A step
solves the quadratic program without the curvature of the weights that are clipped, and searches on the line to its
solution: without bounds, one step is all.
"""

from __future__ import annotations

import numpy as np

from maxmargin.persist.registry import register_state
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.simplex_qp import maximise_on_simplex

MOST_STEPS = 50  # with bounds
QP_STEPS = 10_000
ROUNDING = 1e-14  # of the terms of a slope
DOT_ROUNDING = 1e-12  # of inner products of long vectors
HALVINGS = 30  # of a line search


@register_state
class Bundle:
    """Dual points, the first of them the true outputs, and the weights alpha of their best known mixture.

    Parameters
    ----------
    objective
        What they are dual points of.
    limit
        How many to keep besides the first: of more, two neighbours become one, their mixture.
    """

    def __init__(self, objective: Objective, limit: int) -> None:
        self.objective, self.limit = objective, limit
        self.regularization, self.bounds = objective.regularization, objective.bounds
        self.points = [objective.origin]
        self.gain, self.alpha = np.zeros(1), np.ones(1)
        self.H = np.full((1, 1), self.regularization * objective.layout.inner(self.points[0], self.points[0]))
        self.largest = float(
            self.H[0, 0]
        )  # lambda ||v||^2 of all points: what the rounding of mean parts is relative to

    def add(self, gain: float, gradient: np.ndarray) -> None:
        """Add the dual point with this gain and gradient, -lambda v."""
        if len(self.points) > self.limit:
            self._merge()
        self.points.append(gradient / -self.regularization)
        row = self.regularization * np.array([self.objective.layout.inner(v, self.points[-1]) for v in self.points])
        self.H = np.block([[self.H, row[:-1, None]], [row]])
        self.largest = max(self.largest, float(row[-1]))
        self.gain, self.alpha = np.append(self.gain, gain), np.append(self.alpha, 0.0)

    def _merge(self) -> None:
        first = min(1, self.limit - 1)  # a single point besides the true outputs is mixed with them
        i = first + int(np.argmin(self.alpha[first:-1] + self.alpha[first + 1 :]))
        j = i + 1
        total = self.alpha[i] + self.alpha[j]
        share = self.alpha[i] / total if total > 0 else 0.0  # the older one of two without weight goes
        mix = np.delete(np.eye(len(self.points)), j, axis=0)
        mix[i, [i, j]] = share, 1 - share
        self.points[i] = share * self.points[i] + (1 - share) * self.points.pop(j)
        self.gain, self.H = mix @ self.gain, mix @ self.H @ mix.T
        self.alpha[i] = total
        self.alpha = np.delete(self.alpha, j)

    def solve(self, tol: float = 0.0, share: float = 0.0) -> None:
        """Improve the mixture until no other could be better by `tol`.

        It is good enough, too, if no other could be better by a `share` of what one could be at first.
        """
        bounded = np.array([v[self.bounds.which] for v in self.points])  # the weights that have bounds
        for _ in range(MOST_STEPS if bounded.size else 1):
            excess = self._excess(self.alpha @ bounded)
            slope = self.gain - self.H @ self.alpha + self.regularization * bounded @ excess
            gap = slope.max() - slope @ self.alpha
            rounding = ROUNDING * float((np.abs(self.gain) + np.abs(self.H) @ self.alpha).max())
            tol, share = max(tol, share * gap, rounding), 0.0
            if gap <= tol:
                break
            clipped = bounded[:, excess != 0]
            H = self.H - self.regularization * clipped @ clipped.T
            best = self.alpha.copy()
            maximise_on_simplex(slope + H @ best, H, best, tol / 2, QP_STEPS)
            direction = best / best.sum() - self.alpha
            self.alpha = np.maximum(self.alpha + self._line_search(direction, bounded) * direction, 0.0)
            self.alpha /= self.alpha.sum()

    @property
    def v(self) -> np.ndarray:
        """V alpha."""
        v = np.zeros(self.points[0].size)
        for a, point in zip(self.alpha, self.points, strict=True):
            if a > 0:
                v += a * point
        return v

    @property
    def w(self) -> np.ndarray:
        """The weights of the mixture."""
        return project(self.v, self.bounds)

    @property
    def value(self) -> float:
        """The value of the mixture, rounded down; without bounds, what it is at least by H."""
        gain, square = float(self.gain @ self.alpha), max(float(self.alpha @ self.H @ self.alpha), 0.0)
        rounding = float(np.finfo(self.objective.runner.dtype).eps) * (abs(gain) + np.sqrt(square * self.largest))
        if self.bounds.which.size:
            return self.objective.dual_value(gain, self.v) - rounding
        largest = float(np.abs(self.gain) @ self.alpha + (np.sqrt(np.diag(self.H)) @ self.alpha) ** 2)
        return gain - square / 2 + self.objective.constant - DOT_ROUNDING * largest - rounding

    def _excess(self, bounded: np.ndarray) -> np.ndarray:
        return bounded - np.clip(bounded, self.bounds.lower, self.bounds.upper)

    def _line_search(self, direction: np.ndarray, bounded: np.ndarray) -> float:
        """The best step in [0, 1]: the root of the slope, which falls along the way."""
        if not bounded.size:
            return 1.0
        at, along = self.alpha @ bounded, direction @ bounded
        slope, curvature = (self.gain - self.H @ self.alpha) @ direction, direction @ self.H @ direction
        lo, hi = 0.0, 1.0
        for _ in range(HALVINGS):
            step = (lo + hi) / 2
            if slope - step * curvature + self.regularization * self._excess(at + step * along) @ along > 0:
                lo = step
            else:
                hi = step
        return 1.0 if hi == 1.0 else lo
