"""The concave-convex procedure (Yuille, Rangarajan 2003) for outputs that are known in part (Yu, Joachims 2009).

In each round the outputs are completed at the weights w_t: by the best of the consistent outputs for the hinge loss, by
their mean parts for smooth losses, of which that of the log loss is a step of EM. Any solver then minimises the
majorant that touches the objective there (`latent_objective`), from where it ended in the last round: as only its
linear term has changed, dual points and stored outputs stay valid, and weights move by the change of q/lambda. It does
so to a share of what the last round has gained. The next objective is no higher, as it is below the majorant:

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
from maxmargin.checks import check_cost, check_flag, shown
from maxmargin.losses import BaseLoss, Loss
from maxmargin.problem import exp_oracle
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.automatic.auto import Auto
from maxmargin.solvers.frame.run import Result, Run
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import DualPoint, sets_of
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.latent_objective import Completion, LatentObjective
from maxmargin.solvers.objective.lower_bound import new_bound
from maxmargin.trace import Certificate, Status

ENOUGH_KNOWN = 0.05  # of all parts, that examples known as a whole have: then they alone are what to begin with
FIRST = 0.03  # of the objective, to which the problems to begin with are solved, and the first round
SHARE = 0.2  # of what the last round has gained, to which the next one is solved
FINEST = 0.5  # of the gap asked for, to which rounds are solved at most
SHARPER = 0.2  # times the accuracy, after a round without a gain
PACE = 1.3  # by which the largest loss of examples that take part grows
LEVELS, LOWEST = 4.0, 0.02  # by which the level of smoothing falls, and the last one
TINY = 1e-12  # limits that are out of reach: none are zero
SOLVED = Status.OPTIMAL, Status.ESTIMATED


@dataclass(frozen=True)
class CCCP(Solver):
    """The concave-convex procedure: completes outputs that are known in part, and trains on them, in turn.

    Where all outputs are known, or softly, it is the inner solver. Where there are some, it begins with the examples
    that are known as a whole; else with the mean of all outputs that are consistent with what is known. The trace
    has its objective, which never rises, and how many completions have changed.

    Parameters
    ----------
    inner
        What minimises the convex problem of each round: any solver that takes a linear term.
    self_paced
        Begin with the half of the examples whose losses are smallest, and let more take part from round to round.
    annealing
        Begin at this level of smoothing by entropy, of the maximum over all outputs and of that over the consistent
        ones, and let it fall from round to round; 0 for none. For the hinge loss, on structures with the exp oracle.

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
    >>> consistent = restrict(problem, Blocks(is_wrong, 3 * problem.starts))
    >>> CCCP().solve(problem, weak=Weak(consistent), random_state=0).status.name
    'STATIONARY'
    """

    inner: Solver = Auto()  # noqa: RUF009  (frozen)
    self_paced: bool = False
    annealing: float = 0.0

    takes_partial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Solver) or isinstance(self.inner, CCCP):
            raise ValueError(f"inner must be a solver of convex problems, not {shown(self.inner)}.")
        check_flag("self_paced", self.self_paced)
        check_cost("annealing", self.annealing)

    @property
    def default_loss(self) -> BaseLoss:
        return self.inner.default_loss

    def takes(self, loss: BaseLoss) -> bool:
        return self.inner.takes(loss)

    def oracles(self, loss: BaseLoss) -> set[str]:
        return self.inner.oracles(loss) | ({"exp"} if self.annealing else set())

    def needs_norms(self, loss: BaseLoss) -> bool:
        return self.inner.needs_norms(loss)

    def solve(self, problem: Any, C: float = 1.0, sample_weight: Any = None, **options: Any) -> Result:
        weak = options.get("weak")
        if weak is None or weak.consistent is None:
            return self.inner.solve(problem, C, sample_weight, **options)
        return super().solve(problem, C, sample_weight, **options)

    def _check_objective(self, objective: Objective) -> None:
        assert isinstance(objective, LatentObjective)
        if objective.regularization == 0:
            raise ValueError("CCCP needs L2 regularization: a finite C, and an l1_ratio below 1.")
        if self.annealing and not objective.loss.is_maximum:
            raise ValueError("annealing must be 0: only the hinge loss is smoothed less and less.")
        if self.annealing and not supports(exp_oracle, objective.consistent.problem):
            raise TypeError("annealing must be 0: there is no exp oracle of the outputs that are known in part.")
        self.inner._check_objective(objective.majorant(np.zeros(objective.n_weights)))

    def iterate(self, run: Run) -> Iterator[Certificate]:
        rounds = Rounds(self, run)
        at = rounds.begin()
        accuracy = FIRST * at.value
        while True:
            yield at.certificate
            accuracy = max(accuracy, FINEST * run.target(at.value))
            found = rounds.minimise(at.known.linear, accuracy)
            at = at.with_bound(found.certificate.dual - at.known.entropy)
            moved = rounds.look(found.w, at.completions)
            gained = at.value - moved.value
            if gained > 0 and not at.gap <= run.target(at.value) < moved.gap:
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
    extras: dict[str, float]  # columns of the trace

    @property
    def gap(self) -> float:
        """Up to which they are stationary."""
        return self.value - self.dual

    @property
    def certificate(self) -> Certificate:
        """What is known of them."""
        return Certificate(self.w, self.value, self.dual, self.extras)

    def with_bound(self, dual: float) -> Touched:
        """The same, once more, with another bound if that is better."""
        return self._replace(dual=max(self.dual, dual), extras=dict.fromkeys(self.extras, 0.0))


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
        self.last: Any = run.start  # what the next convex problem begins with

    def begin(self) -> Touched:
        """The first weights, with their completion."""
        run, objective = self.run, self.objective
        w = self._first_weights() if run.start is None else run.start_weights()
        for level in self._levels():
            w = self._soften(w, level)
        if self.solver.self_paced:
            w = self._keep_pace(w)
        return self.look(w, objective.problem.truth if objective.loss.is_maximum else None)

    def look(self, w: np.ndarray, completions: Blocks | None) -> Touched:
        """Complete the outputs at w, no worse than by given completions, and evaluate the objective."""
        run, objective, last = self.run, self.objective, self.last
        outputs = None if completions is None else objective.new_outputs()
        known = objective.complete(w, outputs, None if completions is None else sets_of(completions))
        found = run.evaluate(w, known=known)
        dual = new_bound(objective).add(found.cost + found.entropy, found.gradient)
        if isinstance(last, Result) and isinstance(last.dual, DualPoint):
            _, value = objective.majorant(known.linear).at(last.dual)
            dual = max(dual, value - known.entropy - found.rounding)
        extras = {} if completions is None else {"changed": float(count_changes(completions, outputs))}
        return Touched(w.astype(run.w.dtype), found.value, dual, known, outputs, extras)

    def minimise(
        self,
        linear: np.ndarray | None,
        accuracy: float,
        weight: np.ndarray | None = None,
        loss: BaseLoss | None = None,
        tol: float = TINY,
    ) -> Result:
        """Minimise a majorant, from where the last one has ended, to an absolute or a relative accuracy."""
        run, objective, loss = self.run, self.objective, loss or self.objective.loss
        n_weights, bounds = objective.n_weights, objective.bounds
        lower, upper = bounds.dense(n_weights) if bounds.which.size else (None, None)
        if linear is not None and objective.linear is not None:
            linear = linear + objective.linear
        inner = self.solver.inner if self.solver.inner.takes(loss) else Auto()
        left = run.clock.limit - run.seconds - 2 * run.certificate_seconds
        result = inner.solve(
            objective.runner.problem,
            objective.C,
            objective.weight if weight is None else weight,
            loss=loss,
            l1_ratio=objective.l1_ratio,
            linear=objective.linear if linear is None else linear,
            start=self.last,
            lower=lower,
            upper=upper,
            tol=tol,
            abs_tol=accuracy,
            max_passes=max(run.limits.max_passes - run.passes, TINY),
            time_limit=max(left, TINY),
            n_jobs=objective.n_jobs,
            random_state=run.rng,
        )
        trace = result.trace
        run.n_steps += round(trace.passes[-1] * objective.n)
        run.count(trace.oracle_calls[-1], trace.cache_hits[-1], trace.cache_misses[-1])
        run.notes += [note for note in trace.notes if note not in run.notes]
        self.last = result
        return result

    def _first_weights(self) -> np.ndarray:
        """Those of the examples that are known as a whole, if they are enough; else of the mean consistent outputs."""
        objective, is_weak = self.objective, self.objective.is_weak
        sizes = objective.runner.part_sizes
        if is_weak is not None and sizes[~is_weak].sum() >= ENOUGH_KNOWN * sizes.sum():
            return self.minimise(None, 0.0, objective.weight * ~is_weak, tol=FIRST).w
        if supports(exp_oracle, objective.consistent.problem):
            objective = objective.with_loss(Loss("entropy"))
        linear = objective.complete(np.zeros(objective.n_weights)).linear
        self.run.count(objective.n)
        return self.minimise(linear, 0.0, tol=FIRST).w

    def _levels(self) -> Iterator[float]:
        """Those of annealing, falling."""
        level = self.solver.annealing
        while level > LOWEST and not self.run.must_stop:
            yield level
            level /= LEVELS

    def _soften(self, w: np.ndarray, level: float) -> np.ndarray:
        """A round at a level of smoothing."""
        softer = self.objective.with_loss(Loss("entropy", level, self.objective.loss.margin))
        self.run.count(softer.n)
        return self.minimise(softer.complete(w).linear, 0.0, loss=softer.loss, tol=FIRST).w

    def _keep_pace(self, w: np.ndarray) -> np.ndarray:
        """Rounds in which examples of small losses take part: half of them at first, all in the end."""
        objective, is_weak = self.objective, self.objective.is_weak
        is_weak = np.ones(objective.n, bool) if is_weak is None else is_weak
        losses = objective.losses(w)
        most = float(np.median(losses[is_weak])) if is_weak.any() else np.inf
        while (is_late := is_weak & (losses > most)).any() and not self.run.must_stop:
            paced = copy(objective)
            paced.consistent = copy(objective.consistent)
            paced.consistent.weight = weight = objective.weight * ~is_late
            w = self.minimise(paced.complete(w).linear, 0.0, weight, tol=FIRST).w
            self.run.count(3 * objective.n)
            losses, most = objective.losses(w), PACE * most
        return w


def count_changes(before: Blocks, after: Blocks | None) -> int:
    """How many blocks have changed."""
    owner = np.repeat(np.arange(len(before.starts) - 1), np.diff(before.starts))
    return len(np.unique(owner[before.values != after.values])) if after is not None else 0
