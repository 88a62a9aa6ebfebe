"""Candidate sets: each example has a list of outputs of its own, with a row of features and a cost each.

An output is the index of a candidate, as a row of one integer; the parts are the indicators of the candidates. All
oracles go through the whole list. There is one weight per feature, unless these say otherwise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import copy_into, first_best
from maxmargin.execution.threads import aligned
from maxmargin.features import layout_of_rows, score_parts, spread_parts, squared_norm_parts, squared_spreads
from maxmargin.losses.smoothing import has_weight
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.k_best import make_room
from maxmargin.supervision.exclusions import exclude_parts, rule_out


class CandidateSupervision(NamedTuple):
    """The true candidates, and what others cost."""

    labels: np.ndarray  # (n,) int32, the true candidates, -1 where they are unknown
    cost: np.ndarray  # (N,) the cost of each candidate, zero for the true ones; (0,) where there are none


class CandidateProblem(NamedTuple):
    """Candidates stored one after the other; those of example i are the rows starts[i]:starts[i + 1]."""

    features: Any
    starts: np.ndarray  # (n + 1,) int64
    supervision: CandidateSupervision
    excluded: Blocks  # flags of parts that are ruled out
    n_features: int


class CandidateWork(NamedTuple):
    """The buffer of direction norms."""

    spread: np.ndarray  # (F,)


@implements(generics.true_outputs, CandidateProblem)
def true_choices(problem):
    return problem.supervision.labels[:, np.newaxis]


@implements(generics.new_weights, CandidateProblem)
def new_candidate_weights(problem):
    return np.zeros(candidate_layout(problem).n_solved, problem.supervision.cost.dtype)


@implements(generics.layout, CandidateProblem)
def candidate_layout(problem):
    return layout_of_rows(problem.features, problem.n_features, 1)


@implements(generics.part_sizes, CandidateProblem)
def candidate_part_sizes(problem):
    return np.diff(problem.starts)


@implements(generics.squared_diameters, CandidateProblem)
def candidate_squared_diameters(problem):
    return squared_spreads(problem.features, problem.starts)


implements(generics.restrict, CandidateProblem)(exclude_parts)


@implements(generics.workspace, CandidateProblem)
def candidate_workspace(problem, n_best):
    return CandidateWork(spread=aligned((problem.n_features,), problem.supervision.cost.dtype))


@implements(generics.scores, CandidateProblem)
def candidate_scores(problem, w, i, theta):
    score_parts(problem.features, w, problem.starts[i], problem.starts[i + 1], theta)
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, CandidateProblem)
def spread_candidates(problem, w, i, delta, scale):
    spread_parts(problem.features, w, problem.starts[i], problem.starts[i + 1], delta, scale)


@implements(generics.squared_norm, CandidateProblem)
def candidate_squared_norm(problem, i, delta, work):
    return squared_norm_parts(problem.features, i, problem.starts[i], problem.starts[i + 1], delta, work.spread)


@implements(generics.augment, CandidateProblem)
def augment_candidates(problem, i, theta):
    cost = problem.supervision.cost
    if cost.size > 0:
        for k in range(theta.size):
            theta[k] += cost[problem.starts[i] + k]


# What follows holds for every problem whose outputs are one choice among parts: `class_problem`, too.


@implements(generics.add_output, CandidateProblem)
def add_choice(problem, i, y, scale, mu):
    mu[y[0]] += scale


@implements(generics.score_output, CandidateProblem)
def score_choice(problem, i, theta, y):
    return theta[y[0]]


@implements(generics.max_oracle, CandidateProblem)
def best_choice(problem, i, theta, y, work):
    y[0] = first_best(theta)
    return theta[y[0]]


@implements(generics.topk_oracle, CandidateProblem)
def best_k_choices(problem, i, theta, outputs, values, level, work):
    count = 0
    for k in range(theta.size):
        if theta[k] <= IMPOSSIBLE / 2 or (count == values.size and theta[k] <= values[count - 1]):
            continue
        count = min(count + 1, values.size)
        outputs[make_room(values[:count], outputs, 0, theta[k]), 0] = k  # among equals, the first one comes first
    while not has_weight(values, count - 1, level):
        count -= 1
    return count


@implements(generics.exp_oracle, CandidateProblem)
def softmax_of_choices(problem, i, theta, mu, work):
    top = np.float64(theta[first_best(theta)])
    total = 0.0
    for k in range(theta.size):
        mu[k] = math.exp(theta[k] - top)
        total += mu[k]
    for k in range(theta.size):
        mu[k] /= total
    return top + math.log(total)


@implements(generics.max_marginals, CandidateProblem)
def scores_of_choices(problem, i, theta, out, work):
    copy_into(out, theta)
