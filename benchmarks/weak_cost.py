"""What it costs to train on outputs that are known in part, on handwritten letters.

A pass of a conditional random field; fits by the concave-convex procedure and by EM, beside those of full labels, and
by where rounds of completions begin.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, load_ocr, parse_arguments, print_table, report

REPEATS = 9  # of a pass, of which the fastest counts
MOST_FOR_A_PASS, MOST_FOR_A_FIT = 2.2, 3.0


def load(size: str, known: float) -> tuple[list, list, list, list, list]:
    """Words, their letters, the letters of which a share is known, test words and letters."""
    X, y, X_test, y_test = load_ocr(size)
    rng = np.random.default_rng(0)
    partial = [[letter if rng.random() < known else None for letter in word] for word in y]
    return X, y, partial, X_test, y_test


def fastest(function: Callable[[], Any]) -> float:
    """CPU seconds of the fastest call."""
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        function()
        seconds.append(time.process_time() - began)
    return min(seconds)


def measure_pass(size: str, known: float) -> dict[str, float]:
    """CPU milliseconds of a pass with all labels, and with some."""
    from maxmargin import ChainCRF
    from maxmargin.losses import find_loss
    from maxmargin.solvers.objective.evaluation import Objective
    from maxmargin.solvers.objective.latent_objective import LatentObjective

    X, y, partial, *_ = load(size, known)
    full, task = (ChainCRF()._encode(X, labels) for labels in (y, partial))
    loss = find_loss("log")
    objectives = (Objective(full.problem, loss=loss), LatentObjective(task.weak, task.problem, 1.0, loss=loss))
    w = 0.05 * np.random.default_rng(0).normal(size=objectives[0].n_weights)
    milliseconds = [1e3 * fastest(lambda objective=objective: objective.evaluate(w)) for objective in objectives]
    return dict(zip(("full", "partial"), milliseconds, strict=True))


def measure_fit(
    size: str, known: float, more: dict[str, Any], kind: str, solver: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """A fit, after a short one that compiles."""
    import maxmargin

    warnings.simplefilter("ignore")
    X, y, partial, X_test, y_test = load(size, known)
    labels = y if solver == "full" else partial
    chosen = (
        "auto" if solver == "full" else getattr(maxmargin, solver)(**options) if options or solver != "auto" else solver
    )
    make = getattr(maxmargin, kind)
    make(solver=chosen, max_passes=3, random_state=0).fit(X, labels)
    model = make(solver=chosen, random_state=0, **more)
    began = time.process_time()
    model.fit(X, labels)
    return {
        "seconds": time.process_time() - began,
        "passes": float(model.trace_.passes[-1]),
        "status": model.status_.name,
        "objective": model.certificate_.primal,
        "gap": model.certificate_.relative_gap,
        "error": 100 * (1 - model.score(X_test, y_test)),
    }


CONTENDERS = {
    "ChainSVM, all letters": ("ChainSVM", "full", {}),
    "ChainSVM": ("ChainSVM", "auto", {}),
    "ChainSVM, any completion first": ("ChainSVM", "CCCP", {"annealing": 0.0}),
    "ChainSVM, self-paced": ("ChainSVM", "CCCP", {"self_paced": True}),
    "ChainCRF, all letters": ("ChainCRF", "full", {}),
    "ChainCRF": ("ChainCRF", "auto", {}),
    "ChainCRF, EM": ("ChainCRF", "CCCP", {}),
}


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--sizes", {"nargs": "+", "choices": ["small", "large"], "default": ["small", "large"]}),
        ("--known", {"type": float, "default": 0.5, "help": "the share of letters that are known"}),
        ("--tol", {"type": float, "help": "of the fits, by default that of the models"}),
    )
    figures, bars = {}, []
    more = {} if arguments.tol is None else {"tol": arguments.tol}
    for size in arguments.sizes:
        name = f"OCR-{size}, {100 * arguments.known:g} % of the letters known"
        found = in_fresh_process(measure_pass, size, arguments.known)
        ratio = found["partial"] / found["full"]
        bars.append(
            Bar(f"{name}: a partial pass at most {MOST_FOR_A_PASS} full ones", f"{ratio:.2f}", ratio <= MOST_FOR_A_PASS)
        )
        runs = {
            title: in_fresh_process(measure_fit, size, arguments.known, more, *contender)
            for title, contender in CONTENDERS.items()
        }
        print_table(name, ["", *runs["ChainSVM"]], [[title, *run.values()] for title, run in runs.items()])
        ratio = runs["ChainSVM"]["seconds"] / runs["ChainSVM, all letters"]["seconds"]
        bars.append(
            Bar(f"{name}: CCCP in at most {MOST_FOR_A_FIT:g} full fits", f"{ratio:.2f}", ratio <= MOST_FOR_A_FIT)
        )
        figures[size] = {"pass": found, "fits": runs}
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
