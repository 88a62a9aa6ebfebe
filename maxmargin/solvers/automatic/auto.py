"""The solver "auto": the recommendation of *Gaps* made concrete for the hinge loss; smooth losses have their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.features.layout import layout_of
from maxmargin.losses import BaseLoss, find_loss
from maxmargin.problem import AnyProblem, block_oracle, bound_oracle, part_sizes, work_of
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.automatic.smooth_auto import SmoothAuto
from maxmargin.solvers.batch.lbfgs import LBFGS
from maxmargin.solvers.batch.one_slack import OneSlack
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.block_coordinate.block_state import BlockState
from maxmargin.solvers.exponentiated.exponentiated_gradient import ExponentiatedGradient
from maxmargin.solvers.frame.run import Result, Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.parted.parted_objective import PartedObjective
from maxmargin.solvers.parted.portions import LocalPortions, Portions
from maxmargin.trace import Certificate, Status

EXPENSIVE = 150.0  # operations per part: about three times the rest of a step, and worth a cache
CACHED_OUTPUTS = 50
FEW_EXAMPLES = 20  # too few to sample by gaps: visit all
FEW_LARGE, LARGE = 50, 100_000  # examples, and parts of all of them: block steps change too much at once
FEW_INEXACT = 0.05  # of the examples: where the oracle is not exact on more, certificates stay far from tol
BEYOND_THE_PAPER: dict[str, Any] = {"averaging": "recent", "momentum": 3}  # with pairwise steps
AVERAGED, AVERAGED_PASSES = BCFW(averaging=True), 20  # what to do then


@dataclass(frozen=True)
class Auto(Solver):
    """BCFW with the steps, sampling and cache that suit the problem; the choice is noted in the trace.

    Pairwise steps converge fastest and change only where two outputs differ; of classes, each example is solved exactly
    in one step. What is certified with pairwise steps is the mean of recent weights, which has a smaller gap than the
    last ones; long fits have momentum. Examples are drawn by their gaps unless there are very few. A cache is kept
    where the oracle takes much longer than the rest of a step, by the operations it is known to take
    (`maxmargin.problem.oracle_work`) and not by a clock, so that the same seed gives the same weights; oracles of
    structures in Python are taken to be slow.

    A few large examples, such as long texts, are left to `OneSlack`: block steps are slow where a block is much of the
    data.

    Where the oracle turns out not to be exact, on graphs with cycles, certificates stay far from what is asked for: it
    begins again with a few passes of Frank-Wolfe steps and averages them, which labels better than as many pairwise
    steps or the last weights do (`python -m benchmarks.inexact`).

    Examples in portions are left to `LBFGS` and `OneSlack`, which look at all of them before each step.

    The squared hinge loss, and others of your own, are left to `OneSlack`. Smooth losses are left to `LBFGS` and, where
    there is much to do and the loss is smoothed by entropy, as that of conditional random fields is, to
    `ExponentiatedGradient` first, for as long as it is the faster of the two; on kernels to the latter alone.

    Examples
    --------
    >>> from maxmargin import Auto
    >>> from maxmargin.testing import toy_chains
    >>> Auto().solve(toy_chains(), tol=0.01, random_state=0).status.name
    'OPTIMAL'
    """

    takes_smooth = takes_any = needs_margin = resumes = keeps_dual = takes_kernels = takes_portions = True

    def needs_norms(self, loss: BaseLoss) -> bool:
        return not loss.is_smooth

    def chosen_for(self, problem: AnyProblem, loss: BaseLoss) -> Solver:
        if isinstance(problem, Portions):
            can_step = isinstance(problem, LocalPortions) and problem.layout is None
            if loss.is_smooth or not can_step:
                return LBFGS() if loss.is_smooth else OneSlack()
        if loss.is_smooth:
            return SmoothAuto() if layout_of(problem).is_explicit else ExponentiatedGradient()
        return self if loss.is_maximum else OneSlack()

    def solve(self, problem: AnyProblem, C: float = 1.0, sample_weight: Any = None, **options: Any) -> Result:
        loss = find_loss(options.get("loss") or self.default_loss)
        chosen = self.chosen_for(problem, loss)
        if chosen is self and options.get("weak") is None and are_few_and_large(problem):
            result = OneSlack().solve(problem, C, sample_weight, **options)
            result.trace.notes.append("Chose OneSlack: there are few examples, and these are large.")
            return result
        solve = super().solve if chosen is self else chosen.solve
        if not isinstance(problem, Portions):
            return solve(problem, C, sample_weight, **options)
        near: Any = problem.brought_near(loss, options.get("n_jobs"))
        result = solve(near, C, sample_weight, **options)
        if near is not problem:
            result.trace.notes.append("Brought all portions here: a pass takes less time than a round trip.")
        return result

    def iterate(self, run: Run) -> Iterator[Certificate]:
        sampling = "gap" if run.objective.n >= FEW_EXAMPLES else "permutation"
        if supports(block_oracle, run.objective.problem):
            if run.state is None:
                run.notes.append(f"Chose steps='exact', sampling='{sampling}'.")
            yield from BCFW(steps="exact", sampling=sampling).iterate(run)
            return
        work = work_of(run.objective.problem.problem)
        cache = CACHED_OUTPUTS if work >= EXPENSIVE else 0
        if run.state is None:
            known = f"takes about {work:.2g} operations per part" if np.isfinite(work) else "is one in Python"
            run.notes.append(
                f"Chose steps='pairwise', sampling='{sampling}', cache={cache}: the oracle {known}; a cache pays off "
                f"from {EXPENSIVE:g} on."
            )
        beyond = {} if isinstance(run.objective, PartedObjective) else BEYOND_THE_PAPER
        solver = BCFW(steps="pairwise", sampling=sampling, cache=cache, **beyond)
        state = run.take_up(lambda: solver.begin(run))
        certificates = solver.improve(state)
        while not state.lag.size:
            if (
                run.objective.is_bounded
                and isinstance(state, BlockState)
                and run.n_inexact > FEW_INEXACT * run.objective.n
            ):
                run.notes.append(
                    f"Began again with averaged steps, as the oracle was not exact on {run.n_inexact} examples: "
                    f"{AVERAGED_PASSES} passes; solver=BCFW(averaging=True) makes more."
                )
                run.state = state = BlockState(AVERAGED, run)
            elif (certificate := next(certificates, None)) is None:
                return
            else:
                yield certificate
        for certificate in AVERAGED.improve(state):
            if state.n_steps >= AVERAGED_PASSES * run.objective.n:
                run.verdict = Status.INEXACT
            yield certificate


def are_few_and_large(problem: AnyProblem) -> bool:
    """Whether there are few examples of many parts, with an exact oracle of outputs as wholes."""
    if isinstance(problem, Portions) or supports(bound_oracle, problem) or supports(block_oracle, problem):
        return False
    sizes = part_sizes(problem)
    return len(sizes) < FEW_LARGE and sizes.sum() >= LARGE
