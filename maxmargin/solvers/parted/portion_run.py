"""Steps on one portion of the examples after the other: each is opened, worked on in a run of its own, and closed.

What steps keep of a portion, such as its dual point, is out of memory between two visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from maxmargin.persist.spilled import Spilled, SpillFile
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.bounds import make_bounds
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.parted.portions import LocalPortions

S = TypeVar("S")  # the steps on a portion


class PortionRun(Run):
    """A run on a portion of the examples of another one, whose weights, clock and random generator it shares.

    Parameters
    ----------
    whole
        The other run.
    k
        Which portion.
    """

    def __init__(self, whole: Run, k: int) -> None:
        objective: Any = whole.objective
        portion = objective.open(k)
        if objective.bounds.which.size:
            confine_portion(portion, *objective.bounds.dense(objective.n_weights))
        super().__init__(portion, whole.limits, None, whole.rng)
        self.whole = whole
        self.clock = portion.runner.clock = whole.clock
        self.take_over()

    @property
    def timed_out(self) -> bool:
        return self.whole.timed_out

    def take_over(self) -> None:
        """Take the weights of the whole."""
        self.place(self.objective.layout.to_solver(free_weights(self.whole)))

    def hand_over(self) -> None:
        """Give the whole the weights, and what was counted."""
        v = free_weights(self.whole)
        self.objective.layout.put(free_weights(self), v)
        self.whole.place(v)
        self.whole.n_steps += self.n_steps
        self.whole.count(self.oracle_calls, self.cache_hits, self.cache_misses, self.wrong_outputs)


def confine_portion(portion: Objective, lower: np.ndarray, upper: np.ndarray) -> None:
    """Give the objective of a portion the bounds of all weights, in the order of the model."""
    lower, upper = portion.layout.to_solver(lower, -np.inf), portion.layout.to_solver(upper, np.inf)
    portion.bounds = make_bounds(lower, upper, np.zeros(portion.n_weights, portion.runner.dtype))


def free_weights(run: Run) -> np.ndarray:
    """The weights of a run before they are projected to its bounds."""
    bounds, v = run.objective.bounds, run.w.copy()
    v[bounds.which] = bounds.free
    return v


class PortionVisits(Generic[S]):
    """Visits of portions, by steps that each have a state there.

    Parameters
    ----------
    run
        On all portions.
    make
        The steps on a portion, given its run, at the first visit.
    resume
        The same at a later one, given its run and their state.
    save
        The state of steps: what of it is large is out of memory until the next visit.
    """

    def __init__(
        self,
        run: Run,
        make: Callable[[PortionRun], S],
        resume: Callable[[PortionRun, dict[str, object]], S],
        save: Callable[[S], dict[str, object]],
    ) -> None:
        self.run, self.make, self.resume, self.save = run, make, resume, save
        portions: LocalPortions = run.objective.portions  # type: ignore[attr-defined]
        self.shares: np.ndarray = portions.sizes / run.objective.n
        self.home = SpillFile(portions.folder)
        self.states: list[Spilled | None] = [None] * len(self.shares)

    @contextmanager
    def visit(self, k: int) -> Iterator[S]:
        """The steps on portion k, at the weights of the run, which takes over what they come to."""
        kept, inner = self.states[k], PortionRun(self.run, k)
        steps = self.make(inner) if kept is None else self.resume(inner, kept.load())
        yield steps
        inner.hand_over()
        if kept is None:
            self.states[k] = self.home.put(self.save(steps))
        else:
            kept.store(self.save(steps))

    def in_turn(self) -> Iterator[tuple[float, S]]:
        """The share and the steps of every portion, in their order."""
        for k, share in enumerate(self.shares.tolist()):
            with self.visit(k) as steps:
                yield share, steps
            del steps

    def in_random_order(self) -> Iterator[S]:
        """The steps of every portion, in an order drawn by the run, until it is to end."""
        for k in self.run.rng.permutation(len(self.shares)).tolist():
            with self.visit(k) as steps:
                yield steps
            del steps
            if self.run.interrupted or self.run.timed_out:
                return
