"""Exact inference in graphs of small treewidth: nodes are eliminated one after the other, in an order of little fill.

Step t eliminates a node v. Its *scope* are the nodes that v is joined to by then, all of them eliminated later, and v
itself, last; its table has an entry for each assignment of states to the scope. The table is the sum of its *factors*:
the potentials of v and of its edges within the scope, and the messages of those earlier steps whose first node to be
eliminated next is v. Its own message, over the scope without v, is the maximum (or log-sum) over the states of v. The
steps form a forest, so that the best labels are found from the last step to the first, as in a tree: given the labels
of the later nodes, every choice of a label of v loses the same score whatever is chosen next.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import first_best
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.graphs.elimination_plan import NONE, EliminationPlan, make_plan, n_operations
from maxmargin.structures.graphs.elimination_tables import Tables, collect_all, fill_table, new_tables, row_of
from maxmargin.structures.graphs.graph_problem import EliminationProblem, GraphProblem, new_spread, split_graphs
from maxmargin.structures.k_best import branch_off, k_best, offer_others, take
from maxmargin.structures.scalar_semirings import Sums, pick


def with_elimination(problem: GraphProblem) -> EliminationProblem:
    """The same problem with exact oracles; raises where a graph has too large a treewidth.

    Examples
    --------
    >>> from maxmargin import LBFGS
    >>> from maxmargin.structures.graphs.elimination import with_elimination
    >>> from maxmargin.testing import toy_triangle
    >>> LBFGS().solve(with_elimination(toy_triangle()), loss="log").status.name
    'OPTIMAL'
    """
    return EliminationProblem(problem.graphs, make_plan(split_graphs(problem.graphs)))


class EliminationWork(NamedTuple):
    """The buffer of direction norms, and the tables of the oracles."""

    spread: np.ndarray  # as the weights, zero
    tables: Tables
    branches: np.ndarray  # (K, 3) of the top-K oracle


@implements(generics.workspace, EliminationProblem)
def elimination_workspace(problem, n_best):
    branches = aligned((n_best, 3), np.int64)
    return EliminationWork(spread=new_spread(problem), tables=new_tables(problem.plan), branches=branches)


# --- on a plan ------------------------------------------------------------------------------------------------------


@helper
def eliminate(plan, i, theta, tables, takes_sum):
    """Fill the tables and messages of the best scores; return the best of all.

    If it takes sums, the tables have the probabilities of a node's labels given those of later ones, messages are the
    logarithms of sums, and so is what it returns: the log-partition function.
    """
    total = 0.0
    for t in range(plan.first[plan.which[i]], plan.first[plan.which[i] + 1]):
        fill_table(plan, t, theta, tables)
        n_states = plan.states[plan.scope_first[t + 1] - 1]
        for k in range(plan.n_rows[t]):
            row = tables.values[plan.table[t] + k * n_states : plan.table[t] + (k + 1) * n_states]
            message = row[0]
            for x in range(1, n_states):
                message = max(message, row[x])
            if takes_sum:
                shares = 0.0
                for x in range(n_states):
                    row[x] = fast_exp(row[x] - message)
                    shares += row[x]
                scale = 1 / shares
                for x in range(n_states):
                    row[x] *= scale
                message += math.log(shares)
            tables.messages[plan.message[t] + k] = message
        if plan.parent[t] == NONE:
            total += tables.messages[plan.message[t]]
    return total


@helper
def decode(plan, i, tables, y):
    """Write the best labels into `y`, from the last step to the first, low labels first."""
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        begin, end = row_of(plan, t, y)
        y[plan.node[t]] = first_best(tables.values[begin:end])


class Eliminations(NamedTuple):
    """Labels chosen from the last step of a graph down to its first."""

    plan: EliminationPlan
    last: int
    values: np.ndarray  # of the tables


@implements(take, Eliminations)
def take_state(choices, y, s, option):
    y[choices.plan.node[choices.last - s]] = option


@implements(branch_off, Eliminations)
def branch_off_elimination(choices, y, s, branches):
    t = choices.last - s
    begin, end = row_of(choices.plan, t, y)
    y[choices.plan.node[t]] = offer_others(branches, s, choices.values[begin:end])


@helper
def marginals(plan, i, total, tables, out, takes_sum):
    """After `eliminate`, which found `total`, the probability of each potential, or the best score of a labelling that
    has it; the tables become those of whole scopes.
    """
    for p in range(out.size):
        out[p] = 0 if takes_sum else 2 * IMPOSSIBLE
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        n_states = plan.states[plan.scope_first[t + 1] - 1]
        message = plan.message[t]
        if plan.parent[t] == NONE:
            tables.returned[message] = 1 if takes_sum else total
        for k in range(plan.n_rows[t]):
            row = tables.values[plan.table[t] + k * n_states : plan.table[t] + (k + 1) * n_states]
            if takes_sum:
                for x in range(n_states):
                    row[x] *= tables.returned[message + k]
            else:
                for x in range(n_states):
                    row[x] += tables.returned[message + k] - tables.messages[message + k]
        collect_all(plan, t, tables, out, takes_sum)


@helper
def sample(plan, i, tables, draws, y):
    """Draw labels after `eliminate`, by one number of [0, 1) for each node."""
    for t in range(plan.first[plan.which[i] + 1] - 1, plan.first[plan.which[i]] - 1, -1):
        begin, end = row_of(plan, t, y)
        y[plan.node[t]], _ = pick(Sums(), tables.values[begin:end], draws[plan.node[t]])


# --- the oracles of an `EliminationProblem` -------------------------------------------------------------------------


@implements(generics.oracle_work, EliminationProblem)
def elimination_work(problem):
    return n_operations(problem.plan).mean() / generics.part_sizes(problem).mean()


@implements(generics.max_oracle, EliminationProblem)
def max_states(problem, i, theta, y, work):
    total = eliminate(problem.plan, i, theta, work.tables, False)
    decode(problem.plan, i, work.tables, y)
    return total


@implements(generics.topk_oracle, EliminationProblem)
def topk_states(problem, i, theta, outputs, values, level, work):
    best = eliminate(problem.plan, i, theta, work.tables, False)
    last = problem.plan.first[problem.plan.which[i] + 1] - 1
    choices = Eliminations(problem.plan, last, work.tables.values)
    return k_best(choices, outputs.shape[1], best, outputs, values, level, work.branches)


@implements(generics.exp_oracle, EliminationProblem)
def exp_states(problem, i, theta, mu, work):
    log_z = eliminate(problem.plan, i, theta, work.tables, True)
    marginals(problem.plan, i, log_z, work.tables, mu, True)
    return log_z


@implements(generics.sample_oracle, EliminationProblem)
def sample_states(problem, i, theta, draws, outputs, work):
    eliminate(problem.plan, i, theta, work.tables, True)
    for k in range(outputs.shape[0]):
        sample(problem.plan, i, work.tables, draws[k], outputs[k])


@implements(generics.max_marginals, EliminationProblem)
def max_marginals(problem, i, theta, out, work):
    total = eliminate(problem.plan, i, theta, work.tables, False)
    marginals(problem.plan, i, total, work.tables, out, False)
