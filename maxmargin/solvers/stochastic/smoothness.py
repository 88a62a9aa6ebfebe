"""How fast losses bend: step sizes without tuning.

For a loss f_i with gradient g_i = B_i delta_i at w, the potentials of the step w - g_i / L are theta_i - (1/L) B_i' B_i
delta_i: one product with the features serves all L. No loss is negative, so L is at least ||g_i||^2 / (2 f_i), and the
search for the first L that makes f_i fall by ||g_i||^2 / (2 L) begins there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import copy_into, inner
from maxmargin.losses import add_costs, attain, combine, potentials
from maxmargin.problem import add_output, scores, spread, true_output
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.evaluation import Objective

SAMPLE = 100  # examples to look at, or a fiftieth of all if that is more


class Look(NamedTuple):
    """What was found on a sample of the examples, sample weights included."""

    smoothness: float  # the mean of the L_i for which steps of 1/L_i make each loss fall as they should
    squared_norm: float  # the mean of ||g_i||^2
    loss: float  # the mean of f_i


def look_at_some(run: Run, objective: Objective, w: np.ndarray, searches: bool = False) -> Look:
    """Look at the losses of some examples at w, and search for their smoothness, if it is wanted."""
    runner = objective.runner
    counting = np.flatnonzero(objective.weight) if objective.weight.any() else np.arange(objective.n)
    order = run.rng.permutation(counting)[: max(SAMPLE, objective.n // 50)]
    found = np.zeros((len(order), 3))
    room = np.zeros((3, int(runner.part_sizes.max())), runner.dtype)
    searches &= not objective.bounds.which.size  # steps may leave the bounds, where oracles need not work
    loss, at, probe = objective.attained, w.astype(runner.dtype), np.zeros(w.size, runner.dtype)
    done = 0
    for lo, hi in run.slices(len(order), bend):
        calls = bend(
            objective.problem,
            loss,
            at,
            probe,
            order[lo:hi],
            runner.part_sizes,
            searches,
            room,
            found[lo:hi],
            runner.scratches[0],
        )
        run.count(calls=calls)
        done = hi
    order, found = order[: max(done, 1)], found[: max(done, 1)]
    weight = objective.weight[order]
    smoothness, squared_norm, value = found.T
    # Where many outputs tie, top-K smoothing has jumps, and no L is large enough. An exactly smoothed maximum bends by
    # at most the largest ||B_i (s(y) - s(y'))||^2 / level.
    most = squared_norm / (objective.loss.level if objective.loss.is_smooth else 1.0)
    return Look(
        smoothness=float(np.mean(weight * (np.minimum(smoothness, most) if searches else most))),
        squared_norm=float(np.mean(weight**2 * squared_norm)),
        loss=float(np.mean(weight * value)),
    )


@loop
def bend(problem, loss, w, probe, order, sizes, searches, room, found, scratch):
    """Fill in L, ||g||^2 and the loss of the examples of `order`; return the number of oracle calls.

    `probe`, as long as the weights, holds zeros, before and after. Without `searches`, L is only a lower bound.
    """
    calls = 0
    for k in range(order.size):
        i = order[k]
        theta = scratch.theta[: sizes[i]]
        means = scratch.delta[: sizes[i]]
        at = room[0, : sizes[i]]
        along = room[1, : sizes[i]]
        delta = room[2, : sizes[i]]
        true_score = potentials(problem, loss, w, i, theta)
        value = attain(loss, problem, i, theta, means, scratch)[0] - true_score
        calls += 1
        add_output(problem, i, true_output(problem, i), -1.0, means)
        copy_into(delta, means)
        scores(problem, w, i, at)
        spread(problem, probe, i, delta, 1.0)
        scores(problem, probe, i, along)
        spread(problem, probe, i, delta, -1.0)
        squared_norm = inner(along, delta)
        bound = squared_norm / (2 * max(value, 1e-12))
        is_smooth = squared_norm <= 1e-12 or not searches
        while not is_smooth and bound < 1e12:
            copy_into(theta, at)
            combine(theta, 1.0, along, -1 / bound)
            true_score = add_costs(problem, loss, i, theta)
            after = attain(loss, problem, i, theta, means, scratch)[0] - true_score
            calls += 1
            is_smooth = after <= value - squared_norm / (2 * bound) + 1e-6 * (1 + abs(true_score))
            bound *= 1 if is_smooth else 2
        found[k, 0] = bound
        found[k, 1] = squared_norm
        found[k, 2] = value
    return calls
