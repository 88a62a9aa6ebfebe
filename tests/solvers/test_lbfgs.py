"""L-BFGS against solves to high accuracy on enumerated outputs, with an L1 term (OWL-QN), bounds and without."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from maxmargin.losses import find_loss
from maxmargin.solvers import BCFW, LBFGS
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.toy import NoOracle


def log_loss(objective, w):
    evaluation = objective.evaluate(w)
    return evaluation.value, evaluation.gradient + objective.regularization * w


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3)


def test_value_and_gradient(problem):
    weight = np.array([1.0, 2.0, 0.0, 0.5, 1.0, 1.0])
    objective = Objective(problem, 0.7, weight, loss=find_loss("log"))
    w = np.random.default_rng(0).normal(size=21)
    assert np.isclose(log_loss(objective, w)[0], naive.log_primal(w, naive.blocks_of(problem), 0.7, weight))
    assert check_grad(lambda v: log_loss(objective, v)[0], lambda v: log_loss(objective, v)[1], w) < 1e-5


def test_reaches_the_optimum_and_certifies(problem):
    blocks = naive.blocks_of(problem)
    reference = naive.log_primal(naive.solve_log(blocks, 1.0), blocks, 1.0)
    result = LBFGS().solve(problem, tol=1e-8)
    assert result.status is Status.OPTIMAL
    assert (result.trace.dual <= reference + 1e-9).all()
    assert (result.trace.primal >= reference - 1e-9).all()
    assert np.isclose(naive.log_primal(result.w, blocks, 1.0), reference, rtol=1e-7)


@pytest.mark.parametrize(("C", "l1_ratio"), [(1.0, 0.5), (3.0, 0.9), (2.0, 1.0)])
def test_reaches_the_optimum_with_exact_zeros(problem, C, l1_ratio):
    blocks = naive.blocks_of(problem)
    best = naive.solve_log(blocks, C, l1_ratio)
    optimum = naive.log_primal(best, blocks, C, l1_ratio=l1_ratio)
    result = LBFGS().solve(problem, C, l1_ratio=l1_ratio, tol=1e-7)
    assert result.status is Status.OPTIMAL
    assert np.isclose(naive.log_primal(result.w, blocks, C, l1_ratio=l1_ratio), result.trace.primal[-1], rtol=1e-9)
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


def test_bounds_that_do_not_bind_change_nothing(problem):
    free = LBFGS().solve(problem, tol=1e-9)
    bounded = LBFGS().solve(problem, tol=1e-9, lower=-1e6)
    assert np.isclose(free.trace.primal[-1], bounded.trace.primal[-1], rtol=1e-8)
    assert np.allclose(free.w, bounded.w, atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(("lower", "upper"), [(0.0, None), (-0.05, 0.02), (0.1, 0.1), (None, -0.01)])
def test_bounds_against_scipy(problem, lower, upper, C):
    objective = Objective(problem, C, loss=find_loss("log"))
    bounds = np.tile([-np.inf if lower is None else lower, np.inf if upper is None else upper], (21, 1))
    options = {"ftol": 0, "gtol": 1e-12, "maxiter": 5000}
    at = np.clip(np.zeros(21), *bounds.T)
    best = minimize(lambda w: log_loss(objective, w), at, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    result = LBFGS().solve(problem, C, lower=lower, upper=upper, tol=1e-9)
    assert result.status is Status.OPTIMAL
    assert np.isclose(result.trace.primal[-1], best.fun, rtol=1e-8)
    assert result.trace.dual[-1] <= best.fun * (1 + 1e-12)
    assert (result.w >= bounds[:, 0]).all()
    assert (result.w <= bounds[:, 1]).all()


def test_few_past_steps_and_many(problem):
    for memory in (1, 5, 100):
        assert LBFGS(memory=memory).solve(problem, tol=1e-8).status is Status.OPTIMAL


def test_certificates_never_cross_the_optimum_in_float32():
    problem = toy_chains(n=30, dtype="float32")
    result = LBFGS().solve(problem, tol=1e-9, max_passes=500)
    assert result.status in (Status.OPTIMAL, Status.STALLED)
    exact = LBFGS().solve(toy_chains(n=30), tol=1e-9)
    assert result.trace.dual[-1] <= exact.trace.primal[-1] * (1 + 1e-6)
    assert np.isclose(result.trace.primal[-1], exact.trace.primal[-1], rtol=1e-5)


def test_limits_threads_and_warm_start(problem):
    for l1_ratio in (0.0, 0.5):
        short = LBFGS().solve(problem, l1_ratio=l1_ratio, tol=1e-12, max_passes=3)
        assert short.status is Status.MAX_PASSES
        assert short.trace.passes[-1] <= 3
    stopped = LBFGS().solve(problem, tol=1e-9, callback=lambda trace: len(trace) >= 2)
    assert stopped.status is Status.INTERRUPTED
    assert len(stopped.trace) == 2
    first = LBFGS().solve(problem, tol=1e-6, n_jobs=2)
    again = LBFGS().solve(problem, tol=1e-5, start=first.w)
    assert again.trace.passes[-1] == 1


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


def test_bad_options(problem):
    with pytest.raises(ValueError, match="memory must be an integer, at least 1, not 0"):
        LBFGS(memory=0)
    with pytest.raises(TypeError, match="LBFGS needs the exp oracle for the log loss, which NoOracle does not have"):
        LBFGS().solve(NoOracle())
    with pytest.raises(ValueError, match="BCFW knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS"):
        BCFW().solve(problem, l1_ratio=0.5)
    with pytest.raises(ValueError, match="LBFGS takes bounds of the weights or L1 regularization, not both"):
        LBFGS().solve(problem, l1_ratio=0.5, lower=0.0)
