"""Taskar's OCR: CPU time, memory and error of `ChainSVM` beside python-crfsuite's L-BFGS.

Every contender trains in a process of its own, on one thread. Gaps are those of the trace, that is, of
(1/2) ||w||^2 + C sum_i loss_i(w) in units of C n. The times of `ChainSVM` are those of ``fit``, its encoding included;
those of python-crfsuite leave out the time to hand the data over, which stands beside them.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks import crfsuite_peer
from benchmarks.common import Bar, Log, in_fresh_process, load_ocr, peak_megabytes, print_table, watched

C = 0.1
GAPS = (0.1, 0.025, 0.01)
SHARE = 1 / 30  # of python-crfsuite's CPU time, to stay below on the larger set
OPTIMUM = {"small": (203.06, 203.29), "large": (1941.95, 1945.1)}  # of (1/2) ||w||^2 + C sum_i loss_i(w)


def new_model(size: str, n: int, log: Log) -> Any:
    from maxmargin import ChainSVM

    tol = GAPS[-1] / (OPTIMUM[size][1] / (C * n) + GAPS[-1])  # a relative gap of tol is an absolute one <= GAPS[-1]
    return ChainSVM(C=C, cost="hamming", fit_intercept=False, tol=tol, random_state=0, solver=watched("auto", log))


def warm_up(size: str) -> None:
    """Load the loops from disk, compiling those that are missing."""
    X, y, _, _ = load_ocr(size)
    new_model(size, len(X), Log()).fit(X[:50], y[:50])


def fit_maxmargin(size: str) -> dict[str, Any]:
    warm_up(size)
    X_train, y_train, X_test, y_test = load_ocr(size)
    before = peak_megabytes()
    log = Log()
    began = time.process_time()
    model = new_model(size, len(X_train), log).fit(X_train, y_train)
    seconds, peak = time.process_time() - began, peak_megabytes()
    trace, unit = model.trace_, C * len(X_train)
    levels = []
    for gap in GAPS:
        k = next(k for k in range(len(trace)) if trace.gap[k] <= gap)
        point = {"primal": float(trace.primal[k]) * unit, "dual": float(trace.dual[k]) * unit}
        levels.append({"gap": gap, "seconds": log.clock[k] - began, "passes": float(trace.passes[k]), **point})
    return {
        "levels": levels,
        "seconds": seconds,
        "encoding": log.began - began,
        "megabytes": peak,
        "megabytes_before": before,
        "error": 1 - model.score(X_test, y_test),
    }


def fit_crfsuite(size: str) -> dict[str, Any]:
    data = load_ocr(size)
    items, before = crfsuite_peer.pixel_items(data[0][0].shape[1]), peak_megabytes()
    figures, predicted = crfsuite_peer.train(data, items, {"c1": 0, "c2": 1})
    return {**figures, "megabytes_before": before, "error": crfsuite_peer.label_error(predicted, data[3])}


def show(size: str, ours: dict[str, Any], peer: dict[str, Any]) -> None:
    def shared(run: dict[str, Any]) -> list[Any]:
        return [f"{run['error']:.2%}", f"{run['megabytes']:.0f}", f"{run['megabytes_before']:.0f}"]

    rows = []
    for level in ours["levels"]:
        values = [level["seconds"], ours["encoding"], f"{level['passes']:.0f}"]
        bounds = [f"{level['primal']:.2f}", f"{level['dual']:.2f}"]
        tail = shared(ours) if level is ours["levels"][-1] else [None] * 3
        rows.append([f"ChainSVM, gap {level['gap']}", *values, *bounds, *tail, peer["seconds"] / level["seconds"]])
    values = [peer["seconds"], f"({peer['encoding']:.2f})", peer["iterations"], f"{peer['objective']:.2f}", None]
    rows.append(["python-crfsuite L-BFGS", *values, *shared(peer), 1.0])
    columns = ["", "CPU s", "encoding s", "passes", "objective", "lower bound", "test error", "peak MB", "before MB"]
    print_table(f"OCR {size}, C = {C}, one thread", [*columns, "crfsuite / ours"], rows)


def check(size: str, ours: dict[str, Any], peer: dict[str, Any]) -> list[Bar]:
    low, high = OPTIMUM[size]
    last = ours["levels"][-1]
    primal, dual, share = last["primal"], last["dual"], last["seconds"] / peer["seconds"]
    claim = f"OCR {size}: primal and dual values agree with an optimum in [{low}, {high}]"
    bars = [Bar(claim, f"{primal:.2f}, {dual:.2f}", primal >= low and dual <= high)]
    if size == "large":
        claim = f"OCR large to a gap of 0.01 in at most {SHARE:.1%} of python-crfsuite's CPU time"
        bars.append(Bar(claim, f"{share:.1%}", share <= SHARE))
        bars.append(Bar("OCR large in less than 250 MB", f"{ours['megabytes']:.0f} MB", ours["megabytes"] < 250))
    return bars


def run(size: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return in_fresh_process(fit_maxmargin, size), in_fresh_process(fit_crfsuite, size)


if __name__ == "__main__":
    crfsuite_peer.compare(__doc__, "--sizes", [*OPTIMUM], warm_up, run, show, check)
