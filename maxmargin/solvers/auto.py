"""The solver "auto": the recommendation of *Gaps* made concrete for the hinge loss; smooth losses have their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from maxmargin.features.kernel import kernel_of
from maxmargin.losses import Loss, find_loss
from maxmargin.problem import block_oracle
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.bcfw import BCFW, BlockState
from maxmargin.solvers.exponentiated_gradient import ExponentiatedGradient
from maxmargin.solvers.objective import Certificate
from maxmargin.solvers.run import Result, Run, State
from maxmargin.solvers.smooth_auto import SmoothAuto
from maxmargin.solvers.solver import Solver

ENOUGH_SECONDS = 0.005  # of a pass: in less, there is nothing to save, and times are mostly noise
EXPENSIVE = 3.0  # an oracle that takes this many times the rest of a step is worth a cache
CACHED_OUTPUTS = 50
FEW_EXAMPLES = 20  # too few to sample by gaps: visit all


@dataclass(frozen=True)
class Auto(Solver):
    """BCFW with the steps, sampling and cache that suit the problem; the choice is noted in the trace.

    Pairwise steps converge fastest and change only where two outputs differ; of classes, each example is solved exactly
    in one step. Examples are drawn by their gaps unless there are very few. A cache is kept where the oracle takes much
    longer than the rest of a step, by the time of the first passes.

    Smooth losses are left to `LBFGS` and, where there is much to do and the loss is smoothed by entropy, as that of
    conditional random fields is, to `ExponentiatedGradient` first, for as long as it is the faster of the two; on
    kernels to the latter alone.
    """

    takes_smooth: ClassVar[bool] = True
    needs_margin: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
    keeps_dual: ClassVar[bool] = True
    takes_kernels: ClassVar[bool] = True

    def needs_norms(self, loss: Loss) -> bool:
        return not loss.is_smooth

    def solve(self, problem: Any, C: float = 1.0, sample_weight: Any = None, **options: Any) -> Result:
        loss = find_loss(options.get("loss") or self.default_loss)
        if loss.is_smooth:
            solver = SmoothAuto() if kernel_of(problem) is None else ExponentiatedGradient()
            return solver.solve(problem, C, sample_weight, **options)
        return super().solve(problem, C, sample_weight, **options)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        sampling = "gap" if run.objective.n >= FEW_EXAMPLES else "permutation"
        if supports(block_oracle, run.objective.problem):
            if run.state is None:
                run.notes.append(f"Chose steps='exact', sampling='{sampling}'.")
            yield from BCFW(steps="exact", sampling=sampling).iterate(run)
            return
        solver = BCFW(steps="pairwise", sampling=sampling)
        state = run.take_up(lambda: self._begin(solver, run))
        for certificate in solver.improve(state.blocks):
            if (
                not state.has_chosen and state.blocks.step_seconds > 0
            ):  # a pass has made the potentials what they will be
                state.has_chosen = True
                state.blocks.set_cache(self.choose_cache(state.blocks, sampling))
            yield certificate

    @staticmethod
    def _begin(solver: BCFW, run: Run) -> State:
        blocks = BlockState(solver, run)
        blocks.prepare()
        return State(blocks=blocks, has_chosen=False)

    @staticmethod
    def choose_cache(state: BlockState, sampling: str) -> int:
        """Choose from the times of the first pass, and note the choice.

        A certificate calls the oracle after the potentials, which take about as long as the sum of the weights.
        """
        oracle = max(state.certificate_seconds - state.sum_seconds, 1e-9)
        ratio = oracle / max(state.step_seconds - oracle, 1e-9)
        is_long = state.certificate_seconds * state.run.objective.n >= ENOUGH_SECONDS
        cache = CACHED_OUTPUTS if is_long and ratio >= EXPENSIVE else 0
        reason = (
            f"the oracle takes about {1e6 * oracle:.2g} microseconds, {ratio:.2g} times the rest of a step; a cache "
            f"pays off from {EXPENSIVE:g} times"
        )
        state.run.notes.append(
            f"Chose steps='pairwise', sampling='{sampling}', cache={cache}: "
            f"{reason if is_long else 'a pass takes next to no time'}."
        )
        return cache
