"""Orthant-wise limited-memory quasi-Newton (OWL-QN), for smooth losses with an L1 term; without one, plain L-BFGS.

P(w) = F(w) + l1 ||w||_1, with F(w) = (l2/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w). Within an orthant P is smooth. A
step follows the quasi-Newton direction of F from the steepest descent of P (the pseudo-gradient), without the
coordinates that would go uphill, and stops at the faces of the orthant: weights there are exactly zero.

Every evaluation is a certificate. The mean parts mu at which the loss is attained have a gain (their cost and entropy)
and a gradient g(mu) of the loss term, and P is at least

    D(mu) = gain(mu) + min_w {<g(mu), w> + l1 ||w||_1 + (l2/2) ||w||^2} = gain(mu) - ||S(g(mu))||^2 / (2 l2),

where S moves every number by l1 towards zero. Gain and gradient of a mixture of dual points are (at least) the mixtures
of theirs; those of the true outputs are zero. Without l2, a multiple of mu for which |g| <= l1 has the value gain(mu).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from maxmargin.checks import check_count
from maxmargin.solvers.lower_bound import LowerBound
from maxmargin.solvers.objective import Certificate, Evaluation, Objective
from maxmargin.solvers.run import Run
from maxmargin.solvers.solver import Solver
from maxmargin.trace import Status

DECREASE = 1e-4  # the share of the decrease that the slope promises at which a step is long enough
NUMBERS_KEPT = 10_000_000  # of past steps, by default
SHORTEST = 1e-10  # of the full step, tried before giving up


@dataclass(frozen=True)
class OWLQN(Solver):
    """L-BFGS for smooth losses with any mixture of L1 and L2 regularization, which `LBFGS` uses without bounds.

    Parameters
    ----------
    memory : the number of past steps that shape the next one; by default 100, fewer with so many weights that
        they would take more than 80 MB, but no fewer than 10

    References
    ----------
    Andrew, Gao (2007), Scalable training of L1-regularized log-linear models.
    """

    memory: int | None = None

    needs_smooth: ClassVar[bool] = True
    takes_smooth: ClassVar[bool] = True
    needs_regularization: ClassVar[bool] = False
    takes_bounds: ClassVar[bool] = False
    takes_l1: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.memory is not None:
            check_count("memory", self.memory)

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        with threadpool_limits(1, "blas"):  # vectors are short for threads, which wait for each other at full speed
            self._descend(run, observe)

    def _descend(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        objective, l1 = run.objective, run.objective.l1
        bound: Any = ElasticBound(objective) if l1 else LowerBound(objective)
        curvature = Curvature(self._memory(run.w.size), run.w.size)
        point = _Point(run, run.start_weights())
        while not observe(point.certificate(run, bound)):
            downhill = -point.steepest(l1)
            direction = curvature.inverse_times(downhill)
            if l1:
                direction[direction * downhill <= 0] = 0
            moved = self._search(run, point, downhill, direction, curvature)
            if moved is None and curvature.size:  # of no use here: begin again, from the steepest descent
                curvature.forget()
                moved = self._search(run, point, downhill, downhill.copy(), curvature)
            if moved is None:
                if not run.must_stop:
                    run.verdict = Status.STALLED
                break
            curvature.add(moved.w - point.w, moved.gradient - point.gradient)
            point = moved

    def _memory(self, n_weights: int) -> int:
        return self.memory or min(100, max(10, NUMBERS_KEPT // (2 * n_weights)))

    @staticmethod
    def _search(
        run: Run, point: _Point, downhill: np.ndarray, direction: np.ndarray, curvature: Curvature
    ) -> _Point | None:
        """The first point along the direction, halfway and again, that is low enough; None if none is."""
        l1 = run.objective.l1
        orthant = np.where(point.w != 0, np.sign(point.w), np.sign(downhill)) if l1 else None
        length = 1.0 if curvature.size else 1 / max(float(np.linalg.norm(direction)), 1e-300)
        shortest = SHORTEST * length
        while length > shortest and not run.must_stop:
            w = point.w + length * direction
            if orthant is not None:
                w[w * orthant <= 0] = 0
            moved = _Point(run, w)
            promised = float(np.dot(downhill, w - point.w))
            if promised <= 0:
                return None
            if not moved.value > point.value - DECREASE * promised:  # NaN ends the search, too
                return moved
            # the lowest point of the parabola through both values, with the slope at the first
            length *= min(max(0.5 * promised / (moved.value - point.value + promised), 0.1), 0.5)
        return None


class _Point:
    """Weights with the value of P, the gradient of F, and what a certificate needs."""

    def __init__(self, run: Run, w: np.ndarray) -> None:
        objective = run.objective
        self.w = w
        self.evaluation: Evaluation = run.evaluate(w)
        run.n_steps += objective.n
        self.value = self.evaluation.value + objective.l1 * float(np.abs(w).sum())
        self.gradient = objective.regularization * w
        self.gradient += self.evaluation.gradient

    def certificate(self, run: Run, bound: Any) -> Certificate:
        dual = bound.add(self.evaluation.cost + self.evaluation.entropy, self.evaluation.gradient)
        return Certificate(self.w.astype(run.w.dtype), self.value, dual)

    def steepest(self, l1: float) -> np.ndarray:
        """The pseudo-gradient: the subgradient of P of the smallest norm."""
        if not l1:
            return self.gradient
        return np.where(self.w != 0, self.gradient + l1 * np.sign(self.w), shrink(self.gradient, l1))


class Curvature:
    """The last steps s and changes y of the gradient, and the inverse Hessian that they suggest.

    It is a diagonal, which all steps have shaped, corrected along the last ones. The usual multiple of the identity
    takes a sixth more iterations on text, where some features are far rarer than others.

    Parameters
    ----------
    memory : how many to keep
    n_weights : their size

    References
    ----------
    Gilbert, Lemarechal (1989), Some numerical experiments with variable-storage quasi-Newton algorithms.
    """

    def __init__(self, memory: int, n_weights: int) -> None:
        self.diagonal = np.ones(n_weights)  # of the Hessian
        self.steps = np.zeros((memory, n_weights))
        self.changes = np.zeros((memory, n_weights))
        self.products = np.zeros(memory)  # <s, y>
        self.size = 0  # how many are there
        self.newest = -1

    def forget(self) -> None:
        """Begin again, with the identity."""
        self.size = 0
        self.diagonal[:] = 1

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Take note of a step, unless rounding has eaten its curvature."""
        product = float(np.dot(step, change))
        if product > 1e-12 * float(np.dot(step, step)) ** 0.5 * float(np.dot(change, change)) ** 0.5:
            self.newest = (self.newest + 1) % len(self.products)
            self.steps[self.newest], self.changes[self.newest] = step, change
            self.products[self.newest] = product
            self.size = min(self.size + 1, len(self.products))
            self._shape_diagonal(step, change, product)

    def _shape_diagonal(self, step: np.ndarray, change: np.ndarray, product: float) -> None:
        """Scale the diagonal to the curvature along the step, then take the diagonal of its BFGS update."""
        self.diagonal *= float(np.dot(change, change / self.diagonal)) / product
        pull = self.diagonal * step
        updated = self.diagonal + change**2 / product - pull**2 / float(np.dot(step, pull))
        self.diagonal = np.maximum(updated, 1e-10 * self.diagonal)  # positive but for rounding

    def inverse_times(self, vector: np.ndarray) -> np.ndarray:
        """The two-loop recursion (Nocedal and Wright, Algorithm 7.4)."""
        from scipy.linalg.blas import daxpy  # slow to import

        result = vector.copy()
        newest_first = [(self.newest - k) % len(self.products) for k in range(self.size)]
        shares = np.zeros(len(self.products))
        for k in newest_first:
            shares[k] = np.dot(self.steps[k], result) / self.products[k]
            daxpy(self.changes[k], result, a=-shares[k])
        result /= self.diagonal
        for k in reversed(newest_first):
            back = np.dot(self.changes[k], result) / self.products[k]
            daxpy(self.steps[k], result, a=shares[k] - back)
        return result


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
    >>> from maxmargin.solvers.owlqn import shrink
    >>> shrink(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    return values - np.clip(values, -by, by)
