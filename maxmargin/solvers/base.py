"""The frame of every solver: loop, clock, limits, interruption, trace and the best weights so far."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.checks import check_positive
from maxmargin.dispatch import supports
from maxmargin.losses import Loss, find_loss
from maxmargin.passes import Blocks
from maxmargin.problem import ORACLES
from maxmargin.solvers.active_sets import DualPoint, copied, no_sets
from maxmargin.solvers.box import project
from maxmargin.solvers.held_out import HeldOut
from maxmargin.solvers.objective import Certificate, Evaluation, Objective
from maxmargin.trace import Status, Trace


class Result(NamedTuple):
    """What a solver returns.

    Attributes
    ----------
    w : the weights of the lowest objective found or, with held-out data, of the highest score there
    dual : the last dual point, its mean parts and active sets, of solvers that keep one: pass it as `start` to continue
    trace : one row per certificate
    status : why the solver stopped
    """

    w: np.ndarray
    dual: Any
    trace: Trace
    status: Status


class Run:
    """The state of one run: the point it has reached, its counters and its limits."""

    SLICE = 0.1  # seconds between two looks at the clock and the interrupt flag

    def __init__(
        self,
        objective: Objective,
        start: Any,
        tol: float,
        abs_tol: float,
        max_passes: float,
        time_limit: float | None,
        random_state: Any,
    ) -> None:
        self.objective = objective
        self.notes: list[str] = []
        self.start = start
        self.w = np.zeros(objective.n_weights, objective.passes.dtype)
        self.dual: Any = None  # the dual point, in solvers that keep one
        self.tol = tol
        self.abs_tol = abs_tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.rng = np.random.default_rng(random_state)
        self.n_steps = 0
        self.oracle_calls = 0
        self.cache_hits = 0
        self.cache_misses = 0
        self.wrong_outputs = 0
        self.n_inexact = 0  # examples whose smoothed maximum was only a bound, in the last evaluation
        self.interrupted = False
        self.verdict: Status | None = None  # why the solver itself ended the run
        self.is_estimated = False  # whether primal values are estimates, not bounds
        self._began = time.perf_counter()
        self._step_seconds = self.SLICE

    def target(self, primal: float) -> float:
        """The duality gap to reach at this objective."""
        return max(self.tol * abs(primal), self.abs_tol)

    @property
    def passes(self) -> float:
        """Steps on single examples so far, per example."""
        return self.n_steps / self.objective.n

    @property
    def seconds(self) -> float:
        """Wall-clock time since the beginning."""
        return time.perf_counter() - self._began

    @property
    def timed_out(self) -> bool:
        """Whether the time limit has passed."""
        return self.time_limit is not None and self.seconds >= self.time_limit

    @property
    def must_stop(self) -> bool:
        """Whether the run is to end at the next certificate, whatever that says."""
        return self.verdict is not None or self.interrupted or self.timed_out or self.passes >= self.max_passes

    @property
    def is_pass_too_long(self) -> bool:
        """Whether the run is to end at once, and a pass of the oracle would take more than a second."""
        return (self.interrupted or self.timed_out) and self.objective.n * self._step_seconds > 1

    def slices(self, n_steps: int) -> Iterator[tuple[int, int]]:
        """Ranges of `n_steps` steps short enough to look at the clock in between; counts their passes.

        Ends early when time is up or the run was interrupted.
        """
        lo, size = 0, 1
        while lo < n_steps and not (self.interrupted or self.timed_out):
            size = min(4 * size, max(1, int(self.SLICE / self._step_seconds)))  # the first steps may be slow
            hi = min(n_steps, lo + size)
            began = time.perf_counter()
            yield lo, hi
            self._step_seconds = max((time.perf_counter() - began) / (hi - lo), 1e-9)
            self.n_steps += hi - lo
            lo = hi

    def count(self, calls: int, hits: int = 0, misses: int = 0, wrong: int = 0) -> None:
        """Count oracle calls, look-ups in a cache that saved one or not, and outputs worse than the true one."""
        self.oracle_calls += int(calls)
        self.cache_hits += int(hits)
        self.cache_misses += int(misses)
        self.wrong_outputs += int(wrong)

    def start_dual(self, needs_sets: bool = False) -> bool:
        """Begin at the dual point given as start, or at the true outputs; return whether it was the start.

        A start without the active sets that the solver needs, or with a lower dual value, is of no use.
        """
        objective = self.objective
        self.dual = DualPoint(objective.gold_means(), no_sets())
        fresh = objective.weights(self.dual.means)
        is_usable = False
        if isinstance(self.start, DualPoint):
            self._check_start()
            point = copied(self.start, objective.passes.dtype)
            v = objective.weights(point.means)
            is_better = objective.dual(v, point.means) >= objective.dual(fresh, self.dual.means)
            is_usable = is_better and (bool(point.sets.sizes.size) or not needs_sets)
        if is_usable:
            self.dual, fresh = point, v
        elif self.start is not None:
            self.notes.append("Started afresh: the start holds no dual point that helps this solver.")
        self._place(fresh)
        return is_usable

    def _check_start(self) -> None:
        sizes, passes = self.start.sets.sizes, self.objective.passes
        has_same_outputs = not sizes.size or np.array_equal(sizes, passes.output_sizes)
        if not (has_same_outputs and np.array_equal(np.diff(self.start.means.start), passes.part_sizes)):
            raise ValueError("start must be a dual point of this problem, but its examples have other sizes.")

    def rebuild(self) -> float:
        """Recompute w from the mean parts in float64, against drift, and return the dual value there."""
        exact = self.objective.weights(self.dual.means)
        self._place(exact)
        return self.objective.dual(exact, self.dual.means)

    def _place(self, v: np.ndarray) -> None:
        box = self.objective.box
        self.w[:] = project(v, box)
        box.free[:] = v[box.which]

    def primal(self, w: np.ndarray, gaps: np.ndarray, outputs: Blocks) -> float:
        """F(w) by one oracle pass, which also fills the block gaps and the oracle's outputs."""
        hinge, wrong = self.objective.hinge(w, self.dual.means, gaps, outputs)
        self.count(calls=self.objective.n, wrong=wrong)
        return self.objective.primal(w, hinge)

    def evaluate(self, w: np.ndarray, objective: Objective | None = None, **kept: Blocks | None) -> Evaluation:
        """`Objective.evaluate`, counting the oracle's calls."""
        objective = objective or self.objective
        evaluation = objective.evaluate(w, **kept)
        self.count(calls=objective.n, wrong=evaluation.n_wrong)
        if objective is self.objective:
            self.n_inexact = evaluation.n_inexact
        return evaluation

    def start_weights(self) -> np.ndarray:
        """The weights to start from, in float64: those given as start, inside the box, or zero."""
        start = self.start.w if isinstance(self.start, Result) else self.start
        if start is None:
            start = np.zeros(self.w.size)
        elif isinstance(start, DualPoint):
            self._check_start()
            if self.objective.regularization == 0:
                raise ValueError("start must be weights, not a dual point, which has none without L2 regularization.")
            start = self.objective.weights(start.means)
        start = np.array(start, np.float64)
        if start.shape != self.w.shape or not np.isfinite(start).all():
            raise ValueError(f"start must hold {self.w.size} finite weights, or be a dual point of this problem.")
        return project(start, self.objective.box)

    def status(self, is_optimal: bool) -> Status:
        """Why the run ended."""
        if is_optimal and (self.wrong_outputs or self.n_inexact):
            return Status.INEXACT
        if is_optimal:
            return Status.ESTIMATED if self.is_estimated else Status.OPTIMAL
        if self.verdict:
            return self.verdict
        if self.interrupted:
            return Status.INTERRUPTED
        return Status.TIMEOUT if self.timed_out else Status.MAX_PASSES


