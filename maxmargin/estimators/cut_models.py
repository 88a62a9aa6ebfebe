"""Structural SVMs on graphs of binary labels with attractive edges."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import inference
from maxmargin.drawings.image_drawings import MASKS
from maxmargin.encode.cut_encoder import GraphCutEncoder
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.estimators.foundation.arguments import MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import Weights, estimator
from maxmargin.estimators.foundation.predictions import Unavailable
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.graph_models import NodeData, score_nodes
from maxmargin.parameters import parameter


@estimator
class GraphCutSVM(MaxMargin, Precision, StructuredModel):
    """Structural SVM for labelling the nodes of graphs with one of two labels, where edges favour equal labels.

    The score of a labelling is the sum of <nodes, features of p> + bias over the nodes p that have the second label,
    minus the sum of <edges, features of e> over the edges e whose ends differ. Weights and features of edges are not
    negative, so that the best labelling is a minimum cut, which is found exactly.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. On single nodes this is scikit-learn's ``LinearSVC`` with
    the hinge loss.

    Attributes
    ----------
    classes_ : (2,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``nodes`` (F,), ``edges`` (G,) and, with `fit_intercept`, ``bias`` (1,).
    n_features_in_, n_edge_features_in_ : int
        The numbers of features of nodes, F, and of edges, G.

    Examples
    --------
    Three pixels in a row, the middle one noisy:

    >>> import numpy as np
    >>> from maxmargin import GraphCutSVM
    >>> edges = [(0, 1), (1, 2)]
    >>> X = [([[1.0], [-0.2], [1.0]], edges), ([[-1.0], [0.2], [-1.0]], edges)]
    >>> y = [["ink", "ink", "ink"], ["paper", "paper", "paper"]]
    >>> model = GraphCutSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X)[0].tolist()
    ['ink', 'ink', 'ink']
    >>> bool(model.coef_.edges[0] > 0)
    True
    """

    cost: Any = parameter(
        '{"hamming", "normalized_hamming"} or (2, 2) array',
        "Cost of a labelling: the weight of the nodes that are labelled wrong, the same divided by the weight of all "
        "nodes of the graph, or the sum of the entries [true label, predicted label] of a matrix in the order of "
        "`classes_`. Nodes weigh 1 unless `fit` is told otherwise.",
        default="hamming",
    )
    class_weight: Any = parameter(
        'dict or "balanced"',
        'Factors of the cost by true label; "balanced" gives both classes the same share of the weight of all nodes.',
        default=None,
    )
    fit_intercept: bool = parameter("bool", "Add a constant to the features of the nodes.", default=True)

    _encoder_type = GraphCutEncoder
    _drawing = MASKS

    predict_marginals = Unavailable("sums over all labellings of a graph are out of reach")
    score = score_nodes

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[NodeData]) -> Self:
        """Train on labelled graphs.

        Parameters
        ----------
        X
            List of pairs (nodes, edges) or triples (nodes, edges, edge features): an array or sparse matrix (V_i, F) of
            node features, the ends of the edges (E_i, 2), and an array (E_i, G) without negative numbers; edges without
            features have the single feature 1.
        y : list of (V_i,) labels, integers or strings, of two classes
        """
        return self._fit(X, y, sample_weight, options)

    def _named_bounds(self, encoder: Encoder) -> dict[str, object]:
        return {"edges": (0, None)}


def graph_cut(potentials: ArrayLike, edges: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """The labels y of nodes, 0 or 1, that maximise sum_p potentials[p] y_p - sum_(p, q) weights[p, q] [y_p != y_q].

    Of several such labellings it is the one with the fewest ones.

    Parameters
    ----------
    potentials
        (V,) numbers.
    edges
        (E, 2) pairs of nodes.
    weights
        (E,) non-negative numbers.

    Returns
    -------
    (V,) array of 0 and 1

    Examples
    --------
    >>> from maxmargin import graph_cut
    >>> graph_cut([2.0, -0.5, 1.0, -2.0], [(0, 1), (1, 2), (2, 3)], [1.0, 1.0, 0.1]).tolist()
    [1, 1, 1, 0]
    """
    nodes, costs = np.asarray(potentials, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if nodes.ndim != 1 or not np.isfinite(nodes).all():
        raise ValueError("potentials must hold one finite number per node.")
    if not (costs >= 0).all():
        e = int(np.flatnonzero(~(costs >= 0))[0])
        raise ValueError(f"weights[{e}] is {costs.flat[e]:.3g}, but edges with negative weights are not submodular.")
    one: dict[str, Any] = {"n_features_in": 1, "n_edge_features_in": 1}
    encoder = GraphCutEncoder(dtype=np.dtype(np.float64), stores_sparse=False, classes=np.arange(2), **one)
    problem = encoder.problem([(nodes[:, np.newaxis], edges, costs)])
    return inference.best_outputs(problem, np.ones(2)).values
