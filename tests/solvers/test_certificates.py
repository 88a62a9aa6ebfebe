"""Certificates are of the weights returned, and of the objective asked for: every solver on every loss it takes."""

import numpy as np
import pytest

from maxmargin import Loss, Perceptron, Status
from maxmargin.losses import NAMED
from maxmargin.solvers import all_solvers
from maxmargin.solvers.held_out import HeldOut
from maxmargin.solvers.objective import Objective
from maxmargin.testing import toy_chains
from tests.toy import random_candidates

LOSSES = [*NAMED.values(), Loss(margin=False), Loss("entropy", mu=0.3), Loss("l2", margin=False)]
SOLVERS = all_solvers()
PAIRS = [
    pytest.param(solver, loss, id=f"{name}-{k}") for name, solver in SOLVERS.items() for k, loss in enumerate(LOSSES)
]

pytestmark = pytest.mark.usefixtures("interpreted_kernels")


@pytest.fixture(scope="module")
def toy():
    return random_candidates(6, 4, 0)


def value_of(toy, w, C, loss):
    """The objective from its definition."""
    from maxmargin.smoothing import smooth_max

    losses = []
    for phi, costs in zip(toy.phi, toy.costs, strict=True):
        z = phi @ w - phi[0] @ w + loss.margin * costs
        losses.append(smooth_max(z, loss.mu, loss.smoothing)[0] if loss.smoothing else z.max())
    return np.dot(w, w) / (2 * len(losses) * C) + np.mean(losses)


@pytest.mark.parametrize(("solver", "loss"), PAIRS)
def test_a_loss_is_honoured_or_refused(toy, solver, loss):
    options = {"loss": loss, "tol": 1e-3, "max_passes": 30, "random_state": 0}
    if not solver.takes(loss):
        with pytest.raises(ValueError, match=r"minimises the .* loss, not the .* loss"):
            solver.solve(toy, 2.0, **options)
        return
    result = solver.solve(toy, 2.0, **options)
    assert np.isclose(result.certificate.primal, value_of(toy, result.w, 2.0, loss), rtol=1e-6, atol=1e-9)
    assert result.certificate.dual <= result.certificate.primal + 1e-9
    best = solver.solve(toy, 2.0, **{**options, "max_passes": 200}).certificate.primal
    assert result.certificate.dual <= best + 1e-9  # a lower bound of the objective asked for
    if result.status is Status.OPTIMAL:
        assert result.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("name", SOLVERS)
def test_with_held_out_data_the_weights_returned_are_certified(toy, name):
    """Scores that fall with the norm of the weights keep the first ones, far from the optimum."""
    solver = SOLVERS[name]
    held_out = HeldOut(lambda w: -float(np.abs(w).sum()), patience=100)
    result = solver.solve(toy, 10.0, tol=0.02, max_passes=60, random_state=0, held_out=held_out)
    assert np.isclose(result.certificate.primal, value_of(toy, result.w, 10.0, solver.default_loss), rtol=1e-6)
    if result.certificate.relative_gap > 0.02:
        assert result.status is not Status.OPTIMAL
    if result.trace.gap[-1] <= 0.02 * result.trace.primal[-1] < result.certificate.gap and name != "perceptron":
        assert result.status is Status.HELD_OUT


def test_the_perceptron_certifies_its_last_weights():
    problem = toy_chains(n=12, n_labels=4, max_length=5, random_state=2)
    for seed in range(3):
        result = Perceptron(gap_every=1).solve(problem, 1.0, max_passes=7, random_state=seed)
        assert np.isclose(result.certificate.primal, Objective(problem, 1.0).evaluate(result.w).value, rtol=1e-9)
