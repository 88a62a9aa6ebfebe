"""Regularization paths (*Gaps*, section 4, Algorithms 6 and 7): solutions for every strength of the regularization.

Down the path. Take weights w and a dual point mu at lambda, with duality gap g. At rho * lambda, rho < 1, with the dual
point rho * mu + (1 - rho) * truth:

- w(mu) stays, with any bounds: the sum that it is a multiple of shrinks by rho, as lambda does;
- D becomes rho * D, as each of its terms, where true outputs cost nothing;
- F(w) falls by (1 - rho) (lambda/2) ||w||^2, so the gap of w is g + (1 - rho) Delta, Delta = D - (lambda/2) ||w||^2;
- the gap of block i at w(mu) grows by (1 - rho) delta_i, delta_i = (weight_i/n) <theta_i, mu_i - s_i(y_i)>, which
  sum up to Delta if w = w(mu): Proposition 1, with sample weights and bounds.

So w is eps-approximate down to rho = 1 - (eps - g) / Delta, where the next breakpoint lies, and for all smaller lambda,
where the path ends, if Delta <= eps - g. Each breakpoint is solved to a gap of kappa * eps from the scaled dual point,
whose block gaps are known without a call of the oracle.

Where it begins. At w = 0 the oracle returns the most costly outputs y~, a dual point with w(y~) = P(psi~ / lambda),
where psi~ = (1/n) sum_i weight_i psi_i(y~_i) and P is the projection to the bounds. If all bounds are 0 or infinite, P
is homogeneous, P(psi~ / lambda) = P(psi~) / lambda, and <P(psi~), psi~> = ||P(psi~)||^2, so the gap there is at most

    (||P(psi~)||^2 + (1/n) sum_i weight_i max_y <P(psi~), phi_i(y) - phi_i(y_i)>) / lambda,

which is kappa * eps at lambda_infinity: Algorithm 6, whose bound holds for all larger lambda, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from maxmargin.losses import Loss
from maxmargin.problem import augment, gold, n_examples, score_output, scores
from maxmargin.runtime.blocks import new_blocks
from maxmargin.runtime.dispatch import Bound, kernel
from maxmargin.runtime.vectors import clear, inner
from maxmargin.solvers.active_sets import Carried, DualPoint, kept_primal, read_means, sets_of
from maxmargin.solvers.bounds import project
from maxmargin.solvers.objective import Objective
from maxmargin.solvers.solver import Solver
from maxmargin.trace import Status


class Breakpoint(NamedTuple):
    """Weights that are good from `regularization` down to that of the next breakpoint."""

    regularization: float
    w: np.ndarray
    primal: float
    dual: float
    decay: float  # Delta: how fast the gap grows with 1 - rho
    passes: float
    oracle_calls: int
    seconds: float
    status: Status
    point: DualPoint
    v: np.ndarray  # w(mu) of the dual point, before it is projected to the bounds


@dataclass(frozen=True)
class PathFollower:
    """Solves a problem for many values of lambda, each from the solution before.

    Parameters
    ----------
    problem : the examples, made ready for kernels once for the whole path; their true outputs cost nothing
    sample_weight : (n,) weights of the examples
    lower, upper : bounds of the weights; 0 or infinite where the path begins at infinity
    solver : a solver that keeps its dual point, such as any BCFW
    eps : the accuracy of the path
    kappa : each breakpoint is solved to kappa * eps
    max_passes, n_jobs, random_state : see `Solver.solve`
    time_limit : seconds for the whole path
    """

    problem: Bound
    sample_weight: np.ndarray | None
    lower: Any
    upper: Any
    solver: Solver
    eps: float
    kappa: float
    max_passes: float = 1000
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None

    @cached_property
    def objective(self) -> Objective:
        """What is minimised, but for its lambda."""
        return Objective(self.problem, 1.0, self.sample_weight, self.n_jobs, self.lower, self.upper)

    def follow(self, smallest: float) -> Iterator[Breakpoint]:
        """The breakpoints from lambda_infinity down to `smallest`, or to the end of the path if that comes first."""
        began = time.perf_counter()
        current = self.begin(smallest, began)
        while True:
            yield current
            slack = self.eps - (current.primal - current.dual)
            is_stuck = slack <= 0  # the solver was stopped before it reached eps
            if is_stuck or current.decay <= slack or current.regularization <= smallest:
                return
            factor = max(1 - slack / current.decay, smallest / current.regularization)
            current = self.solve(factor * current.regularization, self.carry(current, factor), began)

    def follow_grid(self, grid: np.ndarray) -> Iterator[Breakpoint]:
        """Solutions at the given values of lambda, falling."""
        began, start = time.perf_counter(), None
        for regularization, following in zip(grid, [*grid[1:], None], strict=True):
            current = self.solve(regularization, start, began)
            yield current
            start = following and self.carry(current, following / regularization)

    def begin(self, smallest: float, began: float) -> Breakpoint:
        """The breakpoint at lambda_infinity, or at `smallest` if that is larger: the dual point of the outputs y~."""
        objective = self.objective
        check_gold_costs(objective)
        check_homogeneous(objective)
        means, outputs = new_blocks(objective.passes.part_sizes, objective.passes.dtype), objective.new_outputs()
        psi = -objective.evaluate(np.zeros(objective.n_weights), means=means, outputs=outputs).gradient
        direction = project(psi, objective.bounds)
        without_costs = objective.with_loss(Loss(margin=False))
        margins = without_costs.evaluate(direction).value - without_costs.primal(direction, 0.0)
        infinity = (objective.squared_length(direction) + margins) / (self.kappa * self.eps)
        regularization = max(infinity, smallest)
        w = (direction / regularization).astype(objective.passes.dtype)
        found = objective.with_regularization(regularization).evaluate(w, point=means, with_gradient=False)
        point = DualPoint(means, sets_of(outputs), np.maximum(found.gaps, 0))
        status = Status.INEXACT if found.n_wrong else Status.OPTIMAL
        return self.breakpoint(regularization, w, found.value, point, 0.0, 3 * objective.n, began, status)

    def solve(self, regularization: float, start: Carried | None, began: float) -> Breakpoint:
        """The breakpoint at a value of lambda."""
        result = self.solver.solve(
            self.problem,
            1.0 / (n_examples(self.problem) * regularization),
            self.sample_weight,
            start=start,
            lower=self.lower,
            upper=self.upper,
            tol=1e-15,
            abs_tol=self.kappa * self.eps,
            max_passes=self.max_passes,
            time_limit=time_left(self.time_limit, began),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
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
        """A breakpoint, with the dual value of its dual point and how fast its gap grows."""
        v, dual = self.objective.with_regularization(regularization).at(point)
        decay = dual - regularization / 2 * self.objective.squared_length(w)
        seconds = time.perf_counter() - began
        return Breakpoint(regularization, w, primal, dual, decay, passes, oracle_calls, seconds, status, point, v)

    def carry(self, current: Breakpoint, factor: float) -> Carried:
        """The start at `factor` times the regularization: the same weights, block gaps by Proposition 1.

        Changes the dual point of the breakpoint, which is not needed any more.
        """
        objective, point = self.objective, current.point
        decays = np.zeros(objective.n)
        w = project(current.v, objective.bounds).astype(objective.passes.dtype)
        sizes = objective.passes.part_sizes
        objective.passes.run(block_decays, w, point.means, point.sets, sizes, objective.weight, decays)
        gaps = np.maximum(point.gaps + (1 - factor) * decays, 0) if point.gaps.size else point.gaps
        return Carried(kept_primal(self.problem, point, factor)._replace(gaps=gaps), current.v, factor * current.dual)


@dataclass(frozen=True)
class GridFollower:
    """Solves a problem for several values of lambda by any solver, each from the weights before.

    Parameters
    ----------
    problem, sample_weight, lower, upper, n_jobs, random_state : as those of `PathFollower`
    solver, loss : any solver that takes weights to start from, and what it minimises
    options : further arguments of `Solver.solve`, such as tol
    time_limit : seconds for all values
    """

    problem: Bound
    sample_weight: np.ndarray | None
    lower: Any
    upper: Any
    solver: Solver
    loss: Loss
    options: Mapping[str, Any]
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None

    def follow_grid(self, grid: np.ndarray) -> Iterator[Breakpoint]:
        """Solutions at the given values of lambda, falling."""
        began, start = time.perf_counter(), None
        for regularization in grid:
            result = self.solver.solve(
                self.problem,
                1.0 / (n_examples(self.problem) * regularization),
                self.sample_weight,
                loss=self.loss,
                start=start,
                lower=self.lower,
                upper=self.upper,
                time_limit=time_left(self.time_limit, began),
                n_jobs=self.n_jobs,
                random_state=self.random_state,
                **self.options,
            )
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


def check_homogeneous(objective: Objective) -> None:
    """Raise where a bound is neither 0 nor infinite: weights within it cannot be scaled."""
    largest = np.finfo(objective.passes.dtype).max  # which stands for infinity
    for name in ("lower", "upper"):
        bound = np.abs(getattr(objective.bounds, name))
        is_other = (bound > 0) & (bound < largest)
        if is_other.any():
            k = int(np.flatnonzero(is_other)[0])
            raise ValueError(
                f"A path needs bounds of the weights that are 0 or infinite, or method='grid', but the {name} bound of "
                f"weight {objective.bounds.which[k]} is {getattr(objective.bounds, name)[k]:g}."
            )


def check_gold_costs(objective: Objective) -> None:
    """Raise where a true output has a cost: Proposition 1 needs it to be free."""
    costs = np.zeros(objective.n)
    objective.passes.run(_gold_costs, objective.passes.part_sizes, costs)
    if np.abs(costs).max() > 1e-9:
        i = int(np.argmax(np.abs(costs)))
        raise ValueError(f"A path needs true outputs that cost nothing, but that of example {i} costs {costs[i]:.3g}.")


@kernel
def _gold_costs(problem, sizes, costs, lo, hi, scratch):
    """The costs of the true outputs of the examples lo:hi."""
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        clear(theta)
        augment(problem, i, theta)
        costs[i] = score_output(problem, i, theta, gold(problem, i))


@kernel
def block_decays(problem, w, means, sets, sizes, weight, decays, lo, hi, scratch):
    """decays[i] = delta_i = (weight_i/n) <theta_i, mu_i - s_i(y_i)> of the examples lo:hi."""
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        mu = scratch.delta[: sizes[i]]
        read_means(problem, i, means, sets, mu)
        scores(problem, w, i, theta)
        augment(problem, i, theta)
        decays[i] = weight[i] / n_examples(problem) * inner(theta, mu)
