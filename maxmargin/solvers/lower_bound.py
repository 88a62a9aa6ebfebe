"""The certificate of primal solvers: the best dual value over the dual points they come across.

A pass of the oracle gives mean parts mu of all examples, and with them a dual point. Its value depends on two numbers
only, which are linear in mu: the gain, (1/n) sum_i weight_i {<cost_i, mu_i> + entropy_i}, and the weights v = w(mu).
So a mixture of such points needs no mean parts, and the best mixture of the bound so far with a new point is a line
search. The entropy of a mixture is at least the mixture of entropies, so the value is a lower bound for smooth losses.

With an L1 term, P(w) = (l2/2) ||w||^2 + l1 ||w||_1 + (1/n) sum_i weight_i loss_i(w), the point takes the gradient g(mu)
of the loss term in place of v, and P is at least

    D(mu) = gain(mu) + min_w {<g(mu), w> + l1 ||w||_1 + (l2/2) ||w||^2} = gain(mu) - ||S(g(mu))||^2 / (2 l2),

where S moves every number by l1 towards zero. Without l2, a multiple of mu for which |g| <= l1 has the value gain(mu).
"""

from __future__ import annotations

import numpy as np

from maxmargin.solvers.bounds import project
from maxmargin.solvers.objective import Objective


class LowerBound:
    """The best known mixture of dual points, beginning with the true outputs, whose value is zero."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.gain = 0.0
        self.v = np.zeros(objective.n_weights)
        self.value = objective.dual_value(0.0, self.v)

    def add(self, gain: float, gradient: np.ndarray) -> float:
        """Mix in the dual point with this gain and gradient of the loss term, -lambda v; return the bound's value."""
        objective = self.objective
        if objective.regularization == 0:
            return self.value
        rise, direction = gain - self.gain, -gradient / objective.regularization - self.v
        gamma = self._line_search(rise, direction)
        at, point = self.gain + gamma * rise, self.v + gamma * direction
        value = objective.dual_value(at, point)
        if value > self.value:
            self.gain, self.v, self.value = at, point, value
        return self.value

    def _line_search(self, rise: float, direction: np.ndarray) -> float:
        """The best step in [0, 1]: the root of the dual's slope, which falls along the way."""
        objective = self.objective
        if not objective.bounds.which.size:
            strength = objective.regularization
            curvature = strength * float(np.dot(direction, direction))
            slope = rise - strength * float(np.dot(self.v, direction))
            return min(max(slope / curvature, 0.0), 1.0) if curvature > 0 else float(slope > 0)
        lo, hi = 0.0, 1.0
        for _ in range(30):
            gamma = (lo + hi) / 2
            w = project(self.v + gamma * direction, objective.bounds)
            if rise > objective.regularization * float(np.dot(w, direction)):
                lo = gamma
            else:
                hi = gamma
        return hi if hi == 1.0 else lo


class ElasticBound:
    """The best known dual value with an L1 term, and the mixture of dual points that has it.

    Parameters
    ----------
    objective : with its strengths of the regularization
    """

    STEPS = 6  # of the line search: any mixture gives a bound, the best is not needed

    def __init__(self, objective: Objective) -> None:
        self.l1, self.l2 = objective.l1, objective.regularization
        self.gain, self.gradient, self.value = 0.0, np.zeros(objective.n_weights), 0.0

    def add(self, gain: float, gradient: np.ndarray) -> float:
        """Mix in the dual point with this gain and gradient of the loss term; return the bound's value."""
        if self.l2 == 0:
            largest = float(np.abs(gradient).max())
            self.value = max(self.value, gain * min(1.0, self.l1 / largest if largest > 0 else 1.0))
            return self.value
        share = self._line_search(gain - self.gain, gradient - self.gradient)
        mixed = self.gradient + share * (gradient - self.gradient)
        at = self.gain + share * (gain - self.gain)
        value = at - float(np.sum(np.square(shrink(mixed, self.l1)))) / (2 * self.l2)
        if value > self.value:
            self.gain, self.gradient, self.value = at, mixed, value
        return self.value

    def _line_search(self, rise: float, direction: np.ndarray) -> float:
        """About the best step in [0, 1]: the slope of the dual falls along the way."""
        lo, hi, share = 0.0, 1.0, 1.0
        for _ in range(self.STEPS):
            shrunk = shrink(self.gradient + share * direction, self.l1)
            if rise > float(np.dot(shrunk, direction)) / self.l2:
                lo = share
            else:
                hi = share
            if lo == hi:
                return lo
            share = (lo + hi) / 2
        return share


def shrink(values: np.ndarray, by: float) -> np.ndarray:
    """Every number moved towards zero, at most to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.lower_bound import shrink
    >>> shrink(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    return values - np.clip(values, -by, by)
