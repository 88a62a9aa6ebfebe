"""What benchmarks compare with must be right, and what they use must be there."""

import ast
import functools
import importlib
import inspect
import operator
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import benchmarks
from benchmarks.cache_regimes import follow, regime
from benchmarks.idal import solve_reference
from benchmarks.loopy_tasks import potts_grids
from benchmarks.nonuniformity import follow_gaps
from benchmarks.path import EVERY
from maxmargin import BCFW, RelaxedLoss
from maxmargin.solvers.relaxed.idal import IDAL
from maxmargin.testing import toy_chains


def test_references_are_certified_or_refused():
    grids, loss = potts_grids(2, 3, seed=0, n_states=2), RelaxedLoss()
    found = solve_reference(grids, 0.1, loss, seconds=60.0)
    assert found.certificate.relative_gap <= 1e-4
    with pytest.raises(RuntimeError, match=r"The reference has a relative gap of .* give more --seconds"):
        solve_reference(grids, 0.1, loss, seconds=1e-9)


def test_the_time_of_references_is_not_that_of_compilation(monkeypatch):
    """The first run on a problem, which compiles, is over when the clock starts."""
    clock, original = [0.0], IDAL.solve

    def solve(self, *args, **options):
        clock[0] += 1000.0 * (clock[0] == 0)
        return original(self, *args, **options)

    monkeypatch.setattr(IDAL, "solve", solve)
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    found = solve_reference(potts_grids(1, 2, seed=0, n_states=2), 0.1, RelaxedLoss(), seconds=1.0)
    assert found.certificate.relative_gap <= 1e-4


def chains():
    return SimpleNamespace(problem=toy_chains(n=30), lower=None, upper=None)


def test_gaps_that_are_never_refreshed(interpreted_loops):
    """Passes of steps alone, where else every certificate is one more."""
    solver = BCFW(sampling="gap", gap_every=1, uniform_share=0.0)
    assert EVERY["gap inf"] == 0
    assert np.allclose(np.diff(follow_gaps(solver, chains(), 8, refreshes=False)["passes"]), 1)
    assert np.allclose(np.diff(follow_gaps(solver, chains(), 8)["passes"]), 2)


def test_regimes_of_a_cache(interpreted_loops):
    found = {
        point: follow(BCFW(sampling="gap", cache=10, cache_factor=point[0], cache_nu=point[1]), chains(), 8, point)
        for point in ((1e-3, 1e-6), (0.1, 1e-6), (1e-6, 0.3), (1e3, 1e-6), (1e-3, 1e3))
    }
    assert [regime(run) for run in found.values()][1:] == ["local", "global", "no hits", "no hits"]
    assert found[1e-3, 1e-6]["hits"] > found[0.1, 1e-6]["hits"] > 0


OURS = "maxmargin", "benchmarks", "examples"


def is_ours(module):
    return module.partition(".")[0] in OURS


def can_import(module):
    """Whether all packages that one of our modules needs are installed."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        if is_ours(error.name or ""):
            raise
        return False
    return True


def imported(statement):
    """What a statement imports from our modules, by the names that it has here."""
    found = {}
    if is_ours(statement.module) and can_import(statement.module):
        exec(ast.unparse(statement), {}, found)
    return found


def find(node, names):
    """What an expression of names and attributes stands for, if it begins with one of the names."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    owner = find(node.value, names) if isinstance(node, ast.Attribute) else None
    return owner if owner is None else getattr(owner, node.attr)


def check_arguments(call, function):
    """Whether a function takes the arguments of a call, where its text tells what they are."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    if None not in options and not any(isinstance(argument, ast.Starred) for argument in call.args):
        inspect.signature(function).bind(*call.args, **options)


@pytest.mark.parametrize("path", sorted(Path(benchmarks.__file__).parent.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_benchmarks_use_what_there_is(path):
    """What they import of ours, inside of functions, too, exists, and takes the arguments that it is given."""
    module = vars(importlib.import_module(f"benchmarks.{path.stem}"))
    ours = {name: value for name, value in module.items() if is_ours(getattr(inspect.getmodule(value), "__name__", ""))}
    for statement in ast.parse(path.read_text()).body:
        nodes = [*ast.walk(statement)]
        names = functools.reduce(
            operator.or_, (imported(node) for node in nodes if isinstance(node, ast.ImportFrom)), ours
        )
        hidden = {node.arg for node in nodes if isinstance(node, ast.arg)}
        hidden |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        names = {name: value for name, value in names.items() if name not in hidden}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                find(node, names)
            elif isinstance(node, ast.Call) and (function := find(node.func, names)) is not None:
                check_arguments(node, function)
