"""Excessive gap reduction beside its rivals: certified gaps against passes, at three strengths of the regularization.

Words of OCR-small and random trees, in float64. A pass is an exp or max oracle call per example that steps are made of;
calls for certificates are counted beside. Exponents are slopes of log gap over log passes, from a gap of 1/10 of the
objective on or, where none is that low, over the second half. The bound is eq. (22) of the paper, the number of steps
for a relative gap of 1e-3, with its constants (largest ||psi|| and number of outputs) and with those of the library
(means of the squared diameters and logarithms).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import (
    PNG,
    Bar,
    in_fresh_process,
    load_ocr,
    parse_arguments,
    print_table,
    report,
    save_with_legend,
)

TITLES = {"ocr": "OCR-small letters", "trees": "random trees"}
LEVELS = (0.1, 0.03, 0.01, 3e-3, 1e-3)  # relative gaps
EGR, BATCH = "EGR, adaptive", "exponentiated gradient, batch"
SHARE = 5  # the passes of batch exponentiated gradient for one of adaptive EGR, at least

Run = dict[str, Any]


def methods() -> dict[str, Any]:
    from maxmargin import BCFW, ExcessiveGap, ExponentiatedGradient, Extragradient, OneSlack

    return {
        EGR: ExcessiveGap(),
        "EGR, fixed": ExcessiveGap(adaptive=False),
        BATCH: ExponentiatedGradient(batch=True),
        "exponentiated gradient, blocks": ExponentiatedGradient(),
        "extragradient": Extragradient(),
        "1-slack": OneSlack(cache=0),
        "BCFW, pairwise, gap": BCFW(steps="pairwise", sampling="gap", gap_every=2),
    }


def load_problem(name: str, n: int) -> Any:
    from maxmargin import ChainSVM, TreeSVM

    if name == "ocr":
        X, y = load_ocr("small")[:2]
        return ChainSVM(fit_intercept=False, dtype="float64")._encode(X[:n], y[:n]).problem
    X, y = random_trees(min(n, 100), n_nodes=15, n_labels=5)
    return TreeSVM(fit_intercept=False, dtype="float64")._encode(X, y).problem


def random_trees(n_trees: int, n_nodes: int, n_labels: int) -> tuple[list, list]:
    """Trees whose nodes mostly have the label of their parent, or the next one, with noisy features."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n_trees):
        edges = [(int(rng.integers(child)), child) for child in range(1, n_nodes)]
        labels = np.zeros(n_nodes, int)
        labels[0] = rng.integers(n_labels)
        for parent, child in edges:
            labels[child] = (labels[parent] + rng.choice(3, p=[0.6, 0.3, 0.1])) % n_labels
        X.append((np.eye(n_labels)[labels] + rng.normal(size=(n_nodes, n_labels)), edges))
        y.append(labels)
    return X, y


def bounds(problem: Any, C: float, primal: float) -> Run:
    """The steps of eq. (22), with the constants of the paper, as far as they can be bounded, and with our own."""
    from maxmargin.losses import Loss
    from maxmargin.problem import n_examples, squared_diameters
    from maxmargin.solvers.objective.evaluation import Objective

    n, diameters = n_examples(problem), squared_diameters(problem)
    counts = Objective(problem, C, loss=Loss("entropy", margin=False))
    sizes = [counts.evaluate(np.zeros(counts.n_weights), with_gradient=False).value]
    longest = int(np.argmax(np.diff(problem.starts)))
    counts.weight = n * np.eye(n)[longest]
    sizes.append(counts.evaluate(np.zeros(counts.n_weights), with_gradient=False).value)

    def steps(squared_radius: float, log_outputs: float) -> float:
        return 2 + float(np.sqrt(6 * log_outputs * squared_radius * n * C / (LEVELS[-1] * primal)))

    return {"paper": steps(diameters.max(), sizes[1]), "ours": steps(diameters.mean() / 4, sizes[0])}


def exponent(passes: np.ndarray, gaps: np.ndarray, primals: np.ndarray) -> float | None:
    """The slope of log gap over log passes."""
    kept = gaps <= 0.1 * primals
    if kept.sum() < 5:
        kept = passes >= passes[-1] / 2
    kept &= gaps > 0
    if kept.sum() < 3:
        return None
    return float(np.polyfit(np.log(passes[kept]), np.log(gaps[kept]), 1)[0])


