"""OWL-QN against accelerated proximal gradient on enumerated outputs, and its dual bound."""

import numpy as np
import pytest

from maxmargin.solvers import BCFW, LBFGS
from maxmargin.solvers.objective import Objective
from maxmargin.solvers.owlqn import OWLQN, Curvature, ElasticBound, shrink
from maxmargin.testing import toy_chains
from maxmargin.trace import Status
from tests.solvers.test_frank_wolfe import blocks_of

N = 6


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=N, n_labels=3)


def loss(w, blocks):
    return sum(np.logaddexp.reduce(-psi @ w) for psi, _ in blocks) / len(blocks)


def loss_gradient(w, blocks):
    total = np.zeros_like(w)
    for psi, _ in blocks:
        p = np.exp(-psi @ w - np.logaddexp.reduce(-psi @ w))
        total -= p @ psi
    return total / len(blocks)


def elastic(w, blocks, C, l1_ratio):
    penalty = l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * np.dot(w, w)
    return penalty / (len(blocks) * C) + loss(w, blocks)


def proximal_gradient(blocks, C, l1_ratio, n_steps=20_000):
    """The minimiser of the elastic net objective, by accelerated proximal gradient with restarts."""
    l1, l2 = l1_ratio / (len(blocks) * C), (1 - l1_ratio) / (len(blocks) * C)
    step = 1 / (sum(np.square(psi).sum(axis=1).max() for psi, _ in blocks) / len(blocks) + l2)
    w = point = np.zeros(blocks[0][0].shape[1])
    momentum = 1.0
    for _ in range(n_steps):
        moved = shrink(point - step * (loss_gradient(point, blocks) + l2 * point), step * l1)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if np.dot(point - moved, moved - w) > 0:
            following, point = 1.0, moved
        else:
            point = moved + (momentum - 1) / following * (moved - w)
        if np.abs(moved - w).max() < 1e-13:
            break
        w, momentum = moved, following
    return w


@pytest.mark.parametrize(("C", "l1_ratio"), [(1.0, 0.5), (3.0, 0.9), (2.0, 1.0)])
def test_reaches_the_optimum_with_exact_zeros(problem, C, l1_ratio):
    blocks = blocks_of(problem)
    best = proximal_gradient(blocks, C, l1_ratio)
    optimum = elastic(best, blocks, C, l1_ratio)
    result = LBFGS().solve(problem, C, l1_ratio=l1_ratio, tol=1e-7)
    assert result.status is Status.OPTIMAL
    assert np.isclose(elastic(result.w, blocks, C, l1_ratio), result.trace.primal[-1], rtol=1e-9)
    assert (result.trace.dual <= optimum + 1e-9).all()
    assert (result.trace.primal >= optimum - 1e-9).all()
    assert (result.trace.gap >= 0).all()
    assert 0 < np.count_nonzero(best) < best.size
    assert np.array_equal(result.w == 0, best == 0)


def test_no_weights_where_the_penalty_is_strong(problem):
    result = LBFGS().solve(problem, C=1e-3, l1_ratio=1.0)
    assert not result.w.any()
    assert result.status is Status.OPTIMAL
    assert len(result.trace) == 1


@pytest.mark.parametrize("l1_ratio", [0.2, 1.0])
def test_dual_points_are_below_every_objective(problem, l1_ratio):
    rng = np.random.default_rng(0)
    blocks = blocks_of(problem)
    objective = Objective(problem, 0.5, l1_ratio=l1_ratio)
    bound = ElasticBound(objective)
    values = []
    for _ in range(30):
        w = rng.normal(size=objective.n_weights)
        gradient = loss_gradient(w, blocks)
        gain = loss(w, blocks) - np.dot(gradient, w)  # the entropy at the marginals of w
        values.append(bound.add(gain, gradient))
    optimum = elastic(proximal_gradient(blocks, 0.5, l1_ratio), blocks, 0.5, l1_ratio)
    assert (np.diff(values) >= 0).all()
    assert 0 < values[-1] <= optimum


def test_without_l1_it_is_lbfgs(problem):
    owlqn, lbfgs = OWLQN().solve(problem, tol=1e-9), LBFGS().solve(problem, tol=1e-9)
    assert np.array_equal(owlqn.w, lbfgs.w)
    bounded = LBFGS().solve(problem, tol=1e-9, lower=-1e6)  # by SciPy
    assert np.isclose(owlqn.trace.primal[-1], bounded.trace.primal[-1], rtol=1e-8)
    assert np.allclose(owlqn.w, bounded.w, atol=1e-3)


def test_few_past_steps_and_many(problem):
    for memory in (1, 5, 100):
        assert LBFGS(memory=memory).solve(problem, tol=1e-8).status is Status.OPTIMAL


def test_the_last_step_explains_the_last_change():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    curvature = Curvature(4, 8)
    for _ in range(7):
        step = rng.normal(size=8)
        curvature.add(step, root @ root.T @ step)
        assert np.allclose(curvature.inverse_times(root @ root.T @ step), step)
    curvature.add(step, -step)  # no curvature: left alone
    assert np.allclose(curvature.inverse_times(root @ root.T @ step), step)


def test_the_diagonal_is_that_of_the_bfgs_update():
    rng = np.random.default_rng(1)
    curvature = Curvature(4, 6)
    for _ in range(5):
        step = rng.normal(size=6)
        change = step * rng.uniform(1, 100, size=6)
        before = np.diag(curvature.diagonal * (change @ (change / curvature.diagonal)) / (step @ change))
        pull = before @ step
        updated = before + np.outer(change, change) / (step @ change) - np.outer(pull, pull) / (step @ pull)
        curvature.add(step, change)
        assert np.allclose(curvature.diagonal, np.diag(updated))
        assert (curvature.diagonal > 0).all()
    curvature.forget()
    assert np.array_equal(curvature.inverse_times(step), step)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_broken_objective_ends_the_run_with_the_last_good_weights(problem, monkeypatch, broken):
    evaluate, calls = Objective.evaluate, []

    def breaks(self, w, *args, **options):
        calls.append(w)
        evaluation = evaluate(self, w, *args, **options)
        return evaluation if len(calls) <= 4 else evaluation._replace(value=broken, gradient=np.full_like(w, np.nan))

    monkeypatch.setattr(Objective, "evaluate", breaks)
    result = LBFGS().solve(problem, tol=1e-9)
    assert result.status in (Status.DIVERGED, Status.STALLED)
    assert result.status is Status.DIVERGED or np.isinf(broken)
    assert np.isfinite(result.w).all()
    assert np.isfinite(result.trace.primal).all()
    assert result.w.any()


def test_limits(problem):
    short = LBFGS().solve(problem, l1_ratio=0.5, tol=1e-12, max_passes=3)
    assert short.status is Status.MAX_PASSES
    assert short.trace.passes[-1] <= 3


def test_bad_options(problem):
    with pytest.raises(ValueError, match="BCFW knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS"):
        BCFW().solve(problem, l1_ratio=0.5)
    with pytest.raises(ValueError, match="LBFGS takes bounds of the weights or L1 regularization, not both"):
        LBFGS().solve(problem, l1_ratio=0.5, lower=0.0)
    with pytest.raises(ValueError, match="OWLQN takes no bounds of the weights"):
        OWLQN().solve(problem, lower=0.0)
    with pytest.raises(ValueError, match="memory must be an integer, at least 1, not 0"):
        OWLQN(memory=0)
