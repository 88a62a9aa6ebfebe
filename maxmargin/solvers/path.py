"""Regularization paths (*Gaps*, section 4, Algorithms 6 and 7): solutions for every strength of the regularization.

From infinity down, weights w at lambda with duality gap g stay good for smaller lambda: scaled by rho < 1, the dual
point has at rho * lambda the same weights w(mu), and (w, rho * mu) the gap g + (1 - rho) Delta, where

    Delta = <cost, mu> - (lambda/2) (||w||^2 + ||w(mu)||^2),

which is that of Proposition 1 if w = w(mu). So w is eps-approximate down to rho = 1 - (eps - g) / Delta, where the next
breakpoint lies; and for all smaller lambda, where the path ends, if Delta <= eps - g. Each breakpoint is solved to a
gap of kappa * eps, from the scaled dual point.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxmargin.losses import Loss
from maxmargin.problem import augment, gold, n_examples, score_output
from maxmargin.runtime.dispatch import Bound, kernel
from maxmargin.solvers.active_sets import DualPoint, kept_primal
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
    seconds: float
    point: DualPoint
    status: Status


@dataclass(frozen=True)
class PathFollower:
    """Solves a problem for many values of lambda, each from the solution before.

    Parameters
    ----------
    problem : the examples, made ready for kernels once for the whole path; their true outputs cost nothing
    sample_weight : (n,) weights of the examples
    solver : a solver that keeps its dual point, such as any BCFW
    eps : the accuracy of the path
    kappa : each breakpoint is solved to kappa * eps
    max_passes, n_jobs, random_state : see `Solver.solve`
    time_limit : seconds for the whole path
    """

    problem: Bound
    sample_weight: np.ndarray | None
    solver: Solver
    eps: float
    kappa: float
    max_passes: float = 1000
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None

    def follow(self, smallest: float) -> Iterator[Breakpoint]:
        """The breakpoints from lambda_infinity down to `smallest`, or to the end of the path if that comes first."""
        began = time.perf_counter()
        largest, _ = self.infinity()
        current = self.solve(max(largest, smallest), None, began)
        while True:
            yield current
            slack = self.eps - (current.primal - current.dual)
            is_stuck = slack <= 0  # the solver was stopped before it reached eps
            if is_stuck or current.decay <= slack or current.regularization <= smallest:
                return
            factor = max(1 - slack / current.decay, smallest / current.regularization)
            start = kept_primal(self.problem, current.point, factor)
            current = self.solve(factor * current.regularization, start, began)

    def follow_grid(self, grid: np.ndarray) -> Iterator[Breakpoint]:
        """Solutions at the given values of lambda, falling."""
        began, current = time.perf_counter(), None
        for regularization in grid:
            start = None
            if current is not None:
                start = kept_primal(self.problem, current.point, regularization / current.regularization)
            current = self.solve(regularization, start, began)
            yield current

    def infinity(self) -> tuple[float, np.ndarray]:
        """lambda_infinity, from which on the weights psi~ / lambda are eps-approximate, and psi~ (Algorithm 6).

        At w = 0 the oracle returns the most costly outputs y~. With psi~ = (1/n) sum_i psi_i(y~_i), the weights
        psi~ / lambda have a gap of at most (||psi~||^2 + (1/n) sum_i max_y <psi~, phi_i(y) - phi_i(y_i)>) / lambda.
        """
        objective = Objective(self.problem, 1.0, self.sample_weight, self.n_jobs)
        check_gold_costs(objective)
        psi = -objective.evaluate(np.zeros(objective.n_weights)).gradient
        without_costs = objective.with_loss(Loss(margin=False))
        margins = without_costs.evaluate(psi).value - without_costs.primal(psi, 0.0)
        return (float(np.dot(psi, psi)) + margins) / self.eps, psi

    def solve(self, regularization: float, start: DualPoint | None, began: float) -> Breakpoint:
        """The breakpoint at a value of lambda."""
        C = 1.0 / (n_examples(self.problem) * regularization)
        result = self.solver.solve(
            self.problem,
            C,
            self.sample_weight,
            start=start,
            tol=1e-15,
            abs_tol=self.kappa * self.eps,
            max_passes=self.max_passes,
            time_limit=None if self.time_limit is None else max(self.time_limit - (time.perf_counter() - began), 1e-3),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        objective = Objective(self.problem, C, self.sample_weight, self.n_jobs)
        means = result.dual.means
        (_, dual), w = objective.at(means), result.w.astype(np.float64)
        decay = dual - regularization / 2 * float(np.dot(w, w))
        primal, passes = float(result.trace.primal[-1]), float(result.trace.passes[-1])
        seconds = time.perf_counter() - began
        return Breakpoint(regularization, result.w, primal, dual, decay, passes, seconds, result.dual, result.status)


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
        for p in range(theta.size):
            theta[p] = 0
        augment(problem, i, theta)
        costs[i] = score_output(problem, i, theta, gold(problem, i))
