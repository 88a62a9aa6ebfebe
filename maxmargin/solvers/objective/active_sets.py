"""Outputs stored per example, with their weights in the dual point: active sets and caches in one place.

The outputs of example i lie one after the other in a shared arena, as do their weights and scores; an example that
outgrows its room moves to the end of the arena with twice the room. Loops never allocate: they return when the arena
is full, and Python doubles it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.arrays.prefetch import prefetch, prefetch_range
from maxmargin.arrays.vectors import clear, copy_into, is_same, scale
from maxmargin.arrays.views import matrix
from maxmargin.losses.base_loss import attain_at, attains
from maxmargin.persist.registry import register_state
from maxmargin.problem import add_output, n_examples, score_output, true_output
from maxmargin.runtime.dispatch import Bound, helper, loop

FIRST_CAPACITY = 2


@register_state
class ActiveSets(NamedTuple):
    """The stored outputs of all examples."""

    outputs: np.ndarray  # int32, the arena of outputs
    alpha: np.ndarray  # the arena of weights; those of an example sum to 1
    score: np.ndarray  # the arena of scores, as of the last step on the example
    earlier: np.ndarray  # the arena of weights of some passes ago (`momentum`)
    output_at: np.ndarray  # (n,) where an example's outputs begin
    slot_at: np.ndarray  # (n,) where its weights and scores begin
    capacity: np.ndarray  # (n,)
    stored_count: np.ndarray  # (n,) the number of outputs stored
    sizes: np.ndarray  # (n,) the number of integers in an output
    used: np.ndarray  # (2,) how much of the arenas is taken: outputs, slots


@register_state
class DualPoint(NamedTuple):
    """Mean parts, or the active sets that they are the means of: labellings with weights are far smaller than their
    mean parts where there are many labels.
    """

    means: Blocks  # less the parts of the true outputs; without values where the active sets say it all
    sets: ActiveSets
    gaps: np.ndarray = np.zeros(0)  # (n,) block gaps as last known, of solvers that keep them


class Carried(NamedTuple):
    """A start whose worth is known, as along a path: its dual point has the block gaps of the objective to minimise."""

    dual: DualPoint  # the solver's own from now on
    v: np.ndarray  # w(mu), before it is projected to the bounds
    value: float  # D(mu)


def no_means(sizes: np.ndarray, dtype: DTypeLike) -> Blocks:
    """In place of mean parts of these sizes, where active sets say it all."""
    return Blocks(np.zeros(0, dtype), starts_of(sizes))


def no_blocks(dtype: DTypeLike) -> Blocks:
    """In place of blocks that nobody asks for."""
    return Blocks(np.zeros(0, dtype), np.zeros(1, np.int64))


def as_point(point: DualPoint | Blocks) -> DualPoint:
    """A dual point, of which only the mean parts may be given."""
    return point if isinstance(point, DualPoint) else DualPoint(point, no_sets())


def copy_point(point: DualPoint, dtype: DTypeLike) -> DualPoint:
    """A copy, its mean parts of the given dtype, that can be changed without changing the original."""
    sets = ActiveSets(*(array.copy() for array in point.sets))
    return DualPoint(Blocks(point.means.values.astype(dtype), point.means.starts), sets)


def without_means(point: object) -> DualPoint | None:
    """What is left of a dual point for other true outputs, from which mean parts are counted: its active sets."""
    if not (isinstance(point, DualPoint) and point.sets.sizes.size):
        return None
    return DualPoint(no_means(np.diff(point.means.starts), point.means.values.dtype), point.sets)


def no_sets() -> ActiveSets:
    """Sets for solvers that store no outputs."""
    nothing = np.zeros(0, np.int64)
    return ActiveSets(np.zeros(0, np.int32), *(np.zeros(0),) * 3, nothing, nothing, nothing, nothing, nothing, nothing)


def sets_of(outputs: Blocks) -> ActiveSets:
    """Sets with one output of each example, which has the whole weight."""
    sizes = np.diff(outputs.starts)
    n = len(sizes)
    output_at = starts_of(FIRST_CAPACITY * sizes)
    slots = FIRST_CAPACITY * n
    sets = ActiveSets(
        outputs=np.zeros(2 * output_at[-1], np.int32),
        alpha=np.zeros(2 * slots),
        score=np.zeros(2 * slots),
        earlier=np.zeros(2 * slots),
        output_at=output_at[:-1].copy(),
        slot_at=FIRST_CAPACITY * np.arange(n),
        capacity=np.full(n, FIRST_CAPACITY),
        stored_count=np.ones(n, np.int64),
        sizes=sizes.astype(np.int64),
        used=np.array([output_at[-1], slots]),
    )
    shift = np.repeat(sets.output_at - outputs.starts[:-1], sizes)
    sets.outputs[np.arange(outputs.values.size) + shift] = outputs.values
    sets.alpha[sets.slot_at] = sets.earlier[sets.slot_at] = 1.0
    return sets


def enlarge(sets: ActiveSets, n_ranges: int = 1) -> ActiveSets:
    """The same sets in arenas of twice the size, or as much as the largest example of each range may need."""
    n_slots = 2 * n_ranges * int(sets.capacity.max())
    n_outputs = 2 * n_ranges * int((sets.capacity * sets.sizes).max())

    def longer(arena: np.ndarray, least: int) -> np.ndarray:
        return np.concatenate([arena, np.zeros(max(len(arena), least), arena.dtype)])

    arenas = {name: longer(getattr(sets, name), n_slots) for name in ("alpha", "score", "earlier")}
    return sets._replace(outputs=longer(sets.outputs, n_outputs), **arenas)


@helper
def has_room(sets, i):
    """Whether example i can store one more output, moving to the end of the arenas if need be."""
    if sets.stored_count[i] < sets.capacity[i]:
        return True
    slots = sets.used[1] + 2 * sets.capacity[i]
    return slots <= sets.alpha.size and sets.used[0] + 2 * sets.capacity[i] * sets.sizes[i] <= sets.outputs.size


@helper
def prefetch_places(sets, i):
    """Ask for where the outputs of example i are."""
    prefetch(sets.stored_count, i)
    prefetch(sets.capacity, i)
    prefetch(sets.slot_at, i)
    prefetch(sets.output_at, i)
    prefetch(sets.sizes, i)


@helper
def prefetch_stored(sets, i):
    """Ask for the outputs of example i, their weights and scores."""
    count = sets.stored_count[i]
    prefetch_range(sets.alpha, sets.slot_at[i], sets.slot_at[i] + count)
    prefetch_range(sets.score, sets.slot_at[i], sets.slot_at[i] + count)
    prefetch_range(sets.outputs, sets.output_at[i], sets.output_at[i] + count * sets.sizes[i])


@helper
def move_to_end(sets, i):
    """Give example i twice its room, at the end of the arenas."""
    for k in range(sets.stored_count[i]):
        sets.alpha[sets.used[1] + k] = sets.alpha[sets.slot_at[i] + k]
        sets.score[sets.used[1] + k] = sets.score[sets.slot_at[i] + k]
        sets.earlier[sets.used[1] + k] = sets.earlier[sets.slot_at[i] + k]
    size = sets.stored_count[i] * sets.sizes[i]
    copy_into(sets.outputs[sets.used[0] :], sets.outputs[sets.output_at[i] : sets.output_at[i] + size])
    sets.output_at[i] = sets.used[0]
    sets.slot_at[i] = sets.used[1]
    sets.capacity[i] *= 2
    sets.used[0] += sets.capacity[i] * sets.sizes[i]
    sets.used[1] += sets.capacity[i]


@helper
def store(sets, i, y, score, limit):
    """The slot of output y, which is stored with weight zero if it is new; example i must have room.

    Where `limit` outputs are stored, the lowest-scored one gives way, but none that has a weight; 0 is no limit.
    """
    kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])
    count = sets.stored_count[i]
    first = sets.slot_at[i]
    victim = -1
    for slot in range(count):
        if is_same(kept[slot], y):
            return slot
        is_lowest = victim < 0 or sets.score[first + slot] < sets.score[first + victim]
        if sets.alpha[first + slot] == 0 and is_lowest:
            victim = slot
    slot = count
    if 0 < limit <= count and victim >= 0:
        slot = victim
    else:
        if count == sets.capacity[i]:
            move_to_end(sets, i)
        sets.stored_count[i] = count + 1
    copy_into(sets.outputs[sets.output_at[i] + slot * y.size :], y)
    sets.alpha[sets.slot_at[i] + slot] = 0.0
    sets.score[sets.slot_at[i] + slot] = score
    sets.earlier[sets.slot_at[i] + slot] = 0.0
    return slot


@helper
def remove(sets, i, slot):
    """Drop a slot; the last one takes its place."""
    last = sets.stored_count[i] - 1
    size = sets.sizes[i]
    kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], size)
    copy_into(kept[slot], kept[last])
    sets.alpha[sets.slot_at[i] + slot] = sets.alpha[sets.slot_at[i] + last]
    sets.score[sets.slot_at[i] + slot] = sets.score[sets.slot_at[i] + last]
    sets.earlier[sets.slot_at[i] + slot] = sets.earlier[sets.slot_at[i] + last]
    sets.stored_count[i] = last


def rename(sets: ActiveSets, i: int, old: np.ndarray, new: np.ndarray) -> None:
    """Put an output of example i in place of another one, if that is stored, with its weight."""
    stored = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])[: sets.stored_count[i]]
    alpha = sets.alpha[sets.slot_at[i] : sets.slot_at[i] + sets.stored_count[i]]
    of_old, of_new = (np.flatnonzero((stored == output).all(axis=1)) for output in (old, new))
    if of_old.size and of_new.size:
        alpha[of_new[0]] += alpha[of_old[0]]
        alpha[of_old[0]] = 0.0
    elif of_old.size:
        stored[of_old[0]] = new


def rescale(sets: ActiveSets) -> None:
    """Make the weights of every example sum to 1, which they drift away from."""
    owner = np.repeat(np.arange(len(sets.sizes)), sets.stored_count)
    begins = np.cumsum(sets.stored_count) - sets.stored_count
    at = np.arange(len(owner)) + (sets.slot_at - begins)[owner]
    sets.alpha[at] /= np.bincount(owner, weights=sets.alpha[at])[owner]


@helper
def read_means(problem, i, point, mu):
    """Write mu_i - s_i(y_i) of a dual point into `mu`: as it is kept, or sum_y alpha_i(y) {s_i(y) - s_i(y_i)}."""
    means, sets = point.means, point.sets
    if means.values.size > 0:
        copy_into(mu, means.values[means.starts[i] : means.starts[i + 1]])
        return
    clear(mu)
    kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])
    y_true = true_output(problem, i)
    moved = 0.0  # away from the true output: summed up, as one minus the rest would lose its digits
    for slot in range(sets.stored_count[i]):
        weight = sets.alpha[sets.slot_at[i] + slot]
        if weight > 0 and not is_same(kept[slot], y_true):
            add_output(problem, i, kept[slot], weight, mu)
            moved += weight
    add_output(problem, i, y_true, -moved, mu)


@loop
def fill_means(problem, point, out, lo, hi, scratch):
    """The mean parts of the examples lo:hi of a dual point, as `read_means` has them."""
    for i in range(lo, hi):
        read_means(problem, i, point, out.values[out.starts[i] : out.starts[i + 1]])


@helper
def best_stored(problem, i, theta, sets):
    """The slot of the best stored output of example i, its score, and the mean score under the weights."""
    kept = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])
    best = 0
    top = 0.0
    mean = 0.0
    for slot in range(sets.stored_count[i]):
        score = score_output(problem, i, theta, kept[slot])
        mean += sets.alpha[sets.slot_at[i] + slot] * score
        if slot == 0 or score > top:
            best = slot
            top = score
    return best, top, mean


@attains
class OfStored(NamedTuple):
    """A loss that is attained at the best of stored outputs, for `Objective.evaluate`."""

    margin: bool
    loss: Any
    sets: ActiveSets

    def attain(self, problem, i, theta, means, scratch):
        sets = self.sets
        best, score, _ = best_stored(problem, i, theta, sets)
        y = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])[best]
        return attain_at(self.loss, problem, i, theta, y, score, score, means)


@loop
def store_outputs(problem, sets, outputs, gaps, least, limit, first):
    """Store the outputs of the examples from `first` on whose gap exceeds `least`; return how many are done."""
    for i in range(first, n_examples(problem)):
        if gaps[i] > least:
            if not has_room(sets, i):
                return i
            store(sets, i, outputs.values[outputs.starts[i] : outputs.starts[i + 1]], 0.0, limit)
    return n_examples(problem)


def keep_primal(problem: Bound, point: DualPoint, factor: float) -> DualPoint:
    """A dual point scaled, in place, by `factor` < 1 with the rest of the weight on the true outputs.

    With a regularization that is smaller by the same factor its weights w(mu) are the same (*Gaps*, Proposition 1).
    """
    sets, done = point.sets, 0
    while (done := scale_towards_true(problem, point.means, sets, factor, done)) < n_examples(problem):
        sets = enlarge(sets)
    return DualPoint(point.means, sets)


@loop
def scale_towards_true(problem, means, sets, factor, first):
    """Scale the examples from `first` on; return the number of examples done, fewer than all if the arena is full."""
    for i in range(first, n_examples(problem)):
        has_sets = sets.sizes.size > 0
        if has_sets and not has_room(sets, i):
            return i
        if means.values.size > 0:
            scale(means.values[means.starts[i] : means.starts[i + 1]], factor)
        if has_sets:
            for slot in range(sets.stored_count[i]):
                sets.alpha[sets.slot_at[i] + slot] *= factor
            slot = store(sets, i, true_output(problem, i), 0.0, 0)
            sets.alpha[sets.slot_at[i] + slot] += 1 - factor
    return n_examples(problem)
