"""The solvers: one algorithm per file."""

from __future__ import annotations

import re
from typing import Any

from maxmargin import public_names
from maxmargin.losses import BaseLoss
from maxmargin.solvers.frame.run import Result
from maxmargin.solvers.frame.solve import Solver

__all__ = ["Result", "Solver", "all_solvers", "find_solver"]


def all_solvers() -> dict[str, Solver]:
    """The solvers with their default options, by the names that estimators know them by.

    Examples
    --------
    >>> from maxmargin.solvers import all_solvers
    >>> all_solvers()["frank-wolfe"]
    FrankWolfe()
    """
    return {name: public_names.find(cls, __name__)() for name, cls in _classes().items()}


def _classes() -> dict[str, str]:
    """The names of the classes of all solvers, which are not loaded, by the names that estimators know them by.

    `CCCP` has none: estimators run others in it where outputs are known in part.
    """
    return {_in_words(cls): cls for cls in public_names.names_in(__name__) if cls != "CCCP"}


def _in_words(name: str) -> str:
    """The name of a class in lower case, with hyphens between words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def find_solver(solver: Any, loss: BaseLoss | None = None) -> Solver:
    """The solver of the given name, or `solver` itself if it is one; raises if it does not minimise the loss.

    Examples
    --------
    >>> from maxmargin.solvers import find_solver
    >>> find_solver("frank-wolfe")
    FrankWolfe()
    """
    is_known = isinstance(solver, str) and solver in _classes()
    found = public_names.find(_classes()[solver], __name__)() if is_known else solver
    if not isinstance(found, Solver) or (loss is not None and not found.takes(loss)):
        fitting = [name for name, known in all_solvers().items() if loss is None or known.takes(loss)]
        kind = "Solver" if loss is None else f"Solver of the {loss.name} loss"
        raise ValueError(f"solver must be a {kind} or one of {', '.join(fitting)}, not {solver!r}.")
    return found


def __getattr__(name: str) -> Any:
    return public_names.find(name, __name__)
