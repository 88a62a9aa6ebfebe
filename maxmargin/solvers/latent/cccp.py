"""The concave-convex procedure (Yuille, Rangarajan 2003) for outputs that are known in part (Yu, Joachims 2009).

In each round the outputs are completed at the weights w_t: by the best of the consistent outputs for the hinge loss, by
their mean parts for smooth losses, of which that of the log loss is a step of EM. Any solver then minimises the
majorant that touches the objective there (`latent_objective`), from where it ended in the last round: as only its
linear term has changed, dual points stay valid, and weights move by the change of q/lambda. They move less where new
completions take over the weights of old ones in active sets. Majorants are minimised to a share of what the last round
has gained. The next objective is no higher, as it is below the majorant:

    F(w_t+1) <= F_t(w_t+1) <= D_t + accuracy <= F(w_t) + accuracy,

and where a round ends no lower, F(w_t) - D_t is at most its accuracy: w_t is stationary up to that, or the next round
is more accurate. Dual points that smooth losses tell at w_t+1, or that a solver keeps, are points of the next majorant,
too, and certify w_t+1 before it is minimised.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import check_cost, check_flag
from maxmargin.losses import BaseLoss, Loss
from maxmargin.problem import exp_oracle
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.automatic.auto import Auto
from maxmargin.solvers.batch.lbfgs import LBFGS
from maxmargin.solvers.frame.run import Result, Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import DualPoint, copy_point, rename, sets_of
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.latent_objective import Completion, LatentObjective
from maxmargin.solvers.objective.lower_bound import new_bound
from maxmargin.supervision.weak import Weak
from maxmargin.trace import Certificate, Status
from maxmargin.wording import quote

ENOUGH_KNOWN = 0.05  # of all parts, that examples known as a whole have: then they alone are what to begin with
FIRST = 0.1  # of the objective, to which the problems to begin with are solved, and the first round
SHARE = 0.5  # of what the last round has gained, to which the next one is solved
FINEST = 0.8  # of the gap asked for, to which rounds are solved at most
SHARPER = 0.5  # times the accuracy, after a round without a gain
FIRST_PASSES = 15  # at each level of smoothing: more cost more than they gain
PACE = 1.3  # by which the largest loss of examples that take part grows
FALL, LOWEST = 4.0, 0.5  # by which the level of smoothing falls, and below which it ends
TINY = 1e-12  # limits that are out of reach: none are zero
SOLVED = Status.OPTIMAL, Status.ESTIMATED


@dataclass(frozen=True)
class CCCP(Solver):
    """The concave-convex procedure: completes outputs that are known in part, and trains on them, in turn.

    Where all outputs are known, or softly, it is the inner solver. The trace has its objective, which never rises, and
    how many completions have changed.

    Parameters
    ----------
    inner
        What minimises the convex problem of each round: any solver that takes a linear term.
    self_paced
        Begin with the half of the examples whose losses are smallest, and let more take part from round to round.
    annealing
        The level of smoothing by entropy, of the maximum over all outputs and of that over the consistent ones, at
        which to begin with a hinge loss, where the structure has the exp oracle: for a few passes of L-BFGS each it is
        that, a quarter and so on, down to 1/2, then none. With 0, and on other structures, the examples that are known
        as a whole are what to begin with, where these are enough; else any completion.

    References
    ----------
    Yu, Joachims (2009), Learning structural SVMs with latent variables.
    Kumar, Packer, Koller (2010), Self-paced learning for latent variable models.
    Song, Girshick, Jegelka, Mairal, Harchaoui, Darrell (2014), On learning to localize objects with minimal
    supervision.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import CCCP
    >>> from maxmargin.arrays.blocks import Blocks
    >>> from maxmargin.problem import restrict
    >>> from maxmargin.supervision.weak import Weak
    >>> from maxmargin.testing import toy_chains
    >>> problem = toy_chains(n_labels=3)
    >>> known = problem.supervision
    >>> is_wrong = np.arange(3) != known.labels[:, np.newaxis]
    >>> is_wrong[::2], known.weight[::2] = False, 0.0  # of every other label nothing is known
    >>> consistent = restrict(problem, Blocks(is_wrong.ravel(), 3 * problem.starts))
    >>> CCCP().solve(problem, weak=Weak(consistent), random_state=0).status.name
    'STATIONARY'
    """

    inner: Solver = Auto()  # noqa: RUF009  (frozen)
    self_paced: bool = False
    annealing: float = 1.0

    takes_partial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Solver) or isinstance(self.inner, CCCP):
            raise ValueError(f"inner must be a solver of convex problems, not {quote(self.inner)}.")
        check_flag("self_paced", self.self_paced)
        check_cost("annealing", self.annealing)

    @property
    def default_loss(self) -> BaseLoss:
        return self.inner.default_loss

    def takes(self, loss: BaseLoss) -> bool:
        return self.inner.takes(loss)

    def oracles(self, loss: BaseLoss) -> set[str]:
        return self.inner.oracles(loss)

    def needs_norms(self, loss: BaseLoss) -> bool:
        return self.inner.needs_norms(loss)

    def solve(self, problem: Any, C: float = 1.0, sample_weight: Any = None, **options: Any) -> Result:
        weak = options.get("weak")
        if weak is None or weak.consistent is None:
            return self.inner.solve(problem, C, sample_weight, **options)
        return super().solve(problem, C, sample_weight, **options)

    def _check_objective(self, objective: Objective) -> None:
        assert isinstance(objective, LatentObjective)
        if objective.l1:
            raise ValueError("CCCP knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS.")
        if objective.regularization == 0:
            raise ValueError("CCCP needs L2 regularization: a finite C.")
        self.inner._check_objective(objective.majorant(np.zeros(objective.n_weights)))

    def iterate(self, run: Run) -> Iterator[Certificate]:
        rounds = Rounds(self, run)
        at = rounds.begin()
        accuracy = FIRST * at.value
        while True:
            yield at.certificate
            accuracy = max(accuracy, FINEST * run.target(at.value))
            found = rounds.minimise(at.start, at.known.linear, abs_tol=accuracy)
            at = at.proceed(found)
            if at.gap <= run.target(at.value):  # which a pass that is broken off must not lose
                yield at.certificate
            moved = rounds.look(found.w, found, at.completions)
            gained = at.value - moved.value
            if gained > 0:
                at, accuracy = moved, SHARE * gained
                continue
            if found.status not in SOLVED:
                run.verdict = found.status
            accuracy *= SHARPER


class Touched(NamedTuple):
    """Weights with their objective and completion, and a lower bound of the majorant that touches it there."""

    w: np.ndarray
    value: float
    dual: float
    known: Completion
    completions: Blocks | None  # outputs, where completions are not mean parts
    start: Any  # what to minimise the majorant from
    extras: dict[str, float]  # columns of the trace

    @property
    def gap(self) -> float:
        """Up to which they are stationary."""
        return self.value - self.dual

    @property
    def certificate(self) -> Certificate:
        """What is known of them."""
        return Certificate(self.w, self.value, self.dual, self.extras)

    def proceed(self, found: Result) -> Touched:
        """The same, once more, with what was found of the majorant."""
        dual = max(self.dual, found.certificate.dual - self.known.entropy)
        return self._replace(dual=dual, start=found, extras=dict.fromkeys(self.extras, 0.0))


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

    def begin(self) -> Touched:
        """The first weights, with their completion."""
        run, objective = self.run, self.objective
        if run.start is not None:
            if isinstance(run.start, Result) and isinstance(run.start.dual, DualPoint):
                run.check_sizes(run.start.dual)
            w, start = run.start_weights(), run.start
        elif self._can_smooth():
            w = self._anneal()
            start = None if self.solver.inner.keeps_dual else w
        else:
            start = self._first_result()
            w = start.w
        if self.solver.self_paced:
            w, start = self._keep_pace(w, start)
        return self.look(w, start, objective.problem.truth if objective.loss.is_maximum else None)

    def look(self, w: np.ndarray, start: Any, completions: Blocks | None) -> Touched:
        """Complete the outputs at w, no worse than as they are, evaluate the objective, and carry the start over."""
        run, objective = self.run, self.objective
        outputs = None if completions is None else objective.new_outputs()
        known = objective.complete(w, outputs, None if completions is None else sets_of(completions))
        found = run.evaluate(w, known=known)
        dual, extras = new_bound(objective).add(found.cost + found.entropy, found.gradient), {}
        if completions is not None and outputs is not None:
            changed = find_changes(completions, outputs)
            extras["changed"] = float(len(changed))
            start = carry_over(start, completions, outputs, changed)
        if isinstance(start, Result) and isinstance(start.dual, DualPoint):
            _, value = objective.majorant(known.linear).at(start.dual)
            dual = max(dual, value - known.entropy - found.rounding)
        return Touched(w.astype(run.w.dtype), found.value, dual, known, outputs, start, extras)

    def minimise(
        self,
        start: Any,
        linear: np.ndarray | None = None,
        by: Solver | None = None,
        max_passes: float = np.inf,
        **options: Any,
    ) -> Result:
        """Minimise a majorant, or a smoother objective, within the limits of the run; options are those of `solve`."""
        run, objective = self.run, self.objective
        lower, upper = objective.bounds.dense(objective.n_weights) if objective.bounds.which.size else (None, None)
        if objective.linear is not None:
            linear = objective.linear if linear is None else objective.linear + linear
        given = {"sample_weight": objective.weight, "loss": objective.loss, "tol": TINY} | options
        left = run.clock.limit - run.seconds - 2 * run.certificate_seconds
        result = (by or self.solver.inner).solve(
            objective.runner.problem,
            objective.C,
            l1_ratio=objective.l1_ratio,
            linear=linear,
            start=start,
            lower=lower,
            upper=upper,
            max_passes=max(min(run.limits.max_passes - run.passes, max_passes), TINY),
            time_limit=max(left, TINY),
            n_jobs=objective.n_jobs,
            random_state=run.rng,
            **given,
        )
        trace = result.trace
        run.n_steps += round(trace.passes[-1] * objective.n)
        run.count(trace.oracle_calls[-1], trace.cache_hits[-1], trace.cache_misses[-1])
        run.notes += [note for note in trace.notes if note not in run.notes]
        return result

    def _first_result(self) -> Result:
        """That of the examples that are known as a whole, if they are enough, or of any completions."""
        objective, is_weak = self.objective, self.objective.is_weak
        sizes = objective.runner.part_sizes * (objective.weight > 0)
        if is_weak is not None and 0 < sizes[~is_weak].sum() >= ENOUGH_KNOWN * sizes.sum():
            return self.minimise(None, sample_weight=objective.weight * ~is_weak, tol=FIRST)
        self.run.count(objective.n)
        return self.minimise(None, objective.complete(np.zeros(objective.n_weights)).linear, tol=FIRST)

    def _can_smooth(self) -> bool:
        """Whether there are smoother objectives to begin with, which L-BFGS minimises as they are."""
        objective = self.objective
        has_sums = all(supports(exp_oracle, part.problem) for part in (objective, objective.consistent))
        takes_it = objective.loss.is_maximum and objective.layout.is_explicit
        return has_sums and takes_it and self.solver.annealing > 0

    def _anneal(self) -> np.ndarray:
        """The weights of the objective with both maxima smoothed, at ever lower levels."""
        weak, level, w = Weak(self.objective.consistent.runner.problem), self.solver.annealing, None
        while w is None or (level >= LOWEST and not self.run.must_stop):
            loss = Loss("entropy", level, self.objective.loss.margin)
            w = self.minimise(w, by=LBFGS(), max_passes=FIRST_PASSES, loss=loss, weak=weak, tol=FIRST).w
            level /= FALL
        return w

    def _keep_pace(self, w: np.ndarray, start: Any) -> tuple[np.ndarray, Any]:
        """Rounds in which examples of small losses take part: half of them at first, all in the end."""
        objective, is_weak = self.objective, self.objective.is_weak
        is_weak = np.ones(objective.n, bool) if is_weak is None else is_weak
        losses = objective.losses(w)
        most = float(np.median(losses[is_weak & (losses > 0)])) if (losses[is_weak] > 0).any() else 0.0
        while (is_late := is_weak & (losses > most)).any() and not self.run.must_stop:
            paced = copy(objective)
            paced.consistent = copy(objective.consistent)
            paced.consistent.weight = weight = objective.weight * ~is_late
            start = self.minimise(start, paced.complete(w).linear, sample_weight=weight, tol=FIRST)
            self.run.count(3 * objective.n)
            w = start.w
            losses = objective.losses(w)
            most = max(PACE * most, np.min(losses[is_weak], where=losses[is_weak] > most, initial=np.inf))
        return w, start


def find_changes(before: Blocks, after: Blocks) -> np.ndarray:
    """The blocks that have changed."""
    owner = np.repeat(np.arange(len(before.starts) - 1), np.diff(before.starts))
    return np.unique(owner[before.values != after.values])


def carry_over(start: Any, before: Blocks, after: Blocks, changed: np.ndarray) -> Any:
    """A start whose active sets have new completions in place of old ones, with their weights.

    Both cost nothing, so the costs of the dual point stay, and where the old one had all weight, so does w(mu).
    """
    if not (isinstance(start, Result) and isinstance(start.dual, DualPoint) and start.dual.sets.sizes.size):
        return start
    point = copy_point(start.dual, start.dual.means.values.dtype)
    for i in changed:
        rename(point.sets, i, *(blocks.values[blocks.starts[i] : blocks.starts[i + 1]] for blocks in (before, after)))
    return start._replace(dual=point)
