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
from maxmargin.solvers.base import Run, Solver
from maxmargin.solvers.lower_bound import LowerBound
from maxmargin.solvers.objective import Certificate
from maxmargin.trace import Status


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS, by SciPy, for smooth losses: "log" and "smooth_hinge".

    Parameters
    ----------
    memory : the number of past steps that shape the next one

    References
    ----------
    Byrd, Lu, Nocedal, Zhu (1995), A limited memory algorithm for bound constrained optimization.
    """

    memory: int = 10

    losses: ClassVar[tuple[str, ...]] = ("log", "smooth_hinge")
    needs_regularization: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count("memory", self.memory)

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        from scipy.optimize import minimize  # slow to import

        objective = run.objective
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
        box, bounds = objective.box, None
        if box.which.size:
            bounds = np.tile([-np.inf, np.inf], (start.size, 1))
            bounds[box.which] = np.column_stack([box.lower, box.upper])
        options = {"maxcor": self.memory, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
        minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options)
        if not run.must_stop:
            run.verdict = Status.STALLED
        if latest[0].n_inexact:
            run.notes.append(
                f"The smoothed maximum of {latest[0].n_inexact} examples took max_k outputs and is only a bound: "
                "raise max_k, or lower mu."
            )
