"""Block steps on several ranges of examples at once, in rounds (`maxmargin.execution.step_rounds`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.execution.meeting import FULL, GOING, LINE, SIGMA, THROUGH, Seat, end_round, new_pace
from maxmargin.execution.step_rounds import NO_DRAWS, Order, StepRounds
from maxmargin.persist.registry import register_state
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers.block_coordinate.block_steps import EXACT, WRONG, BlockPoint, Turns, Visits, take_steps
from maxmargin.solvers.block_coordinate.exact_steps import take_exact_steps
from maxmargin.solvers.block_coordinate.sum_tree import RangeTrees
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.active_sets import ActiveSets, enlarge
from maxmargin.solvers.objective.bounds import confine, release

if TYPE_CHECKING:
    from maxmargin.solvers.block_coordinate.block_state import BlockState

STEPS_OF_ROUND = 32


@loop
def block_rounds(problem, point, rule, visits, seat, place, scratch):
    """Rounds of `take_steps` on one of the ranges; return the place in `visits` that is reached, and whether sets have
    room.
    """
    has_room = True
    for _ in range(seat.most):
        sigma = seat.meeting.pace[seat.k, SIGMA]
        place, has_room = take_steps(problem, point, rule, visits, place, seat.budget, sigma, scratch)
        standing = GOING if place < visits.order.size else THROUGH
        release(point.w, point.bounds)
        goes_on = end_round(problem, seat, standing if has_room else FULL)
        confine(point.w, point.bounds)
        if not goes_on:
            break
    return place, has_room


@loop
def exact_rounds(problem, point, rule, visits, seat, place, scratch):
    """Rounds of `take_exact_steps`, as `block_rounds`."""
    for _ in range(seat.most):
        sigma = seat.meeting.pace[seat.k, SIGMA]
        place, _ = take_exact_steps(problem, point, rule, visits, place, seat.budget, sigma, scratch)
        release(point.w, point.bounds)
        goes_on = end_round(problem, seat, GOING if place < visits.order.size else THROUGH)
        confine(point.w, point.bounds)
        if not goes_on:
            break
    return place, True


@register_state
class BlockRounds:
    """Passes of block steps in rounds.

    Parameters
    ----------
    run
        What is run.
    sets
        The stored outputs.
    """

    def __init__(self, run: Run, sets: ActiveSets) -> None:
        self.run = run
        self._prepare()
        self.pace = new_pace(len(self.rounds), is_short=True)
        self.rooms = np.zeros((len(self.rounds), 4), np.int64)  # of each range: what it has used of arenas, its ends
        if sets.sizes.size:
            self._share_out(sets, *sets.used)

    def _prepare(self) -> None:
        self.rounds = StepRounds(self.run.objective.runner, self.run.w.size, STEPS_OF_ROUND)
        self.gaps = RangeTrees(self.rounds.ranges.bounds)
        self.free = [self.run.objective.bounds.free.copy() for _ in self.rounds.ranges.bounds]
        self.counts = np.zeros((len(self.rounds), LINE), np.int64)

    def __getstate__(self) -> dict[str, object]:
        """What does not follow from the run."""
        return {name: getattr(self, name) for name in ("run", "pace", "rooms")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._prepare()

    def split(self, order: np.ndarray) -> tuple[list[Order], list[Turns]]:
        """For each range as many steps as it has examples, which take turns in an order of all examples."""
        turns = [order[(order >= lo) & (order < hi)] for lo, hi in self.rounds.ranges.bounds]
        orders = [(np.full(len(of_range), -1), NO_DRAWS) for of_range in turns]
        return orders, [Turns(of_range, np.zeros(1, np.int64)) for of_range in turns]

    def make_pass(self, state: BlockState, orders: Sequence[Order], turns: Sequence[Turns]) -> np.ndarray:
        """A step on each of the examples; return the counts of calls of the oracle, cache hits and wrong outputs."""
        run, objective, rounds = self.run, self.run.objective, self.rounds
        bounds, ranges = objective.bounds, rounds.ranges.bounds
        take = exact_rounds if state.rule.kind == EXACT else block_rounds
        for free in self.free:
            free[:] = bounds.free
        self.gaps.read(state.gaps)
        self.counts[:] = 0

        def step(seat: Seat, place: int) -> tuple[int, bool]:
            k, (order, draws) = seat.k, orders[seat.k]
            lo, hi = ranges[k]
            point = BlockPoint(
                rounds.weights_of(k),
                bounds._replace(free=self.free[k]),
                run.dual.means,
                self._sets_of(state.sets, k),
                self.gaps.trees[k],
                lo,
                state.lag,
                self.counts[k],
                seat.gain,
                seat.log,
                objective.runner.lines,
            )
            visits = Visits(order, draws, len(order), hi - lo, 0, state.global_gap, turns[k])
            return take(objective.problem, point, state.rule, visits, seat, place, rounds.scratches[k])

        def make_room() -> None:
            n_outputs, n_slots = state.sets.outputs.size, state.sets.alpha.size
            state.sets = enlarge(state.sets, len(ranges))
            state.share_sets()
            self._share_out(state.sets, n_outputs, n_slots)

        sizes, v = [len(order) for order, _ in orders], run.w.copy()
        v[bounds.which] = bounds.free
        slices = run.slices(sum(sizes))
        rounds.make_pass(slices, sizes, step, run.w, v, objective.regularization, self.pace, make_room)
        bounds.free[:] = self.free[0]
        self.gaps.write(state.gaps)
        return self.counts[:, : WRONG + 1].sum(axis=0)

    def _share_out(self, sets: ActiveSets, n_outputs: int, n_slots: int) -> None:
        """Give every range its share of the arenas, beyond what is taken of outputs and of slots."""
        n = len(self.rooms)
        for column, begin, end in ((0, n_outputs, sets.outputs.size), (1, n_slots, sets.alpha.size)):
            edges = begin + (end - begin) * np.arange(n + 1) // n
            self.rooms[:, column], self.rooms[:, column + 2] = edges[:-1], edges[1:]
            sets.used[column] = end

    def _sets_of(self, sets: ActiveSets, k: int) -> ActiveSets:
        """The sets as range k takes them: what it may use ends where its room does."""
        if not sets.sizes.size:
            return sets
        n_outputs, n_slots = self.rooms[k, 2:]
        return sets._replace(
            outputs=sets.outputs[:n_outputs],
            alpha=sets.alpha[:n_slots],
            score=sets.score[:n_slots],
            earlier=sets.earlier[:n_slots],
            used=self.rooms[k, :2],
        )
