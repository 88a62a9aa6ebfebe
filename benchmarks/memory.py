"""What the dual points of BCFW take: peak memory of training over that of the same process before it.

Chains with many labels, whose transition counts are far more than their labels, and Taskar's OCR. The problem is
encoded and a few examples are trained on before the clock starts, so loops and data count as before.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import (
    Bar,
    forget_peak,
    in_fresh_process,
    load_ocr,
    parse_arguments,
    peak_megabytes,
    print_table,
    random_chains,
    report,
)

MOST = {"chains": 100.0, "ocr-large": 25.0}


def measure(data: str, steps: str, passes: int) -> dict[str, Any]:
    """Megabytes and CPU seconds of a run of BCFW, on random chains of 300 labels or on OCR-large."""
    from maxmargin import BCFW, ChainSVM

    X, y = random_chains(1000, 10, 300, 20) if data == "chains" else load_ocr("large")[:2]
    model = ChainSVM(solver=BCFW(steps=steps))
    small = model._encode(X[:50], y[:50]).problem
    problem = model._encode(X, y).problem
    solver = BCFW(steps=steps, sampling="gap" if steps == "pairwise" else "permutation")
    solver.solve(small, 1.0, max_passes=2, tol=1e-9)
    before, began = forget_peak(), time.process_time()
    result = solver.solve(problem, 1.0, max_passes=passes, tol=1e-9, random_state=0)
    return {
        "data": data,
        "steps": steps,
        "MB": peak_megabytes() - before,
        "CPU s": time.process_time() - began,
        "gap": float(result.certificate.gap / result.certificate.primal),
    }


def main() -> None:
    arguments = parse_arguments(__doc__, ("--passes", {"type": int, "default": 15}))
    rows = [in_fresh_process(measure, data, steps, arguments.passes) for data in MOST for steps in ("pairwise", "fw")]
    print_table(f"BCFW, {arguments.passes} passes", rows[0], (row.values() for row in rows))
    bars = [
        Bar(f"{row['data']}, {row['steps']} steps: under {most:g} MB", f"{row['MB']:.0f}", row["MB"] < most)
        for row in rows
        for most in [MOST[row["data"]]]
    ]
    report(rows, bars, arguments.json)


if __name__ == "__main__":
    main()
