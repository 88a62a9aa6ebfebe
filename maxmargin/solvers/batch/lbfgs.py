"""L-BFGS on smooth losses: conditional random fields, and structural SVMs with a smoothed hinge loss.

P(w) = F(w) + l1 ||w||_1, with F(w) = (l2/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w). A step follows the quasi-Newton
direction of F from the steepest descent of P, as far as P falls enough. With an L1 term this is OWL-QN: within an
orthant P is smooth, so a step starts from the pseudo-gradient, leaves out the coordinates that would go uphill, and
stops at the faces of the orthant: weights there are exactly zero. With bounds a step leaves out the weights that are at
a bound and would go beyond, and stops at the bounds; curvature is that among the others (two-metric projection).

Every evaluation is a certificate: the mean parts at which the loss is attained are a dual point. Without L1 its value
is F(w) - ||grad F(w)||^2 / (2 l2); `lower_bound` has the general case, and mixes these points. Where outputs are known
in part (`latent_objective`), a point is one of the majorant at w alone, and none are mixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.checks import check_count
from maxmargin.losses import BaseLoss
from maxmargin.persist.registry import register_state
from maxmargin.solvers.batch.curvature import Curvature
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.bounds import Bounds, project, shrink
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.loss_pass import Evaluation
from maxmargin.solvers.objective.lower_bound import ElasticBound, LowerBound, new_bound
from maxmargin.trace import Certificate, Status

DECREASE = 1e-4  # the share of the decrease that the slope promises at which a step is long enough
NUMBERS_KEPT = 10_000_000  # of past steps, by default
MOST_WITH_L1 = 15  # past steps: older ones moved weights that are held at zero now
SHORTEST = 1e-10  # of the full step, tried before giving up


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS for smooth losses, "log" and "smooth_hinge".

    With L1 regularization it is OWL-QN; with bounds of the weights, steps are projected to them.

    Parameters
    ----------
    memory
        The number of past steps that shape the next one; by default 100, fewer with so many weights that they would
        take more than 40 MB, but no fewer than 10; at most 15 with L1 regularization.

    References
    ----------
    Nocedal (1980), Updating quasi-Newton matrices with limited storage.
    Andrew, Gao (2007), Scalable training of L1-regularized log-linear models.
    Gafni, Bertsekas (1984), Two-metric projection methods for constrained optimization.

    Examples
    --------
    >>> from maxmargin import LBFGS
    >>> from maxmargin.testing import toy_chains
    >>> LBFGS().solve(toy_chains(), loss="log").status.name
    'OPTIMAL'
    """

    memory: int | None = None

    needs_smooth = takes_smooth = takes_l1 = resumes = takes_partial = takes_portions = True
    needs_regularization = False

    def __post_init__(self) -> None:
        if self.memory is not None:
            check_count("memory", self.memory)

    def needs_norms(self, loss: BaseLoss) -> bool:
        return False

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: self._begin(run))
        while True:
            last = state.point
            moved = first_point(run) if last is None else self._move(run, last, state.curvature)
            if moved is None:
                if not run.must_stop:
                    run.verdict = Status.STALLED
                return
            if not run.objective.is_convex:
                state.bound = new_bound(run.objective)
            certificate = moved.certificate(run, state.bound)
            if last is not None:
                self._learn(run, last, moved, state.curvature)
            state.point, run.w = moved, certificate.w
            del last, moved  # as large as the weights, several times
            yield certificate

    def _begin(self, run: Run) -> State:
        if run.objective.l1 and run.objective.bounds.which.size:
            raise ValueError("LBFGS takes bounds of the weights or L1 regularization, not both.")
        bound = new_bound(run.objective)
        return State(bound=bound, curvature=Curvature(self._memory(run.objective), run.w.size), point=None)

    def _move(self, run: Run, point: _Point, curvature: Curvature) -> _Point | None:
        """The next point; None if none is low enough."""
        l1, bounds = run.objective.l1, run.objective.bounds
        downhill = -point.steepest(l1)
        held = find_held(point.w, downhill, bounds)
        downhill[held] = 0
        direction = curvature.inverse_times(downhill)
        direction[held] = 0
        if l1:
            direction[direction * downhill <= 0] = 0
        moved = self._search(run, point, downhill, direction, curvature)
        if moved is None and curvature.size:  # of no use here: begin again, from the steepest descent
            curvature.forget()
            moved = self._search(run, point, downhill, downhill.copy(), curvature)
        return moved

    @staticmethod
    def _learn(run: Run, point: _Point, moved: _Point, curvature: Curvature) -> None:
        """Let the curvature take note of a step from a point that is left, whose gradient makes room for the change."""
        bounds, step = run.objective.bounds, moved.w - point.w
        change = np.subtract(moved.gradient, point.gradient, out=point.gradient)
        change[bounds.which[step[bounds.which] == 0]] = 0  # what holds among the weights that move
        curvature.add(step, change)

    def _memory(self, objective: Objective) -> int:
        most = MOST_WITH_L1 if objective.l1 else 100
        return self.memory or min(most, max(10, NUMBERS_KEPT // (2 * objective.n_weights)))

    @staticmethod
    def _search(
        run: Run, point: _Point, downhill: np.ndarray, direction: np.ndarray, curvature: Curvature
    ) -> _Point | None:
        """The first point along the direction, halfway and again, that is low enough; None if none is."""
        l1, bounds = run.objective.l1, run.objective.bounds
        orthant = np.where(point.w != 0, np.sign(point.w), np.sign(downhill)) if l1 else None
        length = 1.0 if curvature.size else 1 / max(float(np.linalg.norm(direction)), 1e-300)
        shortest = SHORTEST * length
        while length > shortest and not run.must_stop:
            w = point.w + length * direction
            if orthant is not None:
                w[w * orthant <= 0] = 0
            w = as_returned(run, project(w, bounds) if bounds.which.size else w)
            promised = float(np.dot(downhill, w - point.w))
            if promised <= 0:
                return None
            moved = _Point(run, w)
            if not moved.value > point.value - DECREASE * promised:  # NaN ends the search, too
                return moved
            # the lowest point of the parabola through both values, with the slope at the first
            length *= min(max(0.5 * promised / (moved.value - point.value + promised), 0.1), 0.5)
        return None


def find_held(w: np.ndarray, downhill: np.ndarray, bounds: Bounds) -> np.ndarray:
    """The weights that are at a bound, beyond which the objective would fall."""
    here, slope = w[bounds.which], downhill[bounds.which]
    return bounds.which[((here <= bounds.lower) & (slope < 0)) | ((here >= bounds.upper) & (slope > 0))]


def as_returned(run: Run, w: np.ndarray) -> np.ndarray:
    """Weights as the run returns them, in float64."""
    return w.astype(run.w.dtype).astype(w.dtype) if run.objective.runner.dtype != run.w.dtype else w


@register_state
class _Point:
    """Weights with the value of P, the gradient of F, and what a certificate needs."""

    def __init__(self, run: Run, w: np.ndarray) -> None:
        objective, self.w = run.objective, w
        self.evaluation: Evaluation = run.evaluate(self.w)
        run.n_steps += objective.n
        self.value = self.evaluation.value
        self.gradient = objective.regularization * self.w
        self.gradient += self.evaluation.gradient

    def certificate(self, run: Run, bound: LowerBound | ElasticBound) -> Certificate:
        dual = bound.add(self.evaluation.cost + self.evaluation.entropy, self.evaluation.gradient)
        self.evaluation = self.evaluation._replace(gradient=np.zeros(0))  # as large as the weights
        return Certificate(self.w.astype(run.w.dtype, copy=False), self.value, dual)

    def steepest(self, l1: float) -> np.ndarray:
        """The pseudo-gradient: the subgradient of P of the smallest norm."""
        if not l1:
            return self.gradient
        return np.where(self.w != 0, self.gradient + l1 * np.sign(self.w), shrink(self.gradient, l1))


def first_point(run: Run) -> _Point:
    """That of the weights to start from."""
    return _Point(run, as_returned(run, run.start_weights()))
