"""The variants of BCFW side by side: Figures 3, 5 and 6 of *Minding the gaps* (Osokin et al. 2016).

Steps (Frank-Wolfe, pairwise, away, or the best of them), sampling (uniform, by permutations, or by gaps) and cache
(none or CACHE outputs per example) on chains, graph cuts and poses, for a regularization that is too strong, good, and
too weak. An effective pass is as many oracle calls as there are examples, those of the certificates included. The cost
is the Hamming distance (in the paper, divided by the length), and CoNLL-2000 has all features of its template (in the
paper, 74,658 of them).

Beside them, how unevenly the gap is spread over the examples, chi(gaps) at the end of each run, and chi(gaps)^3 /
chi(curvatures), by which Theorem 2 expects sampling by exact gaps to be faster than uniform sampling.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import PNG, in_fresh_process, parse_arguments, print_table, report_runs, save_with_legend
from benchmarks.tasks import TASKS, load_task


class Setting(NamedTuple):
    """The limits of each run on a dataset."""

    passes: float
    seconds: float
    gap_every: int


SETTINGS = {
    "ocr-small": Setting(300, 1.6, 10),
    "ocr-large": Setting(100, 6, 10),
    "conll": Setting(40, 8, 5),
    "horses": Setting(300, 6, 10),
    "poses": Setting(100, 20, 10),
}
REGIMES = {0.01: "too strong", 0.1: "good", 1.0: "too weak"}  # regularization by C: lambda = 1 / (n C)
CACHE = 50
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)  # relative gaps
TOL = 1e-5
ERROR_PASSES = 30  # after which the test error is measured

Run = dict[str, Any]
Method = dict[str, Any]  # options of BCFW


def name_of(method: Method) -> str:
    return f"{method['steps']}, {method['sampling']}" + (", cache" if method["cache"] else "")


def run_dataset(
    name: str, n: int | None, methods: list[Method], n_seeds: int, passes: float | None, seconds: float | None
) -> list[Run]:
    """All methods, for every C and seed; each run notes its C, method and the test error at that C."""
    from maxmargin import BCFW

    setting, task = SETTINGS[name], load_task(name, n)
    limits, encoded = (passes or setting.passes, seconds or setting.seconds), task.encode()
    runs = []
    for C in REGIMES:
        fitted = task.model.set_params(C=C, max_passes=ERROR_PASSES, tol=TOL, random_state=0)
        fitted.fit(task.train.X, task.train.y, **task.train.data)
        error = 1 - float(fitted.score(task.test.X, task.test.y))
        for method in methods:
            solver = BCFW(**method, gap_every=setting.gap_every)
            for seed in range(n_seeds):
                curve = follow(solver, encoded, C, seed, *limits)
                runs.append({"dataset": name, "C": C, "error": error, "method": name_of(method), "seed": seed, **curve})
    return runs


def follow(solver: Any, encoded: Any, C: float, seed: int, passes: float, seconds: float) -> Run:
    """Run a solver within limits; return the columns of its trace, with CPU times, and the spread of its gaps."""
    from benchmarks.nonuniformity import chi, squared_norms
    from maxmargin.problem import n_examples

    n, clock = n_examples(encoded.problem), []
    began = time.process_time()

    def stop(trace: Any) -> bool:
        clock.append(time.process_time() - began)
        return clock[-1] >= seconds or trace.oracle_calls[-1] >= passes * n

    result = solver.solve(
        encoded.problem,
        C,
        lower=encoded.lower,
        upper=encoded.upper,
        tol=TOL,
        max_passes=math.inf,
        random_state=seed,
        callback=stop,
    )
    trace, spread = result.trace, chi(result.dual.gaps)
    return {
        "passes": (trace.oracle_calls / n).tolist(),
        "seconds": clock,
        "gap": trace.gap.tolist(),
        "relative": (trace.gap / trace.primal).tolist(),
        "hit_rate": float(trace.cache_hits[-1] / (trace.passes[-1] * n)),
        "chi": spread,
        "speed_up": spread**3 / chi(squared_norms(encoded, result.w)),
    }


def reached(run: Run, level: float, column: str) -> float:
    """The value of a column where the relative gap is first at most `level`; infinite if it never is."""
    return next((value for value, gap in zip(run[column], run["relative"], strict=True) if gap <= level), math.inf)


def slope(run: Run) -> float:
    """Slope of log10(gap) by effective passes over the second half of the run."""
    passes = np.array(run["passes"])
    late = passes >= passes[-1] / 2
    return float(np.polyfit(passes[late], np.log10(run["gap"])[late], 1)[0]) if late.sum() > 1 else math.nan


def summarize(runs: list[Run]) -> dict[str, Any]:
    """Medians over the seeds of one method; None for what some seed has not reached."""

    def median(values: Any) -> float | None:
        values = list(values)
        return float(np.median(values)) if all(map(math.isfinite, values)) else None

    levels = {
        level: {column: median(reached(run, level, column) for run in runs) for column in ("passes", "seconds")}
        for level in LEVELS
    }
    lasts = {f"last_{key}": median(run[key][-1] for run in runs) for key in ("passes", "seconds", "relative")}
    hit_rate, rate = median(run["hit_rate"] for run in runs), median(slope(run) for run in runs)
    spread = {key: median(run[key] for run in runs) for key in ("chi", "speed_up")}
    return {"levels": levels, **lasts, "hit_rate": hit_rate, "slope": rate, **spread}


def show(title: str, runs: list[Run]) -> None:
    def passes_and_seconds(passes: float | None, seconds: float | None) -> str | None:
        return None if passes is None or seconds is None else f"{passes:.0f} / {seconds:.2f}"

    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        summary = summarize([run for run in runs if run["method"] == method])
        cells = [passes_and_seconds(**level) for level in summary["levels"].values()]
        end = passes_and_seconds(summary["last_passes"], summary["last_seconds"])
        hits = f"{summary['hit_rate']:.0%}" if "cache" in method else None
        rate = None if summary["slope"] is None else f"{summary['slope']:.4f}"
        spread = f"{summary['chi']:.2f}", f"{summary['speed_up']:.2f}"
        rows.append([method, *cells, end, f"{summary['last_relative']:.1e}", hits, rate, *spread])
    columns = ["passes / CPU s", *(f"to {level:g}" for level in LEVELS), "at the end", "relative gap", "cache hits"]
    print_table(title, [*columns, "log10(gap) / pass", "chi", "chi^3 / chi(C)"], rows)


def draw(runs: list[Run], path: Path) -> None:
    """A block of panels per dataset, a column per C: the gap by effective passes above, by CPU time below."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(run["dataset"] for run in runs))
    figure = plt.figure(figsize=(13, 0.6 + 5.4 * len(names)), dpi=100, layout="constrained")
    blocks = figure.subfigures(len(names), 1, squeeze=False, hspace=0.03)[:, 0]
    for name, block in zip(names, blocks, strict=True):
        panels = block.subplots(2, len(REGIMES), sharey="col")
        block.suptitle(TASKS[name], fontweight="bold")
        for (C, regime), column in zip(REGIMES.items(), panels.T, strict=True):
            shown = [run for run in runs if run["dataset"] == name and run["C"] == C]
            logs = [math.log10(gap) for run in shown for gap in run["gap"]]
            column[0].set_title(f"C = {C:g}: {regime}, test error {shown[0]['error']:.1%}", fontsize=10)
            for panel, key, label in zip(
                column, ("passes", "seconds"), ("effective passes", "CPU seconds"), strict=True
            ):
                for method in dict.fromkeys(run["method"] for run in shown):
                    plot_method(panel, method, [run for run in shown if run["method"] == method], key)
                panel.set_xlabel(label)
                panel.set_xlim(left=0)
                panel.set_yscale("log")
                panel.set_ylim(10.0 ** math.floor(min(logs)), 10.0 ** math.ceil(max(logs)))
                panel.grid(alpha=0.3)
        for row in panels:
            row[0].set_ylabel("duality gap")
    save_with_legend(figure, panels[0, 0], path)


