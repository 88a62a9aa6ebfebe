"""The objective of outputs that are known in part: a difference of two convex functions.

    F(w) = (lambda/2) ||w||^2 - <q, w> + (1/n) sum_i weight_i {h_i(w) - k_i(w)},

where h_i is the loss over all outputs, with their costs, and k_i that over the outputs that are *consistent* with what
is known, which cost nothing. As k_i is convex, its tangent is below it: with the mean parts m_i where k_i is attained
at v, the *completion* at v,

    F_v(w) = (lambda/2) ||w||^2 - <q + p, w> + (1/n) sum_i weight_i {h_i(w) - score_i(y_i)} - e,
    p = (1/n) sum_i weight_i B_i (m_i - s_i(y_i)),    e = (1/n) sum_i weight_i entropy_i(m_i),

is nowhere below F, and F_v(v) = F(v): a *majorant*, which is an ordinary objective with a linear term. Where D is a
lower bound of its optimum, v is stationary up to F(v) - D, and no further from the optimum of F_v than
sqrt(2 (F(v) - D) / lambda). This tells nothing of other weights: F may have many stationary points.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.losses import BaseLoss
from maxmargin.persist.registry import register_state
from maxmargin.problem import ORACLES, AnyProblem
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.objective.active_sets import ActiveSets
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.loss_pass import Evaluation
from maxmargin.solvers.objective.objective_options import ObjectiveOptions, PassOptions
from maxmargin.supervision.weak import Weak


@register_state
class Completion(NamedTuple):
    """What the consistent outputs attain at some weights; averages over the examples."""

    loss: float  # of the completion, less the true outputs' scores; rounded down
    entropy: float  # e, rounded up
    linear: np.ndarray  # p; empty if it was not asked for
    rounding: float
    n_wrong: int


class LatentObjective(Objective):
    """An objective of outputs that are known in part.

    Parameters
    ----------
    weak
        What is known; `weak.consistent` is not None.
    problem, **options
        As of `Objective`.
    """

    is_convex = False

    def __init__(self, weak: Weak, problem: AnyProblem, C: float, **options: Unpack[ObjectiveOptions]) -> None:
        super().__init__(problem, C, **options)
        self.is_weak = weak.is_weak
        loss = self.loss.with_margin(False)
        if not (loss.oracle and (loss.is_smooth or loss.is_maximum)):
            raise ValueError(f"Outputs that are known in part need the hinge or log loss, not the {loss.name} loss.")
        if not supports(ORACLES[loss.oracle], weak.consistent):
            name = type(weak.consistent).__name__
            raise TypeError(
                f"Outputs that are known in part need the {loss.oracle} oracle, which {name} does not have."
            )
        self.consistent = Objective(weak.consistent, C, self.weight, self.n_jobs, loss=loss)
        truths = self.consistent.problem.truth, self.problem.truth
        if not all(map(np.array_equal, *truths)):
            raise ValueError("weak.consistent must have the true outputs of the problem, which are among its own.")

    def prepare(self, dtype: DTypeLike) -> LatentObjective:
        other: Any = super().prepare(dtype)
        other.consistent = self.consistent.prepare(dtype)
        return other

    @property
    def can_prepare(self) -> bool:
        return super().can_prepare and self.consistent.can_prepare

    def with_loss(self, loss: BaseLoss) -> LatentObjective:
        other: Any = super().with_loss(loss)
        other.consistent = self.consistent.with_loss(loss.with_margin(False))
        return other

    def with_weight(self, weight: np.ndarray) -> LatentObjective:
        """The same objective with other weights of the examples."""
        other = copy(self)
        other.consistent = copy(self.consistent)
        other.weight = other.consistent.weight = weight
        return other

    def majorant(self, linear: np.ndarray | None) -> Objective:
        """The convex objective with a linear term p besides its own; without it, that of the true outputs."""
        other = Objective.__new__(Objective)
        terms = [term for term in (self.linear, linear) if term is not None]
        vars(other).update(vars(self), linear=sum(terms) if terms else None)
        return other

    def complete(
        self, w: np.ndarray, outputs: Blocks | None = None, sets: ActiveSets | None = None, with_gradient: bool = True
    ) -> Completion:
        """The completion at w, by one pass over the consistent outputs; `outputs` are kept, none worse than `sets`."""
        consistent = self._on_its_clock()
        found = consistent.evaluate(w, outputs=outputs, sets=sets, with_gradient=with_gradient)
        loss = found.value - consistent.primal(consistent.in_dtype(w), 0.0)
        return Completion(
            loss - found.slack - 2 * found.rounding,
            found.cost + found.entropy + 2 * found.rounding,
            found.gradient,
            found.rounding,
            0 if consistent.is_bounded else found.n_wrong,
        )

    def losses(self, w: np.ndarray) -> np.ndarray:
        """(n,) h_i - k_i, times the weights of the examples."""
        known = self._on_its_clock().evaluate(w, point=self.true_means(), with_gradient=False)
        return self.n * (super().evaluate(w, point=self.true_means(), with_gradient=False).gaps - known.gaps)

    def _on_its_clock(self) -> Objective:
        """That of the consistent outputs, whose passes end when the others do."""
        self.consistent.runner.clock = self.runner.clock
        return self.consistent

    def evaluate(self, w: np.ndarray, *, known: Completion | None = None, **asked: Unpack[PassOptions]) -> Evaluation:
        """F(w) and its gradient, by a pass over all outputs and one over the consistent ones, unless that is known.

        The dual point is one of the majorant at w.
        """
        found = super().evaluate(w, **asked)
        return subtract(found, known or self.complete(w, with_gradient=asked.get("with_gradient", True)))


def subtract(found: Evaluation, known: Completion) -> Evaluation:
    """What is found over all outputs, less what the consistent ones attain.

    Where the oracle of the latter is not exact, the completion may not be the best; its majorant is one all the same.
    """
    value = found.value - known.loss
    return found._replace(
        value=value,
        hard=value,
        gradient=found.gradient - known.linear,
        entropy=found.entropy - known.entropy,
        rounding=found.rounding + known.rounding,
        n_wrong=found.n_wrong + known.n_wrong,
    )
