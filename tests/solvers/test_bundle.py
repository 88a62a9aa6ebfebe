"""The best mixture of dual points: against a general optimizer, within the limit of points, and never falling."""

import numpy as np
import pytest
from scipy.optimize import minimize

from maxmargin.solvers.objective.bundle import Bundle
from maxmargin.solvers.objective.evaluation import Objective
from tests.toy import random_candidates

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def random_points(objective, n_points, seed):
    """Gains and gradients of mixtures of outputs of random weights: dual points."""
    rng = np.random.default_rng(seed)
    found = [objective.evaluate(rng.normal(size=objective.n_weights)) for _ in range(n_points)]
    return np.array([f.cost for f in found]), np.array([f.gradient for f in found])


def best_value(objective, gain, gradient):
    """The dual's maximum over mixtures of the points and the true outputs, by SLSQP on the definition."""
    gain, V = np.r_[0.0, gain], np.vstack([np.zeros(objective.n_weights), -gradient / objective.regularization])

    def fall(alpha):
        return -objective.dual_value(gain @ alpha, alpha @ V)

    even = np.full(len(gain), 1 / len(gain))
    simplex = {"type": "eq", "fun": lambda alpha: alpha.sum() - 1}
    options = {"ftol": 1e-12, "maxiter": 500}
    return -minimize(fall, even, bounds=[(0, 1)] * len(gain), constraints=simplex, options=options).fun


@pytest.mark.parametrize("bounds", [{}, {"lower": 0.0}, {"lower": -0.02, "upper": 0.01}, {"lower": 0.05}], ids=str)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_best_mixture(C, bounds):
    objective = Objective(random_candidates(8, 5, random_state=0), C, **bounds)
    gain, gradient = random_points(objective, 6, seed=1)
    bundle = Bundle(objective, limit=6)
    for point in zip(gain, gradient, strict=True):
        bundle.add(*point)
    bundle.solve(1e-9)
    w = bundle.w
    assert np.isclose(bundle.value, best_value(objective, gain, gradient), rtol=1e-5, atol=1e-8)
    assert (w >= objective.bounds.lower.min(initial=-np.inf)).all()


@pytest.mark.parametrize("bounds", [{}, {"lower": 0.0}], ids=str)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_points_beyond_the_limit_become_mixtures(limit, bounds):
    objective = Objective(random_candidates(8, 5, random_state=0), 1.0, **bounds)
    gain, gradient = random_points(objective, 20, seed=2)
    bundle, values = Bundle(objective, limit), []
    for point in zip(gain, gradient, strict=True):
        bundle.add(*point)
        assert len(bundle.points) <= limit + 1
        bundle.solve(1e-9)
        values.append(bundle.value)
        assert values[-1] <= objective.dual_value(bundle.gain @ bundle.alpha, bundle.v) + 1e-15
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] <= best_value(objective, gain, gradient) + 1e-8
    assert np.allclose(bundle.H, bundle.regularization * np.array(bundle.points) @ np.array(bundle.points).T)
