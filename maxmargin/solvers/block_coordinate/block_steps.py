"""One step on one block of the dual, in all variants of *Gaps* (Algorithms 1 to 5 and 9): one source for all of them.

A step on example i takes an output y (by the max oracle, or from the cache if that promises enough progress), and moves
the block's point towards it. With potentials theta = B_i' w + cost_i and mean score m = <theta, mu_i>,

    FW        d = s(y) - mu_i        slope score(y) - m           at most 1
    pairwise  d = s(y) - s(a)        slope score(y) - score(a)    at most alpha(a)
    away      d = mu_i - s(a)        slope m - score(a)           at most alpha(a) / (1 - alpha(a))

where a is the active output of the lowest score. The dual rises by gamma * slope - gamma^2 curvature / 2 (times a
constant), so gamma = slope / curvature within the limit; a step is taken only if the slope is positive. In terms of the
paper, slope = n g_i and w_d = -B_i d / (lambda n).

A known block gap is that of the last oracle call or, beyond the paper, what an output from the cache promised since, if
that is more: the gap has grown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.prefetch import prefetch, prefetch_example, prefetch_range, prefetch_row
from maxmargin.arrays.vectors import add_scaled, clear, copy_into, inner, move_by
from maxmargin.arrays.views import matrix
from maxmargin.execution.meeting import Log, note_step
from maxmargin.persist.registry import register_state
from maxmargin.problem import (
    accumulate,
    add_output,
    augment,
    max_oracle,
    n_examples,
    score_output,
    scores,
    spread,
    squared_norm,
    true_output,
)
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.block_coordinate.sum_tree import change, draw_ahead
from maxmargin.solvers.objective.active_sets import (
    ActiveSets,
    has_room,
    prefetch_places,
    prefetch_stored,
    remove,
    store,
)
from maxmargin.solvers.objective.bounds import Bounds, confine, release
from maxmargin.solvers.objective.loss_pass import is_below

FW, PAIRWISE, AWAY, EXACT, BEST = range(5)

NEGLIGIBLE = 1e-12  # the weight below which active outputs are dropped

CALLS, HITS, WRONG = 0, 1, 2


class BlockPoint(NamedTuple):
    """What steps change."""

    w: np.ndarray
    bounds: Bounds
    means: Blocks
    sets: ActiveSets
    tree: np.ndarray  # of the block gaps, of the examples from `first` on
    first: int
    lag: np.ndarray  # of the average of the iterates; empty if none is wanted
    counts: np.ndarray  # of calls of the oracle, cache hits and wrong outputs
    gain: np.ndarray  # (1,) of the dual, by all steps
    log: Log  # of the steps
    lines: np.ndarray  # of what steps read of each example; empty if that is not known


class Turns(NamedTuple):
    """Examples in the order in which they take turns, again and again, but for those whose gap is small just then."""

    order: np.ndarray  # empty if they are drawn
    place: np.ndarray  # (1,) of the last one whose turn it was


NO_TURNS = Turns(np.zeros(0, np.int64), np.zeros(1, np.int64))


class Visits(NamedTuple):
    """The examples to take steps on."""

    order: np.ndarray  # or -1, where one is to be chosen by its gap
    draws: np.ndarray  # numbers from 0 to 1, for these
    end: int  # the place in the order to stop at
    n_drawn: int  # examples to draw from
    n_before: int  # steps
    global_gap: float  # as last known, of all examples
    turns: Turns  # of exact steps


@register_state
class BlockRule(NamedTuple):
    """What kind of steps to take."""

    kind: int  # FW, PAIRWISE, AWAY, EXACT or BEST of the first three
    keeps_means: bool  # whether the dual point is kept as mean parts, with FW and exact steps, in place of active sets
    stores: bool  # whether outputs are stored, as active sets or for the cache
    cache_limit: int  # how many outputs of an example to keep for the cache; 0 for no cache
    cache_factor: float  # F and nu of the rule of cache hits
    cache_nu: float
    calls_oracle: bool  # False to stay among the stored outputs
    weight: np.ndarray  # (n,) sample weights
    regularization: float


ALL = 2**62  # parts


@helper
def take_steps(problem, point, rule, visits, begin, budget, sigma, scratch):
    """A step on each example of `visits` from the place `begin` on, until `budget` parts were looked at.

    The change of w counts sigma times (`maxmargin.execution.step_rounds`).

    Keeps w = w(means), the active sets and the block gaps up to date. Returns the place after the last step, and
    whether the active sets have room: if they have none, they need a larger arena for the next step.

    The lag, if not empty, collects sum_j j (j - 1)/2 (w_j - w_{j - 1}) over the steps j, from which the average of the
    iterates by their number is 2/(k (k + 1)) sum_j j w_j = w_k - 2/(k (k + 1)) lag: as sparse to update as w itself.
    """
    w, bounds, means, sets = point.w, point.bounds, point.means, point.sets
    tree, lag, counts, order = point.tree, point.lag, point.counts, visits.order
    n = n_examples(problem)
    scale = sigma / (rule.regularization * n)
    leaves = tree.size // 2 - point.first
    n_parts = 0
    for k in range(begin, visits.end):
        if n_parts >= budget:
            return k, True
        draw_ahead(tree, order, visits.draws, k, point.first, visits.n_drawn)
        i = order[k]
        if rule.stores and not has_room(sets, i):
            return k, False
        look_ahead(point, rule, order, k)
        first = sets.slot_at[i] if rule.stores else 0
        size = means.starts[i + 1] - means.starts[i]
        n_parts += size
        mu = means.values[means.starts[i] : means.starts[i + 1]] if rule.keeps_means else means.values
        theta = scratch.theta[:size]
        delta = scratch.delta[:size]
        y = scratch.y[: true_output(problem, i).size]
        scores(problem, w, i, theta)
        augment(problem, i, theta)
        true_score = score_output(problem, i, theta, true_output(problem, i))
        mean = 0.0
        slot = -1
        away = -1
        if rule.stores:
            mean, slot, away = score_stored(problem, i, theta, sets)
        if rule.keeps_means:
            mean = true_score + inner(theta, mu)

        promise = rule.weight[i] / n * (sets.score[first + slot] - mean) if rule.cache_limit > 0 else 0.0
        least = max(rule.cache_factor * tree[leaves + i], rule.cache_nu / n * visits.global_gap)
        if not rule.calls_oracle:
            change(tree, i - point.first, max(promise, 0.0))
        elif promise > 0 and promise >= least:
            counts[HITS] += 1
            change(tree, i - point.first, max(promise, tree[leaves + i]))
        else:
            max_oracle(problem, i, theta, y, scratch.work)
            best = score_output(problem, i, theta, y)
            counts[CALLS] += 1
            known = max(true_score, sets.score[first + slot]) if rule.stores else true_score
            is_wrong = is_below(best, known)
            if is_wrong:
                counts[WRONG] += 1
                best = known
                copy_into(y, true_output(problem, i))
            if not is_wrong or known == true_score:
                slot = -1
            change(tree, i - point.first, rule.weight[i] / n * max(best - mean, 0.0))
        if slot >= 0:
            best = sets.score[first + slot]
            copy_into(y, matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])[slot])

        kind = rule.kind
        if kind == AWAY and (best - mean > mean - sets.score[first + away] or sets.stored_count[i] == 1):
            kind = FW
        elif kind == BEST:
            kind = best_kind(problem, i, y, best, mean, sets, away, rule.weight[i] * scale, delta, scratch.work)
        slope, limit = slope_and_limit(sets, i, kind, best, mean, away)
        if slope <= 0 or limit <= 0:
            continue

        set_direction(problem, i, kind, mu, y, sets, away, rule.keeps_means, delta)
        curvature = rule.weight[i] * scale * squared_norm(problem, i, delta, scratch.work)
        gamma = min(limit, slope / curvature) if curvature > 0 else limit
        point.gain[0] += rule.weight[i] / n * gamma * (slope - gamma * curvature / 2)
        release(w, bounds)
        spread(problem, w, i, delta, -gamma * rule.weight[i] * scale)
        note_step(point.log, i, delta, -gamma * rule.weight[i] * scale)
        confine(w, bounds)
        if lag.size > 0:
            j = visits.n_before + k + 1.0
            accumulate(problem, lag, i, delta, -gamma * rule.weight[i] * scale * j * (j - 1) / 2)
        if rule.keeps_means:
            move_by(mu, delta, gamma)
        if rule.stores and kind != AWAY and slot < 0:
            slot = store(sets, i, y, best, rule.cache_limit)
        if not rule.keeps_means:
            shift_weights(sets, i, kind, gamma, slot, away, rule.cache_limit)
    return visits.end, True


block_steps = loop(take_steps)


@helper
def look_ahead(point, rule, order, k):
    """Ask for the memory of the next example, and for where that of the one after it is."""
    if k + 2 < order.size and order[k + 2] >= 0:
        i = order[k + 2]
        prefetch_row(point.lines, i)
        prefetch(point.means.starts, i)
        prefetch(rule.weight, i)
        if rule.stores:
            prefetch_places(point.sets, i)
    if k + 1 < order.size and order[k + 1] >= 0:
        i = order[k + 1]
        prefetch_example(point.lines, i)
        if rule.keeps_means:
            prefetch_range(point.means.values, point.means.starts[i], point.means.starts[i + 1])
        if rule.stores:
            prefetch_stored(point.sets, i)


@helper
def score_stored(problem, i, theta, sets):
    """Score all stored outputs of example i.

    Return their mean under the weights, the slot of the best, and that of the worst with a weight.
    """
    kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])
    alpha = sets.alpha[sets.slot_at[i] : sets.slot_at[i] + sets.capacity[i]]
    score = sets.score[sets.slot_at[i] : sets.slot_at[i] + sets.capacity[i]]
    mean = 0.0
    best = 0
    worst = -1
    for slot in range(sets.stored_count[i]):
        score[slot] = score_output(problem, i, theta, kept[slot])
        mean += alpha[slot] * score[slot]
        if score[slot] > score[best]:
            best = slot
        if alpha[slot] > 0 and (worst < 0 or score[slot] < score[worst]):
            worst = slot
    return mean, best, worst


@helper
def slope_and_limit(sets, i, kind, best, mean, away):
    """The slope of the dual along a step of this kind towards an output of the score `best`, and how far it may go."""
    if kind == FW:
        return best - mean, 1.0
    weight = sets.alpha[sets.slot_at[i] + away]
    if kind == PAIRWISE:
        return best - sets.score[sets.slot_at[i] + away], weight
    rest, slope = sum_of_others(sets, i, away)
    return slope, weight / rest if rest > 0 else 0.0


@helper
def best_kind(problem, i, y, best, mean, sets, away, scale, delta, work):
    """The kind of step that raises the dual most."""
    chosen = FW
    most = 0.0
    for kind in range(EXACT):
        slope, limit = slope_and_limit(sets, i, kind, best, mean, away)
        if slope > 0 and limit > 0:
            set_direction(problem, i, kind, delta, y, sets, away, False, delta)
            curvature = scale * squared_norm(problem, i, delta, work)
            gamma = min(limit, slope / curvature) if curvature > 0 else limit
            gain = gamma * (slope - gamma * curvature / 2)
            if gain > most:
                most = gain
                chosen = kind
    return chosen


@helper
def sum_of_others(sets, i, away):
    """1 - alpha(a), and mean - score(a): as sums over the other outputs, exact even where a has almost all weight."""
    rest = 0.0
    slope = 0.0
    for slot in range(sets.stored_count[i]):
        if slot != away:
            at = sets.slot_at[i] + slot
            rest += sets.alpha[at]
            slope += sets.alpha[at] * (sets.score[at] - sets.score[sets.slot_at[i] + away])
    return rest, slope


@helper
def set_direction(problem, i, kind, mu, y, sets, away, has_means, delta):
    """Delta = the direction of the step; mu_i is taken from the active set unless its mean parts are kept."""
    clear(delta)
    if kind != AWAY:
        add_output(problem, i, y, 1.0, delta)
    if has_means:
        add_output(problem, i, true_output(problem, i), -1.0, delta)
        add_scaled(delta, mu, -1.0)
        return
    kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])
    rest = 0.0
    sign = 1.0 if kind == AWAY else -1.0
    for slot in range(sets.stored_count[i]):
        weight = sets.alpha[sets.slot_at[i] + slot]
        if kind != PAIRWISE and weight > 0 and slot != away:
            add_output(problem, i, kept[slot], sign * weight, delta)
            rest += weight
    share = sets.alpha[sets.slot_at[i] + away]
    if kind == PAIRWISE:
        share = 1.0
    elif kind == AWAY:
        share = rest
    add_output(problem, i, kept[away], -share, delta)


@helper
def shift_weights(sets, i, kind, gamma, slot, away, cache_limit):
    """Move the weights of the active set by a step; drop negligible ones.

    Their outputs are removed unless the cache has room for them.
    """
    alpha = sets.alpha[sets.slot_at[i] : sets.slot_at[i] + sets.capacity[i]]
    factor = 1.0
    if kind != PAIRWISE:
        factor = 1 - gamma if kind == FW else 1 + gamma
    for s in range(sets.stored_count[i] - 1, -1, -1):
        alpha[s] *= factor
        if s == slot and kind != AWAY:
            alpha[s] += gamma
        if s == away and kind != FW:
            alpha[s] -= gamma
    for s in range(sets.stored_count[i] - 1, -1, -1):
        if alpha[s] < NEGLIGIBLE:
            alpha[s] = 0.0
            if sets.stored_count[i] > cache_limit:
                remove(sets, i, s)
