"""No solver runs without looking at its limits: within passes, and between passes of the oracle."""

import itertools
import time

import numpy as np
import pytest

from maxmargin import CandidateSVM
from maxmargin.losses import NAMED
from maxmargin.solvers import LBFGS, SGD, SVRG, Auto, Casimir, FrankWolfe, NSlack, OneSlack
from maxmargin.solvers.batch.one_slack import OutputCache
from maxmargin.solvers.block_coordinate.block_state import BlockState
from maxmargin.solvers.exponentiated.exponentiated_gradient import ExponentiatedGradient
from maxmargin.trace import Status
from tests.toy import Candidates


class Slow(Candidates):
    """Every oracle takes `seconds` by a clock on which everything else takes next to no time."""

    now, seconds = 0.0, 0.05

    def max_oracle(self, i, theta, y, work):
        self.now += self.seconds
        return super().max_oracle(i, theta, y, work)

    def topk_oracle(self, i, theta, outputs, values, level, work):
        self.now += self.seconds
        return super().topk_oracle(i, theta, outputs, values, level, work)

    def exp_oracle(self, i, theta, mu, work):
        self.now += self.seconds
        return super().exp_oracle(i, theta, mu, work)

    def clock(self):
        self.now += 1e-7
        return self.now


@pytest.fixture
def slow(monkeypatch):
    """Forty examples, of which a pass takes two seconds."""
    rng = np.random.default_rng(0)
    problem = Slow([rng.normal(size=(3, 2)) for _ in range(40)], [np.r_[0.0, 1, 1]] * 40)
    monkeypatch.setattr(time, "perf_counter", problem.clock)
    return problem


SMOOTH = [LBFGS(), Auto(), ExponentiatedGradient()]


@pytest.mark.parametrize("seconds", [0.5, 5.0, 8.0])
@pytest.mark.parametrize("solver", [Casimir(), SVRG(), SGD(), OneSlack(), NSlack(), FrankWolfe(), *SMOOTH], ids=str)
def test_time_limits_hold_within_passes(slow, solver, seconds):
    loss = NAMED["log" if solver in SMOOTH else "hinge"]
    result = solver.solve(slow, 100.0, loss=loss, tol=1e-15, max_passes=1e9, time_limit=seconds, random_state=0)
    assert slow.now <= seconds + 1.0 + 2 * slow.seconds  # a second more, where a pass takes longer than it did before
    assert result.status is Status.TIMEOUT
    assert np.isfinite(result.certificate.primal) == (seconds > 2.0)


@pytest.mark.parametrize("solver", [Casimir(), LBFGS()], ids=str)
def test_a_callback_ends_a_run_within_the_next_pass(slow, solver):
    result = solver.solve(slow, 100.0, tol=1e-9, callback=lambda trace: len(trace) == 2, random_state=0)
    assert result.status is Status.INTERRUPTED
    assert len(result.trace) == 2


@pytest.mark.parametrize("C", [3e3, 1e6])
def test_cuts_from_the_cache_that_change_nothing_are_not_tried_again(monkeypatch, C):
    """Where rounding is all that is left between the cuts and the minimiser, the next cut is one of the oracle."""
    evaluate, looks = OutputCache.evaluate, itertools.count()

    def counted(cache, w):
        assert next(looks) < 3000, "the cache is asked for ever"
        return evaluate(cache, w)

    monkeypatch.setattr(OutputCache, "evaluate", counted)
    for seed in range(2, 5):
        rng = np.random.default_rng(seed)
        X = [rng.normal(size=(3, 2)) for _ in range(2)]
        model = CandidateSVM(C=C, solver="one-slack", dtype="float64", max_passes=50).fit(X, [0, 1])
        assert model.status_ in (Status.OPTIMAL, Status.MAX_PASSES, Status.STALLED)
        assert model.n_iter_ <= 50


@pytest.mark.parametrize("n", [2, 4])
def test_restricted_problems_of_few_examples_take_few_calls_of_kernels(monkeypatch, n):
    """At large C they take many steps, each of which takes far less time than a call."""
    rng, calls = np.random.default_rng(0), []
    step = BlockState.step
    monkeypatch.setattr(BlockState, "step", lambda state, order: calls.append(len(order)) or step(state, order))
    X, y = [rng.normal(size=(4, 3)) for _ in range(n)], rng.integers(4, size=n)
    model = CandidateSVM(C=1000.0, solver="n-slack", dtype="float64", max_passes=300).fit(X, list(y))
    assert model.status_ is Status.OPTIMAL
    assert len(calls) <= sum(calls) / 50
