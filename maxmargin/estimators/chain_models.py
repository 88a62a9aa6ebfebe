"""Structural SVMs and conditional random fields on sequences."""

from __future__ import annotations

from typing import Any

from maxmargin.checks import check_share
from maxmargin.encode.chain_encoder import ChainEncoder
from maxmargin.encode.sequences.second_order_encoder import SecondOrderEncoder
from maxmargin.estimators.foundation.arguments import FeatureMaxMargin, Memory, Observed
from maxmargin.estimators.foundation.fit_options import estimator
from maxmargin.estimators.foundation.predictions import edge_feature_names, feature_names
from maxmargin.estimators.foundation.sequence_base import SequenceCRF, SequenceModel
from maxmargin.parameters import parameter
from maxmargin.supervision.shares import check_label_share


def find_encoder_type(model: Memory) -> type[ChainEncoder]:
    """The encoder of models that remember so many labels."""
    return SecondOrderEncoder if model.order == 2 else ChainEncoder


@estimator
class ChainSVM(FeatureMaxMargin, Memory, Observed, SequenceModel):
    """Structural SVM for sequence labelling: a max-margin Markov chain of emissions and transitions.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    classes_ : (L,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``emissions`` (F, L), ``transitions`` (L, L) and, with `fit_intercept`, ``bias``, ``first`` and
        ``last`` (L,). With `only_observed`, ``emissions`` is sparse, and the others are copies. With `edge_features` in
        `fit`, ``edges`` (F_edge, L, L) are those of transitions, sparse and (F_edge, L^2) with `only_observed`. With
        ``order=2``, ``trigrams`` (L^2, L) are those of three labels in a row, sparse: row a L + b has those after the
        labels a and b.
    n_features_in_ : int
        The number of features F.
    feature_names_in_ : (F,) array
        Their names, if they were given by name and are not hashed: those in lists of names, and those in dictionaries,
        whose numbers and bools are values of features, while their strings become part of the name: ``{"word": "the",
        "length": 3, "in": ["title"]}`` has ``word:the``, ``length`` and ``in:title``. Predictions ignore other names.
    edge_feature_names_in_ : (F_edge,) array
        The same of `edge_features`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainSVM
    >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[1, 2]], np.eye(3)[[0, 1]]]
    >>> y = [["a", "b", "c"], ["b", "c"], ["a", "b"]]
    >>> model = ChainSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict([np.eye(3)[[0, 1]]])
    [array(['a', 'b'], dtype='<U1')]
    >>> labels, scores = model.predict_topk([np.eye(3)[[0, 1]]], k=2)[0]
    >>> labels[0].tolist(), bool(scores[0] > scores[1])
    (['a', 'b'], True)
    >>> model.status_.name
    'OPTIMAL'
    """

    _encoder_type = property(find_encoder_type)

    feature_names_in_ = property(feature_names)
    edge_feature_names_in_ = property(edge_feature_names)


@estimator
class ChainCRF(Memory, Observed, SequenceCRF):
    """Linear-chain conditional random field: p(y) ~ exp(score(y)), with emissions and transitions.

    Minimises lambda {l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2} + (1/n) sum_i weight_i {-log p(y_i)}, lambda =
    1/(n C), and certifies how far from the optimum it can at most be. In terms of CRFsuite's c1 and c2,
    C = 1/(c1 + 2 c2) and l1_ratio = c1/(c1 + 2 c2).

    Attributes
    ----------
    classes_, coef_, n_features_in_, feature_names_in_, edge_feature_names_in_
        As those of `ChainSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainCRF
    >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[1, 2]], np.eye(3)[[0, 1]]]
    >>> y = [["a", "b", "c"], ["b", "c"], ["a", "b"]]
    >>> model = ChainCRF(C=10.0).fit(X, y)
    >>> model.predict([np.eye(3)[[0, 1]]])
    [array(['a', 'b'], dtype='<U1')]
    >>> model.predict_marginals([np.eye(3)[[0, 1]]])[0].shape
    (2, 3)

    Features by name:

    >>> sentences = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}, {"word": "bark", "length": 4}]]
    >>> tagger = ChainCRF().fit(sentences, [["DET", "NOUN"], ["NOUN", "VERB"]])
    >>> tagger.feature_names_in_.tolist()
    ['word:the', 'word:dog', 'word:dogs', 'word:bark', 'length']
    >>> tagger.predict([[{"word": "the"}, {"word": "cat"}]])[0].tolist()
    ['DET', 'NOUN']
    """

    l1_ratio: float = parameter(
        "float",
        "The share of the L1 norm in the regularization, from 0 to 1: it makes weights exactly zero. Needs the solver "
        '"auto" or "lbfgs", which is OWL-QN then.',
        default=0.0,
        check=check_share,
    )

    label_share: Any = parameter(
        "dict of a label and its share",
        'How many of all positions have a label, such as {"O": 0.9}, where many labels in y are not known: on average, '
        "the labels that are consistent with y have this share. None leaves it to the model.",
        default=None,
        check=check_label_share,
    )

    _encoder_type = property(find_encoder_type)
    _solver_options = ("l1_ratio",)

    feature_names_in_ = property(feature_names)
    edge_feature_names_in_ = property(edge_feature_names)
