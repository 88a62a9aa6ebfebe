"""One step of exponentiated gradient on one block of the dual.

Block i is a Gibbs distribution alpha_i ~ exp(<theta_i, s(y)>), kept as its potentials theta_i and, where there is room,
its mean parts mu_i: to find them again takes an eighth of the time of a step on text, a quarter where features are few.
At the level of entropy (1 for the log loss, zero for the hinge loss), the slope of the dual in alpha_i has the
potentials g = B_i'w + cost_i - level theta_i, so that a step is

    theta' = theta_i + eta g,   mu' = exp_oracle(theta'),   delta = mu' - mu_i,   w -= weight_i / (lambda n) B_i delta.

The dual rises by weight_i / n times

    a - level KL(alpha' || alpha_i) - q / 2,    a = <g, delta>,    q = weight_i / (lambda n) ||B_i delta||^2,

where KL is about eta a / 2: steps with q > (2 - level eta) a are taken back, unless that may be rounding: close to a
single output nothing moves but the potentials, at first. For small steps a and q / eta are proportional to eta, and
eta = a / (level a + q / eta) is the best: that of the next step on the block. What it tells of the block's gap is level
KL, which is about a / (2 level eta), or at least a where the level is zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.prefetch import prefetch, prefetch_example, prefetch_range, prefetch_row
from maxmargin.arrays.vectors import add_scaled, clear, copy_into, inner
from maxmargin.execution.meeting import GOING, SIGMA, THROUGH, Log, end_round, note_step
from maxmargin.losses import combine, potentials
from maxmargin.persist.registry import register_state
from maxmargin.problem import accumulate, add_output, augment, exp_oracle, n_examples, spread, squared_norm, true_output
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.block_coordinate.sum_tree import change, draw_ahead
from maxmargin.solvers.objective.loss_pass import size_of_score

MOST_TRIALS = 30  # of a step: shorter ones are lost in rounding
LONGEST, SHORTEST = 2.0, 0.1  # times the last one
FARTHEST = 100.0  # in exponents: further steps change nothing any more, until they are in the way


@register_state
class GibbsPoint(NamedTuple):
    """A dual point of Gibbs distributions, its weights, and what past steps on its blocks tell of the next."""

    potentials: Blocks
    means: Blocks  # of no size, if they are not kept
    w: np.ndarray
    etas: np.ndarray  # (n,) the lengths of the next steps
    tree: np.ndarray  # of what the last steps tell of the block gaps


@register_state
class GibbsRule(NamedTuple):
    """What is minimised."""

    level: float  # the level of entropy
    weight: np.ndarray  # (n,) sample weights
    regularization: float


class GibbsVisits(NamedTuple):
    """The examples to take steps on, and what is known of the steps."""

    order: np.ndarray  # or negative, where one is to be drawn by what is known of its gap
    draws: np.ndarray  # numbers from 0 to 1, for these
    end: int  # the place in the order to stop at
    first: int  # the example of the tree's first leaf
    n_drawn: int  # examples to draw from
    lines: np.ndarray  # of what steps read of each example; empty if that is not known
    room: np.ndarray  # three rows for the parts of an example
    gain: np.ndarray  # (1,) of the dual
    log: Log


@loop
def place(problem, point, loss, scale, pull, lo, hi, scratch):
    """theta_i = scale (B_i'w + cost_i) + pull s_i(y_i) for the examples lo:hi, with its mean parts.

    Parts that the true output has several times are pulled once: else others that have them more often would win.
    """
    for i in range(lo, hi):
        theta = point.potentials.values[point.potentials.starts[i] : point.potentials.starts[i + 1]]
        means = point.means.values[point.means.starts[i] : point.means.starts[i + 1]]
        potentials(problem, loss, point.w, i, theta)
        combine(theta, scale, theta, 0.0)
        add_output(problem, i, true_output(problem, i), pull, theta)
        if pull > 0:
            for p in range(theta.size):
                theta[p] = min(theta[p], theta.dtype.type(pull))
        if means.size:
            given = scratch.theta[: theta.size]
            copy_into(given, theta)
            exp_oracle(problem, i, given, means, scratch.work)


@helper
def epsilon(array):
    """The distance from 1 to the next number of an array's dtype: ``np.finfo`` takes long to compile, and to load."""
    return 2.0**-23 if array.itemsize == 4 else 2.0**-52


@loop
def assemble_gibbs(problem, w, given, weight, regularization, costs, entropies, lo, hi, scratch):
    """As `assemble`, of the distributions of given potentials, and their entropies."""
    scale = 1.0 / (regularization * n_examples(problem))
    for i in range(lo, hi):
        theta = scratch.theta[: given.starts[i + 1] - given.starts[i]]
        mu = scratch.delta[: theta.size]
        copy_into(theta, given.values[given.starts[i] : given.starts[i + 1]])
        entropies[i] = exp_oracle(problem, i, theta, mu, scratch.work)
        copy_into(theta, given.values[given.starts[i] : given.starts[i + 1]])
        rounding = epsilon(theta) * size_of_score(theta, mu, np.inf)
        entropies[i] = max(entropies[i] - inner(theta, mu) - rounding, 0.0)
        clear(theta)
        augment(problem, i, theta)
        costs[i] = weight[i] * inner(theta, mu)
        add_output(problem, i, true_output(problem, i), -1.0, mu)
        accumulate(problem, w, i, mu, -weight[i] * scale)


@helper
def look_ahead(point, order, k, lines, weight):
    """Ask for the memory of the next example, and for where that of the one after it is."""
    if k + 2 < order.size and order[k + 2] >= 0:
        i = order[k + 2]
        prefetch_row(lines, i)
        prefetch(point.potentials.starts, i)
        prefetch(point.means.starts, i)
        prefetch(point.etas, i)
        prefetch(weight, i)
    if k + 1 < order.size and order[k + 1] >= 0:
        i = order[k + 1]
        prefetch_example(lines, i)
        prefetch_range(point.potentials.values, point.potentials.starts[i], point.potentials.starts[i + 1])
        prefetch_range(point.means.values, point.means.starts[i], point.means.starts[i + 1])


@helper
def take_gibbs_steps(problem, loss, point, rule, visits, begin, budget, sigma, scratch):
    """A step on each example of `visits` from the place `begin` on, until `budget` parts were looked at.

    The change of w counts sigma times (`maxmargin.execution.step_rounds`). Returns the place after the last step, and
    the number of calls of the oracle.
    """
    n = n_examples(problem)
    level = rule.level
    w = point.w
    order, room = visits.order, visits.room
    calls = 0
    n_parts = 0
    for k in range(begin, visits.end):
        if n_parts >= budget:
            return k, calls
        draw_ahead(point.tree, order, visits.draws, k, visits.first, visits.n_drawn)
        i = order[k]
        look_ahead(point, order, k, visits.lines, rule.weight)
        at = point.potentials.values[point.potentials.starts[i] : point.potentials.starts[i + 1]]
        means = point.means.values[point.means.starts[i] : point.means.starts[i + 1]]
        n_parts += at.size
        theta = scratch.theta[: at.size]
        mu = scratch.delta[: at.size]
        slope = room[0, : at.size]
        delta = room[1, : at.size]
        before = room[2, : at.size]
        scale = sigma * rule.weight[i] / (rule.regularization * n)
        if means.size:
            copy_into(before, means)
        else:
            copy_into(theta, at)
            exp_oracle(problem, i, theta, before, scratch.work)
            calls += 1
        potentials(problem, loss, w, i, slope)
        eta = point.etas[i]
        gap = 0.0
        for _ in range(MOST_TRIALS):
            copy_into(theta, at)
            combine(theta, 1 - eta * level, slope, eta)
            exp_oracle(problem, i, theta, mu, scratch.work)
            calls += 1
            copy_into(delta, mu)
            add_scaled(delta, before, -1.0)
            a = inner(slope, delta) - level * inner(at, delta)
            q = scale * squared_norm(problem, i, delta, scratch.work)
            bend = level * a + q / eta
            gap = a / (2 * level * eta) if level > 0 else a
            size = 1 + size_of_score(slope, mu, np.inf)
            rounding = epsilon(theta) * size
            best = LONGEST * eta
            if bend > 0 and a > rounding:
                best = min(max(a / bend, SHORTEST * eta), best)
            if q <= (2 - level * eta) * a + rounding:
                combine(at, 1 - eta * level, slope, eta)
                spread(problem, w, i, delta, -scale)
                note_step(visits.log, i, delta, -scale)
                visits.gain[0] += rule.weight[i] / n * ((1 - level * eta / 2) * a - q / 2)
                if means.size:
                    copy_into(means, mu)
                eta = min(best, 1 / level if level > 0 else FARTHEST / size)
                break
            eta = min(eta / 2, best)
        point.etas[i] = eta
        change(point.tree, i - visits.first, rule.weight[i] / n * max(gap, 0.0))
    return visits.end, calls


exponentiated_steps = loop(take_gibbs_steps)


@loop
def exponentiated_rounds(problem, loss, point, rule, visits, seat, begin, scratch):
    """Rounds of `take_gibbs_steps` on one of several ranges."""
    calls = 0
    for _ in range(seat.most):
        sigma = seat.meeting.pace[seat.k, SIGMA]
        begin, more = take_gibbs_steps(problem, loss, point, rule, visits, begin, seat.budget, sigma, scratch)
        calls += more
        if not end_round(problem, seat, GOING if begin < visits.order.size else THROUGH):
            break
    return begin, calls
