"""Block-coordinate steps on one portion of the examples after the other, the state of each out of memory.

Steps on a block raise the dual in any order of the blocks, so that nothing but the order is another one than that of
`BlockState`: the dual point, the weights and the certificates are those of all examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.persist.registry import register_state
from maxmargin.solvers.block_coordinate import sum_tree
from maxmargin.solvers.block_coordinate.block_state import BlockState
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.active_sets import DualPoint, no_sets, rescale
from maxmargin.solvers.objective.loss_pass import LossSums
from maxmargin.solvers.parted.portion_run import PortionRun, PortionVisits
from maxmargin.trace import Certificate

if TYPE_CHECKING:
    from maxmargin.solvers.block_coordinate.bcfw import BCFW

VISITS = 5  # of a portion in a pass: with 1, OCR takes four times the passes of steps in any order, with 5 a fifth more


class StateOfPortions:
    """What `BlockState` is, of a run on portions of examples, each of which has such a state."""

    is_warm = knows_gaps = False
    lag = np.zeros(0)

    def __init__(self, solver: BCFW, run: Run) -> None:
        if solver.averaging or not solver.exact_gaps:
            raise ValueError("averaging must be False, and exact_gaps True, on examples in portions.")
        if run.start is not None:
            run.notes.append("Started afresh: dual points of examples in portions are not kept.")
        self.run = run
        self.gaps = np.zeros(len(run.objective.portions.sizes))  # type: ignore[attr-defined]  # as last known
        self.primal: float | None = None
        self.n_passes, self.age, self.n_steps = 1, 0, 0

    def conclude(self, dual: float, found: list[LossSums]) -> Certificate:
        """The certificate of a dual value and of what all portions tell."""
        run, objective = self.run, self.run.objective
        evaluation = run.take_note(objective.conclude(run.w, objective.add_up(found)))  # type: ignore[attr-defined]
        return Certificate(run.w, evaluation.value, dual - evaluation.rounding)


@register_state
class PartedBlocks(StateOfPortions):
    """The state of steps on one portion after the other."""

    def __init__(self, solver: BCFW, run: Run) -> None:
        super().__init__(solver, run)
        self.solver = solver
        self.visits = PortionVisits(run, self._make, resume_there, save_there)

    def __getstate__(self) -> dict[str, object]:
        """All but the visits, of which their states, mapped: they may be more than memory holds."""
        kept = {name: value for name, value in vars(self).items() if name != "visits"}
        return {**kept, "states": [state and state.load(maps=True) for state in self.visits.states]}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        states = kept.pop("states")
        vars(self).update(kept)
        self.visits = PortionVisits(self.run, self._make, resume_there, save_there)
        self.visits.states = [state and self.visits.home.put(state) for state in states]

    def _make(self, inner: PortionRun) -> BlockState:
        state = begin_there(self.solver, inner)
        inner.take_over()  # as it began with its own
        return state

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
            moved, cost_there = sum_up_there(state)
            v += moved
            cost += share * cost_there
        run.place(objective.from_origin(v))
        dual, found, gaps = objective.dual_value(cost, v), [], []
        for share, state in self.visits.in_turn():
            sums = refresh_gaps(state)
            state.run.count(calls=state.run.objective.n, wrong=sums.n_wrong)
            gaps.append(share * state.global_gap)
            found.append(sums)
        self.gaps = np.array(gaps)
        return self.conclude(dual, found)


# --- of one portion ---------------------------------------------------------------------------------------------------


def begin_there(solver: BCFW, run: Run) -> BlockState:
    """The state of steps on a portion, one after the other."""
    state = BlockState(solver, run)
    state.rounds = None  # whose arrays are as large as the weights, several times
    return state


def save_there(state: BlockState) -> dict[str, object]:
    """What is kept of a state until the next visit."""
    kept = {name: value for name, value in vars(state).items() if name not in ("run", "outputs", "gaps")}
    return {**kept, "means": state.run.dual.means}


def resume_there(run: Run, kept: dict[str, Any]) -> BlockState:
    """The state of which this was kept."""
    means = kept.pop("means")
    state = BlockState.__new__(BlockState)
    vars(state).update(kept, run=run, outputs=run.objective.new_outputs())
    state.gaps = sum_tree.leaves(state.tree, run.objective.n)
    run.dual = DualPoint(means, no_sets())
    state.share_sets()
    return state


def sum_up_there(state: BlockState) -> tuple[np.ndarray, float]:
    """What a portion adds to the weights, in the order of the model, and its mean of <cost, mu>."""
    if not state.rule.keeps_means:
        rescale(state.sets)
    moved, cost = state.run.objective.sums_of(state.run.dual)
    return state.run.objective.layout.to_model(moved), cost


def refresh_gaps(state: BlockState) -> LossSums:
    """A pass of the oracle over a portion at the weights of its run: its gaps are known, and their sum is told."""
    at = {"outputs": state.outputs, "point": state.run.dual, "sets": state.sets}
    sums = state.run.objective.sum_losses(state.run.w, **at, with_gradient=False)
    state.gaps[:] = np.maximum(sums.gaps, 0)
    sum_tree.sum_up(state.tree)
    state.global_gap = float(state.gaps.sum())
    return sums._replace(gaps=np.array([sums.gaps.sum()]))
