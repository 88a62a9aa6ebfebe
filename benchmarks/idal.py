"""Learning on graphs with cycles: Figure 1 of *SDCA-powered inexact dual augmented Lagrangian method*, and its speed.

Part "figure" runs IDAL with the paper's rho and with the adaptive one, IDAL as published, SoftSDCA, SoftBCFW and GDMM,
among active parts and active factors, on Potts grids, superpixels of MSRC and multi-label data. By CPU time, it shows
the paper's two criteria as shares of the optimum P*, which IDAL certifies first: P_rho - D_rho + P_rho - P* for methods
with multipliers, and P* - D_rho(mu, xi*), with the best multipliers, for all; ||A mu||^2; and test accuracy, by
max-product. Part "speed" counts updates of cliques on grids of 5 states. Part "entropy" compares the entropies of
conditional random fields on Potts grids whose treewidth is too large for exact sums: the test accuracy of labels and of
marginals, and the Brier score of the latter. The time to measure criteria at xi* and accuracies is left out.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import PNG, Bar, in_fresh_process, parse_arguments, print_table, report

TITLES = {
    "grids": "Potts grids",
    "segmentation": "superpixels of MSRC",
    "emotions": "labels of emotions",
    "scene": "labels of scene",
    "yeast": "labels of yeast",
}
SIZES = {"one grid of 10 x 10": (1, 10), "fifty of 10 x 10": (50, 10), "one of 100 x 100": (1, 100)}
GRIDS = 20, 10  # to compare entropies on: how many, and their sides
LEVEL = 1e-3  # of the criterion, as a share of the optimum, and of ||A mu||^2
FLOOR = 1e-9
LOOKS = 20  # at criteria that take long, during a run
PARTS = ["figure", "speed", "entropy"]

Run = dict[str, Any]


def run_task(name: str, seconds: float, n: int | None) -> list[Run]:
    from benchmarks.loopy_tasks import accuracy, load_task
    from maxmargin.losses import RelaxedLoss
    from maxmargin.solvers.objective.evaluation import Objective
    from maxmargin.solvers.relaxed.gdmm import GDMM
    from maxmargin.solvers.relaxed.idal import IDAL
    from maxmargin.solvers.relaxed.relaxed_objective import Relaxation
    from maxmargin.solvers.relaxed.soft import SoftBCFW, SoftSDCA

    folder = os.environ.get("MAXMARGIN_DATA")
    task = load_task(name, Path(folder) if folder else None, n)
    loss = RelaxedLoss(level=task.temperature)
    reference = solve_reference(task.train, task.C, loss, 4 * seconds)
    optimum, best = reference.certificate.primal, reference.dual.multipliers
    relaxed = Relaxation(Objective(task.train, task.C, loss=loss))
    methods = {
        "IDAL": IDAL(gap_every=5),
        f"IDAL, rho = {task.rho:g}": IDAL(rho=task.rho, gap_every=5),
        "IDAL, as published": IDAL(rho=task.rho, gap_every=5, order="uniform", multipliers="global"),
        "SoftSDCA": SoftSDCA(rho=task.rho, gap_every=5),
        "SoftBCFW": SoftBCFW(rho=task.rho, gap_every=5),
        "GDMM": GDMM(rho=task.rho, gap_every=5),
        "GDMM, active factors": GDMM(rho=task.rho, gap_every=5, active="factors"),
    }

    def look(w: np.ndarray, means: np.ndarray) -> tuple[float, float]:
        shortfall = optimum - relaxed.report(means, best, task.rho).augmented_dual
        return shortfall / optimum, accuracy(task.test, w)

    runs = []
    for method, solver in methods.items():
        solver.solve(task.train, task.C, loss=loss, max_passes=1)  # compiles
        run = follow(solver, look, seconds, task.train, task.C, loss=loss, tol=FLOOR, max_passes=10_000, random_state=0)
        excess = np.array(run["P_rho"]) - optimum + run["inner gap"]
        run["criterion"] = (excess / optimum).tolist() if solver.has_multipliers else None
        runs.append({"task": name, "method": method, "optimum": optimum, "certified": reference.certificate.gap, **run})
    return runs


def solve_reference(train: Any, C: float, loss: Any, seconds: float) -> Any:
    """The optimum to compare with, by so many CPU seconds; loops are compiled before the clock starts."""
    from maxmargin.solvers.relaxed.idal import IDAL

    IDAL().solve(train, C, loss=loss, max_passes=1)
    began = time.process_time()

    def is_late(_: Any) -> bool:
        return time.process_time() - began >= seconds

    found = IDAL().solve(train, C, loss=loss, tol=1e-7, max_passes=10_000, random_state=1, callback=is_late)
    if found.certificate.relative_gap > LEVEL / 10:
        raise RuntimeError(
            f"The reference has a relative gap of {found.certificate.relative_gap:.0e} after {seconds:g} s, but must "
            f"have {LEVEL / 10:g} for comparisons at {LEVEL:g}: give more --seconds, or fewer graphs by --n."
        )
    return found


def follow(solver: Any, look: Callable[..., tuple[float, float]], seconds: float, *args: Any, **options: Any) -> Run:
    """Run a solver for so many CPU seconds; return the columns of its trace, CPU times and what `look` finds."""
    clock: list[float] = []
    found: list[tuple[float, float]] = []

    class Watched(type(solver)):  # type: ignore[misc]
        def follow(self, run: Any, observe: Callable[[Any], bool]) -> None:
            began, looked, latest = time.process_time(), -np.inf, (np.inf, 0.0)

            def watch(certificate: Any) -> bool:
                nonlocal began, looked, latest
                clock.append(time.process_time() - began)
                is_last = observe(certificate) or clock[-1] >= seconds
                if is_last or clock[-1] >= looked + seconds / LOOKS:  # which may take longer than the steps between
                    latest, looked = look(certificate.w, run.dual.means), clock[-1]
                found.append(latest)
                began = time.process_time() - clock[-1]
                return is_last

            super().follow(run, watch)

    fields = {field.name: getattr(solver, field.name) for field in dataclasses.fields(solver)}
    trace = Watched(**fields).solve(*args, **options).trace
    shortfall, accuracies = zip(*found, strict=True)
    return {
        "seconds": clock,
        "passes": trace.passes.tolist(),
        "gap": (trace.gap / trace.primal).tolist(),
        "shortfall": shortfall,
        "accuracy": accuracies,
        **trace.extras,
    }


def rate(run: Run, column: str) -> float | None:
    """Decades per pass of a column, over the second half of the run as far as it is above the floor."""
    values = np.maximum(run[column], FLOOR)
    kept = values > 10 * FLOOR
    half = np.flatnonzero(kept)[kept.sum() // 2 :]
    return float(np.polyfit(np.array(run["passes"])[half], np.log10(values[half]), 1)[0]) if half.size > 2 else None


def first_below(run: Run, *columns: str) -> int | None:
    """The first certificate where all columns are at most at the level."""
    rows = zip(*(run[column] for column in columns), strict=True)
    return next((k for k, row in enumerate(rows) if max(row) <= LEVEL), None)


def reached(run: Run) -> tuple[float, float] | None:
    """Runner and CPU seconds until the criterion, or the shortfall where there is none, and ||A mu||^2 are low."""
    k = first_below(run, "criterion" if run["criterion"] else "shortfall", "violation")
    return None if k is None else (run["passes"][k], run["seconds"][k])


def show(title: str, runs: list[Run]) -> None:
    rows = []
    for run in runs:
        at, column = reached(run), "criterion" if run["criterion"] else "shortfall"
        rows.append(
            [
                run["method"],
                None if at is None else f"{at[0]:.0f} / {at[1]:.2f}",
                f"{run['passes'][-1]:.0f} / {run['seconds'][-1]:.1f}",
                f"{run['criterion'][-1]:.1e}" if run["criterion"] else None,
                f"{run['shortfall'][-1]:.1e}",
                f"{run['violation'][-1]:.1e}",
                f"{run['gap'][-1]:.1e}",
                rate(run, column),
                f"{run['accuracy'][-1]:.2%}",
            ]
        )
    columns = [
        "",
        "to 1e-3",
        "at the end",
        "criterion",
        "D(xi*)",
        "||A mu||^2",
        "certified",
        "decades/pass",
        "accuracy",
    ]
    optimum = f"P* = {runs[0]['optimum']:.5g}, certified to {runs[0]['certified']:.0e}"
    print_table(f"{title}; passes / CPU seconds; {optimum}", columns, rows)


def bars_of(runs: list[Run]) -> list[Bar]:
    """IDAL is the first to satisfy criterion and constraints, and its accuracy is higher at the end."""
    ours, *_ = (reached(run) for run in runs)
    bars = []
    for run in runs:
        if run["method"] in ("SoftBCFW", "GDMM", "GDMM, active factors"):
            other = reached(run)
            holds = ours is not None and (other is None or ours[1] < other[1])
            took = [f"{at[1]:.2f} s" if at else "not reached" for at in (ours, other)]
            claim = f"{TITLES[run['task']]}: criterion and ||A mu||^2 of 1e-3 by IDAL before {run['method']}"
            bars.append(Bar(claim, f"{took[0]} and {took[1]}", holds))
    last = {run["method"]: run["accuracy"][-1] for run in runs}
    claim = f"{TITLES[runs[0]['task']]}: higher test accuracy of IDAL than of SoftBCFW, as the paper has it"
    figure = f"{last['IDAL']:.2%}, SoftBCFW {last['SoftBCFW']:.2%}, SoftSDCA {last['SoftSDCA']:.2%}"
    return [*bars, Bar(claim, figure, last["IDAL"] > last["SoftBCFW"])]


def measure_speed(n: int, side: int, ties: str, n_updates: float) -> dict[str, float]:
    """Millions of clique updates per CPU second: by steps alone, and with a certificate every ten passes."""
    from benchmarks.loopy_tasks import potts_grids
    from maxmargin.losses import RelaxedLoss
    from maxmargin.solvers.objective.evaluation import Objective
    from maxmargin.solvers.relaxed.clique_steps import PROX, Ascent, ascend
    from maxmargin.solvers.relaxed.idal import IDAL
    from maxmargin.solvers.relaxed.neighborhoods import find_neighborhoods
    from maxmargin.solvers.relaxed.relaxed_objective import Relaxation

    problem = potts_grids(n, side, 0, ties)
    relaxed = Relaxation(Objective(problem, 0.1, loss=RelaxedLoss()))
    sets = find_neighborhoods(problem.graphs)
    passes = max(1, round(n_updates / relaxed.n_cliques))
    rng, rho = np.random.default_rng(0), 1.0
    mu, xi = relaxed.uniform(), np.zeros(relaxed.n_multipliers)
    found = relaxed.report(mu, xi, rho)
    best = np.inf
    for count in (1, passes, passes, passes):  # the first compiles
        visits = np.concatenate([rng.permutation(len(sets.starts) - 1) for _ in range(count)])
        delta, bends = xi - found.residual / rho, (relaxed.n_lambda, rho, relaxed.curvature(rho), relaxed.scratch)
        arguments = sets, Ascent(found.w, mu, delta, xi, *bends), PROX, 1, visits, np.full(visits.size, 2)
        began = time.process_time()
        ascend(relaxed.problem, relaxed.terms, *arguments)
        best = min(best, (time.process_time() - began) / count) if count == passes else best
        found = relaxed.report(mu, xi, rho)
    IDAL().solve(problem, 0.1, max_passes=1)
    began = time.process_time()
    trace = IDAL().solve(problem, 0.1, tol=1e-15, max_passes=passes, random_state=0).trace
    whole = (time.process_time() - began) / trace.passes[-1]
    return {"steps": relaxed.n_cliques / best / 1e6, "fit": relaxed.n_cliques / whole / 1e6}


def compare_entropies(n_states: int, C: float) -> list[list[Any]]:
    """Rows of a table: passes, CPU seconds, test accuracy by labels and by marginals, and the Brier score of these."""
    from benchmarks.loopy_tasks import potts_grids
    from maxmargin.inference import best_outputs, known_marginals
    from maxmargin.losses import ENTROPIES, RelaxedLoss
    from maxmargin.solvers.relaxed.idal import IDAL
    from maxmargin.structures.graphs.loopy import with_oracles

    train, test = (potts_grids(*GRIDS, seed, "symmetric", n_states) for seed in (0, 1))
    loopy = with_oracles(test)
    rows = []
    for entropy in ENTROPIES:
        loss = RelaxedLoss(margin=False, entropy=entropy)
        IDAL().solve(train, C, loss=loss, max_passes=1)  # compiles
        began = time.process_time()
        result = IDAL().solve(train, C, loss=loss, tol=0.01, max_passes=1000, random_state=0)
        took = time.process_time() - began
        means, _ = known_marginals(loopy, result.w)
        at = test.graphs.nodes.part + np.repeat(means.starts[:-1], np.diff(test.graphs.nodes.starts))
        marginals = means.values[at[:, np.newaxis] + np.arange(n_states)]
        found = best_outputs(loopy, result.w).values, marginals.argmax(axis=1)
        accuracies = [f"{np.mean(labels == test.graphs.supervision.labels):.1%}" for labels in found]
        brier = np.mean(np.sum((marginals - np.eye(n_states)[test.graphs.supervision.labels]) ** 2, axis=1))
        rows.append([f"{entropy}, C = {C:g}", result.trace.passes[-1], took, *accuracies, brier])
    return rows


def draw(runs: list[Run], path: Path) -> None:
    """A column of panels per task: criteria, ||A mu||^2 and accuracy by CPU time."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(run["task"] for run in runs))
    rows = {
        "criterion": "criterion / P*",
        "shortfall": "(P* - D(xi*)) / P*",
        "violation": "||A mu||^2",
        "accuracy": "test accuracy",
    }
    figure, panels = plt.subplots(
        4, len(names), figsize=(6.5 * len(names), 14), dpi=100, layout="constrained", squeeze=False
    )
    for k, name in enumerate(names):
        for panel, (column, label) in zip(panels[:, k], rows.items(), strict=True):
            for color, run in enumerate(run for run in runs if run["task"] == name):
                if run[column]:
                    values = np.array(run[column])
                    values = values if column == "accuracy" else np.maximum(values, FLOOR)
                    panel.plot(run["seconds"], values, label=run["method"], color=f"C{color}")
            panel.set(xlabel="CPU seconds", ylabel=label)
            if column != "accuracy":
                panel.set_yscale("log")
        panels[0, k].set_title(TITLES[name])
        panels[-1, k].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--part", {"nargs": "+", "choices": PARTS, "default": PARTS}),
        ("--tasks", {"nargs": "+", "choices": list(TITLES), "default": [name for name in TITLES if name != "yeast"]}),
        ("--n", {"type": int, "help": "graphs to train on, and to test on, at most"}),
        ("--seconds", {"type": float, "default": 10.0, "help": "CPU seconds of a run"}),
        ("--updates", {"type": float, "default": 3e6, "help": "clique updates of a measurement of speed"}),
        PNG,
    )
    runs: list[Run] = []
    speeds: dict[str, dict[str, float]] = {}
    bars: list[Bar] = []
    if "figure" in arguments.part:
        for name in arguments.tasks:
            new = in_fresh_process(run_task, name, arguments.seconds, arguments.n)
            show(TITLES[name], new)
            bars += bars_of(new)
            runs += new
    if "speed" in arguments.part:
        for ties in ("potts", "full"):
            speeds[ties] = {}
            rows = []
            for size, shape in SIZES.items():
                found = in_fresh_process(measure_speed, *shape, ties, arguments.updates)
                rows.append([size, found["steps"], found["fit"]])
                speeds[ties][size] = found["steps"]
            print_table(f"Million clique updates per second, 5 states, {ties}", ["", "steps", "whole fit"], rows)
        small, *_, large = speeds["potts"].values()
        lowest = min(speeds["potts"].values())
        bars.append(Bar("over 2 million clique updates a second", f"{lowest:.2f} million", lowest > 2))
        more = small / large - 1
        bars.append(Bar("at most 25 % more time per update on 100 x 100 than on 10 x 10", f"{more:+.0%}", more <= 0.25))
    if "entropy" in arguments.part:
        for n_states in (3, 5):
            rows = [row for C in (0.01, 0.1, 1.0) for row in in_fresh_process(compare_entropies, n_states, C)]
            columns = ["", "passes", "CPU s", "labels", "marginals", "Brier score"]
            print_table(f"Entropies, Potts grids of {n_states} states", columns, rows)
    if arguments.png is not None:
        draw(runs, arguments.png)
    report({"runs": runs, "speeds": speeds}, bars, arguments.json)


if __name__ == "__main__":
    main()
