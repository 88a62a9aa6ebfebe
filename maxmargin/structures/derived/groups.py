"""Sets of nodes in which a label should occur: what is known of images by their tags, or by boxes around things.

A *group* is a set of parts of a base problem, each a node with one of its states. An output *covers* a group if it has
one of these parts. The parts of the problems here are those of the base, then one per group: the indicator that it is
not covered.

- `CoverProblem` has all outputs of its base; those that leave a group uncovered cost something. On cuts it is a
  `CoverCutProblem`.
- `CoveredProblem` has only those that cover all groups.

The base has nodes with states: a problem of graphs, or of cuts. Oracles are in `covers` and `cover_cuts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.arrays.vectors import clear
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE, AnyProblem
from maxmargin.runtime.dispatch import generic, helper, implements
from maxmargin.structures.cuts.cut_problem import GraphCutProblem
from maxmargin.structures.cuts.max_flow import Arcs
from maxmargin.structures.delegated import base_workspace, delegate
from maxmargin.structures.graphs.cliques import size_of
from maxmargin.structures.graphs.graph_problem import EliminationProblem, LoopyProblem
from maxmargin.supervision.image_annotations import Group

MOST_GROUPS = 6  # of an example, to go through all sets of them


class Groups(NamedTuple):
    """The groups starts[i]:starts[i + 1] of example i; the parts of group g are first[g]:first[g + 1]."""

    starts: np.ndarray  # (n + 1,) int64
    first: np.ndarray  # (G + 1,) int64
    node: np.ndarray  # int32, counted in its example
    state: np.ndarray  # int32
    part: np.ndarray  # int64, of the base
    cost: np.ndarray  # (G,)


class CoverProblem(NamedTuple):
    """Outputs pay for groups that they do not cover."""

    base: Any
    groups: Groups


class CoverCutProblem(NamedTuple):
    """The same, of a `GraphCutProblem`, with a graph that has a node for each group after its own nodes.

    Its edges are those of the base, then one from each member of a group to the node of the group.
    """

    base: Any
    groups: Groups
    edge_starts: np.ndarray  # (n + 1,) int64
    ends: np.ndarray  # (M, 2) int32
    arcs: Arcs


class CoveredProblem(NamedTuple):
    """Outputs cover all groups, as do the given ones, where no better ones are found."""

    base: Any
    groups: Groups
    outputs: Blocks


WITH_COSTS = CoverProblem, CoverCutProblem
ALL = *WITH_COSTS, CoveredProblem


class CoverWork(NamedTuple):
    """The workspace of the base, and buffers for the largest example."""

    base: Any
    theta: np.ndarray
    y: np.ndarray  # int32
    price: np.ndarray  # of the parts of groups
    bounds: np.ndarray  # (2**MOST_GROUPS,)
    is_forced: np.ndarray  # int8, of nodes


def make_groups(base: AnyProblem, groups: Sequence[Sequence[Group]]) -> Groups:
    """The groups of each example of a problem of graphs or of cuts."""
    of_example = [[_members(group) for group in some] for some in groups]
    members = [member for some in of_example for member in some]
    node, state = (np.concatenate([np.zeros(0, np.int32), *(m[k] for m in members)]) for k in range(2))
    if (state < 0).any():
        raise ValueError(f"Node {node[state < 0][0]} of a group cannot have its label.")
    part = [
        [part_of_state(base, i, *pair) for pair in zip(nodes.tolist(), states.tolist(), strict=True)]
        for i, some in enumerate(of_example)
        for nodes, states in some
    ]
    return Groups(
        starts=starts_of([len(some) for some in groups]),
        first=starts_of([len(nodes) for nodes, _ in members]),
        node=node,
        state=state,
        part=np.concatenate([np.zeros(0), *part]).astype(np.int64),
        cost=np.array([group.cost for some in groups for group in some], generics.new_weights(base).dtype),
    )


def _members(group: Group) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.asarray(group.nodes, np.int32)
    return nodes, np.broadcast_to(np.asarray(group.states, np.int32), nodes.shape)


# --- what is asked of a base ----------------------------------------------------------------------------------------


@generic
def part_of_state(problem, i, node, state):
    """The part of example i which says that a node has a state."""


@generic
def count_states(problem, i, node):
    """The number of states of a node of example i."""


@generic
def find_bound(problem, i, theta, y, work):
    """Write an output of a high score into `y`; return a bound of the highest one."""


@implements(part_of_state, EliminationProblem, LoopyProblem)
def part_of_graph_state(problem, i, node, state):
    nodes = problem.graphs.nodes
    return nodes.part[nodes.starts[i] + node] + state


@implements(part_of_state, GraphCutProblem)
def part_of_side(problem, i, node, state):
    return state * (problem.starts[i + 1] - problem.starts[i]) + node


@implements(count_states, EliminationProblem, LoopyProblem)
def count_graph_states(problem, i, node):
    return size_of(problem.graphs.nodes, problem.graphs.nodes.starts[i] + node)


@implements(count_states, GraphCutProblem)
def count_sides(problem, i, node):
    return 2


@implements(find_bound, LoopyProblem)
def find_bound_by_search(problem, i, theta, y, work):
    return generics.bound_oracle(problem, i, theta, y, work)


@implements(find_bound, EliminationProblem, GraphCutProblem)
def find_maximum(problem, i, theta, y, work):
    return generics.max_oracle(problem, i, theta, y, work)


# --- generics -------------------------------------------------------------------------------------------------------

delegate(*ALL, functions=(generics.true_outputs, generics.new_weights, generics.layout, generics.restrict))


@implements(generics.part_sizes, *ALL)
def group_part_sizes(problem):
    return generics.part_sizes(problem.base) + np.diff(problem.groups.starts)


@implements(generics.workspace, CoverProblem, CoveredProblem)
def group_workspace(problem, n_best):
    groups, dtype = problem.groups, generics.new_weights(problem.base).dtype
    truth = generics.all_true_outputs(problem)
    n_nodes = np.diff(truth.starts).max()
    return CoverWork(
        base=base_workspace(problem, n_best),
        theta=aligned((generics.part_sizes(problem.base).max(),), dtype),
        y=aligned((n_nodes,), np.int32),
        price=aligned((np.diff(groups.first[groups.starts]).max(),), np.float64),
        bounds=aligned((2**MOST_GROUPS,), np.float64),
        is_forced=aligned((n_nodes,), np.int8),
    )


@helper
def count_groups(problem, i):
    """The number of groups of example i."""
    return problem.groups.starts[i + 1] - problem.groups.starts[i]


@helper
def parts_of_base(problem, i, parts):
    return parts[: parts.size - count_groups(problem, i)]


@helper
def is_covered(groups, g, y):
    """Whether an output has a part of group g."""
    for m in range(groups.first[g], groups.first[g + 1]):
        if y[groups.node[m]] == groups.state[m]:
            return True
    return False


@implements(generics.scores, *WITH_COSTS)
def cover_scores(problem, w, i, theta):
    parts = parts_of_base(problem, i, theta)
    generics.scores(problem.base, w, i, parts)
    clear(theta[parts.size :])


@implements(generics.scores, CoveredProblem)
def covered_scores(problem, w, i, theta):
    parts = parts_of_base(problem, i, theta)
    generics.scores(problem.base, w, i, parts)
    for p in range(parts.size, theta.size):
        theta[p] = IMPOSSIBLE


@implements(generics.spread, *ALL)
def spread_groups(problem, w, i, delta, scale):
    generics.spread(problem.base, w, i, parts_of_base(problem, i, delta), scale)


@implements(generics.squared_norm, *ALL)
def group_squared_norm(problem, i, delta, work):
    return generics.squared_norm(problem.base, i, parts_of_base(problem, i, delta), work.base)


@implements(generics.augment, *ALL)
def augment_groups(problem, i, theta):
    parts = parts_of_base(problem, i, theta)
    generics.augment(problem.base, i, parts)
    for g in range(problem.groups.starts[i], problem.groups.starts[i + 1]):
        theta[parts.size + g - problem.groups.starts[i]] += problem.groups.cost[g]


@implements(generics.add_output, *ALL)
def add_group_output(problem, i, y, scale, mu):
    groups = problem.groups
    parts = parts_of_base(problem, i, mu)
    generics.add_output(problem.base, i, y, scale, parts)
    for g in range(groups.starts[i], groups.starts[i + 1]):
        if not is_covered(groups, g, y):
            mu[parts.size + g - groups.starts[i]] += scale


@implements(generics.score_output, *ALL)
def score_group_output(problem, i, theta, y):
    groups = problem.groups
    parts = parts_of_base(problem, i, theta)
    total = generics.score_output(problem.base, i, parts, y)
    for g in range(groups.starts[i], groups.starts[i + 1]):
        if not is_covered(groups, g, y):
            total += theta[parts.size + g - groups.starts[i]]
    return total
