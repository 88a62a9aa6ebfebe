"""Block steps on portions of examples, one after the other: the same optimum, with true certificates."""

import numpy as np
import pytest

from maxmargin.solvers import BCFW, find_solver
from maxmargin.solvers.block_coordinate import scattered_blocks
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.trace import Status
from tests.solvers.test_parted import COSTS, CUTS, PHI, WEIGHT, Elsewhere, in_portions
from tests.toy import Candidates

METHODS = [
    BCFW(),
    BCFW(steps="pairwise", sampling="gap"),
    BCFW(steps="away", sampling="uniform", cache=2),
    find_solver("auto"),
]


@pytest.mark.parametrize("bounds", [{}, {"lower": -0.1, "upper": 0.05}], ids=["free", "bounded"])
@pytest.mark.parametrize("solver", METHODS, ids=repr)
def test_portions_have_the_optimum_of_all_and_a_true_certificate(solver, bounds):
    options = {"loss": "hinge", "tol": 0.02, "random_state": 0, **bounds}
    whole = solver.solve(Candidates(PHI, COSTS), 0.5, WEIGHT, **options)
    everywhere = [in_portions(cuts) for cuts in ([], CUTS, [*range(1, len(PHI))])]
    for portions in everywhere + [Elsewhere(near) for near in everywhere]:
        found = solver.solve(portions, 0.5, **options)
        assert found.status is Status.OPTIMAL
        value = Objective(Candidates(PHI, COSTS), 0.5, WEIGHT).evaluate(found.w).value
        assert value == pytest.approx(found.certificate.primal, rel=1e-9)
        assert found.certificate.dual <= whole.certificate.primal
        assert whole.certificate.dual <= found.certificate.primal
        if bounds:
            assert ((found.w >= -0.1) & (found.w <= 0.05)).all()


@pytest.mark.parametrize("make", [in_portions, lambda cuts: Elsewhere(in_portions(cuts))], ids=["here", "elsewhere"])
def test_the_same_seed_gives_the_same_weights(make):
    runs = [BCFW(steps="pairwise").solve(make(CUTS), 0.5, max_passes=5, random_state=1).w for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_no_round_at_the_highest_sigma_lowers_the_dual(monkeypatch):
    monkeypatch.setattr(scattered_blocks, "new_pace", lambda n: np.array([n, n, 0.0, 0.0, 0.0]))
    monkeypatch.setattr(scattered_blocks, "ROUNDS", 1)
    portions = Elsewhere(in_portions([*range(1, len(PHI))]))  # each steps on one example, whose change is predicted
    found = BCFW(gap_every=1).solve(portions, 5.0, tol=1e-3, max_passes=40, random_state=0)
    assert (np.diff(found.trace.dual) >= -1e-12).all()
    assert found.trace.dual[-1] > found.trace.dual[0]


def test_rounds_go_on_from_checkpoints(tmp_path):
    solver, options = BCFW(steps="pairwise", gap_every=1), {"tol": 1e-9, "random_state": 0}
    whole = solver.solve(Elsewhere(in_portions(CUTS)), 0.5, max_passes=6, **options)
    checkpoint = {"checkpoint": (tmp_path / "run", 0)}
    solver.solve(Elsewhere(in_portions(CUTS)), 0.5, max_passes=3, **options, **checkpoint)
    resumed = solver.solve(Elsewhere(in_portions(CUTS)), 0.5, max_passes=6, **options, **checkpoint)
    assert np.array_equal(resumed.w, whole.w)


def test_limits_and_what_is_refused():
    solver = BCFW(steps="pairwise")
    assert solver.solve(in_portions(CUTS), 0.5, tol=1e-12, max_passes=3).status is Status.MAX_PASSES
    stopped = solver.solve(in_portions(CUTS), 0.5, tol=1e-12, callback=lambda trace: len(trace) == 2)
    assert stopped.status is Status.INTERRUPTED
    assert len(stopped.trace) == 2
    with pytest.raises(ValueError, match="averaging must be False"):
        BCFW(averaging=True).solve(in_portions(CUTS))
