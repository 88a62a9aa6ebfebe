"""Models of your own structure: given by two or three Python methods, or by all functions of a problem."""

from __future__ import annotations

from typing import Any, Self, Unpack

from maxmargin.encode.custom_encoder import CustomEncoder, ProblemEncoder
from maxmargin.estimators.foundation.arguments import MaxMargin
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.predictions import Unavailable, log_likelihood, sample
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.parameters import parameter
from maxmargin.supervision.weak import Learned


@estimator
class OwnStructure(StructuredModel):
    """What models of your own structures share: of other objects X and y they only know that these are others."""

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : list of inputs of any kind
        y : list of outputs of any kind, or of what is known of them where the model says what agrees with it
        """
        self._fit(X, y, sample_weight, options)
        if not self.warm_start:
            vars(self).update(_trained_on=None, _dual_shape=None)  # which hold the examples
        return self

    def _learn(self, X: object, y: object, **data: object) -> Learned:
        last: Any = getattr(self, "_trained_on", None) or (None, None, None)
        if self.warm_start and last[0] is X and last[1] is y and last[2].encoder.is_of(**self._arguments()):
            return last[2]  # whose outputs are numbered
        learned = super()._learn(X, y, **data)
        self._trained_on: Any = (X, y, learned)
        return learned


@estimator
class StructuredSVM(MaxMargin, OwnStructure):
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

    _encoder_type = CustomEncoder

    decision_function = Unavailable("the parts of a structure of your own are its features")
    predict_marginals = Unavailable("the parts of a structure of your own are its features")


@estimator
class ProblemModel(MaxMargin, OwnStructure):
    """A model around any problem of your own: a class, or a compiled NamedTuple, with the functions of a problem.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. The method `score` is minus the mean cost of predictions: the higher the better, at most
    0. `predict_topk` needs the top-K oracle of the problem; the log loss, `predict_marginals` and `log_likelihood` its
    exp oracle; `sample` its sample oracle; `decision_function` its max-marginals. A warm start needs the same objects X
    and y, unchanged.

    Attributes
    ----------
    coef_
        As that of `StructuredSVM`.

    Examples
    --------
    >>> from maxmargin import ProblemModel
    >>> from maxmargin.testing import toy_chains
    >>> def make_problem(X, y=None):  # a problem of n examples, here some chains
    ...     return toy_chains(len(X))
    >>> model = ProblemModel(make_problem, random_state=0).fit(range(8), range(8))
    >>> model.status_.name
    'OPTIMAL'
    >>> len(model.predict(range(8)))
    8
    """

    make_problem: Any = parameter(
        "callable",
        "A function of X and y that returns the problem of these examples, by the contract of `maxmargin.problem`, or "
        "a pair of it and a `maxmargin.supervision.weak.Weak` where y holds less than outputs; it is called without y "
        "to predict.",
        kw_only=False,
    )
    decode: Any = parameter(
        "callable",
        "A function of a problem, the number of an example and a row of integers that returns the output as you know "
        "it; by default it is that row.",
        default=None,
    )
    loss: Any = parameter(
        '{"hinge", "squared_hinge", "smooth_hinge", "log"} or Loss',
        'The hinge loss of SVMs, a smoothed one such as ``Loss("l2", level=0.1)``, or the log loss of CRFs.',
        default="hinge",
    )

    _encoder_type = ProblemEncoder

    log_likelihood = log_likelihood

    sample = sample
