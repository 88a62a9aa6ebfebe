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

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from maxmargin.arrays.atomics import address_to_yield
from maxmargin.execution.meeting import ABANDONED, IS_NOTED, LINE, Log, Meeting, Seat
from maxmargin.execution.runner import Runner
from maxmargin.execution.threads import CACHE_LINE, Ranges, aligned, count_cores
from maxmargin.runtime.modes import is_enough

LEAST_WORK = 2**16  # parts of all examples of a range: with fewer, threads take longer to begin than to end
ALL = 2**60  # rounds


def count_ranges(runner: Runner) -> int:
    """How many ranges of the examples are to step side by side: one per thread, if there is a core and work for it."""
    if not runner.problem.is_compiled:
        return 1
    n, most = len(runner.ranges), min(count_cores(), int(runner.part_sizes.sum()) // LEAST_WORK)
    return n if is_enough(most, n) else max(1, most)


NO_DRAWS = np.zeros(0)
Order = tuple[np.ndarray, np.ndarray]  # examples, and numbers to draw those by that are negative
RangeSteps = Callable[[Seat, int], tuple[int, bool]]


def draw_order(
    rng: np.random.Generator, sampling: str, uniform_share: float, n: int, n_steps: int, first: int = 0
) -> Order:
    """Examples for steps on n from the first: "permutation", "uniform", or by their "gap" but for a share."""
    order = first + (rng.permutation(n)[:n_steps] if sampling == "permutation" else rng.integers(n, size=n_steps))
    if sampling != "gap":
        return order, NO_DRAWS
    order[rng.random(n_steps) >= uniform_share] = -1
    return order, rng.random(n_steps)


class StepRounds:
    """Ranges of the examples of a runner, with the threads and the memory for rounds of steps on them.

    Parameters
    ----------
    runner
        The examples.
    n_weights
        The number of weights.
    n_steps
        About how many steps all ranges together take in a round: few, so that sigma can be small.
    """

    def __init__(self, runner: Runner, n_weights: int, n_steps: int) -> None:
        n = count_ranges(runner)
        self.ranges = runner.ranges if len(runner.ranges) == n else Ranges(runner.part_sizes, n)
        self.scratches = runner.scratches
        self.n_weights = n_weights
        self.budget = int(np.ceil(n_steps / n * runner.part_sizes.mean()))
        self.per_pass = int(np.ceil(runner.part_sizes.sum() / (n * self.budget)))
        self.every = -(-n_weights // self.budget)
        per_line = CACHE_LINE // runner.dtype.itemsize
        width = -(-n_weights // per_line) * per_line
        self.gains = [aligned((1,), np.float64) for _ in range(n)]
        self.meeting = Meeting(
            u=aligned((n, width), runner.dtype),
            w=aligned((n, width), runner.dtype),
            changes=aligned((2, n, width), runner.dtype),
            gains=aligned((2, n, LINE), np.float64),
            logs=self._new_logs(runner, n),
            counts=aligned((2, n, LINE), np.int64),
            pace=aligned((n, LINE), np.float64),
            words=aligned((n * LINE,), np.int64),
            way=address_to_yield(),
        )

    def _new_logs(self, runner: Runner, n: int) -> Log:
        """Room for the steps of a round, if they are to be noted."""
        sizes, is_used = runner.part_sizes, self.every > 1
        n_steps = is_used * (self.budget // max(int(sizes.min()), 1) + 1)
        return Log(
            aligned((n, 2, n_steps), np.int64),
            aligned((n, 2, n_steps), np.float64),
            aligned((n, 2, n_steps + 1), np.int64),
            aligned((n, 2, is_used * (self.budget + int(sizes.max()))), runner.dtype),
            aligned((n, LINE), np.int64),
        )

    def log_of(self, k: int) -> Log:
        """The steps of range k."""
        return Log(*(array[k] for array in self.meeting.logs))

    def __len__(self) -> int:
        return len(self.ranges)

    def draw_orders(self, rng: np.random.Generator, sampling: str, uniform_share: float) -> list[Order]:
        """The examples of a pass over each range."""
        return [draw_order(rng, sampling, uniform_share, hi - lo, hi - lo, lo) for lo, hi in self.ranges.bounds]

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
        meeting.logs.state[:] = 0
        meeting.logs.state[:, IS_NOTED] = self.every > 1
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
            log = self.log_of(k)
            seat = Seat(
                self.meeting, k, self.n_weights, self.budget, most, self.every, log, self.gains[k], regularization
            )
            return step(seat, places[k])
        except BaseException:
            words = self.meeting.words[LINE * k : LINE * (k + 1)]
            words[1:] = ABANDONED
            words[0] = ALL  # nobody is to wait
            raise
