"""Trees with features to a `TreeProblem`.

Every check of the user's trees is here: what passes is safe for the kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from maxmargin.costs import labelling_costs
from maxmargin.encode.base import LabellingEncoder
from maxmargin.encode.edges import check_edge_features, check_parents, children_first
from maxmargin.encode.features import append_columns, row_features
from maxmargin.encode.rows import Rows, check_examples, flatten_labels, locate, stack_rows
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.tree import TreeProblem

BIASES = ("bias", "root", "leaf")  # features of every node, of those without a parent and of those without children


class Tree(NamedTuple):
    """A rooted tree, or forest, with features: one example of `TreeSVM` and `TreeCRF`.

    Attributes
    ----------
    features : (T, F) array or sparse matrix, a row per node
    edges : (E, 2) integers, the nodes of each edge: parent, child; nodes without a parent are roots
    edge_features : (E, F_edge) array, a row per edge, or None
    allowed : for each node the collection of labels it can have, None for all; or None

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Tree
    >>> Tree(np.eye(3), edges=[(0, 1), (0, 2)], allowed=[{"S"}, None, None]).edge_features is None
    True
    """

    features: Any
    edges: Any
    edge_features: Any = None
    allowed: Any = None


class Trees(NamedTuple):
    """The checked trees of all examples, one after the other."""

    rows: Rows  # of nodes
    parent: np.ndarray  # (N,) counted from 0 in each tree, -1 for roots
    order: np.ndarray  # (N,) the nodes of each tree, each after its children
    edge_rows: np.ndarray | None  # (N, F_edge) the features of the edge to the parent, in the node's row
    allowed: list[Any]  # of each tree

    @property
    def n_edge_features(self) -> int:
        """The number of features of an edge."""
        return 0 if self.edge_rows is None else self.edge_rows.shape[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeEncoder(LabellingEncoder):
    """The encoder of trees."""

    n_edge_features: int

    @classmethod
    def learn(
        cls, X: Any, y: Any, *, dtype: Any, fit_bias: bool, with_grams: bool, cost: Any = None, class_weight: Any = None
    ) -> tuple[TreeEncoder, TreeProblem]:
        """The encoder and the problem of training trees; arguments are those of `TreeSVM`."""
        trees = stack_trees(X, dtype=dtype)
        classes, labels = np.unique(flatten_labels(y, trees.rows, "tree"), return_inverse=True)
        penalty = label_penalties(trees, classes, dtype)
        check_gold_allowed(labels, penalty, trees.rows, classes)
        costs = labelling_costs(cost, class_weight, classes, labels, trees.rows.lengths)
        encoder = cls.of(trees.rows, dtype, has_bias=fit_bias, classes=classes, n_edge_features=trees.n_edge_features)
        return encoder, encoder._assemble(trees, labels, costs, penalty, with_grams)

    def problem(self, X: Any, y: Any = None) -> TreeProblem:
        trees = stack_trees(X, self.n_features_in, self.n_edge_features, self.dtype)
        labels = self.truth(y, trees.rows, "tree")
        costs = labelling_costs(None, None, self.classes, labels, trees.rows.lengths)
        return self._assemble(trees, labels, costs, label_penalties(trees, self.classes, self.dtype), False)

    def _assemble(self, trees: Trees, labels: np.ndarray, costs: Any, penalty: np.ndarray, grams: bool) -> TreeProblem:
        trees = trees._replace(rows=self.stored(trees.rows))
        return tree_problem(trees, labels, costs[0], costs[1], penalty, with_bias=self.has_bias, for_training=grams)

    def layout(self, problem: TreeProblem) -> tuple[Any, ...]:
        return problem.offsets, problem.parent, problem.kind, problem.kind_offsets, problem.penalty

    def names(self, w: np.ndarray) -> Bunch:
        n_labels, width = len(self.classes), self.n_features_in
        n_node_weights = w.size - (1 + self.n_edge_features) * n_labels**2
        nodes = w[:n_node_weights].reshape(-1, n_labels)
        edges = w[n_node_weights:].reshape(-1, n_labels, n_labels).transpose(0, 2, 1)  # stored child by parent
        named = Bunch(emissions=nodes[:width], transitions=edges[0])
        if self.n_edge_features:
            named.edges = edges[1:]
        if self.has_bias:
            named.update(zip(BIASES, nodes[width:], strict=True))
        return named


def stack_trees(X: Any, n_features: int | None = None, n_edge_features: int | None = None, dtype: Any = float) -> Trees:
    """Check trees and put them one after the other.

    Parameters
    ----------
    X : a list of `Tree` or of tuples of the same two to four entries
    n_features, n_edge_features : the expected widths
    dtype : what features will be stored as

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.encode.tree import stack_trees
    >>> trees = stack_trees([(np.eye(3), [(1, 0), (1, 2)])])
    >>> trees.parent.tolist(), trees.order.tolist()
    ([1, -1, 1], [0, 2, 1])
    """
    check_examples(X, "trees", "tree")
    for i, tree in enumerate(X):
        if not isinstance(tree, tuple) or not 2 <= len(tree) <= 4:
            raise TypeError(f"X[{i}] must be a Tree, or a tuple (features, edges), not a {type(tree).__name__}.")
        if np.shape(tree[0])[:1] == (0,):
            raise ValueError(f"X[{i}] has no nodes: a tree needs at least one.")
    trees = [Tree(*tree) for tree in X]
    rows = stack_rows([tree.features for tree in trees], n_features=n_features, dtype=dtype)
    edges = [check_parents(tree.edges, f"X[{i}]", int(rows.lengths[i])) for i, tree in enumerate(trees)]
    parent = np.full(rows.offsets[-1], -1, np.int64)
    for ends, lo in zip(edges, rows.offsets[:-1], strict=True):
        parent[lo + ends[:, 1]] = ends[:, 0]
    order = children_first(parent, rows.offsets)
    return Trees(
        rows, parent, order, _edge_rows(trees, edges, rows, n_edge_features, dtype), [tree.allowed for tree in trees]
    )


def _edge_rows(
    trees: list[Tree], edges: list[np.ndarray], rows: Rows, expected: int | None, dtype: Any
) -> np.ndarray | None:
    """The features of edges, checked, in the rows of their children."""
    given = [i for i, tree in enumerate(trees) if tree.edge_features is not None]
    if expected == 0 and given:
        raise ValueError(f"X[{given[0]}] has edge features, but the model was fitted without.")
    if not given and not expected:
        return None
    stacked, width = None, expected
    for i, (tree, ends) in enumerate(zip(trees, edges, strict=True)):
        if len(ends) == 0:
            continue
        if tree.edge_features is None:
            raise ValueError(f"X[{i}] has no edge features, but {f'X[{given[0]}] has' if given else 'fit had'} some.")
        values = check_edge_features(tree.edge_features, len(ends), i, dtype)
        if width is not None and values.shape[1] != width:
            raise ValueError(f"X[{i}] has {values.shape[1]} features per edge, but {width} are expected.")
        if stacked is None:
            width = values.shape[1]
            stacked = np.zeros((rows.offsets[-1], width))
        stacked[rows.offsets[i] + ends[:, 1]] = values
    return stacked


def number_kinds(trees: Trees) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges of a tree that have the same features are of one kind.

    Returns
    -------
    (N,) the kind of the edge to each node's parent, counted from 0 in each tree, -1 for roots; (n + 1,) offsets of the
    kinds of each tree; (K, 1 + F_edge) their features, the first of which is 1
    """
    n = len(trees.rows.lengths)
    is_child = trees.parent >= 0
    example = np.repeat(np.arange(n), trees.rows.lengths)[is_child]
    keys = example[:, np.newaxis].astype(np.float64)
    if trees.edge_rows is not None:
        keys = np.hstack([keys, trees.edge_rows[is_child] + 0.0])  # -0.0 is 0.0
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    offsets = np.searchsorted(distinct[:, 0], np.arange(n + 1))
    kind = np.full(len(trees.parent), -1, np.int64)
    kind[is_child] = inverse.ravel() - offsets[example]
    return kind, offsets, np.hstack([np.ones((len(distinct), 1)), distinct[:, 1:]])


