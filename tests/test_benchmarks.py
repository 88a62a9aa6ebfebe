"""What benchmarks compare with must be right."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.cache_regimes import follow, regime
from benchmarks.idal import solve_reference
from benchmarks.loopy_tasks import potts_grids
from benchmarks.nonuniformity import follow_gaps
from benchmarks.path import EVERY
from maxmargin import BCFW, RelaxedLoss
from maxmargin.solvers.relaxed.idal import IDAL
from maxmargin.testing import toy_chains


def test_references_are_certified_or_refused():
    grids, loss = potts_grids(2, 3, seed=0, n_states=2), RelaxedLoss()
    found = solve_reference(grids, 0.1, loss, seconds=60.0)
    assert found.certificate.relative_gap <= 1e-4
    with pytest.raises(RuntimeError, match=r"The reference has a relative gap of .* give more --seconds"):
        solve_reference(grids, 0.1, loss, seconds=1e-9)


def test_the_time_of_references_is_not_that_of_compilation(monkeypatch):
    """The first run on a problem, which compiles, is over when the clock starts."""
    clock, original = [0.0], IDAL.solve

    def solve(self, *args, **options):
        clock[0] += 1000.0 * (clock[0] == 0)
        return original(self, *args, **options)

    monkeypatch.setattr(IDAL, "solve", solve)
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    found = solve_reference(potts_grids(1, 2, seed=0, n_states=2), 0.1, RelaxedLoss(), seconds=1.0)
    assert found.certificate.relative_gap <= 1e-4


def chains():
    return SimpleNamespace(problem=toy_chains(n=30), lower=None, upper=None)


def test_gaps_that_are_never_refreshed(interpreted_loops):
    """Passes of steps alone, where else every certificate is one more."""
    solver = BCFW(sampling="gap", gap_every=1, uniform_share=0.0)
    assert EVERY["gap inf"] == 0
    assert np.allclose(np.diff(follow_gaps(solver, chains(), 8, refreshes=False)["passes"]), 1)
    assert np.allclose(np.diff(follow_gaps(solver, chains(), 8)["passes"]), 2)


def test_regimes_of_a_cache(interpreted_loops):
    found = {
        point: follow(BCFW(sampling="gap", cache=10, cache_factor=point[0], cache_nu=point[1]), chains(), 8, point)
        for point in ((1e-3, 1e-6), (0.1, 1e-6), (1e-6, 0.3), (1e3, 1e-6), (1e-3, 1e3))
    }
    assert [regime(run) for run in found.values()][1:] == ["local", "global", "no hits", "no hits"]
    assert found[1e-3, 1e-6]["hits"] > found[0.1, 1e-6]["hits"] > 0
