"""The certificate of primal solvers: the best dual value over the dual points they come across.

A pass of the oracle gives mean parts mu of all examples, and with them a dual point. Its value depends only on its
gain, (1/n) sum_i weight_i {<cost_i, mu_i> + entropy_i}, and on the weights v = w(mu). Of a few such points the best
mixture is found (`bundle`). The entropy of a mixture is at least the mixture of entropies, so the value is a lower
bound for smooth losses.

With an L1 term, P(w) = (l2/2) ||w||^2 + l1 ||w||_1 - <q, w> + (1/n) sum_i weight_i loss_i(w), the point takes the
gradient g(mu) of all but the regularization in place of v, and P is at least

    D(mu) = gain(mu) + min_w {<g(mu), w> + l1 ||w||_1 + (l2/2) ||w||^2} = gain(mu) - ||S(g(mu))||^2 / (2 l2),

where S moves every number by l1 towards zero. Without l2, a multiple of mu for which |g| <= l1 has the value gain(mu).
"""

from __future__ import annotations

import numpy as np

from maxmargin.arrays.vectors import clear, inner
from maxmargin.persist.registry import register_state
from maxmargin.problem import accumulate, add_output, augment, n_examples, true_output
from maxmargin.runtime.dispatch import helper
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.objective.bounds import shrink
from maxmargin.solvers.objective.bundle import Bundle
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.trace import Certificate

ACCURACY = 0.03  # of what a mixture with the new point could gain, to which the best one is found


@helper
def add_to_dual(problem, loss, i, weight, entropy, theta, delta, gradient):
    """Add the mean parts `delta` of example i to a dual point, with their gradient divided by n; return weight * gain.

    Leaves theta changed, and the true output subtracted from delta.
    """
    gain = entropy
    if loss.margin:
        clear(theta)
        augment(problem, i, theta)
        gain += inner(theta, delta)
    add_output(problem, i, true_output(problem, i), -1.0, delta)
    accumulate(problem, gradient, i, delta, weight / n_examples(problem))
    return weight * gain


@register_state
class LowerBound:
    """The best known dual value, and a few dual points whose best mixture has it.

    Parameters
    ----------
    objective
        The objective that it is a bound of.
    limit
        How many dual points to keep, each as large as the weights.
    """

    def __init__(self, objective: Objective, limit: int = 7) -> None:
        self.bundle = Bundle(objective, limit)
        self.value = objective.dual_value(0.0, objective.origin)  # of the true outputs

    def add(self, gain: float, gradient: np.ndarray) -> float:
        """Mix in the dual point with this gain and gradient, -lambda v; return the bound's value."""
        if self.bundle.regularization > 0 and np.isfinite(gain + np.dot(gradient, gradient)):
            self.bundle.add(gain, gradient)
            self.bundle.solve(share=ACCURACY)
            self.value = max(self.value, self.bundle.value)
        return self.value


@register_state
class Certifier:
    """Certificates of solvers that keep a dual point of marginals.

    Marginals are as exact as the potentials in the exponents. In float32 those of the hinge loss, at low temperatures,
    are not exact enough for a bound: outputs of the max oracle are.

    Parameters
    ----------
    run
        What is certified.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.bound = run, LowerBound(run.objective)
        self.is_rough = run.w.dtype == np.float32 and not run.objective.loss.is_smooth

    def certify_start(self, state: State) -> Certificate:
        """The certificate of the weights to start from, which is kept as `first`; it counts as a pass."""
        self.run.n_steps += self.run.objective.n
        state.first = self.certify(self.run.start_weights(), self.run.objective.least)
        return state.first

    def certify(self, w: np.ndarray, dual: float, exponents: float = 0.0) -> Certificate:
        """The objective at w by a pass of its oracle, and the highest dual value so far, given one.

        `exponents` is the size of the scores in the exponents of its marginals.
        """
        found = self.run.evaluate(w, with_gradient=self.is_rough)
        if self.is_rough:
            self.bound.add(found.cost, found.gradient)
        else:
            objective, eps = self.run.objective, float(np.finfo(self.run.w.dtype).eps)
            entropy = (objective.loss.entropy_level or 0.0) * objective.mean_weight * exponents
            rounding = (1 + exponents) * found.rounding + eps * (abs(dual) + abs(found.value) + entropy)
            self.bound.value = max(self.bound.value, dual - rounding)
        return Certificate(w.astype(self.run.w.dtype), found.value, self.bound.value)


@register_state
class ElasticBound:
    """The best known dual value with an L1 term, and the mixture of dual points that has it.

    Parameters
    ----------
    objective
        With its strengths of the regularization.
    """

    STEPS = 6  # of the line search: any mixture gives a bound, the best is not needed

    def __init__(self, objective: Objective) -> None:
        self.l1, self.l2, self.constant = objective.l1, objective.regularization, objective.constant
        self.gain, self.gradient = 0.0, objective.new_gradient()
        self.value = 0.0 if objective.linear is None else self._value(0.0, self.gradient)

    def add(self, gain: float, gradient: np.ndarray) -> float:
        """Mix in the dual point with this gain and gradient of the loss term; return the bound's value."""
        if self.l2 == 0:
            largest = float(np.abs(gradient).max())
            self.value = max(self.value, gain * min(1.0, self.l1 / largest if largest > 0 else 1.0))
            return self.value
        share = self._line_search(gain - self.gain, gradient - self.gradient)
        mixed = self.gradient + share * (gradient - self.gradient)
        at = self.gain + share * (gain - self.gain)
        value = self._value(at, mixed)
        if value > self.value:
            self.gain, self.gradient, self.value = at, mixed, value
        return self.value

    def _value(self, gain: float, gradient: np.ndarray) -> float:
        return gain + self.constant - float(np.sum(np.square(shrink(gradient, self.l1)))) / (2 * self.l2)

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


def new_bound(objective: Objective) -> LowerBound | ElasticBound:
    """A bound that keeps one dual point besides the true outputs."""
    return ElasticBound(objective) if objective.l1 else LowerBound(objective, limit=1)
