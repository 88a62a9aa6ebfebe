"""The 1-slack cutting-plane method (Joachims, Finley, Yu 2009; *Local*, section 4).

A pass of the oracle at w gives one cut, a linear function below the loss term: its gain, the mean cost of the outputs
(and entropy, of squared losses), and its weights v = w(mu). The restricted problem, to minimise the regularized maximum
of the cuts, is in its dual to find the best mixture of dual points (`bundle`), whose value is a lower bound. Its
minimiser jumps about while cuts are few, so the next pass is only a share of the way from the best weights to it
(Franc, Sonnenburg 2009), which doubles after a pass that was better and halves after one that was not; as published, it
is all the way. Cuts put together from cached outputs save passes where they are violated enough at the minimiser; a run
ends only on a pass of the oracle itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import check_count, check_flag
from maxmargin.persist.registry import register_state
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import ActiveSets, OfStored, enlarge, sets_of, store_outputs
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.objective.bundle import Bundle
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.loss_pass import Evaluation
from maxmargin.trace import Certificate

MOST_CUTS = 50
LEAST_SHARE = 0.1  # of the way to the minimiser of the restricted problem
CACHE_FRACTION = 0.5  # of the gap, that a cut from the cache must close
LEAST_RISE = 0.01  # of the gap, closed by the last cut: after less, which may be rounding, the oracle is called
QP_SHARE = 0.01  # of the gap, to which restricted problems are solved


@dataclass(frozen=True)
class OneSlack(Solver):
    """The 1-slack cutting-plane method: few passes of the oracle, each on all threads.

    Parameters
    ----------
    cache
        Outputs kept per example, from which cuts are put together without calls of the oracle; 0 for no cache.
    damped
        Whether to go but a share of the way to the minimiser of the restricted problem, and to mix old cuts; with
        ``OneSlack(cache=0, damped=False)`` it is the method as published: many more passes where C is large.

    References
    ----------
    Joachims, Finley, Yu (2009), Cutting-plane training of structural SVMs, Algorithms 3 and 4.
    Franc, Sonnenburg (2009), Optimized cutting plane algorithm for large-scale risk minimization, section 3.

    Examples
    --------
    >>> from maxmargin import OneSlack
    >>> from maxmargin.testing import toy_chains
    >>> OneSlack().solve(toy_chains(), tol=0.01, random_state=0).status.name
    'OPTIMAL'
    """

    cache: int = 10
    damped: bool = True

    takes_any = takes_kernels = resumes = takes_portions = True

    def __post_init__(self) -> None:
        check_count("cache", self.cache, 0)
        check_flag("damped", self.damped)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective = run.objective
        state = run.take_up(lambda: self._begin(run))
        while True:
            found = state.found or self._from_cache(run, state)
            if found is None:
                w = project(state.best + state.share * (state.minimiser - state.best), objective.bounds)
                state.found = found = run.evaluate(w, outputs=state.cache.outputs)
                run.count(calls=0, misses=objective.n if state.cache.limit else 0)
                run.n_steps += objective.n
                state.cache.store()
                if found.value < state.primal:
                    state.best, state.primal, state.reached = w, found.value, found.value - found.slack
                    state.share = min(2 * state.share, 1.0)
                elif self.damped:
                    state.share = max(state.share / 2, LEAST_SHARE)
                yield Certificate(w.astype(run.w.dtype), found.value, state.dual)
            state.found = None
            state.cuts.add(found.cost + (0.0 if objective.loss.is_maximum else found.entropy), found.gradient)
            gap = state.reached - state.dual
            state.cuts.solve(QP_SHARE * max(gap, run.target(state.primal)))
            state.minimiser, before, state.dual = state.cuts.w, state.dual, max(state.dual, state.cuts.value)
            state.is_rising = state.dual - before > LEAST_RISE * gap

    def _begin(self, run: Run) -> State:
        w = run.start_weights()
        return State(
            cuts=Bundle(run.objective, MOST_CUTS if self.damped else sys.maxsize),
            cache=OutputCache(run.objective, self.cache),
            minimiser=w,
            best=w,
            primal=np.inf,
            reached=np.inf,  # the primal less its slack
            dual=run.objective.least,
            share=1.0,
            found=None,  # by the last pass of the oracle, until it is a cut
            is_rising=True,  # whether the last cut closed some of the gap
        )

    def _from_cache(self, run: Run, state: State) -> Evaluation | None:
        """The cut of cached outputs at the minimiser, if it may close enough of a gap that is still too large."""
        is_open = state.reached - state.dual > run.target(state.primal)
        if not (state.cache.limit and np.isfinite(state.primal) and state.is_rising and is_open) or run.must_stop:
            return None
        found = state.cache.evaluate(state.minimiser)
        if not found.value - state.dual > CACHE_FRACTION * (state.reached - state.dual):  # nor where it is NaN
            return None
        run.count(calls=0, hits=run.objective.n)
        return found


@register_state
class OutputCache:
    """The latest outputs of the oracle, up to a number per example."""

    def __init__(self, objective: Objective, limit: int) -> None:
        self.objective = objective
        self.limit = 0 if objective.loss.at_output() is None else limit
        self.outputs = objective.new_outputs() if self.limit else None
        self.sets = objective.keep(true_sets)

    def store(self) -> None:
        """Keep the outputs of the last pass of the oracle."""
        if self.outputs is not None:
            self.sets = self.objective.keep(store_all, self.sets, self.outputs, self.limit)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """The objective with the best stored outputs in place of the oracle's: a lower bound, with its cut."""
        loss = self.objective.loss
        return self.objective.evaluate(w, loss=OfStored(loss.margin, loss.at_output(), self.sets))


def true_sets(objective: Objective) -> ActiveSets:
    """Sets of the true outputs."""
    return sets_of(objective.problem.truth)


def store_all(objective: Objective, sets: ActiveSets, outputs: Blocks, limit: int) -> ActiveSets:
    """The sets with one more output of every example, and at most so many."""
    n, done = objective.n, 0
    while (done := store_outputs(objective.problem, sets, outputs, np.ones(n), 0.0, limit, done)) < n:
        sets = enlarge(sets)
    return sets
