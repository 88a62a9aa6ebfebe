"""Steps on several ranges of examples at once: the optimum of one, certified, and the same weights in every run."""

import signal

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxmargin import MulticlassSVM
from maxmargin.execution import step_rounds
from maxmargin.execution.meeting import GOING, LOOK, SIGMA, adapt, end_round, gain_of, new_pace
from maxmargin.execution.runner import Runner
from maxmargin.execution.step_rounds import StepRounds, count_ranges
from maxmargin.losses import NAMED
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers import BCFW, LBFGS, ExponentiatedGradient
from maxmargin.solvers.block_coordinate import block_rounds
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.naive import blocks_of
from tests.toy import Candidates

TOL = 0.01
PAIRWISE = BCFW(steps="pairwise", sampling="gap")
VARIANTS = [
    BCFW(steps="fw", sampling="uniform", cache=3),
    PAIRWISE,
    BCFW(steps="away", sampling="gap", cache=3),
    BCFW(steps="best"),
]


@loop
def wait_for_others(problem, seat):
    return end_round(problem, seat, GOING)


@pytest.fixture(autouse=True)
def many_cores(monkeypatch):
    """A range for every thread, however few the cores and however little the work."""
    monkeypatch.setattr(step_rounds, "LEAST_WORK", 1)
    monkeypatch.setattr(step_rounds, "count_cores", lambda: 64)


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3)


@pytest.fixture(scope="module")
def optimum(problem):
    return naive.solve(blocks_of(problem), 1.0)[1]


def check(result, problem, optimum, tol=TOL, has_dual=True, **options):
    """The certificate holds, by weights and dual points that are evaluated from scratch."""
    objective = Objective(problem, 1.0, **options)
    primal, dual = result.certificate
    assert result.status is Status.OPTIMAL
    assert dual - 1e-5 <= optimum <= primal + 1e-5
    assert primal == pytest.approx(objective.evaluate(result.w).value, rel=1e-5)
    assert 0 <= primal - dual <= tol * primal
    if has_dual:
        assert dual <= objective.at(result.dual)[1] + 1e-5


@pytest.mark.parametrize(("solver", "n_jobs"), [*zip(VARIANTS, (8, 2, 3, 2), strict=True)], ids=str)
def test_ranges_reach_the_optimum_of_one(solver, n_jobs, problem, optimum):
    result = solver.solve(
        problem, tol=TOL, n_jobs=n_jobs, random_state=0
    )  # eight threads are more than there are examples
    check(result, problem, optimum)
    assert result.trace.oracle_calls[-1] > 0


@pytest.mark.parametrize("steps_of_round", [1, 32])  # of which ranges take each other's, or tell all changes
def test_bounds_and_weights_of_examples(problem, monkeypatch, steps_of_round):
    monkeypatch.setattr(block_rounds, "STEPS_OF_ROUND", steps_of_round)
    weight, lower, upper = np.array([0.0, 2.0, 1.0, 0.0, 0.5, 1.0]), np.full(21, -np.inf), np.full(21, 0.4)
    lower[12:] = 0.0
    optimum = naive.solve(blocks_of(problem), 1.0, weight, lower=lower, upper=upper)[1]
    options = {"sample_weight": weight, "lower": lower, "upper": upper}
    result = PAIRWISE.solve(problem, tol=TOL, n_jobs=3, random_state=0, **options)
    check(result, problem, optimum, **options)
    assert (result.w >= lower).all()
    assert (result.w <= upper).all()


@pytest.mark.parametrize("n_jobs", [2, 8])
def test_exponentiated_gradient_reaches_the_optimum_of_one(problem, n_jobs, tmp_path):
    optimum = LBFGS().solve(problem, loss="log", tol=1e-6).certificate.primal
    options = {"loss": "log", "tol": TOL, "n_jobs": n_jobs, "random_state": 0}
    solver = ExponentiatedGradient(sampling="gap")
    result, again = (solver.solve(problem, **options) for _ in range(2))
    check(result, problem, optimum, loss=NAMED["log"], has_dual=False)
    assert np.array_equal(result.w, again.w)
    for max_passes in (6, None):
        resumed = solver.solve(problem, max_passes=max_passes, checkpoint=(tmp_path / "run", 0), **options)
    assert np.array_equal(resumed.w, result.w)


