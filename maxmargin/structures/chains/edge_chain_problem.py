"""Chains whose transitions have features: sequences of labels scored by what is at each position, and between two.

An output of example i is a row of T labels. Its parts are the T x L indicators of (position, label), then for each
position but the first the L x L indicators of the transition into it. The weights are those of positions, shape (F, L),
then those of transitions, shape (F_edge, L^2), flat; of both only those of observed pairs, if the features say so. The
first feature of transitions is 1 in all of them: a chain without others is a `ChainProblem`, which is faster.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, in_precision
from maxmargin.arrays.lanes import padded
from maxmargin.arrays.vectors import copy_into
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import (
    join_layouts,
    layout_of_rows,
    norm_buffer,
    rows_of,
    score_rows,
    spread_rows,
    squared_norm_rows,
    squared_sums,
    weight_shape,
    with_gram,
)
from maxmargin.problem import part_sizes, rank
from maxmargin.runtime.dispatch import helper, implements, supports
from maxmargin.structures.chains import chain_sums, edge_chain_dp
from maxmargin.structures.chains.chain_dp import highest_of
from maxmargin.structures.chains.chain_problem import add_end_penalties
from maxmargin.structures.k_best import k_best
from maxmargin.supervision.exclusions import exclude_parts, rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs


class EdgeChainProblem(NamedTuple):
    """Sequences stored one after the other, as those of `ChainProblem`.

    Those of example i are the rows starts[i]:starts[i + 1], and its transitions edge_starts[i]:edge_starts[i + 1].
    """

    features: Any
    edge_features: Any
    starts: np.ndarray  # (n + 1,) int64
    edge_starts: np.ndarray  # (n + 1,) int64
    supervision: LabelSupervision
    transition_cost: np.ndarray  # (n, L^2) costs of transitions of each example; (0, L^2) where there are none
    excluded: Blocks  # flags of labels that positions cannot have
    penalty: np.ndarray  # (L, L) zero, or IMPOSSIBLE for forbidden transitions
    end_penalty: np.ndarray  # (2, L) the same for the first and for the last label
    n_features: int
    n_edge_features: int


class EdgeChainWork(NamedTuple):
    """Tables of the dynamic programs, with rows for the longest sequence, and the buffers of direction norms."""

    table: np.ndarray  # (L, W) of Viterbi
    forward: np.ndarray  # (T, W) of Viterbi
    arrivals: np.ndarray  # (T, W) of Viterbi
    sums: chain_sums.SumTables  # in float64, as potentials and mean parts are there
    theta: np.ndarray
    mu: np.ndarray
    spread: np.ndarray  # as the weights of positions, or empty
    edge_spread: np.ndarray  # as those of transitions, or empty
    branches: np.ndarray  # (K, 3) of the top-K oracle


@helper
def node_and_edge_weights(problem, w):
    """The weights of positions and those of transitions, as views."""
    n_labels = problem.penalty.shape[0]
    rows, columns = weight_shape(problem.features, problem.n_features, n_labels)
    edge_rows, edge_columns = weight_shape(problem.edge_features, problem.n_edge_features, n_labels * n_labels)
    return matrix(w, 0, rows, columns), matrix(w, rows * columns, edge_rows, edge_columns)


@helper
def nodes_and_edges(problem, i, parts):
    """The T x L parts of positions of example i, and a row of L^2 for each of its transitions, as views."""
    n_labels = problem.penalty.shape[0]
    length = problem.starts[i + 1] - problem.starts[i]
    n_edges = problem.edge_starts[i + 1] - problem.edge_starts[i]
    return matrix(parts, 0, length, n_labels), matrix(parts, length * n_labels, n_edges, n_labels * n_labels)


@helper
def nodes_and_pairs(problem, i, parts):
    """As `nodes_and_edges`, with the parts of transitions in one flat array."""
    n_labels = problem.penalty.shape[0]
    length = problem.starts[i + 1] - problem.starts[i]
    n_edges = problem.edge_starts[i + 1] - problem.edge_starts[i]
    first = length * n_labels
    return matrix(parts, 0, length, n_labels), parts[first : first + n_edges * n_labels * n_labels]


@implements(generics.true_outputs, EdgeChainProblem)
def true_labellings(problem):
    return Blocks(problem.supervision.labels, problem.starts)


@implements(generics.new_weights, EdgeChainProblem)
def new_edge_chain_weights(problem):
    n_labels = problem.penalty.shape[0]
    nodes = weight_shape(problem.features, problem.n_features, n_labels)
    edges = weight_shape(problem.edge_features, problem.n_edge_features, n_labels**2)
    return np.zeros(math.prod(nodes) + math.prod(edges), problem.penalty.dtype)


@implements(generics.part_sizes, EdgeChainProblem)
def edge_chain_part_sizes(problem):
    n_labels = problem.penalty.shape[0]
    return (np.diff(problem.starts) + np.diff(problem.edge_starts) * n_labels) * n_labels


@implements(generics.squared_diameters, EdgeChainProblem)
def edge_chain_squared_diameters(problem):
    nodes = squared_sums(problem.features, rows_of(problem.starts))
    return 2 * (nodes + squared_sums(problem.edge_features, rows_of(problem.edge_starts)))


@implements(generics.layout, EdgeChainProblem)
def edge_chain_layout(problem):
    n_labels = problem.penalty.shape[0]
    nodes = layout_of_rows(problem.features, problem.n_features, n_labels)
    return join_layouts(nodes, layout_of_rows(problem.edge_features, problem.n_edge_features, n_labels**2))


@implements(generics.prepare, EdgeChainProblem)
def prepare_edge_chain(problem, dtype):
    prepared = in_precision(problem, dtype)
    rows = {"features": (problem.starts, problem.n_features)}
    rows["edge_features"] = problem.edge_starts, problem.n_edge_features
    found = {name: getattr(prepared, name) for name in rows}
    return prepared._replace(
        **{name: with_gram(part, *rows[name]) for name, part in found.items() if supports(with_gram, part)}
    )


implements(generics.restrict, EdgeChainProblem)(exclude_parts)


@implements(generics.workspace, EdgeChainProblem)
def edge_chain_workspace(problem, n_best):
    n_labels, dtype = problem.penalty.shape[0], problem.penalty.dtype
    longest, n_parts = (int(sizes.max(initial=0)) for sizes in (np.diff(problem.starts), part_sizes(problem)))
    width = padded(n_labels)
    return EdgeChainWork(
        table=aligned((n_labels, width), dtype),
        forward=aligned((longest, width), dtype),
        arrivals=aligned((longest, width), dtype),
        sums=chain_sums.new_tables(longest, n_labels, np.float64),
        theta=aligned((n_parts,), np.float64),
        mu=aligned((n_parts,), np.float64),
        spread=norm_buffer(problem.features, problem.n_features, n_labels, dtype),
        edge_spread=norm_buffer(problem.edge_features, problem.n_edge_features, n_labels**2, dtype),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, EdgeChainProblem)
def edge_chain_scores(problem, w, i, theta):
    node_weights, edge_weights = node_and_edge_weights(problem, w)
    nodes, edges = nodes_and_edges(problem, i, theta)
    score_rows(problem.features, node_weights, problem.starts[i], problem.starts[i + 1], nodes)
    if edges.shape[0] > 0:
        score_rows(problem.edge_features, edge_weights, problem.edge_starts[i], problem.edge_starts[i + 1], edges)
    penalty = matrix(problem.penalty, 0, 1, edges.shape[1])
    for e in range(edges.shape[0]):
        for p in range(edges.shape[1]):
            edges[e, p] += penalty[0, p]
    add_end_penalties(problem.end_penalty, nodes)
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, EdgeChainProblem)
def spread_edge_chain(problem, w, i, delta, scale):
    node_weights, edge_weights = node_and_edge_weights(problem, w)
    nodes, edges = nodes_and_edges(problem, i, delta)
    lo = problem.edge_starts[i]
    spread_rows(problem.features, node_weights, problem.starts[i], problem.starts[i + 1], nodes, scale)
    spread_rows(problem.edge_features, edge_weights, lo, problem.edge_starts[i + 1], edges, scale)


@implements(generics.squared_norm, EdgeChainProblem)
def edge_chain_squared_norm(problem, i, delta, work):
    nodes, edges = nodes_and_edges(problem, i, delta)
    lo = problem.edge_starts[i]
    total = squared_norm_rows(problem.features, i, problem.starts[i], problem.starts[i + 1], nodes, work.spread)
    return total + squared_norm_rows(problem.edge_features, i, lo, problem.edge_starts[i + 1], edges, work.edge_spread)


@implements(generics.augment, EdgeChainProblem)
def augment_edge_chain(problem, i, theta):
    nodes, edges = nodes_and_edges(problem, i, theta)
    add_costs(problem.supervision, problem.starts[i], nodes)
    if problem.transition_cost.shape[0] > 0:
        for e in range(edges.shape[0]):
            for p in range(edges.shape[1]):
                edges[e, p] += problem.transition_cost[i, p]


@implements(generics.add_output, EdgeChainProblem)
def add_labelling(problem, i, y, scale, mu):
    nodes, edges = nodes_and_edges(problem, i, mu)
    for t in range(nodes.shape[0]):
        nodes[t, y[t]] += scale
        if t > 0:
            edges[t - 1, y[t - 1] * nodes.shape[1] + y[t]] += scale


@implements(generics.score_output, EdgeChainProblem)
def score_labelling(problem, i, theta, y):
    nodes, edges = nodes_and_edges(problem, i, theta)
    total = 0.0
    for t in range(nodes.shape[0]):
        total += nodes[t, y[t]]
        if t > 0:
            total += edges[t - 1, y[t - 1] * nodes.shape[1] + y[t]]
    return total


@implements(generics.max_oracle, EdgeChainProblem)
def max_edge_chain(problem, i, theta, y, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    lacking = edge_chain_dp.viterbi(nodes, pairs, work.forward, work.arrivals, work.table)
    return lacking + edge_chain_dp.backtrack(nodes, pairs, work.forward, work.arrivals, y)


@implements(generics.topk_oracle, EdgeChainProblem)
def topk_edge_chain(problem, i, theta, outputs, values, level, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    length, n_labels = nodes.shape
    lacking = edge_chain_dp.viterbi(nodes, pairs, work.forward, work.arrivals, work.table)
    best = lacking + highest_of(work.forward, length - 1, n_labels)
    paths = edge_chain_dp.EdgePaths(nodes, pairs, work.forward, work.arrivals)
    count = k_best(paths, length, best, outputs, values, level, work.branches)
    rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.exp_oracle, EdgeChainProblem)
def exp_edge_chain(problem, i, theta, mu, work):
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    nodes, pairs = nodes_and_pairs(problem, i, precise)
    means, counts = nodes_and_pairs(problem, i, work.mu)
    log_z = edge_chain_dp.log_forward(nodes, pairs, work.sums)
    edge_chain_dp.log_backward(nodes, pairs, means, counts, work.sums)
    copy_into(mu, work.mu[: mu.size])
    return log_z


@implements(generics.sample_oracle, EdgeChainProblem)
def sample_edge_chain(problem, i, theta, draws, outputs, work):
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    nodes, pairs = nodes_and_pairs(problem, i, precise)
    edge_chain_dp.sample_paths(nodes, pairs, draws, outputs, work.sums)


@implements(generics.max_marginals, EdgeChainProblem)
def edge_chain_max_marginals(problem, i, theta, out, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    best, _ = nodes_and_pairs(problem, i, out)
    lacking = edge_chain_dp.viterbi(nodes, pairs, work.forward, work.arrivals, work.table)
    edge_chain_dp.max_marginals(nodes, pairs, work.forward, work.arrivals, lacking, best)


@implements(generics.transition_marginals, EdgeChainProblem)
def edge_chain_transition_marginals(problem, i, theta, pairs, out, work):
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    nodes, potentials = nodes_and_pairs(problem, i, precise)
    means, counts = nodes_and_pairs(problem, i, work.mu)
    edge_chain_dp.log_forward(nodes, potentials, work.sums)
    edge_chain_dp.log_backward(nodes, potentials, means, counts, work.sums)
    n_labels = nodes.shape[1]
    for t in range(nodes.shape[0] - 1):
        for k in range(pairs.size):
            out[t * pairs.size + k] = counts[t * n_labels * n_labels + pairs[k]]
