"""Outputs and parts of trees of labelled spans.

A tree has labelled spans that do not cross, of single words or of more, and a root above all of them. It is binarized:
what follows the first part of a span, or of the sentence, is a span of its own, which has no label if it is none of
the tree. So there are 2 n - 1 spans of n words, every word is one of them, and each has one of L labels, or none; the
left one of two has none only if it is a word. Every tree is made in one way.

There are n (n + 1) / 2 spans, by where they start, then by where they end. An example has L parts for each span, those
of its labels, and then one part for each span without a label, which has no features and no weights: weights have the
shape (F, L), flat. An output is the row of the parts that it has, from the top down, left before right.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import as_matrix, norm_buffer, score_rows, spread_rows, squared_norm_rows, weight_shape
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.splitting import Splits, new_splits
from maxmargin.supervision.exclusions import exclude_parts, rule_out

SCORES, LEFT, RIGHT, BELOW, ABOVE_BELOW, ABOVE, LEVELS = range(7)


class SpanSupervision(NamedTuple):
    """The true trees, and what others cost."""

    parts: np.ndarray  # (sum of 2 n - 1,) int32, true outputs
    cost: np.ndarray  # (n,) of a labelled span too many or too few, for each example
    signs: Blocks  # int8, of parts with labels: 1 where they are wrong, -1 where right; none where trees are known


def no_signs(n: int) -> Blocks:
    """Those of n examples whose trees are known."""
    return Blocks(np.zeros(0, np.int8), np.zeros(n + 1, np.int64))


class SpanProblem(NamedTuple):
    """Trees of labelled spans: sentence i has the words starts[i]:starts[i + 1], and its spans are rows of features."""

    features: Any
    starts: np.ndarray  # (n + 1,) int64
    span_starts: np.ndarray  # (n + 1,) int64
    supervision: SpanSupervision
    excluded: Blocks  # flags of parts that are ruled out
    n_features: int
    n_labels: int


class SpanWork(NamedTuple):
    """Tables for sentences of up to n words, N = n + 1, and up to K outputs."""

    tables: np.ndarray  # (6, N x N)
    through: np.ndarray  # (parts,) the best score of a tree with each part
    options: np.ndarray  # (N + L,)
    stack: np.ndarray  # (2 N, 2) int64
    draws: np.ndarray  # (2 n,) of no use where there is nothing random
    spread: np.ndarray  # as the weights, of direction norms
    splits: Splits  # of the K best


@helper
def count_words(problem, i):
    """The number of words of example i."""
    return problem.starts[i + 1] - problem.starts[i]


@helper
def span_number(n_words, lo, hi):
    """The number of the span of the words lo:hi."""
    return lo * n_words - lo * (lo - 1) // 2 + hi - lo - 1


@helper
def bare_part(problem, n_words, span):
    """The part of a span without a label."""
    return n_words * (n_words + 1) // 2 * problem.n_labels + span


@implements(generics.true_outputs, SpanProblem)
def true_trees(problem):
    return Blocks(problem.supervision.parts, output_starts(problem.starts))


def output_starts(starts: np.ndarray) -> np.ndarray:
    """Where outputs start, of sentences whose words start there."""
    return 2 * starts - np.arange(len(starts))


@implements(generics.new_weights, SpanProblem)
def new_span_weights(problem):
    shape = weight_shape(problem.features, problem.n_features, problem.n_labels)
    return np.zeros(math.prod(shape), problem.supervision.cost.dtype)


@implements(generics.part_sizes, SpanProblem)
def span_part_sizes(problem):
    return np.diff(problem.span_starts) * (1 + problem.n_labels)


implements(generics.restrict, SpanProblem)(exclude_parts)


@implements(generics.squared_diameters, SpanProblem)
def span_squared_diameters(problem):
    """By the largest features of all spans, of which a tree has 2 n - 1."""
    rows = as_matrix(problem.features, int(problem.span_starts[-1])).astype(np.float64)
    norms = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
    largest = np.maximum.reduceat(norms, problem.span_starts[:-1])
    return np.square(2 * largest * (2 * np.diff(problem.starts) - 1))


@implements(generics.oracle_work, SpanProblem)
def span_work(problem):
    return (np.diff(problem.starts) ** 3).mean() / 6 / span_part_sizes(problem).mean()


@implements(generics.workspace, SpanProblem)
def span_workspace(problem, n_best):
    longest = int(np.diff(problem.starts).max())
    size, n_parts = longest + 1, int(span_part_sizes(problem).max())
    return SpanWork(
        tables=aligned((LEVELS, size * size), np.float64),
        through=aligned((n_parts,), np.float64),
        options=aligned((size + problem.n_labels,), np.float64),
        stack=aligned((2 * size, 2), np.int64),
        draws=aligned((2 * size,), np.float64),
        spread=norm_buffer(problem.features, problem.n_features, problem.n_labels, problem.supervision.cost.dtype),
        splits=new_splits(n_parts, n_best),
    )


@helper
def weight_table(problem, w):
    """The weights as a table of features and labels."""
    rows, columns = weight_shape(problem.features, problem.n_features, problem.n_labels)
    return matrix(w, 0, rows, columns)


@implements(generics.scores, SpanProblem)
def span_scores(problem, w, i, theta):
    lo = problem.span_starts[i]
    hi = problem.span_starts[i + 1]
    score_rows(problem.features, weight_table(problem, w), lo, hi, matrix(theta, 0, hi - lo, problem.n_labels))
    clear(theta[(hi - lo) * problem.n_labels :])
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, SpanProblem)
def spread_spans(problem, w, i, delta, scale):
    lo = problem.span_starts[i]
    hi = problem.span_starts[i + 1]
    labels = matrix(delta, 0, hi - lo, problem.n_labels)
    spread_rows(problem.features, weight_table(problem, w), lo, hi, labels, scale)


@implements(generics.squared_norm, SpanProblem)
def span_squared_norm(problem, i, delta, work):
    lo = problem.span_starts[i]
    hi = problem.span_starts[i + 1]
    return squared_norm_rows(problem.features, i, lo, hi, matrix(delta, 0, hi - lo, problem.n_labels), work.spread)


@implements(generics.augment, SpanProblem)
def augment_spans(problem, i, theta):
    """Labelled spans cost what they do unless they are true; true ones that are missing cost the same.

    The sum of the latter, less what true ones save, is put on all parts of the first word, one of which every tree has.
    Of a tree that is known in part, spans cost that it cannot have, and known ones that are missing.
    """
    n_words = count_words(problem, i)
    cost = problem.supervision.cost[i]
    first_bare = bare_part(problem, n_words, 0)
    total = cost - cost
    signs = problem.supervision.signs
    begin = signs.starts[i]
    if signs.starts[i + 1] > begin:
        for span in range(first_bare // problem.n_labels):
            is_known = False
            for p in range(span * problem.n_labels, (span + 1) * problem.n_labels):
                theta[p] += signs.values[begin + p] * cost
                is_known |= signs.values[begin + p] < 0
            if is_known:
                total += cost
    else:
        for p in range(first_bare):
            theta[p] += cost
        first = 2 * problem.starts[i] - i
        for k in range(first, first + 2 * n_words - 1):
            part = problem.supervision.parts[k]
            if part < first_bare:
                theta[part] -= 2 * cost
                total += cost
    for p in range(problem.n_labels):
        theta[p] += total
    theta[first_bare] += total


@implements(generics.add_output, SpanProblem)
def add_tree(problem, i, y, scale, mu):
    for k in range(y.size):
        mu[y[k]] += scale


@implements(generics.score_output, SpanProblem)
def score_tree(problem, i, theta, y):
    total = 0.0
    for k in range(y.size):
        total += theta[y[k]]
    return total
