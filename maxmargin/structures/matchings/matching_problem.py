"""Matchings: links between left and right nodes, at most one for each node.

An output of example i is, for each of its n left nodes, the right node it is linked to, or -1. Its parts are the n x m
indicators of links, each with a row of features, then the n indicators of left nodes without a link, which have no
features, and all the same score, `threshold`: zero in training. There is one weight per feature. The mean of exp(score)
is a permanent, so there is no exp oracle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import score_parts, spread_parts, squared_norm_parts
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.matchings.assignment import (
    NOBODY,
    TOO_MUCH,
    AssignmentWork,
    assignment_work,
    best_assignment,
    extra_cost,
    fill_detours,
    own_columns,
)
from maxmargin.structures.splitting import RULED_OUT, Splits, find_runner_up, new_splits, obey_rule, split_best
from maxmargin.supervision.exclusions import exclude_parts, rule_out


class MatchingSupervision(NamedTuple):
    """The true links, and what others cost."""

    matches: np.ndarray  # (sum of left nodes,) int32, the true ones
    cost: np.ndarray  # (sum of parts,) the cost of each part, example by example; (0,) where there are none


class MatchingProblem(NamedTuple):
    """Pairs of example i in the rows pair_starts[i]:pair_starts[i + 1], left node by left node."""

    features: Any
    pair_starts: np.ndarray  # (n + 1,) int64
    left_starts: np.ndarray  # (n + 1,) int64
    n_right: np.ndarray  # (n,) int64
    supervision: MatchingSupervision
    excluded: Blocks  # flags of parts that are ruled out
    n_features: int
    threshold: float = 0.0  # the score of a left node without a link


class MatchingWork(NamedTuple):
    """The arrays of the assignment solver, an output, and the buffer of direction norms."""

    assignment: AssignmentWork
    match: np.ndarray  # (n,) int32, an output
    spread: np.ndarray  # (F,)
    splits: Splits  # of the K best


@helper
def shape_of(problem, i):
    """The numbers of left and right nodes of example i."""
    return problem.left_starts[i + 1] - problem.left_starts[i], problem.n_right[i]


@implements(generics.true_outputs, MatchingProblem)
def true_matchings(problem):
    return Blocks(problem.supervision.matches, problem.left_starts)


@implements(generics.new_weights, MatchingProblem)
def new_matching_weights(problem):
    return np.zeros(problem.n_features, problem.supervision.cost.dtype)


@implements(generics.part_sizes, MatchingProblem)
def matching_part_sizes(problem):
    return np.diff(problem.pair_starts) + np.diff(problem.left_starts)


implements(generics.restrict, MatchingProblem)(exclude_parts)


@implements(generics.oracle_work, MatchingProblem)
def matching_work(problem):
    n_left = np.diff(problem.left_starts)
    shorter, longer = np.minimum(n_left, problem.n_right), np.maximum(n_left, problem.n_right)
    return 3 * (shorter**2 * longer).mean() / matching_part_sizes(problem).mean()  # add, compare, keep the least


@implements(generics.workspace, MatchingProblem)
def matching_workspace(problem, n_best):
    n_left, n_pairs = np.diff(problem.left_starts).max(), np.diff(problem.pair_starts).max()
    return MatchingWork(
        assignment=assignment_work(n_left, problem.n_right.max(), n_pairs),
        match=aligned((n_left,), np.int32),
        spread=aligned((problem.n_features,), problem.supervision.cost.dtype),
        splits=new_splits(matching_part_sizes(problem).max(), n_best),
    )


@implements(generics.scores, MatchingProblem)
def matching_scores(problem, w, i, theta):
    n_left, n_right = shape_of(problem, i)
    score_parts(problem.features, w, problem.pair_starts[i], problem.pair_starts[i + 1], theta)
    for v in range(n_left):
        theta[n_left * n_right + v] = problem.threshold
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, MatchingProblem)
def spread_matching(problem, w, i, delta, scale):
    spread_parts(problem.features, w, problem.pair_starts[i], problem.pair_starts[i + 1], delta, scale)


@implements(generics.squared_norm, MatchingProblem)
def matching_squared_norm(problem, i, delta, work):
    lo, hi = problem.pair_starts[i], problem.pair_starts[i + 1]
    return squared_norm_parts(problem.features, i, lo, hi, delta, work.spread)


@implements(generics.augment, MatchingProblem)
def augment_matching(problem, i, theta):
    cost = problem.supervision.cost
    if cost.size > 0:
        start = problem.pair_starts[i] + problem.left_starts[i]
        for p in range(theta.size):
            theta[p] += cost[start + p]


@helper
def part_of(v, z, n_left, n_right):
    """The part of left node v that is linked to z, or to nobody."""
    return n_left * n_right + v if z == NOBODY else v * n_right + z


@implements(generics.add_output, MatchingProblem)
def add_matching(problem, i, y, scale, mu):
    n_left, n_right = shape_of(problem, i)
    for v in range(n_left):
        mu[part_of(v, y[v], n_left, n_right)] += scale


@implements(generics.score_output, MatchingProblem)
def score_matching(problem, i, theta, y):
    n_left, n_right = shape_of(problem, i)
    total = 0.0
    for v in range(n_left):
        total += theta[part_of(v, y[v], n_left, n_right)]
    return total


@helper
def fill_costs(cost, unmatched, theta):
    """Cost = -theta, which the assignment solver minimises; those of impossible parts are too much."""
    n_left, n_right = cost.shape
    for v in range(n_left):
        for z in range(n_right):
            score = theta[v * n_right + z]
            cost[v, z] = -score if score > IMPOSSIBLE / 2 else TOO_MUCH
        score = theta[n_left * n_right + v]
        unmatched[v] = -score if score > IMPOSSIBLE / 2 else TOO_MUCH


@implements(generics.max_oracle, MatchingProblem)
def best_matching(problem, i, theta, y, work):
    n_left, n_right = shape_of(problem, i)
    cost = matrix(work.assignment.cost, 0, n_left, n_right)
    fill_costs(cost, work.assignment.unmatched, theta)
    best_assignment(cost, y, work.assignment)
    return generics.score_output(problem, i, theta, y)


@implements(generics.max_marginals, MatchingProblem)
def matching_max_marginals(problem, i, theta, out, work):
    n_left, n_right = shape_of(problem, i)
    y = work.match
    best = generics.max_oracle(problem, i, theta, y, work)
    cost = matrix(work.assignment.cost, 0, n_left, n_right)
    fill_detours(cost, y, work.assignment)
    for v in range(n_left):
        for z in range(NOBODY, n_right):
            out[part_of(v, z, n_left, n_right)] = best - extra_cost(cost, y, v, z, work.assignment)


implements(generics.topk_oracle, MatchingProblem)(split_best)


@implements(obey_rule, MatchingProblem)
def obey_link(problem, i, place, choice, is_forced, theta):
    """Rule out the other choices of a left node, or that one."""
    n_left, n_right = shape_of(problem, i)
    for z in range(NOBODY, n_right):
        if (z == choice) != is_forced:
            theta[part_of(place, z, n_left, n_right)] = RULED_OUT


@implements(find_runner_up, MatchingProblem)
def find_second_matching(problem, i, theta, y, score, is_new, work):
    n_left, n_right = shape_of(problem, i)
    state = work.assignment
    cost = matrix(state.cost, 0, n_left, n_right)
    if not is_new:
        fill_costs(cost, state.unmatched, theta)
        best_assignment(cost, work.match, state)
        own_columns(y, state.owner[:n_right])  # whose prices are the same: it may tie with the match
    fill_detours(cost, y, state)
    least = TOO_MUCH / 2
    place = 0
    choice = 0
    for v in range(n_left):
        for z in range(NOBODY, n_right):
            if z != y[v] and extra_cost(cost, y, v, z, state) < least:
                least = extra_cost(cost, y, v, z, state)
                place = v
                choice = z
    return place, choice, score - least
