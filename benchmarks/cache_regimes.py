"""When BCFW takes outputs from the cache in place of the oracle's: Figure 2 of *Minding the gaps* (Osokin et al. 2016).

A cached output is taken where the gap that it promises is at least F times the last known gap of its example (the local
criterion) and nu / n times the last known gap of all (the global one). Over a grid of F and nu: the share of steps by
cached outputs, which criterion was mostly the stricter one, and the duality gap after some effective passes, that is,
oracle calls per example, those of certificates included. The cost is divided by the number of labels, C = 1.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import PNG, Bar, in_fresh_process, parse_arguments, print_table, report
from benchmarks.tasks import TASKS, load_task

FACTORS = (1e-3, 1e-2, 0.1, 0.25, 1.0, 10.0)  # F
NUS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
DEFAULT = 0.25, 0.01
CACHE = 100  # outputs of an example
STEPS = 20  # per effective pass, at most: where the oracle is hardly ever called, a run would not end
ALMOST = 0.02  # of all steps: a cache that is hit less often is of no use, one that is missed less often starves

Figures = dict[str, Any]


def run_regimes(name: str, n: int | None, passes: float) -> list[Figures]:
    from maxmargin import BCFW

    encoded = load_task(name, n, "normalized_hamming").encode()
    methods = [(None, BCFW(sampling="gap"))]
    for factor, nu in itertools.product(FACTORS, NUS):
        methods.append(((factor, nu), BCFW(sampling="gap", cache=CACHE, cache_factor=factor, cache_nu=nu)))
    return [follow(solver, encoded, passes, point) for point, solver in methods]


def follow(solver: Any, encoded: Any, passes: float, point: tuple[float, float] | None) -> Figures:
    """Run BCFW for so many effective passes; the gap and the share of cache hits."""
    from maxmargin.problem import n_examples

    n, local = n_examples(encoded.problem), []

    class Watched(type(solver)):  # type: ignore[misc]
        def seems_solved(self, state: Any, target: float, n_passes: int) -> bool:
            local.append(np.mean(solver.cache_factor * state.gaps > solver.cache_nu / n * state.global_gap))
            return False

    options = {name: getattr(solver, name) for name in ("sampling", "cache", "cache_factor", "cache_nu")}
    trace = (
        Watched(**options)
        .solve(
            encoded.problem,
            1.0,
            lower=encoded.lower,
            upper=encoded.upper,
            tol=1e-9,
            max_passes=STEPS * passes,
            random_state=0,
            callback=lambda trace: bool(trace.oracle_calls[-1] >= passes * n),
        )
        .trace
    )
    return {
        "point": point,
        "passes": (trace.oracle_calls / n).tolist(),
        "gap": trace.gap.tolist(),
        "hits": float(trace.cache_hits[-1] / (n * trace.passes[-1])),
        "local": float(np.mean(local[1:])),
        "starved": bool(trace.oracle_calls[-1] < passes * n),
    }


def regime(run: Figures) -> str:
    """Which of the regimes of the paper a run was in."""
    if run["hits"] < ALMOST:
        return "no hits"
    if run["starved"]:
        return "starved"
    return "local" if run["local"] > 0.5 else "global"


def show(title: str, runs: list[Figures], passes: float) -> None:
    plain, *rest = runs
    found = {run["point"]: run for run in rest}
    columns = ["F \\ nu", *(f"{nu:g}" for nu in NUS)]
    for what, cell in (
        ("regime, and the share of steps by the cache", lambda run: f"{regime(run)} {run['hits']:.0%}"),
        (
            f"gap after {passes:g} effective passes; {plain['gap'][-1]:.2e} without a cache",
            lambda run: f"{run['gap'][-1]:.2e}",
        ),
    ):
        rows = [[f"{factor:g}", *(cell(found[factor, nu]) for nu in NUS)] for factor in FACTORS]
        print_table(f"{title}: {what}", columns, rows)


def draw(figures: list[Figures], path: Path) -> None:
    """A row per dataset: the last gaps over the grid, with their regimes, and gaps by passes, of one run of each."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(figures), 2, figsize=(13, 4.6 * len(figures)), dpi=100, layout="constrained", squeeze=False
    )
    for (left, right), one in zip(panels, figures, strict=True):
        plain, *runs = one["runs"]
        gaps = np.array([run["gap"][-1] for run in runs]).reshape(len(FACTORS), len(NUS))
        left.imshow(np.log10(gaps), aspect="auto")
        middle = np.sqrt(gaps.min() * gaps.max())
        for k, run in enumerate(runs):
            text, color = f"{run['gap'][-1]:.3f}\n{regime(run)}", "white" if run["gap"][-1] < middle else "black"
            left.text(k % len(NUS), k // len(NUS), text, ha="center", va="center", color=color)
        left.set_xticks(range(len(NUS)), [f"{nu:g}" for nu in NUS])
        left.set_yticks(range(len(FACTORS)), [f"{factor:g}" for factor in FACTORS])
        left.set(xlabel="nu", ylabel="F", title=f"{TASKS[one['data']]}: the last gap")
        right.plot(plain["passes"], plain["gap"], label="no cache")
        for kind in dict.fromkeys(map(regime, runs)):
            best = min((run for run in runs if regime(run) == kind), key=lambda run: run["gap"][-1])
            factor, nu = best["point"]
            right.plot(best["passes"], best["gap"], label=f"{kind}: F = {factor:g}, nu = {nu:g}")
        right.set(yscale="log", xlabel="effective passes", ylabel="duality gap", title="the best of each regime")
        right.grid(alpha=0.3)
        right.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--data", {"nargs": "+", "choices": list(TASKS), "default": ["ocr-small"]}),
        ("--n", {"type": int, "help": "train on the first n examples"}),
        ("--passes", {"type": float, "default": 100.0, "help": "effective passes of a run"}),
        PNG,
    )
    figures, bars = [], []
    for name in arguments.data:
        runs = in_fresh_process(run_regimes, name, arguments.n, arguments.passes)
        show(TASKS[name], runs, arguments.passes)
        plain, *rest = runs
        default = next(run["gap"][-1] for run in rest if run["point"] == DEFAULT)
        for kind in ("local", "global"):
            gaps = [run["gap"][-1] for run in rest if regime(run) == kind]
            best = f"{min(gaps):.2e}" if gaps else "none"
            print(f"{TASKS[name]}, {kind} criterion stricter: {len(gaps)} points, lowest gap {best}")
        figure = f"{default:.2e} and {plain['gap'][-1]:.2e}"
        claim = f"{TASKS[name]}: a lower gap with the default F and nu than without a cache"
        bars.append(Bar(claim, figure, default < plain["gap"][-1]))
        figures.append({"data": name, "runs": runs})
    if arguments.png is not None:
        draw(figures, arguments.png)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
