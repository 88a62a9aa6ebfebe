"""An oracle pass over all examples on one thread and on two: wall time, the least of many interleaved rounds."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.common import (
    Bar,
    Log,
    in_fresh_process,
    load_ocr,
    parse_arguments,
    print_table,
    random_chains,
    report,
    watched,
)

LEAST_SPEEDUP = 1.7
LIMIT = "arithmetic alone: the machine's limit"


def time_passes(n_rounds: int) -> list[dict[str, Any]]:
    import numpy as np

    from maxmargin import ChainSVM
    from maxmargin.features import DenseFeatures
    from maxmargin.solvers.objective.evaluation import Objective

    def trained(X: Any, y: Any) -> tuple[Any, Any]:
        log = Log()
        ChainSVM(C=0.1, fit_intercept=False, max_passes=3, random_state=0, solver=watched("auto", log)).fit(X, y)
        return log.problem, log.result.w

    def oracle_pass(problem: Any, w: Any, n_threads: int) -> Callable[[], Any]:
        objective = Objective(problem, C=0.1, n_jobs=n_threads)
        return partial(objective.evaluate, w, with_gradient=False)

    X, y, _, _ = load_ocr("large")
    problem, w = trained(X, y)
    pixels = DenseFeatures(np.concatenate(X).astype(np.float32), problem.features.gram)
    cases = {
        f"OCR large, {type(problem.features).__name__}": (problem, w),
        "OCR large, DenseFeatures": (problem._replace(features=pixels), w),
        "random, DenseFeatures": trained(*random_chains(2000, 30, n_labels=20, n_features=100)),
    }
    timed = {name: time_both(n_rounds, *(oracle_pass(*case, n) for n in (1, 2))) for name, case in cases.items()}
    timed[LIMIT] = time_both(n_rounds, *(arithmetic(n) for n in (1, 2)))
    return [{"problem": name, **case} for name, case in timed.items()]


def arithmetic(n_threads: int) -> Callable[[], Any]:
    """Work that needs no memory, about as long as an oracle pass and shared out by the same code."""
    import numba
    import numpy as np

    from maxmargin.execution.threads import Ranges

    @numba.njit(nogil=True)
    def iterate(_: int, lo: int, hi: int) -> float:
        value = 0.0
        for k in range(lo, hi):
            value = math.sqrt(value + k)
        return value

    iterate(0, 0, 1)
    return partial(Ranges(np.ones(2_500_000), n_threads).run, iterate)


def time_both(n_rounds: int, one: Callable[[], Any], two: Callable[[], Any]) -> dict[str, float]:
    """The least seconds of each call, and their ratio."""
    seconds: list[list[float]] = [[], []]
    for _ in range(n_rounds):
        for times, call in zip(seconds, (one, two), strict=True):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
    least_one, least_two = (min(times) for times in seconds)
    return {"one": least_one, "two": least_two, "speedup": least_one / least_two}


def main() -> None:
    arguments = parse_arguments(__doc__, ("--rounds", {"type": int, "default": 50}))
    figures = in_fresh_process(time_passes, arguments.rounds)
    rows = [[case["problem"], case["one"] * 1e3, case["two"] * 1e3, case["speedup"]] for case in figures]
    title = f"Oracle passes, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    print_table(title, ["", "1 thread, ms", "2 threads, ms", "speed-up"], rows)
    bars = [
        Bar(
            f"{case['problem']}: two threads are {LEAST_SPEEDUP} times as fast as one",
            f"{case['speedup']:.2f}",
            case["speedup"] >= LEAST_SPEEDUP,
        )
        for case in figures
        if case["problem"] != LIMIT
    ]
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
