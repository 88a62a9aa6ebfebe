"""Extragradient: the reference optimum, its certificates, divergences by enumeration, and what it refuses."""

import numpy as np
import pytest

from maxmargin.solvers import Extragradient
from maxmargin.solvers.exponentiated.extragradient import Saddle
from maxmargin.solvers.exponentiated.gibbs import attain_gibbs
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Certificate, Status
from tests import naive
from tests.fuzz.certified import blocks_of
from tests.small import make
from tests.toy import random_candidates

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def test_the_reference_optimum():
    problem = random_candidates(6, 4, 0)
    check_solver(Extragradient(), problem, naive.solve(problem.blocks(), 0.1)[1], C=0.1, tol=0.02)


def test_every_certificate_holds():
    problem, weight = toy_chains(n=5, n_labels=2, max_length=3), np.array([1.0, 2.0, 0.5, 0.0, 1.5])
    result = Extragradient(gap_every=1).solve(problem, 1.0, weight, tol=1e-9, max_passes=40)
    blocks = blocks_of(problem)
    assert np.isclose(naive.primal(result.w, blocks, 1.0, weight), result.certificate.primal)
    assert (result.trace.dual <= naive.solve(blocks, 1.0, weight, tol=1e-7)[1] * (1 + 1e-6)).all()
    assert result.trace.gap[-1] < result.trace.gap[2] / 4


def test_points_and_their_divergence():
    problem, rng = toy_chains(n=4, n_labels=2, max_length=3), np.random.default_rng(0)
    run = Run(Objective(problem, 0.7), Limits(max_passes=100), random_state=0)
    saddle = Saddle(run, Certificate(run.w, 1.0, 0.0))
    (W, other), (c, d) = rng.normal(size=(2, run.w.size)), (0.7, 2.0)
    p, q = attain_gibbs(run, W, c), attain_gibbs(run, other, d)
    divergence = entropy = cost = 0.0
    v = np.zeros(run.w.size)
    for psi, costs in blocks_of(problem):
        first, second = c * costs - psi @ W, d * costs - psi @ other
        first, second = first - np.logaddexp.reduce(first), second - np.logaddexp.reduce(second)
        divergence += np.exp(first) @ (first - second) / 4
        entropy -= np.exp(first) @ first / 4
        cost += np.exp(first) @ costs / 4
        v += 0.7 * np.exp(first) @ psi
    assert np.isclose(saddle._divergence(p, q), divergence)
    assert np.isclose(p.entropy, entropy)
    assert np.isclose(p.cost, cost)
    assert np.allclose(p.v, v)


def test_one_output():
    assert Extragradient().solve(random_candidates(3, 1, 0)).status is Status.OPTIMAL


def test_bad_input():
    toy = random_candidates(3, 3, 0)
    with pytest.raises(ValueError, match="gap_every"):
        Extragradient(gap_every=0)
    with pytest.raises(ValueError, match="takes no bounds"):
        Extragradient().solve(toy, lower=0.0)
    with pytest.raises(ValueError, match="minimises the hinge loss, not the log loss"):
        Extragradient().solve(toy, loss="log")
    model, X, y, _ = make("GraphCutSVM")
    with pytest.raises(TypeError, match="Extragradient needs the exp oracle"):
        Extragradient().solve(model._encode(X, y).problem)
