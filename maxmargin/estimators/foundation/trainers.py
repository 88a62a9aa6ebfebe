"""What models minimise, and by which solver: the parts that classes of models hold for their training."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maxmargin.checks import check_choice
from maxmargin.features import layout_of
from maxmargin.losses import NAMED, BaseLoss, RelaxedLoss, find_loss
from maxmargin.problem import exp_oracle
from maxmargin.runtime import supports
from maxmargin.solvers import Solver, all_solvers, find_solver
from maxmargin.solvers.automatic.auto import Auto
from maxmargin.solvers.latent.cccp import CCCP
from maxmargin.supervision.weak import Weak

if TYPE_CHECKING:
    from maxmargin.estimators.foundation.structured_model import StructuredModel


@dataclass(frozen=True)
class Trainer:
    """That of structural SVMs, which have an argument `loss`; all methods read the arguments of a model."""

    def find_loss(self, model: StructuredModel) -> BaseLoss:
        """The loss that it asks for."""
        return find_loss(model.loss)

    def find_solver(self, model: StructuredModel, loss: BaseLoss) -> Solver:
        """The solver that minimises a loss."""
        return find_solver(model.solver, loss)

    def choose(self, model: StructuredModel, problem: object) -> tuple[Solver, BaseLoss]:
        """The solver for a problem, and the loss that it minimises."""
        loss = self.find_loss(model)
        return self.find_solver(model, loss), loss

    def complete(self, solver: Solver, loss: BaseLoss, weak: Weak | None, problem: object) -> Solver:
        """The solver where outputs are known in part: the same, if it takes them, or one that completes them for it."""
        if weak is None or weak.consistent is None or solver.takes_partial:
            return solver
        if isinstance(solver, Auto) and loss.is_smooth and layout_of(problem).is_explicit:
            return solver  # which is L-BFGS
        return CCCP(inner=solver)

    def check_data(self, model: StructuredModel, data: Mapping[str, object]) -> None:
        """Raise where training data come with something that the loss has no use for."""


@dataclass(frozen=True)
class LikelihoodTrainer(Trainer):
    """That of conditional random fields; with a cost, those of softmax-margin."""

    def find_loss(self, model: StructuredModel) -> BaseLoss:
        return with_margin(find_loss("log"), model)

    def check_data(self, model: StructuredModel, data: Mapping[str, object]) -> None:
        check_weights(model, data)


@dataclass(frozen=True)
class RelaxableTrainer(Trainer):
    """That of structural SVMs on graphs: exact where treewidths allow, relaxed to the local polytope if asked."""

    relaxed: BaseLoss = RelaxedLoss()  # noqa: RUF009  (frozen)
    names: tuple[str, ...] = (*NAMED, "relaxed")
    default: str = "hinge"  # what "auto" stands for where it can be had

    def find_loss(self, model: StructuredModel) -> BaseLoss:
        if isinstance(model.loss, BaseLoss):
            return model.loss
        check_choice("loss", model.loss, self.names)
        if model.loss == "relaxed" or (model.loss == "auto" and self._is_of_relaxed(model.solver)):
            return self.relaxed
        return find_loss(self.default if model.loss == "auto" else model.loss)

    def find_solver(self, model: StructuredModel, loss: BaseLoss) -> Solver:
        is_relaxed = loss.name == "relaxed"
        if self._is_of_relaxed(model.solver) and not is_relaxed:
            raise ValueError(f'{model.solver} minimises relaxed losses: set loss="relaxed".')
        return find_solver("idal" if model.solver == "auto" and is_relaxed else model.solver, loss)

    def complete(self, solver: Solver, loss: BaseLoss, weak: Weak | None, problem: object) -> Solver:
        if loss.name == "relaxed" and weak is not None and weak.consistent is not None:
            raise ValueError(
                "y has None, or a set, in place of labels, which the relaxed loss does not take: give labels or "
                "probabilities, join less, so that sums over all labellings are in reach, or train a structural SVM "
                "with the hinge loss, which takes them on any graph."
            )
        return super().complete(solver, loss, weak, problem)

    def _is_of_relaxed(self, solver: str | Solver) -> bool:
        """Whether a solver is one of relaxed losses alone."""
        chosen = all_solvers().get(solver) if isinstance(solver, str) else solver
        return isinstance(chosen, Solver) and chosen.takes(self.relaxed)


@dataclass(frozen=True)
class RelaxableLikelihoodTrainer(RelaxableTrainer):
    """That of conditional random fields on graphs: relaxed, too, where treewidths do not allow sums."""

    relaxed: BaseLoss = RelaxedLoss(margin=False)  # noqa: RUF009  (frozen)
    names: tuple[str, ...] = ("auto", "log", "relaxed")
    default: str = "log"

    def find_loss(self, model: StructuredModel) -> BaseLoss:
        return with_margin(super().find_loss(model), model)

    def check_data(self, model: StructuredModel, data: Mapping[str, object]) -> None:
        check_weights(model, data)

    def choose(self, model: StructuredModel, problem: object) -> tuple[Solver, BaseLoss]:
        if model.loss != "auto" or supports(exp_oracle, problem):
            return super().choose(model, problem)
        warnings.warn(
            "Sums over all labellings are out of reach, as the treewidth of the graphs is too large: a relaxed loss is "
            "minimised, of which even the optimum can predict worse than a model without edges. Compare with one, join "
            'less, or set loss="relaxed" if that is what you want.',
            UserWarning,
            stacklevel=5,  # of who called fit
        )
        relaxed = with_margin(self.relaxed, model)
        return self.find_solver(model, relaxed), relaxed


def with_margin(loss: BaseLoss, model: StructuredModel) -> BaseLoss:
    """A loss that has the costs of a model in it, if it has any."""
    return loss if getattr(model, "cost", None) is None else loss.with_margin(True)


def check_weights(model: StructuredModel, data: Mapping[str, object]) -> None:
    """Raise where there are weights of costs, and no cost."""
    weights = {"class_weight": getattr(model, "class_weight", None), **data}
    given = [name for name, value in weights.items() if name.endswith(("_weight", "_cost")) and value is not None]
    if getattr(model, "cost", None) is None and given:
        does = "weighs" if given[0].endswith("_weight") else "is part of"
        raise ValueError(f'{given[0]} {does} the cost of wrong labels: set cost, to "hamming" for example.')
