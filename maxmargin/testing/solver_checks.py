"""Checks of solvers: certificates, limits and determinism."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.losses import BaseLoss, find_loss
from maxmargin.problem import AnyProblem
from maxmargin.solvers import Result, Solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.trace import Status, Trace

LIMIT = 0.05  # seconds


def check_solver(
    solver: Solver,
    problem: AnyProblem,
    optimum: float | None = None,
    C: float = 1.0,
    tol: float = 1e-3,
    loss: BaseLoss | str | None = None,
) -> None:
    """Check the certificates, limits and determinism of a solver on a problem it solves in seconds.

    Parameters
    ----------
    solver
        The solver.
    problem
        A small problem.
    optimum
        The known minimum of the objective.
    C
        Inverse strength of the regularization.
    tol
        The relative gap to solve to.
    loss
        The loss, by default that of the solver.

    Examples
    --------
    >>> from maxmargin import LBFGS
    >>> from maxmargin.testing import check_solver, toy_chains
    >>> check_solver(LBFGS(), toy_chains(), loss="log")  # nothing to say
    """

    def solve(**limits: Any) -> Result:
        return solver.solve(problem, C, loss=loss, random_state=0, **limits)

    result = solve(tol=tol, max_passes=2e4)
    trace, eps = result.trace, 1e-9 if result.w.dtype == np.float64 else 1e-5
    assert result.status is Status.OPTIMAL, f"stopped early: {result.status}"
    assert (trace.gap >= 0).all(), "a duality gap is negative"
    assert trace.gap[-1] <= tol * trace.primal[-1], "OPTIMAL, but the gap is above tol"
    assert (np.diff(trace.primal) <= 0).all(), "the best primal value rises"
    assert (np.diff(trace.dual) >= 0).all(), "the best dual value falls"
    assert (np.diff(trace.oracle_calls) > 0).all(), "certificates without oracle calls"

    primal = Objective(problem, C, loss=find_loss(loss or solver.default_loss)).evaluate(result.w).value
    assert np.isclose(primal, trace.primal[-1], rtol=eps), (
        f"the weights have the objective {primal}, not the traced one"
    )
    if optimum is not None:
        slack = eps * abs(optimum)
        assert (trace.primal >= optimum - slack).all(), f"a primal value is below the optimum {optimum}"
        assert (trace.dual <= optimum + slack).all(), f"a dual value is above the optimum {optimum}"

    again = solve(tol=tol, max_passes=2e4)
    assert np.array_equal(result.w, again.w), "the same seed gives other weights"
    if result.dual is not None:
        warm = solve(start=result.dual, tol=max(10 * tol, 1e-2))
        assert warm.trace.passes[-1] <= 1, "a warm start at a solution makes passes"
    else:
        warm = solve(start=result.w, tol=1e-12, max_passes=1)
        assert warm.trace.primal[-1] <= trace.primal[0], "a warm start at a solution is lost"
    short = solve(tol=1e-12, max_passes=1)
    assert short.status in (Status.MAX_PASSES, Status.OPTIMAL), f"max_passes ignored: {short.status}"
    assert short.trace.passes[-1] <= 1, "more passes than max_passes"
    is_late: list[bool] = []

    def watch(trace: Trace) -> bool:
        is_late.append(trace.seconds[-1] >= LIMIT)
        return is_late[-2:] == [True, True]

    solve(tol=1e-12, max_passes=1e9, time_limit=LIMIT, callback=watch)
    assert sum(is_late) <= 1, "time_limit ignored"
    stopped = solve(tol=1e-12, max_passes=1e5, callback=lambda trace: True)
    assert stopped.status is Status.INTERRUPTED, "a callback that returns True does not stop the solver"
    assert len(stopped.trace) == 1, "a callback that returns True does not stop the solver at once"
