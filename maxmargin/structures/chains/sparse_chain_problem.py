"""Chains with few transitions: a chain whose dynamic programs go along the transitions that are allowed, one by one.

Outputs and weights are those of the chain, its `base`. Parts are those of positions, then the counts of the A
transitions: others cannot be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.lanes import padded
from maxmargin.arrays.vectors import copy_into
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import norm_buffer, score_rows, spread_rows, squared_norm_rows
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.chains import sparse_paths, sparse_sums
from maxmargin.structures.chains.chain_problem import ChainProblem, add_end_penalties
from maxmargin.structures.chains.pruned_steps import highest_of
from maxmargin.structures.chains.sparse_transitions import Transitions, sort_scores
from maxmargin.structures.delegated import delegate
from maxmargin.structures.k_best import k_best
from maxmargin.structures.labelled_edges import node_and_edge_weights
from maxmargin.supervision.exclusions import rule_out
from maxmargin.supervision.label_supervision import add_costs


class SparseChainProblem(NamedTuple):
    """A chain and the transitions that it allows."""

    base: ChainProblem
    transitions: Transitions
    transition_cost: np.ndarray  # (n, A) costs of transitions of each example; (0, A) where there are none


class SparseChainWork(NamedTuple):
    """Tables of the dynamic programs, with rows for the longest sequence, and the buffer of direction norms."""

    sorted_scores: np.ndarray  # (A,)
    forward: np.ndarray  # (T, W) of Viterbi
    arrivals: np.ndarray  # (T, W) of Viterbi
    sums: sparse_sums.SparseSums
    theta: np.ndarray  # in float64
    mu: np.ndarray
    spread: np.ndarray  # as the weights of emissions, or empty
    branches: np.ndarray  # (K, 3) of the top-K oracle


def sparse_chain(base: ChainProblem, transitions: Transitions) -> SparseChainProblem:
    """A chain that allows these transitions."""
    chosen = np.ascontiguousarray(base.transition_cost[:, transitions.number.ravel() >= 0])
    return SparseChainProblem(base, transitions, chosen)


def chain_of(problem: object) -> Any:
    """The chain that a problem is, or is based on."""
    return problem.base if isinstance(problem, SparseChainProblem) else problem


def with_chain(problem: object, **fields: object) -> Any:
    """The same problem with other fields of its chain."""
    chain = chain_of(problem)._replace(**fields)
    return problem._replace(base=chain) if isinstance(problem, SparseChainProblem) else chain


@helper
def nodes_and_transitions(problem, i, parts):
    """The T x L parts of positions of example i, and those of transitions, as views."""
    n_labels = problem.transitions.number.shape[0]
    length = problem.base.starts[i + 1] - problem.base.starts[i]
    first = length * n_labels
    return matrix(parts, 0, length, n_labels), parts[first : first + problem.transitions.after.size]


delegate(
    SparseChainProblem,
    functions=(
        generics.true_outputs,
        generics.new_weights,
        generics.squared_diameters,
        generics.layout,
        generics.prepare,
        generics.restrict,
    ),
)


@implements(generics.part_sizes, SparseChainProblem)
def sparse_part_sizes(problem):
    return np.diff(problem.base.starts) * len(problem.transitions.number) + len(problem.transitions.after)


@implements(generics.workspace, SparseChainProblem)
def sparse_chain_workspace(problem, n_best):
    base, dtype = problem.base, problem.base.penalty.dtype
    longest, n_parts = (int(sizes.max(initial=0)) for sizes in (np.diff(base.starts), generics.part_sizes(problem)))
    n_labels = len(base.penalty)
    return SparseChainWork(
        sorted_scores=aligned((len(problem.transitions.after),), dtype),
        forward=aligned((longest, padded(n_labels)), dtype),
        arrivals=aligned((longest, padded(n_labels)), dtype),
        sums=sparse_sums.new_sparse_sums(longest, problem.transitions),
        theta=aligned((n_parts,), np.float64),
        mu=aligned((n_parts,), np.float64),
        spread=norm_buffer(base.features, base.n_features, n_labels, dtype),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, SparseChainProblem)
def sparse_chain_scores(problem, w, i, theta):
    base = problem.base
    node_weights, weights = node_and_edge_weights(base, w)
    flat = matrix(weights, 0, 1, weights.size)
    nodes, scores = nodes_and_transitions(problem, i, theta)
    score_rows(base.features, node_weights, base.starts[i], base.starts[i + 1], nodes)
    for p in range(scores.size):
        place = problem.transitions.weight[p]
        scores[p] = flat[0, place] if place >= 0 else 0
    add_end_penalties(base.end_penalty, nodes)
    rule_out(base.excluded, i, theta)


@implements(generics.spread, SparseChainProblem)
def spread_sparse_chain(problem, w, i, delta, scale):
    base = problem.base
    node_weights, weights = node_and_edge_weights(base, w)
    flat = matrix(weights, 0, 1, weights.size)
    nodes, moves = nodes_and_transitions(problem, i, delta)
    spread_rows(base.features, node_weights, base.starts[i], base.starts[i + 1], nodes, scale)
    step = w.dtype.type(scale)
    for p in range(moves.size):
        place = problem.transitions.weight[p]
        if place >= 0:
            flat[0, place] += step * moves[p]


@implements(generics.squared_norm, SparseChainProblem)
def sparse_chain_squared_norm(problem, i, delta, work):
    base = problem.base
    nodes, moves = nodes_and_transitions(problem, i, delta)
    total = squared_norm_rows(base.features, i, base.starts[i], base.starts[i + 1], nodes, work.spread)
    for p in range(moves.size):
        if problem.transitions.weight[p] >= 0:
            total += moves[p] * moves[p]
    return total


@implements(generics.augment, SparseChainProblem)
def augment_sparse_chain(problem, i, theta):
    nodes, scores = nodes_and_transitions(problem, i, theta)
    add_costs(problem.base.supervision, problem.base.starts[i], nodes)
    if problem.transition_cost.shape[0] > 0:
        for p in range(scores.size):
            scores[p] += problem.transition_cost[i, p]


@implements(generics.add_output, SparseChainProblem)
def add_labelling(problem, i, y, scale, mu):
    nodes, counts = nodes_and_transitions(problem, i, mu)
    for t in range(y.size):
        nodes[t, y[t]] += scale
        if t > 0:
            p = problem.transitions.number[y[t - 1], y[t]]
            if p >= 0:
                counts[p] += scale


@implements(generics.score_output, SparseChainProblem)
def score_labelling(problem, i, theta, y):
    nodes, scores = nodes_and_transitions(problem, i, theta)
    total = 0.0
    for t in range(y.size):
        total += nodes[t, y[t]]
        if t > 0:
            p = problem.transitions.number[y[t - 1], y[t]]
            total += scores[p] if p >= 0 else IMPOSSIBLE
    return total


@helper
def find_paths(problem, i, theta, work):
    """Viterbi: return the potentials of labels, the scores of transitions, and what the last row lacks."""
    nodes, scores = nodes_and_transitions(problem, i, theta)
    sort_scores(scores, problem.transitions, work.sorted_scores)
    lacking = sparse_paths.viterbi(nodes, work.sorted_scores, problem.transitions, work.forward, work.arrivals)
    return nodes, scores, lacking


@implements(generics.max_oracle, SparseChainProblem)
def max_sparse_chain(problem, i, theta, y, work):
    nodes, _, lacking = find_paths(problem, i, theta, work)
    found = sparse_paths.backtrack(nodes, work.sorted_scores, problem.transitions, work.forward, work.arrivals, y)
    return lacking + found


@implements(generics.topk_oracle, SparseChainProblem)
def topk_sparse_chain(problem, i, theta, outputs, values, level, work):
    nodes, _, lacking = find_paths(problem, i, theta, work)
    length, n_labels = nodes.shape
    best = lacking + highest_of(work.forward, length - 1, n_labels)
    paths = sparse_paths.SparsePaths(n_labels, work.sorted_scores, problem.transitions, work.forward, work.arrivals)
    count = k_best(paths, length, best, outputs, values, level, work.branches)
    generics.rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.max_marginals, SparseChainProblem)
def sparse_chain_max_marginals(problem, i, theta, out, work):
    nodes, scores, lacking = find_paths(problem, i, theta, work)
    best, _ = nodes_and_transitions(problem, i, out)
    sparse_paths.max_marginals(nodes, scores, problem.transitions, work.forward, work.arrivals, lacking, best)


@helper
def precise_nodes_and_transitions(problem, i, theta, work):
    """As `nodes_and_transitions`, of the potentials in float64."""
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    return nodes_and_transitions(problem, i, precise)


@implements(generics.exp_oracle, SparseChainProblem)
def exp_sparse_chain(problem, i, theta, mu, work):
    nodes, scores = precise_nodes_and_transitions(problem, i, theta, work)
    log_z, is_safe = sparse_sums.forward_shares(nodes, scores, problem.transitions, work.sums)
    if is_safe:
        means, counts = nodes_and_transitions(problem, i, mu)
        sparse_sums.backward_shares(means, counts, problem.transitions, work.sums)
        return log_z
    log_z = sparse_sums.log_forward(nodes, scores, problem.transitions, work.sums)
    precise_means, precise_counts = nodes_and_transitions(problem, i, work.mu)
    sparse_sums.log_backward(nodes, scores, precise_means, precise_counts, problem.transitions, work.sums)
    copy_into(mu, work.mu[: mu.size])
    return log_z


@implements(generics.sample_oracle, SparseChainProblem)
def sample_sparse_chain(problem, i, theta, draws, outputs, work):
    nodes, scores = precise_nodes_and_transitions(problem, i, theta, work)
    sparse_sums.sample_paths(nodes, scores, problem.transitions, draws, outputs, work.sums)


@implements(generics.transition_marginals, SparseChainProblem)
def sparse_chain_transition_marginals(problem, i, theta, pairs, out, work):
    nodes, scores = precise_nodes_and_transitions(problem, i, theta, work)
    means, _ = nodes_and_transitions(problem, i, work.mu)
    sparse_sums.transition_marginals(nodes, scores, pairs, out, means, problem.transitions, work.sums)
