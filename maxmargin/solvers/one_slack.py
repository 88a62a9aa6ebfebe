"""The 1-slack cutting-plane method (Joachims, Finley, Yu 2009; *Local*, section 4).

A pass of the oracle at w gives one cut, a linear function below the loss term: its gain, the mean cost of the outputs,
and its weights v = w(mu). The restricted problem, to minimise the regularized maximum of the cuts, is in its dual to
find the best mixture of dual points (`bundle`), whose value is a lower bound. Its minimiser jumps about while cuts are
few, so the next pass is only a share of the way from the best weights to it (Franc, Sonnenburg 2009), which doubles
after a pass that was better and halves after one that was not. Cuts put together from cached outputs save passes where
they are violated enough at the minimiser; a run ends only on a pass of the oracle itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin.checks import check_count
from maxmargin.solvers.active_sets import StoredLoss, enlarged, sets_of, store_outputs
from maxmargin.solvers.bounds import project
from maxmargin.solvers.bundle import Bundle
from maxmargin.solvers.objective import Certificate, Evaluation, Objective
from maxmargin.solvers.run import Run
from maxmargin.solvers.solver import Solver

MOST_CUTS = 50
LEAST_SHARE = 0.1  # of the way to the minimiser of the restricted problem
CACHE_FRACTION = 0.5  # of the gap, that a cut from the cache must close
QP_SHARE = 0.01  # of the gap, to which restricted problems are solved


@dataclass(frozen=True)
class OneSlack(Solver):
    """The 1-slack cutting-plane method: few passes of the oracle, each on all threads.

    Parameters
    ----------
    cache : outputs kept per example, from which cuts are put together without calls of the oracle; 0 for no cache

    References
    ----------
    Joachims, Finley, Yu (2009), Cutting-plane training of structural SVMs, Algorithms 3 and 4.
    Franc, Sonnenburg (2009), Optimized cutting plane algorithm for large-scale risk minimization, section 3.
    """

    cache: int = 10

    takes_kernels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("cache", self.cache, 0)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective = run.objective
        cuts, cache = Bundle(objective, MOST_CUTS), Cache(objective, self.cache)
        minimiser = best = run.start_weights()
        primal, reached, dual, share = np.inf, np.inf, 0.0, 1.0  # `reached`: the primal less its slack
        while True:
            uses_cache = self.cache and np.isfinite(primal) and not (run.interrupted or run.timed_out)
            found = cache.evaluate(minimiser) if uses_cache else None
            if found is not None and found.value - dual > CACHE_FRACTION * (reached - dual):
                run.count(calls=0, hits=objective.n)
            else:
                w = project(best + share * (minimiser - best), objective.bounds)
                found = run.evaluate(w, outputs=cache.outputs)
                run.count(calls=0, misses=objective.n if self.cache else 0)
                run.n_steps += objective.n
                cache.store()
                yield Certificate(w.astype(run.w.dtype), found.value, dual)
                if found.value < primal:
                    best, primal, reached, share = w, found.value, found.value - found.slack, min(2 * share, 1.0)
                else:
                    share = max(share / 2, LEAST_SHARE)
            cuts.add(found.cost, found.gradient)
            cuts.solve(QP_SHARE * max(reached - dual, run.target(primal)))
            minimiser, dual = cuts.w, max(dual, cuts.value)


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
