"""Any structure with potentials that are affine in the weights, as those of a network linearized at some weights.

The parts, outputs and oracles are those of the `base` problem, whose features are not asked. Each part has a row of
derivatives and an offset: theta_i = J_i w + offset_i. The offsets are added with the costs, so that a loss with a
margin has them; the true output must have none, as it costs nothing. A base without costs makes a loss with offsets
alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import starts_of
from maxmargin.execution.threads import aligned
from maxmargin.features import DenseFeatures, Gram, score_parts, spread_parts, squared_norm_parts
from maxmargin.problem import (
    add_output,
    augment,
    exp_oracle,
    max_oracle,
    part_sizes,
    score_output,
    topk_oracle,
    true_outputs,
    workspace,
)
from maxmargin.runtime.dispatch import implements, supports


class LinearizedProblem(NamedTuple):
    """The parts of example i have the rows and offsets starts[i]:starts[i + 1]."""

    base: Any
    features: Any  # the rows of derivatives
    starts: np.ndarray  # (n + 1,) int64
    offset: np.ndarray  # (sum of parts,)
    n_weights: int


class LinearizedSumProblem(NamedTuple):
    """The same, of base problems that have an exp oracle."""

    base: Any
    features: Any
    starts: np.ndarray
    offset: np.ndarray
    n_weights: int


BOTH = LinearizedProblem, LinearizedSumProblem


def linearized(base: Any, derivatives: np.ndarray, offset: np.ndarray) -> Any:
    """A problem of the parts of `base`, given the derivatives of their potentials, (sum of parts, d), and offsets."""
    starts = starts_of(part_sizes(base))
    kind = LinearizedSumProblem if supports(exp_oracle, base) else LinearizedProblem
    no_grams = Gram(np.empty(0), np.zeros(len(starts) - 1, np.int64))
    rows = DenseFeatures(np.require(derivatives, offset.dtype, ["C", "W"]), no_grams)
    return kind(base, rows, starts, np.ascontiguousarray(offset), derivatives.shape[1])


class NoWork(NamedTuple):
    """The workspace of a base problem that needs none."""


class LinearizedWork(NamedTuple):
    """The workspace of the base problem and the buffer of direction norms."""

    base: Any
    spread: np.ndarray  # (d,)


@implements(generics.true_outputs, *BOTH)
def true_linearized(problem):
    return true_outputs(problem.base)


@implements(generics.new_weights, *BOTH)
def new_linearized_weights(problem):
    return np.zeros(problem.n_weights, problem.offset.dtype)


@implements(generics.part_sizes, *BOTH)
def linearized_part_sizes(problem):
    return part_sizes(problem.base)


@implements(generics.workspace, *BOTH)
def linearized_workspace(problem, n_best):
    base = workspace(problem.base, n_best)
    spread = aligned((problem.n_weights,), problem.offset.dtype)
    return LinearizedWork(NoWork() if base is None else base, spread)


@implements(generics.scores, *BOTH)
def linearized_scores(problem, w, i, theta):
    score_parts(problem.features, w, problem.starts[i], problem.starts[i + 1], theta)


@implements(generics.spread, *BOTH)
def spread_linearized(problem, w, i, delta, scale):
    spread_parts(problem.features, w, problem.starts[i], problem.starts[i + 1], delta, scale)


@implements(generics.squared_norm, *BOTH)
def linearized_squared_norm(problem, i, delta, work):
    return squared_norm_parts(problem.features, problem.starts[i], problem.starts[i + 1], delta, work.spread)


@implements(generics.augment, *BOTH)
def augment_linearized(problem, i, theta):
    augment(problem.base, i, theta)
    lo = problem.starts[i]
    for p in range(theta.size):
        theta[p] += problem.offset[lo + p]


@implements(generics.add_output, *BOTH)
def add_linearized_output(problem, i, y, scale, mu):
    add_output(problem.base, i, y, scale, mu)


@implements(generics.score_output, *BOTH)
def score_linearized_output(problem, i, theta, y):
    return score_output(problem.base, i, theta, y)


@implements(generics.max_oracle, *BOTH)
def max_linearized(problem, i, theta, y, work):
    return max_oracle(problem.base, i, theta, y, work.base)


@implements(generics.topk_oracle, *BOTH)
def topk_linearized(problem, i, theta, outputs, values, level, work):
    return topk_oracle(problem.base, i, theta, outputs, values, level, work.base)


@implements(generics.exp_oracle, LinearizedSumProblem)
def exp_linearized(problem, i, theta, mu, work):
    return exp_oracle(problem.base, i, theta, mu, work.base)
