"""Families of estimators: of arrays, of rows and of labels, with marginals and max-marginals, SVMs and CRFs."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from maxmargin import inference
from maxmargin.checks import check_choice, check_unmasked
from maxmargin.encode.inputs.example_checks import check_last_characters, check_sparse, locate
from maxmargin.estimators.foundation.parameters import estimator, parameter
from maxmargin.estimators.foundation.structured_model import StructuredModel, Task
from maxmargin.losses import Loss
from maxmargin.sklearn_contract import check_is_fitted
from maxmargin.solvers import find_solver
from maxmargin.structures.derived.rescaled import rescaled


@estimator
class ArrayModel(StructuredModel):
    """Base of models of the library's structures, whose features are arrays."""

    dtype: Any = parameter(
        '{"float32", "float64"}',
        "Precision of training; certificates are summed in float64 in either.",
        default="float32",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        try:
            is_known = np.dtype(self.dtype) in (np.float32, np.float64)
        except TypeError:
            is_known = False
        if not is_known:
            raise ValueError(f"dtype must be float32 or float64, not {self.dtype!r}.")


class WithMaxMarginals(StructuredModel):
    """A model whose structure has max-marginals."""

    def decision_function(self, X: Any) -> Any:
        """Max-marginals: for each part that an output may have, the score of the best output that has it.

        The parts of the prediction have the highest ones, up to ties; differences say how much score it takes to change
        it. What no output may have, such as a label that is ruled out, has minus infinity.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any

        Returns
        -------
        list with an array per example: (T_i, L) for labels, in the order of `classes_`; (K_i,) for candidates;
        (n_i, m_i + 1) for links, with nodes that have none in the last column; (H_i, W_i, J) for joints;
        (H_i, W_i) for cells, of the best box that contains each, in O(H_i^2 W_i^2) time
        """
        return self._decision_function(self._problem(X))

    def _decision_function(self, problem: Any) -> Any:
        return self._encoder.arrange(problem, inference.best_through_parts(problem, self._w, self.n_jobs))


class WithMarginals(StructuredModel):
    """A model whose structure has marginals."""

    def predict_marginals(self, X: Any) -> Any:
        """The probabilities of parts under p(y) ~ exp(score(y)): not calibrated unless the model was trained as a CRF.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any

        Returns
        -------
        list with an array per example: (T_i, L) for labels, in the order of `classes_`; (K_i,) for candidates;
        (H_i, W_i) for cells that may be inside a box, in O(H_i^2 W_i^2) time. For classes, one (n, L) array.
        """
        return self._predict_marginals(self._problem(X))

    def _predict_marginals(self, problem: Any) -> Any:
        return self._encoder.arrange(problem, inference.marginals(problem, self._w, self.n_jobs)[0])


class WithNodeWeights(StructuredModel):
    """A model of graphs whose nodes can have weights in scores."""

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_weight: Any = None) -> float:
        """The share of nodes labelled right, by weight.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the graphs
        node_weight : list of (V_i,) weights of the nodes
        """
        return self._score(self._problem_with_truth(X, y, node_weight=node_weight), sample_weight)


@estimator
class RowClassifier(WithMaxMarginals, WithMarginals, ArrayModel):
    """A scikit-learn classifier of the rows of a matrix."""

    fit_intercept: bool = parameter(
        "bool", "Add a constant to the scores of each class or label, regularized like the other weights.", default=True
    )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.input_tags.two_d_array = True
        return tags

    def _checked(self, X: Any, *y: Any, **options: Any) -> Any:
        """The rows, and what goes with them in training, as scikit-learn checks them."""
        from sklearn.utils.validation import validate_data  # slow to import

        for name, values in zip("Xy", (X, *y), strict=False):  # before scikit-learn converts them
            check_unmasked(name, values)
        if sp.issparse(X):
            check_sparse(X, "X")
        if y and isinstance(y[0], list):
            check_last_characters(y[0], "y")
        return validate_data(self, X, *y, accept_sparse="csr", dtype=(np.float64, np.float32), **options)

    def _checked_to_train(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any, np.ndarray | None]:
        """X and y, checked, and the names of the columns of X."""
        model = copy(self)  # a failed fit changes nothing
        X, y = model._checked(X, y, **options)
        return X, y, vars(model).get("feature_names_in_")

    def _set_weights(self, w: np.ndarray) -> None:
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        super()._set_weights(w)

    def _problem(self, X: Any, **data: Any) -> Any:
        check_is_fitted(self)
        return self._encoder.problem(self._checked(X, reset=False), **data)


@estimator
class SVM:
    """What structural SVMs have in common."""

    C: float = 0.1  # these three by `benchmarks.defaults`
    tol: float = 0.02
    patience: int = 5
    loss: Any = parameter(
        '{"hinge", "squared_hinge", "smooth_hinge"} or Loss',
        "The hinge loss above, half of its square or, for solvers that need it smooth, a smoothed one such as "
        '``Loss("l2", level=0.1)``.',
        default="hinge",
    )


@estimator
class CRF:
    """What conditional random fields have in common."""

    _loss = "log"

    dtype: Any = "float64"


