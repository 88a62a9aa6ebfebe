"""Where the time of a fit goes: OCR-large and CoNLL-2000, as an SVM and as a CRF, beside what the machine could do.

The time of steps and of encoding is that of the fit itself, as is that of certificates, which are all passes but those
of steps, those of L-BFGS included; Python is what is left of it. What a step is made of is timed apart, by loops over
all examples at the weights that were found, in an order drawn at random, as those of steps are, and counted as often as
there were steps. Bookkeeping is the rest of the steps: outputs or means that are stored and looked up, draws, and that
examples drawn by their gaps are longer than others. Bounds are what a part cannot do without, at the machine's best:
its multiplications and additions, of numbers that never leave the registers, or what it reads and writes besides the
weights, as fast as memory is copied, whichever takes longer. CPU time of one thread.
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
NEXT_TO_NOTHING = 1e-20  # what directions are spread by: nothing at all would be skipped
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
            seconds["steps" if kind == STEPS else "certificates"] += time.process_time() - began

    log = Log()
    began = time.process_time()
    with mock.patch.object(Clock, "slices", timed):
        model = new_model(task, len(X), log).fit(X, y)
    whole = time.process_time() - began
    seconds["encoding"] = log.began - began
    seconds["Python"] = whole - sum(seconds.values())
    is_crf = task.endswith("CRF")
    problem = as_stepped_on(log.problem, is_crf)
    return {
        "whole": whole,
        "seconds": dict(seconds),
        "passes": float(model.trace_.passes[-1]),
        "calls": float(model.trace_.oracle_calls[-1]) / len(X),
        "certificates": len(model.trace_),
        "parts": time_parts(problem, log.result.w, is_crf, n_rounds),
        "bounds": find_bounds(problem, X, len(model.classes_), is_crf, n_rounds),
    }


def as_stepped_on(problem: Any, is_crf: bool) -> Any:
    """The problem that steps are taken on: that of a CRF is made ready for them in float32."""
    import numpy as np

    from maxmargin.problem import prepare

    return prepare(getattr(problem, "problem", problem), np.float32) if is_crf else problem


def load_loops(task: str, X: list, y: list) -> None:
    """From disk, compiling those that are missing."""
    data, kind = task.split()
    if kind == "CRF":
        crf.warm_up_on(data, X, y)
    else:
        new_model(task, len(X), Log()).fit(X[:50], y[:50])


def find_bounds(problem: Any, X: list, n_labels: int, is_crf: bool, n_rounds: int) -> dict[str, float]:
    """Seconds that a pass of each part takes at least: for its multiplications, or for what it reads and writes."""
    import numpy as np

    from maxmargin.problem import part_sizes

    features = getattr(problem, "problem", problem).features
    lengths = np.array([x.shape[0] for x in X])
    entries = sum(np.count_nonzero(x) if isinstance(x, np.ndarray) else x.nnz for x in X)
    sweeps = 3 if is_crf else 1  # of the table of transitions: forward, backward and their counts
    gram = getattr(features, "gram", None)
    n_read = bytes_of(features) - bytes_of(gram)
    multiplications = {
        "scores": entries * n_labels,
        "oracle": sweeps * int(lengths.sum() - len(X)) * n_labels**2,
        "norm": int((lengths * (lengths + 1) // 2).sum()) * n_labels,
        "spread": entries * n_labels,
    }
    traffic = {"scores": n_read, "norm": bytes_of(gram), "spread": n_read}
    if is_crf:  # potentials and means of all parts are read and written in steps
        traffic["bookkeeping"] = 4 * 4 * int(part_sizes(problem).sum())
    once, byte = time_multiplications(n_rounds), time_bytes(n_rounds)
    return {
        name: max(once * multiplications.get(name, 0), byte * traffic.get(name, 0))
        for name in {*multiplications, *traffic}
    }


def bytes_of(value: Any) -> int:
    """Of all arrays in a NamedTuple, and in those inside it."""
    return value.nbytes if hasattr(value, "nbytes") else sum(map(bytes_of, value)) if isinstance(value, tuple) else 0


def time_bytes(n_rounds: int) -> float:
    """Seconds to read or write a byte of memory, as it is copied."""
    import numpy as np

    source = np.ones(2**26, np.uint8)
    target = np.zeros_like(source)
    return least_seconds(n_rounds, lambda: np.copyto(target, source)) / (2 * source.nbytes)


def time_parts(problem: Any, weights: Any, is_crf: bool, n_rounds: int) -> dict[str, float]:
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
    def decode(problem, w, sizes, order, n_parts, lo, hi, scratch):
        for k in range(lo, hi):
            i = order[k]
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
                spread(problem, w, i, delta, NEXT_TO_NOTHING)

    @loop
    def sum_up(problem, w, sizes, order, n_parts, lo, hi, scratch):
        for k in range(lo, hi):
            i = order[k]
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
                spread(problem, w, i, delta, NEXT_TO_NOTHING)

    runner = Runner(problem, 1)
    w = np.zeros(new_weights(problem).size, runner.dtype)
    w[:] = weights
    order = np.random.default_rng(0).permutation(runner.n)
    make_pass = sum_up if is_crf else decode
    seconds = [
        least_seconds(n_rounds, lambda n=n: runner.run(make_pass, w, runner.part_sizes, order, n))
        for n in range(1, len(PARTS) + 1)
    ]
    return dict(zip(PARTS, np.diff(seconds, prepend=0.0).tolist(), strict=True))


def show(task: str, found: dict[str, Any]) -> None:
    whole, seconds = found["whole"], found["seconds"]
    rows: list[list[Any]] = [[name, seconds[name], f"{seconds[name] / whole:.0%}", None, None] for name in seconds]
    rest = seconds["steps"]
    of_certificates = found["certificates"] * (2 if task.endswith("CRF") else 1)  # a primal and, of CRFs, a dual value
    times = {"oracle": max(found["calls"] - of_certificates, found["passes"])}
    for name in (*PARTS, "bookkeeping"):
        spent = times.get(name, found["passes"]) * found["parts"][name] if name in PARTS else rest
        rest -= spent
        bound = found["bounds"].get(name)
        cells = 1e3 * spent / found["passes"], None if bound is None else 1e3 * bound
        rows.append([f"  {name}", spent, f"{spent / whole:.0%}", *cells])
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
