"""Solvers of the hinge loss as they come, at every strength of the regularization.

Named entities (WNUT-17), chunks (CoNLL-2000) and letters (OCR), each with C from 0.1 to 100. Nothing is tuned. Part
"solvers": objectives and certified gaps after some effective passes, that is, oracle calls per example, those for full
gradients, certificates and estimates included; beside them the passes that steps were taken on. Part "sgd": Polyak's
steps beside a grid of fixed first steps. Part "svrg": the default beside a grid of levels and smoothness constants.
"Gap ratio" is the certified gap over the true one, by the lowest objective and the highest lower bound of a long run.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, load_ocr, parse_arguments, print_table, report
from benchmarks.entities import load_hashed

TITLES = {"wnut": "WNUT-17 entities", "conll": "CoNLL-2000 chunks", "ocr": "OCR-small letters"}
STEPS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
LEVELS, CONSTANTS = (0.1, 1.0, 3.0), (30.0, 100.0, 300.0, 1000.0)

Run = dict[str, Any]


def methods(part: str) -> dict[str, Any]:
    from maxmargin import BCFW, SGD, SVRG, Casimir, NSlack, OneSlack

    if part == "sgd":
        return {"SGD": SGD(), **{f"step {step:g}": SGD(schedule="decay", step=step) for step in STEPS}}
    if part == "svrg":
        grid = product(LEVELS, CONSTANTS)
        return {"SVRG": SVRG(), **{f"mu {mu:g}, L {L:g}": SVRG(level=mu, smoothness=L) for mu, L in grid}}
    return {
        "BCFW, pairwise, gap": BCFW(steps="pairwise", sampling="gap", gap_every=2),
        "BCFW, average": BCFW(averaging=True, gap_every=2),
        "Casimir": Casimir(),
        "Casimir, constant": Casimir(schedule="constant"),
        "SVRG": SVRG(),
        "SGD": SGD(),
        "n-slack": NSlack(),
        "1-slack": OneSlack(),
    }


def run_dataset(name: str, part: str, Cs: list[float], passes: list[float], seeds: int, n: int) -> list[Run]:
    from maxmargin import BCFW, ChainSVM

    X, y = (load_ocr("small") if name == "ocr" else load_hashed(name))[:2]
    problem = ChainSVM(fit_intercept=False)._encode(X[:n], y[:n]).problem
    n = min(n, len(X))

    def follow(solver: Any, C: float, seed: int) -> Run:
        def enough(trace: Any) -> bool:
            return trace.oracle_calls[-1] >= passes[-1] * n

        trace = solver.solve(problem, C, tol=1e-6, max_passes=10_000, callback=enough, random_state=seed).trace
        calls = trace.oracle_calls / n
        ends = [int(np.searchsorted(calls, limit, side="right")) for limit in passes]
        return {
            "primal": [float(trace.primal[:end].min()) if end else None for end in ends],
            "dual": float(trace.dual[: ends[-1]].max()),
            "calls": float(calls[ends[-1] - 1]),
            "steps": float(trace.passes[ends[-1] - 1]),
        }

    runs = []
    for C in Cs:
        found = [
            {"dataset": name, "C": C, "method": label, **follow(solver, C, seed)}
            for label, solver in methods(part).items()
            for seed in range(seeds)
        ]
        best = BCFW(steps="pairwise", sampling="gap").solve(
            problem, C, tol=1e-4, max_passes=3000, time_limit=60, random_state=0
        )
        lowest = min(best.certificate.primal, *(run["primal"][-1] for run in found))
        runs += [{**run, "lowest": lowest, "highest": best.certificate.dual} for run in found]
    return runs


def median(runs: list[Run], value: Any) -> float | None:
    values = [value(run) for run in runs]
    return None if None in values else float(np.median(values))


def gap_ratio(run: Run) -> float:
    return (run["primal"][-1] - run["dual"]) / max(run["primal"][-1] - run["lowest"], 1e-9 * run["lowest"])


def show(name: str, C: float, runs: list[Run], passes: list[float]) -> dict[str, list[float | None]]:
    """Print the medians over the seeds; return the objectives by method."""
    objectives, rows = {}, []
    for label in dict.fromkeys(run["method"] for run in runs):
        mine = [run for run in runs if run["method"] == label]
        objectives[label] = [median(mine, lambda run, k=k: run["primal"][k]) for k in range(len(passes))]
        rest = (median(mine, lambda run: run["dual"]), median(mine, gap_ratio), median(mine, lambda run: run["steps"]))
        rows.append([label, *(None if value is None else f"{value:.4f}" for value in objectives[label]), *rest])
    columns = ["", *(f"after {limit:g}" for limit in passes), "lower bound", "gap ratio", "of them steps"]
    known = f"optimum between {runs[0]['highest']:.4f} and {runs[0]['lowest']:.4f}"
    print_table(f"{TITLES[name]}, C = {C:g}; {known}", columns, rows)
    return objectives


def judge(part: str, title: str, objectives: dict[str, list[float | None]], runs: list[Run]) -> list[Bar]:
    def last(label: str) -> float:
        return float(objectives[label][-1] or np.nan)

    if part in ("sgd", "svrg"):
        default = "SGD" if part == "sgd" else "SVRG"
        factor = 1.2 if part == "sgd" else 2.0
        best = min((label for label in objectives if label != default), key=last)
        ratio = last(default) / last(best)
        return [Bar(f"{title}: within {factor:g} of the best of a grid", f"{ratio:.2f} of {best}", ratio <= factor)]
    bars = []
    if runs[0]["C"] >= 1:
        pairs = [
            (ours, theirs)
            for ours, theirs in zip(objectives["Casimir"], objectives["BCFW, average"], strict=True)
            if ours is not None and theirs is not None
        ]
        worst = max(ours / theirs for ours, theirs in pairs)
        bars.append(Bar(f"{title}: Casimir ahead of averaged BCFW", f"at most {worst:.2f} of it", worst <= 1))
    for label in ("Casimir", "SVRG", "SGD"):
        ratio = median([run for run in runs if run["method"] == label], gap_ratio) or np.inf
        bars.append(Bar(f"{title}: gap of {label} at most 3 times the true one", f"{ratio:.2f}", ratio <= 3))
    return bars


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "choices": list(TITLES), "default": list(TITLES)}),
        ("--part", {"choices": ["solvers", "sgd", "svrg"], "default": "solvers"}),
        ("--C", {"nargs": "+", "type": float, "default": [0.1, 1.0, 10.0, 100.0]}),
        ("--passes", {"nargs": "+", "type": float, "default": [10.0, 20.0, 40.0], "help": "effective passes"}),
        ("--seeds", {"type": int, "default": 3}),
        ("--n", {"type": int, "default": 1000, "help": "train on the first so many examples"}),
    )
    figures: list[Run] = []
    bars: list[Bar] = []
    for name in arguments.datasets:
        settings = (arguments.part, arguments.C, arguments.passes, arguments.seeds, arguments.n)
        runs = in_fresh_process(run_dataset, name, *settings)
        figures += runs
        for C in arguments.C:
            mine = [run for run in runs if run["C"] == C]
            objectives = show(name, C, mine, arguments.passes)
            bars += judge(arguments.part, f"{TITLES[name]}, C = {C:g}", objectives, mine)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
