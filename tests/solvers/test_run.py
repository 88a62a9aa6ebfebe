"""The frame of a run: how often it looks at the clock, and what it keeps to one thread."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from maxmargin import BCFW
from maxmargin.losses import NAMED
from maxmargin.solvers import Solver
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains
from maxmargin.trace import Certificate, Status

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.mark.parametrize("step_seconds", [2**-20, 2**-10, 1.0])
def test_slices_are_as_long_as_steps_allow(monkeypatch, step_seconds):
    """By the second pass on short steps make one slice, so that small data need few calls of loops."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("maxmargin.execution.clock.time", SimpleNamespace(perf_counter=lambda: clock.now))
    run = Run(Objective(toy_chains(), loss=NAMED["hinge"]), Limits(max_passes=1e9), random_state=0)
    passes = []
    for _ in range(2):
        passes.append([])
        for lo, hi in run.slices(1000):
            clock.now += step_seconds * (hi - lo)
            passes[-1].append(hi - lo)
    assert [sum(sizes) for sizes in passes] == [1000, 1000]
    assert passes[0][0] == 1
    assert max(passes[1]) * step_seconds <= max(0.1, step_seconds) * (1 + 1e-9)
    assert len(passes[1]) == {2**-20: 1, 2**-10: 10, 1.0: 1000}[step_seconds]


def test_products_of_vectors_stay_on_one_thread():
    seen = []

    def look(trace):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

    BCFW().solve(toy_chains(), max_passes=2, callback=look)
    assert seen
    assert set(seen) == {1}


@dataclass(frozen=True)
class Stuck(Solver):
    """One that stays where it begins, with a known gap, and says why it ends."""

    gap: float = 0.0
    verdict: Status | None = None

    def iterate(self, run):
        run.w[:] = run.start_weights()
        run.verdict = self.verdict
        value = run.evaluate(run.w).value
        yield Certificate(run.w, value, value - self.gap)


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_gaps_that_cannot_be_closed_are_judged_beside_what_the_objective_is_without_a_prior(share):
    """With the prior the objective is the mean loss alone, without it the same weights have a large one."""
    problem, C, tol = toy_chains(), 1e-3, 1e-2
    objective = Objective(problem, C, loss=NAMED["hinge"])
    at = np.random.default_rng(0).normal(size=objective.n_weights)
    loss = objective.evaluate(at).value - objective.regularization * at @ at / 2
    plain = objective.evaluate(at).value
    assert 10 * loss < plain
    options = {"start": at, "tol": tol, "max_passes": 1e-9}
    stuck = Stuck(share * tol * plain, Status.STALLED)
    for prior, expected in ((None, plain), (at, loss)):
        result = stuck.solve(problem, C, prior=prior, **options)
        assert result.certificate.primal == pytest.approx(expected)
        assert result.status is (Status.OPTIMAL if share < 1 else Status.STALLED)
        assert (prior is not None and share < 1) == any("without its prior" in note for note in result.trace.notes)
    assert Stuck(share * tol * plain).solve(problem, C, prior=at, **options).status is Status.MAX_PASSES
