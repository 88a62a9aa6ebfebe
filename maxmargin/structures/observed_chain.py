"""Chains whose weights are those of observed pairs only: of a feature and a label, and of two successive labels.

Outputs and parts are those of `maxmargin.structures.chain`. The weights are one per pair of a feature and a label, by
feature, then one per transition; all other weights are zero and are not stored. On text, where most features go with
one or two labels, there are far fewer of them, and they fit in the processor's cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.features.sparse import entry
from maxmargin.problem import new_weights, spread
from maxmargin.runtime.dispatch import implements
from maxmargin.runtime.threads import aligned
from maxmargin.structures import chain
from maxmargin.structures.chain import nodes_and_pairs


class Pairs(NamedTuple):
    """The pairs that have a weight: feature f and labels[start[f]:start[f + 1]], sources[k] and targets[k].

    Unsigned: Numba checks signed indices for negative ones, which doubles the time of a pass.
    """

    start: np.ndarray  # (F + 1,) uint32
    labels: np.ndarray  # (P,) uint32
    sources: np.ndarray  # uint32
    targets: np.ndarray  # uint32


class ObservedChainProblem(NamedTuple):
    """As `ChainProblem`, with sparse or binary features, whose entries say which weights they meet.

    Entry p of a row meets the weights features.indices[p]:ends[p], those of its feature. Unsigned, too.
    """

    features: Any
    ends: np.ndarray
    pairs: Pairs
    offsets: np.ndarray
    labels: np.ndarray
    token_cost: np.ndarray
    cost_matrix: np.ndarray
    penalty: np.ndarray


class ObservedChainWork(NamedTuple):
    """As `ChainWork`."""

    forward: np.ndarray
    arrivals: np.ndarray
    gains: np.ndarray
    factors: np.ndarray
    extent: np.ndarray
    spread: np.ndarray  # one entry per weight
    branches: np.ndarray


for shared, implementation in (
    (generics.true_outputs, chain.true_labellings),
    (generics.part_sizes, chain.chain_part_sizes),
    (generics.augment, chain.augment_chain),
    (generics.add_output, chain.add_labelling),
    (generics.score_output, chain.score_labelling),
    (generics.max_oracle, chain.max_chain),
    (generics.topk_oracle, chain.topk_chain),
    (generics.exp_oracle, chain.exp_chain),
    (generics.sample_oracle, chain.sample_chain),
    (generics.max_marginals, chain.chain_max_marginals),
):
    implements(shared, ObservedChainProblem)(implementation)


@implements(generics.new_weights, ObservedChainProblem)
def new_observed_weights(problem):
    return np.zeros(problem.pairs.labels.size + problem.pairs.sources.size, problem.penalty.dtype)


@implements(generics.workspace, ObservedChainProblem)
def observed_workspace(problem, n_best):
    tables = chain.chain_tables(problem.offsets, problem.penalty, n_best)
    return ObservedChainWork(**tables, spread=aligned((new_weights(problem).size,), problem.penalty.dtype))


@implements(generics.scores, ObservedChainProblem)
def observed_scores(problem, w, i, theta):
    nodes, pairs = nodes_and_pairs(problem, i, theta)
    features, ends, labels = problem.features, problem.ends, problem.pairs.labels
    lo = problem.offsets[i]
    for t in range(nodes.shape[0]):
        for label in range(nodes.shape[1]):
            nodes[t, label] = 0
        for p in range(features.indptr[lo + t], features.indptr[lo + t + 1]):
            x = entry(features, p)
            for k in range(features.indices[p], ends[p]):
                nodes[t, labels[k]] += x * w[k]
    for a in range(pairs.shape[0]):
        for b in range(pairs.shape[0]):
            pairs[a, b] = problem.penalty[a, b]
    for k in range(problem.pairs.sources.size):
        pairs[problem.pairs.sources[k], problem.pairs.targets[k]] += w[labels.size + k]


@implements(generics.spread, ObservedChainProblem)
def spread_observed(problem, w, i, delta, scale):
    nodes, pairs = nodes_and_pairs(problem, i, delta)
    features, ends, labels = problem.features, problem.ends, problem.pairs.labels
    lo = problem.offsets[i]
    step = delta.dtype.type(scale)
    for t in range(nodes.shape[0]):
        for p in range(features.indptr[lo + t], features.indptr[lo + t + 1]):
            x = entry(features, p) * step
            for k in range(features.indices[p], ends[p]):
                w[k] += x * nodes[t, labels[k]]
    for k in range(problem.pairs.sources.size):
        w[labels.size + k] += step * pairs[problem.pairs.sources[k], problem.pairs.targets[k]]


@implements(generics.squared_norm, ObservedChainProblem)
def observed_squared_norm(problem, i, delta, work):
    spread(problem, work.spread, i, delta, 1.0)
    features = problem.features
    total = 0.0
    for p in range(features.indptr[problem.offsets[i]], features.indptr[problem.offsets[i + 1]]):
        for k in range(features.indices[p], problem.ends[p]):  # cleared as read: each weight counts once
            total += work.spread[k] * work.spread[k]
            work.spread[k] = 0
    for k in range(problem.pairs.labels.size, work.spread.size):
        total += work.spread[k] * work.spread[k]
        work.spread[k] = 0
    return total