def test_the_same_seed_and_threads_give_the_same_weights(problem):
    first, second = (PAIRWISE.solve(problem, max_passes=7, tol=1e-9, n_jobs=3, random_state=1) for _ in range(2))
    assert np.array_equal(first.w, second.w)
    assert np.array_equal(first.dual.gaps, second.dual.gaps)


def test_a_run_that_is_resumed_ends_in_the_same_weights(problem, tmp_path):
    options = {"tol": 1e-9, "n_jobs": 2, "random_state": 0}
    whole = PAIRWISE.solve(problem, max_passes=24, **options)
    for max_passes in (12, 24):
        resumed = PAIRWISE.solve(problem, max_passes=max_passes, checkpoint=(tmp_path / "run", 0), **options)
    assert np.array_equal(resumed.w, whole.w)
    assert resumed.certificate == whole.certificate


def test_ranges_go_on_from_each_other_and_from_one(problem, optimum):
    parted = PAIRWISE.solve(problem, tol=0.1, n_jobs=3, random_state=0)
    whole = PAIRWISE.solve(problem, tol=TOL, start=parted, random_state=0)
    check(whole, problem, optimum)
    check(PAIRWISE.solve(problem, tol=TOL, start=whole, n_jobs=3, random_state=0), problem, optimum)


def test_limits_and_interrupts_end_a_pass(problem):
    late = PAIRWISE.solve(problem, tol=1e-9, n_jobs=2, time_limit=0.05, max_passes=1e9)
    assert late.status is Status.TIMEOUT
    assert np.isfinite(late.certificate.primal)

    def interrupt(trace):
        signal.raise_signal(signal.SIGINT)

    assert PAIRWISE.solve(problem, tol=1e-9, n_jobs=2, callback=interrupt).status is Status.INTERRUPTED


def test_who_fails_lets_nobody_wait(problem):
    runner = Runner(problem, n_jobs=2)
    meetings = StepRounds(runner, 21, 32)

    def fail(seat, place):
        if seat.k:
            raise RuntimeError("out of order")
        return int(wait_for_others(runner.problem, seat)), True

    with pytest.raises(RuntimeError, match="out of order"):
        meetings.make_pass([(0, 2)], [1, 1], fail, np.zeros(21), np.zeros(21), 1.0, new_pace(2))


def test_one_range_where_threads_do_not_help(problem, monkeypatch):
    own = Candidates(np.random.default_rng(0).normal(size=(6, 3, 2)), [[0, 1, 1]] * 6)
    assert count_ranges(Runner(own, n_jobs=2)) == 1
    alone, together = (PAIRWISE.solve(own, n_jobs=n, random_state=0) for n in (1, 2))
    assert together.w == pytest.approx(alone.w)
    assert count_ranges(Runner(toy_chains(n=1), n_jobs=2)) == 1
    assert count_ranges(Runner(problem, n_jobs=4)) == 4
    monkeypatch.setattr(step_rounds, "count_cores", lambda: 3)
    assert count_ranges(Runner(problem, n_jobs=4)) == 3
    monkeypatch.setattr(step_rounds, "LEAST_WORK", 2**16)
    assert count_ranges(Runner(problem, n_jobs=4)) == 1


def test_sigma_rises_where_ranges_undo_each_other_and_falls_where_they_do_not():
    pace = new_pace(n_ranges=2)
    for _ in range(20 * LOOK):  # both make the same change, of length 1, and each predicts to gain 1/4
        adapt(pace, gain_of(0.5, pace[SIGMA], 1.0, 2.0, 4.0), 0.5, 2, 1)
    assert 1.8 <= pace[SIGMA] <= 2.0
    for _ in range(100 * LOOK):  # changes at right angles
        adapt(pace, gain_of(1.0, pace[SIGMA], 1.0, 2.0, 2.0), 1.0, 2, 1)
    assert pace[SIGMA] < 1.8
    before = pace[SIGMA]
    for _ in range(LOOK):
        adapt(pace, 0.8, 1.0, 2, 1)
    assert pace[SIGMA] == before


@pytest.mark.long  # classes alone have exact steps: rounds of them are compiled for this test
def test_exact_steps_in_rounds():
    X, y = load_digits(return_X_y=True)
    alone, together = (
        MulticlassSVM(C=0.1, tol=TOL, n_jobs=n_jobs, random_state=0).fit(X[:300] / 16, y[:300]) for n_jobs in (1, 3)
    )
    assert together.status_ is Status.OPTIMAL
    assert together.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=TOL)
    assert not np.array_equal(together.coef_, alone.coef_)
