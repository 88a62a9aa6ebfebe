"""The frame of every solver: loop, clock, limits, interruption, trace and the best weights so far."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.dispatch import supports
from maxmargin.passes import Blocks
from maxmargin.problem import ORACLES
from maxmargin.solvers.objective import Certificate, Objective
from maxmargin.trace import Status, Trace


class Result(NamedTuple):
    """What a solver returns.

    Attributes
    ----------
    w : the weights of the lowest objective found
    means : the mean parts of the last dual point: pass them as `start` to continue
    trace : one row per certificate
    status : why the solver stopped
    """

    w: np.ndarray
    means: Blocks
    trace: Trace
    status: Status


class Run:
    """The state of one run: the point it has reached, its counters and its limits."""

    SLICE = 0.1  # seconds between two looks at the clock and the interrupt flag

    def __init__(
        self,
        objective: Objective,
        start: Blocks | None,
        tol: float,
        max_passes: float,
        time_limit: float | None,
        random_state: Any,
    ) -> None:
        self.objective = objective
        self.is_warm = start is not None
        self.means = objective.gold_means() if start is None else Blocks(start.values.copy(), start.start)
        self.w = objective.weights(self.means).astype(objective.passes.dtype)
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.rng = np.random.default_rng(random_state)
        self.passes = 0.0
        self.oracle_calls = 0
        self.interrupted = False
        self._began = time.perf_counter()
        self._step_seconds = 1e-3

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
        return self.interrupted or self.timed_out or self.passes >= self.max_passes

    def slices(self, order: np.ndarray) -> Iterator[np.ndarray]:
        """Parts of `order` short enough to look at the clock in between; counts their passes and oracle calls.

        Ends early when time is up or the run was interrupted.
        """
        done = 0
        while done < len(order) and not (self.interrupted or self.timed_out):
            part = order[done : done + max(1, int(self.SLICE / self._step_seconds))]
            began = time.perf_counter()
            yield part
            self._step_seconds = max((time.perf_counter() - began) / len(part), 1e-9)
            done += len(part)
            self.oracle_calls += len(part)
            self.passes += len(part) / self.objective.n

    def rebuild(self) -> float:
        """Recompute w from the mean parts in float64, against drift, and return the dual value there."""
        exact = self.objective.weights(self.means)
        self.w[:] = exact
        return self.objective.dual(exact, self.means)

    def primal(self, w: np.ndarray, gaps: np.ndarray, outputs: Blocks) -> float:
        """F(w) by one oracle pass, which also fills the block gaps and the oracle's outputs."""
        self.oracle_calls += self.objective.n
        return self.objective.primal(w, self.objective.hinge(w, self.means, gaps, outputs))

    def status(self, is_optimal: bool) -> Status:
        """Why the run ended."""
        if is_optimal:
            return Status.OPTIMAL
        if self.interrupted:
            return Status.INTERRUPTED
        return Status.TIMEOUT if self.timed_out else Status.MAX_PASSES


class _Interruptible:
    """While active, Ctrl-C asks `run` to stop at the next safe point; a second one raises KeyboardInterrupt."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.is_main = threading.current_thread() is threading.main_thread()  # only it receives signals

    def __enter__(self) -> None:
        if self.is_main:
            self.previous = signal.signal(signal.SIGINT, self._handle)

    def _handle(self, *_: Any) -> None:
        if self.run.interrupted:
            raise KeyboardInterrupt
        self.run.interrupted = True

    def __exit__(self, *_: Any) -> None:
        if self.is_main:
            signal.signal(signal.SIGINT, self.previous or signal.SIG_DFL)


@dataclass(frozen=True)
class Solver:
    """Base of all solvers: a frozen dataclass whose fields are the options of the algorithm.

    A subclass names the oracles it needs and implements `iterate`.
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    def iterate(self, run: Run) -> Iterator[Certificate]:
        """Improve ``run.w`` and ``run.means``, yielding a certificate now and then; the frame decides when to stop."""
        raise NotImplementedError

    def solve(
        self,
        problem: Any,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        *,
        start: Blocks | None = None,
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
    ) -> Result:
        """Minimise (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), lambda = 1/(n C).

        Parameters
        ----------
        problem : the examples
        C : inverse strength of the regularization
        sample_weight : (n,) weights of the examples
        start : mean parts to start from, such as those of an earlier `Result`, by default the true outputs
        tol : stop at this relative duality gap, (primal - dual) / primal
        max_passes : stop after this many passes over the examples
        time_limit : stop after about this many seconds
        n_jobs : threads of a pass over all examples; None is 1, -1 all cores
        random_state : seed
        verbose : print the trace as it grows
        callback : called with the trace after each certificate; returning True stops the run
        """
        for name, value in (("tol", tol), ("max_passes", max_passes), ("time_limit", time_limit)):
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, not {value}.")
        self._check_oracles(problem)
        objective = Objective(problem, C, sample_weight, n_jobs)
        run = Run(objective, start, tol, max_passes, time_limit, random_state)
        with _Interruptible(run):
            return self._follow(run, verbose, callback)

    def _follow(self, run: Run, verbose: int, callback: Callable[[Trace], bool | None] | None) -> Result:
        trace = Trace()
        best, lowest = run.w, np.inf
        is_optimal = False
        if verbose:
            print(trace.header(), flush=True)
        for w, primal, dual in self.iterate(run):
            if primal < lowest:
                best, lowest = w.copy(), primal
            trace.append(
                passes=run.passes, oracle_calls=run.oracle_calls, seconds=run.seconds, primal=primal, dual=dual
            )
            if verbose:
                print(trace.line(), flush=True)
            if callback is not None and callback(trace):
                run.interrupted = True
            is_optimal = bool(trace.gap[-1] <= run.tol * abs(trace.primal[-1]))
            if is_optimal or run.must_stop:
                break
        status = run.status(is_optimal)
        if verbose:
            print(f"{status.name}: {status.value}.", flush=True)
        return Result(best, run.means, trace, status)

    def _check_oracles(self, problem: Any) -> None:
        missing = sorted(name for name in self.needs if not supports(ORACLES[name], problem))
        if missing:
            has = sorted(name for name, oracle in ORACLES.items() if supports(oracle, problem))
            raise TypeError(
                f"{type(self).__name__} needs the {' and '.join(missing)} oracle, which {type(problem).__name__} "
                f"does not have; it has: {', '.join(has) or 'none'}."
            )
