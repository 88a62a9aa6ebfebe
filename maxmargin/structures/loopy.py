"""Graphs of any treewidth: labels of a high score with a bound of the highest one, the best labels where that is known.

Graph by graph, the max oracle is one of

    elimination    exact, where the treewidth allows (`elimination`)
    cut            exact, where all nodes have two states and, at the given potentials, every edge is submodular (`fusion`)
    relaxation     else: the bound of reweighted message passing and the best labels read off it on the way (`messages`)
    expansion      the same labels, improved by expansion moves and, node by node, by the best label given its neighbours

A tight relaxation is exact, too: score and bound are equal. Cuts start from the last flow of their example, relaxations
from its last multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.problem import bound_oracle, score_output
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.runtime.threads import aligned
from maxmargin.structures import elimination
from maxmargin.structures.cliques import Cliques
from maxmargin.structures.elimination import Tables, new_tables
from maxmargin.structures.elimination_plan import NONE, Plan, make_plan
from maxmargin.structures.fusion import FusionWork, expand, fuse, new_fusion
from maxmargin.structures.max_flow import Arcs, make_arcs
from maxmargin.structures.messages import (
    MOST_ROUNDS,
    SETTLED,
    TIGHT,
    bound_score,
    copy_potentials,
    count_settled,
    improve_nodes,
    read_labels,
    sweep,
)
from maxmargin.structures.pairwise import EliminationProblem, PairwiseProblem, graphs_of

METHODS = ("elimination", "cut", "relaxation", "expansion")
ELIMINATION, CUT, RELAXATION, EXPANSION = range(4)


class LoopyProblem(NamedTuple):
    """A `PairwiseProblem` with all that its oracle needs."""

    nodes: Cliques
    edges: Cliques
    ends: np.ndarray
    labels: np.ndarray
    cost: np.ndarray
    plan: Plan  # of the graphs of small treewidth
    arcs: Arcs
    edge_of: np.ndarray  # (2 M,) int64, the edge that each arc is along, counted over all graphs
    ends_at: np.ndarray  # (M, 2) int64, the first multiplier of each edge and end


class LoopyWork(NamedTuple):
    """Tables of elimination, flows, multipliers, buffers for the largest graph, and how the last labels were found."""

    spread: np.ndarray  # as the weights, zero
    tables: Tables
    fusion: FusionWork
    flows: np.ndarray  # (M,) the last flow along each edge
    multipliers: np.ndarray  # of each edge, end and state, when its graph was last relaxed
    theta: np.ndarray  # potentials
    y: np.ndarray  # labels
    sums: np.ndarray  # of each state
    given: np.ndarray
    method: np.ndarray  # (n,) int64, of the last call on each example
    integrality: np.ndarray  # (n,) the share of its nodes whose relaxed mean parts are integral


def with_oracles(problem: PairwiseProblem) -> EliminationProblem | LoopyProblem:
    """The same problem with oracles: all, and exact, where every treewidth allows, else a max oracle with a bound."""
    plan = make_plan(graphs_of(problem), skips=True)
    if (plan.which != NONE).all():
        return EliminationProblem(*problem, plan=plan)
    nodes, edges = problem.nodes, problem.edges
    arcs = make_arcs(nodes.offsets, edges.offsets, problem.ends)
    graph = np.repeat(np.arange(len(nodes.offsets) - 1), np.diff(edges.offsets))
    there = arcs.arc + 2 * edges.offsets[graph]
    edge_of = np.zeros(2 * len(there), np.int64)
    edge_of[there] = edge_of[arcs.sister[there] + 2 * edges.offsets[graph]] = np.arange(len(there))
    sizes = nodes.n_parts[nodes.kind[problem.ends + nodes.offsets[graph][:, np.newaxis]]]
    ends_at = np.cumsum(sizes.ravel()).reshape(-1, 2) - sizes
    return LoopyProblem(*problem, plan=plan, arcs=arcs, edge_of=edge_of, ends_at=ends_at)


# --- generics -------------------------------------------------------------------------------------------------------

for _shared in (
    generics.true_outputs,
    generics.new_weights,
    generics.part_sizes,
    generics.scores,
    generics.spread,
    generics.squared_norm,
    generics.augment,
    generics.add_output,
    generics.score_output,
):
    implements(_shared, LoopyProblem)(_shared.implementations[PairwiseProblem])


@implements(generics.workspace, LoopyProblem)
def loopy_workspace(problem, n_best):
    nodes, edges = problem.nodes, problem.edges
    n_nodes, n_edges = np.diff(nodes.offsets).max(), np.diff(edges.offsets).max()
    most = nodes.n_parts.max()
    return LoopyWork(
        spread=aligned((edges.weight[-1],), problem.cost.dtype),
        tables=new_tables(problem.plan),
        fusion=new_fusion(n_nodes, n_edges),
        flows=aligned((len(problem.ends),), np.float64),
        multipliers=aligned((problem.ends_at.max(initial=0) + most,), np.float64),
        theta=aligned((generics.part_sizes(problem).max(),), np.float64),
        y=aligned((n_nodes,), np.int32),
        sums=aligned((most,), np.float64),
        given=aligned((most,), np.float64),
        method=aligned((len(nodes.offsets) - 1,), np.int64),
        integrality=aligned((len(nodes.offsets) - 1,), np.float64),
    )


@implements(generics.max_oracle, LoopyProblem)
def loopy_max(problem, i, theta, y, work):
    bound_oracle(problem, i, theta, y, work)
    return score_output(problem, i, theta, y)


@implements(generics.bound_oracle, LoopyProblem)
def loopy_bound(problem, i, theta, y, work):
    work.integrality[i] = 1.0
    if problem.plan.which[i] != NONE:
        work.method[i] = ELIMINATION
        elimination.max_product(problem.plan, i, theta, work.tables)
        elimination.decode(problem.plan, i, work.tables, y)
        return score_output(problem, i, theta, y)
    exact = work.theta[: theta.size]
    copy_potentials(theta, exact)
    flows = work.flows[problem.edges.offsets[i] : problem.edges.offsets[i + 1]]
    if has_two_states(problem, i):
        work.method[i] = CUT
        for p in range(y.size):
            y[p] = 0
            work.fusion.other[p] = 1
        _, neglected = fuse(problem, i, exact, y, flows, work.fusion)
        if neglected == 0:
            return score_output(problem, i, theta, y)
    work.method[i] = RELAXATION
    bound = relax(problem, i, exact, y, work)
    score = score_output(problem, i, exact, y)
    if bound - score > TIGHT * (1 + abs(bound)):
        if expand(problem, i, exact, y, flows, work.fusion) > 0:
            work.method[i] = EXPANSION
        improve_nodes(problem, i, exact, y, work.sums)
        n_settled = count_settled(problem, i, exact, work.multipliers, work.sums, work.given)
        work.integrality[i] = n_settled / y.size
    return max(bound, score_output(problem, i, theta, y))


@helper
def has_two_states(problem, i):
    """Whether every node of graph i has two."""
    for c in range(problem.nodes.offsets[i], problem.nodes.offsets[i + 1]):
        if problem.nodes.n_parts[problem.nodes.kind[c]] != 2:
            return False
    return True


@helper
def relax(problem, i, theta, y, work):
    """Write the best labels found by message passing into `y`; return the bound."""
    delta = work.multipliers
    candidate = work.y[: y.size]
    bound = 1e300
    best = -1e300
    for _ in range(MOST_ROUNDS):
        sweep(problem, i, theta, delta, True, work.sums, work.given)
        sweep(problem, i, theta, delta, False, work.sums, work.given)
        read_labels(problem, i, theta, delta, candidate, work.sums)
        score = score_output(problem, i, theta, candidate)
        if score > best:
            best = score
            for p in range(y.size):
                y[p] = candidate[p]
        before = bound
        bound = min(bound, bound_score(problem, i, theta, delta, work.sums))
        gap = bound - best
        if gap <= TIGHT * (1 + abs(bound)) or before - bound <= SETTLED * gap:
            break
    return bound
