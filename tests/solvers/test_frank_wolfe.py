"""Batch and block-coordinate Frank-Wolfe against an independent solver of the same problem."""

import _thread
import signal
import threading

import numpy as np
import pytest

from maxmargin.solvers import BCFW, FrankWolfe, find_solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.naive import blocks_of
from tests.toy import NoOracle

SOLVERS = [
    BCFW(),
    BCFW(sampling="uniform"),
    BCFW(averaging=True),
    BCFW(steps="pairwise", averaging="recent"),
    BCFW(sampling="uniform", averaging=True, gap_every=3),
    FrankWolfe(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_reaches_the_reference_optimum(solver, C):
    problem = toy_chains(n=5, n_labels=3)
    _, optimum = naive.solve(blocks_of(problem), C)
    check_solver(solver, problem, optimum, C, tol=1e-2 if isinstance(solver, FrankWolfe) else 1e-3)


@pytest.mark.parametrize(
    "solver", [BCFW(), BCFW(averaging=True), BCFW(steps="pairwise", averaging="recent"), FrankWolfe()], ids=str
)
def test_certificates_equal_enumeration_in_float32(solver):
    problem = toy_chains(n=6, n_labels=3, dtype="float32")
    weight = np.array([1.0, 2.0, 0.5, 0.0, 1.5, 1.0])
    blocks = blocks_of(problem)
    result = solver.solve(problem, 0.5, weight, tol=1e-2, random_state=1)
    w = result.w.astype(np.float64)
    assert np.isclose(naive.primal(w, blocks, 0.5, weight), result.trace.primal[-1], rtol=1e-5)
    _, optimum = naive.solve(blocks, 0.5, weight)
    assert result.trace.dual[-1] <= optimum * (1 + 1e-6)
    assert result.trace.primal[-1] - optimum <= result.trace.gap[-1] * (1 + 1e-4) + 1e-9


def test_block_gaps_sum_to_the_duality_gap():
    problem = toy_chains(n=6)
    result = BCFW().solve(problem, 1.0, max_passes=3, tol=1e-9, random_state=0)
    objective = Objective(problem, 1.0)
    exact, dual = objective.at(result.dual)
    found = objective.evaluate(exact, point=result.dual)
    assert np.isclose(found.gaps.sum(), found.value - dual)


def test_a_doubled_example_is_a_weight_of_two():
    problem = toy_chains(n=4)
    blocks = blocks_of(problem)
    _, doubled = naive.solve([*blocks, blocks[0]], 1.0)  # (1/n) of the same objective, with n = 5
    trace = BCFW().solve(problem, 1.0, np.array([2.0, 1, 1, 1]), tol=1e-4, max_passes=1e4, random_state=0).trace
    assert 4 * trace.dual[-1] <= 5 * doubled <= 4 * trace.primal[-1]


def test_threads_do_not_change_the_result_between_runs():
    problem = toy_chains(n=40, max_length=6)
    one, two, again = (BCFW().solve(problem, n_jobs=jobs, random_state=0, max_passes=20) for jobs in (1, 2, 2))
    assert np.array_equal(two.w, again.w)
    assert np.allclose(one.w, two.w)


def test_drift_is_controlled_in_float32():
    problem = toy_chains(n=30, max_length=6, dtype="float32")
    result = BCFW(gap_every=7).solve(problem, 10.0, tol=1e-7, max_passes=200, random_state=0)
    lower, upper = result.trace.dual[-1], result.trace.primal[-1]
    assert lower <= upper
    assert np.isclose(Objective(problem, 10.0).at(result.dual)[1], lower, rtol=1e-5)


def test_limits_give_their_status():
    problem = toy_chains(n=50, max_length=8, n_labels=4)
    assert BCFW().solve(problem, 100.0, tol=1e-9, max_passes=2).status is Status.MAX_PASSES
    assert BCFW().solve(problem, 100.0, tol=1e-9, max_passes=1e9, time_limit=0.1).status is Status.TIMEOUT


@pytest.mark.parametrize("solver", [BCFW(), FrankWolfe()], ids=str)
def test_ctrl_c_returns_the_best_weights_so_far(solver):
    problem = toy_chains(n=50, max_length=8, n_labels=4)
    solver.solve(problem, max_passes=1)
    handler = signal.getsignal(signal.SIGINT)
    threading.Timer(0.3, _thread.interrupt_main).start()
    result = solver.solve(problem, 1.0, tol=1e-15, max_passes=1e5)
    assert result.status is Status.INTERRUPTED
    assert result.w.any()
    assert signal.getsignal(signal.SIGINT) is handler


def test_one_label_is_solved_at_once():
    result = BCFW().solve(toy_chains(n=3, n_labels=1))
    assert result.status is Status.OPTIMAL
    assert not result.w.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tol": 0}, "tol must be a positive number, not 0"),
        ({"max_passes": -1}, "max_passes must be a positive number, not -1"),
        ({"time_limit": 0.0}, "time_limit must be a positive number, not 0.0"),
        ({"C": 0.0}, "C must be a positive number, not 0.0"),
        ({"C": float("nan")}, "C must be a positive number, not nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BCFW().solve(toy_chains(), **arguments)


def test_unknown_solver():
    with pytest.raises(ValueError, match=r"solver must be a Solver or one of auto, bcfw, .*, svrg, not 'newton'"):
        find_solver("newton")


def test_a_missing_oracle_is_named_before_training():
    with pytest.raises(
        TypeError, match="BCFW needs the max oracle for the hinge loss, which NoOracle does not have; it has: none"
    ):
        BCFW().solve(NoOracle())
