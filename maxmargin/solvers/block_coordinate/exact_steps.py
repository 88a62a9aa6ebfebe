"""Steps that solve the whole subproblem of one block of the dual, where a structure can (Crammer, Singer 2001).

The dual point moves on example i by delta with <theta, delta> - (curvature / 2) ||B_i delta||^2 as large as it can be.
One look at the features then does what many steps of Frank-Wolfe would.
"""

from __future__ import annotations

from maxmargin.arrays.vectors import inner, move_by
from maxmargin.execution.meeting import note_step
from maxmargin.problem import accumulate, augment, block_oracle, n_examples, score_output, scores, spread, true_output
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.block_coordinate.block_steps import CALLS, look_ahead
from maxmargin.solvers.block_coordinate.sum_tree import change, draw_ahead, last_drawn
from maxmargin.solvers.objective.bounds import confine, release

SMALL_GAP = 0.03  # of the mean gap: examples below are passed over until it has fallen
LEAST = 1e-7  # of a slope, relative to the scores: less is rounding


@helper
def take_exact_steps(problem, point, rule, visits, begin, budget, sigma, scratch):
    """A step on each example of `visits`, as `take_steps` of `maxmargin.solvers.block_coordinate.block_steps`."""
    w, bounds, means, tree, lag = point.w, point.bounds, point.means, point.tree, point.lag
    order = visits.order
    n = n_examples(problem)
    scale = sigma / (rule.regularization * n)
    n_parts = 0
    for k in range(begin, visits.end):
        if n_parts >= budget:
            return k, True
        if visits.turns.order.size > 0:
            for ahead in range(k, last_drawn(order, k, visits.n_drawn) + 1):
                if order[ahead] < 0:
                    order[ahead] = next_in_turn(point, visits)
        else:
            draw_ahead(tree, order, visits.draws, k, point.first, visits.n_drawn)
        look_ahead(point, rule, order, k)
        i = order[k]
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        n_parts += mu.size
        theta = scratch.theta[: mu.size]
        delta = scratch.delta[: mu.size]
        scores(problem, w, i, theta)
        augment(problem, i, theta)
        mean = score_output(problem, i, theta, true_output(problem, i)) + inner(theta, mu)
        best = block_oracle(problem, i, theta, rule.weight[i] * scale, mu, delta, scratch.work)
        point.counts[CALLS] += 1
        change(tree, i - point.first, rule.weight[i] / n * max(best - mean, 0.0))
        if best - mean <= LEAST * abs(best):
            continue
        point.gain[0] += rule.weight[i] / n * inner(theta, delta) / 2  # or more: it is the best that delta can do
        release(w, bounds)
        spread(problem, w, i, delta, -rule.weight[i] * scale)
        note_step(point.log, i, delta, -rule.weight[i] * scale)
        confine(w, bounds)
        if lag.size > 0:
            j = visits.n_before + k + 1.0
            accumulate(problem, lag, i, delta, -rule.weight[i] * scale * j * (j - 1) / 2)
        move_by(mu, delta, 1.0)
    return visits.end, True


@helper
def next_in_turn(point, visits):
    """The next example whose gap is not small beside the mean one.

    One that was solved exactly is best left alone until others have moved the weights.
    """
    order, place = visits.turns.order, visits.turns.place
    leaves = point.tree.size // 2 - point.first
    least = SMALL_GAP * point.tree[1] / visits.n_drawn
    for _ in range(order.size):
        place[0] = (place[0] + 1) % order.size
        if point.tree[leaves + order[place[0]]] >= least:
            break
    return order[place[0]]


exact_steps = loop(take_exact_steps)
