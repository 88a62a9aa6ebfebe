"""Stochastic subgradient descent, on every loss.

    w_t = w_{t-1} - gamma_t {weight_i g_i(w_{t-1}) + lambda w_{t-1}}

with the average of the iterates weighted by their number, 2/(t^2 + t) sum_s s w_s (*Smoother*, section 7;
Lacoste-Julien, Schmidt, Bach 2012). Steps are gamma_0/(1 + t/t_0), gamma_0, gamma_0/sqrt(t) or gamma_0/t or, where
there is no gamma_0 to tune, those of Polyak: no loss is negative, and f_i/||g_i||^2 is the step at which the tangent of
the example's loss f_i is zero,

    gamma_t weight_i = min {rho f_i / ||g_i||^2, weight_i / (2 lambda (n + t))}, rho < 2,

which end as steps of the order 1/(lambda t) must. With a linear term q, a step adds gamma_t q, and losses do not tell
where to stop: all steps are weight_i / (2 lambda (n + t)). A pass visits each example once, so the mean parts that the
oracle returns during a pass are a dual point, at no extra calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import inner
from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import attain
from maxmargin.persist.registry import register_state
from maxmargin.problem import squared_norm
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import LowerBound, add_to_dual
from maxmargin.solvers.stochastic.lazy_weights import (
    STEPS,
    LazyWeights,
    average,
    current,
    lazy_potentials,
    lazy_step,
    lazy_weights,
)
from maxmargin.solvers.stochastic.smoothness import look_at_some
from maxmargin.trace import Certificate

POLYAK, DECAY, CONSTANT, SQRT, INVERSE = range(5)
SCHEDULES = {"polyak": POLYAK, "decay": DECAY, "constant": CONSTANT, "sqrt": SQRT, "inverse": INVERSE}
TINY = 1e-30
ROUNDING = 1e-6  # of scores: losses below it count as zero
LONGEST = 10.0  # of Polyak's steps without regularization, in terms of those at the start
RELAXATION = 1.75  # rho: the longer, the better the average, up to 2, where steps would reflect the weights


@dataclass(frozen=True)
class SGD(Solver):
    """Stochastic subgradient descent.

    Parameters
    ----------
    schedule
        Step sizes after t steps: "polyak", from the loss and the gradient of the example; "decay", gamma_0/(1 + t/t_0);
        "constant", gamma_0; "sqrt", gamma_0/sqrt(t); or "inverse", gamma_0/t.
    step
        Gamma_0, by default 1/lambda, for "inverse"; "polyak" has none.
    delay
        T_0 of "decay"; by default 1/(lambda gamma_0), so that steps tend to 1/(lambda t), or one pass without
        regularization.
    averaging
        Whether to return the average of the iterates in place of the last one.
    gap_every
        Passes between two certificates, which take one more pass of the oracle.

    Examples
    --------
    >>> from maxmargin import SGD
    >>> from maxmargin.testing import toy_chains
    >>> SGD().solve(toy_chains(), tol=0.05, random_state=0).status.name
    'OPTIMAL'
    """

    schedule: str = "polyak"
    step: float | None = None
    delay: float | None = None
    averaging: bool = True
    gap_every: int = 5

    takes_smooth = takes_any = resumes = True
    needs_regularization = False

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, SCHEDULES)
        check_count("gap_every", self.gap_every)
        for name in ("step", "delay"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.step is not None and self.schedule == "polyak":
            raise ValueError("schedule='polyak' has no step to set: choose another schedule, such as 'decay'.")
        if self.step is None and self.schedule not in ("polyak", "inverse"):
            raise ValueError(f"schedule={self.schedule!r} needs a step.")

    def _check_objective(self, objective: Objective) -> None:
        super()._check_objective(objective)
        if self.schedule == "inverse" and self.step is None and objective.regularization == 0:
            raise ValueError("schedule='inverse' needs regularization: give a finite C, or a step.")

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: self._begin(run))
        while True:
            for _ in range(state.n_passes):
                gain, gradient = sgd_pass(run, state.lazy, state.rule)
                if run.must_stop:
                    break
                state.bound.add(gain, gradient)
            w = project(average(state.lazy) if self.averaging else current(state.lazy), run.objective.bounds)
            found = run.evaluate(w)
            dual = state.bound.add(found.cost + found.entropy, found.gradient)
            state.n_passes = run.passes_to_go(self.gap_every)
            yield Certificate(w.astype(run.w.dtype), found.value, dual)

    def _begin(self, run: Run) -> State:
        w = run.start_weights()
        rule = self._rule(run, w)
        lazy = lazy_weights(w, run.objective.runner.dtype, run.objective.linear, averages=self.averaging)
        return State(bound=LowerBound(run.objective), lazy=lazy, rule=rule, n_passes=1)

    def _rule(self, run: Run, w: np.ndarray) -> StepSizes:
        n, regularization = run.objective.n, run.objective.regularization
        if self.schedule == "polyak":
            return polyak_rule(run, w)
        step = float(self.step or 1 / regularization)
        delay = self.delay or (1 / (regularization * step) if regularization > 0 else n)
        return StepSizes(SCHEDULES[self.schedule], step, float(delay), regularization, run.objective.weight)


@register_state
class StepSizes(NamedTuple):
    """Step sizes gamma_t."""

    kind: int
    first: float  # gamma_0
    delay: float  # t_0
    regularization: float
    weight: np.ndarray  # (n,) sample weights


def polyak_rule(run: Run, w: np.ndarray) -> StepSizes:
    """Polyak's steps from w, which need no tuning."""
    n, regularization = run.objective.n, run.objective.regularization
    if regularization > 0:
        kind = POLYAK if run.objective.linear is None else DECAY
        return StepSizes(kind, 1 / (2 * regularization * n), float(n), regularization, run.objective.weight)
    found = look_at_some(run, run.objective, w)
    longest = LONGEST * found.loss / max(found.squared_norm, TINY)
    return StepSizes(POLYAK, longest, np.inf, regularization, run.objective.weight)


