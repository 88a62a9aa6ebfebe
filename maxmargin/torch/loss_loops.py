"""Losses, mean parts and their derivatives: the potentials of a batch are the weights of a `SelectedProblem`."""

from __future__ import annotations

from maxmargin import problem as generics
from maxmargin.arrays.vectors import clear, inner
from maxmargin.arrays.views import matrix
from maxmargin.losses import attain, combine
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, loop

# What loops return: that all went well, or an example and what is wrong with it.
FINE = -1
BEYOND_REACH, NO_OUTPUT, NO_TRUE_OUTPUT = range(3)
PROBLEMS = 3


@loop
def attain_losses(problem, w, loss, is_relative, means, values, lo, hi, scratch):
    """values[i] = h_i, and the mean parts at which it is attained; less those of the true output, if relative."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: mu.size]
        generics.scores(problem, w, i, theta)
        if generics.is_beyond_reach(theta):
            return PROBLEMS * i + BEYOND_REACH
        least = 0.0
        if is_relative:
            least = generics.score_output(problem, i, theta, generics.true_output(problem, i))
            if least < IMPOSSIBLE / 2:
                return PROBLEMS * i + NO_TRUE_OUTPUT
        if loss.margin:
            generics.augment(problem, i, theta)
        h, _, _, _ = attain(loss, problem, i, theta, mu, scratch)
        if h < IMPOSSIBLE / 2:
            return PROBLEMS * i + NO_OUTPUT
        values[i] = h - least
        if is_relative:
            generics.add_output(problem, i, generics.true_output(problem, i), -1.0, mu)
    return FINE


@loop
def spread_means(problem, out, means, scale, lo, hi, scratch):
    """Out += sum_i scale_i mu_i, each part where its potential lies."""
    for i in range(lo, hi):
        generics.accumulate(problem, out, i, means.values[means.starts[i] : means.starts[i + 1]], scale[i])


@loop
def products(problem, direction, means, values, lo, hi, scratch):
    """values[i] = <theta_i, mu_i>, for numbers theta that lie as potentials do."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: mu.size]
        generics.scores(problem, direction, i, theta)
        values[i] = inner(theta, mu)


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
def mean_derivatives(problem, out, w, direction, scale, loss, n_parts, step, lo, hi, scratch):
    """Out += sum_i scale_i (d/dt) mu_i(theta_i + t direction_i) at t = 0, each part where its potential lies.

    By central differences; `step` is the change of the potential that changes most.
    """
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        mu = scratch.delta[: n_parts[i]]
        generics.scores(problem, direction, i, theta)
        most = 0.0
        for p in range(theta.size):
            most = max(most, abs(theta[p]))
        if most == 0 or scale[i] == 0:
            continue
        for stage in range(4):
            place, weight = step_of(stage)
            generics.scores(problem, direction, i, mu)
            generics.scores(problem, w, i, theta)
            combine(theta, 1.0, mu, place * step / most)
            if loss.margin:
                generics.augment(problem, i, theta)
            attain(loss, problem, i, theta, mu, scratch)
            generics.accumulate(problem, out, i, mu, scale[i] * weight * most / step)


@loop
def spread_outputs(problem, out, outputs, counts, scale, n_parts, lo, hi, scratch):
    """Out += sum_i sum_j scale_ij s_i(y_ij), each part where its potential lies."""
    k = scale.shape[1]
    for i in range(lo, hi):
        delta = scratch.delta[: n_parts[i]]
        clear(delta)
        rows = matrix(outputs.values, outputs.starts[i], k, (outputs.starts[i + 1] - outputs.starts[i]) // k)
        for j in range(counts[i]):
            generics.add_output(problem, i, rows[j], scale[i, j], delta)
        generics.accumulate(problem, out, i, delta, 1.0)
