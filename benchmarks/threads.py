"""An oracle pass over all examples on one thread and on two: wall time, the least of many interleaved rounds."""

from __future__ import annotations

import os
import time
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

LEAST_SPEEDUP = 1.5


def time_passes(n_rounds: int) -> list[dict[str, Any]]:
    import numpy as np

    from maxmargin import ChainSVM
    from maxmargin.features import DenseFeatures

    def trained(X: Any, y: Any) -> tuple[Any, Any]:
        log = Log()
        ChainSVM(C=0.1, fit_bias=False, max_passes=3, random_state=0, solver=watched("auto", log)).fit(X, y)
        return log.problem, log.result

    X, y, _, _ = load_ocr("large")
    problem, result = trained(X, y)
    pixels = DenseFeatures(np.concatenate(X).astype(np.float32), problem.features.gram)
    cases = [
        (f"OCR large, {type(problem.features).__name__}", problem, result),
        ("OCR large, DenseFeatures", problem._replace(features=pixels), result),
        ("random, DenseFeatures", *trained(*random_chains(2000, 30, n_labels=20, n_features=100))),
    ]
    return [{"problem": name, **time_case(*case, n_rounds)} for name, *case in cases]


def time_case(problem: Any, result: Any, n_rounds: int) -> dict[str, Any]:
    import numpy as np

    from maxmargin.solvers.objective import Objective

    seconds: dict[int, list[float]] = {1: [], 2: []}
    objectives = {n_threads: Objective(problem, C=0.1, n_jobs=n_threads) for n_threads in seconds}
    gaps, outputs = np.zeros(objectives[1].n), objectives[1].new_outputs()
    for _ in range(n_rounds):
        for n_threads, objective in objectives.items():
            began = time.perf_counter()
            objective.hinge(result.w, result.means, gaps, outputs)
            seconds[n_threads].append(time.perf_counter() - began)
    one, two = (min(times) for times in seconds.values())
    return {"one": one, "two": two, "speedup": one / two}


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
    ]
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
