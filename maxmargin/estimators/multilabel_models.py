"""Structural SVMs and conditional random fields of several labels per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.drawings.choice_drawings import LABEL_SETS
from maxmargin.encode.inputs.example_checks import check_array
from maxmargin.encode.multilabel_encoder import INDICATORS, MultiLabelEncoder, find_chances
from maxmargin.estimators.foundation.arguments import RelaxableLikelihood, RelaxableMaxMargin
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, documents_prediction, estimator
from maxmargin.estimators.foundation.predictions import known_marginals, log_likelihood
from maxmargin.estimators.foundation.row_classifier import RowClassifier
from maxmargin.estimators.foundation.trainers import RelaxableLikelihoodTrainer, RelaxableTrainer
from maxmargin.parameters import parameter
from maxmargin.supervision.weak import Learned

if TYPE_CHECKING:
    from sklearn.utils import Tags


class MultiLabelData(FitOptions, total=False):
    """What rows with several labels can come with in training."""

    label_weight: Annotated[ArrayLike | None, "(n, L) weights of labels in the cost, such as how sure one is of each"]


@estimator
class MultiLabelModel(RowClassifier):
    """What models of several labels per row have in common."""

    graph: Any = parameter(
        '{"auto", "tree", "full"}, int, (E, 2) array or None',
        "The pairs of labels that have weights: a number of pairs, those that tell most of each other in the training "
        'examples, but for those that would make the treewidth large; "auto" for twice as many as there are labels, '
        'and all of up to 8; "tree" for the Chow-Liu tree, which joins all labels; "full" for all pairs; an array of '
        "pairs of columns of y; None for labels that are independent of each other. Inference is exact, but for "
        '"full" and arrays of large treewidth: there SVMs infer approximately, with a bound, and CRFs relax, from 21 '
        "labels on.",
        default="auto",
    )

    _encoder_type = MultiLabelEncoder
    _drawing = LABEL_SETS
    _trainer = RelaxableTrainer()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    def fit(
        self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[MultiLabelData]
    ) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : (n, F) array or sparse matrix
        y
            (n, L) array or sparse matrix, 1 (or True) where an example has a label, else 0; NaN or None where that is
            not known, a number in between where it is how likely.
        """
        return self._fit(X, y, sample_weight, options)

    def _learn(self, X: object, y: object, **data: object) -> Learned:
        known = find_chances(y)
        if known is not None:
            y = np.where(np.isnan(known), 0.0, known > 0.5)  # the likelier sides
        y = check_array(y, "y", INDICATORS, (None, None)) if isinstance(y, (list, tuple)) else y
        return super()._learn(X, y, multi_output=True, known=known, **data)

    def predict(self, X: object, *, allowed: object = None) -> np.ndarray:
        """The best labels of each example, as a whole.

        Returns
        -------
        (n, L) array of 0 and 1
        """
        return super().predict(X, allowed=allowed)

    @documents_prediction
    def decision_function(self, X: object, *, allowed: object = None) -> np.ndarray:
        """How much higher the best output that has a label scores than the best one that has not.

        Returns
        -------
        (n, L) array, positive where labels are predicted, up to ties
        """
        best = super().decision_function(X, allowed=allowed)
        return best[..., 1] - best[..., 0]

    @documents_prediction
    def predict_marginals(self, X: object, *, return_exact: bool = False, allowed: object = None) -> Any:
        """The probability of each label under p(y) ~ exp(score(y)): not calibrated unless the model is a CRF.

        Where the treewidth of the graph is too large, it is that of a relaxation, as of `GraphCRF`.

        Parameters
        ----------
        return_exact
            As that of `GraphCRF`.

        Returns
        -------
        (n, L) array; with `return_exact`, a pair of it and an (n,) array of bool
        """
        table, is_exact = known_marginals(self, X, allowed)
        return (table[..., 1], is_exact) if return_exact else table[..., 1]

    def score(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        """The share of examples whose labels are all right.

        Parameters
        ----------
        X, y
            As in `fit`.
        sample_weight : (n,) weights of the examples
        """
        return super().score(X, y, sample_weight)


@estimator
class MultiLabelSVM(RelaxableMaxMargin, MultiLabelModel):
    """Structural SVM of several labels per row: each depends on the features and on the labels it is joined with.

    The score of labels y is the sum of <coef_[l], x> + intercept_[l] over the labels l that are on, and of
    edge_coef_[e, y_a, y_b] over the pairs of labels e = (a, b) in `edges_`.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. Without a graph this is scikit-learn's ``LinearSVC`` with
    the hinge loss, for each label, at the same C.

    Attributes
    ----------
    classes_
        (L, 2) array 0 and 1 for each label.
    coef_ : (L, F) array
        The weights of each label.
    intercept_ : (L,) array
        The constant of each label, zero without `fit_intercept`.
    edges_ : (E, 2) array
        The pairs of labels that are joined.
    edge_coef_ : (E, 2, 2) array
        Their weights, rows for the first label off and on, columns for the second.
    n_features_in_, feature_names_in_
        As those of `MulticlassSVM`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from maxmargin import MultiLabelSVM
    >>> X, y = make_multilabel_classification(n_samples=8, n_features=3, n_classes=4, random_state=0)
    >>> model = MultiLabelSVM(C=0.1, graph="full", random_state=0).fit(X, y)
    >>> model.predict(X[:2]).shape, model.edges_.shape
    ((2, 4), (6, 2))
    """

    cost: Any = parameter(
        '{"hamming", "normalized_hamming"} or (L,) array',
        "Cost of an output: the number of wrong labels, the share of them, or the sum of what each wrong one costs.",
        default="hamming",
    )
    class_weight: Any = parameter(
        'dict, "balanced" or list of such',
        "Factors of the cost by whether a label is on in truth, such as ``{1: 5.0}``: of all labels, or of each.",
        default=None,
    )


@estimator
class MultiLabelCRF(RelaxableLikelihood, MultiLabelModel):
    """Conditional random field of several labels per row: p(y) ~ exp(score(y)), with the scores of `MultiLabelSVM`.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. Without a graph this is a logistic regression for each label, with the intercept
    regularized.

    Attributes
    ----------
    classes_, coef_, intercept_, edges_, edge_coef_, n_features_in_, feature_names_in_
        As those of `MultiLabelSVM`.

    Examples
    --------
    Two labels, of which exactly one is on:

    >>> import numpy as np
    >>> from maxmargin import MultiLabelCRF
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]])
    >>> model = MultiLabelCRF(C=100.0).fit(X, [[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> model.predict_proba([[0.0]]).round(1).tolist(), model.predict([[1.0]]).tolist()
    ([[1.0, 0.0]], [[0, 1]])
    """

    _trainer = RelaxableLikelihoodTrainer()

    log_likelihood = log_likelihood

    @documents_prediction
    def predict_proba(self, X: object, *, allowed: object = None) -> np.ndarray:
        """The probability of each label.

        Returns
        -------
        (n, L) array
        """
        return self.predict_marginals(X, allowed=allowed)
