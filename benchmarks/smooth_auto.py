"""The default solver of conditional random fields beside the two that it chooses from, over C.

CPU seconds of `ChainCRF` to relative duality gaps of 1e-2, 1e-3 and 1e-4, encoding excluded, by ``solver="auto"``, by
`ExponentiatedGradient` with gap sampling and by `LBFGS`. Runs end at the last gap or at the limit; a solver that has
not got there counts as slower than any that has.
"""

from __future__ import annotations

from typing import Any

from benchmarks.chunking import load_chunking
from benchmarks.common import Bar, Log, in_fresh_process, load_ocr, parse_arguments, print_table, report, watched

SOLVERS = ("auto", "ExponentiatedGradient", "LBFGS")
GAPS = (1e-2, 1e-3, 1e-4)
NEVER = float("inf")
AHEAD = 1.3  # times the faster of the two is what "auto" may take
NOTHING = 0.2  # CPU seconds that are not worth a choice


def load(data: str, n: int) -> tuple[list, list]:
    X, y, *_ = load_chunking() if data == "conll" else load_ocr(data.removeprefix("ocr-"))
    return (X[:n], y[:n]) if data == "conll" else (X, y)


def fit(data: str, n: int, strengths: list[float], seconds: float) -> list[dict[str, Any]]:
    """Train at every C by every solver, in one process with warm loops."""
    from maxmargin import LBFGS, ChainCRF, ExponentiatedGradient

    X, y = load(data, n)
    solvers = ("auto", ExponentiatedGradient(sampling="gap"), LBFGS())
    runs = []
    for C in strengths:
        for name, solver in zip(SOLVERS, solvers, strict=True):
            log = Log()
            options = {"only_observed": data == "conll", "tol": GAPS[-1], "time_limit": seconds, "random_state": 0}
            if len(runs) < len(SOLVERS):  # the first fit compiles or loads the loops
                ChainCRF(C=C, max_passes=12, solver=solver, **options).fit(X, y)
            trace = ChainCRF(C=C, solver=watched(solver, log), **options).fit(X, y).trace_
            gaps = (trace.primal - trace.dual) / trace.primal
            times = [next((log.clock[k] - log.began for k in (gaps <= gap).nonzero()[0]), NEVER) for gap in GAPS]
            runs.append({"data": data, "C": C, "solver": name, "seconds": times, "notes": list(trace.notes)})
    return runs


def choices(notes: list[str]) -> tuple[str, str]:
    """What "auto" began with, and whether it handed over."""
    began = "single steps" if any(note.startswith("Began") for note in notes) else ""
    return began, "to L-BFGS" if any(note.startswith("Handed over") for note in notes) else ""


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "default": ["ocr-small", "ocr-large", "conll"]}),
        ("--C", {"type": float, "nargs": "+", "default": [0.01, 0.1, 1.0, 10.0, 100.0]}),
        ("--n", {"type": int, "default": 2000, "help": "sentences of CoNLL-2000"}),
        ("--seconds", {"type": float, "default": 60.0, "help": "limit of a run"}),
    )
    runs = [
        run
        for data in arguments.datasets
        for run in in_fresh_process(fit, data, arguments.n, arguments.C, arguments.seconds)
    ]
    columns = ["CPU s to a relative gap of", "C", "solver", *(f"{gap:g}" for gap in GAPS), "began with", "handed over"]
    rows = ((run["data"], run["C"], run["solver"], *run["seconds"], *choices(run["notes"])) for run in runs)
    print_table("Solvers of conditional random fields", columns, rows)
    worst, where = 0.0, ""
    for k in range(0, len(runs), len(SOLVERS)):
        auto, *others = runs[k : k + len(SOLVERS)]
        for gap, taken, *alone in zip(GAPS, auto["seconds"], *(run["seconds"] for run in others), strict=True):
            best = max(min(alone), NOTHING)
            if best < NEVER and taken / best > worst:
                worst, where = taken / best, f"{auto['data']}, C = {auto['C']:g}, gap {gap:g}"
    bar = Bar(f"auto in at most {AHEAD:g} times the better of the two", f"{worst:.2f} ({where})", worst <= AHEAD)
    report(runs, [bar], arguments.json)


if __name__ == "__main__":
    main()
