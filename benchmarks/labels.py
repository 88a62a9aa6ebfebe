"""Chains of many labels, of which few may follow each other: dynamic programs along these transitions, and along all.

Random transitions, sequences of 20 positions, one thread, the least CPU time of several rounds; potentials are found
from weights in each call. At a share of 5 %, what is along single transitions grows with their number.

A second table has the best outputs along all transitions, by steps from those labels alone that can matter, beside
steps from all, where potentials of positions are about as far apart as those of transitions, or several times as far.
"""

from __future__ import annotations

from typing import Any

from benchmarks.chain_loops import least_seconds
from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

CELLS = 100_000_000  # of each timed call on all transitions
LENGTH = 20
LEAST, LABELS = 5.0, 300  # times as fast, at so many labels
MOST_GROWTH = 1.5  # of the time per transition
N_STEPS, SPREADS = 15, [0.4, 2.0, 6.0]  # sequences, and how far potentials of positions are apart
SLOWER = 1.15  # times as long as steps from all labels


def time_oracles(n_labels: int, share: float, n_rounds: int, dtype: str) -> list[dict[str, Any]]:
    import numpy as np

    from maxmargin import inference
    from maxmargin.encode.chain_encoder import ChainEncoder
    from maxmargin.problem import new_weights
    from maxmargin.structures.chains.sparse_chain_problem import sparse_chain
    from maxmargin.structures.chains.sparse_transitions import list_transitions

    rng = np.random.default_rng(0)
    allowed = np.eye(n_labels, dtype=bool) | np.eye(n_labels, k=1, dtype=bool)  # labellings of any length, all labels
    others = rng.permutation(np.flatnonzero(~allowed))
    allowed.ravel()[others[: int(share * n_labels**2) - int(allowed.sum())]] = True
    n = max(CELLS // (LENGTH * n_labels**2), 1)
    X, y = [rng.normal(size=(n_labels, 4))], [np.arange(n_labels)]
    options: Any = {"dtype": dtype, "fit_intercept": False, "with_grams": False, "only_observed": False}
    encoder = ChainEncoder.learn(X, y, allowed_transitions=allowed, **options).encoder
    chosen = encoder.problem([rng.normal(size=(LENGTH, 4)) for _ in range(n)])
    chain = getattr(chosen, "base", chosen)
    sparse = sparse_chain(chain, list_transitions(allowed))
    w = rng.normal(size=new_weights(chain).size).astype(dtype)
    calls = {
        "max": lambda problem: inference.best_outputs(problem, w, 1),
        "top 5": lambda problem: inference.best_k_outputs(problem, w, 5, 1),
        "exp": lambda problem: inference.marginals(problem, w, 1),
        "max-marginals": lambda problem: inference.best_through_parts(problem, w, 1),
        "5 samples": lambda problem: inference.samples(problem, w, 5, np.random.default_rng(0), 1),
    }
    n_positions, n_allowed = int(chain.starts[-1]), int(allowed.sum())
    figures = []
    for name, call in calls.items():
        along_few, along_all = (least_seconds(n_rounds, lambda p=p, call=call: call(p)) for p in (sparse, chain))
        figures.append(
            {
                "labels": n_labels,
                "share": n_allowed / n_labels**2,
                "oracle": name,
                "ns": 1e9 * along_few / (n_positions * n_allowed),
                "few": 1e6 * along_few / n_positions,
                "all": 1e6 * along_all / n_positions,
                "chosen": chosen is not chain,
            }
        )
    return figures


def time_steps(n_labels: int, spreads: list[float], n_rounds: int, dtype: str, is_pruned: bool) -> list[float]:
    """Microseconds a position of the best outputs, where potentials of positions are so many times as far apart."""
    import numpy as np

    from maxmargin import inference
    from maxmargin.encode.chain_encoder import ChainEncoder
    from maxmargin.problem import new_weights
    from maxmargin.structures.chains import pruned_steps

    if not is_pruned:
        pruned_steps.MANY = 2**62
    rng = np.random.default_rng(0)
    options: Any = {"dtype": dtype, "fit_intercept": False, "with_grams": False, "only_observed": False}
    learned = ChainEncoder.learn([np.ones((n_labels, 4))], [np.arange(n_labels)], allowed_transitions=None, **options)
    X = rng.normal(size=(N_STEPS, 2 * LENGTH, 4)) / 2  # whose products with weights have the variance 1
    figures = []
    for spread in spreads:
        problem = learned.encoder.problem(list(spread * X))
        w = rng.normal(size=new_weights(problem).size).astype(dtype)
        seconds = least_seconds(n_rounds, lambda problem=problem, w=w: inference.best_outputs(problem, w, 1))
        figures.append(1e6 * seconds / (N_STEPS * 2 * LENGTH))
    return figures


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--labels", {"type": int, "nargs": "+", "default": [100, 300, 1000]}),
        ("--share", {"type": float, "default": 0.05}),
        ("--rounds", {"type": int, "default": 5}),
        ("--dtype", {"default": "float64"}),
    )
    figures = [
        case
        for n_labels in arguments.labels
        for case in in_fresh_process(time_oracles, n_labels, arguments.share, arguments.rounds, arguments.dtype)
    ]
    rows = [
        [c["labels"], c["oracle"], c["few"], c["all"], f"{c['all'] / c['few']:.1f}", f"{c['ns']:.2f}", c["chosen"]]
        for c in figures
    ]
    columns = ["labels", "oracle", "few, us", "all, us", "times", "few, ns per transition", "chosen"]
    print_table(f"A position, {arguments.share:.0%} of the transitions, {arguments.dtype}", columns, rows)
    steps = []
    for n_labels in arguments.labels:
        few, every = (
            in_fresh_process(time_steps, n_labels, SPREADS, arguments.rounds, arguments.dtype, is_pruned)
            for is_pruned in (True, False)
        )
        steps += [[n_labels, *case, f"{case[2] / case[1]:.1f}"] for case in zip(SPREADS, few, every, strict=True)]
    print_table("A position, all transitions", ["labels", "spread", "from few, us", "from all, us", "times"], steps)
    bars = [
        Bar(f"{n} labels, spread {spread:g}: at most {SLOWER:g} times", f"{few / every:.2f}", few <= SLOWER * every)
        for n, spread, few, every, _ in steps
    ]
    for case in figures:
        ratio = case["all"] / case["few"]
        if case["labels"] == LABELS:
            bars.append(Bar(f"{case['oracle']}: {LEAST:g} times as fast at {LABELS}", f"{ratio:.1f}", ratio >= LEAST))
    for name in dict.fromkeys(case["oracle"] for case in figures):
        each = [case["ns"] for case in figures if case["oracle"] == name]
        growth = each[-1] / each[0]
        bars.append(
            Bar(f"{name}: time per transition grows at most {MOST_GROWTH}", f"{growth:.2f}", growth <= MOST_GROWTH)
        )
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
