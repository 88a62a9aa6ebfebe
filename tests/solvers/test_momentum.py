"""Momentum of dual points: they stay feasible, the dual never falls, and the optimum is the same."""

import numpy as np
import pytest

from maxmargin.solvers import BCFW
from maxmargin.solvers.block_coordinate import block_state
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import check_solver, toy_chains
from tests import naive
from tests.naive import blocks_of

SOLVERS = [
    BCFW(steps="pairwise", momentum=1),
    BCFW(steps="pairwise", sampling="gap", averaging="recent", momentum=3, gap_every=4),
    BCFW(steps="away", cache=3, momentum=2),
    BCFW(steps="best", momentum=2),
]


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(block_state, "FIRST_MOMENTUM", 2)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_reaches_the_reference_optimum(solver):
    problem = toy_chains(n=6, n_labels=3)
    weight = np.array([1.0, 2.0, 0.5, 0.0, 1.5, 1.0])
    _, optimum = naive.solve(blocks_of(problem), 2.0)
    check_solver(solver, problem, optimum, 2.0, tol=1e-3)
    _, optimum = naive.solve(blocks_of(problem), 2.0, weight)
    result = solver.solve(problem, 2.0, weight, tol=1e-3, max_passes=1e4, random_state=0)
    assert result.trace.dual[-1] <= optimum * (1 + 1e-9)
    assert result.trace.primal[-1] >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_dual_never_falls_and_points_stay_feasible(monkeypatch, solver, dtype, n_jobs):
    go_on, moved = block_state.go_on, []

    def watched(run, sets):
        before = run.objective.at(run.dual)[1]
        go_on(run, sets)
        v, after = run.objective.at(run.dual)
        assert after >= before - 1e-6
        moved.append(after > before + 1e-9)
        assert np.allclose(run.w, v, atol=1e-4)
        stored = np.concatenate([at + np.arange(n) for at, n in zip(sets.slot_at, sets.stored_count, strict=True)])
        owner = np.repeat(np.arange(len(sets.sizes)), sets.stored_count)
        assert (sets.alpha[stored] >= 0).all()
        assert np.allclose(np.bincount(owner, sets.alpha[stored]), 1)
        assert (sets.earlier[stored] == sets.alpha[stored]).all()

    monkeypatch.setattr(block_state, "go_on", watched)
    problem = toy_chains(n=20, n_labels=4, max_length=5, dtype=dtype)
    solver.solve(problem, 5.0, tol=1e-12, max_passes=12, random_state=0, n_jobs=n_jobs)
    assert any(moved)


def test_linear_terms_and_priors_are_part_of_the_dual(monkeypatch):
    go_on, values = block_state.go_on, []

    def watched(run, sets):
        values.append(run.objective.at(run.dual)[1])
        go_on(run, sets)
        values.append(run.objective.at(run.dual)[1])

    monkeypatch.setattr(block_state, "go_on", watched)
    problem = toy_chains(n=20, n_labels=4, max_length=5)
    prior = np.random.default_rng(0).normal(size=Objective(problem, 5.0).n_weights)
    SOLVERS[0].solve(problem, 5.0, tol=1e-12, max_passes=12, random_state=0, prior=prior)
    steps = np.diff(values)[::2]
    assert (steps >= -1e-12).all()
    assert (steps > 1e-9).any()


def test_bounded_weights_have_none():
    """The dual is no parabola there."""
    problem, options = toy_chains(n=12), {"lower": -0.1, "max_passes": 8, "tol": 1e-12, "random_state": 0}
    with_it, without = (BCFW(steps="pairwise", momentum=k).solve(problem, 5.0, **options) for k in (1, 0))
    assert (with_it.w == without.w).all()


def test_it_needs_active_sets():
    for steps in ("fw", "exact"):
        with pytest.raises(ValueError, match="momentum must be 0 with steps that keep no active sets"):
            BCFW(steps=steps, momentum=2)
    with pytest.raises(ValueError, match="momentum must be"):
        BCFW(steps="pairwise", momentum=-1)
    with pytest.raises(ValueError, match="averaging must be False or 'recent' with momentum"):
        BCFW(steps="pairwise", momentum=2, averaging=True)
