"""Whether training, once compiled, has become faster or slower than in an earlier revision.

Processes of the two revisions take turns, so that both meet the same moods of the machine. Each fits on a few examples
before the clock starts. Where passes or objectives of the two differ, so does their work.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import BEFORE, Bar, parse_arguments, print_table, report, revisions
from benchmarks.warm_fits import WORKLOADS

PROGRAM = Path(__file__).with_name("warm_fits.py")
MOST_SLOWER = 1.03


def measure(before: str, workloads: list[str], rounds: int) -> dict[str, dict[str, list[dict[str, float]]]]:
    """By workload and revision, what its processes have measured."""
    with revisions(before) as both, tempfile.TemporaryDirectory() as folder:
        caches = {revision.name: str(Path(folder) / revision.name) for revision in both}
        figures: dict[str, dict[str, list[dict[str, float]]]] = {}
        for workload in workloads:
            figures[workload] = {revision.name: [] for revision in both}
            for revision in both * rounds:
                run = revision.run(PROGRAM, workload, cache=caches[revision.name])
                figures[workload][revision.name].append(run)
    return figures


def rows(figures: dict[str, dict[str, list[dict[str, float]]]]) -> list[list[Any]]:
    table = []
    for workload, by_revision in figures.items():
        base = None
        for name, runs in by_revision.items():
            seconds = [run["seconds"] for run in runs]
            least, median = min(seconds), statistics.median(seconds)
            ratios = [f"{least / base[0]:.3f}", f"{median / base[1]:.3f}"] if base else [None, None]
            base = base or (least, median)
            work = [f"{runs[0]['passes']:g}", f"{runs[0]['primal']:.6g}"]
            table.append([f"{workload}, {name}", least, median, *ratios, *work])
    return table


def check(workload: str, before: list[dict[str, float]], now: list[dict[str, float]]) -> Bar:
    ratio = min(run["seconds"] for run in now) / min(run["seconds"] for run in before)
    return Bar(f"{workload}: at most {MOST_SLOWER} times the CPU time", f"{ratio:.3f}", ratio <= MOST_SLOWER)


def main() -> None:
    names = {"nargs": "+", "choices": list(WORKLOADS), "default": list(WORKLOADS)}
    rounds = {"type": int, "default": 5, "help": "processes per revision and workload"}
    arguments = parse_arguments(__doc__, BEFORE, ("--workloads", names), ("--rounds", rounds))
    try:
        figures = measure(arguments.before, arguments.workloads, arguments.rounds)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"warm_speed: {error}") from error
    columns = ["CPU seconds", "least", "median", "now / before", "of medians", "passes", "objective"]
    print_table(f"Warm fits, {arguments.rounds} processes each", columns, rows(figures))
    bars = [check(workload, *runs.values()) for workload, runs in figures.items() if len(runs) > 1]
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
