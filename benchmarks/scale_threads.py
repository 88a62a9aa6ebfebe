"""Whole fits to the default tol on one thread and on several: wall time, CPU time, passes, and whether runs are equal.

Times are those of `fit`, encoding included, after a short fit that compiles. Fits on one thread and on several are
timed in turn, and the least time of each counts.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.chunking import load_chunking
from benchmarks.common import Bar, in_fresh_process, load_ocr, print_table, report

LEAST_SPEEDUP = 1.5  # of a fit, by a second thread
LEAST_SPEEDUP_OF_TRAINING = 1.4  # from the file to the model
MOST_OF_MANY = 1.2  # times the time on two threads, that four may take on two cores
MOST_CPU = 1.3  # times the CPU time on one thread
TRIAL = 200  # examples, in a trial of one round
SVM, CRF, CHUNKS = "ChainSVM, OCR large", "ChainCRF, OCR large", "ChainCRF, CoNLL-2000"


def new_model(name: str, n_jobs: int, **options: Any) -> Any:
    from maxmargin import ChainCRF, ChainSVM

    options |= {"n_jobs": n_jobs, "random_state": 0}
    return ChainSVM(C=0.1, **options) if name == SVM else ChainCRF(only_observed=name == CHUNKS, **options)


def time_fits(name: str, threads: tuple[int, ...], n_rounds: int, size: int | None) -> list[dict[str, Any]]:
    """Fits to the first examples, or to all."""
    import warnings

    X, y = (part[:size] for part in (load_chunking() if name == CHUNKS else load_ocr("large"))[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that short fits are not solved
        for n_jobs in threads:
            new_model(name, n_jobs, max_passes=7).fit(X, y)
    runs: dict[int, list[dict[str, Any]]] = {n_jobs: [] for n_jobs in threads}
    for _ in range(n_rounds):
        for n_jobs in threads:
            wall, cpu = time.perf_counter(), time.process_time()
            model = new_model(name, n_jobs).fit(X, y)
            runs[n_jobs].append(
                {
                    "wall": time.perf_counter() - wall,
                    "cpu": time.process_time() - cpu,
                    "passes": model.trace_.oracle_calls[-1] / len(X),
                    "status": model.status_.name,
                    "weights": hashlib.sha256(model._w.tobytes()).hexdigest(),
                }
            )
    return [
        {
            "case": name,
            "threads": n_jobs,
            "wall": min(run["wall"] for run in of_threads),
            "cpu": min(run["cpu"] for run in of_threads),
            "passes": of_threads[0]["passes"],
            "is_solved": all(run["status"] == "OPTIMAL" for run in of_threads),
            "is_same": len({run["weights"] for run in of_threads}) == 1,
        }
        for n_jobs, of_threads in runs.items()
    ]


def time_training(n_rounds: int, size: int | None) -> list[dict[str, Any]]:
    """``maxmargin train`` on CoNLL-2000, from the file to the model, in processes of their own."""
    text = (Path(os.environ["MAXMARGIN_DATA"]) / "conll2000" / "train.txt").read_text()
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        file.write_text("\n\n".join(text.split("\n\n")[:size]))
        for k in range(n_rounds + 1):  # the first one compiles
            for n_jobs, times in seconds.items():
                command = [sys.executable, "-m", "maxmargin", "train", str(file), "--quiet", "--jobs", str(n_jobs)]
                command += [] if k else ["--max-passes", "7"]
                began = time.perf_counter()
                subprocess.run([*command, "--model", f"{folder}/{n_jobs}.model"], check=True)
                if k:
                    times.append(time.perf_counter() - began)
    return [{"case": "maxmargin train", "threads": n, "wall": min(times)} for n, times in seconds.items()]


def judge(figures: list[dict[str, Any]]) -> list[Bar]:
    found = {(row["case"], row["threads"]): row for row in figures}

    def ratio(case: str, key: str, one: int, other: int) -> float:
        return found[case, one][key] / found[case, other][key]

    bars = []

    def hold(claim: str, value: float, is_met: Callable[[float], bool]) -> None:
        bars.append(Bar(claim, f"{value:.2f}", is_met(value)))

    for case in (SVM, CRF, CHUNKS):
        speedup, cpu = ratio(case, "wall", 1, 2), ratio(case, "cpu", 2, 1)
        hold(f"{case}: two threads are {LEAST_SPEEDUP} times as fast", speedup, lambda value: value >= LEAST_SPEEDUP)
        hold(f"{case}: CPU time of two, at most {MOST_CPU} times", cpu, lambda value: value <= MOST_CPU)
        many = ratio(case, "wall", 4, 2)
        hold(f"{case}: four threads, at most {MOST_OF_MANY} times two", many, lambda value: value <= MOST_OF_MANY)
    training = ratio("maxmargin train", "wall", 1, 2)
    hold(f"maxmargin train: {LEAST_SPEEDUP_OF_TRAINING} times", training, lambda v: v >= LEAST_SPEEDUP_OF_TRAINING)
    fits = [row for row in figures if "passes" in row]
    bars.append(Bar("runs of one seed and number of threads are equal", "", all(row["is_same"] for row in fits)))
    bars.append(Bar("all are solved", "", all(row["is_solved"] for row in fits)))
    return bars


def run(n_rounds: int, json: Path | None) -> None:
    size = TRIAL if n_rounds == 1 else None
    figures = [
        row
        for case in (SVM, CRF, CHUNKS)
        for row in in_fresh_process(time_fits, case, (1, 2, 4), max(n_rounds, 2), size)
    ]
    figures += time_training(n_rounds, size)
    columns = ["threads", "wall", "cpu", "passes"]
    rows = [[row["case"], *(row.get(key) for key in columns)] for row in figures]
    title = f"Fits on {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    print_table(title, ["", "threads", "wall, s", "CPU, s", "passes"], rows)
    report(figures, judge(figures), json)
