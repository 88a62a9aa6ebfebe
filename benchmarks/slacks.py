"""Slacks of structural SVMs on OCR-small: the 1-slack method with and without damping, squared and rescaled slacks.

Runner and CPU seconds to a relative gap of 1 %, and test errors, over C.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import in_fresh_process, load_ocr, parse_arguments, print_table, report

TOL = 0.01
STRENGTHS = {"hinge": (0.01, 0.1, 1.0), "squared_hinge": (0.001, 0.01, 0.1)}


def methods() -> dict[str, dict[str, Any]]:
    """Arguments of `ChainSVM`."""
    from maxmargin import SGD, OneSlack

    return {
        "1-slack": {"solver": OneSlack(cache=0)},
        "1-slack, as published": {"solver": OneSlack(cache=0, damped=False)},
        "squared, 1-slack": {"loss": "squared_hinge"},
        "squared, SGD": {"loss": "squared_hinge", "solver": SGD()},
        "margin rescaling": {},
        "slack rescaling": {"rescaling": "slack"},
    }


def run(name: str, max_passes: int) -> list[list[Any]]:
    """Rows of the table for a method."""
    from maxmargin import ChainSVM

    X, y, X_test, y_test = load_ocr("small")
    options, rows = methods()[name], []
    ChainSVM(max_passes=1, **options).fit(X[:5], y[:5])  # compiles
    for C in STRENGTHS[options.get("loss", "hinge")]:
        model = ChainSVM(C=C, tol=TOL, max_passes=max_passes, random_state=0, **options)
        began = time.process_time()
        model.fit(X, y)
        took, error = time.process_time() - began, 1 - model.score(X_test, y_test)
        gap = f"{model.certificate_.relative_gap:.1e}"
        rows.append([f"{name}, C = {C:g}", f"{model.trace_.passes[-1]:.0f}", took, gap, f"{error:.1%}"])
    return rows


def main() -> None:
    arguments = parse_arguments(__doc__, ("--passes", {"type": int, "default": 1000, "help": "at most"}))
    rows = [row for name in methods() for row in in_fresh_process(run, name, arguments.passes)]
    print_table("OCR-small", ["", "passes", "CPU s", "relative gap", "test error"], rows)
    report(rows, [], arguments.json)


if __name__ == "__main__":
    main()
