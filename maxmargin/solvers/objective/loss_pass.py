"""The loops behind `evaluation`: passes over examples that sum up losses, gradients and weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.lanes import LANES, fetch, highest, splat, times, upper, where_below
from maxmargin.arrays.vectors import clear, copy_into, inner
from maxmargin.arrays.views import matrix
from maxmargin.losses import attain, potentials
from maxmargin.persist.registry import register_state
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.objective.active_sets import best_stored, read_means

FINE = 1e-10  # a rounding for which a rough bound, by one of the two outputs, is good enough

# The columns of what `loss_pass` writes for each example.
LOSS, HARD_LOSS, COST, ENTROPY, SIZE, N_FACTORS, GAP, SLACK, IS_WRONG, IS_BEYOND_REACH = range(10)
N_COLUMNS = 10


class Examples(NamedTuple):
    """What an objective knows of its examples."""

    sizes: np.ndarray  # (n,) of their parts
    weight: np.ndarray  # (n,)


class Rounding(NamedTuple):
    """What the rounding of losses is relative to, besides the sizes of scores."""

    eps: float  # of potentials
    unit: float  # the level of smoothing, for each factor of an exponential
    is_mixed: bool  # whether mean parts are rounded: costs then make up for it, so that dual points are exact


def rounding_of(dtype: np.dtype, level: float | None) -> Rounding:
    """That of a loss smoothed by an entropy of this level, or None where outputs are mixed in another way."""
    eps = float(np.finfo(dtype).eps)
    return Rounding(eps, level or 0.0 if eps > FINE else 0.0, level is None)


class Found(NamedTuple):
    """What a pass over all examples fills in; blocks have no values where they are not asked for."""

    values: np.ndarray  # (n, N_COLUMNS)
    means: Blocks  # where the losses are attained, less those of the true outputs
    outputs: Blocks  # of a max oracle


class LossSums(NamedTuple):
    """What the examples of a pass add up to."""

    averages: np.ndarray  # of the columns that are losses and their terms, by the weights of the examples
    gradient: np.ndarray  # empty if it was not asked for
    norm_of_rounding: float  # by weights; rounding errors of one example know nothing of those of another
    norm_of_sizes: float
    weight: float  # of all examples
    gaps: np.ndarray
    n_inexact: int
    n_wrong: int
    n_beyond_reach: int


@register_state
class Evaluation(NamedTuple):
    """An objective at some weights, by one pass of its oracle; averages over the examples."""

    value: float  # F(w), rounded up; infinite where potentials are beyond reach
    hard: float  # F(w) with the hinge loss, or `value` where the oracle does not tell the true maximum
    gradient: np.ndarray  # of all but the regularization, in float64; empty if it was not asked for
    cost: float  # of the mean parts where the loss is attained
    entropy: float  # rounded down
    rounding: float  # by how much potentials, sums and exponentials that are rounded may change F(w)
    size: float  # of the scores: the sums of the magnitudes of their terms
    slack: float  # by how much the value is above what the oracle's outputs attain, where it is only an upper bound
    gaps: np.ndarray  # (n,) by how much losses, less their slack, exceed their values at a given dual point
    n_wrong: int  # oracle outputs worse than the true ones, or than stored ones
    n_inexact: int  # examples of which that is so


def sum_up(values: np.ndarray, weight: np.ndarray, unit: float, gradient: np.ndarray) -> LossSums:
    """What a pass that wrote these values adds up to; `unit` is that of `Rounding`."""
    n = len(weight)
    averages = weight @ values[:, :IS_WRONG] / n
    n_inexact, n_wrong, n_beyond_reach = np.count_nonzero(values[:, SLACK:], axis=0).tolist()
    if n_beyond_reach:
        averages[:] = np.inf
    sizes = values[:, SIZE]
    norm_of_rounding, norm_of_sizes = (
        float(np.linalg.norm(weight * size)) for size in (sizes + unit * values[:, N_FACTORS], sizes)
    )
    return LossSums(
        averages,
        gradient,
        norm_of_rounding,
        norm_of_sizes,
        float(weight.sum()),
        weight * values[:, GAP] / n,
        n_inexact,
        n_wrong,
        n_beyond_reach,
    )


@loop
def assemble(problem, w, examples, point, regularization, costs, lo, hi, scratch):
    """W += 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - mu_i) over lo:hi; costs[i] = weight_i <cost_i, mu_i>."""
    scale = 1.0 / (regularization * generics.n_examples(problem))
    for i in range(lo, hi):
        theta = scratch.theta[: examples.sizes[i]]
        mu = scratch.delta[: examples.sizes[i]]
        read_means(problem, i, point, mu)
        clear(theta)
        generics.augment(problem, i, theta)
        cost = generics.score_output(problem, i, theta, generics.true_output(problem, i)) + inner(theta, mu)
        costs[i] = examples.weight[i] * cost
        generics.accumulate(problem, w, i, mu, -examples.weight[i] * scale)


@helper
def is_below(best, rival):
    """Whether an output is worse than another one, beyond rounding: the oracle is wrong."""
    return best < rival - 1e-5 * (1 + abs(rival))


def _largest_potential(theta: np.ndarray) -> float:
    sizes = np.abs(theta)
    return sizes.max(where=sizes < -IMPOSSIBLE / 2, initial=0.0)


@helper(interpreted=_largest_potential)
def largest_potential(theta):
    """The magnitude of the largest potential of a possible part."""
    most = -IMPOSSIBLE / 2
    if theta.size < LANES:
        largest = 0.0
        for p in range(theta.size):
            if abs(theta[p]) < most:
                largest = max(largest, abs(theta[p]))
        return largest
    row = matrix(theta, 0, 1, theta.size)
    nothing = sizes = splat(theta.dtype.type(0))
    for p in range(0, theta.size, LANES):
        x = fetch(row, 0, min(p, theta.size - LANES))
        size = upper(x, times(-1, x))
        sizes = upper(sizes, where_below(size, most, size, nothing))
    return np.float64(highest(sizes))


def _size_of_score(theta: np.ndarray, mu: np.ndarray, largest: float) -> float:
    which = np.flatnonzero(mu != 0)  # often few
    sizes = np.abs(mu[which])
    size = inner(np.abs(theta[which]), sizes)
    return min(size, largest * float(sizes.sum(dtype=np.float64))) if size > 0 else 0.0


@helper(interpreted=_size_of_score)
def size_of_score(theta, mu, largest):
    """The sum of the magnitudes of a score's terms, given that of the largest potential: what rounding is relative to.

    Some oracles leave potentials larger than they were.
    """
    size = 0.0
    n_parts = 0.0
    for p in range(theta.size):
        size += abs(theta[p] * mu[p])
        n_parts += abs(mu[p])
    return min(size, largest * n_parts) if size > 0 else 0.0  # the largest may be infinite


def _size_of_mixture(mu: np.ndarray) -> float:
    return float(np.abs(mu).sum(dtype=np.float64))


@helper(interpreted=_size_of_mixture)
def size_of_mixture(mu):
    """The number of parts of an output, or their mean."""
    total = 0.0
    for p in range(mu.size):
        total += abs(mu[p])
    return total


@loop
def loss_pass(problem, gradient, w, loss, examples, point, rounding, found, lo, hi, scratch):
    """Evaluate the losses of the examples lo:hi and fill in what is found; add their gradient, unless it is empty.

    The gradient is (1/n) sum_i weight_i B_i (mu_i - s_i(y_i)). An output that is worse than the true one, or one that
    the dual point stores, is replaced by it. What the rounding of a loss is relative to, in parts of eps, is the size
    of its two scores: that of the true output once, for the rounding of its potentials, that of the other output twice,
    once more for the sums of the oracle that chose it (`chain_dp`). Exponentials add `unit` for each of their factors,
    one for each part.
    """
    n = generics.n_examples(problem)
    values, means, outputs = found.values, found.means, found.outputs
    known, stored = point.means, point.sets
    for i in range(lo, hi):
        theta = scratch.theta[: examples.sizes[i]]
        delta = scratch.delta[: examples.sizes[i]]
        y_true = generics.true_output(problem, i)
        true_score = potentials(problem, loss, w, i, theta)
        values[i, IS_BEYOND_REACH] = generics.is_beyond_reach(theta)
        least = own = generics.score_output(problem, i, theta, y_true)  # which may cost something where labels are soft
        rival = y_true
        if point.means.values.size > 0:
            values[i, GAP] = -least - inner(
                theta, point.means.values[point.means.starts[i] : point.means.starts[i + 1]]
            )
        if stored.sizes.size > 0:
            slot, score, mean = best_stored(problem, i, theta, stored)
            if known.values.size == 0:
                values[i, GAP] = -mean
            if score > least:
                least = score
                rival = matrix(stored.outputs, stored.output_at[i], stored.capacity[i], stored.sizes[i])[slot]
        largest = np.inf
        size = 0.0
        if rounding.eps > FINE:
            largest = largest_potential(theta)
            clear(delta)
            generics.add_output(problem, i, y_true, 1.0, delta)
            size = largest + size_of_score(theta, delta, largest)
        h, top, mean, slack = attain(loss, problem, i, theta, delta, scratch)
        is_worse = is_below(min(top, h - slack), least)
        values[i, IS_WRONG] = is_below(top, least)
        h = max(h, least)
        slack = h - max(h - slack, least)
        if is_worse:
            mean = h
            clear(delta)
            generics.add_output(problem, i, rival, 1.0, delta)
        if outputs.values.size > 0:
            y = outputs.values[outputs.starts[i] : outputs.starts[i + 1]]
            copy_into(y, rival if is_worse else scratch.y[: y.size])
        values[i, LOSS] = h - true_score
        values[i, HARD_LOSS] = max(top, least) - true_score
        values[i, ENTROPY] = h - mean
        values[i, SIZE] = size + (2 if rounding.eps > FINE else 3) * size_of_score(theta, delta, largest)
        if rounding.unit > 0:
            values[i, N_FACTORS] = size_of_mixture(delta)
        values[i, GAP] += h - slack
        values[i, SLACK] = slack
        generics.add_output(problem, i, y_true, -1.0, delta)
        if gradient.size > 0 and rounding.is_mixed:
            values[i, COST] = mean - slack - own - inner(theta, delta)
        if gradient.size > 0 and loss.margin:
            clear(theta)
            generics.augment(problem, i, theta)
            values[i, COST] += generics.score_output(problem, i, theta, y_true) + inner(theta, delta)
        if means.values.size > 0:
            copy_into(means.values[means.starts[i] : means.starts[i + 1]], delta)
        if gradient.size > 0:
            generics.accumulate(problem, gradient, i, delta, examples.weight[i] / n)
