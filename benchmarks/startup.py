"""How long a user waits before work begins: imports, the first fit with kernels on disk, and compilation."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, random_chains, report

MOST_IMPORT = 0.7
MOST_FIRST_FIT = 1.0


def time_import(statement: str) -> float:
    code = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def time_fits() -> tuple[float, float]:
    """Seconds of the first fit of the process and of the fastest of five more."""
    from maxmargin import ChainSVM

    X, y = random_chains(20, 10, n_labels=5, n_features=8)
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        ChainSVM(random_state=0).fit(X, y)
        seconds.append(time.perf_counter() - began)
    return seconds[0], min(seconds[1:])


def main() -> None:
    arguments = parse_arguments(__doc__, ("--repeats", {"type": int, "default": 7, "help": "processes per figure"}))
    figures = {
        statement: statistics.median(time_import(statement) for _ in range(arguments.repeats))
        for statement in ("import maxmargin", "from maxmargin import ChainSVM", "import sklearn.base")
    }
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            in_fresh_process(time_fits, environment={"NUMBA_CACHE_DIR": folder}) for _ in range(1 + arguments.repeats)
        ]
    cold, *cached = (first - warm for first, warm in runs)
    figures |= {
        "a fit": statistics.median(warm for _, warm in runs),
        "first fit minus a fit, kernels on disk": statistics.median(cached),
        "first fit minus a fit, kernels compiled": cold,
    }
    print_table("Start-up, medians", ["", "seconds"], figures.items())
    bars = [
        Bar(f"{name} in less than {most} s", f"{figures[name]:.2f} s", figures[name] < most)
        for name, most in (
            ("import maxmargin", MOST_IMPORT),
            ("first fit minus a fit, kernels on disk", MOST_FIRST_FIT),
        )
    ]
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
