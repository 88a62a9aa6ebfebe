"""The certificate of primal solvers: the best dual value over the dual points they come across.

A pass of the oracle gives mean parts mu of all examples, and with them a dual point. Its value depends on two numbers
only, which are linear in mu: the gain, (1/n) sum_i weight_i {<cost_i, mu_i> + entropy_i}, and the weights v = w(mu).
So a mixture of such points needs no mean parts, and the best mixture of the bound so far with a new point is a line
search. The entropy of a mixture is at least the mixture of entropies, so the value is a lower bound for smooth losses.
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
