"""Assignments of random costs: our loops beside SciPy's.

The same square problems are solved by `scipy.optimize.linear_sum_assignment` and by the max oracle of matchings, which
also copies the potentials and lets nodes stay unmatched. Max-marginals and the ten best, for which SciPy has nothing,
are timed, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report
from maxmargin.execution.runner import Runner
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import max_marginals, max_oracle, topk_oracle
from maxmargin.runtime import loop

SIZES = (10, 20, 50, 100, 200)
N_PROBLEMS = 20
N_BEST = 10
ENOUGH_SECONDS = 0.2


@loop
def solve_all(problem, thetas, y, scratch):
    """Call the oracle on every row of potentials: from compiled code, as solvers do."""
    total = 0.0
    for k in range(len(thetas)):
        total += max_oracle(problem, 0, thetas[k], y, scratch.work)
    return total


@loop
def max_marginals_of_all(problem, thetas, out, scratch):
    for k in range(len(thetas)):
        max_marginals(problem, 0, thetas[k], out, scratch.work)


@loop
def solve_all_k(problem, thetas, outputs, values, scratch):
    for k in range(len(thetas)):
        topk_oracle(problem, 0, thetas[k], outputs, values, EVERY, scratch.work)


def microseconds(call: Callable[[], Any]) -> float:
    """CPU microseconds per problem of a call that solves all, the least of five means."""
    call()
    means = []
    for _ in range(5):
        count, began = 0, time.process_time()
        while (spent := time.process_time() - began) < ENOUGH_SECONDS:
            call()
            count += N_PROBLEMS
        means.append(1e6 * spent / count)
    return min(means)


def measure(size: int) -> dict[str, float]:
    """Microseconds of each contender on problems of one size."""
    from scipy.optimize import linear_sum_assignment

    from maxmargin.encode.links.matching_encoder import MatchingEncoder

    tables = np.random.default_rng(0).random((N_PROBLEMS, size, size))
    alone = np.full((N_PROBLEMS, size), -10.0)  # everybody is matched
    thetas = np.hstack([tables.reshape(N_PROBLEMS, -1), alone])
    nobody = [np.full(size, -1)]
    costs = {"wrong_cost": 0.0, "missed_cost": 0.0}
    problem = MatchingEncoder.learn([np.zeros((size, size, 1))], nobody, dtype="float64", **costs).problem
    runner = Runner(problem, n_best=N_BEST)
    bound, scratch = runner.problem, runner.scratches[0]
    y, out = np.zeros(size, np.int32), np.zeros(thetas.shape[1])
    outputs, values = np.zeros((N_BEST, size), np.int32), np.zeros(N_BEST)

    def solve_with_scipy() -> float:
        return sum(table[linear_sum_assignment(table, maximize=True)].sum() for table in tables)

    assert np.isclose(solve_all(bound, thetas, y, scratch), solve_with_scipy())
    return {
        "scipy": microseconds(lambda: [linear_sum_assignment(table, maximize=True) for table in tables]),
        "max oracle": microseconds(lambda: solve_all(bound, thetas, y, scratch)),
        "max-marginals": microseconds(lambda: max_marginals_of_all(bound, thetas, out, scratch)),
        f"{N_BEST} best": microseconds(lambda: solve_all_k(bound, thetas, outputs, values, scratch)),
    }


def main() -> None:
    arguments = parse_arguments(__doc__)
    figures = {size: in_fresh_process(measure, size) for size in SIZES}
    columns = ["nodes on each side", *figures[50], "max oracle / scipy"]
    rows = [[size, *times.values(), times["max oracle"] / times["scipy"]] for size, times in figures.items()]
    print_table("CPU microseconds per assignment", columns, rows)
    ratio = figures[50]["max oracle"] / figures[50]["scipy"]
    report(figures, [Bar("a 50x50 assignment within 2 times of SciPy", f"{ratio:.2f}", ratio <= 2)], arguments.json)


if __name__ == "__main__":
    main()
