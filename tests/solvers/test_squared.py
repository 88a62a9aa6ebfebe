"""Squared slacks: the objective and its dual by definition, and the solvers that take them."""

import numpy as np
import pytest
from scipy.optimize import minimize

from maxmargin import SGD, Auto, ChainSVM, KernelChainSVM, OneSlack, SquaredLoss
from maxmargin.solvers import all_solvers
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Status
from tests.naive import blocks_of


def primal(w, blocks, C, weight):
    """(lambda/2) ||w||^2 + (1/n) sum_i weight_i l_i^2 / 2."""
    losses = np.array([np.max(cost - psi @ w) for psi, cost in blocks])
    return w @ w / (2 * C * len(blocks)) + weight @ losses**2 / (2 * len(blocks))


def optimum(blocks, C, weight):
    """The maximum of the dual over alpha >= 0, by a quasi-Newton method with bounds.

    With L = weight_i L_i(y) / n and columns weight_i psi_i(y) / n of P, it is L'alpha - sum_i weight_i a_i^2 / (2 n) -
    (n C / 2) ||P alpha||^2, where a_i are the sums of alpha over the outputs of example i.
    """
    n = len(blocks)
    P = np.concatenate([w * psi / n for w, (psi, _) in zip(weight, blocks, strict=True)]).T
    sums = np.repeat(np.eye(n), [len(cost) for _, cost in blocks], axis=1)
    gain = np.concatenate([w * cost / n for w, (_, cost) in zip(weight, blocks, strict=True)])
    H = n * C * P.T @ P + sums.T @ np.diag(weight / n) @ sums
    found = minimize(
        lambda alpha: alpha @ H @ alpha / 2 - gain @ alpha,
        np.zeros(gain.size),
        jac=lambda alpha: H @ alpha - gain,
        bounds=[(0, None)] * gain.size,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 100_000, "maxfun": 100_000, "maxcor": 50},
    )
    w = n * C * P @ found.x
    assert np.isclose(primal(w, blocks, C, weight), -found.fun, rtol=1e-6)  # both are the optimum
    return -found.fun


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=5, n_labels=3, max_length=3)


def test_the_objective_and_its_gradient(problem):
    rng = np.random.default_rng(0)
    weight = rng.random(5) + 0.5
    objective = Objective(problem, 0.3, weight, loss=SquaredLoss())
    w, step = rng.normal(size=21), 1e-6 * rng.normal(size=21)
    found = objective.evaluate(w)
    assert np.isclose(found.value, primal(w, blocks_of(problem), 0.3, weight))
    slope = (found.gradient + w / (5 * 0.3)) @ step
    assert np.isclose(objective.evaluate(w + step).value - found.value, slope, rtol=1e-3)


def test_its_dual_point_is_where_fenchel_has_it(problem):
    """F(w) - D = (lambda/2) ||w - w(mu)||^2 at the mean parts where all losses are attained at w."""
    objective = Objective(problem, 0.3, loss=SquaredLoss())
    w = np.random.default_rng(1).normal(size=21)
    found = objective.evaluate(w)
    v = found.gradient / -objective.regularization
    gap = found.value - objective.dual_value(found.cost + found.entropy, v)
    assert np.isclose(gap, objective.regularization / 2 * np.sum((w - v) ** 2))


@pytest.mark.parametrize(
    "solver", [OneSlack(), OneSlack(cache=0), OneSlack(cache=0, damped=False), SGD(), Auto()], ids=str
)
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_solvers_reach_the_reference_optimum(problem, solver, C):
    best = optimum(blocks_of(problem), C, np.ones(5))
    tol = 5e-2 if isinstance(solver, SGD) else 1e-4
    check_solver(solver, problem, best, C=C, tol=tol, loss=SquaredLoss())


def test_weights_of_examples(problem):
    weight = np.array([0.5, 2.0, 1.0, 0.0, 3.0])
    best = optimum(blocks_of(problem), 0.3, weight)
    found = OneSlack().solve(problem, 0.3, weight, loss=SquaredLoss(), tol=1e-5).certificate
    assert found.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= found.primal <= best * (1 + 2e-5)


def test_who_takes_it(problem):
    assert {name for name, solver in all_solvers().items() if solver.takes(SquaredLoss())} == {
        "auto",
        "one-slack",
        "sgd",
    }
    with pytest.raises(ValueError, match="BCFW minimises the hinge loss, not the squared_hinge loss"):
        all_solvers()["bcfw"].solve(problem, loss="squared_hinge")


def test_models(words, interpreted_loops):
    X, y = words
    X, y = X[:8], y[:8]
    model = ChainSVM(loss="squared_hinge", dtype="float64", random_state=0).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    kernel = KernelChainSVM(kernel="linear", loss="squared_hinge", fit_intercept=False, dtype="float64", tol=1e-3).fit(
        X, y
    )
    plain = ChainSVM(loss="squared_hinge", fit_intercept=False, dtype="float64", tol=1e-3).fit(X, y)
    assert np.isclose(kernel.certificate_.primal, plain.certificate_.primal, rtol=2e-3)