class Interruptible:
    """While active, Ctrl-C sets ``run.interrupted``, to stop at the next safe point; a second one raises.

    A run that is part of another one passes it on.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.was_pressed = False
        self.is_main = threading.current_thread() is threading.main_thread()  # only it receives signals

    def __enter__(self) -> None:
        if self.is_main:
            self.previous = signal.signal(signal.SIGINT, self._handle)

    def _handle(self, *_: Any) -> None:
        if self.run.interrupted:
            raise KeyboardInterrupt
        self.was_pressed = self.run.interrupted = True

    def __exit__(self, *_: Any) -> None:
        if self.is_main:
            signal.signal(signal.SIGINT, self.previous or signal.SIG_DFL)
            whole = getattr(self.previous, "__self__", None)
            if self.was_pressed and isinstance(whole, Interruptible):
                whole.was_pressed = whole.run.interrupted = True


class _Observer:
    """Sees every certificate of a run: keeps the trace and the best weights, reports, and decides when to stop."""

    def __init__(
        self,
        run: Run,
        keeps_last: bool,
        verbose: int,
        callback: Callable[[Trace], bool | None] | None,
        held_out: HeldOut | None,
    ) -> None:
        self.run = run
        self.keeps_last = keeps_last
        self.held_out = held_out
        self.verbose = verbose
        self.callback = callback
        self.trace = Trace(notes=run.notes)
        self.best, self.lowest = run.w, np.inf
        self.is_optimal = False

    def __call__(self, certificate: Certificate) -> bool:
        """Take note of a certificate; return whether to stop."""
        run, trace = self.run, self.trace
        if not np.isfinite(certificate.primal) and len(trace):
            run.verdict = Status.DIVERGED
            return True
        if certificate.primal < self.lowest or self.keeps_last:
            self.best, self.lowest = certificate.w.copy(), certificate.primal
        trace.append(
            passes=run.passes,
            oracle_calls=run.oracle_calls,
            seconds=run.seconds,
            primal=certificate.primal,
            dual=certificate.dual,
            cache_hits=run.cache_hits,
            cache_misses=run.cache_misses,
            dev_score=np.nan if self.held_out is None else self.held_out.judge(certificate.w),
        )
        if self.verbose:
            first = [*run.notes, trace.header()] if len(trace) == 1 else []
            print(*first, trace.line(), sep="\n", flush=True)
        if self.callback is not None and self.callback(trace):
            run.interrupted = True
        if self.held_out is not None and self.held_out.is_exhausted:
            run.verdict = Status.EARLY_STOPPED
        primal, gap = trace.last("primal"), trace.last("gap")
        self.is_optimal = bool(np.isfinite(gap) and gap <= run.target(primal))
        return self.is_optimal or run.must_stop

    def result(self) -> Result:
        """What the run has led to."""
        run, status = self.run, self.run.status(self.is_optimal)
        if run.wrong_outputs:
            run.notes.append(f"The oracle returned an output worse than the true one {run.wrong_outputs} times.")
        if run.n_inexact:
            run.notes.append(
                f"The smoothed maximum of {run.n_inexact} examples took max_k outputs and is only a bound: raise max_k "
                "or lower mu."
            )
        if self.held_out is not None:
            self.best = self.held_out.best
            run.notes.append(self.held_out.summary)
        if self.verbose:
            ending = [] if self.held_out is None else [self.held_out.summary]
            print(*ending, f"{status.name}: {status.value}.", sep="\n", flush=True)
        return Result(self.best, run.dual, self.trace, status)


@dataclass(frozen=True)
class Solver:
    """Base of all solvers: a frozen dataclass whose fields are the options of the algorithm.

    A subclass names the losses it can minimise, the first one by default, and implements `iterate`.
    """

    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    needs_regularization: ClassVar[bool] = True
    takes_bounds: ClassVar[bool] = True
    returns_last: ClassVar[bool] = False  # in place of the weights of the lowest objective
    takes_l1: ClassVar[bool] = False

    def oracles(self, loss: Loss) -> set[str]:
        """The names of the oracles that it needs to minimise a loss."""
        return {loss.oracle}

    def iterate(self, run: Run) -> Iterator[Certificate]:
        """Improve ``run.w`` and ``run.dual``, yielding a certificate now and then; the frame decides when to stop."""
        raise NotImplementedError

    def solve(
        self,
        problem: Any,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        *,
        loss: Any = None,
        l1_ratio: float = 0.0,
        start: Any = None,
        lower: Any = None,
        upper: Any = None,
        tol: float = 1e-3,
        abs_tol: float = 0.0,
        max_passes: float = 1000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
        held_out: HeldOut | None = None,
    ) -> Result:
        """Minimise (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), lambda = 1/(n C).

        With an L1 term, for solvers that take one, (1/2) ||w||^2 becomes l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2.

        Parameters
        ----------
        problem : the examples
        C : inverse strength of the regularization; infinite for none, where the solver can do without
        sample_weight : (n,) weights of the examples
        loss : "hinge", "smooth_hinge", "log" or a `Loss`; by default the first that the solver is made for
        l1_ratio : the share of the L1 norm in the regularization, from 0 to 1
        start : where to start from: the `dual` of an earlier `Result` or, for primal solvers, weights
        lower, upper : bounds of the weights, numbers or arrays with one entry per weight
        tol : stop at this relative duality gap, (primal - dual) / primal
        abs_tol : stop at this absolute duality gap, too
        max_passes : stop after this many passes over the examples
        time_limit : stop after about this many seconds
        n_jobs : threads of a pass over all examples; None is 1, -1 all cores
        random_state : seed
        verbose : print the trace as it grows
        callback : called with the trace after each certificate; returning True stops the run
        held_out : scores the weights of each certificate: the best are returned, and the run stops when patience ends
        """
        for name, value in (("tol", tol), ("max_passes", max_passes), ("time_limit", time_limit)):
            if value is not None:
                check_positive(name, value, allow_infinite=name != "tol")
        chosen = find_loss(loss or self.losses[0])
        self._check_loss(chosen)
        self._check_oracles(problem, chosen)
        objective = Objective(problem, C, sample_weight, n_jobs, lower, upper, chosen, l1_ratio)
        self._check_objective(objective)
        run = Run(objective, start, tol, abs_tol, max_passes, time_limit, random_state)
        observer = _Observer(run, self.returns_last, verbose, callback, held_out)
        with Interruptible(run):
            self.follow(run, observer)
        return observer.result()

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        """Run until `observe`, which is shown every certificate, says to stop."""
        for certificate in self.iterate(run):
            if observe(certificate):
                return

    def _check_loss(self, loss: Loss) -> None:
        if loss.name not in self.losses:
            raise ValueError(
                f"{type(self).__name__} minimises the {' or '.join(self.losses)} loss, not the {loss.name} loss."
            )

    def _check_oracles(self, problem: Any, loss: Loss) -> None:
        missing = sorted(name for name in self.oracles(loss) if not supports(ORACLES[name], problem))
        if missing:
            has = sorted(name for name, oracle in ORACLES.items() if supports(oracle, problem))
            raise TypeError(
                f"{type(self).__name__} needs the {' and '.join(missing)} oracle for the {loss.name} loss, which "
                f"{type(problem).__name__} does not have; it has: {', '.join(has) or 'none'}."
            )

    def _check_objective(self, objective: Objective) -> None:
        name = type(self).__name__
        if objective.l1 and not self.takes_l1:
            raise ValueError(f"{name} knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS.")
        if self.needs_regularization and objective.regularization == 0:
            raise ValueError(f"{name} needs regularization: C must be finite.")
        if not self.takes_bounds and objective.box.which.size:
            raise ValueError(f"{name} takes no bounds of the weights.")
