"""The K best dependency trees, by splitting sets of trees: choices are arcs with their labels."""

from __future__ import annotations

from maxmargin import problem as generics
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.dependencies.arc_tables import find_others
from maxmargin.structures.dependencies.dependency_parts import (
    BOTH,
    best_label,
    count_words,
    join_arc,
    score_arcs,
    split_arc,
)
from maxmargin.structures.splitting import RULED_OUT, find_runner_up, obey_rule, split_best

implements(generics.topk_oracle, *BOTH)(split_best)


@implements(obey_rule, *BOTH)
def obey_arc(problem, i, place, choice, is_forced, theta):
    """Rule out other arcs to a word, and other labels; or an arc with a label."""
    size = count_words(problem, i) + 1
    width = 1 + problem.n_labels
    head, label = split_arc(problem, choice)
    first = ((place - 1) * size + head) * width
    if is_forced:
        for h in range(size):
            if h != head:
                theta[((place - 1) * size + h) * width] = RULED_OUT
        for other in range(problem.n_labels):
            if other != label:
                theta[first + 1 + other] = RULED_OUT
    else:
        theta[first + (0 if width == 1 else 1 + label)] = RULED_OUT


@implements(find_runner_up, *BOTH)
def find_second_tree(problem, i, theta, y, score, is_new, work):
    size = y.size + 1
    width = 1 + problem.n_labels
    arcs, through = score_arcs(problem, i, theta, False, work)
    for m in range(1, size):
        work.best_heads[m - 1] = split_arc(problem, y[m - 1])[0]
    find_others(problem, arcs, work.best_heads, through, work)
    best = IMPOSSIBLE / 2
    place = 0
    choice = 0
    for m in range(1, size):
        head, label = split_arc(problem, y[m - 1])
        for h in range(size):
            if h != m and h != head and through[h, m] > best:
                best = through[h, m]
                place = m
                choice = join_arc(problem, h, best_label(problem, theta, size - 1, h, m)[0])
        first = ((m - 1) * size + head) * width + 1
        for other in range(problem.n_labels):
            if other != label and score - theta[first + label] + theta[first + other] > best:
                best = score - theta[first + label] + theta[first + other]
                place = m
                choice = join_arc(problem, head, other)
    return place, choice, best
