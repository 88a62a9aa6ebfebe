"""What marginalization constraints are worth: test accuracy of IDAL and of SoftSDCA over several draws of Potts grids.

The claim of Figure 1 of *SDCA-powered inexact dual augmented Lagrangian method* about accuracy, with its constants, on
grids to train on and 50 others, by max-product: the mean difference over the draws, and its standard error.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

N_TEST = 50


def run_draw(n: int, draw: int) -> tuple[float, float]:
    """The test accuracy of IDAL and of SoftSDCA, each at its own optimum, trained on n grids."""
    from benchmarks.loopy_tasks import SIDE, accuracy, potts_grids
    from maxmargin.losses import RelaxedLoss
    from maxmargin.solvers.relaxed.idal import IDAL
    from maxmargin.solvers.relaxed.soft import SoftSDCA

    train, test = potts_grids(n, SIDE, seed=2 * draw), potts_grids(N_TEST, SIDE, seed=2 * draw + 1)
    options = {"loss": RelaxedLoss(), "tol": 1e-3, "max_passes": 1000, "random_state": 0}
    ours, soft = (accuracy(test, solver.solve(train, 0.1, **options).w) for solver in (IDAL(), SoftSDCA(rho=1.0)))
    return ours, soft


def run_draws(n: int, n_draws: int) -> list[tuple[float, float]]:
    return [run_draw(n, draw) for draw in range(n_draws)]


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--n", {"type": int, "nargs": "+", "default": [10, 50], "help": "grids to train on"}),
        ("--draws", {"type": int, "default": 10}),
    )
    rows, bars, figures = [], [], {}
    for n in arguments.n:
        found = np.array(in_fresh_process(run_draws, n, arguments.draws))
        gain = found[:, 0] - found[:, 1]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        rows.append(
            [f"{n} grids", *(f"{mean:.1%}" for mean in found.mean(axis=0)), f"{gain.mean():.1%}", f"{error:.1%}"]
        )
        figure = f"{gain.mean():.1%} +- {error:.1%}, in {np.sum(gain > 0)} of {len(gain)} draws"
        bars.append(Bar(f"{n} grids: higher accuracy of IDAL, by two standard errors", figure, gain.mean() > 2 * error))
        figures[str(n)] = found.tolist()
    print_table("Test accuracy", ["trained on", "IDAL", "SoftSDCA", "difference", "standard error"], rows)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
