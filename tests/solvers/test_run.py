"""The frame of a run: how often it looks at the clock, and what it keeps to one thread."""

from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info

from maxmargin import BCFW
from maxmargin.losses import NAMED
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains

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
