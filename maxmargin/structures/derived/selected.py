"""Any structure with potentials that are picked from the weights, as those that a network makes.

The parts, outputs, costs and oracles are those of the `base` problem, whose features are not asked. The potentials of
example i are segments of the weights, one after the other: segment s has sizes[i, s] of them from starts[i, s] on, or
that many zeros where the start is `NOTHING`. Examples may share segments, such as transitions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.delegated import OUTPUTS_AND_ORACLES, base_workspace, delegate
from maxmargin.supervision.exclusions import rule_out

NOTHING = -1


class SelectedProblem(NamedTuple):
    """A base problem, and where the potentials of its examples lie."""

    base: Any
    starts: np.ndarray  # (n, S) int64
    sizes: np.ndarray  # (n, S) int64
    n_weights: int
    excluded: Blocks


class SelectedWork(NamedTuple):
    """The workspace of the base problem."""

    base: Any


delegate(SelectedProblem, functions=(*OUTPUTS_AND_ORACLES, generics.augment))


@implements(generics.new_weights, SelectedProblem)
def new_selected_weights(problem):
    return np.zeros(problem.n_weights, generics.new_weights(problem.base).dtype)


@implements(generics.workspace, SelectedProblem)
def selected_workspace(problem, n_best):
    return SelectedWork(base_workspace(problem, n_best))


@implements(generics.scores, SelectedProblem)
def select_scores(problem, w, i, theta):
    at = 0
    for s in range(problem.sizes.shape[1]):
        start = problem.starts[i, s]
        for p in range(problem.sizes[i, s]):
            theta[at + p] = w[start + p] if start >= 0 else 0
        at += problem.sizes[i, s]
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, SelectedProblem)
def spread_selected(problem, w, i, delta, scale):
    at = 0
    for s in range(problem.sizes.shape[1]):
        start = problem.starts[i, s]
        if start >= 0:
            for p in range(problem.sizes[i, s]):
                w[start + p] += scale * delta[at + p]
        at += problem.sizes[i, s]


@implements(generics.squared_norm, SelectedProblem)
def selected_squared_norm(problem, i, delta, work):
    total = 0.0
    at = 0
    for s in range(problem.sizes.shape[1]):
        if problem.starts[i, s] >= 0:
            for p in range(problem.sizes[i, s]):
                total += delta[at + p] ** 2
        at += problem.sizes[i, s]
    return total
