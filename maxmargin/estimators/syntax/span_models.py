"""Structural SVMs and conditional random fields on trees of labelled spans."""

from __future__ import annotations

from typing import Self, Unpack

import numpy as np

from maxmargin import inference
from maxmargin.drawings.span_drawings import CONSTITUENTS
from maxmargin.encode.sentences.span_encoder import SpanEncoder
from maxmargin.estimators.foundation.arguments import Likelihood, MaxMargin, Names, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.predictions import feature_names, log_likelihood, sample
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer
from maxmargin.parameters import parameter
from maxmargin.problem import AnyProblem


@estimator
class SpanModel(Names, Precision, StructuredModel):
    """What the models of trees of labelled spans share."""

    only_observed: bool = parameter(
        "bool",
        "Have weights only for those features by name that occur in true spans, and only for pairs of a feature and a "
        "label that do. There are many more spans than true ones, and their names.",
        default=True,
    )

    _encoder_type = SpanEncoder
    _drawing = CONSTITUENTS

    feature_names_in_ = property(feature_names)

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on trees of labelled spans.

        Parameters
        ----------
        X
            List of sentences. One of n words is a matrix, which may be sparse, or a list of feature dictionaries or of
            lists of names, with a row for each of its n (n + 1) / 2 spans: by where they start, then by where they end.
            `maxmargin.text.SpanFeatures` makes names.
        y
            List of trees: triples of start, end and label, with words counted from 0, and ends excluded, as in slices.
            They must not cross, and each span has one label: `maxmargin.text.Constituents.spans` are such triples.
            Of a tree that is known in part, a set of spans that it has, in place of a list: pairs of start and end,
            triples with a label, or with a frozenset of those that it may be; None if nothing is known.
        """
        return self._fit(X, y, sample_weight, options)

    def _decision_function(self, problem: AnyProblem) -> list[np.ndarray]:
        scores = inference.best_through_parts(problem, self._w, self.n_jobs)
        return self._encoder.arrange(problem, scores, missing=-np.inf)


@estimator
class SpanSVM(MaxMargin, SpanModel):
    """Structural SVM that finds the constituents of sentences: trees of labelled spans, of any number of parts each.

    The score of a tree is the sum of the scores of its spans, which are linear in their features; the best one is found
    in O(n^3) steps for n words. `score` is the share of right ones among the 2 n - 1 spans of trees that are binarized;
    `maxmargin.metrics.bracket_report` counts as evalb does. Minimises
    (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C), where the
    cost is the number of labelled spans that only one of two trees has, and certifies how far from the optimum it can
    at most be. `predict(X, allowed=...)` finds the best trees that have given spans: for each sentence a set of pairs
    of start and end, or of triples with a label, or None.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``labels`` (F, L).
    classes_ : (L,) array
        The labels, sorted.
    n_features_in_ : int
        The number of features F of a span.
    feature_names_in_ : (F,) array
        Their names, if they were given by name, as to `ChainSVM`, and are not hashed.

    References
    ----------
    Taskar, Klein, Collins, Koller, Manning (2004), Max-margin parsing. Stern, Andreas, Klein (2017), A minimal
    span-based neural constituency parser.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import SpanSVM
    >>> from maxmargin.text import SpanFeatures
    >>> X = [[("She", "PRP"), ("sings", "VBZ")], [("The", "DT"), ("dog", "NN"), ("barks", "VBZ")]]
    >>> y = [[(0, 2, "S"), (0, 1, "NP")], [(0, 3, "S"), (0, 2, "NP")]]
    >>> parser = make_pipeline(SpanFeatures(), SpanSVM(C=10.0, random_state=0)).fit(X, y)
    >>> parser.predict([[("A", "DT"), ("cat", "NN"), ("purrs", "VBZ")]])
    [[(0, 3, 'S'), (0, 2, 'NP')]]
    """


@estimator
class SpanCRF(Likelihood, SpanModel):
    """Conditional random field of trees of labelled spans: p(y) ~ exp(score(y)), each tree counted once.

    Sums over trees are those of the inside-outside algorithm. `predict_marginals` are the probabilities of labelled
    spans: tables [start, end, label]. Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)},
    lambda = 1/(n C), and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_, classes_, n_features_in_, feature_names_in_
        As those of `SpanSVM`.

    References
    ----------
    Finkel, Kleeman, Manning (2008), Efficient, feature-based, conditional random field parsing.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SpanCRF
    >>> X = [np.array([[1.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [1.0]])]  # of the spans 0:1, 0:2 and 1:2
    >>> y = [[(0, 1, "X"), (1, 2, "X")], [(0, 2, "X"), (1, 2, "X")]]
    >>> model = SpanCRF(C=100.0).fit(X, y)
    >>> model.predict(X)[1], model.predict_marginals(X)[1][1, 2].round().tolist()
    ([(0, 2, 'X'), (1, 2, 'X')], [1.0])
    """

    _trainer = LikelihoodTrainer()

    log_likelihood = log_likelihood
    sample = sample
