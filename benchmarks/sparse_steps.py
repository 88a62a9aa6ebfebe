"""CPU time of stochastic steps on sparse chains as the number of weights grows, beside one dense update of the weights.

The same sentences, with their features spread over ten times as many columns each time. What grows is the cost of
memory that no cache holds, and of the dense vectors of certificates, once per pass.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

WIDTHS = (10_000, 100_000, 1_000_000)
N_SEQUENCES, LENGTH, N_LABELS, N_ACTIVE = 4000, 20, 5, 20
MOST = 0.05


def solvers() -> dict[str, Any]:
    from maxmargin import SGD, SVRG, Perceptron

    return {
        "SGD": SGD(gap_every=1000, schedule="decay", step=0.01),
        "SVRG": SVRG(smoothness=1000.0, level=1.0),
        "perceptron": Perceptron(gap_every=1000),
    }


def time_width(width: int) -> dict[str, float]:
    """Microseconds per step of each solver, on sequences with features among `width` columns."""
    import numpy as np
    import scipy.sparse as sp

    from maxmargin import ChainSVM

    rng = np.random.default_rng(0)
    n_tokens = N_SEQUENCES * LENGTH
    columns = np.sort(rng.integers(width, size=(n_tokens, N_ACTIVE)), axis=1).ravel()
    row_ends = np.arange(0, len(columns) + 1, N_ACTIVE)
    X = sp.csr_array((np.ones(len(columns), np.float32), columns, row_ends), (n_tokens, width))
    y = rng.integers(N_LABELS, size=n_tokens)
    lengths = np.full(N_SEQUENCES, LENGTH)
    problem = ChainSVM(fit_intercept=False)._encode(X, y, lengths=lengths).problem
    w = np.ones(width * N_LABELS, np.float32)
    began = time.process_time()
    for _ in range(20):
        w *= np.float32(0.99)
    times = {"dense update": (time.process_time() - began) / 20 * 1e6}
    for name, solver in solvers().items():
        solver.solve(problem, max_passes=1, tol=1e-9)
        spent = []
        for passes in (1, 4):
            began = time.process_time()
            solver.solve(problem, max_passes=passes, tol=1e-9, random_state=0)
            spent.append(time.process_time() - began)
        times[name] = (spent[1] - spent[0]) / 3 / N_SEQUENCES * 1e6
    return times


def main() -> None:
    arguments = parse_arguments(__doc__)
    runs = {width: in_fresh_process(time_width, width) for width in WIDTHS}
    names = list(runs[WIDTHS[0]])
    print_table(
        f"Microseconds per step, {LENGTH} tokens of {N_ACTIVE} features, {N_LABELS} labels",
        ["columns", *names],
        ([f"{width:,}", *(run[name] for name in names)] for width, run in runs.items()),
    )
    largest = runs[WIDTHS[-1]]
    shares = {name: largest[name] / largest["dense update"] for name in names[1:]}
    bars = [
        Bar(f"{name}, {WIDTHS[-1]:,} columns: at most {MOST:.0%} of a dense update", f"{share:.1%}", share <= MOST)
        for name, share in shares.items()
    ]
    report([{"width": width, **run} for width, run in runs.items()], bars, arguments.json)


if __name__ == "__main__":
    main()
