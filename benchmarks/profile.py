"""Where the time of a fit goes: OCR-large and CoNLL-2000, as an SVM and as a CRF, beside what the machine could do.

The time of steps, and that of the passes of certificates and of L-BFGS, are those of the fit itself; Python is what is
left of it. What a step is made of is timed apart, by loops over all examples in turn at the weights that were found,
and counted as often as there were steps. The rest of the steps are outputs that are stored and looked up, means, draws,
and examples that come from memory as they are drawn. Bounds are the multiplications and additions that a part cannot do
without, at the machine's best: of numbers that never leave the registers. CPU time of one thread.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any
from unittest import mock

from benchmarks import crf, ocr
from benchmarks.chain_loops import least_seconds, time_multiplications
from benchmarks.chunking import load_chunking
from benchmarks.common import Log, in_fresh_process, load_ocr, parse_arguments, print_table, report, watched

TASKS = ("ocr-large SVM", "ocr-large CRF", "conll SVM", "conll CRF")
PARTS = ("scores", "oracle", "direction", "norm", "spread")


def new_model(task: str, n: int, log: Log) -> Any:
    from maxmargin import ChainSVM

    data, kind = task.split()
    if kind == "CRF":
        return crf.new_model(data, log)
    if data == "ocr-large":
        return ocr.new_model("large", n, log)
    return ChainSVM(C=1.0, tol=0.01, only_observed=True, random_state=0, solver=watched("auto", log))


def load(task: str) -> tuple[list, list]:
    X, y, _, _ = load_ocr("large") if task.startswith("ocr") else load_chunking()
    return X, y


def time_fit(task: str, n_rounds: int) -> dict[str, Any]:
    """Seconds of a whole fit by what they were spent on, and of a pass of each part of its steps."""
    from maxmargin.execution.clock import Clock
    from maxmargin.solvers.frame.run import STEPS

    X, y = load(task)
    load_loops(task, X, y)
    seconds: dict[str, float] = defaultdict(float)
    slices = Clock.slices

    def timed(clock: Clock, kind: Hashable, lo: int, hi: int) -> Iterator[tuple[int, int]]:
        for bounds in slices(clock, kind, lo, hi):
            began = time.process_time()
            yield bounds
            seconds["steps" if kind == STEPS else "passes"] += time.process_time() - began

    log = Log()
    began = time.process_time()
    with mock.patch.object(Clock, "slices", timed):
        model = new_model(task, len(X), log).fit(X, y)
    whole = time.process_time() - began
    seconds["encoding"] = log.began - began
    seconds["Python"] = whole - sum(seconds.values())
    multiplications, bound = count_multiplications(X, len(model.classes_)), time_multiplications(n_rounds)
    return {
        "whole": whole,
        "seconds": dict(seconds),
        "passes": float(model.trace_.passes[-1]),
        "calls": float(model.trace_.oracle_calls[-1]) / len(X),
        "parts": time_parts(log, task.endswith("CRF"), n_rounds),
        "bounds": {name: count * bound for name, count in multiplications.items()},
    }


def load_loops(task: str, X: list, y: list) -> None:
    """From disk, compiling those that are missing."""
    data, kind = task.split()
    if kind == "CRF":
        crf.warm_up_on(data, X, y)
    else:
        new_model(task, len(X), Log()).fit(X[:50], y[:50])


def count_multiplications(X: list, n_labels: int) -> dict[str, int]:
    """Of a pass over all examples, by the parts of a step that multiply."""
    import numpy as np

    entries = sum(np.count_nonzero(x) if isinstance(x, np.ndarray) else x.nnz for x in X)
    pairs = sum(x.shape[0] - 1 for x in X)
    return {"scores": entries * n_labels, "oracle": pairs * n_labels**2}


def time_parts(log: Log, is_crf: bool, n_rounds: int) -> dict[str, float]:
    """Seconds of a pass of each part of a step: by how much it takes longer with it than without."""
    import numpy as np

    from maxmargin.arrays.vectors import clear
    from maxmargin.execution.runner import Runner
    from maxmargin.problem import (
        add_output,
        augment,
        exp_oracle,
        max_oracle,
        new_weights,
        scores,
        spread,
        squared_norm,
        true_output,
    )
    from maxmargin.runtime.dispatch import loop

    @loop
    def decode(problem, w, sizes, n_parts, lo, hi, scratch):
        for i in range(lo, hi):
            theta = scratch.theta[: sizes[i]]
            delta = scratch.delta[: sizes[i]]
            y = scratch.y[: true_output(problem, i).size]
            scores(problem, w, i, theta)
            augment(problem, i, theta)
            if n_parts > 1:
                max_oracle(problem, i, theta, y, scratch.work)
            if n_parts > 2:
                clear(delta)
                add_output(problem, i, y, 1.0, delta)
                add_output(problem, i, true_output(problem, i), -1.0, delta)
            if n_parts > 3:
                squared_norm(problem, i, delta, scratch.work)
            if n_parts > 4:
                spread(problem, w, i, delta, 0.0)

    @loop
    def sum_up(problem, w, sizes, n_parts, lo, hi, scratch):
        for i in range(lo, hi):
            theta = scratch.theta[: sizes[i]]
            delta = scratch.delta[: sizes[i]]
            scores(problem, w, i, theta)
            if n_parts > 1:
                exp_oracle(problem, i, theta, delta, scratch.work)
            if n_parts > 2:
                add_output(problem, i, true_output(problem, i), -1.0, delta)
            if n_parts > 3:
                squared_norm(problem, i, delta, scratch.work)
            if n_parts > 4:
                spread(problem, w, i, delta, 0.0)

    runner = Runner(log.problem, 1)
    w = np.zeros(new_weights(log.problem).size, runner.dtype)
    w[:] = log.result.w
    make_pass = sum_up if is_crf else decode
    seconds = [
        least_seconds(n_rounds, lambda n=n: runner.run(make_pass, w, runner.part_sizes, n))
        for n in range(1, len(PARTS) + 1)
    ]
    return dict(zip(PARTS, np.diff(seconds, prepend=0.0).tolist(), strict=True))


def show(task: str, found: dict[str, Any]) -> None:
    whole, seconds = found["whole"], found["seconds"]
    rows: list[list[Any]] = [[name, seconds[name], f"{seconds[name] / whole:.0%}", None, None] for name in seconds]
    for name in PARTS:
        once, bound = found["parts"][name], found["bounds"].get(name)
        times = found["calls"] if name == "oracle" else found["passes"]
        rows.append(
            [
                f"  {name}",
                once * times,
                f"{once * times / whole:.0%}",
                1e3 * once,
                None if bound is None else 1e3 * bound,
            ]
        )
    title = (
        f"{task}: {whole:.2f} s, {found['passes']:.0f} passes of steps, {found['calls']:.0f} oracle calls an example"
    )
    print_table(title, ["", "CPU s", "share", "ms a pass", "bound ms"], rows)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--rounds", {"type": int, "default": 5}),
        ("--tasks", {"nargs": "+", "choices": TASKS, "default": TASKS}),
    )
    figures = {}
    for task in arguments.tasks:
        figures[task] = in_fresh_process(time_fit, task, arguments.rounds)
        show(task, figures[task])
    report(figures, [], arguments.json)


if __name__ == "__main__":
    main()
