"""Fits on a Dask cluster: passes per second of two processes, workers that are killed, and a model of time.

`python -m benchmarks.scale --part dask` runs it; with `--rounds 1` a short trial, of less data and three kills.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Bar, load_ocr, print_table, report
from maxmargin.estimators.foundation.fitting import prepare
from maxmargin.solvers.parted.portions import LocalPortions, Portion, Portions

LEAST_SPEEDUP = 1.5
PORTIONS = 8
PARTS = 1, 2, 4, 8, 16, 32, 64, 128, 256
BLOCK_PARTS = 2, 4, 16
BANDWIDTH = 1.25e9  # bytes a second: a network of 10 Gbit/s, the one constant that is not measured


def run(rounds: int, json: Path | None) -> None:
    is_trial = rounds == 1
    size, repeats, kills = ("small", 40, 3) if is_trial else ("large", 56, 20)
    from maxmargin.execution.dask_tasks import connect

    X, y, *_ = load_ocr("small")
    with connect(None, 2) as client:
        client.wait_for_workers(2)
        passes = time_passes(client, size, repeats, rounds)
        killed = kill_workers(client, X[:300], y[:300], kills)
        ends = end_early(client, X[:300], y[:300])
    print_table(
        "Passes of the log loss over Taskar's words, several times: the least of interleaved rounds",
        ("portions", "words", "one process [s]", "two [s]", "times", "by CPU", "a round trip [ms]", "bytes to and fro"),
        [passes.values()],
    )
    print(f"Load average {os.getloadavg()[0]:.1f}; by CPU: as if every process had a core of its own.")
    print_table("kill -9 of a worker at random moments", ("fits", "that ended", "with equal certificates"), [killed])
    needed = count_rounds(X, y, PARTS[::4] if is_trial else PARTS)
    work, latency = passes["one process"] / passes["words"], passes["round trip"] / 1000
    print_table(
        "A model, not a measurement: rounds to a gap of 0.3 % (counted, on 626 words), and seconds of 1,000,000 words "
        f"on as many machines = rounds x (work + bytes / bandwidth + latency), at {BANDWIDTH:g} bytes a second",
        ("machines", "a round [s]", "rounds of OneSlack", "seconds", "rounds of LBFGS", "seconds"),
        [
            (k, each, found[0], found[0] * each, found[1], found[1] * each)
            for k, found in needed.items()
            for each in [round_seconds(k, work, passes["bytes"], latency)]
        ],
    )
    print_table(
        "Passes of BCFW to the same gap, of ten rounds each (counted, on 626 words)",
        ("portions", "passes"),
        [(k, count_block_passes(X, y, k)) for k in (BLOCK_PARTS[:1] if is_trial else BLOCK_PARTS)],
    )
    bars = [
        Bar(
            f"two processes pass over the data {LEAST_SPEEDUP} times as fast as one",
            f"{passes['times']:.2f}",
            passes["times"] >= LEAST_SPEEDUP,
        ),
        Bar(
            "a pass of one process takes about a second", f"{passes['one process']:.2f} s", passes["one process"] > 0.8
        ),
        Bar("fits whose worker is killed end with equal certificates", f"{killed[2]} of {kills}", killed[2] == kills),
        *(Bar(claim, "", holds) for claim, holds in ends.items()),
    ]
    report({"passes": passes, "killed": killed, "ends": ends, "rounds": needed}, bars, json)


def round_seconds(machines: int, per_example: float, n_bytes: float, latency: float) -> float:
    """Of 1,000,000 examples: each machine has its share, and one sums up what the others send."""
    return 1e6 * per_example / machines + machines * n_bytes / BANDWIDTH + latency


def make_model(solver: Any = "auto", tol: float = 0.003) -> Any:
    from maxmargin import ChainCRF

    return ChainCRF(C=0.5, solver=solver, tol=tol, dtype="float32", random_state=0)


def words_of(k: int, size: str, repeats: int) -> tuple[list, list]:
    """X and y of portion k, read by whoever has it."""
    X, y, *_ = load_ocr(size)
    return X[k::PORTIONS] * repeats, y[k::PORTIONS] * repeats


def time_passes(client: Any, size: str, repeats: int, n_rounds: int) -> dict[str, Any]:
    """The wall time of a pass of `evaluate`, in one process and on the cluster, and what a round moves."""
    import dask

    from maxmargin.estimators.foundation.clustered import prepare_on
    from maxmargin.solvers.parted.dask_portions import do_nothing, thin_out
    from maxmargin.solvers.parted.parted_objective import PartedObjective, sum_losses_of
    from maxmargin.solvers.parted.portions import LocalPortions, in_tuples

    model = make_model()
    words = [dask.delayed(words_of)(k, size, repeats) for k in range(PORTIONS)]
    there = prepare_on(client, model, words, None, None, None, {}).problem
    here = LocalPortions(there.tasks.results(there.portions))
    objectives = [PartedObjective(portions, 0.5, loss=model._trainer.find_loss(model)) for portions in (here, there)]
    w = np.random.default_rng(0).normal(size=objectives[0].n_weights).astype(np.float32)
    times = interleave([lambda each=each: each.evaluate(w) for each in objectives], n_rounds)
    cpu = [least_cpu(client, partial(each.evaluate, w), n_rounds) for each in objectives]
    trip = min(interleave([lambda: objectives[1].each(do_nothing)], 20))
    sums = sum_losses_of(here.open(0).objective(objectives[0]._terms), w, (), ())
    n_bytes = len(pickle.dumps(w)) + len(pickle.dumps(in_tuples(thin_out, sums)))
    return {
        "portions": len(here.sizes),
        "words": int(here.sizes.sum()),
        "one process": times[0],
        "two processes": times[1],
        "times": times[0] / times[1],
        "times by CPU": cpu[0] / cpu[1],
        "round trip": 1000 * trip,
        "bytes": n_bytes,
    }


def interleave(calls: list[Callable[[], Any]], n_rounds: int) -> list[float]:
    """The least wall time of each call, in rounds over all of them, after one that may compile."""
    least = [np.inf] * len(calls)
    for k in range(n_rounds + 1):
        for i, call in enumerate(calls):
            began = time.perf_counter()
            call()
            taken = time.perf_counter() - began
            least[i] = min(least[i], taken) if k else np.inf
    return least


def least_cpu(client: Any, call: Callable[[], object], n_rounds: int) -> float:
    """The least CPU time of a call, here and on the worker with most of it: the wall time, were cores free."""
    least = np.inf
    for _ in range(n_rounds):
        before, began = client.run(time.process_time), time.process_time()
        call()
        here = time.process_time() - began
        after = client.run(time.process_time)
        least = min(least, here + max(after[worker] - before[worker] for worker in before))
    return least


def kill_workers(client: Any, X: list, y: list, n_kills: int) -> tuple[int, int, int]:
    """Fits during which a worker is killed: how many there were, ended, and had the certificate of one undisturbed."""
    from maxmargin import LBFGS

    began = time.perf_counter()
    undisturbed = make_model(LBFGS(), 1e-4).fit(X, y, client=client).certificate_
    seconds, rng, n_ended, n_equal = time.perf_counter() - began, random.Random(0), 0, 0
    for _ in range(n_kills):
        wait_for_both(client)
        victim = rng.choice([nanny.pid for nanny in client.cluster.workers.values() if nanny.pid])
        killer = threading.Timer(rng.uniform(0, seconds), kill, (victim,))
        killer.start()
        found = make_model(LBFGS(), 1e-4).fit(X, y, client=client).certificate_
        killer.join()
        n_ended += 1
        n_equal += (found.primal, found.dual) == (undisturbed.primal, undisturbed.dual)
    return n_kills, n_ended, n_equal


def wait_for_both(client: Any) -> None:
    """Wait for two workers; Dask gives one up that dies while it starts, so that another is asked for."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        client.cluster.scale(1)
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=60)


