"""The K best dependency trees: best-max-marginal-first (Yanover and Weiss 2003).

The set of trees whose second best is the best of all sets is split in two: one half must have the arc, with its label,
where the second best departs from the best, the other must not have it.
"""

from __future__ import annotations

from maxmargin import problem as generics
from maxmargin.arrays.vectors import copy_into, first_best
from maxmargin.arrays.views import matrix
from maxmargin.losses.smoothing import has_weight
from maxmargin.problem import IMPOSSIBLE, score_output
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.dependencies.arc_tables import find_heads, find_others
from maxmargin.structures.dependencies.dependency_parts import (
    BOTH,
    best_label,
    fill_arcs,
    join_arc,
    split_arc,
    write_tree,
)

FORBIDDEN = 100 * IMPOSSIBLE  # what rules forbid, which no possible parts make up for


@helper
def obey_rules(problem, n_words, last, theta, work):
    """Forbid what the rules up to `last` rule out: other arcs to a word, and other labels; or an arc with a label."""
    width = 1 + problem.n_labels
    rule = last
    while rule >= 0:
        m = work.rules[rule, 1]
        head, label = split_arc(problem, work.rules[rule, 2])
        first = ((m - 1) * (n_words + 1) + head) * width
        if work.rules[rule, 3] == 1:
            for h in range(n_words + 1):
                if h != head:
                    theta[((m - 1) * (n_words + 1) + h) * width] = FORBIDDEN
            for other in range(problem.n_labels):
                if other != label:
                    theta[first + 1 + other] = FORBIDDEN
        else:
            theta[first + (0 if width == 1 else 1 + label)] = FORBIDDEN
        rule = work.rules[rule, 0]


@helper
def find_runner_up(problem, theta, arcs, y, k, score, work):
    """Note where the second best tree of set k departs from y, its best, and its score."""
    size = arcs.shape[0]
    width = 1 + problem.n_labels
    through = matrix(work.through, 0, size, size)
    for m in range(1, size):
        work.best_heads[m - 1] = split_arc(problem, y[m - 1])[0]
    find_others(problem, arcs, work.best_heads, through, work)
    best = IMPOSSIBLE / 2
    for m in range(1, size):
        head, label = split_arc(problem, y[m - 1])
        for h in range(size):
            if h != m and h != head and through[h, m] > best:
                best = through[h, m]
                work.runner_up[k, 0] = m
                work.runner_up[k, 1] = join_arc(problem, h, best_label(problem, theta, size - 1, h, m)[0])
        first = ((m - 1) * size + head) * width + 1
        for other in range(problem.n_labels):
            if other != label and score - theta[first + label] + theta[first + other] > best:
                best = score - theta[first + label] + theta[first + other]
                work.runner_up[k, 0] = m
                work.runner_up[k, 1] = join_arc(problem, head, other)
    work.runner_up_score[k] = best if best > IMPOSSIBLE / 2 else FORBIDDEN


@implements(generics.topk_oracle, *BOTH)
def best_k_trees(problem, i, theta, outputs, values, level, work):
    size = outputs.shape[1] + 1
    arcs = matrix(work.arcs, 0, size, size)
    ruled = work.theta[: theta.size]
    for k in range(values.size):
        parent = 0 if k == 0 else first_best(work.runner_up_score[:k])
        if k > 0 and work.runner_up_score[parent] == FORBIDDEN:
            return k
        for is_forced in (1, 0):
            if is_forced == 0 and k == 0:
                continue
            part = k if is_forced == 1 else parent
            last = -1
            if k > 0:
                last = 2 * k - is_forced
                work.rules[last, 0] = work.tail[parent] if is_forced == 1 else work.rules[last - 1, 0]
                work.rules[last, 1] = work.runner_up[parent, 0]
                work.rules[last, 2] = work.runner_up[parent, 1]
                work.rules[last, 3] = is_forced
            work.tail[part] = last
            copy_into(ruled, theta)
            obey_rules(problem, size - 1, last, ruled, work)
            fill_arcs(problem, ruled, arcs, False)
            if is_forced == 1:
                find_heads(problem, arcs, work.heads, work)
                write_tree(problem, ruled, work.heads, outputs[k])
                values[k] = score_output(problem, i, theta, outputs[k])
                if k > 0 and not has_weight(values, k, level):
                    return k
            find_runner_up(problem, ruled, arcs, outputs[part], part, values[part], work)
    return values.size
