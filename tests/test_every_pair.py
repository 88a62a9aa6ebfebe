"""Every solver on every structure that has its oracle, interpreted, and the table of them in the documentation.

Interpreted, since to compile each pair would take long: the source is the same, and each structure and each solver is
compiled in tests of its own.
"""

from pathlib import Path

import numpy as np
import pytest

from maxmargin import (
    BCFW,
    LBFGS,
    SGD,
    SVRG,
    BoxSVM,
    CandidateSVM,
    Casimir,
    ChainCRF,
    ChainSVM,
    DeformableSVM,
    FrankWolfe,
    GraphCutSVM,
    MatchingSVM,
    MulticlassSVM,
    NSlack,
    OneSlack,
    Perceptron,
    Tree,
    TreeSVM,
)
from maxmargin.losses import find_loss
from maxmargin.problem import ORACLES
from maxmargin.runtime import dispatch
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.objective import Objective
from tests.toy import random_candidates


def tasks():
    """A small task of each structure: its problem and the bounds that its weights need."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(length, 2)) for length in (3, 2, 1)]
    labels = [[0, 1, 2], [1, 0], [2]]
    edges = [[(0, 1), (1, 2)], [(0, 1)], []]
    two = [[0, 1, 1], [1, 0], [0]]
    pairs = [rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2, 2))]
    grids = [rng.normal(size=(3, 4, 2)) for _ in range(3)]
    poses = [np.array([[0, 1], [2, 2]]), np.array([[1, 1], [3, 0]]), np.array([[2, 0], [2, 1]])]
    boxes = [(0, 1, 2, 3), (1, 0, 3, 2), (0, 0, 1, 1)]
    return {
        "chains": ChainSVM()._encode(rows, labels),
        "observed chains": ChainCRF(only_observed=True)._encode([abs(x) > 0.5 for x in rows], labels),
        "trees": TreeSVM()._encode([Tree(x, edges=e) for x, e in zip(rows, edges, strict=True)], labels),
        "deformable parts": DeformableSVM(edges=[(0, 1)])._encode(grids, poses),
        "graph cuts": GraphCutSVM()._encode(list(zip(rows, edges, strict=True)), two),
        "matchings": MatchingSVM()._encode(pairs, [[1, -1], [0, 1]]),
        "candidates": CandidateSVM()._encode(rows[:2], [0, 1]),
        "classes": MulticlassSVM()._encode(np.vstack(rows), np.concatenate(labels)),
        "boxes": BoxSVM()._encode(grids, boxes),
        "a Python class": random_candidates(4, 3, random_state=0),
    }


SOLVERS = [
    ("`BCFW`", BCFW(steps="pairwise", sampling="gap"), "hinge"),
    ("`FrankWolfe`", FrankWolfe(), "hinge"),
    ("`NSlack`", NSlack(), "hinge"),
    ("`OneSlack`", OneSlack(cache=2), "hinge"),
    ("`Casimir`, l2", Casimir(k=2), "hinge"),
    ("`Casimir`, entropy", Casimir(smoothing="entropy"), "hinge"),
    ("`SVRG`, l2", SVRG(k=2), "hinge"),
    ("`SGD`", SGD(step=0.01), "hinge"),
    ("`Perceptron`", Perceptron(), "hinge"),
    ("`LBFGS`, smooth hinge", LBFGS(), "smooth_hinge"),
    ("`LBFGS`, log", LBFGS(), "log"),
    ("`SGD`, log", SGD(step=0.01), "log"),
    ("`Casimir`, log", Casimir(), "log"),
]


def can_run(solver, loss, task):
    problem = getattr(task, "problem", task)
    has_oracles = all(supports(ORACLES[name], problem) for name in solver.oracles(find_loss(loss)))
    return has_oracles and (solver.takes_bounds or getattr(task, "lower", None) is None)


@pytest.fixture(scope="module")
def structures():
    return tasks()


@pytest.mark.parametrize(("solver", "loss"), [(solver, loss) for _, solver, loss in SOLVERS], ids=str)
def test_every_pair(monkeypatch, structures, solver, loss):
    monkeypatch.setattr(dispatch, "_implemented", {})
    for name, task in structures.items():
        if not can_run(solver, loss, task):
            continue
        problem, lower = getattr(task, "problem", task), getattr(task, "lower", None)
        result = solver.solve(problem, 0.5, loss=loss, lower=lower, tol=1e-6, max_passes=6, random_state=0)
        trace = result.trace
        slack = 1e-4 * trace.primal[-1]
        objective = Objective(problem, 0.5, lower=lower, loss=find_loss(loss))
        start = objective.evaluate(np.maximum(np.zeros(result.w.size), -np.inf if lower is None else lower)).value
        assert (trace.primal >= trace.dual - slack).all(), name
        if not isinstance(solver, Perceptron):
            assert trace.primal[-1] <= 2 * start + 0.1, name
            assert np.isclose(objective.evaluate(result.w).value, trace.primal[-1], rtol=1e-3, atol=1e-6), name


def test_the_table_of_the_documentation(structures):
    lines = [f"| | {' | '.join(structures)} |", "|---|" + "---|" * len(structures)]
    for title, solver, loss in SOLVERS:
        cells = ["yes" if can_run(solver, loss, task) else "" for task in structures.values()]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    table = "\n".join(lines)
    text = (Path(__file__).parents[1] / "docs/solvers.md").read_text()
    assert table in text, f"docs/solvers.md must hold this table:\n{table}"
