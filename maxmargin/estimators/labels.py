"""What models of chains and of trees share: one label per position, with scores of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin.encode.rows import locate
from maxmargin.estimators.base import CRF, SVM, ArrayModel
from maxmargin.estimators.parameters import estimator, parameter
from maxmargin.runtime.passes import Blocks


@estimator
class LabelModel(ArrayModel):
    """A model of labels: its predictions besides the best labellings."""

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Max-marginals: the score of the best labelling that has label l at position t.

        The label of the highest one at each position is that of `predict`, up to ties; differences say how much score
        it takes to change it.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any

        Returns
        -------
        list of (T_i, L) arrays, columns in the order of `classes_`
        """
        return self._decision_function(self._problem(X))

    def _decision_function(self, problem: Any) -> list[np.ndarray]:
        return self._by_position(inference.best_through_parts(problem, self._w, self.n_jobs), problem)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """The probabilities of the labels at each position.

        They are those of p(y) ~ exp(score(y)): estimates of probabilities if the model was trained as a CRF.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any

        Returns
        -------
        list of (T_i, L) arrays, columns in the order of `classes_`
        """
        return self._predict_marginals(self._problem(X))

    def _predict_marginals(self, problem: Any) -> list[np.ndarray]:
        means, _ = inference.marginals(problem, self._w, self.n_jobs)
        return self._by_position(means, problem)

    def _by_position(self, parts: Blocks, problem: Any) -> list[np.ndarray]:
        """The (T_i, L) parts of positions and labels, which come first."""
        n_labels = len(self.classes_)
        return [
            parts.values[start : start + length * n_labels].reshape(length, n_labels)
            for start, length in zip(parts.start[:-1], np.diff(problem.offsets), strict=True)
        ]


@estimator
class LabelSVM(SVM):
    """What structural SVMs on labels have in common."""

    cost: Any = parameter(
        '{"hamming", "normalized_hamming"} or (L, L) array',
        "Cost of a labelling: the number of wrong labels, the same divided by the number of positions, or the sum of "
        "the entries [true label, predicted label] of a matrix in the order of `classes_`.",
        default="hamming",
    )
    class_weight: Any = parameter('dict or "balanced"', "Factors of the cost by true label.", default=None)
    bounds: Any = parameter(
        "dict",
        'Bounds of weights by the names of `coef_`, such as ``{"transitions": (0, None)}``: pairs of a lower and an '
        "upper bound, each None, a number or an array like that part of the weights.",
        default=None,
    )


@estimator
class LabelCRF(CRF, LabelModel):
    """What conditional random fields of labels have in common."""

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Log p(y_i | x_i) of a labelling of each example.

        Parameters
        ----------
        X, y : as in `fit`, with lengths where there are any

        Returns
        -------
        (n,) array
        """
        return self._log_likelihood(self._problem_with_truth(X, y))

    def _log_likelihood(self, problem: Any) -> np.ndarray:
        is_unknown = problem.labels < 0
        if is_unknown.any():
            example, place = locate(np.flatnonzero(is_unknown)[0], problem.offsets)
            raise ValueError(f"y[{example}] contains a label that was not seen in fit, at position {place}.")
        _, log_partition = inference.marginals(problem, self._w, self.n_jobs)
        return inference.scores_of(problem, self._w, self.n_jobs) - log_partition
