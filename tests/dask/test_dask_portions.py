"""Solvers on a cluster of two processes: who computes what changes nothing, nor who dies or is told to stop."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from maxmargin.solvers import BCFW, LBFGS, Auto, FrankWolfe, OneSlack
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.parted.portions import LocalPortions
from maxmargin.trace import Status
from tests.dask.slow import N_EACH, N_PORTIONS, make_portion
from tests.solvers.test_parted import Elsewhere

dask_portions = pytest.importorskip("maxmargin.solvers.parted.dask_portions", reason="the extra dask is not installed")
dask_tasks = pytest.importorskip("maxmargin.execution.dask_tasks")

SOLVERS = [(LBFGS(), "log"), (OneSlack(), "hinge"), (FrankWolfe(), "hinge"), (BCFW(steps="pairwise"), "hinge")]


def here():
    """The portions in this process, asked as those of a cluster are."""
    return Elsewhere(LocalPortions([make_portion(k, 0.0) for k in range(N_PORTIONS)]))


def on(client, seconds=0.0):
    tasks = dask_tasks.Tasks(client)
    made = [tasks.submit(make_portion, k, seconds) for k in range(N_PORTIONS)]
    return dask_portions.DaskPortions(tasks, made, np.full(N_PORTIONS, N_EACH), make_portion(0, 0.0).problem)


def is_idle(client, within=5.0):
    """Whether the cluster has no work left."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if not any(client.processing().values()):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("solver", "loss"), SOLVERS, ids=str)
def test_two_processes_make_the_same_iterates_as_one(client, monkeypatch, solver, loss):
    monkeypatch.setattr(dask_portions, "CHANGES", 3)  # so that what is kept comes here and goes back
    options = {"loss": loss, "tol": 1e-3, "max_passes": 10, "random_state": 0}
    ours, theirs = (solver.solve(portions, **options) for portions in (here(), on(client)))
    assert np.array_equal(ours.w, theirs.w)
    assert np.array_equal(ours.trace.dual, theirs.trace.dual)
    assert is_idle(client)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_certificate_whoever_is_killed(client, seed):
    """Kill -9, at random moments of a fit, of a worker that has portions, and what is kept of them."""
    rng = np.random.default_rng(seed)
    solver, loss = SOLVERS[seed % len(SOLVERS)]
    options = {"loss": loss, "tol": 1e-9, "max_passes": 12, "random_state": 0}
    expected = solver.solve(here(), **options)
    workers = client.run(os.getpid)
    victim = list(workers.values())[int(rng.integers(len(workers)))]
    killer = threading.Timer(float(rng.uniform(0.05, 1.0)), os.kill, (victim, signal.SIGKILL))
    portions = on(client, seconds=0.01)
    killer.start()
    found = solver.solve(portions, **options)
    killer.join()
    assert np.array_equal(found.w, expected.w)
    assert found.certificate.primal == expected.certificate.primal
    assert found.certificate.dual == expected.certificate.dual


def test_ctrl_c_ends_the_work_of_the_cluster(client):
    portions = on(client, seconds=0.5)  # a pass would take five seconds
    began = time.monotonic()
    pressed = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    pressed.start()
    found = LBFGS().solve(portions, tol=1e-9)
    pressed.join()
    assert found.status is Status.INTERRUPTED
    assert is_idle(client)
    assert time.monotonic() - began < 30


def test_a_run_that_is_killed_leaves_nothing_running(client):
    code = (
        "import sys; from distributed import Client; from maxmargin.solvers import LBFGS; "
        "from tests.dask.test_dask_portions import on; LBFGS().solve(on(Client(sys.argv[1]), 0.5), tol=1e-9)"
    )
    with subprocess.Popen([sys.executable, "-c", code, client.scheduler.address]) as run:
        until = time.monotonic() + 60
        while not any("call" in key for keys in client.processing().values() for key in keys):
            assert time.monotonic() < until
            time.sleep(0.05)
        run.kill()
    assert is_idle(client)


def test_time_limits_hold_on_the_cluster(client):
    found = FrankWolfe().solve(on(client, seconds=0.02), tol=1e-12, time_limit=1.5)
    assert found.status is Status.TIMEOUT
    assert np.isfinite(found.certificate.primal)
    assert is_idle(client)


def test_early_stopping_ends_the_work_of_the_cluster(client):
    judge = HeldOut(lambda w: -float(np.abs(w).max()), patience=2)
    assert LBFGS().solve(on(client), held_out=judge, tol=1e-9).status is Status.EARLY_STOPPED
    assert is_idle(client)


def test_errors_of_tasks_are_told_and_leave_nothing_running(client):
    tasks = dask_tasks.Tasks(client)
    futures = [tasks.submit(int, "no number"), tasks.submit(time.sleep, 0.2), tasks.submit(time.sleep, 0.3)]
    others = [tasks.submit(time.sleep, 0.2) for _ in range(100)]  # ten seconds
    with pytest.raises(ValueError, match="no number"):
        tasks.results(futures)
    assert is_idle(client)
    del others  # which were held until here


def test_a_fit_that_is_dropped_says_so(client):
    tasks = dask_tasks.Tasks(client)
    futures = [tasks.submit(time.sleep, 0.5)]
    threading.Timer(0.2, client.cancel, [futures]).start()
    with pytest.raises(ConnectionError, match="dropped the fit"):
        tasks.results(futures)


def die_once(path):
    """Take the worker along, the first time."""
    if not path.exists():
        path.touch()
        os._exit(1)
    return 1


def test_tasks_that_nobody_has_any_more_are_tried_again_after_their_workers_died(
    cluster, client, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    tasks = dask_tasks.Tasks(client)
    assert tasks.results([tasks.submit(dask_tasks.hold, tasks.submit(die_once, tmp_path / "died"))]) == [1]


def test_checkpoints_of_fits_on_a_cluster_go_on(client, tmp_path):
    options, path = {"tol": 1e-9, "random_state": 0}, tmp_path / "run"
    whole = FrankWolfe().solve(here(), max_passes=5, **options)
    FrankWolfe().solve(on(client), max_passes=2, checkpoint=(path, 0), **options)
    resumed = FrankWolfe().solve(on(client), max_passes=5, checkpoint=(path, 0), **options)
    assert np.array_equal(resumed.w, whole.w)
    assert resumed.trace.primal.tolist() == whole.trace.primal.tolist()


@pytest.mark.parametrize("trip", [0.0, np.inf])
def test_auto_makes_the_same_steps_wherever_passes_take_less_time(client, monkeypatch, trip):
    monkeypatch.setattr(dask_portions, "seconds_of", lambda function: trip)  # here, not on workers
    found = Auto().solve(on(client), loss="log", tol=1e-3)
    assert np.array_equal(found.w, LBFGS().solve(here(), tol=1e-3).w)
    assert any("Brought" in note for note in found.trace.notes) == (trip > 0)


def test_only_the_coordinates_that_a_portion_has_are_sent():
    vector = np.zeros(5000)
    vector[[3, 4000]] = 1.0, 2.0
    thin = dask_portions.thin_out(vector)
    assert thin.values.size == 2
    assert np.array_equal(dask_portions.fill_in(thin), vector)
    assert dask_portions.thin_out(vector + 1) is not thin