def end_early(client: Any, X: list, y: list) -> dict[str, bool]:
    """Whether weights are those of one process, and whether fits that are told to stop leave the cluster idle."""
    from maxmargin import LBFGS
    from maxmargin.trace import Status

    def fit(tol: float, **options: Any) -> Any:
        return make_model(LBFGS(), tol).fit(X, y, client=client, **options)

    alone, there = make_model(LBFGS(), 1e-4).fit(X, y), fit(1e-4)
    stopped = fit(1e-9, callback=lambda trace: len(trace.primal) > 3)
    was_idle = is_idle(client)
    interrupted = fit(1e-9, callback=press_in_third_pass)
    return {
        "weights are those of one process, up to 1e-3 of the largest": bool(
            np.abs(alone._w - there._w).max() <= 1e-3 * np.abs(alone._w).max()
        ),
        "a fit that a callback stops leaves the cluster idle": stopped.status_ is Status.INTERRUPTED and was_idle,
        "a fit that Ctrl-C ends leaves the cluster idle": interrupted.status_ is Status.INTERRUPTED and is_idle(client),
    }


def press_in_third_pass(trace: Any) -> None:
    """Ctrl-C, soon after a pass has begun."""
    if len(trace.primal) == 3:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()


def is_idle(client: Any, within: float = 5.0) -> bool:
    """Whether the cluster has no work left, after so many seconds at most."""
    until = time.monotonic() + within
    while any(client.processing().values()):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def kill(victim: int) -> None:
    """End a process at once, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)


def cut(model: Any, X: list, y: list, k: int) -> LocalPortions:
    """Data in so many portions, in this process."""
    union = prepare(model, X, y).encoder
    bounds = pairwise(np.linspace(0, len(X), k + 1).astype(int).tolist())
    return LocalPortions([Portion(prepare(model, X[lo:hi], y[lo:hi], None, union).problem) for lo, hi in bounds])


def count_rounds(X: list, y: list, parts: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """The passes that `OneSlack` and `LBFGS` take to a gap of 0.3 %, of so many portions, simulated in one process."""
    from maxmargin import LBFGS, ChainSVM, OneSlack

    found = {}
    for k in parts:
        passes = []
        for model, solver in ((ChainSVM(C=0.1), OneSlack(cache=0)), (make_model(), LBFGS())):
            loss = model._trainer.find_loss(model)
            result = solver.solve(cut(model, X, y, k), model.C, loss=loss, tol=0.003, random_state=0)
            passes.append(result.trace.passes[-1])
        found[k] = (passes[0], passes[1])
    return found


class Elsewhere(Portions):
    """Portions that are at hand, but do not say so: solvers ask them as those of a cluster."""

    def __init__(self, near: LocalPortions) -> None:
        self.near, self.sizes, self.like = near, near.sizes, near.like

    def each(self, *args: Any, **options: Any) -> Any:
        return self.near.each(*args, **options)

    def keep(self, *args: Any, **options: Any) -> Any:
        return self.near.keep(*args, **options)

    def identity(self) -> object:
        return self.near.identity()


def count_block_passes(X: list, y: list, k: int) -> float:
    """The passes that `BCFW` takes to a gap of 0.3 %, of so many portions that step side by side."""
    from maxmargin import BCFW, ChainSVM

    portions = Elsewhere(cut(ChainSVM(), X, y, k))
    solver = BCFW(steps="pairwise", sampling="gap")
    return solver.solve(portions, 0.1, tol=0.003, max_passes=800, random_state=0).trace.passes[-1]
