"""What models of graphs share: exact where treewidths allow, relaxed to the local polytope elsewhere or if asked."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import inference
from maxmargin.checks import check_choice
from maxmargin.encode.inputs.example_checks import locate
from maxmargin.estimators.foundation.families import SVM, CostedCRF, WithMarginals, WithMaxMarginals
from maxmargin.estimators.foundation.parameters import estimator, parameter
from maxmargin.losses import NAMED, Loss, RelaxedLoss, find_loss
from maxmargin.problem import exp_oracle, true_outputs
from maxmargin.runtime import supports
from maxmargin.solvers import Solver, all_solvers, find_solver
from maxmargin.structures.graphs.elimination_plan import NONE, TreewidthError


class RelaxableModel(WithMaxMarginals, WithMarginals):
    """A model of graphs."""

    _relaxed: ClassVar[Loss]  # what loss="relaxed" stands for
    _losses: ClassVar[tuple[str, ...]]

    def _find_loss(self) -> Loss:
        loss = getattr(self, "loss", None)
        if isinstance(loss, Loss):
            return loss
        check_choice("loss", loss, self._losses)
        if loss == "relaxed" or (loss == "auto" and self._has_solver_of_relaxed()):
            return self._relaxed
        return find_loss(self._loss if loss == "auto" else loss)

    def _find_solver(self, loss: Loss) -> Solver:
        is_relaxed = loss.name == "relaxed"
        if self._has_solver_of_relaxed() and not is_relaxed:
            raise ValueError(f'{self.solver} minimises relaxed losses: set loss="relaxed".')
        return find_solver("idal" if self.solver == "auto" and is_relaxed else self.solver, loss)

    def _has_solver_of_relaxed(self) -> bool:
        """Whether the solver is one of relaxed losses alone."""
        solver = all_solvers().get(self.solver) if isinstance(self.solver, str) else self.solver
        return isinstance(solver, Solver) and solver.takes(self._relaxed)

    def _method(self, problem: Any) -> tuple[Solver, Loss]:
        if getattr(self, "loss", None) != "auto" or supports(exp_oracle, problem):
            return super()._method(problem)
        warnings.warn(
            "Sums over all labellings are out of reach, as the treewidth of the graphs is too large: a relaxed loss is "
            "minimised, of which even the optimum can predict worse than a model without edges. Compare with one, join "
            'less, or set loss="relaxed" if that is what you want.',
            UserWarning,
            stacklevel=4,  # of who called fit
        )
        relaxed = self._relaxed if getattr(self, "cost", None) is None else replace(self._relaxed, margin=True)
        return self._find_solver(relaxed), relaxed

    def predict_marginals(self, X: Any, *, return_exact: bool = False) -> Any:
        """The probabilities of labels of nodes under p(y) ~ exp(score(y)), where the treewidth of a graph allows.

        Elsewhere they are those of a relaxation: the mean parts of the local polytope of the highest score plus Gini's
        entropy of nodes and edges.

        Parameters
        ----------
        X : as in `fit`
        return_exact : whether to return, too, which of them are exact

        Returns
        -------
        list of (V_i, L) arrays, in the order of `classes_`; with `return_exact`, a pair of it and an (n,) array of bool
        """
        problem = self._problem(X)
        means, is_exact = inference.known_marginals(problem, self._w, self.n_jobs)
        tables = self._encoder.arrange(problem, means)
        return (tables, is_exact) if return_exact else tables

    def _predict_topk(self, problem: Any, k: int) -> list[tuple[Any, np.ndarray]]:
        check_treewidths(problem, "predict_topk")
        return super()._predict_topk(problem, k)

    def _decision_function(self, problem: Any) -> Any:
        check_treewidths(problem, "decision_function")
        return super()._decision_function(problem)


@estimator
class RelaxableSVM(SVM):
    """What structural SVMs on graphs have in common."""

    _relaxed: ClassVar[Loss] = RelaxedLoss()
    _losses: ClassVar[tuple[str, ...]] = (*NAMED, "relaxed")

    loss: Any = parameter(
        '{"hinge", "squared_hinge", "smooth_hinge", "relaxed"} or Loss',
        "The hinge loss above, a smoothed one, or a relaxed one, whose maximum is over the local polytope, for `IDAL`.",
        default="hinge",
    )


@estimator
class RelaxableCRF(CostedCRF, RelaxableModel):
    """What conditional random fields on graphs have in common."""

    _relaxed: ClassVar[Loss] = RelaxedLoss(margin=False)
    _losses: ClassVar[tuple[str, ...]] = ("auto", "log", "relaxed")

    loss: Any = parameter(
        '{"auto", "log", "relaxed"} or Loss',
        'The log loss above, its relaxation ``RelaxedLoss(margin=False)``, or, "auto", whichever the treewidth of the '
        "graphs allows and the solver minimises.",
        default="auto",
    )
    solver: Any = "auto"

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Log p(y_i | x_i) of the labels of each example, where the treewidths of graphs allow.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        (n,) array
        """
        problem = self._problem_with_truth(X, y)
        check_treewidths(problem, "log_likelihood")
        labels, starts = true_outputs(problem)
        if (labels < 0).any():
            example, place = locate(np.flatnonzero(labels < 0)[0], starts)
            raise ValueError(f"y[{example}] contains a label that was not seen in fit, at node {place}.")
        return inference.log_likelihoods(problem, self._w, self.n_jobs)


def check_treewidths(problem: Any, method: str) -> None:
    """Raise unless all treewidths are small enough for exact sums and best outputs."""
    if not supports(exp_oracle, problem):
        i = int(np.argmax(problem.plan.which == NONE))
        raise TreewidthError(f"{method} needs graphs of small treewidth, but that of X[{i}] is too large.")
