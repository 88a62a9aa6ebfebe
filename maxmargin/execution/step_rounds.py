"""Steps on several ranges of examples at once, in rounds, so that the same seed gives the same weights.

In a round every range of examples takes a few steps on its own, on its own thread, all from the same weights w. A step
on an example changes the dual point of that example alone, and w by d; then the changes d_k of all ranges k are added
to w, in their order. The dual rises by

    sum_k (slope_k - (lambda/2) <d_k, d_k>) - lambda sum_{k < l} <d_k, d_l>,

so each range, which knows nothing of the others, takes its changes for sigma times as steep as they are: in a round
its weights are u_k = w + sigma d_k, as with the regularization lambda / sigma, and it predicts a gain of the dual of
slope_k - sigma (lambda/2) <d_k, d_k>. Where sigma is the number of ranges, the sum of what they predict is never more
than what the dual gains (Ma et al. 2015, Adding vs. averaging in distributed primal-dual optimization); where the
rounds are short or examples have little in common, sigma = 1 does it, and is faster. So sigma follows what is seen:

    gained = predicted + (lambda/2) {sigma sum_k <d_k, d_k> - <sum_k d_k, sum_k d_k>}.

What is certified does not depend on it: certificates rebuild the weights from the dual point.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.atomics import address_to_give_way, give_way, observe, publish
from maxmargin.execution.runner import Runner
from maxmargin.execution.threads import CACHE_LINE, Ranges, aligned
from maxmargin.runtime.dispatch import helper

LOW, HIGH = 0.6, 1.0  # of what was gained, relative to what was predicted: below and above them sigma changes
RAISED, LOWERED = 1.3, 0.97  # times sigma
MARGIN, FORGOTTEN = 1.2, 0.998  # times a sigma that was too low: what it does not fall below, and how that fades
LOOK = 16  # rounds between two looks at what was gained
STEPS_OF_ROUND = 32  # of all ranges: few, so that sigma can be small
LEAST_WORK = 2**16  # parts of all examples of a range: with fewer, threads take longer to begin than to end
SPINS = 2000  # looks at a word, about a microsecond, before a thread gives way to others
LINE = CACHE_LINE // 8  # words of a cache line
ALL = 2**60  # rounds

GOING, THROUGH, FULL, ABANDONED = range(4)  # how a range stands at the end of a round
SIGMA, LEAST, GAINED, PREDICTED, ROUNDS = range(5)  # what is in `Meeting.pace`


def new_pace() -> np.ndarray:
    """The sigma that rounds begin with, its least value, and what was gained, and predicted, in some last rounds."""
    return np.array([1.0, 1.0, 0.0, 0.0, 0.0])


@helper
def adapt(pace, gained, predicted, n_ranges):
    """Take note, in a pace, of what a round has gained and what was predicted; sigma follows, now and then.

    Sigma rises where much less is gained than was predicted, at most to the number of ranges. Where more is, it falls,
    but at first not to where it was too low: there the dual may fall, and all that ranges do is undone by the others.

    Examples
    --------
    >>> from maxmargin.execution.step_rounds import LOOK, SIGMA, adapt, new_pace
    >>> pace = new_pace()
    >>> for _ in range(LOOK):
    ...     adapt(pace, 0.5, 1.0, 4)
    >>> float(pace[SIGMA])
    1.3
    """
    pace[GAINED] += gained
    pace[PREDICTED] += predicted
    pace[ROUNDS] += 1
    if pace[ROUNDS] < LOOK:
        return
    if pace[GAINED] < LOW * pace[PREDICTED]:
        pace[LEAST] = min(MARGIN * pace[SIGMA], n_ranges)
        pace[SIGMA] = min(RAISED * pace[SIGMA], n_ranges)
    elif pace[GAINED] > HIGH * pace[PREDICTED]:
        pace[LEAST] = max(FORGOTTEN * pace[LEAST], 1.0)
        pace[SIGMA] = max(LOWERED * pace[SIGMA], pace[LEAST])
    pace[GAINED] = 0.0
    pace[PREDICTED] = 0.0
    pace[ROUNDS] = 0.0


@helper
def gain_of(predicted, sigma, regularization, squares, square):
    """What the dual gains: `squares` are sum_k <d_k, d_k>, `square` is <sum_k d_k, sum_k d_k>."""
    return predicted + 0.5 * regularization * (sigma * squares - square)


def add_changes(
    w: np.ndarray, changes: Sequence[np.ndarray], predicted: Sequence[float], pace: np.ndarray, regularization: float
) -> np.ndarray:
    """Weights after a round, in float64, of ranges that are not all in one process; the pace takes note of the round.

    Parameters
    ----------
    w
        The weights that all ranges started from.
    changes
        The d_k of all ranges k, (u_k - w) / sigma of the weights u_k that each has come to.
    predicted
        What each has predicted: what its steps have gained with the regularization lambda / sigma.
    pace
        See `new_pace`.
    regularization
        Lambda.
    """
    total = np.zeros(len(w))
    for change in changes:
        total += change
    foreseen, squares = float(sum(predicted)), sum(float(change @ change) for change in changes)
    gained = gain_of(foreseen, pace[SIGMA], regularization, squares, float(total @ total))
    adapt(pace, gained, foreseen, len(changes))
    return w + total


def count_cores() -> int:
    """The number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_ranges(runner: Runner) -> int:
    """How many ranges of the examples are to step side by side: one per thread, if there is a core and work for it."""
    if not runner.problem.is_compiled:
        return 1
    return max(1, min(len(runner.ranges), count_cores(), int(runner.part_sizes.sum()) // LEAST_WORK))


class Meeting(NamedTuple):
    """What all ranges see."""

    u: np.ndarray  # (ranges, weights) the weights of each range
    w: np.ndarray  # (ranges, weights) those that it started the round from, before they are projected to bounds
    changes: np.ndarray  # (2, ranges, weights) u - w, of rounds of even and of odd numbers
    gains: np.ndarray  # (2, ranges, LINE) what each predicts, first in its line
    pace: np.ndarray  # (ranges, LINE) see `new_pace`: that of each range, all the same
    words: np.ndarray  # of each range a line: the number of rounds it has finished, and how it stood after the last two
    way: int  # see `give_way`


class Seat(NamedTuple):
    """The place of a range at the meeting."""

    meeting: Meeting
    k: int  # its number
    n_weights: int
    budget: int  # parts that it is to look at in a round
    most: int  # rounds
    gain: np.ndarray  # (1,) what its steps have gained in this round
    regularization: float


RangeSteps = Callable[[Seat, int], tuple[int, bool]]


class StepRounds:
    """Ranges of the examples of a runner, with the threads and the memory for rounds of steps on them.

    Parameters
    ----------
    runner
        The examples.
    n_weights
        The number of weights.
    """

    def __init__(self, runner: Runner, n_weights: int) -> None:
        n = count_ranges(runner)
        self.ranges = runner.ranges if len(runner.ranges) == n else Ranges(runner.part_sizes, n)
        self.scratches = runner.scratches
        self.n_weights = n_weights
        self.budget = int(np.ceil(STEPS_OF_ROUND / n * runner.part_sizes.mean()))
        self.per_pass = int(np.ceil(runner.part_sizes.sum() / (n * self.budget)))
        per_line = CACHE_LINE // runner.dtype.itemsize
        width = -(-n_weights // per_line) * per_line
        self.gains = [aligned((1,), np.float64) for _ in range(n)]
        self.meeting = Meeting(
            u=aligned((n, width), runner.dtype),
            w=aligned((n, width), runner.dtype),
            changes=aligned((2, n, width), runner.dtype),
            gains=aligned((2, n, LINE), np.float64),
            pace=aligned((n, LINE), np.float64),
            words=aligned((n * LINE,), np.int64),
            way=address_to_give_way(),
        )

    def __len__(self) -> int:
        return len(self.ranges)

    def weights_of(self, k: int) -> np.ndarray:
        """The weights of range k."""
        return self.meeting.u[k, : self.n_weights]

    def make_pass(
        self,
        slices: Iterable[tuple[int, int]],
        sizes: Sequence[int],
        step: RangeSteps,
        w: np.ndarray,
        v: np.ndarray,
        regularization: float,
        pace: np.ndarray,
        make_room: Callable[[], None] | None = None,
    ) -> None:
        """Rounds until every range has made its steps.

        Parameters
        ----------
        slices
            Slices of the steps of all, between which to look at the clock; they may end early.
        sizes
            The number of steps of each range.
        step
            Makes the steps of a range in rounds, ``step(seat, place)``, from a place in its order on; returns the place
            that is reached, and whether there is room for the next step.
        w
            The weights to start from, and those that are reached.
        v
            The same, to start from, before they are projected to bounds.
        regularization
            That of the objective, lambda.
        pace
            See `new_pace`; it follows what the dual gains.
        make_room
            Called where a range has no room.
        """
        meeting, n_steps = self.meeting, sum(sizes)
        meeting.w[:, : self.n_weights] = v
        meeting.u[:, : self.n_weights] = w
        meeting.pace[:, : len(pace)] = pace
        meeting.words[:] = 0
        places, done = [0] * len(self), 0
        for _, hi in slices:
            until = ALL if hi == n_steps else -(-hi * self.per_pass // n_steps)
            while done < until and places != [*sizes]:
                found = self.ranges.run(partial(self._sit_down, step, places, until - done, regularization))
                places, done = [place for place, _ in found], int(meeting.words[0])
                if make_room is not None and not all(has_room for _, has_room in found):
                    make_room()
        w[:] = self.weights_of(0)
        pace[:] = meeting.pace[0, : len(pace)]

    def _sit_down(
        self, step: RangeSteps, places: Sequence[int], most: int, regularization: float, k: int, *_: int
    ) -> tuple[int, bool]:
        """The steps of range k, at most so many rounds."""
        try:
            seat = Seat(self.meeting, k, self.n_weights, self.budget, most, self.gains[k], regularization)
            return step(seat, places[k])
        except BaseException:
            words = self.meeting.words[LINE * k : LINE * (k + 1)]
            words[1:] = ABANDONED
            words[0] = ALL  # nobody is to wait
            raise


@helper
def meet(meeting, k, standing):
    """Wait for all ranges; return the highest and the lowest of how they stand."""
    n = meeting.u.shape[0]
    finished = meeting.words[LINE * k] + 1
    meeting.words[LINE * k + 1 + finished % 2] = standing
    publish(meeting.words, LINE * k, finished)
    highest = standing
    lowest = standing
    for other in range(n):
        spins = 0
        while observe(meeting.words, LINE * other) < finished:
            spins += 1
            if spins > SPINS:
                give_way(meeting.way)
        stands = meeting.words[LINE * other + 1 + finished % 2]
        highest = max(highest, stands)
        lowest = min(lowest, stands)
    return highest, lowest


@helper
def end_round(seat, standing):
    """Add the changes of all ranges to the weights that this one starts the next round from; return whether it does.

    Every range does so for itself, in the same order, so that all have the same weights and the same sigma. What was
    written in one round is written over in the next but one, when all have read it.
    """
    meeting, k, n_weights = seat.meeting, seat.k, seat.n_weights
    changes = meeting.changes[meeting.words[LINE * k] % 2]
    gains = meeting.gains[meeting.words[LINE * k] % 2]
    pace = meeting.pace[k]
    u = meeting.u[k]
    w = meeting.w[k]
    gains[k, 0] = seat.gain[0]
    seat.gain[0] = 0.0
    for p in range(n_weights):
        changes[k, p] = u[p] - w[p]
        u[p] = w[p]
    highest, lowest = meet(meeting, k, standing)
    if highest == ABANDONED:
        return False
    sigma = pace[SIGMA]
    share = w.dtype.type(1 / sigma)
    predicted = 0.0
    squares = 0.0
    square = 0.0
    for other in range(changes.shape[0]):
        predicted += gains[other, 0]
        for p in range(n_weights):
            squares += changes[other, p] * changes[other, p]
            w[p] += share * changes[other, p]
    for p in range(n_weights):
        change = w[p] - u[p]
        square += change * change
        u[p] = w[p]
    gained = gain_of(predicted, sigma, seat.regularization, squares / sigma**2, square)
    adapt(pace, gained, predicted, changes.shape[0])
    return highest != FULL and lowest != THROUGH
