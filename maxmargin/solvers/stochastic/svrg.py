"""SVRG (Johnson, Zhang 2013), on smooth losses and on the hinge loss, smoothed at a fixed or a falling level.

An epoch begins at a snapshot x with its full gradient, and takes one step per example,

    w <- w - eta {weight_i (g_i(w) - g_i(x)) + average of all weight_j g_j(x) + lambda w + kappa (w - z)},

where the last term, zero here, is the proximal term of Casimir. The mean parts of the snapshot are kept, so that a step
calls the oracle once, and the dense terms are lazy (`lazy_weights`). Those met in an epoch are a dual point, too.

Nobody knows the best eta = 1/(L + lambda + kappa). Far from the solution it is hardly bounded by how the losses bend,
which a look at some examples tells, and near it by noise: steps that are too long make an epoch gain far less than the
one before, steps that are too short make it gain about as much. So L doubles and falls by what epochs gain. A run
without a start begins with a pass of SGD, as at zero many outputs tie.

With `smoothing=None` the steps are taken on the hinge loss itself, where g_i is any subgradient (*Smoother*, Figure
5b). No theorem covers this: g_i(w) - g_i(x) need not vanish as w and x meet, and no step size is short enough. The
certificates hold as they always do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.arrays.vectors import add_scaled, inner
from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import LEAST_LEVEL, BaseLoss, Loss, attain
from maxmargin.losses.smoothing import SMOOTHINGS
from maxmargin.persist.registry import register_state
from maxmargin.problem import n_examples
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.objective.lower_bound import LowerBound, add_to_dual
from maxmargin.solvers.stochastic.lazy_weights import average, lazy_potentials, lazy_step, lazy_weights, turn
from maxmargin.solvers.stochastic.sgd import polyak_rule, sgd_pass
from maxmargin.solvers.stochastic.smoothness import look_at_some
from maxmargin.trace import Certificate

STEADY, POOR = 0.7, 0.4  # of what the last epoch gained: where the next one gains more, or less
LONGER, SHORTER, FAR_SHORTER = 0.7, 2.0, 16.0  # what L is multiplied by
FALL = 4.0  # by how much the level falls once a smoothed objective is solved
SMALLEST_SHARE = 0.05  # of the tolerance, that a level adds to the objective: lower ones are of no use
DIGITS_LOST = 1e3  # by which rounding errors of potentials grow at the lowest level of entropy smoothing
FIRST_SHARE = 0.5  # of the objective at the start, that the first level may add to it


@dataclass(frozen=True)
class SmoothingSolver(Solver):
    """Base of solvers that need a smooth loss, and smooth the hinge loss for it.

    Parameters
    ----------
    smoothing
        How the hinge loss is smoothed, "l2" or "entropy", whose certificates are loose in float32; None to run on the
        hinge loss as it is, which nothing proves to converge.
    level
        How much it is smoothed; by default it falls whenever the smoothed objective is solved.
    max_k
        The most outputs that l2 smoothing mixes.
    smoothness
        The constant L of the losses, for step sizes such as 1/(L + lambda); estimated by default.
    """

    smoothing: str | None = "l2"
    level: float | None = None
    max_k: int = 40
    smoothness: float | None = None

    resumes = takes_smooth = True
    needs_regularization = False
    renamed: ClassVar[Mapping[str, str | None]] = {"mu": "level"}

    def __post_init__(self) -> None:
        check_choice("smoothing", self.smoothing, (None, *SMOOTHINGS))
        if self.smoothing is None and self.level is not None:
            raise ValueError(f"level is a level of smoothing, of which smoothing=None has none, not {self.level!r}.")
        check_count("max_k", self.max_k)
        for name in ("level", "smoothness"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def oracles(self, loss: BaseLoss) -> set[str]:
        return {loss.oracle, self.smooth(loss, 1.0).oracle}

    def smooth(self, loss: BaseLoss, level: float) -> BaseLoss:
        """The loss to minimise in place of a hinge loss that is to be smoothed; other losses are smooth themselves."""
        return loss if loss.is_smooth or not self.smoothing else Loss(self.smoothing, level, loss.margin, self.max_k)


@dataclass(frozen=True)
class SVRG(SmoothingSolver):
    """Stochastic variance-reduced gradients.

    References
    ----------
    Johnson, Zhang (2013), Accelerating stochastic gradient descent using predictive variance reduction.

    Examples
    --------
    >>> from maxmargin import SVRG
    >>> from maxmargin.testing import toy_chains
    >>> SVRG().solve(toy_chains(), tol=0.1, random_state=0).status.name
    'OPTIMAL'
    """

    def iterate(self, run: Run) -> Iterator[Certificate]:
        epochs = run.take_up(lambda: Epochs(self, run))
        while True:
            w = epochs.point
            if epochs.has_snapshot:
                w = epochs.run_epoch()
                if self.level is None:
                    epochs.lower_level()
            epochs.snapshot(w)
            yield epochs.certificate()


@register_state
class Epochs:
    """Epochs of SVRG on a smooth objective, with certificates for the objective of the run.

    Parameters
    ----------
    solver
        Its options.
    run
        The run.
    """

    def __init__(self, solver: SmoothingSolver, run: Run) -> None:
        self.solver, self.run = solver, run
        self.is_hard = not run.objective.loss.is_smooth
        self.is_smoothed = self.is_hard and solver.smoothing is not None
        self.range = self._range() if self.is_smoothed else 0.0
        self.bound = LowerBound(run.objective)
        self.means, self.spare = run.objective.true_means(), run.objective.true_means()
        self.smoothness = solver.smoothness or 0.0
        self.gained = 0.0  # by the last epoch
        self.objective = run.objective
        self.point, self.value = self._start(), np.inf
        self.primal = run.objective.primal(self.point, look_at_some(run, run.objective, self.point).loss)
        self.first_level = solver.level or self.level_of(FIRST_SHARE * (abs(self.primal) or 1.0))
        self.n_epochs = 0
        self.has_snapshot = False
        self.set_level(self.first_level)

    def __getstate__(self) -> dict[str, object]:
        """All but the smoothed objective, which its level tells."""
        return {name: value for name, value in vars(self).items() if name != "objective"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, objective=state["run"].objective)
        self._smooth()

    def _start(self) -> np.ndarray:
        run, w = self.run, self.run.start_weights()
        if run.start is not None or self.solver.smoothness:
            return w
        lazy = lazy_weights(w, run.objective.runner.dtype, run.objective.linear)
        dual_point = sgd_pass(run, lazy, polyak_rule(run, w))
        if not run.must_stop:
            self.bound.add(*dual_point)
        return project(average(lazy), run.objective.bounds)

    def _range(self) -> float:
        """D: the most that the objective rises per level of smoothing, 1/2 (l2) or the log of the number of outputs."""
        mean_weight = float(self.run.objective.weight.mean()) or 1.0
        if self.solver.smoothing == "l2":
            return 0.5 * mean_weight
        counts = self.run.objective.with_loss(Loss("entropy", margin=False))
        return max(look_at_some(self.run, counts, np.zeros(self.run.w.size)).loss, np.log(2) * mean_weight)

    @property
    def least_level(self) -> float:
        """The level below which nothing is gained: the tolerance is met, or marginals lose their digits."""
        enough = self.level_of(SMALLEST_SHARE * self.run.target(self.primal))
        if self.solver.smoothing != "entropy":
            return enough
        digits = DIGITS_LOST * float(np.finfo(self.run.w.dtype).eps)
        return max(enough, digits * self.first_level / FIRST_SHARE, LEAST_LEVEL)

    @property
    def is_rough(self) -> bool:
        """Whether mean parts are not exact enough for a dual point: marginals at low levels in float32."""
        return self.is_hard and self.solver.smoothing == "entropy" and self.run.w.dtype == np.float32

    def level_of(self, rise: float) -> float:
        """The level that adds at most this much to the objective."""
        return rise / (self.range or 0.5)

    def set_level(self, level: float) -> None:
        """Smooth at a level from now on, or at the smallest one that is of use."""
        self.level = level if self.solver.level else max(level, self.least_level)
        self._smooth()

    def _smooth(self) -> None:
        if self.is_smoothed:
            self.objective = self.objective.with_loss(self.solver.smooth(self.run.objective.loss, self.level))

    def snapshot(self, *candidates: np.ndarray) -> None:
        """Evaluate the smooth objective, keep the mean parts there, and set the step size of the next epoch.

        Takes the first candidate where the objective does not rise. Stays at the last snapshot where it rises at all
        of them: the steps were too long.
        """
        is_tuned, self.has_snapshot = self.solver.smoothness is not None, True
        for w in candidates:
            found = self.run.evaluate(w, self.objective, means=self.spare)
            gained = self.value - found.value
            is_accepted = gained >= 0 or is_tuned
            if is_accepted:
                self.means, self.spare = self.spare, self.means
                self.point, self.value, self.evaluation = w, found.value, found
                break
        if is_tuned:
            return
        if np.isinf(gained):
            self.smoothness = look_at_some(self.run, self.objective, self.point, searches=True).smoothness
        elif is_accepted:
            self.smoothness *= (
                LONGER if gained >= STEADY * self.gained else SHORTER if gained < POOR * self.gained else 1
            )
            self.gained = gained
        else:
            self.smoothness *= SHORTER if found.value - self.value <= 9 * abs(self.value) else FAR_SHORTER
            self.gained = np.nan  # tells nothing of the next epoch
            if not np.isfinite(found.value):  # by steps that are far too long, or by the oracle
                self.evaluation = self.run.evaluate(self.point, self.objective, means=self.means)

    def certificate(self) -> Certificate:
        """What the snapshot says of the objective of the run."""
        found = self.evaluation
        gain = found.cost if self.is_hard else found.cost + found.entropy
        primal = found.hard if self.is_hard else found.value
        if self.is_hard and self.solver.smoothing == "entropy":  # whose oracle does not tell the maximum
            hard = self.run.evaluate(self.point)
            primal = hard.value
            if self.is_rough:
                found, gain = hard, hard.cost
        self.primal = min(self.primal, primal) if self.n_epochs else primal
        return Certificate(self.point.astype(self.run.w.dtype), primal, self.bound.add(gain, found.gradient))

    def gradient(self, kappa: float = 0.0, center: object = 0.0) -> np.ndarray:
        """The gradient of the smooth objective + (kappa/2) ||w - center||^2 at the snapshot."""
        regularization = self.objective.regularization
        return self.evaluation.gradient + regularization * self.point + kappa * (self.point - center)

    def lower_level(self) -> bool:
        """Lower the level if the smooth objective is solved to the accuracy with which it stands for the true one.

        Without regularization there is no telling, and the level falls as that of Casimir does. Tells whether it fell.
        """
        objective, found, before = self.objective, self.evaluation, self.level
        if objective.regularization == 0:
            self.set_level(self.first_level / self.n_epochs)
            return self.level < before
        v = -found.gradient / objective.regularization
        if found.value - objective.dual_value(found.cost + found.entropy, v) <= self.range * self.level:
            self.set_level(self.level / FALL)
        return self.level < before

    def run_epoch(self, kappa: float = 0.0, center: np.ndarray | None = None, is_saga: bool = False) -> np.ndarray:
        """One step per example from the snapshot on the objective + (kappa/2) ||w - center||^2.

        Returns the average of the iterates. With `is_saga`, gradients that are met take the place of the snapshot's.
        """
        run, objective = self.run, self.objective
        self.n_epochs += 1
        convexity = objective.regularization + kappa
        eta = 1 / ((self.smoothness + convexity) or 1.0)
        direction = self.evaluation.gradient if center is None else self.evaluation.gradient - kappa * center
        lazy = lazy_weights(self.point, objective.runner.dtype, direction)
        order = run.rng.permutation(objective.n)
        gradient, gain, done = objective.new_gradient(), 0.0, 0
        known = self.means
        if is_saga:
            known = self.spare  # the snapshot's are needed again if the epoch fails
            known.values[:] = self.means.values
        rule = EpochRule(objective.weight, eta, convexity, is_saga, not self.is_hard)
        for lo, hi in run.slices(objective.n):
            gain = svrg_steps(
                objective.problem,
                objective.attained,
                lazy,
                objective.bounds,
                known,
                rule,
                order[lo:hi],
                gradient,
                gain,
                objective.runner.scratches[0],
            )
            run.count(calls=hi - lo)
            done = hi
        if done == objective.n and not self.is_rough:
            self.bound.add(gain / objective.n, gradient)
        with np.errstate(over="ignore", invalid="ignore"):  # steps that were too long are taken back
            return project(average(lazy), objective.bounds)


class EpochRule(NamedTuple):
    """How to take the steps of an epoch."""

    weight: np.ndarray  # (n,) sample weights
    eta: float  # their length
    convexity: float  # lambda + kappa
    is_saga: bool  # whether gradients that are met take the place of the snapshot's
    counts_entropy: bool  # in the dual point that is met


@loop
def svrg_steps(problem, loss, lazy, bounds, means, rule, order, gradient, gains, scratch):
    """A step on each example of `order`; adds the gradients of the losses, divided by n; returns `gains` plus its."""
    for k in range(order.size):
        i = order[k]
        known = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: known.size]
        delta = scratch.delta[: known.size]
        lazy_potentials(problem, loss, lazy, i, theta, delta)
        h, _, mean, slack = attain(loss, problem, i, theta, delta, scratch)
        entropy = (h if rule.counts_entropy else mean) - slack - inner(theta, delta)  # and what rounds the mean parts
        gains += add_to_dual(problem, loss, i, rule.weight[i], entropy, theta, delta, gradient)
        add_scaled(delta, known, -1.0)
        shrink = 1 - rule.eta * rule.convexity
        lazy_step(problem, lazy, bounds, i, delta, -rule.eta * rule.weight[i], shrink, -rule.eta, 1.0)
        if rule.is_saga:
            add_scaled(known, delta, 1.0)
            turn(problem, lazy, i, delta, rule.weight[i] / n_examples(problem))
    return gains