def plot_method(panel: Any, method: str, runs: list[Run], key: str) -> None:
    """The median over the seeds, within the band from the least to the greatest."""
    grid = np.linspace(max(run[key][0] for run in runs), min(run[key][-1] for run in runs), 101)
    logs = [np.interp(grid, run[key], np.log10(run["gap"])) for run in runs]
    steps, sampling, *cache = method.split(", ")
    color = "tab:blue" if cache else "tab:orange"
    panel.fill_between(grid, 10 ** np.min(logs, axis=0), 10 ** np.max(logs, axis=0), color=color, alpha=0.15, lw=0)
    panel.plot(
        grid,
        10 ** np.median(logs, axis=0),
        color=color,
        linestyle={"gap": "-", "uniform": "--", "permutation": ":"}[sampling],
        marker={"pairwise": "o", "fw": "s", "away": "^", "best": "v"}[steps],
        markevery=20,
        markersize=5,
        label=method,
    )


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "choices": list(SETTINGS), "default": ["ocr-small"]}),
        ("--steps", {"nargs": "+", "choices": ["fw", "pairwise", "away", "best"], "default": ["fw", "pairwise"]}),
        ("--sampling", {"nargs": "+", "choices": ["uniform", "permutation", "gap"], "default": ["uniform", "gap"]}),
        ("--cache", {"nargs": "+", "type": int, "default": [0, CACHE], "help": "outputs kept per example"}),
        ("--n", {"type": int, "help": "train on the first n examples"}),
        ("--seeds", {"type": int, "default": 3, "help": "runs of each method"}),
        ("--passes", {"type": float, "help": "effective passes after which a run ends"}),
        ("--seconds", {"type": float, "help": "CPU seconds after which a run ends"}),
        PNG,
    )
    methods = [
        {"steps": steps, "sampling": sampling, "cache": cache}
        for steps in arguments.steps
        for sampling in arguments.sampling
        for cache in arguments.cache
    ]
    limits, runs = (arguments.passes, arguments.seconds), []
    for name in arguments.datasets:
        new = in_fresh_process(run_dataset, name, arguments.n, methods, arguments.seeds, *limits)
        for C, regime in REGIMES.items():
            shown = [run for run in new if run["C"] == C]
            error = f"test error {shown[0]['error']:.1%}"
            show(f"{TASKS[name]}, C = {C:g} ({regime}; {error}), medians, seeds: {arguments.seeds}", shown)
        runs += new
    report_runs(runs, draw, arguments)


if __name__ == "__main__":
    main()
