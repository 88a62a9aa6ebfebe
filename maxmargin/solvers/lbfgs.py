"""L-BFGS on smooth losses: conditional random fields, and structural SVMs with a smoothed hinge loss.

Every evaluation is a certificate: the mean parts at which the loss is attained are a dual point, whose value is
F(w) - ||grad F(w)||^2 / (2 lambda).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin.checks import check_count
from maxmargin.solvers.lower_bound import LowerBound
from maxmargin.solvers.objective import Certificate
from maxmargin.solvers.owlqn import OWLQN
from maxmargin.solvers.run import Run
from maxmargin.solvers.solver import Solver
from maxmargin.trace import Status


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS for smooth losses, "log" and "smooth_hinge".

    With L1 regularization it is OWL-QN; with bounds of the weights, SciPy's L-BFGS-B.

    Parameters
    ----------
    memory : the number of past steps that shape the next one; by default 100, fewer with so many weights that
        they would take more than 80 MB, but no fewer than 10

    References
    ----------
    Nocedal (1980), Updating quasi-Newton matrices with limited storage.
    Andrew, Gao (2007), Scalable training of L1-regularized log-linear models.
    Byrd, Lu, Nocedal, Zhu (1995), A limited memory algorithm for bound constrained optimization.
    """

    memory: int | None = None

    needs_smooth: ClassVar[bool] = True
    takes_smooth: ClassVar[bool] = True
    needs_regularization: ClassVar[bool] = False
    takes_l1: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.memory is not None:
            check_count("memory", self.memory)

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        from scipy.optimize import minimize  # slow to import

        objective = run.objective
        if not objective.bounds.which.size:  # faster than SciPy's, by far with many weights
            OWLQN(self.memory).follow(run, observe)
            return
        if objective.l1:
            raise ValueError("LBFGS takes bounds of the weights or L1 regularization, not both.")
        bound = LowerBound(objective)
        latest: list[Any] = []

        def evaluate(w: np.ndarray) -> tuple[float, np.ndarray]:
            evaluation = run.evaluate(w)
            run.n_steps += objective.n
            latest[:] = [evaluation]
            return evaluation.value, evaluation.gradient + objective.regularization * w

        def certify(w: np.ndarray) -> bool:
            evaluation = latest[0]
            dual = bound.add(evaluation.cost + evaluation.entropy, evaluation.gradient)
            return observe(Certificate(w.astype(run.w.dtype), evaluation.value, dual))

        def callback(intermediate_result: Any) -> None:
            if certify(intermediate_result.x):
                raise StopIteration

        start = run.start_weights()
        evaluate(start)
        if certify(start):
            return
        limits = np.tile([-np.inf, np.inf], (start.size, 1))
        limits[objective.bounds.which] = np.column_stack([objective.bounds.lower, objective.bounds.upper])
        options = {"maxcor": self.memory or 20, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
        minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=limits, callback=callback, options=options)
        if not run.must_stop:
            run.verdict = Status.STALLED if np.isfinite(latest[0].value) else Status.DIVERGED
