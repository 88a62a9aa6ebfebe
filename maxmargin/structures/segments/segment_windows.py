"""Sums over the segments that end, or begin, at a row: windows of a sequence of numbers, in two semirings.

A window holds a logarithm for every place where a segment may begin (or end), and what comes together at its other end
is the sum over places, each times a factor that depends on its distance: that of its length. Sums are those of plain
products, as exponentials of all products would take most of the time. So a window also holds *weights*,
exp(value - reference), whose reference moves along; where such a sum is too small for what has underflown to be nothing
beside it, it is found again by logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.exponential import fast_exp, fast_log
from maxmargin.arrays.views import part_of_row
from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import generic, helper, implements
from maxmargin.structures.scalar_semirings import NEVER, Best, LogSums

FAR = 200.0  # of a value from the reference: then this one moves
SAFE = 1e-200  # of a sum of weights times factors, each at most exp(2 FAR): what has underflown is nothing beside it
LOG_SAFE = math.log(SAFE)


class Window(NamedTuple):
    """Numbers of L labels at up to N places."""

    values: np.ndarray  # (L, N) logarithms
    weights: np.ndarray  # (L, N) exp(values - reference)
    reference: np.ndarray  # (L,)
    gathered: np.ndarray  # (L,) what has come together at a place
    totals: np.ndarray  # (L,) sums whose logarithms are to be added to that, or values to be weighed


class Lengths(NamedTuple):
    """The potentials of lengths, one row per label; another row is for one label with those of listed segments."""

    logs: np.ndarray  # (L + 1, D)
    factors: np.ndarray  # (L + 1, D) exp(logs - top)
    top: np.ndarray  # (L + 1,)


class PairPotentials(NamedTuple):
    """Potentials of pairs of labels."""

    logs: np.ndarray  # (L, L)
    factors: np.ndarray  # (L, L) exp(logs - top)
    top: np.ndarray  # (1,)
    shares: np.ndarray  # (L,) room


def new_pairs(n_labels: int) -> PairPotentials:
    """A table to be filled."""
    shape = n_labels, n_labels
    logs, factors, top, shares = (aligned(sizes, np.float64) for sizes in (shape, shape, (1,), (n_labels,)))
    return PairPotentials(logs, factors, top, shares)


def new_window(n_labels: int, n_places: int) -> Window:
    """A window with nothing in it."""
    tables = (aligned((n_labels, n_places), np.float64) for _ in range(2))
    return Window(*tables, *(aligned((n_labels,), np.float64) for _ in range(3)))


def new_lengths(n_labels: int, longest: int) -> Lengths:
    """Tables of lengths to be filled."""
    shape = n_labels + 1, longest
    return Lengths(aligned(shape, np.float64), aligned(shape, np.float64), aligned((n_labels + 1,), np.float64))


@helper
def open_window(window):
    """Forget what is in a window."""
    for label in range(window.reference.size):
        window.reference[label] = NEVER


@generic
def put(semiring, window, label, place, value, lo, hi):
    """Put a value into a window; from now on only places lo:hi, of those that are filled, are looked at."""


@generic
def finish_put(semiring, window, place):
    """After `put` of all labels."""


@generic
def gather(semiring, window, label, lo, hi, lengths, row, at):
    """Add up the places lo:hi, each times the potential of a length, from lengths[row, at] on, in `gathered`."""


@generic
def finish_gather(semiring, window):
    """After `gather` of all labels."""


@generic
def join(semiring, values, t, pairs, out, u):
    """out[u, b] adds up values[t, a] times pairs[a, b] over all labels a."""


@generic
def total(semiring, values, t, n):
    """Add up values[t, :n]."""


@helper
def highest_value(values, t, n):
    """The highest of values[t, :n]."""
    top = values[t, 0]
    for k in range(1, n):
        top = max(top, values[t, k])
    return top


# --- the best -------------------------------------------------------------------------------------------------------


@implements(put, Best)
def put_value(semiring, window, label, place, value, lo, hi):
    window.values[label, place] = value


@helper
def best_in_window(window, label, lo, hi, lengths, row, at):
    """The best of the places lo:hi with the potentials of their lengths."""
    values = part_of_row(window.values, label, lo, hi)
    logs = part_of_row(lengths.logs, row, at, at + hi - lo)
    best = NEVER
    for k in range(values.size):
        best = max(best, values[0, k] + logs[0, k])
    return best


@implements(gather, Best)
def gather_best(semiring, window, label, lo, hi, lengths, row, at):
    window.gathered[label] = best_in_window(window, label, lo, hi, lengths, row, at)


implements(finish_put, Best)(lambda semiring, window, place: None)
implements(finish_gather, Best)(lambda semiring, window: None)


@implements(join, Best)
def join_best(semiring, values, t, pairs, out, u):
    for b in range(pairs.logs.shape[0]):
        out[u, b] = NEVER
    for a in range(pairs.logs.shape[0]):
        for b in range(pairs.logs.shape[0]):
            out[u, b] = max(out[u, b], values[t, a] + pairs.logs[a, b])


implements(total, Best)(lambda semiring, values, t, n: highest_value(values, t, n))


# --- sums -----------------------------------------------------------------------------------------------------------


@implements(put, LogSums)
def put_weight(semiring, window, label, place, value, lo, hi):
    window.values[label, place] = value
    if value < IMPOSSIBLE / 2:
        window.totals[label] = IMPOSSIBLE
    else:
        if abs(value - window.reference[label]) > FAR:
            move_reference(window, label, value, lo, hi)
        window.totals[label] = value - window.reference[label]


@helper
def move_reference(window, label, value, lo, hi):
    """Let the reference be the new value, if that is higher, or else the highest one, if it is far below."""
    reference = window.reference[label]
    top = value
    if value < reference:
        for p in range(lo, hi):
            top = max(top, window.values[label, p])
        if top >= reference - FAR / 2:
            return
    window.reference[label] = top
    weigh(window, label, lo, hi)


@implements(finish_put, LogSums)
def weigh_place(semiring, window, place):
    for label in range(window.totals.size):
        window.totals[label] = fast_exp(window.totals[label])
    for label in range(window.totals.size):
        window.weights[label, place] = window.totals[label]


@helper
def weigh(window, label, lo, hi):
    """Weights of places lo:hi by a new reference."""
    reference = window.reference[label]
    values = part_of_row(window.values, label, lo, hi)
    weights = part_of_row(window.weights, label, lo, hi)
    for k in range(values.size):
        weights[0, k] = fast_exp(values[0, k] - reference)


@helper
def sum_window(window, label, lo, hi, lengths, row, at):
    """The sum of weights times factors."""
    weights = part_of_row(window.weights, label, lo, hi)
    factors = part_of_row(lengths.factors, row, at, at + hi - lo)
    sum_of_weights = 0.0
    for k in range(weights.size):
        sum_of_weights += weights[0, k] * factors[0, k]
    return sum_of_weights


@implements(gather, LogSums)
def gather_sums(semiring, window, label, lo, hi, lengths, row, at):
    window.gathered[label] = window.reference[label] + lengths.top[row]
    window.totals[label] = sum_window(window, label, lo, hi, lengths, row, at)
    if window.totals[label] <= SAFE:
        gather_logs(window, label, lo, hi, lengths, row, at)


@helper
def gather_logs(window, label, lo, hi, lengths, row, at):
    """As `gather`, by logarithms."""
    top = best_in_window(window, label, lo, hi, lengths, row, at)
    window.gathered[label] = top
    window.totals[label] = 1.0
    if top > IMPOSSIBLE / 2:
        window.totals[label] = 0.0
        for k in range(hi - lo):
            window.totals[label] += fast_exp(window.values[label, lo + k] + lengths.logs[row, at + k] - top)


@implements(finish_gather, LogSums)
def add_logarithms(semiring, window):
    for label in range(window.totals.size):
        window.gathered[label] += fast_log(window.totals[label])


@implements(join, LogSums)
def join_sums(semiring, values, t, pairs, out, u):
    n_labels = pairs.logs.shape[0]
    shares = pairs.shares
    top = highest_value(values, t, n_labels)
    for b in range(n_labels):
        shares[b] = fast_exp(values[t, b] - top)
        out[u, b] = 0.0
    for a in range(n_labels):
        for b in range(n_labels):
            out[u, b] += shares[a] * pairs.factors[a, b]
    for b in range(n_labels):
        shares[b] = fast_log(max(out[u, b], SAFE))
    for b in range(n_labels):
        is_safe = out[u, b] > SAFE
        out[u, b] = top + pairs.top[0] + shares[b] if is_safe else join_label(values, t, pairs, b)


@helper
def join_label(values, t, pairs, b):
    """As `join` of one label, by logarithms."""
    best = NEVER
    for a in range(pairs.logs.shape[0]):
        best = max(best, values[t, a] + pairs.logs[a, b])
    if best < IMPOSSIBLE / 2:
        return best
    sum_of_shares = 0.0
    for a in range(pairs.logs.shape[0]):
        sum_of_shares += fast_exp(values[t, a] + pairs.logs[a, b] - best)
    return best + math.log(sum_of_shares)


@implements(total, LogSums)
def total_sums(semiring, values, t, n):
    top = highest_value(values, t, n)
    sum_of_shares = 0.0
    for k in range(n):
        sum_of_shares += fast_exp(values[t, k] - top)
    return top + math.log(sum_of_shares)


@helper
def count_lengths(window, label, lo, hi, lengths, row, value, share, counts):
    """Add the probabilities of the lengths 1, 2, ... of segments, which add up to a share, to counts[label].

    The sum over all of them, `value`, is that of `gather`.
    """
    lacking = window.reference[label] + lengths.top[row] - value
    if -lacking > LOG_SAFE:
        scale = share * fast_exp(lacking)
        weights = part_of_row(window.weights, label, lo, hi)
        for k in range(weights.size):
            counts[label, k] += scale * weights[0, k] * lengths.factors[row, k]
    else:
        count_length_logs(window, label, lo, hi, lengths, row, value, share, counts)


@helper
def count_length_logs(window, label, lo, hi, lengths, row, value, share, counts):
    """As `count_lengths`, by logarithms."""
    for k in range(hi - lo):
        counts[label, k] += share * fast_exp(window.values[label, lo + k] + lengths.logs[row, k] - value)
