"""Early stopping on held-out data: when it looks, when it stops."""

import numpy as np
import pytest

from maxmargin.solvers import BCFW, SGD, Auto, Perceptron
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.testing import toy_chains
from maxmargin.trace import Status

SOLVERS = [
    Auto(),
    BCFW(steps="pairwise", sampling="gap"),
    BCFW(exact_gaps=False),
    BCFW(averaging=True),
    BCFW(steps="pairwise", averaging="recent"),
    SGD(),
    Perceptron(averaging=False),
]
NAMES = ["auto", "pairwise", "estimated", "averaged", "recent", "sgd", "perceptron"]


@pytest.fixture(scope="module")
def toy():
    return toy_chains(n=25)  # which no weights separate


def falling():
    """Scores each lower than the one before."""
    scores = iter(range(0, -10_000, -1))
    return lambda w: next(scores)


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_score_that_only_falls_stops_a_run_soon(toy, solver):
    held_out = HeldOut(falling(), patience=5)
    result = solver.solve(toy, 100.0, tol=1e-9, random_state=0, held_out=held_out)
    assert result.status is Status.EARLY_STOPPED
    assert np.allclose(result.trace.passes, [1, 2, 3, 4, 5, 6])


def test_looks_become_rarer_until_they_are_certificates_apart(toy):
    held_out = HeldOut(np.linalg.norm, patience=1000)
    trace = BCFW(gap_every=4).solve(toy, 100.0, tol=1e-9, max_passes=40, random_state=0, held_out=held_out).trace
    assert np.allclose(trace.passes, [*range(1, 10), 10, 12, 14, 16, 19, 22, 26, 30, 34, 38, 40])


def test_many_held_out_examples_are_looked_at_less_often(toy):
    held_out = HeldOut(falling(), patience=2, n_examples=170)
    result = BCFW(gap_every=4).solve(toy, 100.0, tol=1e-9, random_state=0, held_out=held_out)
    assert np.allclose(result.trace.passes, [1, 7, 13])


def test_without_held_out_data_certificates_stay_as_far_apart(toy):
    trace = BCFW(gap_every=4).solve(toy, 100.0, tol=1e-9, max_passes=9, random_state=0).trace
    assert np.allclose(trace.passes, [1, 5, 9])
