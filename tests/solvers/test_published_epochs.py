"""SVRG and Casimir, by SVRG and by SAGA, on the hinge loss itself: the published steps, and certificates.

As no subgradient is smoothed, plain NumPy can follow them; this is Figure 5b of *Smoother*.
"""

import numpy as np
import pytest

from maxmargin.solvers import BCFW, SVRG, Casimir
from maxmargin.solvers.stochastic.svrg import Epochs
from maxmargin.structures.graphs.loopy import with_oracles
from maxmargin.testing import toy_chains
from tests import naive
from tests.naive import blocks_of
from tests.structures.test_pairwise import grid, make_problem

C, N, L, KAPPA = 0.3, 6, 20.0, 0.4


class InOrder(np.random.Generator):
    """A generator that permutes nothing."""

    def permutation(self, x):
        return np.arange(x) if np.ndim(x) == 0 else x


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=N, n_labels=3, max_length=3)


def published_steps(blocks, w, kappa, n_epochs, is_saga):
    """Prox-centers: an epoch of SVRG or SAGA from the last one on subgradients, its average, and extrapolation."""
    strength = 1 / (N * C)
    root = np.sqrt(strength / (strength + kappa)) if kappa else 1.0
    eta, beta = 1 / (L + strength + kappa), (1 - root) / (1 + root)

    def subgradient(i, w):
        psi, costs = blocks[i]
        return -psi[np.argmax(costs - psi @ w)]

    z, previous = w, w
    for _ in range(n_epochs):
        x, iterates = z, []
        known = np.array([subgradient(i, x) for i in range(N)])
        w = x
        for i in range(N):
            new = subgradient(i, w)
            w = w - eta * (new - known[i] + known.mean(axis=0) + strength * w + kappa * (w - z))
            iterates.append(w)
            if is_saga:
                known[i] = new
        w = np.mean(iterates, axis=0)
        z, previous = w + beta * (w - previous), w
        yield z


@pytest.mark.parametrize(
    ("solver", "kappa"),
    [
        (SVRG(smoothing=None, smoothness=L), 0.0),
        (Casimir(smoothing=None, smoothness=L, kappa=KAPPA), KAPPA),
        (Casimir(smoothing=None, smoothness=L, kappa=KAPPA, schedule="constant"), KAPPA),
        (Casimir(smoothing=None, smoothness=L, kappa=KAPPA, inner="saga"), KAPPA),
    ],
    ids=str,
)
def test_the_steps_are_the_published_ones(monkeypatch, problem, solver, kappa):
    blocks, start, seen = blocks_of(problem), np.random.default_rng(0).normal(size=21), []
    certify = Epochs.certificate
    monkeypatch.setattr(Epochs, "certificate", lambda self: seen.append(self.point) or certify(self))
    solver.solve(problem, C, start=start, tol=1e-12, max_passes=5, random_state=InOrder(np.random.PCG64(0)))
    centers = published_steps(blocks, start, kappa, 5, getattr(solver, "inner", "svrg") == "saga")
    assert len(seen) >= 6
    assert np.allclose(seen[:6], [start, *centers], rtol=1e-9)


@pytest.mark.parametrize("solver", [SVRG(smoothing=None), Casimir(smoothing=None)], ids=str)
def test_certificates_hold_and_the_optimum_is_near(problem, solver):
    optimum = naive.solve(blocks_of(problem), C)[1]
    trace = solver.solve(problem, C, tol=1e-9, max_passes=300, random_state=0).trace
    assert (trace.dual <= optimum + 1e-9).all()
    assert (trace.primal >= optimum - 1e-9).all()
    assert trace.primal.min() <= 1.05 * optimum
    assert trace.dual.max() >= 0.95 * optimum


@pytest.mark.usefixtures("interpreted_loops")
def test_a_max_oracle_that_need_not_find_the_best_is_enough(monkeypatch):
    """Large graphs with cycles have no oracle for the K best, which smoothing needs."""
    monkeypatch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
    graphs = with_oracles(make_problem(np.random.default_rng(0), [grid(2, 2), grid(2, 3)]))
    optimum = BCFW().solve(graphs, C, tol=0.01, max_passes=100, random_state=0).certificate
    trace = Casimir(smoothing=None).solve(graphs, C, tol=0.05, max_passes=100, random_state=0).trace
    assert (trace.dual <= optimum.primal).all()
    assert optimum.dual <= trace.primal.min() <= 1.1 * optimum.primal
