"""What benchmarks compare with must be right."""

import time

import pytest

from benchmarks.idal import solve_reference
from benchmarks.loopy_tasks import potts_grids
from maxmargin import RelaxedLoss
from maxmargin.solvers.idal import IDAL


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
