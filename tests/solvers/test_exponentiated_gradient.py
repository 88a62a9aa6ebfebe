"""Exponentiated gradient on every loss it takes: reference optima, certificates by enumeration, what it refuses."""

from functools import partial

import numpy as np
import pytest

from maxmargin import CustomProblem
from maxmargin.losses import Loss, find_loss
from maxmargin.problem import part_sizes
from maxmargin.solvers import LBFGS, ExponentiatedGradient
from maxmargin.solvers.exponentiated import exponentiated_gradient
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.fuzz.certified import blocks_of, objective
from tests.structures.test_second_order import with_trigrams
from tests.toy import Labels, label_data, random_candidates, random_chains

SOLVERS = [
    ExponentiatedGradient(),
    ExponentiatedGradient(sampling="gap", gap_every=2),
    ExponentiatedGradient(batch=True),
]
LOSSES = ["log", Loss("entropy", level=0.3), "hinge"]
WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 1.5, 1.0])


def optimum_of(problem, C, loss, weight=None):
    if loss == "hinge":
        return naive.solve(blocks_of(problem), C, weight, tol=1e-7)[1]
    return LBFGS().solve(problem, C, weight, loss=loss, tol=1e-9).certificate.primal


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_reference_optimum(solver, loss, interpreted_loops):
    problem = random_candidates(6, 4, 0)
    optimum = naive.solve(problem.blocks(), 0.3)[1] if loss == "hinge" else optimum_of(problem, 0.3, loss)
    check_solver(solver, problem, optimum, C=0.3, tol=1e-2 if loss == "hinge" else 1e-4, loss=loss)


def check_chains(dtype):
    problem = toy_chains(n=6, n_labels=3, dtype=dtype)
    optimum = optimum_of(toy_chains(n=6, n_labels=3), 0.5, "log", WEIGHT)
    for solver in SOLVERS:
        result = solver.solve(problem, 0.5, WEIGHT, loss="log", tol=1e-3, random_state=0)
        assert result.status is Status.OPTIMAL
        assert (result.trace.dual <= optimum * (1 + 1e-6)).all()
        assert result.certificate.primal <= 1.001 * optimum


def test_compiled_chains():
    check_chains("float64")


def test_chains_in_float32(interpreted_loops):
    check_chains("float32")


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_certificate_holds(solver, loss, interpreted_loops):
    allowed = np.array([[True, True, False], [True, True, True], [False, True, True]])
    problem = random_chains(np.random.default_rng(3), [2, 1, 3, 2, 1, 3], 3, allowed=allowed)
    result = solver.solve(problem, 2.0, WEIGHT, loss=loss, tol=1e-9, max_passes=12, random_state=0)
    blocks = blocks_of(problem)
    assert np.isclose(objective(result.w, blocks, 2.0, WEIGHT, find_loss(loss)), result.certificate.primal)
    assert (result.trace.dual <= optimum_of(problem, 2.0, loss, WEIGHT) * (1 + 1e-6)).all()


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_start_of_a_smooth_loss_is_gone_on_from(solver, interpreted_loops):
    problem = random_candidates(6, 4, 0)
    cold = solver.solve(problem, 3.0, loss="log", tol=1e-6, random_state=0)
    warm = solver.solve(problem, 3.0, loss="log", tol=1e-6, start=cold, random_state=0)
    assert warm.trace.primal[0] == cold.certificate.primal
    assert warm.trace.passes[-1] < cold.trace.passes[-1]


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_mean_parts_that_are_not_kept_are_found_again(loss, monkeypatch, interpreted_loops):
    problem = toy_chains(n=6, n_labels=3)
    solve = partial(ExponentiatedGradient().solve, problem, 1.0, loss=loss, max_passes=11, tol=1e-9, random_state=0)
    kept = solve()
    monkeypatch.setattr(exponentiated_gradient, "MOST_KEPT", 0)
    found = solve()
    assert np.allclose(found.w, kept.w, atol=1e-9)
    assert found.trace.oracle_calls[-1] > kept.trace.oracle_calls[-1]


def test_more_mean_parts_are_kept_where_oracles_take_long(monkeypatch, interpreted_loops):
    rng = np.random.default_rng(0)
    problem = with_trigrams(random_chains(rng, [24, 24], 4), rng, density=1.0)
    n_calls = []
    for most in (0, part_sizes(problem).sum() - 1):
        monkeypatch.setattr(exponentiated_gradient, "MOST_KEPT", most)
        result = ExponentiatedGradient().solve(problem, 1.0, loss="log", max_passes=3, tol=1e-9, random_state=0)
        n_calls.append(result.trace.oracle_calls[-1])
    assert n_calls[1] < n_calls[0]


def test_structures_of_ones_own(interpreted_loops):
    problem = CustomProblem(Labels(), *label_data(6))
    for solver in SOLVERS:
        assert solver.solve(problem, 0.3, loss="log", random_state=0).status is Status.OPTIMAL


def test_one_output(interpreted_loops):
    problem = random_candidates(3, 1, 0)
    for solver in SOLVERS:
        for loss in LOSSES:
            assert solver.solve(problem, 1.0, loss=loss).status is Status.OPTIMAL


def test_bad_input():
    toy = random_candidates(3, 3, 0)
    with pytest.raises(ValueError, match="minimises the hinge or log loss, not the smooth_hinge loss"):
        ExponentiatedGradient().solve(toy, loss="smooth_hinge")
    with pytest.raises(ValueError, match="takes no bounds"):
        ExponentiatedGradient().solve(toy, lower=0.0)
    with pytest.raises(ValueError, match="C must be finite"):
        ExponentiatedGradient().solve(toy, np.inf)
    with pytest.raises(ValueError, match="batch must be True or False"):
        ExponentiatedGradient(batch=2)
    with pytest.raises(ValueError, match="sampling must be"):
        ExponentiatedGradient(sampling="uniform")
    with pytest.raises(ValueError, match="gap_every"):
        ExponentiatedGradient(gap_every=0)
