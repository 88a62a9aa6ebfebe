"""The 1-slack cutting-plane method (Joachims, Finley, Yu 2009; *Local*, section 4).

A pass of the oracle at w gives one cut, a linear function below the loss term: its gain, the mean cost of the outputs,
and its weights v = w(mu). The restricted problem, to minimise the regularized maximum of the cuts, is in its dual a
small quadratic program on the simplex, max over alpha of gain'alpha - (lambda/2) ||V alpha||^2, whose value is a lower
bound and whose solution gives the next w = V alpha. Cuts put together from cached outputs save passes of the oracle
where they are violated enough; a run ends only on a pass of the oracle itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin.checks import check_count
from maxmargin.solvers.active_sets import StoredLoss, enlarged, sets_of, store_outputs
from maxmargin.solvers.objective import Certificate, Evaluation, Objective
from maxmargin.solvers.run import Run
from maxmargin.solvers.simplex_qp import maximise_on_simplex
from maxmargin.solvers.solver import Solver

IDLE = 30  # restricted problems that a cut may sit out before it is dropped
CACHE_FRACTION = 0.5  # of the gap, that a cut from the cache must close
QP_SHARE = 0.01  # of the gap, to which restricted problems are solved
QP_STEPS = 100_000


@dataclass(frozen=True)
class OneSlack(Solver):
    """The 1-slack cutting-plane method: few passes of the oracle, each on all threads.

    Parameters
    ----------
    cache : outputs kept per example, from which cuts are put together without calls of the oracle; 0 for no cache

    References
    ----------
    Joachims, Finley, Yu (2009), Cutting-plane training of structural SVMs, Algorithms 3 and 4.
    """

    cache: int = 0

    takes_bounds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count("cache", self.cache, 0)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective = run.objective
        cuts, cache = Cuts(objective), Cache(objective, self.cache)
        w, primal, dual = run.start_weights(), np.inf, 0.0
        while True:
            uses_cache = self.cache and np.isfinite(primal) and not (run.interrupted or run.timed_out)
            found = cache.evaluate(w) if uses_cache else None
            if found is not None and found.value - dual > CACHE_FRACTION * (primal - dual):
                run.count(calls=0, hits=objective.n)
            else:
                found = run.evaluate(w, outputs=cache.outputs)
                run.count(calls=0, misses=objective.n if self.cache else 0)
                run.n_steps += objective.n
                cache.store()
                primal = min(primal, found.value)
                yield Certificate(w.astype(run.w.dtype), found.value, dual)
            cuts.add(found)
            w, dual = cuts.solve(QP_SHARE * max(primal - dual, run.target(primal)))


class Cuts:
    """The cuts so far, with the solution of the last restricted problem. The first cut is that of the true outputs."""

    def __init__(self, objective: Objective) -> None:
        self.strength = objective.regularization
        self.v = [np.zeros(objective.n_weights)]
        self.gain = np.zeros(1)
        self.H = np.zeros((1, 1))
        self.alpha = np.ones(1)
        self.idle = np.zeros(1, np.int64)

    def add(self, found: Evaluation) -> None:
        """Add the cut at the weights of an evaluation."""
        self.v.append(-found.gradient / self.strength)
        row = self.strength * np.array([np.dot(v, self.v[-1]) for v in self.v])
        self.H = np.block([[self.H, row[:-1, None]], [row]])
        self.gain = np.append(self.gain, found.cost)
        self.alpha = np.append(self.alpha, 0.0)
        self.idle = np.append(self.idle, 0)

    def solve(self, tol: float) -> tuple[np.ndarray, float]:
        """Solve the restricted problem; return its weights and the lower bound."""
        maximise_on_simplex(self.gain, self.H, self.alpha, tol, QP_STEPS)
        self.alpha /= self.alpha.sum()
        self._drop_idle()
        w = np.sum([a * v for a, v in zip(self.alpha, self.v, strict=True) if a > 0], axis=0)
        return w, float(self.gain @ self.alpha) - 0.5 * self.strength * float(np.dot(w, w))

    def _drop_idle(self) -> None:
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)
        kept = np.flatnonzero(self.idle <= IDLE)
        if len(kept) < len(self.v):
            self.v = [self.v[k] for k in kept]
            self.gain, self.alpha, self.idle = self.gain[kept], self.alpha[kept], self.idle[kept]
            self.H = self.H[np.ix_(kept, kept)]


class Cache:
    """The latest outputs of the oracle, up to a number per example."""

    def __init__(self, objective: Objective, limit: int) -> None:
        self.objective, self.limit = objective, limit
        self.outputs = objective.new_outputs() if limit else None
        self.sets = sets_of(objective.problem.truth)

    def store(self) -> None:
        """Keep the outputs of the last pass of the oracle."""
        if self.outputs is None:
            return
        problem, n, done = self.objective.problem, self.objective.n, 0
        while (done := store_outputs(problem, self.sets, self.outputs, np.ones(n), 0.0, self.limit, done)) < n:
            self.sets = enlarged(self.sets)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """The objective with the best stored outputs in place of the oracle's: a lower bound, with its cut."""
        return self.objective.evaluate(w, loss=StoredLoss(self.objective.loss.margin, self.sets))
