"""The frame of every solver: what it can minimise, and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.execution.clock import BrokenOff
from maxmargin.execution.threads import one_blas_thread
from maxmargin.losses import NAMED, BaseLoss, RelaxedLoss, find_loss
from maxmargin.parameters import inherit_documentation
from maxmargin.persist.registry import register, renaming
from maxmargin.problem import ORACLES, AnyProblem
from maxmargin.runtime.cache import COMPILING, before_compiling
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.frame.checkpoint import Checkpoint
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.interrupt import Interruptible
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.observation import Observer
from maxmargin.solvers.frame.run import Result, Run
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.latent_objective import LatentObjective
from maxmargin.solvers.objective.objective_options import ObjectiveOptions
from maxmargin.solvers.objective.tilted_objective import TiltedObjective
from maxmargin.solvers.parted.parted_latent import PartedLatentObjective
from maxmargin.solvers.parted.parted_objective import PartedObjective
from maxmargin.solvers.parted.portions import Portions
from maxmargin.supervision.weak import Weak
from maxmargin.trace import Certificate, Status, Trace
from maxmargin.wording import quote


@dataclass(frozen=True)
class Solver:
    """Base of all solvers: a frozen dataclass whose fields are the options of the algorithm.

    A subclass says what it needs and takes, and implements `iterate`.

    Examples
    --------
    >>> from maxmargin import BCFW
    >>> from maxmargin.solvers import Solver
    >>> isinstance(BCFW(), Solver)
    True
    """

    needs_smooth: ClassVar[bool] = False  # losses with a gradient everywhere
    takes_smooth: ClassVar[bool] = False
    takes_any: ClassVar[bool] = False  # losses neither smooth nor a maximum: it asks only where they are attained
    needs_margin: ClassVar[bool] = False  # losses with costs
    needs_regularization: ClassVar[bool] = True
    takes_bounds: ClassVar[bool] = True
    returns_last: ClassVar[bool] = False  # in place of the weights of the lowest objective
    takes_kernels: ClassVar[bool] = False  # weights whose inner products are those of the objective
    takes_l1: ClassVar[bool] = False
    takes_linear: ClassVar[bool] = True  # a linear term, as that of soft labels
    takes_partial: ClassVar[bool] = False  # outputs that are known in part: objectives that are not convex
    default_passes: ClassVar[int] = 1000  # after which to stop unless told otherwise
    resumes: ClassVar[bool] = False  # goes on from the state of a run, see `Run.take_up`, as a checkpoint needs
    keeps_dual: ClassVar[bool] = False  # starts from and returns a dual point, as a path needs
    takes_portions: ClassVar[bool] = False  # of examples, each elsewhere: it asks for nothing but sums over all of them
    renamed: ClassVar[Mapping[str, str | None]] = {}  # options that files of earlier versions have by another name

    def __init_subclass__(cls) -> None:
        inherit_documentation(cls)
        register(cls, make=renaming(cls, cls.renamed))  # saved by its fields

    @property
    def default_loss(self) -> BaseLoss:
        """The loss it minimises unless told otherwise."""
        return NAMED["log" if self.needs_smooth else "hinge"]

    @property
    def known_as(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    def takes(self, loss: BaseLoss) -> bool:
        """Whether it can minimise a loss."""
        is_smooth_enough = self.takes_smooth if loss.is_smooth else not self.needs_smooth
        has_margin_enough = loss.margin or loss.is_smooth or not self.needs_margin
        is_known = loss.is_smooth or loss.is_maximum or self.takes_any
        return bool(loss.oracle) and is_smooth_enough and has_margin_enough and is_known

    def oracles(self, loss: BaseLoss) -> set[str]:
        """The names of the oracles that it needs to minimise a loss."""
        return {loss.oracle}

    def needs_norms(self, loss: BaseLoss) -> bool:
        """Whether it asks for the norms of directions, which problems can be made to tell faster."""
        return True

    def chosen_for(self, problem: AnyProblem, loss: BaseLoss) -> Solver:
        """The solver that it leaves a loss to, by default itself."""
        return self

    def iterate(self, run: Run) -> Iterator[Certificate]:
        """Improve ``run.w`` and ``run.dual``, yielding a certificate now and then; the frame decides when to stop."""
        raise NotImplementedError

    def solve(
        self,
        problem: AnyProblem,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        *,
        loss: object = None,
        l1_ratio: float = 0.0,
        linear: np.ndarray | None = None,
        prior: np.ndarray | None = None,
        weak: Weak | None = None,
        start: object = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        tol: float = 1e-3,
        abs_tol: float = 0.0,
        max_passes: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: object = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
        held_out: HeldOut | None = None,
        checkpoint: object = None,
    ) -> Result:
        """Minimise (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), lambda = 1/(n C).

        With an L1 term, for solvers that take one, (1/2) ||w||^2 becomes l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2.
        With a linear term q it is less by <q, w>; with a prior m, ||w||^2 becomes ||w - m||^2.

        Parameters
        ----------
        problem
            The examples.
        C
            Inverse strength of the regularization; infinite for none, where the solver can do without.
        sample_weight : (n,) weights of the examples
        loss
            "hinge", "squared_hinge", "smooth_hinge", "log" or a `Loss`; by default what the solver is made for.
        l1_ratio
            The share of the L1 norm in the regularization, from 0 to 1.
        linear
            The linear term q, one number per weight of the solver.
        prior
            The weights m that the regularization draws to, one number per weight of the solver.
        weak
            What is known of outputs where that is not one true output each: soft labels, which are a linear term, or
            outputs that are known in part, which `LBFGS` and `maxmargin.CCCP` take.
        start
            Where to start from: the `Result` of an earlier run, its dual point or, for primal solvers, weights.
        lower, upper
            Bounds of the weights, numbers or arrays with one entry per weight.
        tol
            Stop at this relative duality gap, (primal - dual) / primal.
        abs_tol
            Stop at this absolute duality gap, too.
        max_passes
            Stop after this many passes over the examples; by default after `default_passes` of the solver.
        time_limit
            Stop after about this many seconds, those of the last certificate included; where not one pass of the oracle
            fits into them, the weights come without a certificate, their objective infinite.
        n_jobs
            Threads of a pass over all examples and, in `BCFW` and `ExponentiatedGradient`, of steps; None is 1, -1 all.
        random_state
            Seed.
        verbose
            Print the trace as it grows.
        callback
            Called with the trace after each certificate; returning True stops the run.
        held_out
            Scores the weights of each certificate: the best are returned, and the run stops when patience ends.
        checkpoint
            Where to keep the state of the run, from which the same call goes on after it was killed; see
            `maxmargin.solvers.frame.checkpoint.Checkpoint`.
        """
        most = self.default_passes if max_passes is None else max_passes
        limits = Limits(tol, abs_tol, most, time_limit)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of a trace, not {quote(callback)}.")
        chosen = find_loss(loss or self.default_loss)
        self._check_loss(chosen)
        self._check_oracles(problem.like if isinstance(problem, Portions) else problem, chosen)
        options: ObjectiveOptions = {"sample_weight": sample_weight, "n_jobs": n_jobs, "loss": chosen}
        options |= {"l1_ratio": l1_ratio, "lower": lower, "upper": upper, "linear": linear, "prior": prior}
        objective = make_objective(problem, C, weak, **options)
        self._check_objective(objective)
        run = Run(objective, limits, start, random_state, held_out)
        observer = Observer(run, self.returns_last, verbose, callback)
        file = None if checkpoint is None else Checkpoint(checkpoint, self, run, observer, problem)
        if file is not None:
            file.resume()
        reports = before_compiling(partial(print, COMPILING, flush=True)) if verbose else nullcontext()
        with one_blas_thread, Interruptible(run), reports:
            with suppress(BrokenOff):
                self.follow(run, observer if file is None else file.observe)
            if not len(observer.trace):  # no pass of the oracle was finished
                observer(Certificate(run.w, np.inf, objective.dual_value(0.0, objective.origin)))
            result = observer.result()
        run.state = None  # which refers to the run: both are gone at once, not when Python finds them
        if file is not None:
            file.end(result.status)
        return result._replace(dual=None) if isinstance(objective, PartedObjective) else result

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        """Run until `observe`, which is shown every certificate, says to stop, or the objective is not finite."""
        for n_seen, certificate in enumerate(self.iterate(run), start=run.is_resumed):
            if not np.isfinite(certificate.primal) or np.isnan(certificate.dual):
                if n_seen == 0:
                    raise ValueError(
                        "The objective is not finite: features, costs, sample_weight, C or weights to start from are "
                        f"too large for {np.dtype(run.w.dtype).name}."
                    )
                run.verdict = Status.DIVERGED
                return
            if observe(certificate):
                return
            if run.is_slack(certificate):
                run.verdict = Status.INEXACT
                return
            if run.is_rounding(certificate):
                run.notes.append(
                    f"What is left of the gap may be rounding: {np.dtype(run.w.dtype).name} cannot certify more"
                    f"{', float64 can' if run.w.dtype == np.float32 else ''}."
                )
                run.verdict = Status.STALLED
                return

    def _check_loss(self, loss: BaseLoss) -> None:
        if not self.takes(loss):
            known = [known.name for known in (*NAMED.values(), RelaxedLoss()) if self.takes(known)]
            kind = loss.name if loss.margin or loss.is_smooth else f"{loss.name} (without margin)"
            raise ValueError(f"{self.known_as} minimises the {' or '.join(known)} loss, not the {kind} loss.")

    def _check_oracles(self, problem: AnyProblem, loss: BaseLoss) -> None:
        missing = sorted(name for name in self.oracles(loss) if not supports(ORACLES[name], problem))
        if missing:
            has = sorted(name for name, oracle in ORACLES.items() if supports(oracle, problem))
            raise TypeError(
                f"{self.known_as} needs the {' and '.join(missing)} oracle for the {loss.name} loss, which "
                f"{type(problem).__name__} does not have; it has: {', '.join(has) or 'none'}."
            )

    def _check_objective(self, objective: Objective) -> None:
        name = self.known_as
        if isinstance(objective, PartedObjective) and not self.takes_portions:
            raise ValueError(
                f"{name} steps from example to example, which must be in one place: on data in portions, take LBFGS, "
                "OneSlack or another solver of batches."
            )
        if not (objective.is_convex or self.takes_partial):
            raise ValueError(
                f"{name} needs the whole output of every example: CCCP(inner={self!r}) completes those known in part."
            )
        if objective.linear is not None and not self.takes_linear:
            raise ValueError(
                f"{name} needs true outputs: it takes none known in part, no soft labels, and no linear term."
            )
        if objective.l1 and not self.takes_l1:
            raise ValueError(f"{name} knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS.")
        if self.needs_regularization and objective.regularization == 0:
            raise ValueError(f"{name} needs regularization: C must be finite.")
        if not self.takes_bounds and objective.bounds.which.size:
            raise ValueError(f"{name} takes no bounds of the weights.")
        if not objective.layout.is_explicit and not self.takes_kernels:
            raise ValueError(
                f"{name} takes no kernels: use BCFW, ExcessiveGap or another solver of the dual, such as "
                "ExponentiatedGradient for the log loss."
            )


def make_objective(problem: AnyProblem, C: float, weak: Weak | None, **options: Unpack[ObjectiveOptions]) -> Objective:
    """That of a problem, of which less may be known than one true output each, or of portions of one."""
    if isinstance(problem, Portions):
        if options.get("sample_weight") is not None:
            raise ValueError("sample_weight must be None: portions of examples have weights of their own.")
        if weak is None:
            return PartedObjective(problem, C, **options)
        if not isinstance(weak.consistent, Portions) or weak.target is not None or weak.share is not None:
            raise ValueError("weak must be None, or hold portions of consistent outputs alone, as the problem does.")
        return PartedLatentObjective(weak.consistent, problem, C, **options)
    if weak is not None and weak.consistent is not None:
        make = LatentObjective if weak.share is None else TiltedObjective
        objective: Objective = make(weak, problem, C, **options)
    else:
        objective = Objective(problem, C, **options)
    if weak is not None and weak.target is not None:
        objective.pull_towards(weak.target)
    return objective
