"""Structural SVMs on your own structure."""

from __future__ import annotations

from typing import Any, Self, Unpack

from maxmargin.encode.custom import CustomEncoder
from maxmargin.estimators.base import StructuredModel
from maxmargin.estimators.families import SVM
from maxmargin.estimators.parameters import FitOptions, documents_fit, estimator, parameter


@estimator
class StructuredSVM(SVM, StructuredModel):
    """Structural SVM on a structure of your own, given by two or three Python methods.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    where score(y) = <w, features(x, y)>, and certifies how far from the optimum it can at most be. The method `score`
    is minus the mean cost of predictions: the higher the better, at most 0. A warm start needs the same objects X and
    y, unchanged. Threads gain little, as the methods are Python code.

    Attributes
    ----------
    coef_ : (d,) array
        The weights.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVM
    >>> class Ordinal:
    ...     "Grades 0 to 4: costs grow with the distance."
    ...     def features(self, x, y):
    ...         return np.append(y * x, np.arange(5) == y)
    ...     def cost(self, y_true, y):
    ...         return abs(y_true - y)
    ...     def outputs(self, x):
    ...         return range(5)
    >>> X = [-0.9, -0.8, -0.4, -0.3, 0.0, 0.1, 0.4, 0.5, 0.8, 0.9]
    >>> svm = StructuredSVM(Ordinal(), C=10.0, random_state=0).fit(X, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    >>> svm.predict([-1.0, 0.05, 1.0])
    [0, 2, 4]
    """

    model: Any = parameter(
        "object",
        "The structure, with the methods ``features(x, y)``, ``cost(y_true, y)`` and either ``argmax(x, w, "
        "y_true=None)`` or ``outputs(x)``; `maxmargin.CustomProblem` says what they return.",
        kw_only=False,
    )

    @documents_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **options: Unpack[FitOptions]) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : list of inputs of any kind
        y : list of outputs of any kind
        """
        self._fit(X, y, sample_weight, **options)
        self._trained_on = (X, y) if self.warm_start else None
        self._layout = self._layout if self.warm_start else None  # which holds the examples
        return self

    def _learn(self, X: Any, y: Any, **data: Any) -> tuple[CustomEncoder, Any]:
        last = getattr(self, "_trained_on", None) or (None, None)
        if self.warm_start and last[0] is X and last[1] is y and self._encoder.model is self.model:
            return self._encoder, self._layout[0]  # whose outputs are numbered
        return CustomEncoder.learn(X, y, model=self.model)
