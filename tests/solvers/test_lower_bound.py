"""Dual points of any weights are below every objective, with an L1 term and without."""

import numpy as np
import pytest

from maxmargin.losses import find_loss
from maxmargin.solvers.lower_bound import ElasticBound, LowerBound
from maxmargin.solvers.objective import Objective
from maxmargin.testing import toy_chains
from tests import naive

C = 0.5


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