def run_dataset(name: str, Cs: list[float], n: int, most: float, seconds: float) -> list[Run]:
    """All methods at each C; batch exponentiated gradient has SHARE times the passes that EGR took, if that is more."""
    problem, runs = load_problem(name, n), []
    for C in Cs:
        taken = most
        for label, solver in methods().items():
            limit = SHARE * taken if label == BATCH else most
            began = time.process_time()
            result = solver.solve(
                problem, C, tol=LEVELS[-1], max_passes=limit, time_limit=seconds * limit / most, random_state=0
            )
            trace = result.trace
            if label == EGR and result.status.name == "OPTIMAL":
                taken = float(trace.passes[-1])
            relative = trace.gap / trace.primal
            reached = [float(trace.passes[k[0]]) if (k := np.flatnonzero(relative <= r)).size else None for r in LEVELS]
            runs.append(
                {
                    "dataset": name,
                    "C": C,
                    "method": label,
                    "reached": reached,
                    "passes": float(trace.passes[-1]),
                    "calls": float(trace.oracle_calls[-1]) / len(problem.starts[1:]),
                    "gap": float(relative[-1]),
                    "exponent": exponent(trace.passes, trace.gap, trace.primal),
                    "seconds": time.process_time() - began,
                    "bounds": bounds(problem, C, float(trace.primal[-1])),
                    "curve": [*zip(trace.passes.tolist(), trace.gap.tolist(), strict=True)],
                }
            )
    return runs


def judge(title: str, runs: list[Run]) -> list[Bar]:
    by_method = {run["method"]: run for run in runs}
    egr, batch = by_method[EGR], by_method[BATCH]
    slope = egr["exponent"]
    bars = [Bar(f"{title}: exponent of adaptive EGR at most -1.8", f"{slope:.2f}", slope <= -1.8)]
    if egr["dataset"] == "ocr":
        ours, theirs = egr["reached"][-1], batch["reached"][-1]
        at_least = "" if theirs else "more than "
        ratio = (theirs or batch["passes"]) / (ours or np.inf)
        figure = f"{at_least}{ratio:.2f} times" if ours else f"EGR ends at a relative gap of {egr['gap']:.2g}"
        claim = f"{title}: batch exponentiated gradient takes {SHARE} times the passes of adaptive EGR to 1e-3"
        bars.append(Bar(claim, figure, ratio >= SHARE * (1 - 1e-3)))
    return bars


def draw(runs: list[Run], path: Path) -> None:
    """A panel per problem: gaps by passes."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    problems = dict.fromkeys((run["dataset"], run["C"]) for run in runs)
    figure, panels = plt.subplots(
        1, len(problems), figsize=(12 * len(problems), 5), dpi=100, layout="constrained", squeeze=False
    )
    for panel, (name, C) in zip(panels[0], problems, strict=True):
        for run in runs:
            if (run["dataset"], run["C"]) == (name, C):
                panel.plot(*zip(*run["curve"], strict=True), label=run["method"])
        panel.set(xscale="log", yscale="log", xlabel="passes", ylabel="duality gap", title=f"{TITLES[name]}, C = {C:g}")
        panel.grid(alpha=0.3)
    save_with_legend(figure, panels[0, 0], path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "choices": list(TITLES), "default": list(TITLES)}),
        ("--C", {"nargs": "+", "type": float, "default": [0.01, 0.1, 1.0]}),
        ("--n", {"type": int, "default": 1000, "help": "train on the first so many examples"}),
        ("--passes", {"type": float, "default": 3000.0, "help": "the most passes of a method"}),
        ("--seconds", {"type": float, "default": 600.0, "help": "the most seconds of a method"}),
        PNG,
    )
    figures: list[Run] = []
    bars: list[Bar] = []
    for name in arguments.datasets:
        settings = (arguments.C, arguments.n, arguments.passes, arguments.seconds)
        runs = in_fresh_process(run_dataset, name, *settings)
        figures += runs
        for C in arguments.C:
            mine = [run for run in runs if run["C"] == C]
            steps = mine[0]["bounds"]
            title = f"{TITLES[name]}, C = {C:g}"
            print_table(
                f"{title}; passes to a relative gap. Eq. (22): {steps['paper']:.0f} steps, ours {steps['ours']:.0f}",
                ["", *map(str, LEVELS), "exponent", "last gap", "passes", "calls", "CPU s"],
                [
                    [
                        run["method"],
                        *run["reached"],
                        *(run[key] for key in ("exponent", "gap", "passes", "calls")),
                        run["seconds"],
                    ]
                    for run in mine
                ],
            )
            bars += judge(title, mine)
    if arguments.png is not None:
        draw(figures, arguments.png)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
