"""Momentum of a dual point: the weights of active outputs go on in the direction in which they have moved of late.

Alpha_i' are the weights that example i had some passes ago, of those outputs alone that are still active, scaled to add
up to one. Its direction is d_i = b_i (alpha_i - alpha_i'), where b_i <= 1 is as far as no weight becomes negative.
Along alpha + s d, where the model's weights are w + s u, the dual is the parabola

    D(s) = D(0) + s (1/n) sum_i weight_i <cost_i, B d_i> - lambda (s <w, u> + s^2 ||u||^2 / 2)

whose highest point up to s = 1 is taken: the dual never falls.
"""

from __future__ import annotations

import numpy as np

from maxmargin.arrays.vectors import clear, inner
from maxmargin.arrays.views import matrix
from maxmargin.problem import accumulate, add_output, augment, n_examples
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.active_sets import ActiveSets


@helper
def set_ways(sets, i):
    """Put d_i in the place of the earlier weights; return whether it goes anywhere."""
    first = sets.slot_at[i]
    after = first + sets.stored_count[i]
    total = 0.0
    for slot in range(first, after):
        if sets.alpha[slot] > 0:
            total += sets.earlier[slot]
    farthest = 1.0 if total > 0 else 0.0
    moves = False
    for slot in range(first, after):
        alpha = sets.alpha[slot]
        way = alpha - sets.earlier[slot] / total if alpha > 0 and total > 0 else 0.0
        moves = moves or way != 0
        if way < 0:
            farthest = min(farthest, -alpha / way)
        sets.earlier[slot] = way
    for slot in range(first, after):
        sets.earlier[slot] *= farthest
    return moves


@loop
def find_directions(problem, u, sets, examples, regularization, costs, lo, hi, scratch):
    """Find d of the examples lo:hi; u += what it does to the weights, costs[i] = weight_i <cost_i, B d_i>."""
    scale = 1.0 / (regularization * n_examples(problem))
    for i in range(lo, hi):
        costs[i] = 0.0
        if set_ways(sets, i):
            theta = scratch.theta[: examples.sizes[i]]
            delta = scratch.delta[: examples.sizes[i]]
            kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])
            clear(delta)
            for k in range(sets.stored_count[i]):
                way = sets.earlier[sets.slot_at[i] + k]
                if way != 0:
                    add_output(problem, i, kept[k], way, delta)
            clear(theta)
            augment(problem, i, theta)
            costs[i] = examples.weight[i] * inner(theta, delta)
            accumulate(problem, u, i, delta, -examples.weight[i] * scale)


@loop
def move_along(problem, sets, s, lo, hi, scratch):
    """Alpha += s d, for the examples lo:hi; the weights are the earlier ones from now on."""
    for i in range(lo, hi):
        for slot in range(sets.slot_at[i], sets.slot_at[i] + sets.stored_count[i]):
            sets.alpha[slot] = max(sets.alpha[slot] + s * sets.earlier[slot], 0.0)
            sets.earlier[slot] = sets.alpha[slot]


def go_on(run: Run, sets: ActiveSets) -> None:
    """Go on along d, as far as the dual rises."""
    objective, costs = run.objective, np.zeros(run.objective.n)
    runner, layout, strength = objective.runner, objective.layout, objective.regularization
    u = runner.accumulate(find_directions, sets, objective.examples, strength, costs)
    rise = float(costs.sum()) / objective.n - strength * layout.inner(run.w, u)
    bend = strength * layout.squared_length(u)
    s = min(max(rise / bend, 0.0), 1.0) if bend > 0 else 0.0
    runner.run(move_along, sets, s)
    run.w += (s * u).astype(run.w.dtype)
