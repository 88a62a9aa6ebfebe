"""Trees: labels of the nodes of rooted forests, scored by nodes and by edges.

An output of example i is a row of T labels, one per node. Edges of an example that have the same features are of one
*kind*. The parts are the T x L indicators of (node, label), then for each kind the L x L counts of (label of the child,
label of the parent): a forest with plain transitions has one kind of edge and as few parts as a chain. The weights are
those of nodes, shape (F, L), then those of edges, shape (F_edge, L, L), flat; of both only those of observed pairs, if
the features say so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.lanes import padded
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import rows_of, squared_sums
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures import labelled_edges
from maxmargin.structures.k_best import k_best
from maxmargin.structures.trees import tree_dp, tree_sums
from maxmargin.structures.trees.tree_dp import Forest
from maxmargin.supervision.exclusions import rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs


class TreeProblem(NamedTuple):
    """Forests stored one after the other: example i has the nodes starts[i]:starts[i + 1].

    The features of its kinds of edges are the rows kind_starts[i]:kind_starts[i + 1]. Nodes and kinds are counted
    from 0 in each example.
    """

    features: Any
    edge_features: Any
    starts: np.ndarray  # (n + 1,) int64
    kind_starts: np.ndarray  # (n + 1,) int64
    parent: np.ndarray  # (N,) int32, -1 for roots
    kind: np.ndarray  # (N,) int32, of the edge to the parent, -1 for roots
    order: np.ndarray  # (N,) int32, the nodes of each example, each after its children
    supervision: LabelSupervision
    kind_cost: np.ndarray  # (kinds, L^2) costs of labels of a child and its parent; (0, L^2) where there are none
    excluded: Blocks  # flags of labels that nodes cannot have
    n_features: int
    n_edge_features: int


class TreeWork(NamedTuple):
    """Tables of the dynamic programs, rows for the largest forest, and the buffers of direction norms."""

    rows: np.ndarray  # (kinds * L, W) of max-product
    sums: tree_sums.ForestSums  # two of them are also max-product's
    spread: np.ndarray  # as the weights of nodes, or empty
    edge_spread: np.ndarray  # as those of edges, or empty
    branches: np.ndarray  # (K, 3) of the top-K oracle


@helper
def forest_of(problem, i):
    """The edges of example i."""
    lo = problem.starts[i]
    hi = problem.starts[i + 1]
    return Forest(problem.parent[lo:hi], problem.kind[lo:hi], problem.order[lo:hi])


@implements(labelled_edges.edge_rows, TreeProblem)
def kind_rows(problem, i):
    return problem.kind_starts[i], problem.kind_starts[i + 1]


labelled_edges.have_labelled_edges(TreeProblem)


@implements(generics.part_sizes, TreeProblem)
def tree_part_sizes(problem):
    n_labels = problem.supervision.cost.shape[1]
    return np.diff(problem.starts) * n_labels + np.diff(problem.kind_starts) * n_labels * n_labels


@implements(generics.squared_diameters, TreeProblem)
def tree_squared_diameters(problem):
    n = len(problem.starts) - 1
    example = np.repeat(np.arange(n), np.diff(problem.starts))
    is_edge = problem.parent >= 0
    kind = (problem.kind_starts[example] + problem.kind)[is_edge]
    edges = sp.csr_array(
        (np.ones(kind.size), (example[is_edge], kind)), shape=(n, int(problem.kind_starts[-1]))
    )  # adds up those of one kind
    nodes = squared_sums(problem.features, rows_of(problem.starts))
    return 2 * (nodes + squared_sums(problem.edge_features, edges))


@implements(generics.workspace, TreeProblem)
def tree_workspace(problem, n_best):
    n_labels = problem.supervision.cost.shape[1]
    longest = np.diff(problem.starts).max()
    most_kinds = np.diff(problem.kind_starts).max()
    dtype = problem.supervision.cost.dtype
    return TreeWork(
        rows=aligned((most_kinds * n_labels, padded(n_labels)), dtype),
        sums=tree_sums.new_tables(longest, most_kinds, n_labels, dtype),
        branches=aligned((n_best, 3), np.int64),
        **labelled_edges.norm_buffers(problem),
    )


@implements(generics.scores, TreeProblem)
def tree_scores(problem, w, i, theta):
    labelled_edges.score_features(problem, w, i, theta)
    rule_out(problem.excluded, i, theta)


@implements(generics.augment, TreeProblem)
def augment_tree(problem, i, theta):
    nodes, kinds = labelled_edges.nodes_and_edges(problem, i, theta)
    add_costs(problem.supervision, problem.starts[i], nodes)
    if problem.kind_cost.shape[0] > 0:
        for k in range(kinds.shape[0]):
            for p in range(kinds.shape[1]):
                kinds[k, p] += problem.kind_cost[problem.kind_starts[i] + k, p]


@implements(generics.add_output, TreeProblem)
def add_labelling(problem, i, y, scale, mu):
    nodes, pairs = labelled_edges.nodes_and_tables(problem, i, mu)
    lo = problem.starts[i]
    n_labels = nodes.shape[1]
    for t in range(nodes.shape[0]):
        nodes[t, y[t]] += scale
        if problem.parent[lo + t] >= 0:
            table = matrix(pairs, problem.kind[lo + t] * n_labels**2, n_labels, n_labels)
            table[y[t], y[problem.parent[lo + t]]] += scale


@implements(generics.score_output, TreeProblem)
def score_labelling(problem, i, theta, y):
    nodes, pairs = labelled_edges.nodes_and_tables(problem, i, theta)
    lo = problem.starts[i]
    n_labels = nodes.shape[1]
    total = 0.0
    for t in range(nodes.shape[0]):
        total += nodes[t, y[t]]
        if problem.parent[lo + t] >= 0:
            table = matrix(pairs, problem.kind[lo + t] * n_labels**2, n_labels, n_labels)
            total += table[y[t], y[problem.parent[lo + t]]]
    return total


@helper
def best_scores(problem, i, theta, work):
    """Run max-product; return the potentials, the forest, and what the best scores of subtrees lack."""
    nodes, pairs = labelled_edges.nodes_and_tables(problem, i, theta)
    forest = forest_of(problem, i)
    lacking = tree_dp.max_product(nodes, pairs, forest, work.sums.belief, work.sums.message, work.rows)
    return nodes, pairs, forest, lacking


@implements(generics.max_oracle, TreeProblem)
def max_tree(problem, i, theta, y, work):
    nodes, pairs, forest, lacking = best_scores(problem, i, theta, work)
    return lacking + tree_dp.decode(nodes, pairs, forest, work.sums.belief, work.sums.message, y)


@implements(generics.topk_oracle, TreeProblem)
def topk_tree(problem, i, theta, outputs, values, level, work):
    nodes, pairs, forest, lacking = best_scores(problem, i, theta, work)
    best = lacking + tree_dp.best_of_roots(forest, work.sums.belief, nodes.shape[1])
    labellings = tree_dp.Labellings(nodes, pairs, forest, work.sums.belief, work.sums.message)
    count = k_best(labellings, forest.order.size, best, outputs, values, level, work.branches)
    generics.rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.exp_oracle, TreeProblem)
def exp_tree(problem, i, theta, mu, work):
    nodes, pairs = labelled_edges.nodes_and_tables(problem, i, theta)
    means, counts = labelled_edges.nodes_and_tables(problem, i, mu)
    forest = forest_of(problem, i)
    log_z, is_safe = tree_sums.upward_shares(nodes, pairs, forest, work.sums)
    if is_safe:
        tree_sums.downward_shares(means, counts, forest, work.sums)
        return log_z
    return tree_sums.log_sum_product(nodes, pairs, forest, means, counts, work.sums.belief, work.sums.message)


@implements(generics.max_marginals, TreeProblem)
def tree_max_marginals(problem, i, theta, out, work):
    _, pairs, forest, lacking = best_scores(problem, i, theta, work)
    best, _ = labelled_edges.nodes_and_tables(problem, i, out)
    tree_dp.max_marginals(pairs, forest, work.sums.belief, work.sums.message, lacking, best)
