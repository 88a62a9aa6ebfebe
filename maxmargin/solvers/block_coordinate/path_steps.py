"""Regularization paths (*Gaps*, section 4, Algorithms 6 and 7): solutions for every strength of the regularization.

Down the path. Take weights w and a dual point mu at lambda, with duality gap g. At rho * lambda, rho < 1, with the dual
point rho * mu + (1 - rho) * true outputs:

- w(mu) stays, with any bounds: the sum that it is a multiple of shrinks by rho, as lambda does;
- D becomes rho * D, as each of its terms, where true outputs cost nothing;
- F(w) = L + R, its losses and R = (lambda/2) ||w||^2, becomes L + rho R, so the gap of w is L + rho (R - D);
- the gap of block i at w(mu) grows by (1 - rho) delta_i, delta_i = (weight_i/n) <theta_i, mu_i - s_i(y_i)>, which
  sum up to D - R if w = w(mu): Proposition 1, with sample weights and bounds.

The gap may be eps + tol F(w), an absolute accuracy as in the paper, or a relative one. It is so down to

    rho = ((1 - tol) L - eps) / (D - (1 - tol) R),

where the next breakpoint lies, and for all smaller lambda, where the path ends, if (1 - tol) L <= eps. Each breakpoint
is solved to a share kappa of that from the scaled dual point, whose block gaps are known without a call of the oracle.

Where it begins. As lambda grows, w goes to w_0, the point of the box that is nearest to zero. There the oracle returns
outputs y~, a dual point with w(t) = P(t psi~), where t = 1/lambda, psi~ = (1/n) sum_i weight_i psi_i(y~_i), and P clips
to the bounds. As w(t) minimises (1/2t) ||w||^2 - <psi~, w> over the box, the gap there is

    G(w(t)),   G(w) = (1/n) sum_i weight_i {loss_i(w) - cost_i(y~_i)} + <psi~, w>,

a convex function of w that is not negative, and zero at w_0. Weights move straight on but for kinks, where one of them
leaves its bound or arrives at it. So between two kinks G is at most what a straight line between its values there is,
and beyond the last one, where weights move along d = dw/dt, it rises by at most

    <psi~, d> + (1/n) sum_i weight_i max_y <d, phi_i(y) - phi_i(y_i)>

per t. That tells a t_1 up to which G is at most kappa * eps, or lambda_infinity = 1/t_1. Where all bounds are 0 or
infinite there are no kinks: Algorithm 6. A relative accuracy rests on the dual value there: optima rise with lambda.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks, new_blocks
from maxmargin.arrays.vectors import inner
from maxmargin.execution.prediction_loops import find_costs
from maxmargin.losses import BaseLoss, Loss
from maxmargin.problem import augment, n_examples, scores
from maxmargin.runtime.dispatch import Bound, loop
from maxmargin.solvers.frame.run import Result
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import Carried, DualPoint, keep_primal, read_means, sets_of
from maxmargin.solvers.objective.bounds import Bounds, project
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.trace import Status

MOST_KINKS = 100  # passes to find out where a path may begin: it may begin further up


class Breakpoint(NamedTuple):
    """Weights that are good from `regularization` down to that of the next breakpoint."""

    regularization: float
    w: np.ndarray
    primal: float
    dual: float
    norm: float  # R = (lambda/2) ||w||^2
    passes: float
    oracle_calls: int
    seconds: float
    status: Status
    point: DualPoint
    v: np.ndarray  # w(mu) of the dual point, before it is projected to the bounds


@dataclass(frozen=True)
class Follower:
    """Solves a problem for several values of lambda, each from the solution before.

    Parameters
    ----------
    problem
        The examples, made ready for loops once for the whole path.
    solver
        What to solve it by.
    sample_weight : (n,) weights of the examples
    lower, upper
        Bounds of the weights.
    max_passes, n_jobs, random_state
        See `Solver.solve`.
    time_limit
        Seconds for the whole path.
    """

    problem: Bound
    _: KW_ONLY
    solver: Solver
    sample_weight: np.ndarray | None = None
    lower: Any = None
    upper: Any = None
    max_passes: float | None = 1000
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None

    def solve_at(self, regularization: float, began: float, **options: Any) -> Result:
        """The solution at a value of lambda, of a path that began at a time."""
        return self.solver.solve(
            self.problem,
            1.0 / (n_examples(self.problem) * regularization),
            self.sample_weight,
            lower=self.lower,
            upper=self.upper,
            max_passes=self.max_passes,
            time_limit=time_left(self.time_limit, began),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            **options,
        )


@dataclass(frozen=True)
class PathFollower(Follower):
    """Solves a problem, whose true outputs cost nothing, by a solver that keeps its dual point, such as any BCFW.

    Parameters
    ----------
    eps, tol
        The accuracy of the path: gaps are at most eps + tol times the objective.
    kappa
        Each breakpoint is solved to this share of it.
    """

    _: KW_ONLY
    eps: float
    kappa: float
    tol: float = 0.0

    @cached_property
    def objective(self) -> Objective:
        """What is minimised, but for its lambda."""
        return Objective(self.problem, 1.0, self.sample_weight, self.n_jobs, self.lower, self.upper)

    def at(self, regularization: float) -> Objective:
        """What is minimised at a lambda."""
        return self.objective.with_regularization(regularization)

    def follow(self, smallest: float, largest: float | None = None) -> Iterator[Breakpoint]:
        """The breakpoints from lambda_infinity, or `largest`, down to `smallest`, or to the end of the path."""
        began = time.perf_counter()
        check_true_costs(self.objective)
        current = self.begin(smallest, began) if largest is None else self.solve(largest, None, began)
        while True:
            yield current
            primal, dual, norm = current.primal, current.dual, current.norm
            is_stuck = primal - dual >= self.eps + self.tol * primal  # the solver was stopped before it got there
            if is_stuck or self.is_last(current) or current.regularization <= smallest:
                return
            factor = ((1 - self.tol) * (primal - norm) - self.eps) / (dual - (1 - self.tol) * norm)
            factor = max(factor, smallest / current.regularization)
            current = self.solve(factor * current.regularization, self.carry(current, factor), began)

    def follow_grid(self, grid: np.ndarray) -> Iterator[Breakpoint]:
        """Solutions at the given values of lambda, falling."""
        began, start = time.perf_counter(), None
        for regularization, following in zip(grid, [*grid[1:], None], strict=True):
            current = self.solve(regularization, start, began)
            yield current
            start = following and self.carry(current, following / regularization)

    def is_last(self, point: Breakpoint) -> bool:
        """Whether its weights are good for every smaller lambda."""
        return (1 - self.tol) * (point.primal - point.norm) <= self.eps

    def begin(self, smallest: float, began: float) -> Breakpoint:
        """The breakpoint at lambda_infinity, or at `smallest` if that is larger: the dual point of the outputs y~."""
        objective = self.objective
        means, outputs = new_blocks(objective.runner.part_sizes, objective.runner.dtype), objective.new_outputs()
        nearest = project(np.zeros(objective.n_weights), objective.bounds)
        found = objective.evaluate(nearest, means=means, outputs=outputs)
        psi, gain = -found.gradient, found.cost
        if self.eps == 0 and gain <= 0:
            raise ValueError("A path of a relative accuracy needs losses to begin with: give eps, C_min or lambda_max.")
        reach, n_passes = self.reach(psi, gain, means, self.kappa * (self.eps + self.tol * gain / 2))
        regularization = max(1 / reach, smallest)
        while self.tol and self.at(regularization).dual_value(gain, psi / regularization) < gain / 2:
            regularization *= 2
        w = project(psi / regularization, objective.bounds).astype(objective.runner.dtype)
        found = self.at(regularization).evaluate(w, point=means, with_gradient=False)
        point = DualPoint(means, sets_of(outputs), np.maximum(found.gaps, 0))
        status = Status.INEXACT if found.n_wrong else Status.OPTIMAL
        calls = (2 + n_passes) * objective.n
        return self.breakpoint(regularization, w, found.value, point, 0.0, calls, began, status)

    def reach(self, psi: np.ndarray, gain: float, means: Blocks, accuracy: float) -> tuple[float, int]:
        """The t up to which the gaps of w(t) are known to be within an accuracy, and the passes that tell."""
        objective, at, gap = self.objective, 0.0, 0.0
        kinks = kinks_of(psi, objective.bounds)
        for n_passes, kink in enumerate(kinks[:MOST_KINKS], start=1):
            there = self.at(1 / kink)
            w = project(kink * psi, objective.bounds)
            rises_to = there.evaluate(w, point=means, with_gradient=False).value - there.dual_value(gain, kink * psi)
            if rises_to > accuracy:
                return at + (kink - at) * (accuracy - gap) / (rises_to - gap), n_passes
            at, gap = kink, max(rises_to, 0.0)
        if len(kinks) > MOST_KINKS:
            return at, MOST_KINKS
        direction = find_motion(psi, objective.bounds)
        without_costs = objective.with_loss(Loss(margin=False))
        slope = float(psi @ direction) + without_costs.evaluate(direction).value - without_costs.primal(direction, 0.0)
        return at + (accuracy - gap) / slope if slope > 0 else np.inf, len(kinks) + 1

    def solve(self, regularization: float, start: Carried | None, began: float) -> Breakpoint:
        """The breakpoint at a value of lambda."""
        tol, abs_tol = max(self.kappa * self.tol, 1e-15), self.kappa * self.eps
        result = self.solve_at(regularization, began, start=start, tol=tol, abs_tol=abs_tol)
        passes, calls = float(result.trace.passes[-1]), int(result.trace.oracle_calls[-1])
        primal = result.certificate.primal
        return self.breakpoint(regularization, result.w, primal, result.dual, passes, calls, began, result.status)

    def breakpoint(
        self,
        regularization: float,
        w: np.ndarray,
        primal: float,
        point: DualPoint,
        passes: float,
        oracle_calls: int,
        began: float,
        status: Status,
    ) -> Breakpoint:
        """A breakpoint, with the dual value of its dual point."""
        v, dual = self.at(regularization).at(point)
        norm = regularization / 2 * self.objective.layout.squared_length(w)
        seconds = time.perf_counter() - began
        return Breakpoint(regularization, w, primal, dual, norm, passes, oracle_calls, seconds, status, point, v)

    def carry(self, current: Breakpoint, factor: float) -> Carried:
        """The start at `factor` times the regularization: the same weights, block gaps by Proposition 1.

        Changes the dual point of the breakpoint, which is not needed any more.
        """
        objective, point = self.objective, current.point
        decays = np.zeros(objective.n)
        w = project(current.v, objective.bounds).astype(objective.runner.dtype)
        sizes = objective.runner.part_sizes
        objective.runner.run(block_decays, w, point, sizes, objective.weight, decays)
        gaps = np.maximum(point.gaps + (1 - factor) * decays, 0) if point.gaps.size else point.gaps
        return Carried(keep_primal(self.problem, point, factor)._replace(gaps=gaps), current.v, factor * current.dual)


@dataclass(frozen=True)
class GridFollower(Follower):
    """Solves a problem by any solver that takes weights to start from.

    Parameters
    ----------
    loss
        What it minimises.
    options
        Further arguments of `Solver.solve`, such as tol.
    """

    _: KW_ONLY
    loss: BaseLoss
    options: Mapping[str, Any]

    def follow_grid(self, grid: np.ndarray) -> Iterator[Breakpoint]:
        """Solutions at the given values of lambda, falling."""
        began, start = time.perf_counter(), None
        for regularization in grid:
            result = self.solve_at(regularization, began, loss=self.loss, start=start, **self.options)
            start = result.w
            passes, calls = float(result.trace.passes[-1]), int(result.trace.oracle_calls[-1])
            primal, dual = result.certificate
            seconds, no_point = time.perf_counter() - began, np.empty(0)
            point: Any = None
            yield Breakpoint(
                regularization, result.w, primal, dual, np.inf, passes, calls, seconds, result.status, point, no_point
            )


def time_left(time_limit: float | None, began: float) -> float | None:
    """The seconds that are left of a limit."""
    return None if time_limit is None else max(time_limit - (time.perf_counter() - began), 1e-3)


def kinks_of(psi: np.ndarray, bounds: Bounds) -> np.ndarray:
    """The t > 0, rising, at which t psi is at a bound, that is neither 0 nor infinite."""
    slope, largest = np.tile(psi[bounds.which], 2), np.finfo(np.float32).max  # which stands for infinity
    bound = np.concatenate([bounds.lower, bounds.upper])
    is_met = (np.sign(bound) * slope > 0) & (np.abs(bound) < largest)
    return np.unique(bound[is_met] / slope[is_met])


def find_motion(psi: np.ndarray, bounds: Bounds) -> np.ndarray:
    """How weights move beyond the last kink: along psi, or not at all where that leads to a bound."""
    direction, largest = psi.copy(), np.finfo(np.float32).max
    slope = psi[bounds.which]
    is_held = np.where(slope > 0, bounds.upper < largest, bounds.lower > -largest)
    direction[bounds.which[is_held]] = 0.0
    return direction


def check_true_costs(objective: Objective) -> None:
    """Raise where a true output has a cost: Proposition 1 needs it to be free."""
    costs = np.zeros(objective.n)
    objective.runner.run(find_costs, objective.runner.part_sizes, objective.problem.truth, costs)
    if np.abs(costs).max() > 1e-9:
        i = int(np.argmax(np.abs(costs)))
        raise ValueError(f"A path needs true outputs that cost nothing, but that of example {i} costs {costs[i]:.3g}.")


@loop
def block_decays(problem, w, point, sizes, weight, decays, lo, hi, scratch):
    """decays[i] = delta_i = (weight_i/n) <theta_i, mu_i - s_i(y_i)> of the examples lo:hi."""
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        mu = scratch.delta[: sizes[i]]
        read_means(problem, i, point, mu)
        scores(problem, w, i, theta)
        augment(problem, i, theta)
        decays[i] = weight[i] / n_examples(problem) * inner(theta, mu)
