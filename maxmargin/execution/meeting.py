"""Where ranges of examples meet after each round of their steps: in compiled code, on threads that wait for each other.

`maxmargin.execution.step_rounds` says what a round is. The changes of all ranges are added to the weights in one of two
ways. Where there are few weights, each range writes down by how much all of its weights have changed. Where there are
many, of which a step changes few, it notes its steps, and others take them as well; then only one round in several is
of the first kind, and tells what the dual gains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.atomics import give_way, observe, publish
from maxmargin.arrays.vectors import clear, copy_into
from maxmargin.execution.threads import CACHE_LINE
from maxmargin.problem import spread
from maxmargin.runtime.dispatch import helper

LOW, HIGH = 0.6, 1.0  # of what was gained, relative to what was predicted: below and above them sigma changes
RAISED, LOWERED = 1.3, 0.95  # times sigma
MARGIN, FORGOTTEN = 1.2, 0.998  # times a sigma that was too low: what it does not fall below, and how that fades
LOOK = 16  # rounds between two looks at what was gained
MEASURED = 4  # so many rounds, one tells what was gained: squares of all changes take longer than the changes
SPINS = 20_000  # looks at a word, some ten microseconds, before a thread gives way to others
LINE = CACHE_LINE // 8  # words of a cache line

GOING, THROUGH, FULL, ABANDONED = range(4)  # how a range stands at the end of a round
SIGMA, LEAST, GAINED, PREDICTED, ROUNDS = range(5)  # what is in a pace


def new_pace(n_ranges: int, *, is_short: bool = False) -> np.ndarray:
    """The sigma to begin with, its least value, and what was gained, and predicted, in so many of the last rounds.

    Where rounds are short, ranges disturb each other less.
    """
    return np.array([max(1.0, (n_ranges + 1 - is_short) / 2), 1.0, 0.0, 0.0, 0.0])


@helper
def adapt(pace, gained, predicted, n_ranges, n_rounds):
    """Take note, in a pace, of what a round has gained and what was predicted; sigma follows, now and then.

    It is one of `n_rounds`, and stands for all of them.

    Sigma rises where much less is gained than was predicted, at most to the number of ranges. Where more is, it falls,
    but at first not to where it was too low: there the dual may fall, and all that ranges do is undone by the others.

    Examples
    --------
    >>> from maxmargin.execution.meeting import LOOK, SIGMA, adapt, new_pace
    >>> pace = new_pace(n_ranges=4)
    >>> for _ in range(LOOK):
    ...     adapt(pace, 0.5, 1.0, 4, 1)
    >>> float(pace[SIGMA])  # which was 2.5
    3.25
    """
    pace[GAINED] += gained
    pace[PREDICTED] += predicted
    pace[ROUNDS] += n_rounds
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


class Log(NamedTuple):
    """The steps of a range in a round, for others to take as well; of rounds of even and of odd numbers."""

    which: np.ndarray  # (2, steps) their examples
    factors: np.ndarray  # (2, steps) times their directions, by which w moved
    ends: np.ndarray  # (2, 1 + steps) where the directions end
    directions: np.ndarray  # (2, parts)
    state: np.ndarray  # (LINE,) whether steps are to be noted, in the round of which parity, and how many are


NO_LOG = Log(
    np.zeros((2, 0), np.int64), np.zeros((2, 0)), np.zeros((2, 1), np.int64), np.zeros((2, 0)), np.zeros(LINE, np.int64)
)
IS_NOTED, PARITY, COUNT = range(3)  # what is in the state of a log


@helper
def note_step(log, i, direction, factor):
    """Keep a step, if it is to be noted: w += factor B_i direction."""
    if log.state[IS_NOTED] == 0:
        return
    parity = log.state[PARITY]
    count = log.state[COUNT]
    begin = log.ends[parity, count]
    log.which[parity, count] = i
    log.factors[parity, count] = factor
    copy_into(log.directions[parity, begin:], direction)
    log.ends[parity, count + 1] = begin + direction.size
    log.state[COUNT] = count + 1


class Meeting(NamedTuple):
    """What all ranges see; what is there twice is that of rounds of even and of odd numbers."""

    u: np.ndarray  # (ranges, weights) the weights of each range
    w: np.ndarray  # (ranges, weights) those that it started the round from, before they are projected to bounds
    changes: np.ndarray  # (2, ranges, weights) u - w
    gains: np.ndarray  # (2, ranges, LINE) what each predicts, first in its line
    logs: Log  # of all ranges, with one more axis in front
    counts: np.ndarray  # (2, ranges, LINE) of the steps in their logs, first in their lines
    pace: np.ndarray  # (ranges, LINE) that of each range, all the same
    words: np.ndarray  # of each range a line: the number of rounds it has finished, and how it stood after the last two
    way: int  # see `give_way`


class Seat(NamedTuple):
    """The place of a range at the meeting."""

    meeting: Meeting
    k: int  # its number
    n_weights: int
    budget: int  # parts that it is to look at in a round
    most: int  # rounds
    every: int  # so many rounds, one tells all changes
    log: Log
    gain: np.ndarray  # (1,) what its steps have gained in this round
    regularization: float


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
def end_round(problem, seat, standing):
    """Add the changes of all ranges to the weights that this one starts the next round from; return whether it does.

    Every range does so for itself. What was written in one round is written over in the next but one, when all have
    read it.
    """
    meeting, k, log = seat.meeting, seat.k, seat.log
    n_finished = meeting.words[LINE * k]
    parity = n_finished % 2
    meeting.gains[parity, k, 0] = seat.gain[0]
    meeting.counts[parity, k, 0] = log.state[COUNT]
    seat.gain[0] = 0.0
    tells_all = log.state[IS_NOTED] == 0
    if tells_all:
        tell_changes(meeting.u[k], meeting.w[k], meeting.changes[parity, k], seat.n_weights)
    highest, lowest = meet(meeting, k, standing)
    if highest == ABANDONED:
        return False
    if tells_all:
        add_all_changes(seat, parity)
    else:
        take_steps_of_others(problem, seat, parity)
    log.state[IS_NOTED] = (n_finished + 2) % seat.every != 0
    log.state[PARITY] = 1 - parity
    log.state[COUNT] = 0
    if not tells_all and log.state[IS_NOTED] == 0:
        copy_into(meeting.w[k], meeting.u[k])
    return highest != FULL and lowest != THROUGH


@helper
def tell_changes(u, w, changes, n_weights):
    """Changes = u - w."""
    for p in range(n_weights):
        changes[p] = u[p] - w[p]


@helper
def add_all_changes(seat, parity):
    """Add the changes that all ranges tell, in their order."""
    meeting, k, n_weights = seat.meeting, seat.k, seat.n_weights
    total = meeting.u[k]
    w = meeting.w[k]
    share = w.dtype.type(1 / meeting.pace[k, SIGMA])
    clear(total)
    for other in range(meeting.u.shape[0]):
        changes = meeting.changes[parity, other]
        for p in range(n_weights):
            total[p] += changes[p]
    if seat.every > 1 or meeting.words[LINE * k] % MEASURED == 0:
        measure_gain(seat, parity, total)
    for p in range(n_weights):
        w[p] += share * total[p]
    copy_into(meeting.u[k], w)


@helper
def measure_gain(seat, parity, total):
    """Let sigma follow what the dual gains by these changes in total; all ranges come to the same one."""
    meeting, n_weights = seat.meeting, seat.n_weights
    pace = meeting.pace[seat.k]
    sigma = pace[SIGMA]
    predicted = 0.0
    squares = 0.0
    square = 0.0
    for other in range(meeting.u.shape[0]):
        changes = meeting.changes[parity, other]
        predicted += meeting.gains[parity, other, 0]
        for p in range(n_weights):
            squares += changes[p] * changes[p]
    for p in range(n_weights):
        square += total[p] * total[p]
    gained = gain_of(predicted, sigma, seat.regularization, squares / sigma**2, square / sigma**2)
    adapt(pace, gained, predicted, meeting.u.shape[0], MEASURED)


@helper
def take_steps_of_others(problem, seat, parity):
    """Take the steps of the other ranges as well, in their order; own ones counted sigma times, and count once now."""
    logs, k = seat.meeting.logs, seat.k
    u = seat.meeting.u[k, : seat.n_weights]
    share = 1 / seat.meeting.pace[k, SIGMA]
    for other in range(logs.which.shape[0]):
        factor = share - 1 if other == k else share
        n_steps = seat.meeting.counts[parity, other, 0] if factor != 0 else 0
        for step in range(n_steps):
            direction = logs.directions[
                other, parity, logs.ends[other, parity, step] : logs.ends[other, parity, step + 1]
            ]
            spread(problem, u, logs.which[other, parity, step], direction, factor * logs.factors[other, parity, step])
