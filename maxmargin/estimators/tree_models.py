"""Structural SVMs and conditional random fields on trees."""

from __future__ import annotations

from typing import Annotated, Self, Unpack

from maxmargin.drawings.label_drawings import TREES
from maxmargin.encode.tree_encoder import TreeEncoder
from maxmargin.estimators.foundation.arguments import EndIntercepts, FeatureMaxMargin, Observed, SoftmaxMargin
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.predictions import edge_probabilities, feature_names, log_likelihood
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer


class TreeData(FitOptions, total=False):
    """What trees can come with in training."""

    node_weight: Annotated[object, "list of (T_i,) weights of the nodes in the cost"]
    node_cost: Annotated[
        object,
        "list of (T_i, L) costs of each label at each node, in the order of `classes_`, in place of `cost`; zero for "
        "what agrees with y",
    ]
    edge_cost: Annotated[
        object,
        "list of (E_i, L, L) costs of the labels of the two nodes of each edge, besides those of nodes; zero for what "
        "agrees with y",
    ]


@estimator
class TreeModel(EndIntercepts, StructuredModel):
    """What the models of trees share."""

    _drawing = TREES

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[TreeData]) -> Self:
        """Train on trees.

        Parameters
        ----------
        X : list of `Tree`, or of tuples (features, edges) or (features, edges, edge_features)
        y
            List of sequences of labels, integers or strings, one label per node. Where less is known of a node: None, a
            set of labels, or their probabilities, in a dictionary or in the order of `classes_`.
        """
        return self._fit(X, y, sample_weight, options)


@estimator
class LinearTreeModel(Observed, TreeModel):
    """What those share whose weights are those of features."""

    _encoder_type = TreeEncoder

    feature_names_in_ = property(feature_names)
    edge_probabilities = edge_probabilities


@estimator
class TreeSVM(FeatureMaxMargin, LinearTreeModel):
    """Structural SVM that labels the nodes of trees: a max-margin Markov tree of nodes and edges.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. Examples are rooted trees or forests, see `Tree`.

    Attributes
    ----------
    classes_ : (L,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``emissions`` (F, L); ``transitions`` (L, L), from the parent's label (row) to the child's
        (column); with edge features, ``edges`` (F_edge, L, L), the same for each of them; and, with `fit_intercept`,
        ``bias``, ``root`` and ``leaf`` (L,). With `only_observed`, ``emissions`` is sparse, and the others are copies.
    n_features_in_ : int
        The number of features F of a node.
    feature_names_in_ : (F,) array
        Their names, if they were given by name, as to `ChainSVM`, and are not hashed.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Tree, TreeSVM
    >>> X = [Tree(np.eye(3), edges=[(0, 1), (0, 2)]), Tree(np.eye(3)[[0, 1]], edges=[(0, 1)])]
    >>> y = [["a", "b", "c"], ["a", "b"]]
    >>> model = TreeSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict([Tree(np.eye(3)[[2, 0]], edges=[(1, 0)])])
    [array(['c', 'a'], dtype='<U1')]
    """


@estimator
class TreeCRF(SoftmaxMargin, LinearTreeModel):
    """Conditional random field on trees: p(y) ~ exp(score(y)), with weights of nodes and edges.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. Examples are rooted trees or forests, see `Tree`.

    Attributes
    ----------
    classes_, coef_, n_features_in_, feature_names_in_
        As those of `TreeSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Tree, TreeCRF
    >>> X = [Tree(np.eye(3), edges=[(0, 1), (0, 2)]), Tree(np.eye(3)[[0, 1]], edges=[(0, 1)])]
    >>> y = [["a", "b", "c"], ["a", "b"]]
    >>> model = TreeCRF(C=10.0).fit(X, y)
    >>> model.predict_marginals(X)[0].shape
    (3, 3)
    """

    _trainer = LikelihoodTrainer()

    log_likelihood = log_likelihood