def label_penalties(trees: Trees, classes: np.ndarray, dtype: Any) -> np.ndarray:
    """(N, L) potentials of labels before any weight: zero, or IMPOSSIBLE for those a node cannot have.

    (0, L) where all nodes can have all labels.
    """
    if all(allowed is None for allowed in trees.allowed):
        return np.zeros((0, len(classes)), dtype)
    index = {label: k for k, label in enumerate(classes.tolist())}
    penalty = np.zeros((len(trees.parent), len(classes)), dtype)
    for i, (sets, lo, length) in enumerate(
        zip(trees.allowed, trees.rows.offsets[:-1], trees.rows.lengths, strict=True)
    ):
        if sets is None:
            continue
        if not isinstance(sets, Sequence) or len(sets) != length:
            raise ValueError(f"The allowed labels of X[{i}] must be a list with {length} entries, one per node.")
        for t, labels in enumerate(sets):
            if labels is None:
                continue
            if not isinstance(labels, Collection) or isinstance(labels, str) or len(labels) == 0:
                raise ValueError(f"The allowed labels of node {t} of X[{i}] must be a collection of labels, or None.")
            unknown = [label for label in labels if label not in index]
            if unknown:
                raise ValueError(f"The allowed labels of X[{i}] contain {unknown[0]!r}, which is not a label in y.")
            penalty[lo + t] = IMPOSSIBLE
            penalty[lo + t, [index[label] for label in labels]] = 0
    return penalty


