"""Block-coordinate Frank-Wolfe and all its variants of *Minding the Gaps*: the loop around `block_steps`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maxmargin.checks import check_choice, check_count, check_positive, check_share
from maxmargin.losses import BaseLoss
from maxmargin.solvers.block_coordinate.block_state import STEPS, BlockState
from maxmargin.solvers.block_coordinate.parted_blocks import PartedBlocks
from maxmargin.solvers.block_coordinate.scattered_blocks import ScatteredBlocks
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.parted.parted_objective import PartedObjective
from maxmargin.solvers.parted.portions import LocalPortions
from maxmargin.trace import Certificate

Blockwise = BlockState | PartedBlocks | ScatteredBlocks

SAMPLINGS = ("uniform", "permutation", "gap")
LEAST_PASSES = 3  # between two certificates: known gaps understate the true ones, so many calls would be in vain
# The sum of the last known gaps that calls for an exact certificate, as a share of the tolerance: they are those of the
# last weights, whose gap is larger than that of a mean.
STALE_SHARE = {False: 0.8, True: 0.8, "recent": 0.9}


@dataclass(frozen=True)
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe, with pairwise and away steps, gap sampling and caching.

    Parameters
    ----------
    steps
        "fw", "pairwise" or "away": how to move on a block; the latter two keep active sets and leave bad outputs;
        "best" takes, in each step, that of the three which raises the dual most (appendix G of the paper); "exact"
        moves to the best mixture of all outputs of the example, which classes have a way to find.
    sampling
        Order of the examples: "permutation" visits each once per pass, "uniform" draws with replacement, "gap" draws in
        proportion to the block gaps or, with exact steps, visits those in turn whose gap is not small.
    cache
        Outputs kept per example to save calls of the oracle; 0 for no cache.
    cache_factor, cache_nu
        The best cached output is taken if the gap that it promises is at least `cache_factor` (F) times the last known
        gap of the example, and `cache_nu` (nu) times the last known mean gap of all; more of either means more calls of
        the oracle.
    uniform_share
        The share of examples that gap sampling draws uniformly: a guard against gaps that have grown since they were
        last known, of which the algorithm of the paper has none (0).
    averaging
        Which weights to certify and to return: False for the last ones, True for the average of all iterates, weighted
        by their number, "recent" for a mean of those at the end of passes in which older ones fade away: beyond the
        paper, its gap is a tenth to a third smaller than that of the last weights, once some passes are made.
    momentum
        From the 60th pass on, after so many of them, the weights of active outputs go on in the direction in which they
        have moved since the last time, as far as the dual rises; 0 for never. Beyond the paper; for steps that keep
        active sets, and where weights have no bounds.
    gap_every
        Passes between two certificates, which also refresh the block gaps.
    exact_gaps
        False stops when the last known block gaps add up to little, without the oracle pass that would confirm it: the
        trace then holds estimates in place of certificates. Passes of the oracle then only refresh the gaps, after
        `gap_every` passes.

    References
    ----------
    Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien (2016), Minding the gaps for block Frank-Wolfe optimization of
    structured SVMs, Algorithms 1 to 5 and 9. Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate
    Frank-Wolfe optimization for structural SVMs, Algorithms 3 and 4.

    Examples
    --------
    >>> from maxmargin import BCFW
    >>> from maxmargin.testing import toy_chains
    >>> BCFW(steps="pairwise", sampling="gap").solve(toy_chains(), tol=0.01, random_state=0).status.name
    'OPTIMAL'
    """

    steps: str = "fw"
    sampling: str = "permutation"
    cache: int = 0
    cache_factor: float = 0.25
    cache_nu: float = 0.01
    uniform_share: float = 0.1
    averaging: bool | str = False
    momentum: int = 0
    gap_every: int = 10
    exact_gaps: bool = True

    needs_margin = resumes = keeps_dual = takes_kernels = takes_portions = True

    def __post_init__(self) -> None:
        check_choice("steps", self.steps, STEPS)
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_count("cache", self.cache, 0)
        check_positive("cache_factor", self.cache_factor)
        check_positive("cache_nu", self.cache_nu)
        check_share("uniform_share", self.uniform_share)
        check_choice("averaging", self.averaging, STALE_SHARE)
        check_count("momentum", self.momentum, 0)
        check_count("gap_every", self.gap_every)
        if self.steps == "exact" and self.cache:
            raise ValueError("cache must be 0 with exact steps, which store no outputs.")
        if self.momentum and self.steps in ("fw", "exact"):
            raise ValueError("momentum must be 0 with steps that keep no active sets: 'fw' and 'exact'.")
        if self.averaging is True and self.momentum:
            raise ValueError(
                "averaging must be False or 'recent' with momentum, which is no part of the average of all."
            )
        if self.averaging and not self.exact_gaps:
            raise ValueError("averaging needs exact_gaps: the gaps of the last iterate say nothing of the average.")

    def oracles(self, loss: BaseLoss) -> set[str]:
        return super().oracles(loss) | ({"block"} if self.steps == "exact" else set())

    def iterate(self, run: Run) -> Iterator[Certificate]:
        yield from self.improve(run.take_up(lambda: self.begin(run)))

    def begin(self, run: Run) -> Blockwise:
        """The state to go on from: of all examples, of portions one after the other, or of portions side by side."""
        if not isinstance(run.objective, PartedObjective):
            return BlockState(self, run)
        is_at_hand = isinstance(run.objective.portions, LocalPortions)
        return PartedBlocks(self, run) if is_at_hand else ScatteredBlocks(self, run)

    def improve(self, state: Any) -> Iterator[Certificate]:
        """Go on from a state."""
        run = state.run
        run.is_estimated = not self.exact_gaps
        if state.primal is None and (state.knows_gaps or (state.is_warm and self.exact_gaps)):
            certificate = state.trust_gaps(run.start.value) if state.knows_gaps else run.or_start(state.certify())
            state.primal = certificate.primal
            yield certificate
        while True:
            is_first = state.primal is None
            target = 0.0 if state.primal is None else run.target(state.primal)
            for k in range(state.n_passes):
                state.make_pass("permutation" if is_first else self.sampling)
                if (is_solved := self.seems_solved(state, target, k + 1)) or run.must_stop:
                    break
            state.age += k + 1
            needs_oracle = self.exact_gaps or (state.age >= self.gap_every and not is_solved)
            state.age = 0 if needs_oracle else state.age
            certificate = state.certify() if needs_oracle else state.estimate()
            state.primal, state.n_passes = certificate.primal, run.passes_to_go(self.gap_every)
            yield certificate

    def seems_solved(self, state: Blockwise, target: float, n_passes: int) -> bool:
        """Whether the known gaps, so many passes after a certificate, call for the next one."""
        known = state.gaps.sum()
        if not self.exact_gaps:
            return bool(known <= target)
        return bool(known <= STALE_SHARE[self.averaging] * target and n_passes >= LEAST_PASSES)
