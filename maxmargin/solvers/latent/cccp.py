"""The concave-convex procedure (Yuille, Rangarajan 2003) for outputs that are known in part (Yu, Joachims 2009).

In each round the outputs are completed at the weights w_t: by the best of the consistent outputs for the hinge loss, by
their mean parts for smooth losses, of which that of the log loss is a step of EM. Any solver then minimises the
majorant that touches the objective there (`latent_objective`), from where it ended in the last round: as only its
linear term has changed, dual points stay valid, and weights move by the change of q/lambda. They move less where new
completions take over the weights of old ones in active sets. The next objective is no higher, as it is below the
majorant, which a round minimises until it has gained half of what it can gain at most,

    F(w_t) - F(w_t+1) >= F(w_t) - F_t(w_t+1) >= {F(w_t) - D_t} / 2,

or until F(w_t) - D_t, up to which w_t is stationary, is as small as was asked for: so many rounds end it. Dual points
that smooth losses tell at w_t+1, or that a solver keeps, are points of the next majorant, too, and certify w_t+1 before
it is minimised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.checks import check_cost, check_flag
from maxmargin.losses import BaseLoss
from maxmargin.problem import AnyProblem
from maxmargin.solvers.automatic.auto import Auto
from maxmargin.solvers.frame.run import Result, Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.latent.cccp_rounds import Rounds
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.latent_objective import LatentObjective
from maxmargin.trace import Certificate, Status
from maxmargin.wording import quote


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

    takes_partial = resumes = True

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

    def solve(self, problem: AnyProblem, C: float = 1.0, sample_weight: Any = None, **options: Any) -> Result:
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
        state = run.take_up(lambda: State(at=rounds.begin()))
        if not run.is_resumed:
            yield rounds.show(state.at)
        while True:
            at, found = state.at, rounds.minimise_at(state.at)
            at = at._replace(dual=max(at.dual, found.dual - at.known.entropy), point=found.point, n_changed=0.0)
            if at.gap <= run.target(at.value):  # which a pass that is broken off must not lose
                yield rounds.show(at)
            moved = rounds.look(found.w, found.point, at.completions)
            state.at = moved if moved.value < at.value else at
            if state.at is at and not run.must_stop:
                run.verdict = found.verdict or Status.STALLED
            yield rounds.show(state.at)
