"""Certificates of float32 problems of long sequences, beside sums in float64 that share nothing with the library's."""

import numpy as np
import pytest

from maxmargin import BCFW, Casimir, Loss
from maxmargin.losses import find_loss
from maxmargin.solvers.objective.evaluation import Objective
from tests.fuzz.certified import objective_of_chains
from tests.fuzz.long_chains import KINDS, long_chains

HINGE, LOG, SMOOTH = Loss(), find_loss("log"), Loss("l2", level=0.5)


@pytest.mark.parametrize("solver", [BCFW(), Casimir()], ids=["BCFW", "Casimir"])
@pytest.mark.parametrize(("length", "C"), [(20_000, 1e-4), (3_000, 1.0)])
def test_objectives_are_never_too_low(solver, length, C):
    problem = long_chains(np.random.default_rng(0), [length, length], n_labels=3, n_features=3)
    result = solver.solve(problem, C, tol=1e-3, max_passes=5, random_state=0)
    true = objective_of_chains(problem, result.w, C, HINGE)
    assert true <= result.certificate.primal <= true * (1 + 1e-5)
    assert result.certificate.primal == Objective(problem, C).evaluate(result.w).value


@pytest.mark.parametrize("loss", [HINGE, LOG], ids=["hinge", "log"])
@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_allow_for_rounding(loss, kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        problem = long_chains(rng, [5, 2000], n_labels=3, n_features=40, kind=kind)
        w = rng.normal(size=Objective(problem).n_weights).astype(np.float32)
        true = objective_of_chains(problem, w, 1.0, loss)
        for with_gradient in (True, False):
            assert Objective(problem, loss=loss).evaluate(w, with_gradient=with_gradient).value >= true


@pytest.mark.parametrize("seed", range(4))
def test_mixtures_of_long_outputs_are_below_the_maximum(seed):
    """Mean parts of a mixture are rounded, its lower bound of the hinge loss where it was found is not."""
    rng = np.random.default_rng(seed)
    problem = long_chains(rng, [20_000], n_labels=3, n_features=3)
    w = rng.normal(size=Objective(problem).n_weights).astype(np.float32)
    found = Objective(problem, loss=SMOOTH).evaluate(w)
    hard = objective_of_chains(problem, w, np.inf, HINGE)
    assert found.cost + found.gradient @ w == pytest.approx(hard, rel=1e-4)
    assert found.cost + found.gradient @ w <= hard * (1 + 1e-12)
    assert found.hard >= objective_of_chains(problem, w, 1.0, HINGE)
