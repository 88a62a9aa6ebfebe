"""Losses, mean parts and their derivatives from potentials that lie in one flat array.

The potentials of example i are segments of the array, one after the other: segment s has sizes[i, s] numbers from
starts[i, s] on, or that many zeros where the start is `NOTHING`. Examples may share segments, such as transitions.
"""

from __future__ import annotations

from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.losses import attain, combine
from maxmargin.problem import (
    IMPOSSIBLE,
    add_output,
    augment,
    is_beyond_reach,
    max_oracle,
    score_output,
    topk_oracle,
    true_output,
)
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.smoothing import EVERY

NOTHING = -1
# What loops return: that all went well, or an example and what is wrong with it.
FINE = -1
BEYOND_REACH, NO_OUTPUT, NO_TRUTH = range(3)
PROBLEMS = 3


@helper
def gather(flat, starts, sizes, i, theta):
    """Theta = the potentials of example i."""
    at = 0
    for s in range(sizes.shape[1]):
        start = starts[i, s]
        for p in range(sizes[i, s]):
            theta[at + p] = flat[start + p] if start >= 0 else 0
        at += sizes[i, s]


@helper
def load(flat, starts, sizes, i, theta):
    """As `gather`; return whether the potentials are within reach."""
    gather(flat, starts, sizes, i, theta)
    return not is_beyond_reach(theta)


@helper
def scatter(flat, starts, sizes, i, delta, scale):
    """Add scale * delta to the segments of example i."""
    at = 0
    for s in range(sizes.shape[1]):
        start = starts[i, s]
        if start >= 0:
            for p in range(sizes[i, s]):
                flat[start + p] += scale * delta[at + p]
        at += sizes[i, s]


@loop
def attain_losses(problem, flat, loss, starts, sizes, is_relative, means, values, lo, hi, scratch):
    """values[i] = h_i, and the mean parts at which it is attained; less those of the true output, if relative."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: mu.size]
        if not load(flat, starts, sizes, i, theta):
            return PROBLEMS * i + BEYOND_REACH
        truth = 0.0
        if is_relative:
            truth = score_output(problem, i, theta, true_output(problem, i))
            if truth < IMPOSSIBLE / 2:
                return PROBLEMS * i + NO_TRUTH
        if loss.margin:
            augment(problem, i, theta)
        h, _, _, _ = attain(loss, problem, i, theta, mu, scratch)
        if h < IMPOSSIBLE / 2:
            return PROBLEMS * i + NO_OUTPUT
        values[i] = h - truth
        if is_relative:
            add_output(problem, i, true_output(problem, i), -1.0, mu)
    return FINE


@loop
def spread_means(problem, out, means, scale, starts, sizes, lo, hi, scratch):
    """Out += sum_i scale_i mu_i, each part where its potential lies."""
    for i in range(lo, hi):
        scatter(out, starts, sizes, i, means.values[means.starts[i] : means.starts[i + 1]], scale[i])


@loop
def products(problem, flat, means, starts, sizes, values, lo, hi, scratch):
    """values[i] = <theta_i, mu_i>, for numbers theta that lie as potentials do."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: mu.size]
        gather(flat, starts, sizes, i, theta)
        total = 0.0
        for p in range(mu.size):
            total += theta[p] * mu[p]
        values[i] = total


@helper
def step_of(stage):
    """The places and weights of a derivative by central differences, exact for polynomials of degree 4."""
    if stage == 0:
        return -2.0, 1.0 / 12
    if stage == 1:
        return -1.0, -8.0 / 12
    if stage == 2:
        return 1.0, 8.0 / 12
    return 2.0, -1.0 / 12


@loop
def mean_derivatives(problem, out, flat, direction, scale, loss, starts, sizes, n_parts, step, lo, hi, scratch):
    """Out += sum_i scale_i (d/dt) mu_i(theta_i + t direction_i) at t = 0, each part where its potential lies.

    By central differences; `step` is the change of the potential that changes most.
    """
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        mu = scratch.delta[: n_parts[i]]
        gather(direction, starts, sizes, i, theta)
        most = 0.0
        for p in range(theta.size):
            most = max(most, abs(theta[p]))
        if most == 0 or scale[i] == 0:
            continue
        for stage in range(4):
            place, weight = step_of(stage)
            gather(direction, starts, sizes, i, mu)
            gather(flat, starts, sizes, i, theta)
            combine(theta, 1.0, mu, place * step / most)
            if loss.margin:
                augment(problem, i, theta)
            attain(loss, problem, i, theta, mu, scratch)
            scatter(out, starts, sizes, i, mu, scale[i] * weight * most / step)


@loop
def best(problem, flat, starts, sizes, n_parts, outputs, lo, hi, scratch):
    """The output of the highest score of every example."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not load(flat, starts, sizes, i, theta):
            return PROBLEMS * i + BEYOND_REACH
        y = outputs.values[outputs.starts[i] : outputs.starts[i + 1]]
        if max_oracle(problem, i, theta, y, scratch.work) < IMPOSSIBLE / 2:
            return PROBLEMS * i + NO_OUTPUT
    return FINE


@loop
def best_k(problem, flat, starts, sizes, n_parts, outputs, values, counts, lo, hi, scratch):
    """The K best outputs of every example, their scores and how many there are."""
    k = values.shape[1]
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not load(flat, starts, sizes, i, theta):
            return PROBLEMS * i + BEYOND_REACH
        rows = matrix(outputs.values, outputs.starts[i], k, (outputs.starts[i + 1] - outputs.starts[i]) // k)
        count = topk_oracle(problem, i, theta, rows, values[i], EVERY, scratch.work)
        while count > 0 and values[i, count - 1] < IMPOSSIBLE / 2:
            count -= 1
        counts[i] = count
        if count == 0:
            return PROBLEMS * i + NO_OUTPUT
    return FINE


@loop
def score_outputs(problem, flat, starts, sizes, n_parts, outputs, counts, values, lo, hi, scratch):
    """The scores of given outputs."""
    k = values.shape[1]
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not load(flat, starts, sizes, i, theta):
            return PROBLEMS * i + BEYOND_REACH
        rows = matrix(outputs.values, outputs.starts[i], k, (outputs.starts[i + 1] - outputs.starts[i]) // k)
        for j in range(counts[i]):
            values[i, j] = score_output(problem, i, theta, rows[j])
    return FINE


@loop
def spread_outputs(problem, out, outputs, counts, scale, starts, sizes, n_parts, lo, hi, scratch):
    """Out += sum_i sum_j scale_ij s_i(y_ij), each part where its potential lies."""
    k = scale.shape[1]
    for i in range(lo, hi):
        delta = scratch.delta[: n_parts[i]]
        clear(delta)
        rows = matrix(outputs.values, outputs.starts[i], k, (outputs.starts[i + 1] - outputs.starts[i]) // k)
        for j in range(counts[i]):
            add_output(problem, i, rows[j], scale[i, j], delta)
        scatter(out, starts, sizes, i, delta, 1.0)
