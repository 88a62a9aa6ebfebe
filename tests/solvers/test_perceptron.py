"""The perceptron: its mistake bound, its average, its end."""

import numpy as np
import pytest

from maxmargin.solvers import BCFW, Perceptron
from maxmargin.testing import toy_chains
from maxmargin.trace import Status
from tests.naive import blocks_of
from tests.toy import Candidates, random_candidates


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3)


def separable(random_state):
    """Candidates of which the true one scores highest by a hidden vector."""
    toy = random_candidates(30, 4, random_state)
    hidden = np.random.default_rng(random_state).normal(size=4)
    phi = [p[np.argsort(-(p @ hidden))] for p in toy.phi]
    return Candidates(phi, toy.costs), hidden


@pytest.mark.parametrize("random_state", range(5))
def test_mistake_bound(random_state):
    toy, hidden = separable(random_state)
    margin = min(((p[0] - p[1:]) @ hidden).min() for p in toy.phi) / np.linalg.norm(hidden)
    radius = max(np.linalg.norm(p[0] - p[1:], axis=1).max() for p in toy.phi)
    mistakes = 0
    spread = toy.spread

    def counting(w, i, delta, scale):
        nonlocal mistakes
        mistakes += 1
        spread(w, i, delta, scale)

    def last_of_ties(i, theta, y, work):  # the true one is the first
        y[0] = len(theta) - 1 - np.argmax(theta[::-1])
        return theta[y[0]]

    toy.spread, toy.max_oracle = counting, last_of_ties
    result = Perceptron(averaging=False, gap_every=10**6).solve(toy, max_passes=1e4, random_state=0)
    mistakes -= len(toy.phi)  # the certificate's own
    assert result.status is Status.SEPARATED
    assert 0 < mistakes <= (radius / margin) ** 2
    assert all(np.argmax(p @ result.w) == 0 for p in toy.phi)


def test_averages_are_returned_of_separated_examples_too(problem):
    average, last = (Perceptron(averaging=a).solve(problem, max_passes=1000, random_state=0) for a in (True, False))
    assert average.status is last.status is Status.SEPARATED
    assert average.trace.passes[-1] == last.trace.passes[-1]
    assert not np.allclose(average.w, last.w)


def test_separated_weights_predict_every_example(problem):
    result = Perceptron(averaging=False).solve(problem, max_passes=1000, random_state=0)
    assert result.status is Status.SEPARATED
    for psi, costs in blocks_of(problem):
        assert (psi[costs > 0] @ result.w > 0).all()


def test_average_is_that_of_all_steps():
    toy = random_candidates(5, 4, 3)
    order = []
    snapshots = []
    scores = toy.scores

    def recording(w, i, theta):
        snapshots.append(w.copy())
        order.append(i)
        scores(w, i, theta)

    toy.scores = recording
    result = Perceptron(gap_every=10).solve(toy, max_passes=1, random_state=0)
    after = [*snapshots[1:5], None]
    last = snapshots[4] + toy_step(toy, snapshots[4], order[4])
    after[4] = last
    assert np.allclose(result.w, np.mean(after, axis=0))


def toy_step(toy, w, i):
    return toy.phi[i][0] - toy.phi[i][np.argmax(toy.phi[i] @ w)]


def test_certificates_are_those_of_the_hinge_objective(problem):
    optimum = BCFW(steps="pairwise").solve(problem, 0.3, tol=1e-8, max_passes=1e5).trace.primal[-1]
    result = Perceptron(gap_every=1).solve(problem, 0.3, max_passes=5, random_state=0)
    assert (result.trace.primal >= optimum).all()
    assert (result.trace.dual <= optimum).all()


def test_bounds_and_the_last_weights(problem):
    result = Perceptron().solve(problem, lower=0.0, max_passes=10, random_state=0)
    assert result.w.min() >= 0
    assert result.w.any()


def test_twenty_passes_unless_told_otherwise():
    toy = toy_chains(n=25)  # which no weights separate
    assert Perceptron().solve(toy, random_state=0).trace.passes[-1] == 20
    assert Perceptron().solve(toy, max_passes=12, random_state=0).trace.passes[-1] == 12
