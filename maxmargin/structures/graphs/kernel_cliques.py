"""Graphs whose nodes are scored by a kernel: coefficients of training nodes in place of the weights of features."""

from __future__ import annotations

import math

from maxmargin import problem as generics
from maxmargin.features import WeightLayout, join_layouts, layout_of_rows, weight_shape
from maxmargin.features.kernel_features import KernelFeatures, KnownScores
from maxmargin.features.layout import keep_complete
from maxmargin.features.linear_map import dot_row
from maxmargin.runtime.dispatch import implements, supports
from maxmargin.structures.graphs.cliques import score_column, size_of, squared_norm_cliques
from maxmargin.structures.graphs.graph_problem import (
    EliminationProblem,
    LabelledGraphs,
    LoopyProblem,
    WithOracles,
)


def with_node_features(problem: WithOracles, features: KernelFeatures | KnownScores, width: int) -> WithOracles:
    """A problem with others in place of the features of nodes, of that many coefficients for each of their columns."""
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    columns = nodes.weight // nodes.n_features
    n_columns = int(columns[-1])
    of_column = math.prod(weight_shape(features, width, n_columns)) // n_columns
    nodes = nodes._replace(features=features, n_features=of_column, weight=columns * of_column)
    edges = edges._replace(weight=edges.weight - edges.weight[0] + nodes.weight[-1])
    return problem._replace(graphs=problem.graphs._replace(nodes=nodes, edges=edges))


@implements(generics.layout, EliminationProblem, LoopyProblem)
def graph_layout(problem):
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    n_columns = nodes.weight[-1] // max(nodes.n_features, 1)
    of_edges = WeightLayout(int(edges.weight[-1] - edges.weight[0]))
    return join_layouts(layout_of_rows(nodes.features, nodes.n_features, n_columns), of_edges)


@implements(keep_complete, LabelledGraphs)
def keep_nodes_complete(field):
    features = field.nodes.features
    if not supports(keep_complete, features):
        return field
    return field._replace(nodes=field.nodes._replace(features=keep_complete(features)))


@implements(score_column, KernelFeatures)
def score_kernel_column(features, t, w, at, width):
    return dot_row(features, t, w[at : at + width])


@implements(score_column, KnownScores)
def score_known_column(features, t, w, at, width):
    return features.scores[t, at // width] if width > 0 else features.scores.dtype.type(0)


@implements(squared_norm_cliques, KernelFeatures)
def squared_norm_kernel_cliques(features, cliques, i, delta, buffer):
    """sum_cd K_cd <delta_c, delta_d> over nodes of the same type."""
    lo = cliques.starts[i]
    at = features.gram.at[i]
    total = 0.0
    for c in range(lo, cliques.starts[i + 1]):
        for d in range(lo, c + 1):
            if cliques.type[c] == cliques.type[d]:
                inner = 0.0
                for p in range(size_of(cliques, c)):
                    inner += delta[cliques.part[c] + p] * delta[cliques.part[d] + p]
                total += features.gram.values[at] * inner
            at += 1
    return max(total, 0.0)
