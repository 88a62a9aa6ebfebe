"""Graphs of any treewidth: labels of a high score with a bound of the highest one, the best labels where that is known.

Graph by graph, the max oracle is one of

    elimination    exact, where the treewidth allows (`elimination`)
    cut            exact, where nodes have two states and, at the given potentials, all edges are submodular (`fusion`)
    relaxation     else: the bound of reweighted message passing and the best labels read off it on the way (`messages`)
    expansion      the same, improved by expansion moves; and, in either case, node by node given the neighbours

A tight relaxation is exact, too: score and bound are equal. Cuts start from the last flow of their example, relaxations
from its last multipliers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.vectors import copy_into
from maxmargin.execution.threads import aligned
from maxmargin.problem import METHODS
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.cuts.fusion import FusionWork, expand, fuse, new_fusion
from maxmargin.structures.cuts.max_flow import make_arcs
from maxmargin.structures.graphs import elimination
from maxmargin.structures.graphs.cliques import size_of
from maxmargin.structures.graphs.elimination_plan import NONE, make_plan, n_operations
from maxmargin.structures.graphs.elimination_tables import Tables, new_tables
from maxmargin.structures.graphs.fractional import RELAXATION_WORK
from maxmargin.structures.graphs.graph_problem import (
    EliminationProblem,
    FractionalProblem,
    GraphProblem,
    LoopyProblem,
    WithOracles,
    ends_in_all,
    new_spread,
    split_graphs,
)
from maxmargin.structures.graphs.local_polytope import make_constraints
from maxmargin.structures.graphs.messages import improve_nodes, read_labels, sweep
from maxmargin.structures.graphs.relaxation import (
    RelaxationWork,
    bound_score,
    copy_potentials,
    make_uniform,
    maximise,
    new_relaxation,
    share_of_integral,
)

ELIMINATION, CUT, RELAXATION, EXPANSION = range(len(METHODS))
CUT_WORK = 20.0  # operations per part
MOST_EDGES = 4  # per node, of graphs that are likely to have a cut: planar ones have three, those of labels more
MOST_ROUNDS = 200  # of message passing, there and back
SETTLED = 1e-3  # of the gap between bound and labels: rounds that close less are the last


class LoopyWork(NamedTuple):
    """Tables of elimination, flows, multipliers, buffers for the largest graph, and how the last labels were found."""

    spread: np.ndarray  # as the weights, zero
    tables: Tables
    fusion: FusionWork
    flows: np.ndarray  # (M,) the last flow along each edge
    relaxation: RelaxationWork
    labels: np.ndarray  # (N,) int32, the last labels, which the next ones are not worse than
    y: np.ndarray  # labels
    means: np.ndarray
    method: np.ndarray  # (n,) int64, of the last call on each example
    integrality: np.ndarray  # (n,) the share of its nodes whose relaxed mean parts are integral


def with_oracles(problem: GraphProblem, relaxed: bool = False, most: float = math.inf) -> WithOracles:
    """The same problem with oracles: all, and exact, where every treewidth allows, else a max oracle with a bound.

    Parameters
    ----------
    problem
        The graphs.
    relaxed
        Whether outputs are to be points of the local polytope in place of labels, as `fractional` says.
    most
        The entries of all tables of a graph up to which it is eliminated, as far as they fit into memory.

    Examples
    --------
    >>> from maxmargin import BCFW
    >>> from maxmargin.structures.graphs.loopy import with_oracles
    >>> from maxmargin.testing import toy_triangle
    >>> BCFW().solve(with_oracles(toy_triangle()), random_state=0).status.name
    'OPTIMAL'
    """
    graphs = problem.graphs
    constraints = make_constraints(graphs.nodes, ends_in_all(graphs))
    if relaxed:
        return FractionalProblem(graphs, constraints)
    plan = make_plan(split_graphs(graphs), skips=True, most=most)
    if (plan.which != NONE).all():
        return EliminationProblem(graphs, plan)
    return LoopyProblem(graphs, plan, make_arcs(graphs.nodes.starts, graphs.edges.starts, graphs.ends), constraints)


# --- generics -------------------------------------------------------------------------------------------------------


@implements(generics.workspace, LoopyProblem)
def loopy_workspace(problem, n_best):
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    n, n_nodes, n_edges = len(nodes.starts) - 1, np.diff(nodes.starts).max(), np.diff(edges.starts).max()
    return LoopyWork(
        spread=new_spread(problem),
        tables=new_tables(problem.plan),
        fusion=new_fusion(n_nodes, n_edges),
        flows=aligned((len(edges.row),), np.float64),
        relaxation=new_relaxation(problem),
        labels=aligned((len(nodes.row),), np.int32),
        y=aligned((n_nodes,), np.int32),
        means=aligned((generics.part_sizes(problem).max(),), np.float64),
        method=aligned((n,), np.int64),
        integrality=aligned((n,), np.float64),
    )


@implements(generics.oracle_work, LoopyProblem)
def loopy_work(problem):
    nodes, sizes = problem.graphs.nodes, generics.part_sizes(problem)
    has_two_states = np.maximum.reduceat(nodes.n_parts[nodes.type], nodes.starts[:-1]) == 2
    is_sparse = np.diff(problem.graphs.edges.starts) <= MOST_EDGES * np.diff(nodes.starts)
    has_cut = has_two_states & is_sparse
    by_search = np.where(has_cut, CUT_WORK, RELAXATION_WORK) * sizes
    return np.where(problem.plan.which == NONE, by_search, n_operations(problem.plan)).mean() / sizes.mean()


@implements(generics.bound_oracle, LoopyProblem)
def loopy_bound(problem, i, theta, y, work):
    if problem.plan.which[i] != NONE:
        work.method[i] = ELIMINATION
        elimination.eliminate(problem.plan, i, theta, work.tables, False)
        elimination.decode(problem.plan, i, work.tables, y)
        return generics.score_output(problem, i, theta, y)
    exact = work.relaxation.theta[: theta.size]
    copy_potentials(theta, 0.0, exact)
    flows = work.flows[problem.graphs.edges.starts[i] : problem.graphs.edges.starts[i + 1]]
    if has_two_states(problem, i):
        work.method[i] = CUT
        for p in range(y.size):
            y[p] = 0
            work.fusion.other[p] = 1
        _, neglected = fuse(problem, i, exact, y, flows, work.fusion)
        score = generics.score_output(problem, i, theta, y)
        if generics.is_tight(score + neglected, score):
            return score + neglected
    work.method[i] = RELAXATION
    bound = pass_messages(problem, i, exact, y, work)
    if not generics.is_tight(bound, generics.score_output(problem, i, exact, y)):
        if expand(problem, i, exact, y, flows, work.fusion) > 0:
            work.method[i] = EXPANSION
        improve_nodes(problem, i, exact, y, work.relaxation.scratch[0])
    copy_into(work.labels[problem.graphs.nodes.starts[i] : problem.graphs.nodes.starts[i + 1]], y)
    return max(bound, generics.score_output(problem, i, theta, y))


@helper
def has_two_states(problem, i):
    """Whether every node of graph i has two."""
    nodes = problem.graphs.nodes
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        if size_of(nodes, c) != 2:
            return False
    return True


@helper
def pass_messages(problem, i, theta, y, work):
    """Write the best labels found on the way into `y`, or the last ones if they are better; return the bound."""
    delta = work.relaxation.multipliers
    scratch = work.relaxation.scratch
    candidate = work.y[: y.size]
    copy_into(y, work.labels[problem.graphs.nodes.starts[i] : problem.graphs.nodes.starts[i + 1]])
    best = generics.score_output(problem, i, theta, y)
    bound = 1e300
    for _ in range(MOST_ROUNDS):
        sweep(problem, i, theta, delta, True, scratch)
        sweep(problem, i, theta, delta, False, scratch)
        read_labels(problem, i, theta, delta, candidate, scratch[0])
        score = generics.score_output(problem, i, theta, candidate)
        if score > best:
            best = score
            copy_into(y, candidate)
        before = bound
        bound = min(bound, bound_score(problem, i, theta, 0.0, delta, scratch))
        if generics.is_tight(bound, best) or before - bound <= SETTLED * (bound - best):
            break
    return bound


@implements(generics.relax_oracle, LoopyProblem)
def loopy_relaxation(problem, i, theta, mu, work):
    """Maximise over the local polytope."""
    bound = relax(problem, i, theta, 0.0, mu, work)
    work.integrality[i] = share_of_integral(problem.graphs.nodes, i, mu)
    return bound


@implements(generics.mean_oracle, LoopyProblem)
def loopy_means(problem, i, theta, mu, work):
    """By elimination or, with Gini's entropy in place of Shannon's, over the local polytope."""
    if problem.plan.which[i] != NONE:
        elimination.eliminate(problem.plan, i, theta, work.tables, True)
        elimination.marginals(problem.plan, i, 0.0, work.tables, mu, True)
        return True
    relax(problem, i, theta, 1.0, mu, work)
    return False


@helper
def relax(problem, i, theta, temperature, mu, work):
    """`maximise`, from the last multipliers and uniform mean parts."""
    means = work.means[: theta.size]
    make_uniform(problem.graphs.nodes, i, means)
    make_uniform(problem.graphs.edges, i, means)
    bound = maximise(problem, i, theta, temperature, means, work.relaxation)
    copy_into(mu, work.relaxation.feasible[: mu.size])
    return bound
