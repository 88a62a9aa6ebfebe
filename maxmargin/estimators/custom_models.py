"""Models of your own structure: given by two or three Python methods, or by all functions of a problem."""

from __future__ import annotations

from typing import Any, ClassVar, Self, Unpack

import numpy as np

from maxmargin import inference
from maxmargin.checks import check_count
from maxmargin.encode.custom_encoder import CustomEncoder, ProblemEncoder
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.estimators.foundation.families import SVM, WithMarginals, WithMaxMarginals
from maxmargin.estimators.foundation.parameters import FitOptions, documents_fit, estimator, parameter
from maxmargin.estimators.foundation.structured_model import StructuredModel, as_seed
from maxmargin.problem import exp_oracle, max_marginals, sample_oracle, topk_oracle
from maxmargin.runtime.dispatch import supports


class OwnStructure(StructuredModel):
    """What models of your own structures share: of other objects X and y they only know that these are others."""

    _encoder_type: ClassVar[Any]

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

    def _learn(self, X: Any, y: Any, **data: Any) -> tuple[Encoder, Any]:
        last = getattr(self, "_trained_on", None) or (None, None)
        structure = self._structure()
        if self.warm_start and last[0] is X and last[1] is y and self._encoder.is_of(**structure):
            return self._encoder, self._layout[0]  # whose outputs are numbered
        return self._encoder_type.learn(X, y, **structure)

    def _structure(self) -> dict[str, Any]:
        """The arguments that say what the structure is."""
        raise NotImplementedError

    def _predict_topk(self, problem: Any, k: int) -> list[tuple[Any, np.ndarray]]:
        if not supports(topk_oracle, problem):
            needed = "a method k_best or outputs of the model, or topk_oracle of a problem"
            raise TypeError(f"predict_topk needs the K best outputs: {needed}.")
        return super()._predict_topk(problem, k)


def check_has(problem: Any, function: Any, method: str) -> None:
    """Raise unless a problem implements what a method needs."""
    if not supports(function, problem):
        raise TypeError(f"{method} needs {function.__name__} of the problem, which {type(problem).__name__} lacks.")


@estimator
class StructuredSVM(SVM, OwnStructure):
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

    def _structure(self) -> dict[str, Any]:
        return {"model": self.model}


@estimator
class ProblemModel(SVM, WithMaxMarginals, WithMarginals, OwnStructure):
    """A model around any problem of your own: a class, or a compiled NamedTuple, with the functions of a problem.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. The method `score` is minus the mean cost of predictions: the higher the better, at most
    0. `predict_topk` needs the top-K oracle of the problem; the log loss, `predict_marginals` and `log_likelihood` its
    exp oracle; `sample` its sample oracle; `decision_function` its max-marginals. A warm start needs the same objects X
    and y, unchanged.

    Attributes
    ----------
    coef_ : (d,) array
        The weights.

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
        "A function of X and y that returns the problem of these examples, by the contract of `maxmargin.problem`; "
        "it is called without y to predict.",
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

    def _structure(self) -> dict[str, Any]:
        return {"make_problem": self.make_problem, "decode_row": self.decode}

    def _predict_marginals(self, problem: Any) -> Any:
        check_has(problem, exp_oracle, "predict_marginals")
        return super()._predict_marginals(problem)

    def _decision_function(self, problem: Any) -> Any:
        check_has(problem, max_marginals, "decision_function")
        return super()._decision_function(problem)

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Log p(y_i | x_i) of an output of each example under p(y) ~ exp(score(y)).

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        (n,) array
        """
        problem = self._problem_with_truth(X, y)
        check_has(problem, exp_oracle, "log_likelihood")
        return inference.log_likelihoods(problem, self._w, self.n_jobs)

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> list[Any]:
        """Independent outputs of each example, drawn from p(y) ~ exp(score(y)).

        Parameters
        ----------
        X : as in `fit`
        n_samples : the number of outputs of each example
        random_state : int, RandomState or Generator, default=None
            Seed of the draws.

        Returns
        -------
        list with a list or array of n_samples outputs for each example
        """
        check_count("n_samples", n_samples)
        problem = self._problem(X)
        check_has(problem, sample_oracle, "sample")
        rng = np.random.default_rng(as_seed(random_state))
        drawn = inference.samples(problem, self._w, n_samples, rng, self.n_jobs)
        return [self._encoder.decode(problem, i, rows) for i, rows in enumerate(drawn)]
