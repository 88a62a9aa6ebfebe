"""Choosing among candidates: structural SVMs and conditional logit models."""

from __future__ import annotations

from typing import Annotated, Self, Unpack

from maxmargin.drawings.choice_drawings import CANDIDATES
from maxmargin.encode.candidate_encoder import CandidateEncoder
from maxmargin.estimators.foundation.arguments import Likelihood, MaxMargin, Names, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, documented_by, estimator
from maxmargin.estimators.foundation.predictions import feature_names, log_likelihood
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer


class CandidateData(FitOptions, total=False):
    """What candidate sets can come with in training."""

    costs: Annotated[
        object, "list of (K_i,) costs of predicting each candidate, zero for the true one; by default 1 for all others"
    ]


@estimator
class CandidateModel(Precision, StructuredModel):
    """What the models of candidate sets share."""

    _drawing = CANDIDATES

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on candidate sets.

        Parameters
        ----------
        X
            List of (K_i, F) arrays or sparse matrices, one row per candidate; or list of lists of candidates, feature
            dictionaries or lists of names (see `feature_names_in_`).
        y
            (n,) indices of the true candidates; in place of one a set of indices, of which one is true, or None.
        """
        return self._fit(X, y, sample_weight, options)


@estimator
class LinearCandidateModel(Names, CandidateModel):
    """What those share whose weights are those of features."""

    _encoder_type = CandidateEncoder

    feature_names_in_ = property(feature_names)


@estimator
class CandidateMaxMargin(MaxMargin, CandidateModel):
    """What structural SVMs on candidate sets share: costs of candidates."""

    @documented_by(CandidateModel.fit)
    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[CandidateData]) -> Self:
        return self._fit(X, y, sample_weight, options)


@estimator
class CandidateSVM(MaxMargin, LinearCandidateModel):
    """Structural SVM that chooses among candidates: reranking, entity linking, learning to pick one of a list.

    Every example has its own candidates, any number of them, each with a row of features. The score of a candidate is
    linear in its features; those of all candidates are the `decision_function`. Minimises (lambda/2) ||w||^2 +
    (1/n) sum_i weight_i max_k {cost_ik + score_ik - score of the true candidate}, lambda = 1/(n C), and certifies how
    far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : (F,) array
        The weights.
    n_features_in_ : int
        The number of features F.
    feature_names_in_ : (F,) array
        Their names, if they were given by name, as to `ChainSVM`, and are not hashed.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import CandidateSVM
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 0.9], [0.8, 0.1], [0.5, 0.5]], [[0.9, 0.3], [0.1, 0.2]]]
    >>> y = [0, 1, 0]
    >>> model = CandidateSVM(C=10.0, random_state=0).fit(X, y, costs=[[0, 1], [2, 0, 1], [0, 1]])
    >>> model.predict(X).tolist(), model.predict([[[0.0, 1.0], [0.3, 0.6], [0.7, 0.2]]]).tolist()
    ([0, 1, 0], [2])
    """

    fit = CandidateMaxMargin.fit


@estimator
class CandidateCRF(Likelihood, LinearCandidateModel):
    """Conditional logit: the probability of a candidate is its share of exp(score) among those of its example.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(true candidate)}, lambda = 1/(n C), and certifies how
    far from the optimum it can at most be.

    Attributes
    ----------
    coef_, n_features_in_, feature_names_in_
        As those of `CandidateSVM`.

    Examples
    --------
    >>> from maxmargin import CandidateCRF
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 0.9], [0.8, 0.1], [0.5, 0.5]], [[0.9, 0.3], [0.1, 0.2]]]
    >>> model = CandidateCRF(C=10.0).fit(X, [0, 1, 0])
    >>> model.predict_marginals(X)[1].round(1).tolist()
    [0.1, 0.7, 0.2]
    """

    _trainer = LikelihoodTrainer()

    log_likelihood = log_likelihood
