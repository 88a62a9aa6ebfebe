"""L-BFGS on the log loss: conditional random fields.

F(w) = (lambda/2) ||w||^2 + (1/n) sum_i weight_i {log sum_y exp score_i(y) - score_i(y_i)}. With the marginals mu_i of
the exp oracle, grad F = lambda (w - w(mu)), and the dual value at mu,

    D(mu) = (1/n) sum_i weight_i H(mu_i) - (lambda/2) ||w(mu)||^2 = F(w) - ||grad F(w)||^2 / (2 lambda),

is a lower bound of the optimum: every evaluation is a certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin.dispatch import kernel
from maxmargin.problem import add_output, exp_oracle, gold, n_examples, score_output, scores, spread
from maxmargin.solvers.base import Run, Solver
from maxmargin.solvers.objective import Certificate, Objective


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS, by SciPy, for the log loss.

    Parameters
    ----------
    memory : the number of past steps that shape the next one
    """

    memory: int = 10

    needs: ClassVar[frozenset[str]] = frozenset({"exp"})
    loss: ClassVar[str] = "log"

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ValueError(f"memory must be at least 1, not {self.memory}.")

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        from scipy.optimize import minimize  # slow to import

        objective = run.objective
        if objective.box.which.size:
            raise ValueError("LBFGS takes no bounds of the weights.")
        latest: list[Any] = []

        def evaluate(w: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = log_loss(objective, w)
            run.count(calls=objective.n)
            run.n_steps += objective.n
            latest[:] = value, float(np.dot(gradient, gradient))
            return value, gradient

        def certify(w: np.ndarray) -> bool:
            value, squared_norm = latest
            dual = value - squared_norm / (2 * objective.regularization)
            return observe(Certificate(w.astype(run.w.dtype), value, dual))

        def callback(intermediate_result: Any) -> None:
            if certify(intermediate_result.x):
                raise StopIteration

        start = np.zeros(run.w.size) if run.start is None else np.array(run.start, np.float64)
        evaluate(start)
        if certify(start):
            return
        options = {"maxcor": self.memory, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
        minimize(evaluate, start, jac=True, method="L-BFGS-B", callback=callback, options=options)
        run.is_stalled = not run.must_stop


def log_loss(objective: Objective, w: np.ndarray) -> tuple[float, np.ndarray]:
    """F(w) and its gradient, for weights in float64."""
    passes, strength = objective.passes, objective.regularization
    weights = w.astype(passes.dtype)
    values = np.zeros(objective.n)
    gradient = passes.accumulate(log_loss_pass, weights, passes.part_sizes, objective.weight, values)
    gradient += strength * w
    return float(values.sum()) + 0.5 * strength * float(np.dot(w, w)), gradient


@kernel
def log_loss_pass(problem, gradient, w, sizes, weight, values, lo, hi, scratch):
    """Add (1/n) sum_i weight_i B_i (mu_i - s_i(y_i)) to the gradient and set values[i] = weight_i loss_i / n."""
    n = n_examples(problem)
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        mu = scratch.delta[: sizes[i]]
        scores(problem, w, i, theta)
        truth = score_output(problem, i, theta, gold(problem, i))
        log_z = exp_oracle(problem, i, theta, mu, scratch.work)
        values[i] = weight[i] * (log_z - truth) / n
        add_output(problem, i, gold(problem, i), -1.0, mu)
        spread(problem, gradient, i, mu, weight[i] / n)
