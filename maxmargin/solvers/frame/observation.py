"""What watches over a run: the trace, the best weights so far, reports, and the decision to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.solvers.frame.run import Result, Run
from maxmargin.trace import Certificate, Status, Trace

SEEN = "best", "lowest", "attained", "primals"


class Observer:
    """Sees every certificate of a run: keeps the trace and the best weights, reports, and decides when to stop."""

    def __init__(
        self, run: Run, keeps_last: bool, verbose: int, callback: Callable[[Trace], bool | None] | None
    ) -> None:
        self.run = run
        self.is_local = not run.objective.is_convex  # whether bounds are those of single weights
        self.keeps_last = keeps_last or self.is_local
        self.held_out = run.held_out
        self.verbose = verbose
        self.callback = callback
        self.trace = Trace(notes=run.notes)
        self.best, self.lowest, self.attained = run.w, np.inf, np.inf
        self.primals: list[float] = []  # of all certificates

    def __call__(self, certificate: Certificate) -> bool:
        """Take note of a certificate; return whether to stop."""
        run, trace = self.run, self.trace
        # Bounds of an inexact oracle are the looser the larger the weights: what its outputs attain tells more.
        attained = certificate.primal - (run.slack if run.objective.is_bounded else 0.0)
        if attained < self.attained or self.keeps_last or not self.primals:
            self.best, self.lowest, self.attained = certificate.w.copy(), certificate.primal, attained
        self.primals.append(certificate.primal)
        trace.append(
            passes=run.passes,
            oracle_calls=run.oracle_calls,
            seconds=run.seconds,
            primal=certificate.primal,
            dual=certificate.dual,
            cache_hits=run.cache_hits,
            cache_misses=run.cache_misses,
            dev_score=np.nan if self.held_out is None else self.held_out.judge(certificate.w, run.objective.layout),
            extras=certificate.extras,
            is_local=self.is_local,
        )
        if self.verbose:
            first = [*run.notes, trace.header()] if len(trace) == 1 else []
            print(*first, trace.line(), sep="\n", flush=True)
        if self.callback is not None and self.callback(trace):
            run.interrupted = True
        if self.held_out is not None and self.held_out.is_exhausted:
            run.verdict = Status.EARLY_STOPPED
        return self._is_enough(Certificate(self.best, self.lowest, trace.last("dual"))) or run.must_stop

    def snapshot(self) -> dict[str, object]:
        """What it has seen so far."""
        held_out = None if self.held_out is None else self.held_out.snapshot()
        seen = {name: getattr(self, name) for name in SEEN}
        return {**seen, "rows": self.trace.rows, "extras": self.trace.extras, "held_out": held_out}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        for name in SEEN:
            setattr(self, name, snapshot[name])
        self.trace.rows, self.trace.extras = snapshot["rows"], snapshot["extras"]
        if self.held_out is not None:
            self.held_out.restore(snapshot["held_out"])

    def _is_enough(self, certificate: Certificate) -> bool:
        return bool(np.isfinite(certificate.gap) and certificate.gap <= self.run.target(certificate.primal))

    def _is_settled(self, certificate: Certificate) -> bool:
        """Whether a gap is within tol of what the objective would be without its prior, beside which it may be zero."""
        objective, primal = self.run.objective, certificate.primal
        if objective.prior is not None:
            primal += objective.regularization * objective.layout.inner(objective.prior, certificate.w)
            primal -= objective.constant
        return bool(certificate.gap <= self.run.target(primal))

    def result(self) -> Result:
        """What the run has led to."""
        run, dual = self.run, self.trace.last("dual")
        was_solved = self._is_enough(Certificate(self.best, self.lowest, dual))
        if self.held_out is not None:
            if self.is_local and not np.array_equal(self.best, self.held_out.best):
                dual = self.trace.dual[self.held_out.at]
            self.best, self.lowest = self.held_out.best, self.primals[self.held_out.at]
            run.notes.append(self.held_out.summary)
        primal = float(run.confirm(self.best, float(self.lowest)))
        certificate = Certificate(self.best, primal, float(dual), is_local=self.is_local)
        is_solved = self._is_enough(certificate)
        if was_solved and not is_solved:
            run.verdict = Status.STALLED if self.held_out is None else Status.HELD_OUT
        if run.verdict is Status.STALLED and not is_solved and self._is_settled(certificate):
            is_solved = True
            run.notes.append(
                f"A gap of {certificate.gap:.2g} is left, which {np.dtype(run.w.dtype).name} cannot close: within tol "
                "of what the objective would be without its prior."
            )
        status = run.status(is_solved)
        if run.wrong_outputs:
            run.notes.append(f"The oracle returned an output worse than a known one {run.wrong_outputs} times.")
        if run.is_estimated:
            run.notes.append("Objectives are estimates, by the last known block gaps: exact_gaps=True certifies them.")
        if run.n_inexact and run.objective.is_bounded:
            if not is_solved:
                run.notes.append(
                    f"The best outputs of {run.n_inexact} examples are not known, only bounds of their scores: they "
                    f"leave {run.slack:.3g} of the gap open. Weights are judged by what known outputs attain."
                )
        elif run.n_inexact:
            run.notes.append(
                f"The smoothed maximum of {run.n_inexact} examples took max_k outputs and is only bounded: raise max_k "
                "or lower the level."
            )
        if self.verbose:
            ending = [] if self.held_out is None else [self.held_out.summary]
            print(*ending, f"{status.name}: {status.value}.", sep="\n", flush=True)
        return Result(certificate, run.dual, self.trace, status)
