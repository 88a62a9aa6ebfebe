"""Structural SVMs and conditional random fields on graphs of any shape."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import inference
from maxmargin.drawings.image_drawings import MASKS
from maxmargin.encode.graph_encoder import GraphEncoder
from maxmargin.estimators.foundation.arguments import Precision, RelaxableLikelihood, RelaxableMaxMargin
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, documents_prediction, estimator
from maxmargin.estimators.foundation.predictions import (
    check_has,
    edge_probabilities,
    known_marginals,
    log_likelihood,
    sample,
)
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import RelaxableLikelihoodTrainer, RelaxableTrainer, Trainer
from maxmargin.parameters import parameter
from maxmargin.problem import AnyProblem, max_marginals


class NodeData(FitOptions, total=False):
    """What the nodes of graphs can come with in training."""

    node_weight: Annotated[
        object,
        "list of (V_i,) weights of the nodes in the cost, such as the areas of superpixels; those of weight zero still "
        "count in scores",
    ]
    node_cost: Annotated[
        object,
        "list of (V_i, L) costs of each label at each node, in the order of `classes_`, in place of `cost`; zero for "
        "what agrees with y",
    ]
    node_weight_dev: Annotated[object, "the weights of held-out nodes in their score"]


class GraphData(NodeData, total=False):
    """What graphs can come with in training."""

    edge_cost: Annotated[
        object,
        "list of (E_i, L, L) costs of the labels of the two nodes of each edge, besides those of nodes; zero for what "
        "agrees with y",
    ]


def score_nodes(
    self: StructuredModel,
    X: object,
    y: object = None,
    sample_weight: ArrayLike | None = None,
    *,
    node_weight: object = None,
) -> float:
    """The share of nodes labelled right, by weight.

    Parameters
    ----------
    X, y
        As in `fit`.
    sample_weight : (n,) weights of the graphs
    node_weight : list of (V_i,) weights of the nodes
    """
    return self._score(self._problem_with_truth(X, y, node_weight=node_weight), sample_weight)


@estimator
class GraphModel(Precision, StructuredModel):
    """What the models of graphs share."""

    interaction: str = parameter(
        '{"symmetric", "full", "potts"}',
        "The weights of edges that join nodes of the same type: for each feature of edges one for every two labels, "
        "the same in both orders; one for every two labels, the first end's and the second's; or a single one, for "
        "equal labels. Edges between nodes of different types have all weights.",
        default="symmetric",
    )
    fit_intercept: bool = parameter("bool", "Add a constant to the features of nodes and edges.", default=True)

    _encoder_type = GraphEncoder
    _drawing = MASKS
    _trainer: ClassVar[Trainer] = RelaxableTrainer()

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[GraphData]) -> Self:
        """Train on labelled graphs.

        Parameters
        ----------
        X : list of `Graph`, or of tuples (features, edges) or (features, edges, edge_features)
        y
            List of (V_i,) labels, integers or strings. Where less is known of a node: None, a set of labels, or their
            probabilities, in a dictionary or in the order of `classes_`; of an image, see `maxmargin.vision`.
        """
        return self._fit(X, y, sample_weight, options)

    def _decision_function(self, problem: AnyProblem) -> Any:
        check_has(problem, max_marginals, "decision_function")
        return self._encoder.arrange(problem, inference.best_through_parts(problem, self._w, self.n_jobs), -np.inf)

    @documents_prediction
    def predict_marginals(self, X: object, *, return_exact: bool = False, allowed: object = None) -> Any:
        """The probabilities of labels of nodes under p(y) ~ exp(score(y)), where the treewidth of a graph allows.

        Elsewhere they are those of a relaxation: the mean parts of the local polytope of the highest score plus Gini's
        entropy of nodes and edges.

        Parameters
        ----------
        return_exact
            Whether to return, too, which of them are exact.

        Returns
        -------
        list of (V_i, L) arrays, in the order of `classes_`; with `return_exact`, a pair of it and an (n,) array of bool
        """
        tables, is_exact = known_marginals(self, X, allowed)
        return (tables, is_exact) if return_exact else tables

    edge_probabilities = edge_probabilities
    score = score_nodes


@estimator
class GraphSVM(RelaxableMaxMargin, GraphModel):
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
        '{"hamming", "normalized_hamming"} or (L, L) array',
        "Cost of a labelling: the weight of the nodes that are labelled wrong, the same divided by the weight of all "
        "nodes of the graph, or the weighted sum of the entries [true label, predicted label] of a matrix in the order "
        "of `classes_`. Nodes weigh 1 unless `fit` is told otherwise.",
        default="hamming",
    )
    class_weight: Any = parameter('dict or "balanced"', "Factors of the cost by true label.", default=None)
    bounds: Any = parameter(
        "dict",
        'Bounds of weights by the names of `coef_`, such as ``{"edges": (0, None)}``: pairs of a lower and an upper '
        "bound, each None, a number or an array like that part of the weights.",
        default=None,
    )


@estimator
class GraphCRF(RelaxableLikelihood, GraphModel):
    """Conditional random field on graphs, with cycles or without: p(y) ~ exp(score(y)).

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. Where the treewidth of graphs is too large for that, it minimises a relaxation, with
    Gini's entropy over the local polytope, and certifies that; `predict_marginals` are those of the same relaxation.
    Examples are graphs, see `Graph`.

    Attributes
    ----------
    classes_, coef_, n_features_in_, n_edge_features_in_
        As those of `GraphSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GraphCRF
    >>> X = [(np.eye(2)[[0, 0, 1]], [(0, 1), (1, 2), (2, 0)]), (np.eye(2)[[1, 1, 0]], [(0, 1), (1, 2), (2, 0)])]
    >>> model = GraphCRF(C=10.0).fit(X, [["a", "a", "b"], ["b", "b", "a"]])
    >>> model.predict_marginals(X)[0].round().tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """

    _trainer = RelaxableLikelihoodTrainer()

    log_likelihood = log_likelihood
    sample = sample
