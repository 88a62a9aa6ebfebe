"""Theorem 16 of *Smoother*, from which Corollaries 17 to 20 follow, along runs of Casimir; its extrapolation."""

import numpy as np
import pytest

from maxmargin.solvers import Casimir
from maxmargin.solvers.stochastic import casimir
from maxmargin.solvers.stochastic.casimir import extrapolate
from maxmargin.testing import toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.naive import blocks_of

RANGE = 0.5  # D of l2 smoothing


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3, max_length=3)


def follow(monkeypatch, solver, problem, C, max_passes):
    """Outer iterates w_k with mu_k, kappa_k, alpha_{k-1}, alpha_k and delta_k, as the solver goes through them."""
    steps, latest = [], {}

    def certificate(self):
        latest.update(w=self.point, level=self.level)
        return certify(self)

    def extrapolate_and_record(alpha, kappa, next_kappa, strength):
        following, beta = extrapolate(alpha, kappa, next_kappa, strength)
        steps.append({**latest, "kappa": kappa, "before": alpha, "alpha": following})
        return following, beta

    certify = casimir.Epochs.certificate
    monkeypatch.setattr(casimir.Epochs, "certificate", certificate)
    monkeypatch.setattr(casimir, "extrapolate", extrapolate_and_record)
    solver.solve(problem, C, tol=1e-9, max_passes=max_passes, random_state=0)
    return steps


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["constant", "adaptive"])
@pytest.mark.parametrize("C", [0.5, np.inf])
def test_theorem_16_holds_along_the_run(monkeypatch, problem, schedule, C):
    blocks = blocks_of(problem)
    smoothness = max(np.sum(psi**2, axis=1).max() for psi, _ in blocks) / 0.1
    solver = Casimir(level=1.0, kappa=0.5, smoothness=smoothness, schedule=schedule, stop="gradient")
    strength = 0.0 if np.isinf(C) else 1 / (6 * C)
    finite = 1e4 if np.isinf(C) else C  # without regularization some minimiser may be far away, but none is needed
    best, _ = naive.solve(blocks, finite, max_steps=4000)

    def objective(w):
        hinges = [np.max(costs - psi @ w) for psi, costs in blocks]
        return strength / 2 * np.dot(w, w) + np.mean(hinges)

    steps = follow(monkeypatch, solver, problem, C, max_passes=2000)
    steps = [step for step in steps if step["level"] >= 0.1]  # the smoothness given covers no lower level
    assert len(steps) >= 4
    q = strength / (strength + 0.5)
    first = steps[0]
    alpha0 = first["before"]
    excess = objective(np.zeros(21)) - objective(best)  # the theorem holds with any point in place of the minimiser
    distance = ((0.5 + strength) * alpha0**2 - strength * alpha0) / (2 * (1 - alpha0)) * np.dot(best, best)
    bound, previous_level = excess + distance, 2 * first["level"]
    for k, step in enumerate(steps, 1):
        delta = np.sqrt(q) / (2 - np.sqrt(q)) if strength else 1 / (k + 1) ** 2
        slack = (previous_level - (1 - delta) * step["level"]) * RANGE
        bound = ((1 - step["before"]) * bound + slack) / (1 - delta)
        previous_level = step["level"]
        value = objective(step["w"]) - objective(best)
        assert value <= bound + step["level"] * RANGE + 1e-9, (k, value, bound)


def test_extrapolation_solves_its_equation():
    for alpha, kappa, following, strength in [(0.3, 1.0, 2.0, 0.1), (0.618, 0.5, 1.0, 0.0), (0.9, 2.0, 2.0, 1.0)]:
        new, beta = extrapolate(alpha, kappa, following, strength)
        assert 0 < new < 1
        left = new**2 * (following + strength)
        right = (1 - new) * alpha**2 * (kappa + strength) + new * strength
        assert np.isclose(left, right)
        assert np.isclose(
            beta,
            alpha * (1 - alpha) * (kappa + strength) / (alpha**2 * (kappa + strength) + new * (following + strength)),
        )
    q = 0.2
    assert np.isclose(extrapolate(np.sqrt(q), 4.0, 4.0, 1.0)[0], np.sqrt(q))  # a fixed point


def test_momentum_that_leads_astray_falls_back_on_the_last_solution(monkeypatch, problem):
    """With wild extrapolation every step starts where the last one ended, as plain proximal points do."""
    starts, snapshot = [], casimir.Epochs.snapshot

    def record(self, *candidates, **options):
        snapshot(self, *candidates, **options)
        if len(candidates) == 2:
            starts.append([np.array_equal(self.point, w) for w in candidates])

    monkeypatch.setattr(casimir, "extrapolate", lambda alpha, *rest: (alpha, 1e3))
    monkeypatch.setattr(casimir.Epochs, "snapshot", record)
    result = Casimir().solve(problem, 0.5, tol=1e-2, max_passes=2000, random_state=0)
    assert result.status is Status.OPTIMAL
    assert sum(fell_back and not kept for kept, fell_back in starts) > len(starts) / 3


def test_a_constant_level_falls_once_it_is_solved_unless_given(monkeypatch, problem):
    levels = [step["level"] for step in follow(monkeypatch, Casimir(schedule="constant"), problem, 0.5, max_passes=800)]
    assert len(set(levels)) < len(levels) / 4  # it stays for many steps
    assert sorted(levels, reverse=True) == levels
    assert levels[-1] < levels[0] / 4
    given = Casimir(schedule="constant", level=0.5)
    assert {step["level"] for step in follow(monkeypatch, given, problem, 0.5, max_passes=100)} == {0.5}
