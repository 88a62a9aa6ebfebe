"""Examples in portions: the same iterates and certificates as in one place, up to the rounding of sums."""

import numpy as np
import pytest

from maxmargin.solvers import (
    LBFGS,
    SGD,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    OneSlack,
    find_solver,
)
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.parted.parted_objective import PartedObjective
from maxmargin.solvers.parted.portions import LocalPortions, Portion, Portions
from maxmargin.trace import Status
from tests.toy import Candidates

N = 9
CUTS = [3, 4]  # the second portion has one example
RNG = np.random.default_rng(0)
PHI = [RNG.normal(size=(int(RNG.integers(2, 5)), 4)) for _ in range(N)]
COSTS = [np.append(0.0, RNG.uniform(0.5, 2, len(phi) - 1)) for phi in PHI]
WEIGHT = RNG.uniform(0.5, 2, N)
SOLVERS = [
    (LBFGS(), "log"),
    (OneSlack(), "hinge"),
    (OneSlack(cache=0, damped=False), "squared_hinge"),
    (FrankWolfe(), "hinge"),
    (ExcessiveGap(), "hinge"),
    (ExponentiatedGradient(batch=True), "log"),
    (ExponentiatedGradient(batch=True), "hinge"),
    (Extragradient(), "hinge"),
]


class Told(Candidates):
    """Candidates that checkpoints can tell from others."""

    def identity(self):
        return self.phi, self.costs


def in_portions(cuts, dtype=float):
    pieces = np.split(np.arange(N), cuts)
    return LocalPortions(
        [Portion(Told([PHI[i] for i in piece], [COSTS[i] for i in piece], dtype), WEIGHT[piece]) for piece in pieces]
    )


class Elsewhere(Portions):
    """Portions that are at hand, but do not say so: solvers ask them as those of a cluster."""

    def __init__(self, near):
        self.near, self.sizes, self.like = near, near.sizes, near.like

    def each(self, *args, **options):
        return self.near.each(*args, **options)

    def keep(self, *args, **options):
        return self.near.keep(*args, **options)

    def identity(self):
        return self.near.identity()


@pytest.mark.parametrize(("solver", "loss"), SOLVERS, ids=str)
def test_batch_solvers_make_the_same_iterates(solver, loss):
    options = {"loss": loss, "tol": 1e-4, "max_passes": 60, "random_state": 0}
    whole = solver.solve(Candidates(PHI, COSTS), 0.5, WEIGHT, **options)
    parted = solver.solve(in_portions(CUTS), 0.5, **options)
    assert parted.status is whole.status
    # Rounding decides among solutions of quadratic programs that are good enough, but not among first steps.
    first = 2 if isinstance(solver, OneSlack) else min(8, len(whole.trace), len(parted.trace))
    np.testing.assert_allclose(parted.trace.primal[:first], whole.trace.primal[:first], rtol=1e-7)
    np.testing.assert_allclose(parted.trace.dual[:first], whole.trace.dual[:first], rtol=1e-7, atol=1e-9)
    assert parted.certificate.dual <= whole.certificate.primal + 1e-9
    assert whole.certificate.dual <= parted.certificate.primal + 1e-9


@pytest.mark.parametrize(("solver", "loss"), SOLVERS, ids=str)
def test_one_portion_is_all_bit_for_bit(solver, loss):
    options = {"loss": loss, "max_passes": 30, "random_state": 0}
    whole = solver.solve(Candidates(PHI, COSTS), 0.5, WEIGHT, **options)
    parted = solver.solve(in_portions([]), 0.5, **options)
    assert np.array_equal(parted.w, whole.w)
    assert np.array_equal(parted.trace.dual, whole.trace.dual)


def test_evaluations_are_those_of_one_place():
    w = RNG.normal(size=4)
    for dtype in (np.float32, np.float64):
        whole = Objective(Candidates(PHI, COSTS, dtype), 0.5, WEIGHT)
        parted = PartedObjective(in_portions(CUTS, dtype), 0.5)
        for name, value in whole.evaluate(w)._asdict().items():
            if name != "gaps":
                np.testing.assert_allclose(getattr(parted.evaluate(w), name), value, rtol=1e-6, err_msg=name)
        point, kept = whole.true_means(), parted.true_means()
        found = [each.evaluate(w, point=at, means=at).gaps for each, at in ((whole, point), (parted, kept))]
        np.testing.assert_allclose(found[1].sum(), found[0].sum(), rtol=1e-6)
        np.testing.assert_allclose(parted.at(kept)[0], whole.at(point)[0], rtol=1e-5)  # to which they were moved
        assert parted.at(kept)[1] == pytest.approx(whole.at(point)[1], rel=1e-5)
        assert parted.mean_weight == pytest.approx(WEIGHT.mean())


def test_bounds_a_linear_term_and_l1():
    linear = 0.01 * np.ones(4)
    for options in ({"lower": 0.0}, {"linear": linear}, {"l1_ratio": 0.5}):
        whole = LBFGS().solve(Candidates(PHI, COSTS), 0.5, WEIGHT, tol=1e-8, **options)
        parted = LBFGS().solve(in_portions(CUTS), 0.5, tol=1e-8, **options)
        np.testing.assert_allclose(parted.w, whole.w, atol=1e-5)


def test_auto_takes_solvers_of_batches():
    assert find_solver("auto").solve(in_portions(CUTS), 0.5, tol=0.01).status is Status.OPTIMAL
    assert find_solver("auto").solve(in_portions(CUTS), 0.5, loss="log", tol=0.01).status is Status.OPTIMAL


def test_solvers_of_single_examples_are_refused():
    with pytest.raises(ValueError, match="SGD steps from example to example"):
        SGD().solve(in_portions(CUTS), 0.5)
    with pytest.raises(ValueError, match="portions of examples have weights of their own"):
        LBFGS().solve(in_portions(CUTS), 0.5, WEIGHT)


def test_checkpoints_of_portions_go_on(tmp_path):
    path, options = tmp_path / "run", {"tol": 1e-6, "random_state": 0}
    whole = FrankWolfe().solve(in_portions(CUTS), 0.5, max_passes=12, **options)
    FrankWolfe().solve(in_portions(CUTS), 0.5, max_passes=5, checkpoint=(path, 0), **options)
    resumed = FrankWolfe().solve(in_portions(CUTS), 0.5, max_passes=12, checkpoint=(path, 0), **options)
    assert resumed.trace.primal.tolist() == whole.trace.primal.tolist()
    with pytest.raises(ValueError, match="other examples"):
        FrankWolfe().solve(in_portions([2]), 0.5, checkpoint=path, **options)


def test_ctrl_c_and_time_limits_reach_the_portions():
    parted = FrankWolfe().solve(in_portions(CUTS), 0.5, tol=1e-12, callback=lambda trace: len(trace) == 3)
    assert parted.status is Status.INTERRUPTED
    assert len(parted.trace) == 3
