"""Stochastic subgradient descent, on every loss.

    w_t = w_{t-1} - gamma_t {weight_i g_i(w_{t-1}) + lambda w_{t-1}}

with steps gamma_t = gamma_0/(1 + t/t_0), gamma_0, gamma_0/sqrt(t) or gamma_0/t, and the average of the iterates
weighted by their number, 2/(t^2 + t) sum_s s w_s (*Smoother*, section 7; Lacoste-Julien, Schmidt, Bach 2012). A pass
visits each example once, so the mean parts that the oracle returns during a pass are a dual point, at no extra calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import attain
from maxmargin.problem import add_output, gold
from maxmargin.runtime.dispatch import helper, kernel
from maxmargin.solvers.bounds import project
from maxmargin.solvers.lazy_weights import (
    STEPS,
    LazyWeights,
    average,
    current,
    lazy_potentials,
    lazy_step,
    lazy_weights,
)
from maxmargin.solvers.lower_bound import LowerBound, add_to_dual
from maxmargin.solvers.objective import Certificate, Objective
from maxmargin.solvers.run import Run
from maxmargin.solvers.smoothness import estimate_bend
from maxmargin.solvers.solver import Solver

DECAY, CONSTANT, SQRT, INVERSE = range(4)
SCHEDULES = {"decay": DECAY, "constant": CONSTANT, "sqrt": SQRT, "inverse": INVERSE}
TRIAL = 1000  # steps for which a first step size is tried
MOST_TRIALS = 40
WORTHWHILE = 0.999  # of the losses: what another step size must at least save


@dataclass(frozen=True)
class SGD(Solver):
    """Stochastic subgradient descent.

    Parameters
    ----------
    schedule : step sizes after t steps: "decay", gamma_0/(1 + t/t_0); "constant", gamma_0; "sqrt", gamma_0/sqrt(t); or
        "inverse", gamma_0/t
    step : gamma_0; by default the best on some examples, or 1/lambda for "inverse"
    delay : t_0 of "decay"; by default 1/(lambda gamma_0), so that steps tend to 1/(lambda t), or one pass without
        regularization
    averaging : whether to return the average of the iterates in place of the last one
    gap_every : passes between two certificates, which take one more pass of the oracle
    """

    schedule: str = "decay"
    step: float | None = None
    delay: float | None = None
    averaging: bool = True
    gap_every: int = 5

    takes_smooth: ClassVar[bool] = True
    needs_regularization: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, SCHEDULES)
        check_count("gap_every", self.gap_every)
        for name in ("step", "delay"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def _check_objective(self, objective: Objective) -> None:
        super()._check_objective(objective)
        if self.schedule == "inverse" and self.step is None and objective.regularization == 0:
            raise ValueError("schedule='inverse' needs regularization: give a finite C, or a step.")

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective, bound = run.objective, LowerBound(run.objective)
        w = run.start_weights()
        rule = self._rule(run, w)
        lazy = lazy_weights(w, objective.passes.dtype, averages=self.averaging)
        n_passes = 1
        while True:
            for _ in range(n_passes):
                order, gradient, gain = run.rng.permutation(objective.n), np.zeros(w.size), 0.0
                for lo, hi in run.slices(objective.n):
                    gain += sgd_steps_on(run, lazy, order[lo:hi], rule, gradient)[1]
                if run.must_stop:
                    break
                bound.add(gain / objective.n, gradient)
            w = project(average(lazy) if self.averaging else current(lazy), objective.bounds)
            found = run.evaluate(w)
            dual = bound.add(found.cost + found.entropy, found.gradient)
            yield Certificate(w.astype(run.w.dtype), found.value, dual)
            n_passes = self.gap_every

    def _rule(self, run: Run, w: np.ndarray) -> StepRule:
        strength = run.objective.regularization
        if self.step is not None:
            step = self.step
        elif self.schedule == "inverse":
            step = 1 / strength
        else:
            step = self._try_steps(run, w)
            run.notes.append(f"Chose step={step:.3g}.")
        slowest = 1 / (strength * step) if strength > 0 else run.objective.n
        return StepRule(SCHEDULES[self.schedule], float(step), float(self.delay or slowest), strength)

    def _try_steps(self, run: Run, w: np.ndarray) -> float:
        """The step with the lowest losses along a walk over some examples: a power of two times Polyak's step at w."""
        objective = run.objective
        order = np.resize(run.rng.permutation(objective.n), TRIAL)

        def losses(step: float) -> float:
            lazy = lazy_weights(w, objective.passes.dtype, averages=False)
            rule = replace(self, step=step)._rule(run, w)
            return sgd_steps_on(run, lazy, order, rule, np.zeros(0))[0]

        found = estimate_bend(run, objective, w)
        best = found.loss / max(found.squared_norm, 1e-12) or 1.0
        lowest, factor = losses(best), 2.0
        if (value := losses(best / 2)) < WORTHWHILE * lowest:
            best, lowest, factor = best / 2, value, 0.5
        for _ in range(MOST_TRIALS):  # losses that vanish fall with every shorter step
            if not (value := losses(best * factor)) < WORTHWHILE * lowest:
                break
            best, lowest = best * factor, value
        return best


class StepRule(NamedTuple):
    """Step sizes gamma_t."""

    kind: int
    first: float  # gamma_0
    delay: float  # t_0
    regularization: float


def sgd_steps_on(
    run: Run, lazy: LazyWeights, order: np.ndarray, rule: StepRule, gradient: np.ndarray
) -> tuple[float, float]:
    """Take a step on each example of `order`; return the sums of their losses and of their gains in the dual."""
    objective = run.objective
    run.count(calls=len(order))
    return sgd_steps(
        objective.problem,
        objective.loss,
        lazy,
        objective.bounds,
        objective.passes.part_sizes,
        objective.weight,
        order,
        rule,
        gradient,
        objective.passes.scratches[0],
    )


@kernel
def sgd_steps(problem, loss, lazy, bounds, sizes, weight, order, rule, gradient, scratch):
    """Steps along `order`; adds the gradients of the losses, divided by n, to `gradient` unless it is empty."""
    losses = 0.0
    gains = 0.0
    for k in range(order.size):
        i = order[k]
        theta = scratch.theta[: sizes[i]]
        delta = scratch.delta[: sizes[i]]
        truth = lazy_potentials(problem, loss, lazy, i, theta, delta)
        h, _, mean, _ = attain(loss, problem, i, theta, delta, scratch)
        losses += weight[i] * (h - truth)
        if gradient.size > 0:
            gains += add_to_dual(problem, loss, i, weight[i], h - mean, theta, delta, gradient)
        else:
            add_output(problem, i, gold(problem, i), -1.0, delta)
        t = lazy.state[STEPS] + 1
        step = step_size(rule, t)
        shrink = max(1 - step * rule.regularization, 0.0)
        lazy_step(problem, lazy, bounds, i, delta, -step * weight[i], shrink, 0.0, t)
    return losses, gains


@helper
def step_size(rule, t):
    """gamma_t."""
    if rule.kind == DECAY:
        return rule.first / (1 + t / rule.delay)
    if rule.kind == CONSTANT:
        return rule.first
    return rule.first / (np.sqrt(t) if rule.kind == SQRT else t)
