"""The recommendation of *Gaps* made concrete: choose the variant of BCFW by what the oracle costs here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from maxmargin.problem import add_output, gold, max_oracle, spread, squared_norm
from maxmargin.runtime.dispatch import kernel
from maxmargin.solvers.bcfw import BCFW, BlockState
from maxmargin.solvers.objective import Certificate, augmented_potentials
from maxmargin.solvers.run import Run
from maxmargin.solvers.solver import Solver

ENOUGH_SECONDS = 0.005  # of measuring
REPEATS = 3
EXPENSIVE = 3.0  # an oracle that takes this many times the rest of a step is worth a cache
CACHED_OUTPUTS = 50
FEW_EXAMPLES = 20  # too few to sample by gaps: visit all


@dataclass(frozen=True)
class Auto(Solver):
    """BCFW with the steps, sampling and cache that suit the problem; the choice is noted in the trace.

    Pairwise steps are always taken: they converge fastest and change only where two outputs differ. Examples are drawn
    by their gaps unless there are very few. A cache is kept where the oracle takes much longer than the rest of a step,
    which is measured on some examples.
    """

    def iterate(self, run: Run) -> Iterator[Certificate]:
        sampling = "gap" if run.objective.n >= FEW_EXAMPLES else "permutation"
        solver = BCFW(steps="pairwise", sampling=sampling)
        state = BlockState(solver, run)
        has_chosen = False
        for certificate in solver.improve(state):
            if not has_chosen:  # the first pass has made the potentials what oracles will be called with
                has_chosen = True
                state.set_cache(self.choose_cache(run, sampling))
            yield certificate

    @staticmethod
    def choose_cache(run: Run, sampling: str) -> int:
        """Measure, choose, and note the choice."""
        cost = measure(run)
        ratio = cost.oracle / cost.rest
        cache = CACHED_OUTPUTS if ratio >= EXPENSIVE else 0
        run.notes.append(
            f"Chose steps='pairwise', sampling='{sampling}', cache={cache}: the oracle takes {1e6 * cost.oracle:.3g} "
            f"microseconds, {ratio:.2g} times the rest of a step; a cache pays off from {EXPENSIVE:g} times."
        )
        return cache


class StepCost(NamedTuple):
    """Seconds per step."""

    oracle: float
    rest: float


def measure(run: Run) -> StepCost:
    """Time the oracle and the rest of a step, on as few examples as give a reliable figure."""
    w, sizes = run.w.copy(), run.objective.passes.part_sizes

    def seconds(part: Any) -> float:
        def spent(count: int) -> float:
            began = time.thread_time()  # not disturbed by what else the machine does
            part(run.objective.problem, w, sizes, count, run.objective.passes.scratches[0])
            return time.thread_time() - began

        spent(0)  # compiles, or loads from disk
        count = 1
        while spent(count) < ENOUGH_SECONDS:
            count *= 4
        return min(spent(count) for _ in range(REPEATS if count > 1 else 1)) / count

    oracle = seconds(potentials_and_oracle) - seconds(potentials_alone)
    return StepCost(max(oracle, 1e-9), seconds(step_without_oracle))


@kernel
def potentials_and_oracle(problem, w, sizes, count, scratch):
    """Call the oracle `count` times."""
    for k in range(count):
        i = k % sizes.size
        theta = scratch.theta[: sizes[i]]
        augmented_potentials(problem, w, i, theta)
        max_oracle(problem, i, theta, scratch.y[: gold(problem, i).size], scratch.work)


@kernel
def potentials_alone(problem, w, sizes, count, scratch):
    """What has to be done before the oracle is called, `count` times."""
    for k in range(count):
        i = k % sizes.size
        augmented_potentials(problem, w, i, scratch.theta[: sizes[i]])


@kernel
def step_without_oracle(problem, w, sizes, count, scratch):
    """The potentials, a direction, its norm and its effect on the weights, which is zero here; `count` times."""
    for k in range(count):
        i = k % sizes.size
        delta = scratch.delta[: sizes[i]]
        augmented_potentials(problem, w, i, scratch.theta[: sizes[i]])
        for p in range(delta.size):
            delta[p] = 0
        add_output(problem, i, gold(problem, i), 1.0, delta)
        squared_norm(problem, i, delta, scratch.work)
        spread(problem, w, i, delta, 0.0)
