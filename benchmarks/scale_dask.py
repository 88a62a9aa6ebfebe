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
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Bar, load_ocr, print_table, report

LEAST_SPEEDUP = 1.5
PORTIONS = 8
PARTS = 1, 2, 4, 8, 16, 32, 64, 128, 256
BANDWIDTH = 1.25e9  # bytes a second: a network of 10 Gbit/s, the one constant that is not measured


def run(rounds: int, json: Path | None) -> None:
    is_trial = rounds == 1
    size, repeats, kills = ("small", 40, 3) if is_trial else ("large", 15, 20)
    from maxmargin.execution.dask_tasks import connect

    X, y, *_ = load_ocr("small")
    with connect(None, 2) as client:
        client.wait_for_workers(2)
        passes = time_passes(client, size, repeats, rounds)
        killed = kill_workers(client, X[:300], y[:300], kills)
    print_table(
        "Passes of the log loss over Taskar's words, several times: the least of interleaved rounds",
        ("portions", "words", "one process [s]", "two [s]", "times", "a round trip [ms]", "bytes to and fro"),
        [passes.values()],
    )
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
    bars = [
        Bar(
            f"two processes pass over the data {LEAST_SPEEDUP} times as fast as one",
            f"{passes['times']:.2f}",
            passes["times"] >= LEAST_SPEEDUP,
        ),
        Bar("fits whose worker is killed end with equal certificates", f"{killed[2]} of {kills}", killed[2] == kills),
    ]
    report({"passes": passes, "killed": killed, "rounds": needed}, bars, json)


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
    trip = min(interleave([lambda: objectives[1].each(do_nothing)], 20))
    sums = sum_losses_of(here.open(0).objective(objectives[0]._terms), w, True, (), ())
    n_bytes = len(pickle.dumps(w)) + len(pickle.dumps(in_tuples(thin_out, sums)))
    return {
        "portions": len(here.sizes),
        "words": int(here.sizes.sum()),
        "one process": times[0],
        "two processes": times[1],
        "times": times[0] / times[1],
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


def kill_workers(client: Any, X: list, y: list, n_kills: int) -> tuple[int, int, int]:
    """Fits during which a worker is killed: how many there were, ended, and had the certificate of one undisturbed."""
    from maxmargin import LBFGS

    began = time.perf_counter()
    undisturbed = make_model(LBFGS(), 1e-4).fit(X, y, client=client).certificate_
    seconds, rng, n_ended, n_equal = time.perf_counter() - began, random.Random(0), 0, 0
    for _ in range(n_kills):
        client.wait_for_workers(2)
        victim = rng.choice(list(client.run(os.getpid).values()))
        killer = threading.Timer(rng.uniform(0, seconds), kill, (victim,))
        killer.start()
        found = make_model(LBFGS(), 1e-4).fit(X, y, client=client).certificate_
        killer.join()
        n_ended += 1
        n_equal += (found.primal, found.dual) == (undisturbed.primal, undisturbed.dual)
    return n_kills, n_ended, n_equal


def kill(victim: int) -> None:
    """End a process at once, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)


def count_rounds(X: list, y: list, parts: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """The passes that `OneSlack` and `LBFGS` take to a gap of 0.3 %, of so many portions, simulated in one process."""
    from maxmargin import LBFGS, ChainSVM, OneSlack
    from maxmargin.estimators.foundation.fitting import prepare
    from maxmargin.solvers.parted.portions import LocalPortions, Portion

    svm, crf = ChainSVM(C=0.1), make_model()
    found = {}
    for k in parts:
        bounds = [*pairwise(np.linspace(0, len(X), k + 1).astype(int).tolist())]
        passes = []
        for model, solver in ((svm, OneSlack(cache=0)), (crf, LBFGS())):
            union = prepare(model, X, y).encoder
            tasks = [prepare(model, X[lo:hi], y[lo:hi], None, union) for lo, hi in bounds]
            portions = LocalPortions([Portion(task.problem) for task in tasks])
            loss = model._trainer.find_loss(model)
            passes.append(solver.solve(portions, model.C, loss=loss, tol=0.003, random_state=0).trace.passes[-1])
        found[k] = (passes[0], passes[1])
    return found
