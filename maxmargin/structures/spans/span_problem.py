"""Oracles of trees of labelled spans."""

from __future__ import annotations

import math

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import first_best
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.scalar_semirings import Best, LogSums, Sums, has_underflown
from maxmargin.structures.spans import span_parts
from maxmargin.structures.spans.chart import (
    fill_inside,
    fill_outside,
    fill_scores,
    multiply_around,
    read_tree,
    scale_scores,
)
from maxmargin.structures.spans.span_parts import SpanProblem, SpanSupervision, no_signs
from maxmargin.structures.splitting import RULED_OUT, find_runner_up, obey_rule, split_best

__all__ = ["SpanProblem", "SpanSupervision", "no_signs"]

implements(generics.topk_oracle, SpanProblem)(split_best)


@implements(generics.max_oracle, SpanProblem)
def best_tree(problem, i, theta, y, work):
    n_words = span_parts.count_words(problem, i)
    fill_scores(Best(), problem, theta, n_words, work)
    fill_inside(Best(), n_words, work)
    read_tree(Best(), problem, theta, n_words, work.draws, y, work)
    return generics.score_output(problem, i, theta, y)


@implements(generics.max_marginals, SpanProblem)
def span_max_marginals(problem, i, theta, out, work):
    n_words = span_parts.count_words(problem, i)
    fill_scores(Best(), problem, theta, n_words, work)
    fill_inside(Best(), n_words, work)
    fill_outside(Best(), n_words, work)
    multiply_around(Best(), problem, theta, n_words, work, out)
    for p in range(theta.size):
        out[p] = max(out[p], IMPOSSIBLE)


@implements(generics.exp_oracle, SpanProblem)
def sum_trees(problem, i, theta, mu, work):
    n_words = span_parts.count_words(problem, i)
    weights = work.through[: theta.size]
    top = np.float64(theta.max())
    for p in range(theta.size):
        weights[p] = fast_exp(theta[p] - top)
    fill_scores(Sums(), problem, weights, n_words, work)
    largest = scale_scores(n_words, work)
    total = fill_inside(Sums(), n_words, work)
    if has_underflown(total, n_words):
        return sum_safely(problem, theta, mu, n_words, work)
    fill_outside(Sums(), n_words, work)
    multiply_around(Sums(), problem, weights, n_words, work, weights)
    for p in range(theta.size):
        mu[p] = weights[p] / (largest * total)
    return (2 * n_words - 1) * (top + math.log(largest)) + math.log(total)


@helper
def sum_safely(problem, theta, mu, n_words, work):
    """The same for any scores."""
    fill_scores(LogSums(), problem, theta, n_words, work)
    log_z = fill_inside(LogSums(), n_words, work)
    fill_outside(LogSums(), n_words, work)
    multiply_around(LogSums(), problem, theta, n_words, work, work.through)
    for p in range(theta.size):
        mu[p] = fast_exp(min(work.through[p] - log_z, 0.0))
    return log_z


@implements(generics.sample_oracle, SpanProblem)
def draw_trees(problem, i, theta, draws, outputs, work):
    n_words = span_parts.count_words(problem, i)
    fill_scores(LogSums(), problem, theta, n_words, work)
    fill_inside(LogSums(), n_words, work)
    for k in range(outputs.shape[0]):
        read_tree(LogSums(), problem, theta, n_words, draws[k], outputs[k], work)


@implements(find_runner_up, SpanProblem)
def find_second_tree(problem, i, theta, y, score, is_new, work):
    through = work.through[: theta.size]
    generics.max_marginals(problem, i, theta, through, work)
    for k in range(y.size):
        through[y[k]] = RULED_OUT
    part = first_best(through)
    return 0, part, through[part]


@implements(obey_rule, SpanProblem)
def obey_span(problem, i, place, choice, is_forced, theta):
    """Rule out all spans that cross one, and what else it could be; or a part."""
    if not is_forced:
        theta[choice] = RULED_OUT
        return
    n_words = span_parts.count_words(problem, i)
    first_bare = span_parts.bare_part(problem, n_words, 0)
    span = choice // problem.n_labels if choice < first_bare else choice - first_bare
    begin = 0
    while span_parts.span_number(n_words, begin, n_words) < span:
        begin += 1
    end = span - span_parts.span_number(n_words, begin, begin + 1) + begin + 1
    for lo in range(n_words):
        for hi in range(lo + 1, n_words + 1):
            if (lo == begin and hi == end) or crosses(lo, hi, begin, end):
                other = span_parts.span_number(n_words, lo, hi)
                for p in range(other * problem.n_labels, (other + 1) * problem.n_labels):
                    if p != choice:
                        theta[p] = RULED_OUT
                if first_bare + other != choice:
                    theta[first_bare + other] = RULED_OUT


@helper
def crosses(lo, hi, begin, end):
    """Whether two spans overlap, and neither is within the other."""
    return lo < begin < hi < end or begin < lo < end < hi
