"""The best output of a `CoverCutProblem`, by one minimum cut.

A group g of nodes that should have label 1 pays b_g if all of them have label 0, so that the score gains

    b_g prod_q (1 - y_q) = max over a_g of {b_g (1 - a_g) : a_g >= y_q for all q in g},

a_g the label of a further node, with arcs of no limit from the nodes of the group to it; the other way round for
groups that should have label 0. This takes potentials of groups that are not negative, as those of costs are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.views import index, matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.cuts.cut_problem import GraphCutProblem
from maxmargin.structures.cuts.max_flow import Flow, make_arcs, new_flow, plant_trees, push_along_edges, saturate
from maxmargin.structures.cuts.minimum_cuts import FORCE, open_arcs, read_labels, scale_of, sizes, sum_of_capacities
from maxmargin.structures.delegated import base_workspace
from maxmargin.structures.derived.groups import CoverCutProblem, Groups, count_groups


class CoverCutWork(NamedTuple):
    """The workspace of the base, the flow at hand, and the last flow along each edge."""

    base: Any
    flow: Flow
    last: np.ndarray


def cover_by_cuts(base: GraphCutProblem, groups: Groups) -> CoverCutProblem:
    """Outputs of cuts that pay for groups that they do not cover."""
    n_nodes, n_members = np.diff(base.starts), np.diff(groups.first[groups.starts])
    edge_starts = base.edge_starts + groups.first[groups.starts]
    starts = base.starts + groups.starts
    number = np.arange(len(groups.cost)) - np.repeat(groups.starts[:-1] - n_nodes, np.diff(groups.starts))
    members = np.stack([groups.node, np.repeat(number, np.diff(groups.first))], axis=1)
    at = np.repeat(np.arange(len(starts) - 1), n_members)
    own = np.repeat(np.arange(len(starts) - 1), np.diff(base.edge_starts))
    order = np.argsort(np.concatenate([own, at]), kind="stable")  # edges of the base first
    ends = np.ascontiguousarray(np.concatenate([base.ends, members])[order], np.int32)
    return CoverCutProblem(base, groups, edge_starts, ends, make_arcs(starts, edge_starts, ends))


@implements(generics.workspace, CoverCutProblem)
def cover_cut_workspace(problem, n_best):
    n_nodes = (np.diff(problem.base.starts) + np.diff(problem.groups.starts)).max()
    return CoverCutWork(
        base=base_workspace(problem, n_best),
        flow=new_flow(n_nodes, 2 * np.diff(problem.edge_starts).max()),
        last=aligned((problem.edge_starts[-1],), np.float64),
    )


@implements(generics.max_oracle, CoverCutProblem)
def max_cover_cut(problem, i, theta, y, work):
    base = problem.base
    n_nodes, n_own = sizes(base, i)
    n_groups = count_groups(problem, i)
    parts = theta[: theta.size - n_groups]
    reward = theta[theta.size - n_groups :]
    total = sum_of_capacities(base, i, parts)
    for g in range(n_groups):
        total += abs(reward[g])
    scale = scale_of(total)
    last = work.last[problem.edge_starts[i] : problem.edge_starts[i + 1]]
    open_arcs(base, i, parts, work.flow, last, work.base.fixed[0, :0], scale)
    open_groups(problem, i, reward, work.flow, last, scale)
    lo = base.starts[i] + problem.groups.starts[i] + i
    begin = 2 * problem.edge_starts[i]
    end = 2 * problem.edge_starts[i + 1]
    ends = matrix(problem.ends, begin, 1, end - begin)[0]
    push_along_edges(work.flow, ends)
    plant_trees(work.flow, n_nodes + n_groups, ends)
    saturate(problem.arcs.first[lo : lo + n_nodes + n_groups + 1], problem.arcs.out[begin:end], ends, work.flow)
    residual = work.flow.residual
    for e in range(n_own):
        last[e] = 0.5 / scale * (residual[2 * e + 1] - residual[2 * e])
    for e in range(n_own, last.size):
        last[e] = min(residual[2 * e], residual[2 * e + 1]) / scale
    read_labels(base, i, work.flow, y)
    return generics.score_output(problem, i, theta, y)


@helper
def open_groups(problem, i, reward, flow, last, scale):
    """Write the excesses of the nodes of groups, and the arcs of no limit between them and their members."""
    groups = problem.groups
    n_nodes, e = sizes(problem.base, i)
    excess = flow.excess
    for g in range(reward.size):
        at = groups.starts[i] + g
        node = n_nodes + g
        amount = np.int64(max(reward[g], 0.0) * scale)
        excess[node] = 0
        left = amount  # of the last flow, which went through the group as a whole
        for m in range(groups.first[at], groups.first[at + 1]):
            should_be_one = groups.state[m] == 1
            along = min(np.int64(last[e] * scale), left)
            left -= along
            flow.residual[2 * e] = FORCE if should_be_one else along
            flow.residual[2 * e + 1] = along if should_be_one else FORCE
            signed = along if should_be_one else -along
            excess[index(groups.node[m])] -= signed
            excess[node] += signed
            e += 1
        if groups.first[at + 1] > groups.first[at]:
            excess[node] += -amount if groups.state[groups.first[at]] == 1 else amount
