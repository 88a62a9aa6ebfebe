"""Slack rescaling on chains and trees (*EGR*, eq. 32): the loss max_y cost(y) {1 + score(y) - score(y_i)}.

The parts of an output are those of the base problem, less those of the true output, times its cost, then the cost:

    s'(y) = (cost(y) {s(y) - s(y_i)}, cost(y)),    potentials (theta, 0) or, with the margin, (theta, 1).

So it is the hinge loss of other parts, and duals, certificates and all solvers that need no more than the max oracle
are as they were. That oracle maximises a product, whose factors are sums over nodes and edges: its dynamic program
(`counted_dp`) keeps the best score for every cost, counted in a unit of which all costs are multiples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import places_in
from maxmargin.arrays.vectors import copy_into
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.chains.edge_chain_problem import EdgeChainProblem
from maxmargin.structures.chains.sparse_chain_problem import SparseChainProblem, chain_of
from maxmargin.structures.delegated import delegate
from maxmargin.structures.derived.counted_dp import CountTables, best_product, count_scores, decode_count
from maxmargin.structures.trees.tree_dp import Forest
from maxmargin.structures.trees.tree_problem import TreeProblem
from maxmargin.wording import name_type

DIVISORS = range(1, 13)  # of the smallest cost, to find a unit
MOST_CELLS = 2**26  # of the tables of an example


class RescaledProblem(NamedTuple):
    """A base problem and its forests: nodes and kinds of edges are counted from 0 in each example."""

    base: Any
    starts: np.ndarray  # (n + 1,) int64
    parent: np.ndarray  # (N,) int32, -1 for roots
    kind: np.ndarray  # (N,) int32, of the edge to the parent, -1 for roots
    order: np.ndarray  # (N,) int32, the nodes of each example, each after its children
    labels: np.ndarray  # (N,) int32, the true labels
    units: np.ndarray  # (N, L) int32, the cost of each label in the unit of its example
    unit: np.ndarray  # (n,) zero where no label costs anything


class RescaledWork(NamedTuple):
    """The workspace of the base problem and the tables of the dynamic program."""

    base: Any
    tables: CountTables


def rescaled(problem: ChainProblem | EdgeChainProblem | SparseChainProblem | TreeProblem) -> RescaledProblem:
    """The problem with slack rescaling in place of margin rescaling.

    Examples
    --------
    >>> from maxmargin import BCFW
    >>> from maxmargin.structures.derived.rescaled import rescaled
    >>> from maxmargin.testing import toy_chains
    >>> BCFW(steps="pairwise").solve(rescaled(toy_chains()), random_state=0).status.name
    'OPTIMAL'
    """
    problem = chain_of(problem)
    if isinstance(problem, TreeProblem):
        edges = problem.parent, problem.kind, problem.order
    elif isinstance(problem, ChainProblem | EdgeChainProblem):
        parent, kind, order = _edges_of_chains(problem.starts)
        if isinstance(problem, EdgeChainProblem):  # each transition has potentials of its own
            kind = np.where(parent < 0, -1, order).astype(np.int32)
        edges = parent, kind, order
    else:
        raise TypeError(f"Slack rescaling needs a problem of chains of order 1, or of trees, not {name_type(problem)}.")
    if len(problem.kind_cost if isinstance(problem, TreeProblem) else problem.transition_cost):
        raise ValueError("Slack rescaling counts costs of labels: it takes none of transitions or edges.")
    labels, annotation, weight, table = problem.supervision
    cost = weight.astype(np.float64)[:, np.newaxis] * table[annotation].astype(np.float64)
    count, unit = np.zeros(cost.shape, np.int32), np.ones(len(problem.starts) - 1)
    for i, (lo, hi) in enumerate(zip(problem.starts[:-1], problem.starts[1:], strict=True)):
        count[lo:hi], unit[i] = _count_units(i, cost[lo:hi])
    return RescaledProblem(problem, problem.starts, *edges, labels, count, unit)


def _edges_of_chains(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chains as trees whose root is the last position."""
    lengths = np.diff(starts)
    order = places_in(lengths).astype(np.int32)
    is_last = order == np.repeat(lengths - 1, lengths)
    return np.where(is_last, -1, order + 1).astype(np.int32), np.where(is_last, -1, 0).astype(np.int32), order


def _count_units(i: int, cost: np.ndarray) -> tuple[np.ndarray, float]:
    """The costs of labels of example i in whole units, and the unit."""
    smallest = cost.min(where=cost > 0, initial=np.inf)
    if np.isinf(smallest):
        return np.zeros(cost.shape), 0.0
    for divisor in DIVISORS:
        unit = float(smallest / divisor)
        count = np.round(cost / unit)
        n_cells = cost.size * (count.max(axis=1).sum() + 1)
        if n_cells > MOST_CELLS:
            break
        if np.allclose(count * unit, cost, rtol=1e-5):
            return count, unit
    raise ValueError(
        "Slack rescaling counts costs: those of an example must be multiples of one number, and not too many of it, "
        f"but example {i}, of {len(cost)} nodes, has costs from {smallest:g} to {cost.max():g}."
    )


