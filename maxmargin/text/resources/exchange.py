"""Classes of words by the exchange algorithm, and the tree that joins them: both keep what neighbours tell the most.

By a bigram model of classes, the likelihood of a text is, but for a constant, sum_ab f(N_ab) - sum_a f(N_a.) - sum_b
f(N_.b), where f(n) = n log n and N_ab is how often class b follows class a. Words move, one after the other, to the
class where that is highest; classes are then merged, two at a time, where it falls the least, so that each has a path
in a binary tree.

Kneser, Ney (1993), Improved clustering techniques for class-based statistical language modelling; Brown et al. (1992).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from maxmargin.runtime.dispatch import helper, loop

SMALL = 1 << 16  # counts whose f is looked up


class Neighbours(NamedTuple):
    """How often words follow each other, in compressed rows: those after each word, and those before it.

    The last word, which has a class of its own and stays there, stands for ends of sentences and for rare words.
    """

    after_starts: np.ndarray
    after_words: np.ndarray
    after_counts: np.ndarray
    before_starts: np.ndarray
    before_words: np.ndarray
    before_counts: np.ndarray


def exchange(neighbours: Neighbours, n_classes: int, max_passes: int) -> np.ndarray:
    """The classes of words, from 0; words are in the order of how often they occur, and take turns in it."""
    n_words = len(neighbours.after_starts) - 2
    classes = np.append(np.arange(n_words) % n_classes, n_classes)
    counts = count_pairs(neighbours, classes, n_classes + 1)
    logs, gains = table_of_logs(), np.zeros(n_classes)
    after, before = np.zeros(n_classes + 1, np.int64), np.zeros(n_classes + 1, np.int64)
    flipped, firsts, seconds = np.ascontiguousarray(counts.T), counts.sum(axis=1), counts.sum(axis=0)
    for _ in range(max_passes):
        n_moved = exchange_words(classes, neighbours, counts, flipped, firsts, seconds, logs, after, before, gains)
        if n_moved * 1_000 <= n_words:
            break
    return classes[:n_words]


def count_pairs(neighbours: Neighbours, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """How often classes follow each other."""
    counts = np.zeros((n_classes, n_classes), np.int64)
    first = np.repeat(np.arange(len(classes)), np.diff(neighbours.after_starts))
    np.add.at(counts, (classes[first], classes[neighbours.after_words]), neighbours.after_counts)
    return counts


def table_of_logs() -> np.ndarray:
    """N log n of small n."""
    n = np.arange(SMALL, dtype=np.float64)
    return n * np.log(np.maximum(n, 1))


@helper
def times_log(logs, n):
    """N log n."""
    return logs[n] if n < logs.size else n * np.log(np.float64(n))


@loop
def exchange_words(classes, neighbours, counts, flipped, firsts, seconds, logs, after, before, gains):
    """Move each word to its best class; return how many have moved. `flipped` is the transpose of counts."""
    n_classes = gains.size
    n_moved = 0
    for w in range(classes.size - 1):
        own = classes[w]
        twice = 0  # how often the word follows itself
        n_first = 0
        n_second = 0
        for p in range(neighbours.after_starts[w], neighbours.after_starts[w + 1]):
            v = neighbours.after_words[p]
            n = neighbours.after_counts[p]
            n_first += n
            if v == w:
                twice += n
            else:
                after[classes[v]] += n
        for p in range(neighbours.before_starts[w], neighbours.before_starts[w + 1]):
            v = neighbours.before_words[p]
            n_second += neighbours.before_counts[p]
            if v != w:
                before[classes[v]] += neighbours.before_counts[p]
        move(counts, flipped, firsts, seconds, own, after, before, twice, n_first, n_second, -1)
        for k in range(n_classes):
            gains[k] = times_log(logs, firsts[k]) - times_log(logs, firsts[k] + n_first)
            gains[k] += times_log(logs, seconds[k]) - times_log(logs, seconds[k] + n_second)
            n = counts[k, k]
            both = n + after[k] + before[k] + twice
            gains[k] += times_log(logs, both) + times_log(logs, n)
            gains[k] -= times_log(logs, n + after[k]) + times_log(logs, n + before[k])
        for c in range(n_classes + 1):
            if after[c] > 0:
                for k in range(n_classes):
                    n = flipped[c, k]
                    gains[k] += times_log(logs, n + after[c]) - times_log(logs, n)
            if before[c] > 0:
                for k in range(n_classes):
                    n = counts[c, k]
                    gains[k] += times_log(logs, n + before[c]) - times_log(logs, n)
        best = own
        for k in range(n_classes):
            if gains[k] > gains[best] + 1e-9:  # of classes that are alike it stays in its own
                best = k
        move(counts, flipped, firsts, seconds, best, after, before, twice, n_first, n_second, 1)
        for c in range(n_classes + 1):
            after[c] = 0
            before[c] = 0
        classes[w] = best
        n_moved += best != own
    return n_moved


@helper
def move(counts, flipped, firsts, seconds, k, after, before, twice, n_first, n_second, sign):
    """Add a word, or take it away, where the sign is -1, to class k."""
    for c in range(after.size):
        counts[k, c] += sign * after[c]
        flipped[c, k] += sign * after[c]
        counts[c, k] += sign * before[c]
        flipped[k, c] += sign * before[c]
    counts[k, k] += sign * twice
    flipped[k, k] += sign * twice
    firsts[k] += sign * n_first
    seconds[k] += sign * n_second


def find_paths(counts: np.ndarray) -> list[str]:
    """Paths of 0 and 1 of all classes but the last, in the tree of merges, which keeps to the ends of sentences."""
    n_classes = len(counts) - 1
    counts, losses = counts.astype(np.float64), np.full((n_classes, n_classes), np.inf)
    is_there = np.ones(len(counts), bool)
    first, second = np.zeros(n_classes - 1, np.int64), np.zeros(n_classes - 1, np.int64)
    merge_classes(counts, losses, is_there, first, second)
    return spell_paths(n_classes, zip(first.tolist(), second.tolist(), first.tolist(), strict=True))


def spell_paths(n_leaves: int, merges: Iterable[tuple[int, int, int]]) -> list[str]:
    """Paths of 0 and 1 of the leaves of a tree, by its merges, in their order: two nodes, and what they become."""
    members: dict[int, list[int]] = {k: [k] for k in range(n_leaves)}
    paths = [""] * n_leaves
    for first, second, both in merges:
        for bit, node in (("0", first), ("1", second)):
            for k in members[node]:
                paths[k] = bit + paths[k]
        members[both] = members.pop(first) + members.pop(second)
    return paths


@loop
def merge_classes(counts, losses, is_there, first, second):
    """Merge the two classes that cost the least until one is left: class second[s] becomes part of first[s]."""
    n_classes = losses.shape[0]
    for a in range(n_classes):
        for b in range(a):
            losses[a, b] = loss_of(counts, is_there, a, b)
    for step in range(n_classes - 1):
        best_a = -1
        best_b = -1
        best = np.inf
        for a in range(n_classes):
            if is_there[a]:
                for b in range(a):
                    if is_there[b] and losses[a, b] < best:
                        best = losses[a, b]
                        best_a = a
                        best_b = b
        first[step] = best_b
        second[step] = best_a
        for a in range(n_classes):  # what others lose no longer depends on the two, but on what they become
            if is_there[a] and a != best_a and a != best_b:
                for b in range(a):
                    if is_there[b] and b != best_a and b != best_b:
                        losses[a, b] -= share_of(counts, a, b, best_a) + share_of(counts, a, b, best_b)
        for c in range(counts.shape[0]):
            counts[best_b, c] += counts[best_a, c]
            counts[best_a, c] = 0
        for c in range(counts.shape[0]):
            counts[c, best_b] += counts[c, best_a]
            counts[c, best_a] = 0
        is_there[best_a] = False
        for a in range(n_classes):
            if is_there[a] and a != best_b:
                for b in range(a):
                    if is_there[b] and b != best_b:
                        losses[a, b] += share_of(counts, a, b, best_b)
                losses[max(a, best_b), min(a, best_b)] = loss_of(counts, is_there, a, best_b)


@helper
def x_log(x):
    """X log x, for x >= 0."""
    return x * np.log(x) if x > 0 else 0.0


@helper
def share_of(counts, a, b, c):
    """What merging a and b loses of how they go with c."""
    after = x_log(counts[a, c]) + x_log(counts[b, c]) - x_log(counts[a, c] + counts[b, c])
    return after + x_log(counts[c, a]) + x_log(counts[c, b]) - x_log(counts[c, a] + counts[c, b])


@helper
def loss_of(counts, is_there, a, b):
    """What merging classes a and b loses of the likelihood."""
    total = 0.0
    total += x_log(counts[a, a]) + x_log(counts[a, b]) + x_log(counts[b, a]) + x_log(counts[b, b])
    total -= x_log(counts[a, a] + counts[a, b] + counts[b, a] + counts[b, b])
    first_a = first_b = second_a = second_b = 0.0
    for c in range(counts.shape[0]):
        if is_there[c]:
            if c != a and c != b:
                total += share_of(counts, a, b, c)
            first_a += counts[a, c]
            first_b += counts[b, c]
            second_a += counts[c, a]
            second_b += counts[c, b]
    total -= x_log(first_a) + x_log(first_b) - x_log(first_a + first_b)
    return total - (x_log(second_a) + x_log(second_b) - x_log(second_a + second_b))
