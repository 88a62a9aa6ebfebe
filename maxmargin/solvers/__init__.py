"""The solvers: one algorithm per file."""

from __future__ import annotations

from typing import Any

from maxmargin.losses import Loss
from maxmargin.solvers.auto import Auto
from maxmargin.solvers.bcfw import BCFW
from maxmargin.solvers.casimir import Casimir
from maxmargin.solvers.frank_wolfe import FrankWolfe
from maxmargin.solvers.lbfgs import LBFGS
from maxmargin.solvers.n_slack import NSlack
from maxmargin.solvers.one_slack import OneSlack
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.run import Result
from maxmargin.solvers.sgd import SGD
from maxmargin.solvers.solver import Solver
from maxmargin.solvers.svrg import SVRG

__all__ = [
    "BCFW",
    "LBFGS",
    "SGD",
    "SVRG",
    "Auto",
    "Casimir",
    "FrankWolfe",
    "NSlack",
    "OneSlack",
    "Perceptron",
    "Result",
    "Solver",
    "find_solver",
]

_NAMED: dict[str, Solver] = {
    "auto": Auto(),
    "bcfw": BCFW(),
    "frank-wolfe": FrankWolfe(),
    "casimir": Casimir(),
    "svrg": SVRG(),
    "sgd": SGD(),
    "lbfgs": LBFGS(),
    "one-slack": OneSlack(),
    "n-slack": NSlack(),
    "perceptron": Perceptron(),
}


def find_solver(solver: Any, loss: Loss | None = None) -> Solver:
    """The solver of the given name, or `solver` itself if it is one; raises if it minimises another loss.

    Examples
    --------
    >>> from maxmargin.solvers import find_solver
    >>> find_solver("frank-wolfe")
    FrankWolfe()
    """
    found = _NAMED.get(solver) if isinstance(solver, str) else solver
    if not isinstance(found, Solver) or (loss is not None and not found.takes(loss)):
        fitting = [name for name, known in _NAMED.items() if loss is None or known.takes(loss)]
        kind = "Solver" if loss is None else f"Solver of the {loss.name} loss"
        raise ValueError(f"solver must be a {kind} or one of {', '.join(fitting)}, not {solver!r}.")
    return found
