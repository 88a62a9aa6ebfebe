"""Multiclass SVMs of Crammer and Singer."""

from __future__ import annotations

from copy import copy
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.drawings.label_drawings import CLASSES
from maxmargin.encode.class_encoder import MulticlassEncoder, are_partial, read_classes
from maxmargin.encode.inputs.example_checks import check_truths
from maxmargin.estimators.foundation.arguments import MaxMargin
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, documents_prediction, estimator
from maxmargin.estimators.foundation.row_classifier import RowClassifier
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.parameters import parameter
from maxmargin.problem import AnyProblem
from maxmargin.supervision.costs import class_weights
from maxmargin.supervision.weak import Learned


@estimator
class MulticlassSVM(MaxMargin, RowClassifier):
    """Multiclass SVM of Crammer and Singer: all classes are trained together, with costs of your own if you like.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    the objective of ``LinearSVC(multi_class="crammer_singer")`` at the same C divided by n C, and certifies how far
    from the optimum it can at most be.

    Attributes
    ----------
    classes_ : (L,) array
        The classes, sorted.
    coef_ : (L, F) array
        The weights of each class.
    intercept_ : (L,) array
        The constant of each class, zero without `fit_intercept`.
    n_features_in_ : int
        The number of features F.
    feature_names_in_ : (F,) array
        The names of the columns, if X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVM(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.decision_function(X).shape
    (True, (150, 3))
    """

    cost: Any = parameter(
        "(L, L) array",
        "Cost of predicting the column's class where the row's is true, in the order of `classes_`; by default 1 for "
        "every wrong class.",
        default=None,
    )
    class_weight: Any = parameter('dict or "balanced"', "Weights of the examples' losses by their class.", default=None)

    _encoder_type = MulticlassEncoder
    _drawing = CLASSES

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : (n, F) array or sparse matrix
        y
            (n,) classes; in place of one None where it is unknown, a set of classes, a dictionary of their
            probabilities, or a row of those of all classes, in the order of `classes_`.
        """
        return self._fit(X, y, sample_weight, options)

    def _learn(self, X: object, y: object, **data: Any) -> Learned:
        if not are_partial(y):
            return super()._learn(X, y, **data)
        model = copy(self)  # a failed fit changes nothing
        rows = model._check_rows(X)
        check_truths(y, rows.shape[0], "one class per example", "example")
        return StructuredModel._learn(self, rows, y, feature_names=vars(model).get("feature_names_in_"), **data)

    def _check_targets(self, y: np.ndarray) -> None:
        from sklearn.utils.multiclass import check_classification_targets  # slow to import

        check_classification_targets(y)

    def _sample_weight(self, sample_weight: ArrayLike | None, problem: AnyProblem, y: Any) -> np.ndarray | None:
        weights = super()._sample_weight(sample_weight, problem, y)
        if self.class_weight is None or y is None:
            return weights
        known = read_classes(y if are_partial(y) else np.ravel(y))
        counts = known.counts(np.ones(len(known.labels)))
        by_class = class_weights(self.class_weight, known.classes, counts)
        of_examples = by_class[known.labels] if known.allowed is None else known.evenly() @ by_class
        return (1.0 if weights is None else weights) * of_examples

    @documents_prediction
    def decision_function(self, X: object, *, allowed: object = None) -> np.ndarray:
        """The scores of the classes; for two classes, as in scikit-learn, how far the second is above the first.

        Returns
        -------
        (n, L) array, or (n,) for two classes
        """
        table = super().decision_function(X, allowed=allowed)
        return table[:, 1] - table[:, 0] if table.shape[1] == 2 else table
