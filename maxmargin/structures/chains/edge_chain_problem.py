"""Chains whose transitions have features: sequences of labels scored by what is at each position, and between two.

An output of example i is a row of T labels. Its parts are the T x L indicators of (position, label), then for each
position but the first the L x L indicators of the transition into it. The weights are those of positions, shape (F, L),
then those of transitions, shape (F_edge, L^2), flat; of both only those of observed pairs, if the features say so. The
first feature of transitions is 1 in all of them: a chain without others is a `ChainProblem`, which is faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, in_precision
from maxmargin.features import rows_of, squared_sums, with_gram
from maxmargin.runtime.dispatch import implements, supports
from maxmargin.structures.chains import chain_logs
from maxmargin.structures.chains.chain_problem import (
    exp_in_logs,
    have_best_paths,
    nodes_and_pairs,
    precise_nodes_and_pairs,
)
from maxmargin.structures.labelled_edges import edge_rows, have_labelled_edges, nodes_and_tables
from maxmargin.supervision.label_supervision import LabelSupervision


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
    penalty: np.ndarray  # (L, L) zero, or IMPOSSIBLE for transitions that are ruled out
    end_penalty: np.ndarray  # (2, L) the same for the first and for the last label
    n_features: int
    n_edge_features: int


@implements(edge_rows, EdgeChainProblem)
def rows_of_transitions(problem, i):
    return problem.edge_starts[i], problem.edge_starts[i + 1]


implements(nodes_and_pairs, EdgeChainProblem)(nodes_and_tables)
have_labelled_edges(EdgeChainProblem)
have_best_paths(EdgeChainProblem)


@implements(generics.part_sizes, EdgeChainProblem)
def edge_chain_part_sizes(problem):
    n_labels = problem.penalty.shape[0]
    return (np.diff(problem.starts) + np.diff(problem.edge_starts) * n_labels) * n_labels


@implements(generics.squared_diameters, EdgeChainProblem)
def edge_chain_squared_diameters(problem):
    nodes = squared_sums(problem.features, rows_of(problem.starts))
    return 2 * (nodes + squared_sums(problem.edge_features, rows_of(problem.edge_starts)))


@implements(generics.prepare, EdgeChainProblem)
def prepare_edge_chain(problem, dtype):
    prepared = in_precision(problem, dtype)
    rows = {"features": (problem.starts, problem.n_features)}
    rows["edge_features"] = problem.edge_starts, problem.n_edge_features
    found = {name: getattr(prepared, name) for name in rows}
    return prepared._replace(
        **{name: with_gram(part, *rows[name]) for name, part in found.items() if supports(with_gram, part)}
    )


implements(generics.exp_oracle, EdgeChainProblem)(exp_in_logs)


@implements(generics.sample_oracle, EdgeChainProblem)
def sample_edge_chain(problem, i, theta, draws, outputs, work):
    nodes, pairs = precise_nodes_and_pairs(problem, i, theta, work)
    chain_logs.sample_log_paths(nodes, pairs, draws, outputs, work.precise)


@implements(generics.transition_marginals, EdgeChainProblem)
def edge_chain_transition_marginals(problem, i, theta, pairs, out, work):
    nodes, potentials = precise_nodes_and_pairs(problem, i, theta, work)
    means, counts = nodes_and_pairs(problem, i, work.mu)
    chain_logs.log_forward(nodes, potentials, work.precise)
    chain_logs.log_backward(nodes, potentials, means, counts, work.precise)
    n_labels = nodes.shape[1]
    for t in range(nodes.shape[0] - 1):
        for k in range(pairs.size):
            out[t * pairs.size + k] = counts[t * n_labels * n_labels + pairs[k]]