def check_gold_allowed(labels: np.ndarray, penalty: np.ndarray, rows: Rows, classes: np.ndarray) -> None:
    """Raise where a true label is not among those its node can have."""
    if len(penalty) == 0:
        return
    is_forbidden = penalty[np.arange(len(labels)), labels] != 0
    if is_forbidden.any():
        node = int(np.flatnonzero(is_forbidden)[0])
        example, place = locate(node, rows.offsets)
        label = classes[labels[node]].item()
        raise ValueError(f"y[{example}] has the label {label!r} at node {place}, which is not allowed there.")


def tree_problem(
    trees: Trees,
    labels: np.ndarray,
    costs: np.ndarray,
    scales: np.ndarray,
    penalty: np.ndarray,
    *,
    with_bias: bool,
    for_training: bool,
) -> TreeProblem:
    """Put the checked parts together, in the dtype of `penalty`.

    Parameters
    ----------
    trees : the checked trees
    labels : (N,) the true labels
    costs, scales : (L, L) costs of labels and (N,) weights of nodes
    penalty : (N, L) or (0, L) impossible labels
    with_bias : append three features: 1 for every node, for roots and for leaves
    for_training : compute what direction norms need, which are part of training on the hinge loss
    """
    dtype, rows = penalty.dtype, trees.rows
    if with_bias:
        rows = append_columns(rows, _bias_columns(trees))
    kind, kind_offsets, kind_rows = number_kinds(trees)
    edge_rows = Rows(kind_rows, kind_offsets)
    return TreeProblem(
        features=row_features(rows, dtype, with_grams=for_training),
        edge_features=row_features(edge_rows, dtype, with_grams=for_training),
        offsets=rows.offsets.astype(np.int64),
        kind_offsets=kind_offsets.astype(np.int64),
        parent=trees.parent.astype(np.int32),
        kind=kind.astype(np.int32),
        order=trees.order.astype(np.int32),
        labels=labels.astype(np.int32),
        node_cost=scales.astype(dtype),
        cost_matrix=np.ascontiguousarray(costs, dtype),
        penalty=np.ascontiguousarray(penalty),
        n_features=rows.matrix.shape[1],
        n_edge_features=kind_rows.shape[1],
    )


def _bias_columns(trees: Trees) -> np.ndarray:
    columns = np.zeros((len(trees.parent), len(BIASES)))
    is_root = trees.parent < 0
    first = np.repeat(trees.rows.offsets[:-1], trees.rows.lengths)
    columns[:, 0] = 1
    columns[is_root, 1] = 1
    columns[:, 2] = 1
    columns[(trees.parent + first)[~is_root], 2] = 0
    return columns
