"""The state of one run of a solver, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import as_numbers
from maxmargin.execution.clock import BrokenOff, Clock
from maxmargin.persist.registry import register_state
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.objective.active_sets import Carried, DualPoint, copy_point, no_means, no_sets, sets_of
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.loss_pass import Evaluation
from maxmargin.solvers.objective.tilted_objective import TiltedObjective
from maxmargin.trace import Certificate, Status, Trace

S = TypeVar("S")

STEPS = "steps"  # the kind of work that is counted in passes


@register_state
class State(SimpleNamespace):
    """The state of a solver, see `Run.take_up`."""


class Result(NamedTuple):
    """What a solver returns; passed as `start`, a solver goes on from there.

    Attributes
    ----------
    certificate
        The weights of the lowest objective found or, with held-out data, of the highest score there, with what is
        proven of them: their objective, a lower bound of the optimum, and the gap.
    w
        These weights.
    dual
        The last dual point, its mean parts and active sets, of solvers that keep one.
    trace
        One row per certificate.
    status
        Why the solver stopped, which is true of these weights.
    """

    certificate: Certificate
    dual: Any
    trace: Trace
    status: Status

    @property
    def w(self) -> np.ndarray:
        return self.certificate.w

    def with_weights(self, w: np.ndarray) -> Result:
        """The same of the same weights as they lie elsewhere."""
        return self._replace(certificate=replace(self.certificate, w=w))


class Run:
    """The state of one run: the point it has reached, its counters and its limits."""

    COUNTED = "n_steps", "oracle_calls", "cache_hits", "cache_misses", "wrong_outputs", "n_inexact", "slack", "rounding"

    def __init__(
        self,
        objective: Objective,
        limits: Limits,
        start: object = None,
        random_state: object = None,
        held_out: HeldOut | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.objective = objective
        self.held_out = held_out
        self.notes: list[str] = []
        self.start = start
        self.w = np.zeros(objective.n_weights, objective.runner.dtype)
        self.dual: Any = None  # the dual point, in solvers that keep one
        self.limits = limits
        self.clock = objective.runner.clock = clock or Clock(limits.time_limit)
        self.seed = random_state
        try:
            self.rng = np.random.default_rng(random_state)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(f"random_state must be a seed or a generator, not {random_state!r}.") from None
        self.n_steps = 0
        self.oracle_calls = 0
        self.cache_hits, self.cache_misses = 0, 0
        self.wrong_outputs = 0
        self.rounding = 0.0  # of the objective, in the last evaluation
        self.slack, self.n_inexact = 0.0, 0  # of the objective, where it is only a bound, in the last evaluation
        self.verdict: Status | None = None  # why the solver itself ended the run
        self.is_resumed = False
        self.state: Any = None  # with what else a solver goes on from one certificate to the next
        self.is_estimated = False  # whether primal values are estimates, not bounds

    def take_up(self, begin: Callable[[], S]) -> S:
        """The state with which a solver goes on: the one it began with or, in a run that is resumed, a later one.

        All that it needs after a certificate must then be there, in `w`, in `dual` or in `rng`.
        """
        if self.state is None:
            self.state = begin()
        return self.state

    def snapshot(self) -> dict[str, object]:
        """All that a run of the same arguments needs to go on from here."""
        return {
            "counters": {name: getattr(self, name) for name in self.COUNTED},
            "notes": self.notes,
            "w": self.w,
            "free": self.objective.bounds.free,
            "dual": self.dual,
            "rng": self.rng.bit_generator.state,
            "seconds": self.seconds,
            "state": self.state,
            "tilt": self.objective.tilt,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        vars(self).update(snapshot["counters"])
        self.notes[:] = snapshot["notes"]
        self.w[:] = snapshot["w"]
        self.objective.bounds.free[:] = snapshot["free"]
        self.dual, self.state = snapshot["dual"], snapshot["state"]
        self.rng.bit_generator.state = snapshot["rng"]
        self.clock.began -= snapshot["seconds"]
        if isinstance(self.objective, TiltedObjective):
            self.objective.set_tilt(snapshot["tilt"])
        self.is_resumed = True

    def target(self, primal: float) -> float:
        """The duality gap to reach at this objective."""
        return max(self.limits.tol * abs(primal), self.limits.abs_tol)

    @property
    def passes(self) -> float:
        """Steps on single examples so far, per example."""
        return self.n_steps / self.objective.n

    @property
    def seconds(self) -> float:
        """Wall-clock time since the beginning."""
        return self.clock.seconds

    @property
    def interrupted(self) -> bool:
        """Whether someone wants the run to end."""
        return self.clock.interrupted

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        self.clock.interrupted = value

    @property
    def certificate_seconds(self) -> float:
        """About how long the passes of a certificate take: no longer than steps on all examples, until one was made."""
        seconds = self.clock.seconds_of_passes() or self.clock.seconds_of(STEPS)
        return seconds * self.objective.n / self.objective.n_threads

    @property
    def timed_out(self) -> bool:
        """Whether what is left of the time limit is for the last certificate, and to confirm it, as far as they fit."""
        once, limit = self.certificate_seconds, self.clock.limit
        room = next((room for room in ((1 + self.is_rough) * once, once) if room < limit), 0.0)
        return self.seconds + room >= limit

    @property
    def must_stop(self) -> bool:
        """Whether the run is to end at the next certificate, whatever that says."""
        return self.verdict is not None or self.interrupted or self.timed_out or self.passes >= self.limits.max_passes

    def passes_to_go(self, gap_every: int) -> int:
        """Runner until the next certificate: `gap_every` or, with held-out data, fewer at first."""
        if self.held_out is None:
            return gap_every
        return self.held_out.passes_between(self.passes, self.objective.n, gap_every)

    def slices(self, n_steps: int, kind: Hashable = STEPS) -> Iterator[tuple[int, int]]:
        """Ranges of `n_steps` steps short enough to look at the clock in between; counts their passes.

        Ends early when time is up or the run was interrupted. Other kinds of work do not count as passes.
        """
        if self.interrupted or self.timed_out:
            return
        for lo, hi in self.clock.slices(kind, 0, n_steps):
            yield lo, hi
            self.n_steps += hi - lo if kind == STEPS else 0
            if self.interrupted or self.timed_out:
                return

    def count(self, calls: int, hits: int = 0, misses: int = 0, wrong: int = 0) -> None:
        """Count oracle calls, look-ups in a cache that saved one or not, and outputs worse than known ones."""
        self.oracle_calls += int(calls)
        self.cache_hits += int(hits)
        self.cache_misses += int(misses)
        self.wrong_outputs += int(wrong)

    def start_dual(self, needs_sets: bool = False) -> bool:
        """Begin at the dual point given as start, or at the true outputs; return whether it was the start.

        With `needs_sets` it is kept as active sets, else as mean parts. A start without the active sets that the solver
        needs, or with a lower dual value, is of no use.
        """
        objective = self.objective
        if isinstance(self.start, Carried):
            self.dual = self._as_kept(self.start.dual, needs_sets)
            self.place(self.start.v)
            return True
        sets = sets_of(objective.problem.truth) if needs_sets else no_sets()
        self.dual = DualPoint(self._no_means() if needs_sets else objective.true_means(), sets)
        v, value = objective.at(self.dual)
        is_usable = False
        given = self.start.dual if isinstance(self.start, Result) else self.start
        if isinstance(given, DualPoint):
            self.check_sizes(given)
            is_usable = bool(given.sets.sizes.size) or not needs_sets
            if is_usable:
                point = copy_point(self._as_kept(given, needs_sets), objective.runner.dtype)
                start, reached = objective.at(point)
                is_usable = reached >= value
        if is_usable:
            self.dual, v = point, start
        elif self.start is not None:
            self.notes.append("Started afresh: the start holds no dual point that helps this solver.")
        self.place(v)
        return is_usable

    def _no_means(self) -> Blocks:
        return no_means(self.objective.runner.part_sizes, self.objective.runner.dtype)

    def _as_kept(self, point: DualPoint, as_sets: bool) -> DualPoint:
        """A dual point as active sets, or as mean parts."""
        if as_sets:
            return point._replace(means=self._no_means())
        means = point.means if point.means.values.size else self.objective.means_of(point)
        return DualPoint(means, no_sets(), point.gaps)

    def check_sizes(self, point: DualPoint) -> None:
        """Raise unless a dual point has the sizes of this problem."""
        sizes, runner = point.sets.sizes, self.objective.runner
        has_same_outputs = not sizes.size or np.array_equal(sizes, runner.output_sizes)
        if not (has_same_outputs and np.array_equal(np.diff(point.means.starts), runner.part_sizes)):
            raise ValueError("start must be a dual point of this problem, but its examples have other sizes.")

    def or_start(self, certificate: Certificate) -> Certificate:
        """A certificate of the weights of the `Result` given as start, if there is one and they are better."""
        if not isinstance(self.start, Result):
            return certificate
        w, slack = self.start_weights().astype(self.w.dtype), self.slack
        primal = self.evaluate(w, with_gradient=False).value
        if primal < certificate.primal:
            return replace(certificate, w=w, primal=primal)
        self.slack = slack
        return certificate

    def rebuild(self) -> float:
        """Recompute w from the mean parts in float64, against drift, and return the dual value there."""
        v, value = self.objective.at(self.dual)
        self.place(v)
        return value

    def place(self, v: np.ndarray) -> None:
        """Go on from the weights of v, which they are before their projection to the bounds."""
        bounds = self.objective.bounds
        self.w[:] = self.objective.in_dtype(self.objective.weights_of(v))
        bounds.free[:] = v[bounds.which]

    def evaluate(self, w: np.ndarray, objective: Objective | None = None, **asked: Any) -> Evaluation:
        """`Objective.evaluate`, counting the oracle's calls."""
        objective = objective or self.objective
        evaluation = objective.evaluate(w, **asked)
        self.count(calls=(2 - objective.is_convex) * objective.n, wrong=evaluation.n_wrong)
        self.rounding = evaluation.rounding
        return self.take_note(evaluation) if objective is self.objective else evaluation

    def take_note(self, evaluation: Evaluation) -> Evaluation:
        """What an evaluation of the objective of the run says of its precision."""
        self.rounding = evaluation.rounding
        self.slack, self.n_inexact = evaluation.slack, evaluation.n_inexact
        return evaluation

    def confirm(self, w: np.ndarray, primal: float) -> float:
        """The objective of the weights to return: by a pass with sums in float64, where `primal` may have others."""
        if self.is_rough and np.isfinite(primal):
            with suppress(BrokenOff):
                return self.objective.evaluate(w).value
        return primal

    @property
    def is_rough(self) -> bool:
        """Whether objectives may have other sums than those in float64."""
        objective = self.objective
        is_known = self.is_estimated or not objective.loss.oracle or not objective.is_convex
        return objective.runner.dtype == np.float32 and not is_known

    def is_rounding(self, certificate: Certificate) -> bool:
        """Whether only rounding, of the objective and of both terms of its bound, keeps the gap above the target."""
        return self._falls_to_target(certificate, 3 * self.rounding)

    def is_slack(self, certificate: Certificate) -> bool:
        """Whether the gap is above the target only as far as the oracle leaves it open."""
        return self.slack > 0 and self._falls_to_target(certificate, self.slack + 3 * self.rounding)

    def _falls_to_target(self, certificate: Certificate, by: float) -> bool:
        return certificate.primal - certificate.dual - by <= self.target(certificate.primal)

    def start_weights(self) -> np.ndarray:
        """The weights to start from, in float64: those given as start, inside the bounds, or zero."""
        start = self.start.w if isinstance(self.start, Result) else self.start
        if start is None:
            start = np.zeros(self.w.size)
        elif isinstance(start, DualPoint):
            self.check_sizes(start)
            if self.objective.regularization == 0:
                raise ValueError("start must be weights, not a dual point, which has none without L2 regularization.")
            start, _ = self.objective.at(start)
        start = as_numbers("start", start)
        if start.shape != self.w.shape or not np.isfinite(start).all():
            raise ValueError(f"start must hold {self.w.size} finite weights, or be a dual point of this problem.")
        start = project(start, self.objective.bounds)
        self.objective.layout.complete(start)  # of a model of other features, the scores would be false
        return start

    def status(self, is_optimal: bool) -> Status:
        """Why the run ended."""
        if is_optimal and self.wrong_outputs:
            return Status.INEXACT
        if is_optimal and self.objective.is_convex:
            return Status.ESTIMATED if self.is_estimated else Status.OPTIMAL
        if is_optimal:
            return Status.STATIONARY
        if self.verdict:
            return self.verdict
        if self.interrupted:
            return Status.INTERRUPTED
        return Status.TIMEOUT if self.timed_out else Status.MAX_PASSES
