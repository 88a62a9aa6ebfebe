"""Solvers of the hinge loss side by side: Figures 2 and 5 of *A smoother way to train structured prediction models*.

Chunking (CoNLL-2000) and named entities (WNUT-17) with hashed features: objective, certificate and held-out F1 of
chunks against oracle calls and CPU time, which leaves out the time to measure F1.

    solvers      Figure 2   SGD, BCFW with the weighted average, SVRG, Casimir of both schedules, and cutting planes
    mu           Figure 5a  levels of smoothing, with the constant and the adaptive schedule
    non-smooth   Figure 5b  SVRG and Casimir with smoothing, and on the hinge loss itself
    start        Figure 5c  where subproblems start, with both schedules
    k            Figure 5d  K, in runs that differ in nothing else

In "mu", "non-smooth" and "start" every method is run twice: as it comes, with steps that it sets by itself and takes
back where the objective rises, and "published": mu = 1 or, for the adaptive schedule, mu = 2 and kappa = lambda, K = 5,
no steps taken back, and the constant L that leads to the lowest objective, of a grid of powers of 2. Beside it is told
how many of the grid were unstable: they end 10 % or more above their own lowest objective. Objectives are the lowest so
far, as a fit returns them.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import PNG, in_fresh_process, parse_arguments, print_table, report_runs, save_with_legend
from benchmarks.entities import load_hashed

TITLES = {"conll": "CoNLL-2000 chunking", "wnut": "WNUT-17 entities"}
PARTS = {"solvers": [0.1], "mu": [100.0], "non-smooth": [100.0], "start": [100.0, 1.0], "k": [100.0]}  # with their C
TOL = 1e-4
N_TEST = 1000  # sentences on which F1 is measured
LEVELS = (0.1, 1.0, 10.0)
SCHEDULES = ("constant", "adaptive")
STARTS = ("center", "previous", "extrapolation")
SMOOTHNESS = [2.0**k for k in range(3, 10)]
COLUMNS = {"relative": "certified relative gap", "excess": "objective / best - 1", "score": "held-out F1"}

Run = dict[str, Any]


def methods(part: str, strength: float) -> dict[str, list[Any]]:
    """For each curve, "family; variant", the settings that are tried, of which the best is shown."""
    from maxmargin import BCFW, SGD, SVRG, Casimir, NSlack, OneSlack

    def published(solver: Any) -> list[Any]:
        is_adaptive = getattr(solver, "schedule", None) == "adaptive"
        options: dict[str, Any] = {"max_k": 5, "kappa": strength} if is_adaptive else {"max_k": 5}
        if solver.smoothing is not None and solver.level is None:
            options["level"] = 2.0 if is_adaptive else 1.0
        return [dataclasses.replace(solver, smoothness=constant, **options) for constant in SMOOTHNESS]

    def both_ways(solvers: dict[str, Any]) -> dict[str, list[Any]]:
        as_they_come = {name: [solver] for name, solver in solvers.items()}
        return as_they_come | {f"{name}, published": published(solver) for name, solver in solvers.items()}

    casimir = {f"Casimir, {schedule}": Casimir(schedule=schedule) for schedule in SCHEDULES}
    if part == "mu":
        return both_ways(
            {
                f"mu = {mu:g}; {schedule}": Casimir(schedule=schedule, level=mu)
                for schedule, mu in itertools.product(SCHEDULES, LEVELS)
            }
        )
    if part == "non-smooth":
        return both_ways(
            {
                f"{name}; {'smooth' if smoothing else 'non-smooth'}": dataclasses.replace(solver, smoothing=smoothing)
                for name, solver in {"SVRG": SVRG(), **casimir}.items()
                for smoothing in ("l2", None)
            }
        )
    if part == "start":
        return both_ways(
            {
                f"{start}; {schedule}": Casimir(schedule=schedule, warm_start=start)
                for schedule, start in itertools.product(SCHEDULES, STARTS)
            }
        )
    if part == "k":
        same: dict[str, Any] = {"schedule": "constant", "level": 1.0, "smoothness": 64.0}  # nothing is set by estimates
        return {f"K = {k}": [Casimir(max_k=k, **same)] for k in (2, 5, 10, 40)}
    solvers: dict[str, Any] = {
        "SGD": SGD(gap_every=2),
        "BCFW, average": BCFW(averaging=True, gap_every=2),
        "BCFW, pairwise, gap": BCFW(steps="pairwise", sampling="gap", gap_every=2),
        "SVRG": SVRG(),
        **casimir,
        "Casimir, SAGA": Casimir(inner="saga"),
        "1-slack": OneSlack(),
        "1-slack, no cache": OneSlack(cache=0),
        "n-slack": NSlack(),
    }
    return {name: [solver] for name, solver in solvers.items()}


def run_dataset(name: str, part: str, C: float, seconds: float, n_sentences: int | None) -> list[Run]:
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
        model._set_weights(model._encoder, w)
        return entity_f1(y_test, model.predict(X_test))

    runs = []
    for label, solvers in methods(part, 1 / (len(X) * C)).items():
        solvers[0].solve(few, C, max_passes=2)  # compiles
        tried = [follow(solver, task.problem, C, np.copy, seconds) for solver in solvers]
        best = min(tried, key=lambda run: run["primal"][-1])
        best["score"] = [f1(w) for w in best["score"]]
        unstable = f"{sum(run['is_unstable'] for run in tried)} of {len(tried)}"
        runs.append({"dataset": name, "C": C, "method": label, "unstable": unstable, **best})
    return runs


def follow(
    solver: Any,
    problem: Any,
    C: float,
    score: Callable[[np.ndarray], Any],
    seconds: float = np.inf,
    passes: float = np.inf,
    random_state: int = 0,
) -> Run:
    """Run a solver for so many CPU seconds, or effective passes; return its trace, with CPU times and scores."""
    from maxmargin.problem import n_examples

    clock: list[float] = []
    scores: list[Any] = []
    values: list[float] = []

    class Watched(type(solver)):  # type: ignore[misc]
        def follow(self, run: Any, observe: Callable[[Any], bool]) -> None:
            began = time.process_time()

            def look(certificate: Any) -> bool:
                nonlocal began
                clock.append(time.process_time() - began)
                scores.append(score(certificate.w))
                values.append(certificate.primal)
                began = time.process_time() - clock[-1]
                return observe(certificate) or clock[-1] >= seconds or run.oracle_calls >= passes * run.objective.n

            super().follow(run, look)

    options = {option.name: getattr(solver, option.name) for option in dataclasses.fields(solver)}
    trace = Watched(**options).solve(problem, C, tol=TOL, max_passes=10_000, random_state=random_state).trace
    return {
        "smoothness": getattr(solver, "smoothness", None),
        "is_unstable": values[-1] > 1.1 * min(values),
        "seconds": clock,
        "passes": (trace.oracle_calls / n_examples(problem)).tolist(),
        "primal": trace.primal.tolist(),
        "relative": (trace.gap / trace.primal).tolist(),
        "score": scores,
    }


def show(title: str, runs: list[Run]) -> None:
    lowest = min(run["primal"][-1] for run in runs)
    rows = []
    for run in runs:
        to_one_percent = next((k for k, primal in enumerate(run["primal"]) if primal <= 1.01 * lowest), None)
        best = max(run["score"])
        to_f1 = next(k for k, value in enumerate(run["score"]) if value >= best - 0.002)

        def at(k: int | None, run: Run = run) -> str | None:
            return None if k is None else f"{run['passes'][k]:.0f} / {run['seconds'][k]:.1f}"

        rows.append(
            [
                run["method"],
                run["smoothness"] and f"{run['smoothness']:g} ({run['unstable']})",
                at(to_one_percent),
                at(-1),
                f"{run['primal'][-1]:.4f}",
                f"{run['relative'][-1]:.1e}",
                f"{run['score'][-1]:.2%}",
                f"{best:.2%} after {run['passes'][to_f1]:.0f}",
            ]
        )
    columns = ["", "L (unstable)", "to 1 % of the best", "at the end", "objective", "certified gap", "F1", "best F1"]
    print_table(f"{title}; effective passes / CPU seconds", columns, rows)


def draw(runs: list[Run], path: Path) -> None:
    """Two rows of panels per dataset and C: certified gap, excess objective and F1, by oracle calls and by CPU time."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    def place_in(values: list[str]) -> dict[str, int]:
        return {value: k for k, value in enumerate(dict.fromkeys(values))}

    names = [run["method"].partition("; ") for run in runs]
    families, variants = place_in([name for name, *_ in names]), place_in([variant for *_, variant in names])
    styles = ["-", "--", ":", "-."]
    problems = place_in([f"{TITLES[run['dataset']]}, C = {run['C']:g}" for run in runs])
    figure, panels = plt.subplots(
        2 * len(problems), 3, figsize=(14, 7 * len(problems)), dpi=100, layout="constrained", squeeze=False
    )
    for title, row in problems.items():
        shown = [run for run in runs if f"{TITLES[run['dataset']]}, C = {run['C']:g}" == title]
        lowest = min(run["primal"][-1] for run in shown)
        for k, (key, label) in enumerate((("passes", "oracle calls / n"), ("seconds", "CPU seconds"))):
            for panel, (column, name) in zip(panels[2 * row + k], COLUMNS.items(), strict=True):
                for run in shown:
                    family, _, variant = run["method"].partition("; ")
                    look = {"color": f"C{families[family]}", "linestyle": styles[variants[variant]]}
                    excess = np.maximum(np.array(run["primal"]) / lowest - 1, 1e-4)
                    panel.plot(run[key], {**run, "excess": excess}[column], label=run["method"], **look)
                panel.set(xlabel=label, ylabel=name)
                if column != "score":
                    panel.set_yscale("log")
                if column == "excess":
                    panel.set_ylim(top=30)  # beyond which runs that diverge may go
                panel.grid(alpha=0.3)
        panels[2 * row, 0].set_title(title, loc="left", fontweight="bold")
    save_with_legend(figure, panels[0, 0], path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "choices": list(TITLES), "default": ["wnut"]}),
        ("--part", {"choices": list(PARTS), "default": "solvers"}),
        ("--C", {"type": float, "nargs": "+", "help": "by default those of the figure"}),
        ("--seconds", {"type": float, "default": 20.0, "help": "CPU seconds of each run"}),
        ("--sentences", {"type": int, "help": "train on the first so many sentences"}),
        PNG,
    )
    runs = []
    for name, C in itertools.product(arguments.datasets, arguments.C or PARTS[arguments.part]):
        new = in_fresh_process(run_dataset, name, arguments.part, C, arguments.seconds, arguments.sentences)
        show(f"{TITLES[name]}, C = {C:g}", new)
        runs += new
    report_runs(runs, draw, arguments)


if __name__ == "__main__":
    main()
