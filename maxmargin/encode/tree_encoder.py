"""Trees with features to a `TreeProblem`.

Every check of the user's trees is here: what passes is safe for the loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.edges import Graphs, check_parents, children_first, join_graphs
from maxmargin.encode.inputs.example_checks import check_examples, flatten_weights, locate
from maxmargin.encode.inputs.node_edge_encoder import NodeEdgeEncoder
from maxmargin.encode.inputs.rows import Rows, append_columns, append_constant
from maxmargin.encode.names.vocabulary import known_by_name, learn_names
from maxmargin.encode.partial.annotations import Annotations, find_weak, learn_annotations, supervise_annotations
from maxmargin.encode.partial.cost_tables import check_one_cost, read_edge_costs, read_node_costs
from maxmargin.structures.trees.tree_problem import TreeProblem
from maxmargin.supervision.exclusions import exclude_labels
from maxmargin.supervision.label_supervision import LabelSupervision, supervise
from maxmargin.supervision.weak import Learned
from maxmargin.wording import name_type

BIASES = ("bias", "root", "leaf")  # features of every node, of those without a parent and of those without children


class Tree(NamedTuple):
    """A rooted tree, or forest, with features: one example of `TreeSVM` and `TreeCRF`.

    Attributes
    ----------
    features
        (T, F) array or sparse matrix, a row per node, or a list of T items, feature dictionaries or lists of names.
    edges
        (E, 2) integers, the nodes of each edge: parent, child; nodes without a parent are roots.
    edge_features : (E, F_edge) array, a row per edge, or None
    allowed
        For each node the collection of labels it can have, None for all; or None.

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


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeEncoder(NodeEdgeEncoder[TreeProblem]):
    """The encoder of trees."""

    of_edges: ClassVar = {"own_kinds": True}  # what `problem` takes, so that each edge has parts of its own

    n_edge_features: int

    @property
    def n_all_edge_features(self) -> int:
        return 1 + self.n_edge_features

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        with_grams: bool,
        only_observed: bool | str,
        cost: object = None,
        class_weight: object = None,
        min_count: int = 1,
        n_hashed: int | None = None,
        node_weight: object = None,
        node_cost: object = None,
        edge_cost: object = None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: TreeEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training trees; arguments are those of `TreeSVM`."""
        X = check_trees(X)
        names, labels = (None, None) if former is None else (former.vocabulary, former.classes)
        given = [tree.features for tree in X]
        vocabulary, features = learn_names(given, min_count=min_count, n_hashed=n_hashed, former=names)
        trees = stack_trees(X, features)
        nodes = trees.nodes
        annotated = learn_annotations(y, nodes.lengths, nodes.starts, "tree", former=labels)
        classes = annotated.classes
        excluded = excluded_labels(X, nodes, classes)
        if len(excluded):
            annotated = annotated.without(excluded, nodes.starts, "others are not allowed there")
        labels = annotated.labels
        is_excluded = excluded[np.arange(len(excluded)), labels[: len(excluded)]]
        if is_excluded.any():
            node = int(np.flatnonzero(is_excluded)[0])
            i, place = locate(node, nodes.starts)
            label = classes[labels[node]].item()
            raise ValueError(f"y[{i}] has the label {label!r} at node {place}, which is not allowed there.")
        weights = flatten_weights(node_weight, nodes.lengths, "node_weight", "tree")
        supervision = supervise_annotations(annotated, cost, class_weight, nodes.lengths, dtype, weights)
        if node_cost is not None:
            check_one_cost(class_weight)
            table = read_node_costs(node_cost, annotated, nodes.starts, "tree")
            supervision = supervise(labels, table, weights, dtype, np.arange(len(labels)))
        width = trees.edges.matrix.shape[1]
        known = {"has_bias": fit_intercept, "classes": classes, "vocabulary": vocabulary, "n_edge_features": width}
        encoder = cls.of(nodes, dtype, stores_sparse=bool(only_observed), former=former, **known)
        trees = encoder.stored_trees(trees)
        if only_observed:
            edges = sp.csr_array(append_constant(trees.edges).matrix[:, [width, *range(width)]])
            of_nodes, of_edges = occurring_labels(annotated, trees)
            encoder = encoder.observe(only_observed, trees.nodes.matrix, of_nodes, edges, of_edges)
        encoder = encoder.after(former)
        costs = None
        if edge_cost is not None:
            costs = read_edge_costs(edge_cost, annotated, trees.ends_in_all, trees.edges.starts, "tree")
        problem = encoder.assemble(trees, supervision, excluded, costs, with_grams=with_grams)
        return Learned(encoder, problem, find_weak(encoder, problem, annotated, trees.ends_in_all))

    def problem(self, X: object, y: object = None, *, own_kinds: bool = False) -> TreeProblem:
        X = check_trees(X)
        features = known_by_name([tree.features for tree in X], self.vocabulary)
        trees = stack_trees(X, features, self.n_features_in, self.n_edge_features)
        labels = self.truth(y, trees.nodes, "tree")
        excluded = excluded_labels(X, trees.nodes, self.classes)
        return self.assemble(self.stored_trees(trees), self.unsupervised(labels), excluded, own_kinds=own_kinds)

    def stored_trees(self, trees: Graphs) -> Graphs:
        """Trees with nodes stored as those of training, with the features of biases if there are any."""
        nodes = self.stored(trees.nodes)
        if self.has_bias:
            parents, children = trees.ends_in_all.T
            columns = np.ones((nodes.starts[-1], len(BIASES)))
            columns[children, 1] = columns[parents, 2] = 0
            nodes = append_columns(nodes, columns)
        return trees._replace(nodes=nodes)

    def assemble(
        self,
        trees: Graphs,
        supervision: LabelSupervision,
        excluded: np.ndarray,
        edge_cost: np.ndarray | None = None,
        *,
        with_grams: bool = False,
        own_kinds: bool = False,
    ) -> TreeProblem:
        """Put stored trees, what is known of their labels, labels that are ruled out, and costs of edges together."""
        nodes, children = trees.nodes, trees.ends_in_all[:, 1]
        parent, kind = np.full((2, int(nodes.starts[-1])), -1)
        parent[children] = trees.ends[:, 0]
        # Edges of a tree that have the same features, and costs, are of one kind, counted from 0 in each tree, unless
        # each is to have one of its own.
        example = np.repeat(np.arange(len(nodes.lengths)), trees.edges.lengths)
        keys = np.column_stack([example, trees.edges.matrix + 0.0])  # -0.0 is 0.0
        width, kind_cost = keys.shape[1], np.zeros((0, len(self.classes) ** 2))
        if edge_cost is not None:
            keys = np.column_stack([keys, edge_cost.transpose(0, 2, 1).reshape(len(keys), -1)])  # child by parent
        if own_kinds:
            keys = np.column_stack([keys, np.arange(len(keys))])
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        if own_kinds:
            distinct = np.ascontiguousarray(distinct[:, :width])
        if edge_cost is not None:
            distinct, kind_cost = np.ascontiguousarray(distinct[:, :width]), distinct[:, width:]
        kind_starts = np.searchsorted(distinct[:, 0], np.arange(len(nodes.starts)))
        kind[children] = inverse.ravel() - kind_starts[example]
        distinct[:, 0] = 1  # a feature of every edge, in place of the tree
        return TreeProblem(
            features=self.features(nodes, self.node_pairs, with_grams=with_grams),
            edge_features=self.features(Rows(distinct, kind_starts), self.edge_pairs, with_grams=with_grams),
            starts=nodes.starts.astype(np.int64),
            kind_starts=kind_starts.astype(np.int64),
            parent=parent.astype(np.int32),
            kind=kind.astype(np.int32),
            order=children_first(parent, nodes.starts).astype(np.int32),
            supervision=supervision,
            kind_cost=np.ascontiguousarray(kind_cost, self.dtype),
            excluded=exclude_labels(excluded, nodes.starts),
            n_features=nodes.matrix.shape[1],
            n_edge_features=distinct.shape[1],
        )

    def check_left(self, problem: TreeProblem, allowed: np.ndarray, name: str) -> None:
        if problem.excluded.values.size:
            left = allowed & ~problem.excluded.values.reshape(allowed.shape)
            if not left.any(axis=1).all():
                i, node = locate(int(np.argmin(left.any(axis=1))), problem.starts)
                raise ValueError(f"{name}[{i}] leaves no label for node {node}: its tree allows only others.")

    def arrange_edges(self, problem: TreeProblem, parts: Blocks, edges: Sequence[np.ndarray]) -> list[np.ndarray]:
        """(E, L, L) tables of parents by children, of edges that are all of kinds of their own."""
        n_labels, found = len(self.classes), []
        for i, (lo, hi) in enumerate(pairwise(problem.starts.tolist())):
            of_edges = parts.values[parts.starts[i] + (hi - lo) * n_labels : parts.starts[i + 1]]
            kinds = problem.kind[lo + edges[i][:, 1]]
            found.append(of_edges.reshape(-1, n_labels, n_labels)[kinds].transpose(0, 2, 1))
        return found

    def mean_parts(self, problem: TreeProblem, means: np.ndarray) -> Blocks:
        n_labels, blocks = means.shape[1], []
        n_kinds = np.diff(problem.kind_starts)
        for i, (lo, hi) in enumerate(pairwise(problem.starts.tolist())):
            tables = np.zeros((n_kinds[i], n_labels, n_labels))
            children = lo + np.flatnonzero(problem.parent[lo:hi] >= 0)
            of_parents = means[lo + problem.parent[children]]
            np.add.at(tables, problem.kind[children], means[children][:, :, np.newaxis] * of_parents[:, np.newaxis])
            blocks.append(np.append(means[lo:hi], tables))
        return as_blocks(blocks, self.dtype)

    def dual_shape(self, problem: TreeProblem) -> tuple[object, ...]:
        return problem.starts, problem.parent, problem.kind, problem.kind_starts, problem.excluded

    def names(self, w: np.ndarray) -> Bunch:
        emissions, biases, edges = self.tables(w, 1 + self.n_edge_features)
        return Bunch(emissions=emissions, **name_tables(edges), **dict(zip(BIASES, biases, strict=False)))


def name_tables(edges: np.ndarray) -> dict[str, np.ndarray]:
    """The weights of edges by their names, of tables (1 + F_edge, L, L) that are stored child by parent."""
    tables = edges.transpose(0, 2, 1)
    named = {"transitions": tables[0]}
    return named | {"edges": tables[1:]} if len(tables) > 1 else named


def occurring_labels(known: Annotations, trees: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """What observed weights are of: labels, and those of edges; all that agree, if they are known in part."""
    parents, children = trees.ends_in_all.T
    if known.allowed is None:
        edge_labels = known.labels[children] * len(known.classes) + known.labels[parents]
        return known.labels, edge_labels
    pairs = known.allowed[children][:, :, np.newaxis] & known.allowed[parents][:, np.newaxis]
    return known.allowed, pairs.reshape(len(pairs), -1)


def check_trees(X: object) -> list[Tree]:
    """Check that examples are trees, or tuples of the same two to four entries."""
    X = [*X] if isinstance(X, Iterator) else X
    X = check_examples(X, "trees", "tree")
    for i, tree in enumerate(X):
        if not isinstance(tree, tuple) or not 2 <= len(tree) <= 4:
            raise TypeError(f"X[{i}] must be a Tree, or a tuple (features, edges), not {name_type(tree)}.")
    return [Tree(*tree) for tree in X]


def stack_trees(
    X: list[Tree], features: Sequence[object], n_features: int | None = None, n_edge_features: int | None = None
) -> Graphs:
    """Check the features, a matrix per tree or `Rows`, and the edges of trees, and stack them."""
    matrices = features.split() if isinstance(features, Rows) else features
    parts = [(matrix, tree.edges, tree.edge_features) for matrix, tree in zip(matrices, X, strict=True)]
    return join_graphs(parts, "tree", check_parents, n_features, n_edge_features)


def excluded_labels(X: list[Tree], nodes: Rows, classes: np.ndarray) -> np.ndarray:
    """(N, L) flags of labels that nodes cannot have; (0, L) where they can have all."""
    allowed = [tree.allowed for tree in X]
    if all(sets is None for sets in allowed):
        return np.zeros((0, len(classes)), bool)
    index = {label: k for k, label in enumerate(classes.tolist())}
    excluded = np.zeros((nodes.starts[-1], len(classes)), bool)
    for i, (sets, lo, length) in enumerate(zip(allowed, nodes.starts[:-1], nodes.lengths, strict=True)):
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
            excluded[lo + t] = True
            excluded[lo + t, [index[label] for label in labels]] = False
    return excluded
