"""Outputs, parts and labels of dependency trees: each word has a head, another word or the root, and perhaps a label.

An output of example i is, for each of its n words, its head times the number of labels plus its label, if there are
labels, or else its head: words are counted from 1, and the root is 0. There are n (n + 1) arcs, word by word, and each
has 1 + L parts: the indicator of the arc, then those of its L labels, if there are any. All have the features of the
arc, so that there are weights of arcs, and weights of labels of arcs: shape (F, 1 + L), flat. Arcs from a word to
itself are there for the sake of the order, and in no output.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import as_matrix, norm_buffer, score_rows, spread_rows, squared_norm_rows, weight_shape
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.dependencies.arborescence import ArborescenceWork, arborescence_work
from maxmargin.structures.dependencies.arc_tables import NonprojectiveProblem, ProjectiveProblem
from maxmargin.structures.dependencies.matrix_tree import Walk, new_walk
from maxmargin.structures.dependencies.projective import LEVELS
from maxmargin.structures.scalar_semirings import LogSums, sum_range
from maxmargin.structures.splitting import Splits, new_splits
from maxmargin.supervision.exclusions import exclude_parts, rule_out

BOTH = ProjectiveProblem, NonprojectiveProblem


class DependencyWork(NamedTuple):
    """Tables for sentences of up to n words, N = n + 1, and up to K outputs."""

    arcs: np.ndarray  # (N x N,) scores of arcs
    through: np.ndarray  # (N x N,) of the best tree with each arc, or the probabilities of arcs
    heads: np.ndarray  # (n,) int32
    best_heads: np.ndarray  # (n,) int32
    top: np.ndarray  # (N,) the best score of an arc to each word
    rest: np.ndarray  # (n,) what is left of random numbers
    options: np.ndarray  # (N + L,)
    stack: np.ndarray  # (4 N, 2) int64
    tables: np.ndarray  # (5, N x N) of projective trees
    cycles: ArborescenceWork  # of others
    walk: Walk
    spread: np.ndarray  # as the weights, of direction norms
    splits: Splits  # of the K best


@helper
def count_words(problem, i):
    """The number of words of example i."""
    return problem.starts[i + 1] - problem.starts[i]


@implements(generics.true_outputs, *BOTH)
def true_trees(problem):
    return Blocks(problem.supervision.arcs, problem.starts)


@implements(generics.new_weights, *BOTH)
def new_dependency_weights(problem):
    shape = weight_shape(problem.features, problem.n_features, 1 + problem.n_labels)
    return np.zeros(math.prod(shape), problem.supervision.word_cost.dtype)


@implements(generics.part_sizes, *BOTH)
def dependency_part_sizes(problem):
    return np.diff(problem.arc_starts) * (1 + problem.n_labels)


implements(generics.restrict, *BOTH)(exclude_parts)


@implements(generics.squared_diameters, *BOTH)
def dependency_squared_diameters(problem):
    """By the largest features of an arc to each word, counted for the arc and for its label."""
    rows = as_matrix(problem.features, int(problem.arc_starts[-1])).astype(np.float64)
    norms = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
    lengths = np.diff(problem.starts)
    firsts = problem.arc_starts[:-1]
    largest = [
        norms[lo : lo + n * (n + 1)].reshape(n, n + 1).max(axis=1).sum() for lo, n in zip(firsts, lengths, strict=True)
    ]
    return np.square(2 * np.array(largest)) * (2 if problem.n_labels else 1)


@implements(generics.oracle_work, ProjectiveProblem)
def projective_work(problem):
    n_words = np.diff(problem.starts)
    return 4 * (n_words**3).mean() / dependency_part_sizes(problem).mean()  # four sums of n^3 / 6 products


@implements(generics.workspace, *BOTH)
def dependency_workspace(problem, n_best):
    longest = int(np.diff(problem.starts).max())
    size, width = longest + 1, 1 + problem.n_labels
    crosses = isinstance(problem, NonprojectiveProblem)
    return DependencyWork(
        arcs=aligned((size * size,), np.float64),
        through=aligned((size * size,), np.float64),
        heads=aligned((longest,), np.int32),
        best_heads=aligned((longest,), np.int32),
        top=aligned((size,), np.float64),
        rest=aligned((longest,), np.float64),
        options=aligned((size + width,), np.float64),
        stack=aligned((4 * size, 2), np.int64),
        tables=aligned((LEVELS, 1 if crosses else size * size), np.float64),
        cycles=arborescence_work(longest if crosses else 1),
        walk=new_walk(longest if crosses else 1),
        spread=norm_buffer(problem.features, problem.n_features, width, problem.supervision.word_cost.dtype),
        splits=new_splits(longest * size * width, n_best),
    )


@helper
def weight_table(problem, w):
    """The weights as a table of features and parts."""
    rows, columns = weight_shape(problem.features, problem.n_features, 1 + problem.n_labels)
    return matrix(w, 0, rows, columns)


@implements(generics.scores, *BOTH)
def dependency_scores(problem, w, i, theta):
    lo = problem.arc_starts[i]
    hi = problem.arc_starts[i + 1]
    score_rows(problem.features, weight_table(problem, w), lo, hi, matrix(theta, 0, hi - lo, 1 + problem.n_labels))
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, *BOTH)
def spread_dependencies(problem, w, i, delta, scale):
    lo = problem.arc_starts[i]
    hi = problem.arc_starts[i + 1]
    parts = matrix(delta, 0, hi - lo, 1 + problem.n_labels)
    spread_rows(problem.features, weight_table(problem, w), lo, hi, parts, scale)


@implements(generics.squared_norm, *BOTH)
def dependency_squared_norm(problem, i, delta, work):
    lo = problem.arc_starts[i]
    hi = problem.arc_starts[i + 1]
    parts = matrix(delta, 0, hi - lo, 1 + problem.n_labels)
    return squared_norm_rows(problem.features, i, lo, hi, parts, work.spread)


@implements(generics.augment, *BOTH)
def augment_dependencies(problem, i, theta):
    n_words = count_words(problem, i)
    width = 1 + problem.n_labels
    for m in range(n_words):
        word = problem.starts[i] + m
        cost = problem.supervision.word_cost[word]
        head, label = split_arc(problem, problem.supervision.arcs[word])
        for h in range(n_words + 1):
            if h != head:
                theta[(m * (n_words + 1) + h) * width] += cost
        first = (m * (n_words + 1) + head) * width + 1
        for other in range(problem.n_labels):
            if other != label:
                theta[first + other] += problem.supervision.label_cost * cost


@helper
def split_arc(problem, arc):
    """The head and the label of an entry of an output; the label is 0 where there are none."""
    if problem.n_labels == 0:
        return np.int64(arc), np.int64(0)
    return np.int64(arc) // problem.n_labels, np.int64(arc) % problem.n_labels


@helper
def join_arc(problem, head, label):
    """An entry of an output."""
    return head if problem.n_labels == 0 else head * problem.n_labels + label


@implements(generics.add_output, *BOTH)
def add_tree(problem, i, y, scale, mu):
    width = 1 + problem.n_labels
    for m in range(y.size):
        head, label = split_arc(problem, y[m])
        first = (m * (y.size + 1) + head) * width
        mu[first] += scale
        if width > 1:
            mu[first + 1 + label] += scale


@implements(generics.score_output, *BOTH)
def score_tree(problem, i, theta, y):
    width = 1 + problem.n_labels
    total = 0.0
    for m in range(y.size):
        head, label = split_arc(problem, y[m])
        first = (m * (y.size + 1) + head) * width
        total += theta[first]
        if width > 1:
            total += theta[first + 1 + label]
    return total


@helper
def best_label(problem, theta, n_words, h, m):
    """The best label of the arc from h to word m, counted from 1, and its score."""
    first = ((m - 1) * (n_words + 1) + h) * (1 + problem.n_labels) + 1
    best = 0
    score = 0.0
    for label in range(problem.n_labels):
        if label == 0 or theta[first + label] > score:
            best = label
            score = np.float64(theta[first + label])
    return best, score


@helper
def sum_labels(problem, theta, n_words, h, m):
    """The logarithm of the sum of exp(score) over the labels of an arc."""
    if problem.n_labels == 0:
        return 0.0
    first = ((m - 1) * (n_words + 1) + h) * (1 + problem.n_labels) + 1
    return sum_range(LogSums(), theta, first, first + problem.n_labels)


@helper
def score_arcs(problem, i, theta, sums, work):
    """The scores of arcs with their best labels, or with the sums over all labels, and room for another such table."""
    size = count_words(problem, i) + 1
    width = 1 + problem.n_labels
    arcs = matrix(work.arcs, 0, size, size)
    for m in range(1, size):
        for h in range(size):
            if h == m:
                arcs[h, m] = IMPOSSIBLE
                continue
            arcs[h, m] = theta[((m - 1) * size + h) * width]
            if width > 1:
                if sums:
                    arcs[h, m] += sum_labels(problem, theta, size - 1, h, m)
                else:
                    arcs[h, m] += best_label(problem, theta, size - 1, h, m)[1]
    return arcs, matrix(work.through, 0, size, size)


@helper
def write_tree(problem, theta, heads, y):
    """Write the output with these heads and the best label of each arc."""
    for m in range(1, y.size + 1):
        h = np.int64(heads[m - 1])
        y[m - 1] = join_arc(problem, h, best_label(problem, theta, y.size, h, m)[0])
