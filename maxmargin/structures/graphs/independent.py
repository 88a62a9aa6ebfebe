"""Labels that are on or off, each by itself: graphs without edges, with weights in the order that scores fastest.

An output of example i is a row of 0 and 1, one per label. The parts are the indicators of (label, off), one label after
the other, then those of (label, on), which alone have weights, of the shape (F, L), flat.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import clear, inner
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import score_rows, spread_rows
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import branch_off, k_best, offer, take
from maxmargin.supervision.exclusions import exclude_parts, rule_out
from maxmargin.supervision.label_supervision import LabelSupervision, add_costs_by_label

LARGEST_PRODUCT = 1e200  # of factors from 1 to 2, before its logarithm is taken


class IndependentProblem(NamedTuple):
    """One row of features per example."""

    features: Any
    supervision: LabelSupervision  # of the labels of all examples, 1 for those that are on
    excluded: Blocks  # flags of labels that cannot be off, and of those that cannot be on
    squared_norms: np.ndarray  # (n,) of the rows
    n_features: int
    n_labels: int


class IndependentWork(NamedTuple):
    """Room for the top-K oracle."""

    branches: np.ndarray  # (K, 3)


@implements(generics.true_outputs, IndependentProblem)
def true_label_sets(problem):
    return Blocks(problem.supervision.labels, problem.n_labels * np.arange(len(problem.squared_norms) + 1))


@implements(generics.new_weights, IndependentProblem)
def new_label_weights(problem):
    return np.zeros(problem.n_features * problem.n_labels, problem.supervision.cost.dtype)


@implements(generics.part_sizes, IndependentProblem)
def label_part_sizes(problem):
    return np.full(len(problem.squared_norms), 2 * problem.n_labels)


@implements(generics.squared_diameters, IndependentProblem)
def label_squared_diameters(problem):
    return problem.n_labels * problem.squared_norms.astype(np.float64)


implements(generics.restrict, IndependentProblem)(exclude_parts)


@implements(generics.workspace, IndependentProblem)
def label_workspace(problem, n_best):
    return IndependentWork(branches=aligned((n_best, 3), np.int64))


@implements(generics.scores, IndependentProblem)
def label_scores(problem, w, i, theta):
    n_labels = problem.n_labels
    clear(theta[:n_labels])
    weights = matrix(w, 0, problem.n_features, n_labels)
    score_rows(problem.features, weights, i, i + 1, matrix(theta, n_labels, 1, n_labels))
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, IndependentProblem)
def spread_labels(problem, w, i, delta, scale):
    n_labels = problem.n_labels
    weights = matrix(w, 0, problem.n_features, n_labels)
    spread_rows(problem.features, weights, i, i + 1, matrix(delta, n_labels, 1, n_labels), scale)


@implements(generics.squared_norm, IndependentProblem)
def label_squared_norm(problem, i, delta, work):
    on = delta[problem.n_labels :]
    return problem.squared_norms[i] * inner(on, on)


@helper
def part_of(problem, y, label):
    """The part that a label of an output has."""
    return label + problem.n_labels * y[label]


@implements(generics.augment, IndependentProblem)
def augment_labels(problem, i, theta):
    add_costs_by_label(problem.supervision, i * problem.n_labels, theta)


@implements(generics.add_output, IndependentProblem)
def add_label_set(problem, i, y, scale, mu):
    for label in range(problem.n_labels):
        mu[part_of(problem, y, label)] += scale


@implements(generics.score_output, IndependentProblem)
def score_label_set(problem, i, theta, y):
    total = 0.0
    for label in range(problem.n_labels):
        total += theta[part_of(problem, y, label)]
    return total


@implements(generics.max_oracle, IndependentProblem)
def best_label_set(problem, i, theta, y, work):
    for label in range(problem.n_labels):
        y[label] = theta[problem.n_labels + label] > theta[label]
    return generics.score_output(problem, i, theta, y)


class Switches(NamedTuple):
    """Labels switched one after the other; each of an output is at its best up to where it branches off."""

    theta: np.ndarray


@implements(take, Switches)
def switch(choices, y, s, option):
    y[s] = option


@implements(branch_off, Switches)
def branch_off_switch(choices, y, s, branches):
    theta = choices.theta
    offer(branches, s, 1 - y[s], abs(np.float64(theta[y.size + s]) - theta[s]))


@implements(generics.topk_oracle, IndependentProblem)
def best_k_label_sets(problem, i, theta, outputs, values, level, work):
    best = generics.max_oracle(problem, i, theta, outputs[0], work)
    return k_best(Switches(theta), problem.n_labels, best, outputs, values, level, work.branches)


@implements(generics.exp_oracle, IndependentProblem)
def label_probabilities(problem, i, theta, mu, work):
    n_labels = problem.n_labels
    total = 0.0
    product = 1.0
    for label in range(n_labels):
        difference = np.float64(theta[n_labels + label]) - theta[label]
        rest = fast_exp(-abs(difference))
        total += theta[n_labels + label] if difference > 0 else theta[label]
        product *= 1 + rest
        if product > LARGEST_PRODUCT:
            total += math.log(product)
            product = 1.0
        likelier = 1 / (1 + rest)
        mu[n_labels + label] = likelier if difference > 0 else rest * likelier
        mu[label] = rest * likelier if difference > 0 else likelier
    return total + math.log(product)


@implements(generics.sample_oracle, IndependentProblem)
def sample_label_sets(problem, i, theta, draws, outputs, work):
    for k in range(outputs.shape[0]):
        for label in range(problem.n_labels):
            difference = np.float64(theta[problem.n_labels + label]) - theta[label]
            rest = fast_exp(-abs(difference))
            share = 1 / (1 + rest) if difference > 0 else rest / (1 + rest)
            outputs[k, label] = draws[k, label] < share


@implements(generics.max_marginals, IndependentProblem)
def label_max_marginals(problem, i, theta, out, work):
    n_labels = problem.n_labels
    total = 0.0
    for label in range(n_labels):
        total += max(theta[label], theta[n_labels + label])
    for label in range(n_labels):
        best = max(theta[label], theta[n_labels + label])
        out[label] = total - best + theta[label]
        out[n_labels + label] = total - best + theta[n_labels + label]
