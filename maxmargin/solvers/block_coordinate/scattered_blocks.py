"""Block-coordinate steps on all portions of the examples at once, in rounds, each where it is.

A round is a function of the examples of a portion, of its dual point, the weights and a seed, so that it does not
matter who computes it. What `maxmargin.execution.step_rounds` says of ranges is true of portions: all step from the
same weights, each takes its changes for sigma times as steep as they are, and they are added in the order of the
portions. As weights travel in every round, rounds are long, and sigma is larger than on threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.execution.meeting import LOOK, SIGMA, adapt, gain_of, new_pace
from maxmargin.persist.registry import register_state
from maxmargin.solvers.block_coordinate.parted_blocks import (
    StateOfPortions,
    begin_there,
    refresh_gaps,
    resume_there,
    save_there,
    sum_up_there,
)
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.loss_pass import LossSums
from maxmargin.solvers.parted.portion_run import confine_portion, free_weights
from maxmargin.solvers.parted.portions import Kept
from maxmargin.trace import Certificate

if TYPE_CHECKING:
    from maxmargin.solvers.block_coordinate.bcfw import BCFW

ROUNDS = 10  # of a pass
NEVER = Limits()  # of runs on portions: it is the whole that ends
Edges = tuple[np.ndarray, ...]  # bounds of all weights, below and above, or none


class RoundReply(NamedTuple):
    """What a portion tells of its steps in a round."""

    change: np.ndarray  # of the weights, sigma times, in the order of the model
    gain: float  # that it predicts
    gap: float  # the sum of its block gaps, as last known
    counts: tuple[int, ...]  # steps, calls of the oracle, cache hits and misses, wrong outputs


@register_state
class ScatteredBlocks(StateOfPortions):
    """The state of steps on portions of examples that are elsewhere."""

    def __init__(self, solver: BCFW, run: Run) -> None:
        super().__init__(solver, run)
        objective: Any = run.objective
        self.kept: Kept = objective.keep(begin_round, solver)
        self.shares: np.ndarray = objective.portions.sizes / objective.n
        self.pace = new_pace(len(self.shares))
        self._place_all()

    def _place_all(self) -> float:
        """Go on from the weights of all dual points; return the dual value there."""
        objective: Any = self.run.objective
        found = objective.each(sum_up_round, self.kept, fills=[self.kept])
        v, cost = np.zeros(objective.n_weights), 0.0
        for share, (moved, cost_there) in zip(self.shares, found, strict=True):
            v += moved
            cost += share * cost_there
        self.run.place(objective.from_origin(v))
        return float(objective.dual_value(cost, v))

    def make_pass(self, sampling: str) -> None:
        """About as many steps as there are examples, in rounds."""
        for _ in range(ROUNDS):
            if self.run.interrupted or self.run.timed_out:
                return
            self._make_round(sampling)

    def _make_round(self, sampling: str) -> None:
        run, sigma = self.run, float(self.pace[SIGMA])
        objective: Any = run.objective
        seeds = Kept(run.rng.integers(2**62, size=len(self.shares)).tolist())
        v = free_weights(run)
        asked = self.kept, v, self._edges(), seeds, sigma, sampling
        replies = [*objective.each(step_there, *asked, fills=[self.kept])]
        total, squares, predicted = np.zeros(objective.n_weights), 0.0, 0.0
        for share, reply in zip(self.shares, replies, strict=True):
            change = np.asarray(reply.change, np.float64) / sigma
            total += change
            squares += float(change @ change)
            predicted += share * reply.gain
            n_steps, *counts = reply.counts
            run.n_steps += n_steps
            run.count(*counts)
        gained = gain_of(predicted, sigma, objective.regularization, squares, total @ total)
        adapt(self.pace, gained, predicted, len(self.shares), LOOK)
        self.gaps = self.shares * [reply.gap for reply in replies]
        run.place(v + total)

    def _edges(self) -> Edges:
        bounds = self.run.objective.bounds
        return bounds.dense(self.run.objective.n_weights) if bounds.which.size else ()

    def certify(self) -> Certificate:
        """Rebuild the weights from all dual points, then bound the objective by one pass of the oracle."""
        run = self.run
        objective: Any = run.objective
        dual = self._place_all()
        found = [*objective.each(look_there, self.kept, free_weights(run), self._edges(), fills=[self.kept])]
        run.count(calls=objective.n, wrong=sum(sums.n_wrong for sums in found))
        self.gaps = self.shares * [max(float(sums.gaps.sum()), 0.0) for sums in found]
        return self.conclude(dual, found)


# --- where portions are -----------------------------------------------------------------------------------------------


def run_there(objective: Objective, v: np.ndarray | None = None, edges: Edges = (), seed: int = 0) -> Run:
    """A run on a portion, from weights before they are projected to bounds."""
    if edges:
        confine_portion(objective, *edges)
    run = Run(objective, NEVER, None, seed, clock=objective.runner.clock)
    if v is not None:
        run.place(objective.layout.to_solver(v))
    return run


def begin_round(objective: Objective, solver: BCFW) -> dict[str, object]:
    """What is kept of a portion in the beginning."""
    return save_there(begin_there(solver, run_there(objective)))


def sum_up_round(objective: Objective, kept: dict[str, Any]) -> tuple[np.ndarray, float]:
    """See `sum_up_there`."""
    state = resume_there(run_there(objective), kept)
    found = sum_up_there(state)
    kept.update(save_there(state))
    return found


def step_there(
    objective: Objective, kept: dict[str, Any], v: np.ndarray, edges: Edges, seed: int, sigma: float, sampling: str
) -> RoundReply:
    """The steps of a round."""
    run = run_there(objective, v, edges, seed)
    state, before = resume_there(run, kept), free_weights(run)
    state.sigma, state.gain = sigma, np.zeros(1)
    state.make_steps(sampling, -(-objective.n // ROUNDS))
    change = objective.layout.to_model(free_weights(run).astype(np.float64) - before)
    kept.update(save_there(state))
    counts = run.n_steps, run.oracle_calls, run.cache_hits, run.cache_misses, run.wrong_outputs
    return RoundReply(change, float(state.gain[0]), float(state.gaps.sum()), counts)


def look_there(objective: Objective, kept: dict[str, Any], v: np.ndarray, edges: Edges) -> LossSums:
    """See `refresh_gaps`."""
    state = resume_there(run_there(objective, v, edges), kept)
    found = refresh_gaps(state)
    kept.update(save_there(state))
    return found
