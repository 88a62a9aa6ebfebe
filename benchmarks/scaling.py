"""CPU time of a block-coordinate pass and of an oracle pass on random chains of growing size.

With more or longer sequences the time per token should stay the same. With twice the labels, what is quadratic in them
(Viterbi) takes four times as long, what is linear (scores and updates) twice.
"""

from __future__ import annotations

import time

from benchmarks.common import Bar, Log, in_fresh_process, parse_arguments, print_table, random_chains, report, watched

BASE = {"n_sequences": 1000, "length": 20, "n_labels": 16}
GROWTH = {
    "more sequences": [BASE | {"n_sequences": n} for n in (1000, 2000, 4000)],
    "longer sequences": [BASE | {"length": n} for n in (20, 40, 80, 240)],
    "more labels": [BASE | {"n_labels": n} for n in (16, 32, 64)],
}
N_FEATURES = 64
N_PASSES = 10  # between the certificates at which the clock is read
MOST = 1.25  # times the time per token of the smallest problem


def time_passes(sizes: dict[str, int]) -> dict[str, float]:
    """Microseconds per token of a block-coordinate pass, with its share of the certificates, and of an oracle pass."""
    from maxmargin import BCFW, ChainSVM
    from maxmargin.solvers.objective.evaluation import Objective

    X, y = random_chains(**sizes, n_features=N_FEATURES)
    log = Log()
    solver = watched(BCFW(gap_every=N_PASSES), log)
    ChainSVM(C=1.0, tol=1e-9, max_passes=1 + N_PASSES, random_state=0, solver=solver).fit(X, y)

    objective = Objective(log.problem)
    oracle = []
    for _ in range(N_PASSES):
        began = time.process_time()
        objective.evaluate(log.result.w, with_gradient=False)
        oracle.append(time.process_time() - began)
    micros = 1e6 / (sizes["n_sequences"] * sizes["length"])
    return {"step": (log.clock[-1] - log.clock[0]) / N_PASSES * micros, "oracle": min(oracle) * micros}


def time_series(series: list[dict[str, int]], repeats: int) -> list[dict[str, float]]:
    """Time the problems of a series in turn; the least time of each counts."""
    rounds = [[time_passes(sizes) for sizes in series] for _ in range(repeats + 1)][1:]  # the first loads the loops
    return [{name: min(run[name] for run in runs) for name in runs[0]} for runs in zip(*rounds, strict=True)]


def main() -> None:
    arguments = parse_arguments(__doc__, ("--repeats", {"type": int, "default": 5}))
    figures, bars = [], []
    for growth, series in GROWTH.items():
        runs = in_fresh_process(time_series, series, arguments.repeats)
        ratios = [{name: run[name] / runs[0][name] for name in run} for run in runs]
        for sizes, run, ratio in zip(series, runs, ratios, strict=True):
            timed = {key: value for name in run for key, value in ((name, run[name]), (f"{name}_ratio", ratio[name]))}
            figures.append({"growth": growth, **sizes, **timed})
        if growth != "more labels":
            worst = max(value for ratio in ratios for value in ratio.values())
            bars.append(
                Bar(f"{growth}: time per token grows by at most {MOST - 1:.0%}", f"{worst - 1:+.0%}", worst <= MOST)
            )
    columns = ["", "sequences", "length", "labels", "BCFW pass, us/token", "ratio", "oracle pass, us/token", "ratio"]
    print_table(f"Random chains, {N_FEATURES} dense features", columns, (figure.values() for figure in figures))
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