@helper
def base_parts(parts):
    """The parts of the base problem."""
    return parts[: parts.size - 1]


@helper
def cost_of(problem, i, y):
    """The cost of an output."""
    total = 0
    for t in range(problem.starts[i + 1] - problem.starts[i]):
        total += problem.units[problem.starts[i] + t, y[t]]
    return total * problem.unit[i]


@helper
def true_labels(problem, i):
    return problem.labels[problem.starts[i] : problem.starts[i + 1]]


delegate(RescaledProblem, functions=(generics.true_outputs, generics.new_weights, generics.layout))


@implements(generics.part_sizes, RescaledProblem)
def rescaled_part_sizes(problem):
    return generics.part_sizes(problem.base) + 1


def highest_costs(problem):
    """Of each example, in its unit."""
    return np.add.reduceat(problem.units.max(axis=1), problem.starts[:-1])


@implements(generics.oracle_work, RescaledProblem)
def rescaled_oracle_work(problem):
    tables = np.diff(problem.starts) * (1 + highest_costs(problem) / 2)  # subtrees cost about half of the whole
    return 3 * tables.mean() * problem.units.shape[1] ** 2 / generics.part_sizes(problem).mean()  # add, compare, keep


@implements(generics.workspace, RescaledProblem)
def rescaled_workspace(problem, n_best):
    length, n_labels = int(np.diff(problem.starts).max()), problem.units.shape[1]
    most = highest_costs(problem).max() + 1
    return RescaledWork(
        generics.workspace(problem.base, n_best),
        CountTables(
            best=aligned((length, most, n_labels), np.float64),
            label=aligned((length, most, n_labels), np.int32),
            split=aligned((length, most, n_labels), np.int32),
            message=aligned((most, n_labels), np.float64),
            total=aligned((most,), np.float64),
            most=aligned((length,), np.int64),
            nothing=aligned((n_labels, 1), np.float64),
        ),
    )


@implements(generics.scores, RescaledProblem)
def rescaled_scores(problem, w, i, theta):
    generics.scores(problem.base, w, i, base_parts(theta))
    theta[theta.size - 1] = 0


@implements(generics.spread, RescaledProblem)
def spread_rescaled(problem, w, i, delta, scale):
    generics.spread(problem.base, w, i, base_parts(delta), scale)


@implements(generics.squared_norm, RescaledProblem)
def rescaled_squared_norm(problem, i, delta, work):
    return generics.squared_norm(problem.base, i, base_parts(delta), work.base)


@implements(generics.augment, RescaledProblem)
def augment_rescaled(problem, i, theta):
    if problem.unit[i] > 0:  # else there is no product to be rounded
        theta[theta.size - 1] += 1


@implements(generics.add_output, RescaledProblem)
def add_rescaled_output(problem, i, y, scale, mu):
    cost = scale * cost_of(problem, i, y)
    if cost != 0:
        generics.add_output(problem.base, i, y, cost, base_parts(mu))
        generics.add_output(problem.base, i, true_labels(problem, i), -cost, base_parts(mu))
        mu[mu.size - 1] += cost


@implements(generics.score_output, RescaledProblem)
def score_rescaled_output(problem, i, theta, y):
    parts = base_parts(theta)
    truth = generics.score_output(problem.base, i, parts, true_labels(problem, i))
    ahead = generics.score_output(problem.base, i, parts, y) - truth
    return cost_of(problem, i, y) * (theta[theta.size - 1] + ahead)


@implements(generics.max_oracle, RescaledProblem)
def max_rescaled(problem, i, theta, y, work):
    lo = problem.starts[i]
    hi = problem.starts[i + 1]
    parts = base_parts(theta)
    truth = generics.score_output(problem.base, i, parts, true_labels(problem, i))
    n_labels = problem.units.shape[1]
    nodes = matrix(parts, 0, hi - lo, n_labels)
    forest = Forest(problem.parent[lo:hi], problem.kind[lo:hi], problem.order[lo:hi])
    most = count_scores(nodes, parts[nodes.size :], forest, problem.units[lo:hi], work.tables)
    count, value = best_product(work.tables, most, theta[theta.size - 1] - truth)
    if count == 0:
        copy_into(y, true_labels(problem, i))
    else:
        decode_count(forest, work.tables, count, y)
    return value * problem.unit[i]
