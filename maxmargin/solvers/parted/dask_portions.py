"""Portions of examples on the workers of a Dask cluster.

A call is a task of (the portion, what is kept of it, the arguments), so that it does not matter who computes it, nor
how often. Arguments, such as weights, go to one worker, and from there to the others; of vectors that come back, only
the coordinates that the portion has. What is kept is the result of a task that begins with what was kept before: the
cluster could go back to the beginning, but every so often it is sent here, so that it need not.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from distributed import Future

from maxmargin.execution.clock import Clock
from maxmargin.execution.dask_tasks import TaskClock, Tasks, hold
from maxmargin.losses import BaseLoss
from maxmargin.problem import AnyProblem
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.parted.portions import (
    Kept,
    LocalPortions,
    Portion,
    Portions,
    T,
    Terms,
    Thin,
    hand_out,
    in_tuples,
    own,
)

CHANGES = 50  # of what is kept, until it is sent here
TRIALS = 2  # of a pass and of a round trip: code may be compiled in the first one
LARGE = 1000  # numbers: vectors of more are sent by their coordinates where these take less room
SPARSE = 0.5  # of the coordinates: a number and its place take as much as 1.5 numbers


class DaskPortions(Portions):
    """Portions that workers have.

    Parameters
    ----------
    tasks
        What calls them.
    portions
        Futures of `Portion`.
    sizes, like
        As of `Portions`.
    """

    def __init__(self, tasks: Tasks, portions: list[Future], sizes: np.ndarray, like: AnyProblem) -> None:
        self.tasks, self.portions, self.sizes, self.like = tasks, portions, sizes, like

    def each(
        self,
        function: Callable[..., T],
        terms: Terms,
        *args: object,
        fills: Sequence[Kept] = (),
        clock: Clock | None = None,
    ) -> list[T]:
        called = self._call(function, terms, args, fills)
        replies = called
        if fills:
            replies = [self.tasks.submit(nth, future, 0) for future in called]
            for i, kept in enumerate(fills, start=1):
                kept.values, kept.fetch = [self.tasks.submit(nth, future, i) for future in called], self.tasks.results
        found = self._results(function, replies, clock)
        for kept in fills:
            self._settle(kept)
        return [in_tuples(fill_in, value) for value in found]

    def keep(self, function: Callable[..., object], terms: Terms, *args: object, clock: Clock | None = None) -> Kept:
        kept = Kept(self._call(function, terms, args, None))
        kept.fetch = self.tasks.results
        self._results(function, [self.tasks.submit(is_there, future) for future in kept.values], clock)
        before: list[Kept] = []
        hand_out(args, before.append)
        kept.age = max((value.age for value in before), default=0)
        self._settle(kept)
        return kept

    def identity(self) -> object:
        return self.tasks.results([self.tasks.submit(identity_of, portion) for portion in self.portions])

    def brought_near(self, loss: BaseLoss, n_jobs: int | None) -> Portions:
        """The same, here if one process makes a pass in less time than a round trip takes without work."""
        terms = Terms(loss, 1.0, int(self.sizes.sum()), n_jobs)
        work = min(sum(self.each(seconds_of_pass, terms)) for _ in range(TRIALS))
        trip = min(seconds_of(lambda: self.each(do_nothing, terms)) for _ in range(TRIALS))
        return LocalPortions(self.tasks.results(self.portions)) if work < trip else self

    def n_threads(self, n_jobs: int | None) -> int:
        return 1  # passes are timed as they are seen from here

    def _call(
        self, function: Callable[..., object], terms: Terms, args: tuple[object, ...], fills: Sequence[Kept] | None
    ) -> list[Future]:
        """Tasks that call the function of every portion; None for `fills` where what it returns is kept."""
        found: list[Kept] = []

        def place(kept: Kept) -> Slot:
            found.append(kept)
            return Slot(len(found) - 1)

        shared = self.tasks.submit(hold, (function, terms, hand_out(args, place)))
        filled = None if fills is None else [found.index(kept) for kept in fills]
        return [
            self.tasks.submit(call, portion, shared, filled, *(kept.values[k] for kept in found))
            for k, portion in enumerate(self.portions)
        ]

    def _results(self, function: Callable[..., object], futures: list[Future], clock: Clock | None) -> list[Any]:
        if clock is None:
            return self.tasks.results(futures)
        with clock.timing(function, int(self.sizes.sum())):
            return self.tasks.results(futures, clock)

    def _settle(self, kept: Kept) -> None:
        """Let a new line of tasks begin with what is kept, where the old one is long."""
        kept.age += 1
        if kept.age >= CHANGES:
            kept.values = [self.tasks.submit(hold, value) for value in self.tasks.results(kept.values)]
            kept.age = 0


class Slot(Kept):
    """The place of something that is kept, in arguments that are sent to all workers."""

    def __init__(self, number: int) -> None:
        super().__init__([number])


def call(portion: Portion, shared: tuple[object, ...], filled: list[int] | None, *kept: object) -> object:
    """On a worker: call a function of the objective of a portion, with copies of what is kept, which it may change."""
    function, terms, args = in_tuples(own, shared)
    values = [copy.deepcopy(value) for value in kept]
    with portion.lock:  # a pass that is broken off may not have ended yet
        objective = portion.objective(terms)
        objective.runner.clock = TaskClock()
        found = function(objective, *hand_out(args, lambda slot: values[slot.values[0]]))
    if filled is None:
        return found
    reply = in_tuples(thin_out, found)
    return (reply, *(values[i] for i in filled)) if filled else reply


def seconds_of(function: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def seconds_of_pass(objective: Objective) -> float:
    """How long a pass over a portion takes."""
    return seconds_of(lambda: objective.sum_losses(np.zeros(objective.n_weights, objective.runner.dtype)))


def do_nothing(objective: Objective) -> None:
    """What a round trip takes without work."""


def nth(values: Sequence[T], i: int) -> T:
    """One of several."""
    return values[i]


def is_there(value: object) -> bool:
    """What is told of a result that stays where it is."""
    return True


def identity_of(portion: Portion) -> str:
    """What tells a portion from others."""
    from maxmargin.solvers.frame.checkpoint import digest  # which imports solvers

    return digest((portion.problem, portion.sample_weight))


def thin_out(value: object) -> object:
    """A long vector by its coordinates, if these are few."""
    if isinstance(value, Thin):
        few = value.places.size < SPARSE * value.size
        return replace(value, places=value.places.astype(np.int32)) if few else fill_in(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.size > LARGE and value.dtype == np.float64:
        places = np.flatnonzero(value)
        if places.size < SPARSE * value.size:
            return Thin(value.size, places.astype(np.int32), value[places])
    return value


def fill_in(value: object) -> object:
    """What `thin_out` has made less, as it was."""
    if isinstance(value, Thin):
        vector = np.zeros(value.size)
        vector[value.places] = value.values
        return vector
    return own(value)
