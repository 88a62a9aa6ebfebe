"""L-BFGS on the log loss against enumeration and a solve to high accuracy."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from maxmargin.losses import find_loss
from maxmargin.solvers import LBFGS
from maxmargin.solvers.objective import Objective
from maxmargin.testing import toy_chains
from maxmargin.trace import Status
from tests.solvers.test_frank_wolfe import NoOracle, blocks_of


def naive_log_loss(w, blocks, C, weight):
    n = len(blocks)
    losses = [np.logaddexp.reduce(-psi @ w) for psi, _ in blocks]
    return np.dot(w, w) / (2 * n * C) + np.dot(weight, losses) / n


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
    assert np.isclose(log_loss(objective, w)[0], naive_log_loss(w, blocks_of(problem), 0.7, weight))
    assert check_grad(lambda v: log_loss(objective, v)[0], lambda v: log_loss(objective, v)[1], w) < 1e-5


def test_reaches_the_optimum_and_certifies(problem):
    blocks, ones = blocks_of(problem), np.ones(6)
    reference = minimize(lambda w: naive_log_loss(w, blocks, 1.0, ones), np.zeros(21), tol=1e-12).fun
    result = LBFGS().solve(problem, tol=1e-8)
    assert result.status is Status.OPTIMAL
    assert (result.trace.dual <= reference + 1e-9).all()
    assert (result.trace.primal >= reference - 1e-9).all()
    assert np.isclose(naive_log_loss(result.w, blocks, 1.0, ones), reference, rtol=1e-7)


def test_certificates_never_cross_the_optimum_in_float32():
    problem = toy_chains(n=30, dtype="float32")
    result = LBFGS().solve(problem, tol=1e-9, max_passes=500)
    assert result.status in (Status.OPTIMAL, Status.STALLED)
    exact = LBFGS().solve(toy_chains(n=30), tol=1e-9)
    assert result.trace.dual[-1] <= exact.trace.primal[-1] * (1 + 1e-6)
    assert np.isclose(result.trace.primal[-1], exact.trace.primal[-1], rtol=1e-5)


def test_limits_threads_and_warm_start(problem):
    assert LBFGS().solve(problem, max_passes=2, tol=1e-9).status is Status.MAX_PASSES
    stopped = LBFGS().solve(problem, tol=1e-9, callback=lambda trace: len(trace) >= 2)
    assert stopped.status is Status.INTERRUPTED
    assert len(stopped.trace) == 2
    first = LBFGS().solve(problem, tol=1e-6, n_jobs=2)
    again = LBFGS().solve(problem, tol=1e-5, start=first.w)
    assert again.trace.passes[-1] == 1


def test_bad_options(problem):
    with pytest.raises(ValueError, match="memory must be an integer, at least 1, not 0"):
        LBFGS(memory=0)
    with pytest.raises(TypeError, match="LBFGS needs the exp oracle for the log loss, which NoOracle does not have"):
        LBFGS().solve(NoOracle())
