"""Options of prox-linear training: Figures 6 and 7 of *A smoother way to train structured prediction models*.

Words of handwritten digits, a hidden layer of a few units below a chain, C = 1 (lambda = 1/n), the convex problems by
Casimir-SVRG with a constant level, as in the paper, whose own task needs data that cannot be shipped. All runs have the
same number of oracle calls, those for objectives included, and the same starts; figures are means over seeds. Figure 6
varies the smoothing: mu/k ("adaptive") or mu ("constant") in step k; Figure 7 the length eta of steps, the iterations
of the inner solver and where it starts. Nothing but the named option differs from the base, which is marked.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import PNG, Bar, in_fresh_process, parse_arguments, print_table, report

C = 1.0
N_HIDDEN = 8
MUS, MU = (0.1, 1.0, 10.0, 100.0), 1.0
ETAS, ETA = (0.3, 1.0, 3.0, 10.0), 3.0
ITERATIONS, N_ITERATIONS = (1, 2, 5, 10), 5  # of the inner solver: a full gradient and an epoch each
STARTS = ("center", "previous", "extrapolation")
SHARES = (0.25, 0.5, 1.0)  # of the calls, after which objectives are shown

Figure = dict[str, Any]


def variants() -> dict[str, dict[str, dict[str, Any]]]:
    """The runs of each figure: options of `ProxLinear`, and `iterations` and `start` of the inner solver."""

    def marked(name: str, value: Any, base: Any) -> str:
        return f"{name} = {value}{' (base)' if value == base else ''}"

    return {
        "6a: schedules": {"adaptive, mu/k (base)": {}, "constant, mu": {"schedule": "constant"}},
        "6b: mu, adaptive": {marked("mu", mu, MU): {"level": mu} for mu in MUS},
        "6c: mu, constant": {f"mu = {mu}": {"level": mu, "schedule": "constant"} for mu in MUS},
        "7a: eta": {**{marked("eta", eta, ETA): {"eta": eta} for eta in ETAS}, "free (the default)": {"eta": None}},
        "7b: iterations": {marked("iterations", count, N_ITERATIONS): {"iterations": count} for count in ITERATIONS},
        "7c: start": {marked("start", start, STARTS[0]): {"start": start} for start in STARTS},
    }


def train(options: dict[str, Any], n_words: int, n_passes: float, seed: int) -> Figure:
    """A run: objectives after shares of the calls, the bound of its stationarity, test accuracy and CPU time."""
    import torch

    from maxmargin import Casimir
    from maxmargin.datasets import digit_words
    from maxmargin.metrics import token_accuracy
    from maxmargin.torch import ChainHead, ProxLinear, decode

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.head = torch.nn.Linear(64, N_HIDDEN), ChainHead(N_HIDDEN, 10)

        def forward(self, x: torch.Tensor) -> Any:
            return self.head(torch.nn.functional.elu(self.hidden(x)))

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    words, network = digit_words(), Network().double()
    inputs, tests = ([torch.as_tensor(x[None]).double() for x in X] for X in (words.X_train[:n_words], words.X_test))
    targets = [torch.as_tensor(np.asarray(y))[None].long() for y in words.y_train[:n_words]]
    options = {"level": MU, "eta": ETA, "iterations": N_ITERATIONS, "start": STARTS[0], **options}
    inner = Casimir(schedule="constant", warm_start=options.pop("start"))
    budget = options.pop("iterations")
    prox = ProxLinear(solver=inner, inner_passes=budget, inner_tol=1e-12, max_steps=10**6, tol=1e-12, **options)
    began = time.process_time()
    trace = prox.solve(
        network, inputs, targets, C, random_state=seed, callback=lambda trace: bool(trace.passes[-1] >= n_passes)
    ).trace
    seconds = time.process_time() - began
    with torch.no_grad():
        predictions = [decode(network(x))[0].tolist() for x in tests]
    return {
        "objectives": [float(trace.primal[trace.passes <= share * n_passes][-1]) for share in SHARES[:-1]]
        + [float(trace.primal[-1])],
        "steps": int(np.nansum(trace.extras["accepted"][1:])),
        "bound": float(trace.extras["stationarity_bound"][-1]),
        "accuracy": float(token_accuracy([list(y) for y in words.y_test], predictions)),
        "seconds": seconds,
    }


def mean(runs: list[Figure]) -> Figure:
    """Means over seeds, and the spread of the last objective."""
    means = {name: np.mean([run[name] for run in runs], axis=0).tolist() for name in runs[0]}
    return {**means, "spread": float(np.std([run["objectives"][-1] for run in runs]))}


def show(title: str, runs: dict[str, Figure], n_passes: float) -> None:
    columns = [*(f"{share * n_passes:g} passes" for share in SHARES), "+-", "steps", "bound", "accuracy", "CPU s"]
    rows = [
        [name, *run["objectives"], run["spread"], run["steps"], run["bound"], run["accuracy"], run["seconds"]]
        for name, run in runs.items()
    ]
    print_table(f"Figure {title}; objective after", ["", *columns], rows)


def train_all(n_words: int, n_passes: float, n_seeds: int) -> dict[str, dict[str, Figure]]:
    """The runs of all figures; the base, which is in most of them, once."""
    figures: dict[str, dict[str, Figure]] = {}
    base: Figure = {}
    for title, runs in variants().items():
        figures[title] = {}
        for name, options in runs.items():
            is_base = name.endswith("(base)")
            found = base if is_base and base else mean([train(options, n_words, n_passes, k) for k in range(n_seeds)])
            base, figures[title][name] = found if is_base else base, found
        show(title, figures[title], n_passes)
    return figures


def worst_over_best(runs: dict[str, Figure]) -> float:
    """The highest of the last objectives as a multiple of the lowest."""
    last = [run["objectives"][-1] for run in runs.values()]
    return max(last) / min(last)


def draw(figures: dict[str, dict[str, Figure]], path: Path) -> None:
    """A panel per part of the figures: objectives by the share of oracle calls."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    n_rows = -(-len(figures) // 3)
    figure, panels = plt.subplots(
        n_rows, 3, figsize=(14, 4 * n_rows), dpi=100, layout="constrained", sharey=True, squeeze=False
    )
    for panel, (title, runs) in zip(panels.flat, figures.items(), strict=True):
        for name, run in runs.items():
            panel.plot(SHARES, run["objectives"], marker="o", label=name)
        panel.set(yscale="log", xlabel="share of the oracle calls", title=title)
        panel.grid(alpha=0.3)
        panel.legend(frameon=False)
    for row in panels:
        row[0].set_ylabel("objective")
    figure.savefig(path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--words", {"type": int, "default": 50, "help": "to train on"}),
        ("--passes", {"type": float, "default": 160.0, "help": "over the words, as oracle calls"}),
        ("--seeds", {"type": int, "default": 2, "help": "runs of each variant"}),
        PNG,
    )
    figures = in_fresh_process(train_all, arguments.words, arguments.passes, arguments.seeds)
    ratios = {title: worst_over_best(runs) for title, runs in figures.items()}
    print_table("The last objective of the worst choice, over that of the best", ["", "ratio"], ratios.items())
    adaptive, constant = ratios["6b: mu, adaptive"], ratios["6c: mu, constant"]
    *fixed, free = (run["objectives"][-1] for run in figures["7a: eta"].values())
    bars = [
        Bar("mu/k depends less on mu than mu itself", f"{adaptive:.3f} against {constant:.3f}", adaptive < constant),
        Bar("a free eta at or below the best fixed one", f"{free:.4f} against {min(fixed):.4f}", free <= min(fixed)),
    ]
    if arguments.png is not None:
        draw(figures, arguments.png)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
