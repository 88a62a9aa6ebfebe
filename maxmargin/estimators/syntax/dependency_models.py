"""Structural SVMs and conditional random fields on dependency trees."""

from __future__ import annotations

from typing import Annotated, Any, Self, Unpack

from maxmargin import inference
from maxmargin.checks import check_cost
from maxmargin.drawings.arc_drawings import DEPENDENCIES
from maxmargin.encode.sentences.dependency_encoder import DependencyEncoder
from maxmargin.estimators.foundation.arguments import Likelihood, MaxMargin, Names, Precision
from maxmargin.estimators.foundation.fit_options import (
    FitOptions,
    Weights,
    documented_by,
    documents_prediction,
    estimator,
)
from maxmargin.estimators.foundation.predictions import feature_names, find_encoder, log_likelihood, sample
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer
from maxmargin.parameters import parameter


class DependencyData(FitOptions, total=False):
    """What dependency trees can come with in training."""

    word_weight: Annotated[object, "list of (n_i,) weights of words in the cost, such as 0 for punctuation"]


@estimator
class DependencyModel(Names, Precision, StructuredModel):
    """What the models of dependency trees share."""

    projective: bool = parameter(
        "bool",
        "Whether arcs may not cross: trees are then found in O(n^3) steps for n words, and else in O(n^2).",
        default=True,
    )
    single_root: bool = parameter("bool", "Whether one word alone has the root as its head.", default=True)
    lift: bool = parameter(
        "bool",
        "Attach words whose arcs cross further up, until none do, in training trees of a projective model, for which "
        "they are else an error.",
        default=False,
    )
    only_observed: bool = parameter(
        "bool",
        "Have weights only for those features by name that occur in true arcs and, of labels, only for pairs of a "
        "feature and a label that do. There are many more arcs than true ones, and their names.",
        default=True,
    )

    _encoder_type = DependencyEncoder
    _drawing = DEPENDENCIES

    feature_names_in_ = property(feature_names)

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on dependency trees.

        Parameters
        ----------
        X
            List of sentences. One of n words is an (n, n + 1, F) array with the features of the arc to each word from
            each head, the root first; or a matrix, which may be sparse, or a list of feature dictionaries or of lists
            of names, for each of these n (n + 1) arcs, word by word. `maxmargin.text.ArcFeatures` makes names.
        y
            List of trees: the head of each word, counted from 1, or 0 for the root; or pairs of a head and a label.
        """
        return self._fit(X, y, sample_weight, options)

    @documents_prediction
    def predict_posterior(self, X: object, *, allowed: object = None) -> list[Any]:
        """The trees with the most heads that are right, as expected by the model, of those that are possible.

        Of trees with labels, right heads and right pairs of head and label count alike. `predict` returns the most
        probable tree as a whole.

        Returns
        -------
        list of trees like y

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import DependencyCRF
        >>> y = [[2, 0, 2], [0, 1]]
        >>> X = [np.eye(len(heads) + 1)[heads][:, :, np.newaxis] for heads in y]  # one feature, which tells all
        >>> DependencyCRF(C=10.0).fit(X, y).predict_posterior(X)[0].tolist()
        [2, 0, 2]
        """
        problem = self._problem(X, allowed)
        return find_encoder(self).decode_all(problem, inference.expected_outputs(problem, self._w, self.n_jobs))


@estimator
class DependencySVM(MaxMargin, DependencyModel):
    """Structural SVM that parses sentences: it finds the head of each word, and the label of the arc, if there are any.

    The score of a tree is the sum of the scores of its arcs, which are linear in their features. Trees are projective
    (Eisner's algorithm) or not (that of Chu, Liu and Edmonds). `score` is the share of words with the right head and,
    if there are any, the right label; `maxmargin.metrics.uas` and `las` leave out punctuation. Minimises
    (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C), where the
    cost is the number of wrong heads, and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``arcs`` (F,) and, of trees with labels, ``labels`` (F, L), which are added to the former.
    classes_ : (L,) array
        The labels, sorted; none of trees without.
    n_features_in_ : int
        The number of features F of an arc.
    feature_names_in_ : (F,) array
        Their names, if they were given by name, as to `ChainSVM`, and are not hashed.

    References
    ----------
    McDonald, Crammer, Pereira (2005), Online large-margin training of dependency parsers. McDonald, Pereira, Ribarov,
    Hajic (2005), Non-projective dependency parsing using spanning tree algorithms.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import DependencySVM
    >>> from maxmargin.text import ArcFeatures
    >>> X = [[("She", "PRON"), ("sings", "VERB")], [("Dogs", "NOUN"), ("bark", "VERB"), ("loudly", "ADV")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root"), (2, "advmod")]]
    >>> parser = make_pipeline(ArcFeatures(), DependencySVM(C=1.0, random_state=0)).fit(X, y)
    >>> parser.predict([[("Cats", "NOUN"), ("purr", "VERB")]])
    [[(2, 'nsubj'), (0, 'root')]]
    """

    label_cost: float = parameter(
        "float", "Cost of a wrong label at the right head; that of a wrong head is 1.", default=1.0, check=check_cost
    )

    @documented_by(DependencyModel.fit)
    def fit(
        self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[DependencyData]
    ) -> Self:
        return self._fit(X, y, sample_weight, options)


@estimator
class DependencyCRF(Likelihood, DependencyModel):
    """Conditional random field of dependency trees: p(y) ~ exp(score(y)), over projective trees or over all.

    Sums over projective trees are those of the inside-outside algorithm, sums over all trees those of the matrix-tree
    theorem. `predict_marginals` are the probabilities of arcs. Minimises (lambda/2) ||w||^2 +
    (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_, classes_, n_features_in_, feature_names_in_
        As those of `DependencySVM`.

    References
    ----------
    Koo, Globerson, Carreras, Collins (2007), Structured prediction models via the matrix-tree theorem.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import DependencyCRF
    >>> y = [[2, 0, 2], [0, 1]]
    >>> X = [np.eye(len(heads) + 1)[heads][:, :, np.newaxis] for heads in y]  # one feature, which tells all
    >>> model = DependencyCRF(C=10.0).fit(X, y)
    >>> model.predict(X)[0].tolist(), model.predict_marginals(X)[0].sum(axis=1).round(6).tolist()
    ([2, 0, 2], [1.0, 1.0, 1.0])
    """

    _trainer = LikelihoodTrainer()

    log_likelihood = log_likelihood
    sample = sample
