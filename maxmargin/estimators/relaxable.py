"""What models of graphs share: exact where treewidths allow, relaxed to the local polytope elsewhere or if asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin.estimators.families import CRF, SVM, WithMarginals, WithMaxMarginals
from maxmargin.estimators.parameters import estimator, parameter
from maxmargin.losses import Loss, RelaxedLoss, find_loss
from maxmargin.problem import exp_oracle
from maxmargin.runtime import supports
from maxmargin.solvers import Solver, find_solver
from maxmargin.structures.elimination_plan import NONE, TreewidthError


class RelaxableModel(WithMaxMarginals, WithMarginals):
    """A model of graphs."""

    def _find_loss(self) -> Loss:
        loss = getattr(self, "loss", self._loss)
        if isinstance(loss, Loss) or loss not in ("auto", "relaxed"):
            return find_loss(loss)
        return find_loss(self._loss) if loss == "auto" else RelaxedLoss(margin=self._loss == "hinge")

    def _find_solver(self, loss: Loss) -> Solver:
        return find_solver("idal" if self.solver == "auto" and loss.name == "relaxed" else self.solver, loss)

    def _method(self, problem: Any) -> tuple[Solver, Loss]:
        if getattr(self, "loss", None) != "auto" or supports(exp_oracle, problem):
            return super()._method(problem)
        loss = RelaxedLoss(margin=False, entropy="oriented_trees")
        return self._find_solver(loss), loss

    def _predict_marginals(self, problem: Any) -> Any:
        return self._encoder.arrange(problem, inference.known_marginals(problem, self._w, self.n_jobs)[0])

    def _predict_topk(self, problem: Any, k: int) -> list[tuple[Any, np.ndarray]]:
        check_treewidths(problem, "predict_topk")
        return super()._predict_topk(problem, k)

    def _decision_function(self, problem: Any) -> Any:
        check_treewidths(problem, "decision_function")
        return super()._decision_function(problem)


@estimator
class RelaxableSVM(SVM):
    """What structural SVMs on graphs have in common."""

    loss: Any = parameter(
        '{"hinge", "smooth_hinge", "relaxed"} or Loss',
        "The hinge loss above, a smoothed one, or a relaxed one, whose maximum is over the local polytope, for `IDAL`.",
        default="hinge",
    )


@estimator
class RelaxableCRF(CRF):
    """What conditional random fields on graphs have in common."""

    loss: Any = parameter(
        '{"auto", "log", "relaxed"} or Loss',
        'The log loss above, its relaxation, or, "auto", whichever the treewidth of the graphs allows.',
        default="auto",
    )
    solver: Any = "auto"


def check_treewidths(problem: Any, method: str) -> None:
    """Raise unless all treewidths are small enough for exact sums and best outputs."""
    if not supports(exp_oracle, problem):
        i = int(np.argmax(problem.plan.which == NONE))
        raise TreewidthError(f"{method} needs graphs of small treewidth, but that of X[{i}] is too large.")
