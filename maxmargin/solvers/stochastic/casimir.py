"""Casimir-SVRG (*Smoother*, Algorithm 4): acceleration by proximal points on smoothed objectives.

Outer step k minimises F_k(w) + (kappa_k/2) ||w - z_{k-1}||^2 by epochs of SVRG, where F_k is the objective smoothed at
level_k, and extrapolates, z_k = w_k + beta_k (w_k - w_{k-1}). With q = lambda/(lambda + kappa) and D, the range
of the smoothing,

    schedule   regularized (Corollaries 17, 18)                 not regularized (Corollaries 19, 20)
    constant   level = eps/(10 D), kappa = L/n - lambda            level = eps/(20 D), kappa = L/(n + 1)
    adaptive   level_k = level eta^(k/2), eta = 1 - sqrt(q)/2      level_k = level/k, kappa_k = k kappa

and delta_k = sqrt(q)/(2 - sqrt(q)), or 1/(k + 1)^2, is the relative accuracy of the subproblems.

These are for a given L, and guarantee an accuracy eps. Without one, L is estimated, of the worst examples, and kappa =
L/(10 n) is the better choice. In the adaptive schedule, where the paper leaves kappa to the user, it follows the
smoothness L_k of the current level, which also slows the fall of the level as the losses get harder to minimise; the
level waits where it is far below the certified gap. The level eps/(10 D) makes so short steps that nobody will wait for
them: unless given, the constant level begins with a fiftieth of the objective at the start, and falls once the
objective smoothed at it is solved. With `smoothing=None` (Figure 5b) there are no levels, and kappa stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.checks import check_choice, check_positive
from maxmargin.persist.registry import register_state
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.stochastic.svrg import Epochs, SmoothingSolver
from maxmargin.trace import Certificate

SCHEDULES = ("adaptive", "constant")
WARM_STARTS = ("center", "previous", "extrapolation")
LAG = 2.0  # the certified gap beyond which the adaptive level does not fall, in terms of what the level may add
CONSTANT_SHARE = 0.02  # of the objective at the start, that the constant level may add to it

STOPS = ("budget", "gradient")
INNER_METHODS = ("svrg", "saga")


@dataclass(frozen=True)
class Casimir(SmoothingSolver):
    """Casimir-SVRG: accelerated variance-reduced gradients with smoothing that adapts.

    Parameters
    ----------
    level
        How much it is smoothed, the first one of the adaptive schedule; by default set from the objective at the start.
        A constant level that is given bounds the accuracy; the default falls whenever the smoothed objective is solved.
    schedule
        "adaptive" lowers the level from step to step, "constant" keeps it.
    kappa
        Weight of the proximal term, the first one if it grows; set by the schedule by default.
    warm_start
        Where subproblems start: at their "center", at the "previous" solution, or at its "extrapolation".
    stop
        "budget" gives each subproblem one epoch; "gradient" as many as its accuracy takes.
    inner
        The method for subproblems: "svrg", or "saga", whose steps replace the gradient that is kept of an example by
        the one they meet; it begins every epoch with those of a full pass, which the certificate takes anyway.

    References
    ----------
    Pillutla, Roulet, Kakade, Harchaoui (2019), A smoother way to train structured prediction models, Algorithm 4.
    Defazio, Bach, Lacoste-Julien (2014), SAGA: a fast incremental gradient method.

    Examples
    --------
    >>> from maxmargin import Casimir
    >>> from maxmargin.testing import toy_chains
    >>> Casimir().solve(toy_chains(), tol=0.1, random_state=0).status.name
    'OPTIMAL'
    """

    schedule: str = "adaptive"
    kappa: float | None = None
    warm_start: str = "center"
    stop: str = "budget"
    inner: str = "svrg"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("warm_start", self.warm_start, WARM_STARTS)
        check_choice("stop", self.stop, STOPS)
        check_choice("inner", self.inner, INNER_METHODS)
        if self.kappa is not None:
            check_positive("kappa", self.kappa)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: self._begin(run))
        while True:
            if self._improve(state):
                state.epochs.snapshot(state.w)
                state.w, state.certified = state.epochs.point, "improved"
            else:
                self._start_next(run, state)
                state.certified = "start"
            yield state.epochs.certificate()

    def _begin(self, run: Run) -> State:
        epochs = Epochs(self, run)
        w = epochs.point
        schedule = Schedule(self, run, epochs)
        return State(
            epochs=epochs, schedule=schedule, certified=None, w=w, previous=w, z=w, last_z=w, alpha=None, kappa=0.0
        )

    def _improve(self, state: State) -> bool:
        """An epoch on the current subproblem, unless it is solved; return whether to look if it is now."""
        if state.certified is None:
            return False
        if state.certified == "start":
            if state.alpha is None:
                state.schedule.begin(state.epochs.smoothness)
                state.alpha = state.schedule.first_alpha
            state.kappa = state.schedule.kappa
        elif self._is_solved(state):
            return False
        state.w = state.epochs.run_epoch(state.kappa, state.z, self.inner == "saga")
        return self.stop == "gradient"

    def _is_solved(self, state: State) -> bool:
        kappa, regularization = state.kappa, state.schedule.regularization
        squared_norm = self._squared_gradient(state.epochs, kappa, state.z)
        distance = float(np.sum((state.w - state.z) ** 2))
        return squared_norm <= (regularization + kappa) * state.schedule.accuracy * kappa * distance

    def _start_next(self, run: Run, state: State) -> None:
        """Move the center on, unless it is the first one, and start on the subproblem there."""
        epochs, schedule, bounds = state.epochs, state.schedule, run.objective.bounds
        share = 0.0
        if state.alpha is not None:
            schedule.advance(epochs)
            state.alpha, beta = extrapolate(state.alpha, state.kappa, schedule.kappa, schedule.regularization)
            state.last_z, state.z = state.z, project(state.w + beta * (state.w - state.previous), bounds)
            state.previous = state.w
            share = schedule.kappa / (schedule.kappa + schedule.regularization)
        epochs.set_level(schedule.level)
        start = project(self._start(state.previous, state.z, state.last_z, share), bounds)
        epochs.snapshot(start, state.previous)
        if epochs.point is not start:
            state.previous = state.last_z = state.z = epochs.point  # the momentum leads astray: begin anew

    @staticmethod
    def _squared_gradient(epochs: Epochs, kappa: float, z: np.ndarray) -> float:
        """||grad||^2 of the subproblem at the snapshot, within the bounds."""
        convexity = epochs.objective.regularization + kappa
        step = epochs.point - project(epochs.point - epochs.gradient(kappa, z) / convexity, epochs.objective.bounds)
        return convexity**2 * float(np.dot(step, step))

    def _start(self, previous: np.ndarray, z: np.ndarray, last_z: np.ndarray, share: float) -> np.ndarray:
        if self.warm_start == "center":
            return z
        return previous if self.warm_start == "previous" else previous + share * (z - last_z)


@register_state
class Schedule:
    """The schedules of a run: level, kappa and the accuracy of the current step."""

    def __init__(self, solver: Casimir, run: Run, epochs: Epochs) -> None:
        self.solver = solver
        self.n, self.regularization = run.objective.n, run.objective.regularization
        self.is_constant = solver.schedule == "constant"
        self.k = 1
        self.level = epochs.level
        self.is_free = solver.level is None and epochs.is_smoothed  # to choose levels
        if self.is_constant and self.is_free:
            self.level = epochs.level_of(CONSTANT_SHARE * (abs(epochs.primal) or 1.0))

    def begin(self, smoothness: float) -> None:
        """Set kappa from the smoothness of the losses."""
        self.first_kappa = self.kappa = self.solver.kappa or self._kappa(smoothness)
        self.first_level = self.level
        self.first_alpha = np.sqrt(self._q) if self.regularization > 0 else (np.sqrt(5) - 1) / 2

    @property
    def _q(self) -> float:
        return self.regularization / (self.regularization + self.kappa)

    def _kappa(self, smoothness: float) -> float:
        if self.regularization == 0:
            return smoothness / (self.n + 1)
        if not self.is_constant or self.solver.smoothness is None:
            return max(smoothness / (10 * self.n), self.regularization)
        is_ill_conditioned = smoothness / self.n > 4 * self.regularization
        return smoothness / self.n - self.regularization if is_ill_conditioned else self.regularization

    @property
    def accuracy(self) -> float:
        """delta_k."""
        root = np.sqrt(self._q)
        return root / (2 - root) if self.regularization > 0 else 1 / (self.k + 1) ** 2

    def advance(self, epochs: Epochs) -> None:
        """Go on to the next step."""
        smoothness = epochs.smoothness
        self.k += 1
        if self.k == 3 and self.solver.kappa is None:  # the first estimate was made where outputs tie
            self.first_kappa = self.kappa = self._kappa(smoothness)
        if self.is_constant:
            if self.is_free and self.regularization > 0 and epochs.lower_level():
                if self.solver.kappa is None:
                    self.kappa *= self.level / epochs.level  # the losses bend more
                self.level = epochs.level
            return
        if self.regularization == 0:
            self.level = self.first_level / self.k
            self.kappa = self.first_kappa * self.k
            return
        if epochs.is_hard and not epochs.is_smoothed:
            return
        if self.is_free and epochs.primal - epochs.bound.value > LAG * epochs.range * self.level:
            return  # the level is ahead of the solution, as with few examples, where an epoch is short
        fall = np.sqrt(1 - np.sqrt(self._q) / 2)
        self.level *= fall
        if self.solver.kappa is None:
            self.kappa = max(self.kappa, self._kappa(smoothness / fall))


def extrapolate(alpha: float, kappa: float, next_kappa: float, regularization: float) -> tuple[float, float]:
    """alpha_k and beta_k, from alpha_{k-1}.

    alpha_k solves alpha_k^2 (kappa_{k+1} + lambda) = (1 - alpha_k) alpha_{k-1}^2 (kappa_k + lambda) + alpha_k lambda.
    """
    scaled = alpha**2 * (kappa + regularization)
    a, b = next_kappa + regularization, scaled - regularization
    following = (np.sqrt(b**2 + 4 * a * scaled) - b) / (2 * a)
    beta = alpha * (1 - alpha) * (kappa + regularization) / (scaled + following * a)
    return following, beta
