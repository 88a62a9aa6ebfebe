"""Block-coordinate steps on one portion of the examples after the other, the state of each out of memory.

Steps on a block raise the dual in any order of the blocks, so that nothing but the order is another one than that of
`BlockState`: the dual point, the weights and the certificates are those of all examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.solvers.block_coordinate import sum_tree
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.active_sets import DualPoint, no_sets, rescale
from maxmargin.solvers.parted.portion_run import PortionRun, PortionVisits
from maxmargin.trace import Certificate

if TYPE_CHECKING:
    from maxmargin.solvers.block_coordinate.bcfw import BCFW, BlockState

VISITS = 5  # of a portion in a pass: with 1, OCR takes four times the passes of steps in any order, with 5 a fifth more


class PartedBlocks:
    """What `BlockState` is, of a run on portions of examples, each of which has such a state."""

    is_warm = knows_gaps = False
    lag = np.zeros(0)

    def __init__(self, solver: BCFW, run: Run, state_type: type[BlockState]) -> None:
        if solver.averaging or not solver.exact_gaps:
            raise ValueError("averaging must be False, and exact_gaps True, on examples in portions.")
        if run.start is not None:
            run.notes.append("Started afresh: dual points of examples in portions are not kept.")
        self.solver, self.run, self.state_type = solver, run, state_type
        self.visits = PortionVisits(run, self._make, self._resume, self._save)
        self.gaps = np.zeros(len(self.visits.shares))  # of the portions, as last known
        self.primal: float | None = None
        self.n_passes, self.age, self.n_steps = 1, 0, 0

    def _make(self, inner: PortionRun) -> BlockState:
        state = self.state_type(self.solver, inner)
        state.rounds = None  # whose arrays are as large as the weights, several times
        inner.take_over()  # as it began with its own
        return state

    def _resume(self, inner: PortionRun, kept: dict[str, Any]) -> BlockState:
        means = kept.pop("means")
        state = self.state_type.__new__(self.state_type)
        vars(state).update(kept, run=inner, outputs=inner.objective.new_outputs())
        state.gaps = sum_tree.leaves(state.tree, inner.objective.n)
        inner.dual = DualPoint(means, no_sets())
        state.share_sets()
        return state

    def _save(self, state: BlockState) -> dict[str, object]:
        kept = {name: value for name, value in vars(state).items() if name not in ("run", "outputs", "gaps")}
        return {**kept, "means": state.run.dual.means}

    def make_pass(self, sampling: str) -> None:
        """As many steps as there are examples, a share of those of each portion at a visit.

        Steps on one portion alone would soon undo what those on others have done.
        """
        n, n_visits = self.run.objective.n, 1 if self.primal is None else VISITS
        for _ in range(n_visits):
            gaps = []
            for state in self.visits.in_random_order():
                there = state.run.objective.n
                state.make_steps(sampling, -(-there // n_visits))
                gaps.append(state.gaps.sum() * there / n)
            self.gaps = np.array(gaps)
            if self.run.interrupted or self.run.timed_out:
                return

    def certify(self) -> Certificate:
        """Rebuild the weights from all dual points, then bound the objective by one pass of the oracle."""
        run = self.run
        objective: Any = run.objective
        v, cost = np.zeros(objective.n_weights), 0.0
        for share, state in self.visits.in_turn():
            if not state.rule.keeps_means:
                rescale(state.sets)
            portion = state.run.objective
            moved, cost_there = portion.sums_of(state.run.dual)
            v += portion.layout.to_model(moved)
            cost += share * cost_there
        run.place(objective.from_origin(v))
        dual, found, gaps = objective.dual_value(cost, v), [], []
        for share, state in self.visits.in_turn():
            at = {"outputs": state.outputs, "point": state.run.dual, "sets": state.sets}
            sums = state.run.objective.sum_losses(state.run.w, **at, with_gradient=False)
            state.run.count(calls=state.run.objective.n, wrong=sums.n_wrong)
            state.gaps[:] = np.maximum(sums.gaps, 0)
            sum_tree.sum_up(state.tree)
            state.global_gap = float(state.gaps.sum())
            gaps.append(share * state.global_gap)
            found.append(sums._replace(gaps=np.array([sums.gaps.sum()])))
        self.gaps = np.array(gaps)
        evaluation = run.take_note(objective.conclude(run.w, objective.add_up(found)))
        return Certificate(run.w, evaluation.value, dual - evaluation.rounding)
