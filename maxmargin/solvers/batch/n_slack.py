"""The n-slack cutting-plane method (Tsochantaridis et al. 2005, Algorithm 1, in rounds over all examples).

A round calls the oracle for every example at the same w and stores the outputs of those whose loss it underestimates.
The restricted problem, over the stored outputs, is then solved by pairwise block steps (`block_steps`) without calls of
the oracle, to a share of the gap that the round has found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.checks import check_count
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.block_coordinate.block_state import BlockState
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import enlarge, store_outputs
from maxmargin.trace import Certificate

ACCURACY = 0.1  # of the gap found by the oracle, to which a restricted problem is solved
MOST_SWEEPS = 1000
STEPS_AT_ONCE = 1000  # or a sweep: fewer take less time than their call


@dataclass(frozen=True)
class NSlack(Solver):
    """The n-slack cutting-plane method: one call of the oracle per example and round, and a quadratic program between.

    Parameters
    ----------
    keep
        Stored outputs of an example that are kept though they have no weight.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann, Altun (2005), Large margin methods for structured and interdependent output
    variables.

    Examples
    --------
    >>> from maxmargin import NSlack
    >>> from maxmargin.testing import toy_chains
    >>> NSlack().solve(toy_chains(), tol=0.01, random_state=0).status.name
    'OPTIMAL'
    """

    keep: int = 20

    needs_margin = resumes = keeps_dual = takes_kernels = True

    def __post_init__(self) -> None:
        check_count("keep", self.keep)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: self._begin(run))
        while True:
            if state.primal is not None:
                self._solve_restricted(run, state)
            certificate = state.certify()
            run.n_steps += run.objective.n
            state.primal = certificate.primal
            yield certificate

    def _begin(self, run: Run) -> BlockState:
        state = BlockState(BCFW(steps="pairwise", cache=self.keep), run)
        state.rule = state.rule._replace(calls_oracle=False)
        return state

    def _solve_restricted(self, run: Run, state: BlockState) -> None:
        """Store the outputs of the last round, and solve the problem over all that are stored."""
        n, gap = run.objective.n, state.global_gap
        self._store(state, run.target(state.primal or 0.0) / n)
        n_sweeps = max(1, STEPS_AT_ONCE // n)
        for _ in range(0, MOST_SWEEPS, n_sweeps):
            order = np.concatenate([run.rng.permutation(n) for _ in range(n_sweeps)])
            for lo, hi in run.slices(len(order), "sweeps"):
                state.step(order[lo:hi])
            if state.gaps.sum() <= ACCURACY * gap or run.interrupted or run.timed_out:
                break

    def _store(self, state: BlockState, least: float) -> None:
        """Store the outputs of the examples whose gap exceeds their share of the tolerance."""
        problem, n, done = state.run.objective.problem, state.run.objective.n, 0
        gaps = state.gaps.copy()
        while (done := store_outputs(problem, state.sets, state.outputs, gaps, ACCURACY * least, 0, done)) < n:
            state.sets = enlarge(state.sets)
            state.share_sets()
