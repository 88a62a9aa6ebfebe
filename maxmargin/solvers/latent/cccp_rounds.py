"""Rounds of the concave-convex procedure: completions at some weights, and the convex problems that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.losses import Loss
from maxmargin.persist.registry import register_state
from maxmargin.problem import exp_oracle
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.batch.lbfgs import LBFGS
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.observation import Observer
from maxmargin.solvers.frame.run import Result, Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import ActiveSets, DualPoint, copy_point, no_means, rename, sets_of
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.latent_objective import Completion, LatentObjective
from maxmargin.solvers.objective.lower_bound import new_bound
from maxmargin.trace import Certificate, Status

if TYPE_CHECKING:
    from maxmargin.solvers.latent.cccp import CCCP

ENOUGH_KNOWN = 0.05  # of all parts, that examples known as a whole have: then they alone are what to begin with
FIRST = 0.1  # of the objective, to which the problems to begin with are solved
SHARE = 0.5  # of what a round can gain at most, that it is to gain
FIRST_PASSES = 15  # at each level of smoothing: more cost more than they gain
PACE = 1.3  # by which the largest loss of examples that take part grows
FALL, LOWEST = 4.0, 0.5  # by which the level of smoothing falls, and below which it ends
TINY = 1e-12  # limits that are out of reach: none are zero


@register_state
class Touched(NamedTuple):
    """Weights with their objective and completion, and a lower bound of the majorant that touches it there."""

    w: np.ndarray
    value: float
    dual: float
    known: Completion
    completions: Blocks | None  # outputs, where completions are not mean parts
    point: DualPoint | None  # of the majorant, of solvers that keep one
    n_changed: float  # completions, since the last weights
    counts: dict[str, float]  # what the run is to say of these weights

    @property
    def gap(self) -> float:
        """Up to which they are stationary."""
        return self.value - self.dual


class Minimised(NamedTuple):
    """What a solver has found of a convex problem."""

    w: np.ndarray
    dual: float
    point: DualPoint | None
    verdict: Status | None  # why the solver itself has ended


class Majorized(Observer):
    """Ends a round once its weights are proven to be stationary, or it has gained a share of what it can gain.

    Parameters
    ----------
    run
        The round.
    value
        The objective of the fit where the round began, to which the majorant has an entropy added.
    target
        Up to which weights are to be stationary.
    """

    def __init__(self, run: Run, value: float, target: float) -> None:
        super().__init__(run, keeps_last=False, verbose=0, callback=None)
        self.value, self.target = value, target

    def _is_enough(self, certificate: Certificate) -> bool:
        most = self.value - certificate.dual
        return most <= self.target or certificate.gap <= (1 - SHARE) * most


class Rounds:
    """Completions and convex problems in turn.

    Parameters
    ----------
    solver
        Its options.
    run
        What is minimised, and when to end.
    """

    def __init__(self, solver: CCCP, run: Run) -> None:
        assert isinstance(run.objective, LatentObjective)
        self.solver, self.run, self.objective = solver, run, run.objective
        self.inner = solver.inner.chosen_for(self.objective.problem.problem, self.objective.loss)

    def begin(self) -> Touched:
        """The first weights, with their completion."""
        run = self.run
        point = None
        if run.start is not None:
            w = run.start_weights()
            given = run.start.dual if isinstance(run.start, Result) else run.start
            if isinstance(given, DualPoint):
                run.check_sizes(given)
                point = copy_point(given, run.w.dtype) if self.inner.keeps_dual else None
        elif self._can_smooth():
            w = self._anneal()
        else:
            w = self._first_weights()
        if self.solver.self_paced:
            w = self._keep_pace(w)
        return self.look(w, point, None)

    def look(self, w: np.ndarray, point: DualPoint | None, before: Blocks | None) -> Touched:
        """Complete the outputs at w, no worse than before, evaluate the objective, and carry a dual point over."""
        run, objective = self.run, self.objective
        completions = objective.new_outputs() if objective.loss.is_maximum else None
        rivals = before or objective.problem.truth
        known = objective.complete(w, completions, None if completions is None else sets_of(rivals))
        found = run.evaluate(w, known=known)
        dual, n_changed = new_bound(objective).add(found.cost + found.entropy, found.gradient), 0.0
        if completions is not None:
            changed = find_changes(rivals, completions)
            n_changed = float(len(changed))
            if point is None:
                point = self._point_at(completions)
            elif before is not None and point.sets.sizes.size:
                take_over(point.sets, before, completions, changed)
        if point is not None:
            _, value = objective.majorant(known.linear).at(point)
            dual = max(dual, value - known.entropy - found.rounding)
        counts = {"slack": run.slack, "n_inexact": run.n_inexact, "rounding": run.rounding}
        return Touched(w.astype(run.w.dtype), found.value, dual, known, completions, point, n_changed, counts)

    def _point_at(self, completions: Blocks) -> DualPoint | None:
        """The dual point of a majorant whose weights are zero: that of its completions, if the solver keeps one."""
        if not self.inner.keeps_dual:
            return None
        return DualPoint(no_means(self.objective.runner.part_sizes, self.run.w.dtype), sets_of(completions))

    def show(self, at: Touched) -> Certificate:
        """What is known of weights, also to the run."""
        vars(self.run).update(at.counts)
        self.run.dual = at.point
        extras = {} if at.completions is None else {"changed": at.n_changed}
        return Certificate(at.w, at.value, at.dual, extras)

    def minimise_at(self, at: Touched) -> Minimised:
        """Minimise the majorant that touches the objective at some weights, as far as is worth it."""
        value = at.value + at.known.entropy
        run = self._start(self.objective.majorant(at.known.linear), at.w if at.point is None else at.point)
        return self._follow(self.inner, run, Majorized(run, value, self.run.target(at.value)))

    def _minimise(self, by: Solver, objective: Objective, start: object, most: float = np.inf) -> np.ndarray:
        """The weights of a problem to begin with."""
        run = self._start(objective, start, FIRST, most)
        return self._follow(by, run, Observer(run, by.returns_last, 0, None)).w

    def _start(self, objective: Objective, start: object, tol: float = TINY, most: float = np.inf) -> Run:
        """A run within the limits of the whole one."""
        whole = self.run
        limits = Limits(tol, 0.0, max(min(whole.limits.max_passes - whole.passes, most), TINY))
        return Run(objective, limits, start, whole.rng, clock=whole.clock)

    def _follow(self, solver: Solver, run: Run, observer: Observer) -> Minimised:
        """Run a solver, and count what it does."""
        solver.follow(run, observer)
        whole = self.run
        whole.n_steps += run.n_steps
        whole.count(run.oracle_calls, run.cache_hits, run.cache_misses, run.wrong_outputs)
        whole.notes += [note for note in run.notes if note not in whole.notes]
        point = run.dual if isinstance(run.dual, DualPoint) else None
        return Minimised(observer.best, observer.trace.dual.max(), point, run.verdict)

    def _first_weights(self) -> np.ndarray:
        """Those of the examples that are known as a whole, if they are enough, or of any completions."""
        objective, is_weak = self.objective, self.objective.is_weak
        sizes = objective.runner.part_sizes * (objective.weight > 0)
        if is_weak is not None and 0 < sizes[~is_weak].sum() >= ENOUGH_KNOWN * sizes.sum():
            known = objective.with_weight(objective.weight * ~is_weak).majorant(None)
            return self._minimise(self.inner, known, None)
        return self._minimise_completed(objective, np.zeros(objective.n_weights))

    def _minimise_completed(self, objective: LatentObjective, w: np.ndarray) -> np.ndarray:
        """The weights of a majorant to begin with."""
        self.run.count(objective.n)
        completions = objective.new_outputs() if objective.loss.is_maximum else None
        majorant = objective.majorant(objective.complete(w, completions).linear)
        point = None if completions is None else self._point_at(completions)
        return self._minimise(self.inner, majorant, w if point is None else point)

    def _can_smooth(self) -> bool:
        """Whether there are smoother objectives to begin with, which L-BFGS minimises as they are."""
        objective = self.objective
        has_sums = all(supports(exp_oracle, part.problem) for part in (objective, objective.consistent))
        takes_it = objective.loss.is_maximum and objective.layout.is_explicit
        return has_sums and takes_it and self.solver.annealing > 0

    def _anneal(self) -> np.ndarray:
        """The weights of the objective with both maxima smoothed, at ever lower levels."""
        level, w = self.solver.annealing, None
        while w is None or (level >= LOWEST and not self.run.must_stop):
            smoothed = self.objective.with_loss(Loss("entropy", level, self.objective.loss.margin))
            w = self._minimise(LBFGS(), smoothed, w, FIRST_PASSES)
            level /= FALL
        return w

    def _keep_pace(self, w: np.ndarray) -> np.ndarray:
        """Rounds in which examples of small losses take part: half of them at first, all in the end."""
        objective, is_weak = self.objective, self.objective.is_weak
        is_weak = np.ones(objective.n, bool) if is_weak is None else is_weak
        losses = objective.losses(w)
        most = float(np.median(losses[is_weak & (losses > 0)])) if (losses[is_weak] > 0).any() else 0.0
        while (is_late := is_weak & (losses > most)).any() and not self.run.must_stop:
            paced = objective.with_weight(objective.weight * ~is_late)
            w = self._minimise_completed(paced, w)
            self.run.count(2 * objective.n)
            losses = objective.losses(w)
            most = max(PACE * most, np.min(losses[is_weak], where=losses[is_weak] > most, initial=np.inf))
        return w


def find_changes(before: Blocks, after: Blocks) -> np.ndarray:
    """The blocks that have changed."""
    owner = np.repeat(np.arange(len(before.starts) - 1), np.diff(before.starts))
    return np.unique(owner[before.values != after.values])


def take_over(sets: ActiveSets, before: Blocks, after: Blocks, changed: np.ndarray) -> None:
    """Put new completions in place of old ones, with their weights.

    Both cost nothing, so the costs of the dual point stay, and where the old one had all weight, so does w(mu).
    """
    for i in changed:
        rename(sets, i, *(blocks.values[blocks.starts[i] : blocks.starts[i + 1]] for blocks in (before, after)))
