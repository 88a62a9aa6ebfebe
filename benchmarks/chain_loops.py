"""The loops of chains, in nanoseconds per cell (position x label x label), beside what the machine could do at best.

The bound is one multiplication and addition per cell, of numbers that never leave the registers. CPU time of one
thread, the least of several rounds; the last line is a whole pass over OCR-large, scores and sums included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import Bar, in_fresh_process, load_ocr, parse_arguments, print_table, report

LABELS = (2, 5, 22, 26, 100, 400)
CELLS = 4_000_000  # of each timed run
MOST_VITERBI, MOST_PASS = 0.10, 25.0  # ns per cell in float32 with 26 labels; ms of a pass over OCR-large in float64


def least_seconds(n_rounds: int, call: Callable[[], Any]) -> float:
    call()
    seconds = []
    for _ in range(n_rounds):
        began = time.thread_time()
        call()
        seconds.append(time.thread_time() - began)
    return min(seconds)


def time_multiplications(n_rounds: int, dtype: str = "float32") -> float:
    """Seconds of a multiplication and addition, of numbers that never leave the registers."""
    import numpy as np

    from maxmargin.arrays.lanes import LANES, fetch, fma, plus, splat, store, times
    from maxmargin.runtime.dispatch import loop

    @loop
    def multiply_and_add(table, n):
        x = fetch(table, 0, 0)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = splat(table.dtype.type(0))
        for _ in range(n):
            a0 = fma(x, a0, x)
            a1 = fma(x, a1, x)
            a2 = fma(x, a2, x)
            a3 = fma(x, a3, x)
            a4 = fma(x, a4, x)
            a5 = fma(x, a5, x)
            a6 = fma(x, a6, x)
            a7 = fma(x, a7, x)
        store(table, 1, 0, plus(plus(plus(a0, a1), plus(a2, a3)), times(plus(a4, a5), plus(a6, a7))))

    table = np.full((2, LANES), 0.5, dtype)
    return least_seconds(n_rounds, lambda: multiply_and_add(table, 1_000_000)) / (8e6 * LANES)


def time_loops(n_rounds: int) -> list[dict[str, Any]]:
    import numpy as np

    from maxmargin.arrays.lanes import padded
    from maxmargin.runtime.dispatch import loop
    from maxmargin.structures.chains import chain_dp, chain_sums
    from maxmargin.structures.chains.pruned_steps import new_pruning

    @loop
    def find_paths(nodes, pairs, forward, arrivals, table, pruning, y, n):
        for _ in range(n):
            chain_dp.viterbi(nodes, pairs, forward, arrivals, table, pruning)
            chain_dp.backtrack(nodes, pairs, forward, arrivals, y)

    @loop
    def sum_paths(nodes, pairs, means, counts, tables, n):
        for _ in range(n):
            chain_sums.forward_shares(nodes, pairs, tables)
            chain_sums.backward_shares(means, counts, tables)

    figures, rng, length = [], np.random.default_rng(0), 20
    for dtype in ("float32", "float64"):
        bound = time_multiplications(n_rounds, dtype)
        for n_labels in LABELS:
            nodes, pairs = (rng.normal(size=(rows, n_labels)).astype(dtype) for rows in (length, n_labels))
            tables = chain_sums.new_tables(length, n_labels, dtype)
            padded_pairs, y = np.zeros((n_labels, padded(n_labels)), dtype), np.zeros(length, np.int32)
            pruning = new_pruning(n_labels, dtype)
            cells = (length - 1) * n_labels**2
            n = 1 + CELLS // cells
            path = nodes, pairs, tables.forward, tables.backward, padded_pairs, pruning, y, n
            sums = nodes, pairs, np.zeros_like(nodes), np.zeros_like(pairs), tables, n
            figures.append(
                {
                    "dtype": dtype,
                    "labels": n_labels,
                    "viterbi": 1e9 * least_seconds(n_rounds, lambda path=path: find_paths(*path)) / (n * cells),
                    "sums": 1e9 * least_seconds(n_rounds, lambda sums=sums: sum_paths(*sums)) / (n * cells),
                    "bound": 1e9 * bound,
                }
            )
    return figures


def time_pass(n_rounds: int) -> float:
    """Milliseconds of the log loss of OCR-large and its gradient, in float64."""
    import numpy as np

    from maxmargin import ChainCRF, Loss
    from maxmargin.solvers.objective.evaluation import Objective

    X, y, _, _ = load_ocr("large")
    problem = ChainCRF(fit_intercept=False)._encode(X, y).problem
    objective = Objective(problem, loss=Loss("entropy", margin=False))
    w = 0.1 * np.random.default_rng(0).normal(size=objective.n_weights)
    return 1e3 * least_seconds(n_rounds, lambda: objective.evaluate(w))


def main() -> None:
    arguments = parse_arguments(__doc__, ("--rounds", {"type": int, "default": 7}))
    figures = in_fresh_process(time_loops, arguments.rounds)
    milliseconds = in_fresh_process(time_pass, arguments.rounds)
    columns = ["", "labels", "Viterbi", "forward-backward", "bound"]
    rows = [[case["dtype"], case["labels"], *(case[name] for name in ("viterbi", "sums", "bound"))] for case in figures]
    print_table("Chains of 20 positions, ns per cell", columns, rows)
    print(f"A pass over OCR-large in float64: {milliseconds:.1f} ms\n")
    viterbi = next(case["viterbi"] for case in figures if (case["dtype"], case["labels"]) == ("float32", 26))
    bars = [
        Bar(f"Viterbi at most {MOST_VITERBI} ns a cell, float32, 26 labels", f"{viterbi:.3f}", viterbi <= MOST_VITERBI),
        Bar(f"exp pass over OCR-large at most {MOST_PASS:g} ms", f"{milliseconds:.1f}", milliseconds <= MOST_PASS),
    ]
    report({"loops": figures, "pass": milliseconds}, bars, arguments.json)


if __name__ == "__main__":
    main()
