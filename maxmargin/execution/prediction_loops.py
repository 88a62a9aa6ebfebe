"""The compiled loops of inference: predictions for the examples lo:hi of a problem.

Each returns an example whose scores are beyond reach, or NONE.
"""

from __future__ import annotations

from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import (
    IMPOSSIBLE,
    augment,
    bound_oracle,
    exp_oracle,
    is_beyond_reach,
    is_tight,
    max_marginals,
    max_oracle,
    mean_oracle,
    relax_oracle,
    sample_oracle,
    score_output,
    scores,
    topk_oracle,
    transition_marginals,
    true_output,
)
from maxmargin.runtime.dispatch import helper, loop

NONE = -1  # what a loop returns when it is through, in place of an example whose scores are beyond reach


@helper
def find_scores(problem, w, i, theta):
    """Theta = B_i' w; return whether all of it is within reach."""
    scores(problem, w, i, theta)
    return not is_beyond_reach(theta)


@loop
def decode(problem, w, n_parts, outputs, lo, hi, scratch):
    """Write the best output of each example; return one whose scores are beyond reach, or NONE."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not find_scores(problem, w, i, theta):
            return i
        max_oracle(problem, i, theta, outputs.values[outputs.starts[i] : outputs.starts[i + 1]], scratch.work)
    return NONE


@loop
def attain_outputs(problem, w, n_parts, outputs, values, bounds, lo, hi, scratch):
    """Write the best outputs and their scores, which are bounds, too."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        y = outputs.values[outputs.starts[i] : outputs.starts[i + 1]]
        if not find_scores(problem, w, i, theta):
            return i
        max_oracle(problem, i, theta, y, scratch.work)
        scores(problem, w, i, theta)  # some oracles change them
        values[i] = score_output(problem, i, theta, y)
        bounds[i] = values[i]
    return NONE


@loop
def bound_outputs(problem, w, n_parts, outputs, values, bounds, lo, hi, scratch):
    """Write good outputs, their scores, and bounds of those of all others."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        y = outputs.values[outputs.starts[i] : outputs.starts[i + 1]]
        if not find_scores(problem, w, i, theta):
            return i
        bound = bound_oracle(problem, i, theta, y, scratch.work)
        values[i] = score_output(problem, i, theta, y)
        bounds[i] = max(bound, values[i])
    return NONE


@loop
def tighten_bounds(problem, w, n_parts, values, bounds, lo, hi, scratch):
    """Lower bounds to those of a relaxation, where they are not tight."""
    for i in range(lo, hi):
        if not is_tight(bounds[i], values[i]):
            theta = scratch.theta[: n_parts[i]]
            scores(problem, w, i, theta)
            bound = relax_oracle(problem, i, theta, scratch.delta[: theta.size], scratch.work)
            bounds[i] = max(min(bounds[i], bound), values[i])
    return NONE


@loop
def find_means(problem, w, means, is_exact, lo, hi, scratch):
    """Write mean parts, and whether they are exact."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: mu.size]
        if not find_scores(problem, w, i, theta):
            return i
        is_exact[i] = mean_oracle(problem, i, theta, mu, scratch.work)
    return NONE


@loop
def decode_k(problem, w, n_parts, outputs, values, counts, lo, hi, scratch):
    """Write the K best outputs, their scores and how many there are."""
    k = values.shape[1]
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        size = (outputs.starts[i + 1] - outputs.starts[i]) // k
        if not find_scores(problem, w, i, theta):
            return i
        best = matrix(outputs.values, outputs.starts[i], k, size)
        counts[i] = topk_oracle(problem, i, theta, best, values[i], EVERY, scratch.work)
    return NONE


@loop
def find_best_through(problem, w, best, lo, hi, scratch):
    """Write max-marginals."""
    for i in range(lo, hi):
        out = best.values[best.starts[i] : best.starts[i + 1]]
        theta = scratch.theta[: out.size]
        if not find_scores(problem, w, i, theta):
            return i
        max_marginals(problem, i, theta, out, scratch.work)
    return NONE


@loop
def find_marginals(problem, w, means, log_partition, lo, hi, scratch):
    """Write marginals and log-partition functions."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        theta = scratch.theta[: mu.size]
        if not find_scores(problem, w, i, theta):
            return i
        log_partition[i] = exp_oracle(problem, i, theta, mu, scratch.work)
    return NONE


@loop
def decode_expected(problem, w, n_parts, outputs, lo, hi, scratch):
    """Write the output with the most parts that others share with it, on average, of those that are possible."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        mu = scratch.delta[: n_parts[i]]
        if not find_scores(problem, w, i, theta):
            return i
        exp_oracle(problem, i, theta, mu, scratch.work)
        scores(problem, w, i, theta)  # some oracles change them
        for k in range(theta.size):
            theta[k] = mu[k] if theta[k] > IMPOSSIBLE / 2 else IMPOSSIBLE
        max_oracle(problem, i, theta, outputs.values[outputs.starts[i] : outputs.starts[i + 1]], scratch.work)
    return NONE


@loop
def find_transitions(problem, w, n_parts, pairs, found, lo, hi, scratch):
    """Write probabilities of transitions."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not find_scores(problem, w, i, theta):
            return i
        transition_marginals(
            problem, i, theta, pairs, found.values[found.starts[i] : found.starts[i + 1]], scratch.work
        )
    return NONE


@loop
def draw_samples(problem, w, n_parts, sizes, n_samples, draws, outputs, lo, hi, scratch):
    """Write outputs that are drawn by given numbers."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not find_scores(problem, w, i, theta):
            return i
        rows = matrix(outputs.values, outputs.starts[i], n_samples, sizes[i])
        sample_oracle(problem, i, theta, matrix(draws, outputs.starts[i], n_samples, sizes[i]), rows, scratch.work)
    return NONE


@loop
def find_costs(problem, n_parts, outputs, values, lo, hi, scratch):
    """Write what outputs cost."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        clear(theta)
        augment(problem, i, theta)
        values[i] = score_output(problem, i, theta, outputs.values[outputs.starts[i] : outputs.starts[i + 1]])


@loop
def score_true_outputs(problem, w, n_parts, values, lo, hi, scratch):
    """Write the scores of the true outputs."""
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        if not find_scores(problem, w, i, theta):
            return i
        values[i] = score_output(problem, i, theta, true_output(problem, i))
    return NONE
