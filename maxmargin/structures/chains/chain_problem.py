"""Chains: sequences of labels scored by emissions and transitions.

An output of example i is a row of T labels. Its parts are the T x L indicators of (position, label), then the L x L
counts of transitions, so that a mixture of labellings is stored as its node marginals and expected transition counts.
The weights are the emissions, shape (F, L), then the transitions, shape (L, L), flat; of both only those of observed
pairs, if the features say so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, in_precision
from maxmargin.arrays.lanes import padded
from maxmargin.arrays.vectors import copy_into
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import row_stretches, rows_of, squared_sums, with_gram
from maxmargin.runtime.dispatch import generic, helper, implements, supports
from maxmargin.structures import labelled_edges
from maxmargin.structures.chains import chain_dp, chain_logs, chain_sums
from maxmargin.structures.chains.pruned_steps import IN_ORDER, Pruning, highest_of, new_pruning
from maxmargin.structures.k_best import k_best
from maxmargin.supervision.exclusions import rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs


class ChainProblem(NamedTuple):
    """Sequences stored one after the other; those of example i are the rows starts[i]:starts[i + 1]."""

    features: Any
    edge_features: Any  # the one feature of transitions, whose labels are pairs of labels: constant, or observed
    starts: np.ndarray  # (n + 1,) int64
    supervision: LabelSupervision
    transition_cost: np.ndarray  # (n, L^2) costs of transitions of each example; (0, L^2) where there are none
    excluded: Blocks  # flags of labels that positions cannot have
    penalty: np.ndarray  # (L, L) zero, or IMPOSSIBLE for transitions that are ruled out
    end_penalty: np.ndarray  # (2, L) the same for the first and for the last label
    n_features: int
    n_edge_features: int = 1


class ChainWork(NamedTuple):
    """Tables of the dynamic programs, with rows for the longest sequence, and the buffer of direction norms."""

    table: np.ndarray  # (L, W) of Viterbi
    forward: np.ndarray  # (T, W) of Viterbi
    arrivals: np.ndarray  # (T, W) of Viterbi
    pruning: Pruning  # of Viterbi
    sums: chain_sums.SumTables  # two of them are also Viterbi's
    precise: chain_sums.SumTables  # in float64, where these leave the range of float32
    theta: np.ndarray  # in float64
    mu: np.ndarray
    spread: np.ndarray  # as the weights of emissions, or empty
    edge_spread: np.ndarray  # as those of transitions, or empty
    branches: np.ndarray  # (K, 3) of the top-K oracle


@generic
def nodes_and_pairs(problem, i, parts):
    """The T x L parts of positions of example i, and those of transitions as `chain_dp` has the pairs, as views."""


@implements(nodes_and_pairs, ChainProblem)
def nodes_and_one_table(problem, i, parts):
    n_labels = problem.penalty.shape[0]
    length = problem.starts[i + 1] - problem.starts[i]
    return matrix(parts, 0, length, n_labels), matrix(parts, length * n_labels, n_labels, n_labels)


@implements(labelled_edges.edge_rows, ChainProblem)
def only_row(problem, i):
    return 0, 1


labelled_edges.have_labelled_edges(ChainProblem)


@implements(generics.part_sizes, ChainProblem)
def chain_part_sizes(problem):
    n_labels = problem.penalty.shape[0]
    return (np.diff(problem.starts) + n_labels) * n_labels


@implements(generics.squared_diameters, ChainProblem)
def chain_squared_diameters(problem):
    n_transitions = sp.csr_array(np.diff(problem.starts)[:, np.newaxis] - 1)
    emissions = squared_sums(problem.features, rows_of(problem.starts))
    return 2 * (emissions + squared_sums(problem.edge_features, n_transitions))


@implements(generics.prepare, ChainProblem)
def prepare_chain(problem, dtype):
    prepared = in_precision(problem, dtype)
    if not supports(with_gram, prepared.features):
        return prepared
    return prepared._replace(features=with_gram(prepared.features, problem.starts, problem.n_features))


@implements(generics.stretches, ChainProblem)
def chain_stretches(problem):
    lo, hi, n = problem.starts[:-1], problem.starts[1:], np.arange(len(problem.starts) - 1)
    labels, weight = problem.supervision.labels, problem.supervision.weight
    rows = row_stretches(problem.features, lo, hi) if supports(row_stretches, problem.features) else []
    return [*rows, (labels, lo, hi), (weight, lo, hi), (problem.starts, n, n + 2)]


def chain_workspace(problem: Any, n_best: int) -> ChainWork:
    """Tables for a problem of chains."""
    n_labels, dtype = problem.penalty.shape[0], problem.penalty.dtype
    longest, n_parts = (int(sizes.max(initial=0)) for sizes in (np.diff(problem.starts), generics.part_sizes(problem)))
    sums = chain_sums.new_tables(longest, n_labels, dtype)
    return ChainWork(
        table=aligned((n_labels, padded(n_labels)), dtype),
        forward=sums.forward,
        arrivals=sums.backward,
        pruning=new_pruning(n_labels, dtype),
        sums=sums,
        precise=sums if dtype == np.float64 else chain_sums.new_tables(longest, n_labels, np.float64),
        theta=aligned((n_parts,), np.float64),
        mu=aligned((n_parts,), np.float64),
        branches=aligned((n_best, 3), np.int64),
        **labelled_edges.norm_buffers(problem),
    )


def have_best_paths(*classes: type) -> None:
    """Say of classes of problems that they are chains: how they are scored, their costs and their best outputs."""
    implements(generics.workspace, *classes)(chain_workspace)

    @implements(generics.scores, *classes)
    def chain_scores(problem, w, i, theta):
        nodes, edges = labelled_edges.score_features(problem, w, i, theta)
        penalty = matrix(problem.penalty, 0, 1, edges.shape[1])
        for e in range(edges.shape[0]):
            for p in range(edges.shape[1]):
                edges[e, p] += penalty[0, p]
        add_end_penalties(problem.end_penalty, nodes)
        rule_out(problem.excluded, i, theta)

    @implements(generics.augment, *classes)
    def augment_chain(problem, i, theta):
        nodes, edges = labelled_edges.nodes_and_edges(problem, i, theta)
        add_costs(problem.supervision, problem.starts[i], nodes)
        if problem.transition_cost.shape[0] > 0:
            for e in range(edges.shape[0]):
                for p in range(edges.shape[1]):
                    edges[e, p] += problem.transition_cost[i, p]

    @implements(generics.add_output, *classes)
    def add_labelling(problem, i, y, scale, mu):
        nodes, pairs = nodes_and_pairs(problem, i, mu)
        for t in range(nodes.shape[0]):
            nodes[t, y[t]] += scale
            if t > 0:
                chain_dp.pairs_into(pairs, t, nodes.shape[1])[y[t - 1], y[t]] += scale

    @implements(generics.score_output, *classes, fastmath=IN_ORDER)
    def score_labelling(problem, i, theta, y):
        nodes, pairs = nodes_and_pairs(problem, i, theta)
        total = 0.0
        for t in range(nodes.shape[0]):
            total += nodes[t, y[t]]
            if t > 0:
                total += chain_dp.pairs_into(pairs, t, nodes.shape[1])[y[t - 1], y[t]]
        return total

    @implements(generics.max_oracle, *classes)
    def max_chain(problem, i, theta, y, work):
        nodes, pairs = nodes_and_pairs(problem, i, theta)
        lacking = chain_dp.viterbi(nodes, pairs, work.forward, work.arrivals, work.table, work.pruning)
        return lacking + chain_dp.backtrack(nodes, pairs, work.forward, work.arrivals, y)

    @implements(generics.topk_oracle, *classes)
    def topk_chain(problem, i, theta, outputs, values, level, work):
        nodes, pairs = nodes_and_pairs(problem, i, theta)
        length, n_labels = nodes.shape
        lacking = chain_dp.viterbi(nodes, pairs, work.forward, work.arrivals, work.table, work.pruning)
        best = lacking + highest_of(work.forward, length - 1, n_labels)
        paths = chain_dp.Paths(nodes, pairs, work.forward, work.arrivals)
        count = k_best(paths, length, best, outputs, values, level, work.branches)
        generics.rank(problem, i, theta, outputs, values, count)
        return count

    @implements(generics.max_marginals, *classes)
    def chain_max_marginals(problem, i, theta, out, work):
        nodes, pairs = nodes_and_pairs(problem, i, theta)
        best, _ = nodes_and_pairs(problem, i, out)
        lacking = chain_dp.viterbi(nodes, pairs, work.forward, work.arrivals, work.table, work.pruning)
        chain_dp.max_marginals(nodes, pairs, work.forward, work.arrivals, lacking, best)


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


have_best_paths(ChainProblem)


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
def precise_nodes_and_pairs(problem, i, theta, work):
    """As `nodes_and_pairs`, of the potentials in float64."""
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    return nodes_and_pairs(problem, i, precise)


@helper
def exp_precisely(problem, i, theta, mu, work):
    """The exp oracle in float64 or, where that is not enough either, in logarithms."""
    if theta.itemsize == 4:
        nodes, pairs = precise_nodes_and_pairs(problem, i, theta, work)
        log_z, is_safe = chain_sums.forward_shares(nodes, pairs, work.precise)
        if is_safe:
            means, counts = nodes_and_pairs(problem, i, work.mu)
            chain_sums.backward_shares(means, counts, work.precise)
            copy_into(mu, work.mu[: mu.size])
            return log_z
    return exp_in_logs(problem, i, theta, mu, work)


@helper
def exp_in_logs(problem, i, theta, mu, work):
    """The exp oracle in logarithms, which leaves the mean parts in `work.mu`, too."""
    nodes, pairs = precise_nodes_and_pairs(problem, i, theta, work)
    means, counts = nodes_and_pairs(problem, i, work.mu)
    log_z = chain_logs.log_forward(nodes, pairs, work.precise)
    chain_logs.log_backward(nodes, pairs, means, counts, work.precise)
    copy_into(mu, work.mu[: mu.size])
    return log_z


@implements(generics.sample_oracle, ChainProblem)
def sample_chain(problem, i, theta, draws, outputs, work):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    chain_sums.sample_paths(nodes, pairs, draws, outputs, work.sums)


@implements(generics.transition_marginals, ChainProblem)
def chain_transition_marginals(problem, i, theta, pairs, out, work):
    nodes, potentials = precise_nodes_and_pairs(problem, i, theta, work)
    chain_logs.transition_marginals(nodes, potentials, pairs, out, work.precise)
