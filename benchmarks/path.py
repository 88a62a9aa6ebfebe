"""Regularization paths beside grids, and what block gaps are worth: Figures 1, 4, 7 and 8 of *Minding the gaps*.

- ``--part methods`` (Figures 4 and 8): the work to get from infinity down to each lambda, of the path with proof, the
  heuristic path, and grids of powers of two with and without warm starts, each solution to a gap of kappa * eps.
- ``--part kappa`` (Figure 7): the same of both paths by kappa, with the largest true gap of a breakpoint.
- ``--part staleness`` (Figure 1): gap sampling with certificates every so many passes, or none ("gap inf"): the gap
  after as many effective passes, how far the known gaps understate it, and chi(gaps)^3 / chi(curvatures), the speed-up
  of Theorem 2.

An effective pass is as many oracle calls as there are examples, those of certificates included. Costs are divided by
the number of labels, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report, save_with_legend
from benchmarks.tasks import TASKS, load_task

SOLVERS = {"fw": {"steps": "fw", "sampling": "gap"}, "pairwise": {"steps": "pairwise", "sampling": "gap", "cache": 50}}
METHODS = {"path": 0.9, "heuristic path": 0.8, "warm grid": 0.9, "cold grid": 0.9}  # and kappa
KAPPAS = (0.5, 0.7, 0.9, 0.99)
EVERY = {"uniform": 10, "gap 1": 1, "gap 5": 5, "gap 10": 10, "gap 100": 100, "gap inf": 0}  # passes to certificates

Figures = dict[str, Any]


def make_follower(task: Any, solver: str, method: str, eps: float, kappa: float) -> Any:
    from maxmargin import BCFW
    from maxmargin.execution.runner import bind
    from maxmargin.solvers.block_coordinate.path_steps import PathFollower

    chosen = BCFW(**SOLVERS[solver], exact_gaps=method != "heuristic path")
    encoded = task.encode()
    problem = bind(encoded.problem)
    bounds = {"lower": encoded.lower, "upper": encoded.upper}
    return PathFollower(problem, solver=chosen, eps=eps, kappa=kappa, random_state=0, **bounds)


def solutions(follower: Any, method: str, smallest: float) -> Iterator[Any]:
    """The solutions of a method, from the largest lambda down to `smallest`."""
    grid = 2.0 ** np.arange(15, np.log2(smallest) - 1e-9, -1)
    if method == "cold grid":
        return (follower.solve(value, None, 0.0) for value in grid)
    return follower.follow_grid(grid) if method == "warm grid" else follower.follow(smallest)


def walk(task: Any, solver: str, method: str, eps: float, kappa: float, smallest: float) -> Figures:
    """Follow a path or a grid: effective passes and CPU seconds by lambda, and the largest true gap of all."""
    follower = make_follower(task, solver, method, eps, kappa)
    n, began, measuring = follower.objective.n, time.process_time(), 0.0
    lambdas, calls, seconds, gaps, steps = [], [], [], [], 0.0
    for point in solutions(follower, method, smallest):
        lambdas.append(point.regularization)
        calls.append(point.oracle_calls / n)
        seconds.append(time.process_time() - began - measuring)
        steps += point.passes
        measured = time.process_time()
        objective = follower.objective.with_regularization(point.regularization)
        gaps.append(objective.evaluate(point.w, with_gradient=False).value - point.dual)
        measuring += time.process_time() - measured
    passes = np.cumsum(calls).tolist()
    return {"lambda": lambdas, "passes": passes, "seconds": seconds, "steps": steps, "gap": max(gaps)}


def warm_up(task: Any, solver: str) -> None:
    """Compile what the runs need."""
    for method in METHODS:
        list(solutions(make_follower(task, solver, method, 10.0, 0.9), method, 2.0**14))


def compare_methods(name: str, n: int | None, solver: str, eps: float, smallest: float) -> dict[str, Figures]:
    task = load_task(name, n, "normalized_hamming")
    warm_up(task, solver)
    return {method: walk(task, solver, method, eps, kappa, smallest) for method, kappa in METHODS.items()}


def compare_kappas(name: str, n: int | None, solver: str, eps: float, smallest: float) -> dict[str, Figures]:
    task = load_task(name, n, "normalized_hamming")
    warm_up(task, solver)
    return {
        f"{method}, kappa = {kappa:g}": walk(task, solver, method, eps, kappa, smallest)
        for method in ("path", "heuristic path")
        for kappa in KAPPAS
    }


def compare_staleness(name: str, n: int | None, passes: float) -> dict[str, Figures]:
    """Sampling by known gaps at C = 1, none of them drawn uniformly, with more and less frequent certificates."""
    from benchmarks.nonuniformity import follow_gaps
    from maxmargin import BCFW

    task = load_task(name, n, "normalized_hamming")
    runs = {}
    for method, every in EVERY.items():
        solver = BCFW(sampling=method.split()[0], gap_every=every or 1, uniform_share=0.0)
        runs[method] = follow_gaps(solver, task.encode(), passes, refreshes=every > 0)
    return runs


def at(run: Figures, level: float) -> str | None:
    """Effective passes and CPU seconds until lambda is at most `level`, or the path is over."""
    reached = next((k for k, value in enumerate(run["lambda"]) if value <= level * (1 + 1e-9)), -1)
    return f"{run['passes'][reached]:.0f} / {run['seconds'][reached]:.2f}"


def show_walks(title: str, runs: dict[str, Figures], eps: float, smallest: float) -> None:
    marks = [mark for mark in (10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4) if mark > smallest] + [smallest]
    columns = [
        "effective passes / CPU s",
        *(f"to {mark:g}" for mark in marks),
        "solutions",
        "steps / n",
        "true gap / eps",
    ]
    rows = [
        [name, *(at(run, mark) for mark in marks), len(run["lambda"]), f"{run['steps']:.0f}", f"{run['gap'] / eps:.2f}"]
        for name, run in runs.items()
    ]
    print_table(title, columns, rows)


def show_staleness(title: str, runs: dict[str, Figures], passes: float) -> None:
    marks = [share * passes for share in (0.25, 0.5, 1.0)]
    rows = []
    for name, run in runs.items():
        at_marks = [np.searchsorted(run["passes"], mark).clip(max=len(run["passes"]) - 1) for mark in marks]
        gaps = [f"{run['gap'][k]:.2e}" for k in at_marks]
        rows.append([name, *gaps, f"{run['ratio'][at_marks[-1]]:.3g}", f"{np.median(run['speed-up']):.2f}"])
    columns = ["gap after effective passes", *(f"{mark:.0f}" for mark in marks), "true / known gap", "chi^3 / chi(C)"]
    print_table(title, columns, rows)


def draw(panels: list[tuple[str, dict[str, Figures]]], file: Path) -> None:
    """A row per table: effective passes and CPU seconds on the way down from infinity."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(panels), 2, figsize=(14, 4 * len(panels)), squeeze=False, layout="constrained")
    for (title, runs), row in zip(panels, axes, strict=True):
        for ax, key, label in zip(row, ("passes", "seconds"), ("effective passes", "CPU seconds"), strict=True):
            for name, run in runs.items():
                ax.plot(run["lambda"], run[key], label=name)
            ax.set(xscale="log", xlabel="lambda", ylabel=label, title=title)
            ax.invert_xaxis()
            ax.grid(alpha=0.3)
        row[1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    figure.savefig(file)


def draw_staleness(figures: list[Figures], file: Path) -> None:
    """A row per dataset: the gap, how far known gaps understate it, and the speed-up of Theorem 2, by passes."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    labels = {"gap": "duality gap", "ratio": "true / known gap", "speed-up": "chi^3 / chi(C)"}
    chosen = [one for one in figures if one["part"] == "staleness"]
    figure, axes = plt.subplots(len(chosen), 3, figsize=(14, 4.2 * len(chosen)), squeeze=False, layout="constrained")
    for one, row in zip(chosen, axes, strict=True):
        for ax, (key, label) in zip(row, labels.items(), strict=True):
            for name, run in one["runs"].items():
                ax.plot(run["passes"], run[key], label=name)
            ax.set(xlabel="effective passes", ylabel=label, yscale="log" if key == "gap" else "linear")
            ax.grid(alpha=0.3)
        row[0].set_title(TASKS[one["data"]], loc="left", fontweight="bold")
    save_with_legend(figure, axes[0, 0], file)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--data", {"nargs": "+", "choices": list(TASKS), "default": ["ocr-small", "conll", "horses"]}),
        ("--n", {"type": int, "help": "train on the first n examples", "default": 200}),
        ("--eps", {"type": float, "default": 0.1}),
        ("--lambda-min", {"type": float, "default": 1e-3}),
        ("--solver", {"choices": list(SOLVERS), "default": "pairwise"}),
        ("--part", {"nargs": "+", "choices": ["methods", "kappa", "staleness"], "default": ["methods"]}),
        ("--passes", {"type": float, "default": 100.0, "help": "effective passes of --part staleness"}),
        ("--plot", {"type": Path, "metavar": "FILE", "help": "draw methods and kappa to FILE"}),
    )
    n, eps, smallest = arguments.n, arguments.eps, arguments.lambda_min
    figures, bars, panels = [], [], []
    for name in arguments.data:
        title = f"{TASKS[name]}, n = {n}"
        for part, compare in (("methods", compare_methods), ("kappa", compare_kappas)):
            if part in arguments.part:
                runs = in_fresh_process(compare, name, n, arguments.solver, eps, smallest)
                panels.append((f"{title}, {arguments.solver}, eps = {eps:g}", runs))
                show_walks(panels[-1][0], runs, eps, smallest)
                figures.append({"data": name, "part": part, "runs": runs})
                if part == "methods":
                    exact, heuristic = (runs[method]["passes"][-1] for method in ("path", "heuristic path"))
                    figure = f"{heuristic:.0f} effective passes, {exact:.0f} with proof"
                    bars.append(Bar(f"{TASKS[name]}: the heuristic path is cheaper", figure, heuristic < exact))
        if "staleness" in arguments.part:
            runs = in_fresh_process(compare_staleness, name, n, arguments.passes)
            show_staleness(f"{title}, C = 1", runs, arguments.passes)
            figures.append({"data": name, "part": "staleness", "runs": runs})
    if arguments.plot is not None:
        draw(panels, arguments.plot)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