def sgd_pass(run: Run, lazy: LazyWeights, rule: StepSizes) -> tuple[float, np.ndarray]:
    """A step on each example, in random order; return the gain and the gradient of the dual point it comes across."""
    objective = run.objective
    order, gradient, gain = run.rng.permutation(objective.n), objective.new_gradient(), 0.0
    for lo, hi in run.slices(objective.n):
        gain = sgd_steps(  # summed up one by one, so that the sum does not depend on where slices end
            objective.problem,
            objective.attained,
            lazy,
            objective.bounds,
            objective.runner.part_sizes,
            rule,
            order[lo:hi],
            gradient,
            gain,
            objective.runner.scratches[0],
        )
        run.count(calls=hi - lo)
    return gain / objective.n, gradient


@loop
def sgd_steps(problem, loss, lazy, bounds, sizes, rule, order, gradient, gains, scratch):
    """Steps along `order`; adds the gradients of the losses, divided by n, and returns `gains` plus the dual's."""
    for k in range(order.size):
        i = order[k]
        theta = scratch.theta[: sizes[i]]
        delta = scratch.delta[: sizes[i]]
        true_score = lazy_potentials(problem, loss, lazy, i, theta, delta)
        h, _, _, slack = attain(loss, problem, i, theta, delta, scratch)
        entropy = h - slack - inner(theta, delta)  # and what rounds the mean parts
        gains += add_to_dual(problem, loss, i, rule.weight[i], entropy, theta, delta, gradient)
        t = lazy.state[STEPS] + 1
        step = step_size(rule, t)
        if rule.kind == POLYAK:
            value = max(h - slack - true_score - ROUNDING * (1 + abs(true_score)), 0.0)
            square = rule.weight[i] * squared_norm(problem, i, delta, scratch.work)
            step = min(step, RELAXATION * value / max(square, TINY))
        shrink = max(1 - step * rule.regularization, 0.0)
        drift = step if lazy.r.size > 0 else 0.0
        lazy_step(problem, lazy, bounds, i, delta, -step * rule.weight[i], shrink, drift, t)
    return gains


@helper
def step_size(rule, t):
    """gamma_t, or the longest step of Polyak's."""
    if rule.kind == POLYAK or rule.kind == DECAY:
        return rule.first / (1 + t / rule.delay)
    if rule.kind == CONSTANT:
        return rule.first
    return rule.first / (np.sqrt(t) if rule.kind == SQRT else t)
