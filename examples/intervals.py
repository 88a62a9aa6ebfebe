"""Your own structure, compiled: one interval in each sequence, found by Kadane's algorithm in linear time.

An output is (start, stop), half-open. Its parts are two indicators per position, outside and inside, so that the number
of misplaced positions is linear in them. `examples/bursts.py` trains it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.problem import (
    add_output,
    augment,
    max_oracle,
    new_weights,
    part_sizes,
    score_output,
    scores,
    spread,
    squared_norm,
    true_outputs,
    workspace,
)
from maxmargin.runtime import implements


class Intervals(NamedTuple):
    """Sequences stored one after the other; the rows of example i are starts[i]:starts[i + 1]."""

    rows: np.ndarray  # (N, F)
    starts: np.ndarray  # (n + 1,)
    true: np.ndarray  # (n, 2) int32, the true intervals


class Work(NamedTuple):
    """A vector as long as the weights."""

    direction: np.ndarray


def make_intervals(X, y=None):
    """Stack sequences of rows, with their true intervals."""
    starts = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    true = np.tile([0, 1], (len(X), 1)) if y is None else y
    return Intervals(np.concatenate(X).astype(np.float64), starts, np.array(true, np.int32))


# --- sizes and true outputs


@implements(true_outputs, Intervals)
def true_intervals(problem):
    return problem.true


@implements(new_weights, Intervals)
def zero_weights(problem):
    return np.zeros(problem.rows.shape[1])


@implements(part_sizes, Intervals)
def two_per_position(problem):
    return 2 * np.diff(problem.starts)


@implements(workspace, Intervals)
def new_work(problem, n_best):
    return Work(np.zeros(problem.rows.shape[1]))


# --- the linear map: a position inside scores <w, row>, one outside nothing


@implements(scores, Intervals)
def interval_scores(problem, w, i, theta):
    for t in range(theta.size // 2):
        theta[2 * t] = 0
        theta[2 * t + 1] = 0
        for f in range(w.size):
            theta[2 * t + 1] += w[f] * problem.rows[problem.starts[i] + t, f]


@implements(spread, Intervals)
def spread_inside(problem, w, i, delta, scale):
    for t in range(delta.size // 2):
        for f in range(w.size):
            w[f] += scale * delta[2 * t + 1] * problem.rows[problem.starts[i] + t, f]


@implements(squared_norm, Intervals)
def norm_inside(problem, i, delta, work):
    spread(problem, work.direction, i, delta, 1.0)
    total = 0.0
    for f in range(work.direction.size):
        total += work.direction[f] ** 2
        work.direction[f] = 0
    return total


# --- outputs and costs


@implements(augment, Intervals)
def count_misplaced(problem, i, theta):
    for t in range(theta.size // 2):
        is_inside = problem.true[i, 0] <= t < problem.true[i, 1]
        theta[2 * t + (0 if is_inside else 1)] += 1


@implements(add_output, Intervals)
def add_interval(problem, i, y, scale, mu):
    for t in range(mu.size // 2):
        mu[2 * t + (1 if y[0] <= t < y[1] else 0)] += scale


@implements(score_output, Intervals)
def score_interval(problem, i, theta, y):
    total = 0.0
    for t in range(theta.size // 2):
        total += theta[2 * t + (1 if y[0] <= t < y[1] else 0)]
    return total


# --- the oracle


@implements(max_oracle, Intervals)
def best_interval(problem, i, theta, y, work):
    """Kadane: the best interval that stops at t goes on from the one before, or starts anew."""
    outside = 0.0
    best = 0.0
    here = 0.0
    start = 0
    for t in range(theta.size // 2):
        outside += theta[2 * t]
        gain = theta[2 * t + 1] - theta[2 * t]
        if t == 0 or here < 0:
            here = 0.0
            start = t
        here += gain
        if t == 0 or here > best:
            best = here
            y[0] = start
            y[1] = t + 1
    return outside + best
