"""Losses of a user's own: one class each, with the method by which loops attain it."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

import maxmargin
from maxmargin import LBFGS, SGD, ChainSVM, OneSlack
from maxmargin.arrays.vectors import clear, inner
from maxmargin.losses import BaseLoss, combine
from maxmargin.problem import add_output, exp_oracle, score_output, true_output
from maxmargin.runtime import interpreted
from maxmargin.solvers import find_solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import check_solver, toy_chains
from tests.naive import blocks_of

C = 0.5


@dataclass(frozen=True)
class HuberLoss(BaseLoss):
    """The hinge loss l, rounded off near zero: max over 0 <= a <= 1 of {a l - width a^2 / 2}."""

    width: float = 1.0
    margin: bool = True

    def attain_at(self, problem, i, theta, y, score, bound, means):
        y_true = true_output(problem, i)
        true_score = score_output(problem, i, theta, y_true)
        known = max(score - true_score, 0.0)
        share = min(known / self.width, 1.0)
        clear(means)
        add_output(problem, i, y, share, means)
        add_output(problem, i, y_true, 1 - share, means)
        cost = self.width * share * share / 2
        h = true_score + share * known - cost
        slack = max(bound - score, 0.0)
        return h + slack, bound, h + slack + cost, slack

    def of(self, scores):
        hinge = scores.max()
        share = min(hinge / self.width, 1.0)
        return share * hinge - self.width * share**2 / 2


@dataclass(frozen=True)
class ScaledLogLoss(BaseLoss):
    """The log loss of scores and costs at a temperature, in units of that."""

    level: float = 2.0
    margin: bool = True

    name = "scaled_log"
    oracle = "exp"
    is_smooth = True

    def attain(self, problem, i, theta, means, scratch):
        combine(theta, 1 / self.level, theta, 0.0)
        h = self.level * exp_oracle(problem, i, theta, means, scratch.work)
        combine(theta, self.level, theta, 0.0)
        return h, h, inner(theta, means), 0.0

    def of(self, scores):
        return self.level * np.logaddexp.reduce(scores / self.level)


OWN = [(HuberLoss(), SGD()), (HuberLoss(0.5), OneSlack()), (ScaledLogLoss(), SGD()), (ScaledLogLoss(), LBFGS())]


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3, max_length=3)


def naive_value(w, blocks, loss):
    return w @ w / (2 * len(blocks) * C) + np.mean([loss.of(costs - psi @ w) for psi, costs in blocks])


@pytest.mark.parametrize(("loss", "solver"), OWN, ids=str)
def test_they_train_and_certificates_are_true(problem, loss, solver):
    blocks = blocks_of(problem)
    check_solver(solver, problem, C=C, tol=0.02, loss=loss)
    result = solver.solve(problem, C, loss=loss, tol=0.02, random_state=0)
    assert result.status.name == "OPTIMAL"
    primal, dual = result.certificate
    assert np.isclose(primal, naive_value(result.w, blocks, loss), rtol=1e-6)
    better = minimize(naive_value, result.w, (blocks, loss), method="Powell", options={"ftol": 1e-9})
    assert dual <= better.fun * (1 + 1e-9)
    assert better.fun <= primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", [HuberLoss(), ScaledLogLoss()], ids=str)
def test_compiled_and_interpreted_they_are_the_same(problem, loss):
    w = np.random.default_rng(0).normal(size=21)
    compiled = Objective(problem, C, loss=loss).evaluate(w)
    with interpreted():
        plain = Objective(problem, C, loss=loss).evaluate(w)
    assert np.isclose(compiled.value, plain.value)
    np.testing.assert_allclose(compiled.gradient, plain.gradient)
    assert np.isclose(compiled.value, naive_value(w, blocks_of(problem), loss))


@pytest.mark.parametrize("loss", [HuberLoss(), ScaledLogLoss()], ids=str)
def test_estimators_take_and_save_them(loss, tmp_path):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 3)) for _ in range(6)], [rng.integers(2, size=4) for _ in range(6)]
    model = ChainSVM(loss=loss, random_state=0).fit(X, y)
    assert model.status_.name == "OPTIMAL"
    model.save(tmp_path / "own.model")
    assert maxmargin.load(tmp_path / "own.model").loss == loss


def test_solvers_that_know_other_losses_only_say_so(problem):
    with pytest.raises(ValueError, match="a Solver of the HuberLoss loss or one of auto, one-slack, sgd, not"):
        find_solver("bcfw", HuberLoss())
    with pytest.raises(ValueError, match="ExponentiatedGradient minimises the hinge or log loss, not the scaled_log"):
        maxmargin.ExponentiatedGradient().solve(problem, loss=ScaledLogLoss())
    assert find_solver("lbfgs", ScaledLogLoss()) == LBFGS()
