"""Chains: sequences of labels scored by emissions and transitions.

An output of example i is a row of T labels. Its parts are the T x L indicators of (position, label), then the L x L
counts of transitions, so that a mixture of labellings is stored as its node marginals and expected transition counts.
The weights are the emissions, shape (F, L), then the transitions, shape (L, L), flat; of both only those of observed
pairs, if the features say so.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

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
from maxmargin.structures.chains import chain_dp, chain_logs, chain_sums
from maxmargin.structures.k_best import k_best
from maxmargin.supervision.exclusions import exclude_parts, rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs


class ChainProblem(NamedTuple):
    """Sequences stored one after the other; those of example i are the rows starts[i]:starts[i + 1]."""

    features: Any
    transitions: Any  # the one feature of transitions, whose labels are pairs of labels: constant, or observed
    starts: np.ndarray  # (n + 1,) int64
    supervision: LabelSupervision
    transition_cost: np.ndarray  # (n, L^2) costs of transitions of each example; (0, L^2) where there are none
    excluded: Blocks  # flags of labels that positions cannot have
    penalty: np.ndarray  # (L, L) zero, or IMPOSSIBLE for forbidden transitions
    end_penalty: np.ndarray  # (2, L) the same for the first and for the last label
    n_features: int


class ChainWork(NamedTuple):
    """Tables of the dynamic programs, with rows for the longest sequence, and the buffer of direction norms."""

    table: np.ndarray  # (L, W) of Viterbi
    sums: chain_sums.SumTables  # two of them are also Viterbi's
    precise: chain_sums.SumTables  # in float64, where these leave the range of float32
    theta: np.ndarray  # in float64
    mu: np.ndarray
    spread: np.ndarray  # as the weights of emissions, or empty
    transition_spread: np.ndarray  # as those of transitions, or empty
    branches: np.ndarray  # (K, 3) of the top-K oracle


@helper
def emissions_and_transitions(problem, w):
    """The two parts of the weights, as views."""
    n_labels = problem.penalty.shape[0]
    rows, columns = weight_shape(problem.features, problem.n_features, n_labels)
    pair_rows, pair_columns = weight_shape(problem.transitions, 1, n_labels * n_labels)
    return matrix(w, 0, rows, columns), matrix(w, rows * columns, pair_rows, pair_columns)


@helper
def nodes_and_pairs(problem, i, parts):
    """The T x L node parts and the L x L transition parts of example i, as views."""
    n_labels = problem.penalty.shape[0]
    length = problem.starts[i + 1] - problem.starts[i]
    return matrix(parts, 0, length, n_labels), matrix(parts, length * n_labels, n_labels, n_labels)


@helper
def nodes_and_row(problem, i, parts):
    """As `nodes_and_pairs`, with the transition parts in one row."""
    n_labels = problem.penalty.shape[0]
    length = problem.starts[i + 1] - problem.starts[i]
    return matrix(parts, 0, length, n_labels), matrix(parts, length * n_labels, 1, n_labels * n_labels)


@implements(generics.true_outputs, ChainProblem)
def true_labellings(problem):
    return Blocks(problem.supervision.labels, problem.starts)


@implements(generics.new_weights, ChainProblem)
def new_chain_weights(problem):
    n_labels = problem.penalty.shape[0]
    emissions = weight_shape(problem.features, problem.n_features, n_labels)
    transitions = weight_shape(problem.transitions, 1, n_labels**2)
    return np.zeros(math.prod(emissions) + math.prod(transitions), problem.penalty.dtype)


@implements(generics.part_sizes, ChainProblem)
def chain_part_sizes(problem):
    n_labels = problem.penalty.shape[0]
    return (np.diff(problem.starts) + n_labels) * n_labels


@implements(generics.squared_diameters, ChainProblem)
def chain_squared_diameters(problem):
    n_transitions = sp.csr_array(np.diff(problem.starts)[:, np.newaxis] - 1)
    emissions = squared_sums(problem.features, rows_of(problem.starts))
    return 2 * (emissions + squared_sums(problem.transitions, n_transitions))


@implements(generics.layout, ChainProblem)
def chain_layout(problem):
    n_labels = problem.penalty.shape[0]
    emissions = layout_of_rows(problem.features, problem.n_features, n_labels)
    return join_layouts(emissions, layout_of_rows(problem.transitions, 1, n_labels**2))


@implements(generics.prepare, ChainProblem)
def prepare_chain(problem, dtype):
    prepared = in_precision(problem, dtype)
    if not supports(with_gram, prepared.features):
        return prepared
    return prepared._replace(features=with_gram(prepared.features, problem.starts, problem.n_features))


implements(generics.restrict, ChainProblem)(exclude_parts)


@implements(generics.workspace, ChainProblem)
def chain_workspace(problem, n_best):
    n_labels, dtype = problem.penalty.shape[0], problem.penalty.dtype
    longest, n_parts = (int(sizes.max(initial=0)) for sizes in (np.diff(problem.starts), part_sizes(problem)))
    sums = chain_sums.new_tables(longest, n_labels, dtype)
    return ChainWork(
        table=aligned((n_labels, padded(n_labels)), dtype),
        sums=sums,
        precise=sums if dtype == np.float64 else chain_sums.new_tables(longest, n_labels, np.float64),
        theta=aligned((n_parts,), np.float64),
        mu=aligned((n_parts,), np.float64),
        spread=norm_buffer(problem.features, problem.n_features, n_labels, dtype),
        transition_spread=norm_buffer(problem.transitions, 1, n_labels**2, dtype),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, ChainProblem)
def chain_scores(problem, w, i, theta):
    emissions, transitions = emissions_and_transitions(problem, w)
    nodes, row = nodes_and_row(problem, i, theta)
    score_rows(problem.features, emissions, problem.starts[i], problem.starts[i + 1], nodes)
    score_rows(problem.transitions, transitions, 0, 1, row)
    penalty = matrix(problem.penalty, 0, 1, row.size)
    for p in range(row.size):
        row[0, p] += penalty[0, p]
    add_end_penalties(problem.end_penalty, nodes)
    rule_out(problem.excluded, i, theta)


@helper
def add_end_penalties(end_penalty, nodes):
    """Add the potentials that the first and the last label have before any weight."""
    last = nodes.shape[0] - 1
    for label in range(nodes.shape[1]):
        first_penalty = end_penalty[0, label]
        last_penalty = end_penalty[1, label]
        if last == 0:  # twice impossible would be out of reach
            nodes[0, label] += min(first_penalty, last_penalty)
        else:
            nodes[0, label] += first_penalty
            nodes[last, label] += last_penalty


@implements(generics.spread, ChainProblem)
def spread_chain(problem, w, i, delta, scale):
    emissions, transitions = emissions_and_transitions(problem, w)
    nodes, row = nodes_and_row(problem, i, delta)
    spread_rows(problem.features, emissions, problem.starts[i], problem.starts[i + 1], nodes, scale)
    spread_rows(problem.transitions, transitions, 0, 1, row, scale)


@implements(generics.squared_norm, ChainProblem)
def chain_squared_norm(problem, i, delta, work):
    nodes, row = nodes_and_row(problem, i, delta)
    total = squared_norm_rows(problem.features, i, problem.starts[i], problem.starts[i + 1], nodes, work.spread)
    return total + squared_norm_rows(problem.transitions, i, 0, 1, row, work.transition_spread)


@implements(generics.augment, ChainProblem)
def augment_chain(problem, i, theta):
    nodes, row = nodes_and_row(problem, i, theta)
    add_costs(problem.supervision, problem.starts[i], nodes)
    if problem.transition_cost.shape[0] > 0:
        for p in range(row.size):
            row[0, p] += problem.transition_cost[i, p]


@implements(generics.add_output, ChainProblem)
def add_labelling(problem, i, y, scale, mu):
    nodes, pairs = nodes_and_pairs(problem, i, mu)
    for t in range(nodes.shape[0]):
        nodes[t, y[t]] += scale
        if t > 0:
            pairs[y[t - 1], y[t]] += scale


@implements(generics.score_output, ChainProblem)
def score_labelling(problem, i, theta, y):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    total = 0.0
    for t in range(nodes.shape[0]):
        total += nodes[t, y[t]]
        if t > 0:
            total += pairs[y[t - 1], y[t]]
    return total


@implements(generics.max_oracle, ChainProblem)
def max_chain(problem, i, theta, y, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    lacking = chain_dp.viterbi(nodes, pairs, work.sums.forward, work.sums.backward, work.table)
    return lacking + chain_dp.backtrack(pairs, work.sums.forward, work.sums.backward, nodes.shape[0], y)


@implements(generics.topk_oracle, ChainProblem)
def topk_chain(problem, i, theta, outputs, values, level, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    length, n_labels = nodes.shape
    paths = chain_dp.Paths(pairs, work.sums.forward, work.sums.backward)
    lacking = chain_dp.viterbi(nodes, pairs, paths.forward, paths.arrivals, work.table)
    best = lacking + chain_dp.highest_of(paths.forward, length - 1, n_labels)
    count = k_best(paths, length, best, outputs, values, level, work.branches)
    rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.exp_oracle, ChainProblem)
def exp_chain(problem, i, theta, mu, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    means, counts = nodes_and_pairs(problem, i, mu)
    log_z, is_safe = chain_sums.forward_shares(nodes, pairs, work.sums)
    if is_safe:
        chain_sums.backward_shares(means, counts, work.sums)
        return log_z
    return exp_precisely(problem, i, theta, mu, work)


@helper
def exp_precisely(problem, i, theta, mu, work):
    """The exp oracle in float64 or, where that is not enough either, in logarithms."""
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    nodes, pairs = nodes_and_pairs(problem, i, precise)
    means, counts = nodes_and_pairs(problem, i, work.mu)
    log_z = 0.0
    is_safe = False
    if theta.itemsize == 4:
        log_z, is_safe = chain_sums.forward_shares(nodes, pairs, work.precise)
    if is_safe:
        chain_sums.backward_shares(means, counts, work.precise)
    else:
        log_z = chain_logs.log_forward(nodes, pairs, work.precise)
        chain_logs.log_backward(nodes, means, counts, work.precise)
    copy_into(mu, work.mu[: mu.size])
    return log_z


@implements(generics.sample_oracle, ChainProblem)
def sample_chain(problem, i, theta, draws, outputs, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    chain_sums.sample_paths(nodes, pairs, draws, outputs, work.sums)


@implements(generics.max_marginals, ChainProblem)
def chain_max_marginals(problem, i, theta, out, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    best, _ = nodes_and_pairs(problem, i, out)
    lacking = chain_dp.viterbi(nodes, pairs, work.sums.forward, work.sums.backward, work.table)
    chain_dp.max_marginals(nodes, pairs, work.sums.forward, work.sums.backward, lacking, best)


@implements(generics.transition_marginals, ChainProblem)
def chain_transition_marginals(problem, i, theta, pairs, out, work):
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    nodes, potentials = nodes_and_pairs(problem, i, precise)
    chain_logs.transition_marginals(nodes, potentials, pairs, out, work.precise)
