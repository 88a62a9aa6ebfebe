"""Structural SVMs and conditional random fields on graphs of any shape."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np

from maxmargin import inference
from maxmargin.encode.graph_encoder import GraphEncoder
from maxmargin.estimators.foundation.families import ArrayModel, WithNodeWeights
from maxmargin.estimators.foundation.parameters import FitOptions, documents_fit, estimator, parameter
from maxmargin.estimators.foundation.relaxable import RelaxableCRF, RelaxableModel, RelaxableSVM, check_treewidths


@estimator
class GraphModel(RelaxableModel, WithNodeWeights, ArrayModel):
    """What the models of graphs share."""

    interaction: str = parameter(
        '{"symmetric", "full", "potts"}',
        "The weights of edges that join nodes of the same type: for each feature of edges one for every two labels, "
        "the same in both orders; one for every two labels, the first end's and the second's; or a single one, for "
        "equal labels. Edges between nodes of different types have all weights.",
        default="symmetric",
    )
    fit_intercept: bool = parameter("bool", "Add a constant to the features of nodes and edges.", default=True)

    def _learn(self, X: Any, y: Any, **data: Any) -> Any:
        options = {"dtype": self.dtype, "fit_intercept": self.fit_intercept, "interaction": self.interaction}
        return GraphEncoder.learn(X, y, **options, **data)

    def _decision_function(self, problem: Any) -> Any:
        check_treewidths(problem, "decision_function")
        return self._encoder.arrange(problem, inference.best_through_parts(problem, self._w, self.n_jobs), -np.inf)

    @documents_fit
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        node_weight: Any = None,
        node_weight_dev: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Train on labelled graphs.

        Parameters
        ----------
        X : list of `Graph`, or of tuples (features, edges) or (features, edges, edge_features)
        y : list of (V_i,) labels, integers or strings
        node_weight : list of (V_i,) weights of the nodes in the cost, such as the areas of superpixels; those of weight
            zero still count in scores
        node_weight_dev : the same of held-out nodes in their score
        """
        data, data_dev = {"node_weight": node_weight}, {"node_weight": node_weight_dev}
        return self._fit(X, y, sample_weight, data, data_dev, **options)


@estimator
class GraphSVM(RelaxableSVM, GraphModel):
    """Structural SVM that labels the nodes of graphs, with cycles or without: a max-margin Markov random field.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. Examples are graphs, see `Graph`.

    Attributes
    ----------
    classes_ : (L,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``nodes`` (F, L), ``edges`` (G, L, L), where those of symmetric interactions are in the upper
        triangle, or (G,) of Potts interactions, and, with `fit_intercept`, ``bias`` (L,); the constant is the last
        feature of edges, and the only one if they have none. With several types, ``nodes[type]``, ``bias[type]`` and
        ``edges[type: type of one node, type of the other]``, with rows and columns for the labels of the types.
    n_features_in_, n_edge_features_in_ : int
        The numbers of features of nodes, F, and of edges, G.

    Examples
    --------
    Of three nodes in a cycle, neighbours have different labels, and only one node knows its own:

    >>> import numpy as np
    >>> from maxmargin import Graph, GraphSVM
    >>> edges = [(0, 1), (1, 2), (2, 0)]
    >>> X = [Graph([[1.0, 0, 0], [0, 0, 0.1], [0, 0, 0]], edges), Graph([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]], edges)]
    >>> y = [["red", "blue", "green"], ["green", "red", "blue"]]
    >>> model = GraphSVM(C=100.0, random_state=0).fit(X, y)
    >>> model.predict(X)[1].tolist()
    ['green', 'red', 'blue']
    """

    cost: Any = parameter(
        '{"hamming", "normalized_hamming"}',
        "Cost of a labelling: the weight of the nodes that are labelled wrong, or the same divided by the weight of "
        "all nodes of the graph. Nodes weigh 1 unless `fit` is told otherwise.",
        default="hamming",
    )
    class_weight: Any = parameter('dict or "balanced"', "Factors of the cost by true label.", default=None)
    bounds: Any = parameter(
        "dict",
        'Bounds of weights by the names of `coef_`, such as ``{"edges": (0, None)}``: pairs of a lower and an upper '
        "bound, each None, a number or an array like that part of the weights.",
        default=None,
    )

    def _learn(self, X: Any, y: Any, **data: Any) -> Any:
        return super()._learn(X, y, cost=self.cost, class_weight=self.class_weight, **data)


@estimator
class GraphCRF(RelaxableCRF, GraphModel):
    """Conditional random field on graphs, with cycles or without: p(y) ~ exp(score(y)).

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. Where the treewidth of graphs is too large for that, it minimises a relaxation, with
    Gini's entropy over the local polytope, and certifies that; `predict_marginals` are those of the same relaxation.
    Examples are graphs, see `Graph`.

    Attributes
    ----------
    classes_, coef_, n_features_in_, n_edge_features_in_ : as those of `GraphSVM`

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GraphCRF
    >>> X = [(np.eye(2)[[0, 0, 1]], [(0, 1), (1, 2), (2, 0)]), (np.eye(2)[[1, 1, 0]], [(0, 1), (1, 2), (2, 0)])]
    >>> model = GraphCRF(C=10.0).fit(X, [["a", "a", "b"], ["b", "b", "a"]])
    >>> model.predict_marginals(X)[0].round().tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
