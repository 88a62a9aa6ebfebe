"""Models of trees: from trees with features to a tree problem, and from weights to predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.encode.rows import (
    Rows,
    as_stored,
    check_labels_given,
    check_sample_weight,
    encode_labels,
    encode_truth,
    flatten_labels,
    is_better_sparse,
)
from maxmargin.encode.tree import BIASES, Trees, check_gold_allowed, label_penalties, stack_trees, tree_problem
from maxmargin.estimators.base import StructuredModel, Task
from maxmargin.estimators.bounds import bounds_by_name
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.tree import TreeProblem


class TreeModel(StructuredModel):
    """What the models of trees share: their data, weights and predictions.

    Besides the arguments of `StructuredModel`, subclasses have fit_bias.
    """

    bounds: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on trees.

        Parameters
        ----------
        X : list of `Tree`, or of tuples (features, edges) or (features, edges, edge_features)
        y : list of sequences of labels, integers or strings, one label per node
        sample_weight : (n,) weights of the trees' losses

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def _encode(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        self._check_parameters()
        trees = stack_trees(X, dtype=self.dtype)
        flat = flatten_node_labels(y, trees.rows)
        weights = check_sample_weight(sample_weight, len(trees.rows.lengths))
        classes = np.unique(flat)
        labels = encode_labels(flat, classes, trees.rows)
        penalty = label_penalties(trees, classes, self.dtype)
        check_gold_allowed(labels, penalty, trees.rows, classes)
        costs, scales = self._costs(trees.rows, labels, classes)
        width, stores_sparse = trees.rows.matrix.shape[1], is_better_sparse(trees.rows)
        trees = trees._replace(rows=as_stored(trees.rows, stores_sparse))
        is_hinge = self._find_loss().smoothing is None
        problem = tree_problem(trees, labels, costs, scales, penalty, with_bias=self.fit_bias, for_training=is_hinge)
        fitted = {
            "classes_": classes,
            "n_features_in_": width,
            "_n_edge_features": trees.n_edge_features,
            "_stores_sparse": stores_sparse,
            "_shapes": (trees.parent, problem.offsets, problem.kind, problem.kind_offsets, penalty),
        }
        sizes = width, trees.n_edge_features, len(classes)
        n_weights = (problem.n_features + problem.n_edge_features * len(classes)) * len(classes)
        lower, upper = bounds_by_name(self.bounds, n_weights, lambda w: self._name_weights(w, *sizes))
        start = self._last_point() if self._can_continue(fitted) else None
        return Task(problem, weights, start, lower, upper, fitted)

    def _costs(self, rows: Rows, labels: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The costs of labels, by true label, and the weights of nodes."""
        return np.zeros((len(classes), len(classes))), np.zeros(len(labels))

    def _can_continue(self, fitted: dict[str, Any]) -> bool:
        """Whether a warm start is asked for and the last fit was on trees like these."""
        return (
            self.warm_start
            and hasattr(self, "_w")
            and np.array_equal(self.classes_, fitted["classes_"])
            and self.n_features_in_ == fitted["n_features_in_"]
            and self._n_edge_features == fitted["_n_edge_features"]
            and all(np.array_equal(a, b) for a, b in zip(self._shapes, fitted["_shapes"], strict=True))
        )

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        self.coef_ = self._name_weights(w, self.n_features_in_, self._n_edge_features, len(self.classes_))

    def _name_weights(self, w: np.ndarray, width: int, n_edge_features: int, n_labels: int) -> Bunch:
        n_node_weights = w.size - (1 + n_edge_features) * n_labels**2
        nodes = w[:n_node_weights].reshape(-1, n_labels)
        edges = w[n_node_weights:].reshape(-1, n_labels, n_labels).transpose(0, 2, 1)  # stored child by parent
        named = Bunch(emissions=nodes[:width], transitions=edges[0])
        if n_edge_features:
            named.edges = edges[1:]
        if len(nodes) > width:
            named.update(zip(BIASES, nodes[width:], strict=True))
        return named

    def _problem(self, X: Any) -> TreeProblem:
        return self._trees(X)[0]

    def _trees(self, X: Any) -> tuple[TreeProblem, Trees]:
        check_is_fitted(self)
        dtype, n_labels = self._w.dtype, len(self.classes_)
        trees = stack_trees(X, self.n_features_in_, self._n_edge_features, dtype)
        trees = trees._replace(rows=as_stored(trees.rows, self._stores_sparse))
        penalty = label_penalties(trees, self.classes_, dtype)
        n_nodes, no_costs = len(trees.parent), np.zeros((n_labels, n_labels))
        problem = tree_problem(
            trees,
            np.zeros(n_nodes),
            no_costs,
            np.zeros(n_nodes),
            penalty,
            with_bias="bias" in self.coef_,
            for_training=False,
        )
        return problem, trees

    def _decode(self, problem: TreeProblem, i: int, output: np.ndarray) -> np.ndarray:
        return self.classes_[output]

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Max-marginals: the score of the best labelling of a tree that has label l at node t.

        The label of the highest one at each node is that of `predict`, up to ties; differences say how much score it
        takes to change it.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (T_i, L) arrays
        """
        problem, trees = self._trees(X)
        return self._node_parts(inference.best_through_parts(problem, self._w, self.n_jobs), trees.rows)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """The probabilities of the labels of each node.

        They are those of p(y) ~ exp(score(y)): estimates of probabilities if the model was trained as a CRF.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (T_i, L) arrays, columns in the order of `classes_`
        """
        problem, trees = self._trees(X)
        means, _ = inference.marginals(problem, self._w, self.n_jobs)
        return self._node_parts(means, trees.rows)

    def _node_parts(self, parts: Blocks, rows: Rows) -> list[np.ndarray]:
        """The (T_i, L) parts of nodes and labels."""
        n_labels = len(self.classes_)
        return [
            parts.values[start : start + length * n_labels].reshape(length, n_labels)
            for start, length in zip(parts.start[:-1], rows.lengths, strict=True)
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels predicted right; those that were not seen in `fit` cannot be.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the trees
        """
        problem, trees = self._trees(X)
        labels = encode_truth(flatten_node_labels(y, trees.rows), self.classes_)
        weights = check_sample_weight(sample_weight, len(trees.rows.lengths))
        per_node = None if weights is None else np.repeat(weights, trees.rows.lengths)
        predicted = inference.best_outputs(problem, self._w, self.n_jobs).values
        return float(np.average(predicted == labels, weights=per_node))


def flatten_node_labels(y: Any, rows: Rows) -> np.ndarray:
    """Check the labels of the nodes of all trees and concatenate them."""
    check_labels_given(y)
    if len(y) != len(rows.lengths):
        raise ValueError(f"X has {len(rows.lengths)} trees, but y has {len(y)}.")
    return flatten_labels(y, rows)
