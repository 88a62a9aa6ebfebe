"""Solvers of the hinge loss side by side: Figures 2 and 5 of *A smoother way to train structured prediction models*.

Chunking (CoNLL-2000) and named entities (WNUT-17) with hashed features. Part "solvers" compares SGD, BCFW with the
weighted average, SVRG, Casimir with a constant and with an adaptive level, and cutting planes: objective, certificate
and held-out F1 of chunks against oracle calls and CPU time. Part "options" varies mu, K (in runs that differ in nothing
else) and the warm start of Casimir. The time to measure F1 is left out of the CPU times.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import in_fresh_process, parse_arguments, print_table, report
from benchmarks.entities import load_hashed

TITLES = {"conll": "CoNLL-2000 chunking", "wnut": "WNUT-17 entities"}
C = 0.1
TOL = 1e-4
N_TEST = 1000  # sentences on which F1 is measured
SAME_SCHEDULE: dict[str, Any] = {"schedule": "constant", "mu": 1.0, "smoothness": 300.0}  # nothing is set by estimates

Run = dict[str, Any]


def methods(part: str) -> dict[str, Any]:
    from maxmargin import BCFW, SGD, SVRG, Casimir, NSlack, OneSlack

    if part == "solvers":
        return {
            "SGD": SGD(gap_every=2),
            "BCFW, average": BCFW(averaging=True, gap_every=2),
            "BCFW, pairwise, gap": BCFW(steps="pairwise", sampling="gap", gap_every=2),
            "SVRG": SVRG(),
            "Casimir, constant": Casimir(schedule="constant"),
            "Casimir, adaptive": Casimir(),
            "1-slack": OneSlack(),
            "1-slack, no cache": OneSlack(cache=0),
            "n-slack": NSlack(),
        }
    return {
        **{f"mu = {mu:g}": Casimir(schedule="constant", mu=mu) for mu in (0.1, 1.0, 10.0)},
        **{f"K = {k}": Casimir(max_k=k, **SAME_SCHEDULE) for k in (2, 5, 10, 40)},
        **{f"start: {start}": Casimir(warm_start=start) for start in ("center", "previous", "extrapolation")},
    }


def run_dataset(name: str, part: str, seconds: float, n_sentences: int | None) -> list[Run]:
    from maxmargin import ChainSVM
    from maxmargin.metrics import entity_f1

    X, y, X_test, y_test = load_hashed(name)
    X, y = X[:n_sentences], y[:n_sentences]
    X_test, y_test = X_test[:N_TEST], y_test[:N_TEST]
    model = ChainSVM(C=C, fit_intercept=False)
    few = model._encode(X[:20], y[:20]).problem
    task = model._encode(X, y)
    model._encoder = task.encoder

    def f1(w: np.ndarray) -> float:
        model._set_weights(w)
        return entity_f1(y_test, model.predict(X_test))

    runs = []
    for label, solver in methods(part).items():
        solver.solve(few, C, max_passes=2)  # compiles
        runs.append({"dataset": name, "method": label, **follow(solver, task.problem, f1, seconds)})
    return runs


def follow(solver: Any, problem: Any, f1: Callable[[np.ndarray], float], seconds: float) -> Run:
    """Run a solver for so many CPU seconds; return the columns of its trace, CPU times and the F1 of its weights."""
    from maxmargin.problem import n_examples

    clock: list[float] = []
    scores: list[float] = []

    class Watched(type(solver)):  # type: ignore[misc]
        def follow(self, run: Any, observe: Callable[[Any], bool]) -> None:
            began = time.process_time()

            def look(certificate: Any) -> bool:
                nonlocal began
                clock.append(time.process_time() - began)
                scores.append(f1(certificate.w))
                began = time.process_time() - clock[-1]
                return observe(certificate) or clock[-1] >= seconds

            super().follow(run, look)

    options = {option.name: getattr(solver, option.name) for option in dataclasses.fields(solver)}
    trace = Watched(**options).solve(problem, C, tol=TOL, max_passes=10_000, random_state=0).trace
    return {
        "seconds": clock,
        "passes": (trace.oracle_calls / n_examples(problem)).tolist(),
        "primal": trace.primal.tolist(),
        "relative": (trace.gap / trace.primal).tolist(),
        "f1": scores,
    }


def show(title: str, runs: list[Run]) -> None:
    lowest = min(run["primal"][-1] for run in runs)
    rows = []
    for run in runs:
        excess = [primal / lowest - 1 for primal in run["primal"]]
        to_one_percent = next((k for k, value in enumerate(excess) if value <= 0.01), None)
        reached = (
            None
            if to_one_percent is None
            else f"{run['passes'][to_one_percent]:.0f} / {run['seconds'][to_one_percent]:.1f}"
        )
        best = max(run["f1"])
        to_f1 = next(k for k, value in enumerate(run["f1"]) if value >= best - 0.002)
        rows.append(
            [
                run["method"],
                reached,
                f"{run['passes'][-1]:.0f} / {run['seconds'][-1]:.1f}",
                f"{run['primal'][-1]:.4f}",
                f"{run['relative'][-1]:.1e}",
                f"{run['f1'][-1]:.2%}",
                f"{best:.2%} after {run['passes'][to_f1]:.0f}",
            ]
        )
    columns = ["", "to 1 % of the best", "at the end", "objective", "certified gap", "F1", "best F1"]
    print_table(f"{title}; effective passes / CPU seconds", columns, rows)


def draw(runs: list[Run], path: Path) -> None:
    """A row of panels per dataset: excess objective, certified gap and F1, by oracle calls and by CPU time."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(run["dataset"] for run in runs))
    columns = [("relative", "certified relative gap"), ("excess", "objective / best - 1"), ("f1", "held-out F1")]
    figure, panels = plt.subplots(
        2 * len(names), 3, figsize=(14, 7 * len(names)), dpi=100, layout="constrained", squeeze=False
    )
    for row, name in enumerate(names):
        shown = [run for run in runs if run["dataset"] == name]
        lowest = min(run["primal"][-1] for run in shown)
        for k, (key, label) in enumerate((("passes", "oracle calls / n"), ("seconds", "CPU seconds"))):
            for panel, (column, title) in zip(panels[2 * row + k], columns, strict=True):
                for run in shown:
                    excess = [max(primal / lowest - 1, 1e-6) for primal in run["primal"]]
                    panel.plot(run[key], {**run, "excess": excess}[column], label=run["method"])
                panel.set(xlabel=label, ylabel=title)
                if column != "f1":
                    panel.set_yscale("log")
                panel.grid(alpha=0.3)
        panels[2 * row, 0].set_title(TITLES[name], loc="left", fontweight="bold")
    lines = panels[0, 0].get_lines()
    figure.legend(lines, [line.get_label() for line in lines], loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "choices": list(TITLES), "default": ["wnut"]}),
        ("--part", {"choices": ["solvers", "options"], "default": "solvers"}),
        ("--seconds", {"type": float, "default": 20.0, "help": "CPU seconds of each method"}),
        ("--sentences", {"type": int, "help": "train on the first so many sentences"}),
        ("--png", {"type": Path, "metavar": "FILE", "help": "draw the figure to FILE"}),
    )
    runs = []
    for name in arguments.datasets:
        new = in_fresh_process(run_dataset, name, arguments.part, arguments.seconds, arguments.sentences)
        show(f"{TITLES[name]}, C = {C:g}", new)
        runs += new
    if arguments.png is not None:
        draw(runs, arguments.png)
    report(runs, [], arguments.json)


if __name__ == "__main__":
    main()
