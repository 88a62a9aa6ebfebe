"""How unevenly the gap is spread over the examples, and how well known gaps tell: Theorem 2 of *Minding the gaps*."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import add_output, squared_norm, true_output
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.block_coordinate.block_state import BlockState
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.evaluation import Objective


def chi(values: np.ndarray) -> float:
    """sqrt(1 + n^2 Var[p]), p = values / sum: from 1, where all are equal, to sqrt(n), where all but one are zero."""
    total = float(np.sum(values))
    return float(np.sqrt(len(values)) * np.linalg.norm(values) / total) if total > 0 else 1.0


def follow_gaps(
    solver: BCFW, encoded: Any, passes: float, C: float = 1.0, refreshes: bool = True
) -> dict[str, list[float]]:
    """Run BCFW for some effective passes, and look at the true gaps after each pass, on the side.

    With `refreshes` a pass of the oracle refreshes the known gaps every `gap_every` passes; without, none ever does.

    Returns
    -------
    passes : effective passes so far
    gap, ratio : the true gap, and over the sum of the known block gaps
    chi, speed-up : that of the block gaps, and chi(gaps)^3 / chi(curvatures), by which Theorem 2 expects sampling by
        exact gaps to be faster than uniform sampling
    """
    objective = Objective(encoded.problem, C, lower=encoded.lower, upper=encoded.upper)
    run = Run(objective, Limits(tol=1e-9), random_state=0)
    state = BlockState(solver, run)
    columns: dict[str, list[float]] = {name: [] for name in ("passes", "gap", "ratio", "chi", "speed-up")}
    largest = np.zeros(objective.n)  # squared norm of psi_i(y), of the outputs seen: the curvature, but for a constant
    state.make_pass("permutation")
    if refreshes:
        state.certify()
    n_passes = 0
    while run.oracle_calls < passes * objective.n:
        state.make_pass(solver.sampling)
        n_passes += 1
        known = float(state.gaps.sum())
        found = objective.evaluate(run.w, point=run.dual.means, outputs=state.outputs)
        objective.runner.run(note_norms, state.outputs, objective.runner.part_sizes, largest)
        gaps = np.maximum(found.gaps, 0)
        calls, gap, spread = run.oracle_calls / objective.n, float(gaps.sum()), chi(gaps)
        row = calls, gap, gap / max(known, 1e-300), spread, spread**3 / chi(largest)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
        if refreshes and n_passes % solver.gap_every == 0:
            state.certify()
    return columns


def squared_norms(encoded: Any, w: np.ndarray) -> np.ndarray:
    """(n,) the larger ||psi_i(y)||^2 of the outputs at w and of the most costly ones."""
    objective = Objective(encoded.problem, lower=encoded.lower, upper=encoded.upper)
    outputs, largest = objective.new_outputs(), np.zeros(objective.n)
    for weights in (np.zeros(objective.n_weights), w):
        objective.evaluate(weights, outputs=outputs, with_gradient=False)
        objective.runner.run(note_norms, outputs, objective.runner.part_sizes, largest)
    return largest


@loop
def note_norms(problem, outputs, sizes, largest, lo, hi, scratch):
    """largest[i] = the maximum of itself and ||psi_i(y)||^2 of the outputs y of the examples lo:hi."""
    for i in range(lo, hi):
        delta = scratch.delta[: sizes[i]]
        for p in range(delta.size):
            delta[p] = 0
        add_output(problem, i, outputs.values[outputs.starts[i] : outputs.starts[i + 1]], 1.0, delta)
        add_output(problem, i, true_output(problem, i), -1.0, delta)
        largest[i] = max(largest[i], squared_norm(problem, i, delta, scratch.work))
