"""The oracles of trees on chains, beside those of chains, on the same potentials.

A chain as a tree is rooted at its first or at its last position. CPU time of many calls in one process, the contenders
in turn; the least time of each counts.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

LENGTH, N_CHAINS = 40, 50
LABELS = (3, 10, 26, 60)
N_BEST = 10
MOST = 1.5  # times the time of the chain oracle
ORACLES = ("max", "topk", "exp", "max-marginals")


def make_problems(n_labels: int, dtype: str) -> dict[str, Any]:
    """The same chains as a `ChainProblem` and as a `TreeProblem` rooted at either end."""
    import numpy as np

    from maxmargin.encode.chain_encoder import ChainEncoder
    from maxmargin.encode.tree_encoder import TreeEncoder

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_CHAINS, LENGTH, 8))
    labels = rng.integers(0, n_labels, (N_CHAINS, LENGTH))
    labels.flat[:n_labels] = range(n_labels)  # every label occurs
    options = {"dtype": dtype, "fit_intercept": False, "with_grams": False, "only_observed": False, "cost": "hamming"}
    chains = ChainEncoder.learn([*rows], [*labels], allowed_transitions=None, **options).problem
    problems: dict[str, Any] = {"chain": chains}
    up = np.column_stack([np.arange(1, LENGTH), np.arange(LENGTH - 1)])
    for name, edges in (("tree, root last", up), ("tree, root first", up[:, ::-1])):
        problems[name] = TreeEncoder.learn([(x, edges) for x in rows], [*labels], **options).problem
    return problems


def time_oracles(n_labels: int, dtype: str, repeats: int) -> dict[str, dict[str, float]]:
    """Microseconds per chain of each oracle of each problem."""
    import numpy as np

    from maxmargin.execution.runner import Runner
    from maxmargin.losses.smoothing import EVERY
    from maxmargin.problem import exp_oracle, max_marginals, max_oracle, n_examples, topk_oracle
    from maxmargin.runtime.dispatch import loop

    @loop
    def call_oracle(problem, which, theta, means, best, y, outputs, values, rounds, scratch):
        for _ in range(rounds):
            for i in range(n_examples(problem)):
                if which == 0:
                    max_oracle(problem, i, theta[i], y, scratch.work)
                elif which == 1:
                    topk_oracle(problem, i, theta[i], outputs, values, EVERY, scratch.work)
                elif which == 2:
                    exp_oracle(problem, i, theta[i], means, scratch.work)
                else:
                    max_marginals(problem, i, theta[i], best, scratch.work)

    rng = np.random.default_rng(1)
    nodes, pairs = rng.normal(size=(N_CHAINS, LENGTH * n_labels)), rng.normal(size=(N_CHAINS, n_labels, n_labels))
    forwards = np.hstack([nodes, pairs.reshape(N_CHAINS, -1)]).astype(dtype)
    backwards = np.hstack([nodes, pairs.transpose(0, 2, 1).reshape(N_CHAINS, -1)]).astype(dtype)
    thetas = {"chain": forwards, "tree, root last": forwards, "tree, root first": backwards}
    means, best, y = np.zeros_like(forwards[0]), np.zeros(forwards.shape[1]), np.zeros(LENGTH, np.int32)
    outputs, values = np.zeros((N_BEST, LENGTH), np.int32), np.zeros(N_BEST)
    rounds = max(1, 4000 // n_labels**2)
    problems = make_problems(n_labels, dtype)
    passes = {name: Runner(problem, n_best=N_BEST) for name, problem in problems.items()}
    least: dict[str, dict[str, float]] = {oracle: dict.fromkeys(problems, np.inf) for oracle in ORACLES}
    for which, oracle in enumerate(ORACLES):
        for k in range(repeats + 1):  # the first compiles
            for name, ready in passes.items():
                began = time.process_time()
                arguments = which, thetas[name], means, best, y, outputs, values, rounds
                call_oracle(ready.problem, *arguments, ready.scratches[0])
                micros = (time.process_time() - began) * 1e6 / (rounds * N_CHAINS)
                least[oracle][name] = min(least[oracle][name], micros) if k else np.inf
    return least


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--repeats", {"type": int, "default": 7}),
        ("--dtype", {"default": "float32", "choices": ["float32", "float64"]}),
    )
    figures, bars = [], []
    for n_labels in LABELS:
        least = in_fresh_process(time_oracles, n_labels, arguments.dtype, arguments.repeats)
        for oracle, times in least.items():
            chain, *trees = times.values()
            figures.append({"labels": n_labels, "oracle": oracle, **times, "ratio": max(trees) / chain})
    columns = ["labels", "oracle", "chain, us", "tree, root last", "tree, root first", "largest ratio"]
    print_table(f"Chains of {LENGTH} positions, {arguments.dtype}", columns, (figure.values() for figure in figures))
    for oracle in ("max", "topk", "exp"):
        worst = max(figure["ratio"] for figure in figures if figure["oracle"] == oracle)
        bars.append(Bar(f"{oracle}: at most {MOST} times the chain's", f"{worst:.2f}", worst <= MOST))
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
