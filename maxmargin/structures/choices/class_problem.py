"""Classes: every example has the same outputs, and each class its own weights.

An output is the index of a class, as a row of one integer; the parts are the indicators of the classes. The weights
have the shape (F, L), flat, unless the features say otherwise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import first_best, inner
from maxmargin.arrays.views import matrix
from maxmargin.features import layout_of_rows, row_stretches, score_rows, spread_rows, weight_shape
from maxmargin.runtime.dispatch import helper, implements, supports
from maxmargin.structures.choices import candidate_problem as candidates
from maxmargin.supervision.exclusions import exclude_parts, rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs


class MulticlassProblem(NamedTuple):
    """One row of features per example."""

    features: Any
    supervision: LabelSupervision
    squared_norms: np.ndarray  # (n,) of the rows
    excluded: Blocks  # flags of parts that are ruled out
    n_features: int


@implements(generics.true_outputs, MulticlassProblem)
def true_classes(problem):
    return problem.supervision.labels[:, np.newaxis]


@implements(generics.new_weights, MulticlassProblem)
def new_class_weights(problem):
    n_classes = problem.supervision.cost.shape[1]
    shape = weight_shape(problem.features, problem.n_features, n_classes)
    return np.zeros(math.prod(shape), problem.supervision.cost.dtype)


@implements(generics.layout, MulticlassProblem)
def class_layout(problem):
    return layout_of_rows(problem.features, problem.n_features, problem.supervision.cost.shape[1])


@implements(generics.part_sizes, MulticlassProblem)
def class_part_sizes(problem):
    return np.full(problem.supervision.labels.size, problem.supervision.cost.shape[1])


@implements(generics.squared_diameters, MulticlassProblem)
def class_squared_diameters(problem):
    return 2 * problem.squared_norms.astype(np.float64)


implements(generics.restrict, MulticlassProblem)(exclude_parts)


@implements(generics.stretches, MulticlassProblem)
def class_stretches(problem):
    lo = np.arange(len(problem.supervision.labels))
    return row_stretches(problem.features, lo, lo + 1) if supports(row_stretches, problem.features) else []


@implements(generics.workspace, MulticlassProblem)
def class_workspace(problem, n_best):
    return None


@helper
def table_shape(problem):
    """The shape of the weights as features take them; compiled helpers that return views would count references."""
    return weight_shape(problem.features, problem.n_features, problem.supervision.cost.shape[1])


@implements(generics.scores, MulticlassProblem)
def class_scores(problem, w, i, theta):
    rows, columns = table_shape(problem)
    score_rows(problem.features, matrix(w, 0, rows, columns), i, i + 1, matrix(theta, 0, 1, theta.size))
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, MulticlassProblem)
def spread_classes(problem, w, i, delta, scale):
    rows, columns = table_shape(problem)
    spread_rows(problem.features, matrix(w, 0, rows, columns), i, i + 1, matrix(delta, 0, 1, delta.size), scale)


@implements(generics.squared_norm, MulticlassProblem)
def class_squared_norm(problem, i, delta, work):
    return problem.squared_norms[i] * inner(delta, delta)


@implements(generics.augment, MulticlassProblem)
def augment_classes(problem, i, theta):
    add_costs(problem.supervision, i, matrix(theta, 0, 1, theta.size))


@implements(generics.block_oracle, MulticlassProblem)
def best_mixture(problem, i, theta, curvature, mu, delta, work):
    """By projection to the simplex (Crammer, Singer 2001), as all outputs have the same features.

    The threshold rises to where what is above it sums to 1.
    """
    label = problem.supervision.labels[i]
    bend = curvature * problem.squared_norms[i]
    best = first_best(theta)
    top = np.float64(theta[best])
    inverse = 1 / bend if bend > 0 else 0.0
    highest = -np.inf
    for k in range(theta.size):
        # How far below the best class, in units of weight: large scores in common would take digits away.
        delta[k] = mu[k] + (theta[k] - theta[best]) * inverse + (1 if k == label else 0)
        highest = max(highest, delta[k])
    threshold = -np.inf
    rise = highest - 1
    while rise > threshold:
        threshold = rise
        total = 0.0
        count = 0
        for k in range(theta.size):
            if delta[k] > threshold:
                total += delta[k]
                count += 1
        rise = (total - 1) / count if count > 0 else threshold
    moved = 0.0
    for k in range(theta.size):
        weight = max(delta[k] - threshold, 0.0)
        if bend <= 0:
            weight = 1.0 if k == best else 0.0
        delta[k] = weight - mu[k]
        moved += delta[k] if k != label else 0.0
    delta[label] = -moved
    return top


implements(generics.add_output, MulticlassProblem)(candidates.add_choice)
implements(generics.score_output, MulticlassProblem)(candidates.score_choice)
implements(generics.max_oracle, MulticlassProblem)(candidates.best_choice)
implements(generics.topk_oracle, MulticlassProblem)(candidates.best_k_choices)
implements(generics.exp_oracle, MulticlassProblem)(candidates.softmax_of_choices)
implements(generics.max_marginals, MulticlassProblem)(candidates.scores_of_choices)
