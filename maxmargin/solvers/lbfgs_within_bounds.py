"""L-BFGS with bounds of the weights: SciPy's L-BFGS-B, certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.solvers.lower_bound import LowerBound
from maxmargin.solvers.objective import Certificate
from maxmargin.solvers.run import Run
from maxmargin.trace import Status

MEMORY = 20  # past steps, by default


def descend_within_bounds(run: Run, observe: Callable[[Certificate], bool], memory: int | None) -> None:
    """Run until `observe`, which is shown the certificate of every iterate, says to stop.

    Parameters
    ----------
    run : with an objective that has bounds, and no L1 term
    observe : says whether to stop at a certificate
    memory : the number of past steps that shape the next one, 20 by default

    References
    ----------
    Byrd, Lu, Nocedal, Zhu (1995), A limited memory algorithm for bound constrained optimization.
    """
    from scipy.optimize import minimize  # slow to import

    objective = run.objective
    bound = LowerBound(objective, limit=1)
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
    options = {"maxcor": memory or MEMORY, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
    minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=limits, callback=callback, options=options)
    if not run.must_stop:
        run.verdict = Status.STALLED if np.isfinite(latest[0].value) else Status.DIVERGED
