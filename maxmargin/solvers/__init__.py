"""The solvers: one algorithm per file."""

from __future__ import annotations

from typing import Any

from maxmargin.solvers.auto import Auto
from maxmargin.solvers.base import Result, Solver
from maxmargin.solvers.bcfw import BCFW
from maxmargin.solvers.frank_wolfe import FrankWolfe
from maxmargin.solvers.lbfgs import LBFGS

__all__ = ["BCFW", "LBFGS", "Auto", "FrankWolfe", "Result", "Solver", "find_solver"]

_NAMED: dict[str, Solver] = {"auto": Auto(), "bcfw": BCFW(), "frank-wolfe": FrankWolfe()}


def find_solver(solver: Any) -> Solver:
    """The solver of the given name, or `solver` itself if it is one.

    Examples
    --------
    >>> from maxmargin.solvers import find_solver
    >>> find_solver("frank-wolfe")
    FrankWolfe()
    """
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str) or solver not in _NAMED:
        raise ValueError(f"solver must be a Solver or one of {', '.join(_NAMED)}, not {solver!r}.")
    return _NAMED[solver]
