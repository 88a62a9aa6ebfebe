"""CPU time of stochastic steps on sparse chains as the number of weights grows, beside one dense update of the weights.

The same sentences, with their features spread over ten times as many columns each time. What grows is the cost of
memory that no cache holds. Steps are timed without what comes once per pass: certificates and full gradients.
"""

from __future__ import annotations

import time
from typing import Any
from unittest import mock

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

WIDTHS = (10_000, 100_000, 1_000_000)
N_SEQUENCES, LENGTH, N_LABELS, N_ACTIVE = 4000, 20, 5, 20
N_PASSES = 3  # the first ones: later, few examples have a loss left
MOST = 0.05


def solvers() -> dict[str, tuple[Any, Any, str]]:
    """Solvers with the modules and names of their compiled steps."""
    from maxmargin import SGD, SVRG, Perceptron
    from maxmargin.solvers.stochastic import perceptron, sgd, svrg

    return {
        "SGD": (SGD(gap_every=1000, schedule="decay", step=0.01), sgd, "sgd_steps"),
        "SVRG": (SVRG(smoothness=1000.0, level=1.0), svrg, "svrg_steps"),
        "perceptron": (Perceptron(gap_every=1000), perceptron, "perceptron_steps"),
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
    for name, (solver, module, steps) in solvers().items():
        solver.solve(problem, max_passes=1, tol=1e-9)
        spent, take_steps = 0.0, getattr(module, steps)

        def timed(*args: Any, take_steps: Any = take_steps) -> Any:
            nonlocal spent
            began = time.process_time()
            found = take_steps(*args)
            spent += time.process_time() - began
            return found

        with mock.patch.object(module, steps, timed):
            solver.solve(problem, max_passes=N_PASSES, tol=1e-9, random_state=0)
        times[name] = spent / N_PASSES / N_SEQUENCES * 1e6
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
