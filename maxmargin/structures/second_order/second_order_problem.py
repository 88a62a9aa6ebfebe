"""Chains of second order: a chain whose labels are scored by three in a row, too.

Parts and weights are those of the chain, its `base`, then those of Q trigrams: an output has the count of each. Three
labels in a row that are no trigram have the score of their two transitions alone. Transitions may have features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import problem as generics
from maxmargin.arrays.vectors import add_scaled, clear, copy_into, inner
from maxmargin.execution.threads import aligned
from maxmargin.features import ConstantFeatures, join_layouts, layout_of_rows, squared_sums
from maxmargin.features.layout import layout_of
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.chains.chain_problem import ChainProblem, nodes_and_pairs
from maxmargin.structures.chains.edge_chain_problem import EdgeChainProblem
from maxmargin.structures.delegated import delegate
from maxmargin.structures.k_best import k_best
from maxmargin.structures.second_order import state_logs, state_paths, state_sums
from maxmargin.structures.second_order.contexts import Contexts, find_trigram


class SecondOrderProblem(NamedTuple):
    """A chain and its trigrams."""

    base: ChainProblem | EdgeChainProblem
    contexts: Contexts
    n_base_weights: int


class SecondOrderWork(NamedTuple):
    """Tables of the dynamic programs, and the buffer of direction norms."""

    base: Any
    sums: state_sums.StateSums
    precise: state_sums.StateSums  # in float64, where these leave the range of float32
    theta: np.ndarray  # in float64
    mu: np.ndarray
    branches: np.ndarray  # (K, 3) of the top-K oracle


@helper
def parts_of(problem, i, parts):
    """The parts of labels (T, L), of pairs, as the chain has them, and of trigrams (Q,) of example i, as views."""
    nodes, pairs = nodes_and_pairs(problem.base, i, parts)
    return nodes, pairs, trigrams_of(problem, i, parts)


@helper
def trigrams_of(problem, i, parts):
    """The parts of trigrams of example i, as a view."""
    nodes, pairs = nodes_and_pairs(problem.base, i, parts)
    first = nodes.size + pairs.size
    return parts[first : first + problem.contexts.after.size]


@helper
def trigram_weights(problem, w):
    """The weights of trigrams, as a view."""
    return w[problem.n_base_weights : problem.n_base_weights + problem.contexts.after.size]


delegate(SecondOrderProblem, functions=(generics.true_outputs, generics.prepare, generics.restrict, generics.augment))


@implements(generics.new_weights, SecondOrderProblem)
def new_second_order_weights(problem):
    return np.zeros(problem.n_base_weights + len(problem.contexts.after), generics.new_weights(problem.base).dtype)


@implements(generics.part_sizes, SecondOrderProblem)
def second_order_part_sizes(problem):
    return generics.part_sizes(problem.base) + len(problem.contexts.after)


@implements(generics.oracle_work, SecondOrderProblem)
def second_order_work(problem):
    n_labels, n_contexts = len(problem.contexts.number), len(problem.contexts.label)
    n_parts = second_order_part_sizes(problem).sum()
    return problem.base.starts[-1] * (n_labels + n_contexts) * n_labels / max(n_parts, 1)


@implements(generics.squared_diameters, SecondOrderProblem)
def second_order_squared_diameters(problem):
    n_trigrams = sp.csr_array(np.maximum(np.diff(problem.base.starts)[:, np.newaxis] - 2, 0))
    return generics.squared_diameters(problem.base) + 2 * squared_sums(ConstantFeatures(), n_trigrams)


@implements(generics.layout, SecondOrderProblem)
def second_order_layout(problem):
    return join_layouts(layout_of(problem.base), layout_of_rows(ConstantFeatures(), 1, len(problem.contexts.after)))


@implements(generics.workspace, SecondOrderProblem)
def second_order_workspace(problem, n_best):
    dtype = generics.new_weights(problem.base).dtype
    longest, n_parts = (
        int(sizes.max(initial=0)) for sizes in (np.diff(problem.base.starts), generics.part_sizes(problem))
    )
    return SecondOrderWork(
        base=generics.workspace(problem.base, 1),
        sums=state_sums.new_state_sums(longest, problem.contexts, dtype),
        precise=state_sums.new_state_sums(longest, problem.contexts, np.float64),
        theta=aligned((n_parts,), np.float64),
        mu=aligned((n_parts,), np.float64),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, SecondOrderProblem)
def second_order_scores(problem, w, i, theta):
    generics.scores(problem.base, w, i, theta)
    copy_into(trigrams_of(problem, i, theta), trigram_weights(problem, w))


@implements(generics.spread, SecondOrderProblem)
def spread_second_order(problem, w, i, delta, scale):
    generics.spread(problem.base, w, i, delta, scale)
    add_scaled(trigram_weights(problem, w), trigrams_of(problem, i, delta), scale)


@implements(generics.squared_norm, SecondOrderProblem)
def second_order_squared_norm(problem, i, delta, work):
    trigrams = trigrams_of(problem, i, delta)
    return generics.squared_norm(problem.base, i, delta, work.base) + inner(trigrams, trigrams)


@implements(generics.add_output, SecondOrderProblem)
def add_labelling(problem, i, y, scale, mu):
    generics.add_output(problem.base, i, y, scale, mu)
    trigrams = trigrams_of(problem, i, mu)
    for t in range(2, y.size):
        q = find_trigram(problem.contexts, y[t - 2], y[t - 1], y[t])
        if q >= 0:
            trigrams[q] += scale


@implements(generics.score_output, SecondOrderProblem)
def score_labelling(problem, i, theta, y):
    trigrams = trigrams_of(problem, i, theta)
    total = generics.score_output(problem.base, i, theta, y)
    for t in range(2, y.size):
        q = find_trigram(problem.contexts, y[t - 2], y[t - 1], y[t])
        if q >= 0:
            total += trigrams[q]
    return total


@helper
def find_paths(problem, i, theta, tables):
    """Viterbi: return the potentials of labels and of pairs, and what the last row lacks."""
    nodes, pairs, trigrams = parts_of(problem, i, theta)
    state_paths.fill_scores(pairs, trigrams, problem.contexts, tables.scores)
    return nodes, pairs, state_paths.viterbi(nodes, pairs, problem.contexts, tables)


@implements(generics.max_oracle, SecondOrderProblem)
def max_second_order(problem, i, theta, y, work):
    nodes, pairs, lacking = find_paths(problem, i, theta, work.sums.states)
    return lacking + state_paths.backtrack(nodes, pairs, problem.contexts, work.sums.states, y)


@implements(generics.topk_oracle, SecondOrderProblem)
def topk_second_order(problem, i, theta, outputs, values, level, work):
    nodes, pairs, lacking = find_paths(problem, i, theta, work.sums.states)
    length, n_labels = nodes.shape
    width = work.sums.states.scores.shape[1]
    best = lacking + state_paths.highest_state(work.sums.states.forward, length - 1, n_labels, width, problem.contexts)
    paths = state_paths.StatePaths(n_labels, pairs, problem.contexts, work.sums.states)
    count = k_best(paths, length, best, outputs, values, level, work.branches)
    state_paths.write_labels(problem.contexts, width, outputs, count)
    generics.rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.max_marginals, SecondOrderProblem)
def second_order_max_marginals(problem, i, theta, out, work):
    nodes, pairs, lacking = find_paths(problem, i, theta, work.sums.states)
    best, _, _ = parts_of(problem, i, out)
    state_paths.max_marginals(nodes, pairs, problem.contexts, work.sums.states, lacking, best)


@implements(generics.exp_oracle, SecondOrderProblem)
def exp_second_order(problem, i, theta, mu, work):
    log_z, is_safe = sum_shares(problem, i, theta, mu, work.sums)
    if is_safe:
        return log_z
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    precise_mu = work.mu[: mu.size]
    if theta.itemsize == 4:
        log_z, is_safe = sum_shares(problem, i, precise, precise_mu, work.precise)
    if not is_safe:
        nodes, pairs = fill_precise_scores(problem, i, theta, work)
        clear(precise_mu)
        means, counts, trigrams = parts_of(problem, i, precise_mu)
        log_z = state_logs.log_forward(nodes, pairs, problem.contexts, work.precise)
        state_logs.log_backward(nodes, pairs, problem.contexts, means, counts, trigrams, work.precise)
    copy_into(mu, precise_mu)
    return log_z


@helper
def sum_shares(problem, i, theta, mu, tables):
    """The exp oracle by probabilities: return the log-partition function, and whether nothing was lost."""
    clear(mu)
    nodes, pairs, trigrams = parts_of(problem, i, theta)
    means, counts, trigram_counts = parts_of(problem, i, mu)
    return sum_views(nodes, pairs, trigrams, problem.contexts, means, counts, trigram_counts, tables)


@helper
def sum_views(nodes, pairs, trigrams, contexts, means, counts, trigram_counts, tables):
    """As `sum_shares`, which gives up where each position has pairs of its own: those are for logarithms."""
    if pairs.ndim == 1:
        return 0.0, False
    state_sums.exponentiate_scores(pairs, trigrams, contexts, tables)
    log_z, is_safe = state_sums.forward_shares(nodes, contexts, tables)
    if is_safe:
        state_sums.backward_shares(contexts, means, tables)
        state_sums.add_counts(contexts, tables, counts, trigram_counts)
    return log_z, is_safe


@helper
def fill_precise_scores(problem, i, theta, work):
    """Put the scores of transitions and trigrams into precise tables; return the potentials of labels and of pairs."""
    precise = work.theta[: theta.size]
    copy_into(precise, theta)
    nodes, pairs, trigrams = parts_of(problem, i, precise)
    state_paths.fill_scores(pairs, trigrams, problem.contexts, work.precise.states.scores)
    return nodes, pairs


@implements(generics.sample_oracle, SecondOrderProblem)
def sample_second_order(problem, i, theta, draws, outputs, work):
    nodes, pairs = fill_precise_scores(problem, i, theta, work)
    state_logs.log_forward(nodes, pairs, problem.contexts, work.precise)
    state_logs.sample_paths(nodes, pairs, problem.contexts, draws, outputs, work.precise)


@implements(generics.transition_marginals, SecondOrderProblem)
def second_order_transition_marginals(problem, i, theta, pairs, out, work):
    nodes, potentials = fill_precise_scores(problem, i, theta, work)
    means, _, _ = parts_of(problem, i, work.mu)
    state_logs.log_forward(nodes, potentials, problem.contexts, work.precise)
    state_logs.transition_marginals(nodes, potentials, problem.contexts, means, pairs, out, work.precise)
