"""Dual points of any weights are below every objective, with an L1 term, with bounds and without."""

import numpy as np
import pytest

from maxmargin.losses import find_loss
from maxmargin.solvers import BCFW, SGD
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import ElasticBound, LowerBound
from maxmargin.testing import toy_chains
from tests import naive
from tests.toy import random_candidates

C = 0.5


def test_the_certified_gap_of_a_primal_solver_is_near_the_true_one():
    problem = toy_chains(n=60, n_labels=3)
    optimum = BCFW(steps="pairwise").solve(problem, tol=1e-5, random_state=0).certificate.primal
    for seed in range(3):
        found = SGD(schedule="decay", step=0.01).solve(problem, tol=1e-9, max_passes=40, random_state=seed).certificate
        assert found.gap <= 3 * (found.primal - optimum)


@pytest.mark.parametrize(("kind", "l1_ratio"), [(LowerBound, 0.0), (ElasticBound, 0.2), (ElasticBound, 1.0)])
def test_dual_points_are_below_every_objective(kind, l1_ratio):
    rng = np.random.default_rng(0)
    problem = toy_chains(n=6, n_labels=3)
    blocks = naive.blocks_of(problem)
    objective = Objective(problem, C, loss=find_loss("log"), l1_ratio=l1_ratio)
    bound = kind(objective)
    values = []
    for _ in range(30):
        w = rng.normal(size=objective.n_weights)
        gradient = naive.log_loss_gradient(w, blocks)
        gain = naive.log_primal(w, blocks, np.inf) - np.dot(gradient, w)  # the entropy at the marginals of w
        values.append(bound.add(gain, gradient))
    optimum = naive.log_primal(naive.solve_log(blocks, C, l1_ratio), blocks, C, l1_ratio=l1_ratio)
    assert (np.diff(values) >= 0).all()
    assert 0 < values[-1] <= optimum


@pytest.mark.parametrize("bounds", [{}, {"lower": 0.0}, {"lower": -0.1, "upper": 0.05}], ids=str)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_comes_close_to_the_optimum_and_never_above(seed, C, bounds):
    """Dual points around the optimum: their outputs differ, and only mixtures of them come close."""
    rng = np.random.default_rng(seed)
    toy, weight = random_candidates(5, 4, random_state=seed), rng.choice([0.5, 1.0, 2.0], 5)
    best, optimum = naive.solve(toy.blocks(), C, weight, **bounds)
    objective = Objective(toy, C, weight, **bounds)
    bound, values = LowerBound(objective), []
    for scale in np.geomspace(1.0, 1e-3, 80):
        found = objective.evaluate(best + scale * rng.normal(size=best.size))
        values.append(bound.add(found.cost, found.gradient))
    assert (np.diff(values) >= 0).all()
    assert 0.9 * optimum <= values[-1] <= optimum + 1e-8
