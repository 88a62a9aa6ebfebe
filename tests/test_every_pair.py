"""Every registered solver on the structure of every registered estimator, and the table of them in the documentation.

Both lists are those of the registry, so that a new solver or structure is here by itself. Kernels are interpreted: each
solver and each structure is compiled in tests of its own, and compiled code of one knows nothing of the other.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from maxmargin.features import layout_of
from maxmargin.losses import NAMED
from maxmargin.problem import ORACLES
from maxmargin.runtime import supports
from maxmargin.solvers import all_solvers
from maxmargin.solvers.objective.evaluation import Objective
from tests.small import CASES, make

QUICK = {"svrg": {"max_k": 5}, "casimir": {"max_k": 5}, "one-slack": {"cache": 2}}  # to interpret


def all_pairs():
    """A solver and a loss that it takes."""
    for name, solver in all_solvers().items():
        for loss in NAMED.values():
            if solver.takes(loss):
                yield replace(solver, **QUICK.get(name, {})), loss


def all_structures():
    """The training task of each estimator, one for each type of problem, by the names of its estimators."""
    tasks = {}
    for name in CASES:
        model, X, y, _ = make(name)
        task = model.set_params(solver="sgd")._encode(X[:4], y[:4])
        is_explicit = layout_of(task.problem).is_explicit
        tasks.setdefault((type(task.problem), is_explicit), (task, []))[1].append(f"`{name}`")
    return {", ".join(names): task for task, names in tasks.values()}


def observed_structures():
    """Those that can have weights of observed pairs only, with these."""
    for name in ("ChainSVM", "TreeSVM"):
        model, X, y, _ = make(name)
        yield f"{name}, observed", model.set_params(only_observed=True)._encode(X[:4], y[:4])


@pytest.fixture(scope="module")
def structures():
    return all_structures()


def can_run(solver, loss, task):
    has_oracles = all(supports(ORACLES[name], task.problem) for name in solver.oracles(loss))
    takes_kernel = solver.takes_kernels and loss.oracle != "topk"  # "auto" is a solver of the dual then
    takes_features = layout_of(task.problem).is_explicit or takes_kernel
    return has_oracles and takes_features and (solver.takes_bounds or task.lower is None)


def title(solver, loss):
    return f"`{type(solver).__name__}`, {loss.name.replace('_', ' ')}"


@pytest.mark.parametrize(("solver", "loss"), [pytest.param(*pair, id=title(*pair)) for pair in all_pairs()])
def test_every_pair(structures, solver, loss, interpreted_loops):
    ran = 0
    for name, task in [*structures.items(), *observed_structures()]:
        problem, lower = task.problem, task.lower
        options = {"loss": loss, "lower": lower, "tol": 1e-6, "max_passes": 5, "random_state": 0}
        if not can_run(solver, loss, task):
            with pytest.raises((TypeError, ValueError), match=type(solver).__name__ + "|LBFGS|Exponentiated"):
                solver.solve(problem, 0.5, **options)
            continue
        ran += 1
        result = solver.solve(problem, 0.5, **options)
        trace = result.trace
        objective = Objective(problem, 0.5, lower=lower, loss=loss)
        start = objective.evaluate(np.maximum(np.zeros(result.w.size), -np.inf if lower is None else lower)).value
        assert (trace.primal >= trace.dual - 1e-4 * trace.primal[-1]).all(), name
        if not solver.returns_last:
            assert trace.primal[-1] <= 2 * start + 0.1, name
            assert np.isclose(objective.evaluate(result.w).value, trace.primal[-1], rtol=1e-3, atol=1e-6), name
    assert ran >= 5


def test_the_table_of_the_documentation(structures):
    lines = [f"| | {' | '.join(structures)} |", "|---|" + "---|" * len(structures)]
    for solver, loss in all_pairs():
        cells = ["yes" if can_run(solver, loss, task) else "" for task in structures.values()]
        lines.append(f"| {title(solver, loss)} | {' | '.join(cells)} |")
    table = "\n".join(lines)
    text = (Path(__file__).parents[1] / "docs/solvers.md").read_text()
    assert table in text, f"docs/solvers.md must hold this table:\n{table}"