@estimator
class CostedCRF(CRF, StructuredModel):
    """What conditional random fields of several labels have in common."""

    cost: Any = parameter(
        "as of SVMs, or None",
        "Cost of a labelling: in training, wrong ones are taken to be exp(cost) times as likely as they are, so that "
        "those that cost most are pushed down furthest (softmax-margin, Gimpel and Smith 2010); None for the "
        "likelihood itself.",
        default=None,
    )
    class_weight: Any = parameter("as of SVMs", "Factors of the cost by true label.", default=None)

    def _find_loss(self) -> Loss:
        loss = super()._find_loss()
        return loss if self.cost is None else replace(loss, margin=True)

    def _learn(self, X: Any, y: Any, **data: Any) -> Any:
        weights = {"class_weight": self.class_weight, **data}
        given = [name for name, value in weights.items() if name.endswith("_weight") and value is not None]
        if self.cost is None and given:
            raise ValueError(f'{given[0]} weighs the cost of wrong labels: set cost, to "hamming" for example.')
        return super()._learn(X, y, cost=self.cost, class_weight=self.class_weight, **data)


@estimator
class LabelModel(WithMaxMarginals, WithMarginals, ArrayModel):
    """A model of labels, of positions in sequences or of nodes."""

    fit_intercept: bool = parameter(
        "bool",
        "Add three weights per label: for every position, and for the first and the last of a sequence, or for roots "
        "and leaves of trees.",
        default=True,
    )

    _encoder_type: ClassVar[Any]

    def _learn(self, X: Any, y: Any, **data: Any) -> Any:
        loss = self._find_loss()
        with_grams = find_solver(self.solver, loss).needs_norms(loss)
        options = {"dtype": self.dtype, "fit_intercept": self.fit_intercept}
        return self._encoder_type.learn(X, y, with_grams=with_grams, **options, **data)


@estimator
class WithNames(StructuredModel):
    """A model of features that may have names."""

    min_count: int = parameter(
        "int", "Leave out features given by name that occur less often than that in the training examples.", default=1
    )
    n_hashed: int | None = parameter(
        "int",
        "Hash names onto that many features, and keep none of them: less memory, but those that meet share weights.",
        default=None,
    )

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the features, if they have any and are not hashed."""
        check_is_fitted(self)
        vocabulary = self._encoder.vocabulary
        if vocabulary is None or vocabulary.n_hashed is not None:
            raise AttributeError("feature_names_in_ is only there for features that were given by name, not hashed.")
        return np.array(vocabulary.names, object)


@estimator
class NamedModel(WithNames, LabelModel):
    """A model of labels with weights of features, which may have names."""

    only_observed: bool | str = parameter(
        'bool, "features" or "transitions"',
        "Have weights only for the pairs of a feature and a label, and of two neighbouring labels (with each feature "
        "of edges), that occur in the training examples, as CRFsuite does by default, or only of the ones and all of "
        "the others; what has no weight counts as zero. Takes less memory and time on text, where most features go "
        "with one or two labels. Rows are then stored sparse, and so is ``coef_.emissions``.",
        default=False,
    )

    def _learn(self, X: Any, y: Any, **data: Any) -> Any:
        options = {"only_observed": self.only_observed, "min_count": self.min_count, "n_hashed": self.n_hashed}
        return super()._learn(X, y, **options, **data)


@estimator
class LabelSVM(SVM, LabelModel):
    """What structural SVMs on labels have in common."""

    cost: Any = parameter(
        '{"hamming", "normalized_hamming"} or (L, L) array',
        "Cost of a labelling: the number of wrong labels, the same divided by the number of positions, or the sum of "
        "the entries [true label, predicted label] of a matrix in the order of `classes_`.",
        default="hamming",
    )
    class_weight: Any = parameter('dict or "balanced"', "Factors of the cost by true label.", default=None)

    def _learn(self, X: Any, y: Any, **data: Any) -> Any:
        return super()._learn(X, y, cost=self.cost, class_weight=self.class_weight, **data)


@estimator
class LinearSVM(LabelSVM):
    """One whose weights are those of features."""

    bounds: Any = parameter(
        "dict",
        'Bounds of weights by the names of `coef_`, such as ``{"transitions": (0, None)}``: pairs of a lower and an '
        "upper bound, each None, a number or an array like that part of the weights.",
        default=None,
    )
    rescaling: str = parameter(
        '{"margin", "slack"}',
        "How costs enter the hinge loss: as above, or as max_y cost(y_i, y) {1 + score(y) - score(y_i)}, where costs "
        "must be multiples of one number and the solver one that needs the max oracle alone.",
        default="margin",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("rescaling", self.rescaling, ("margin", "slack"))

    def _encode(self, X: Any, y: Any, **data: Any) -> Task:
        task = super()._encode(X, y, **data)
        return task._replace(problem=rescaled(task.problem)) if self.rescaling == "slack" else task

    def _layout_of(self, encoder: Any, problem: Any) -> tuple[Any, ...]:
        base = problem.base if self.rescaling == "slack" else problem
        return self.rescaling, *super()._layout_of(encoder, base)


@estimator
class LabelCRF(CostedCRF, LabelModel):
    """What conditional random fields of labels have in common."""

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Log p(y_i | x_i) of a labelling of each example, minus infinity of one that is ruled out.

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
            example, place = locate(np.flatnonzero(is_unknown)[0], problem.starts)
            raise ValueError(f"y[{example}] contains a label that was not seen in fit, at position {place}.")
        return inference.log_likelihoods(problem, self._w, self.n_jobs)
