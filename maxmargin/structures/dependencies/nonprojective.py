"""Trees whose arcs may cross: the best ones by contracting cycles, sums by eliminating words."""

from __future__ import annotations

import math

from maxmargin.arrays.views import matrix
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.dependencies import arc_tables
from maxmargin.structures.dependencies.arborescence import best_arborescence
from maxmargin.structures.dependencies.arc_tables import ROOT, NonprojectiveProblem
from maxmargin.structures.dependencies.matrix_tree import (
    copy_left,
    eliminate_range,
    share_all_heads,
    share_heads,
    table_of,
)
from maxmargin.structures.scalar_semirings import NEVER, LogSums, Sums, pick


@implements(arc_tables.find_heads, NonprojectiveProblem)
def find_crossing_heads(problem, arcs, heads, work):
    best_arborescence(arcs, problem.single_root, heads, work.cycles)
    if problem.single_root:
        keep_one_root(heads, arcs.shape[0] - 1)


@helper
def keep_one_root(heads, n_words):
    """Put other roots below the first: there are some only where no tree of a single one is possible."""
    first = ROOT
    for m in range(1, n_words + 1):
        if heads[m - 1] == ROOT:
            heads[m - 1] = first
            first = m if first == ROOT else first


@helper
def score_heads(arcs, heads):
    """The score of a tree."""
    total = 0.0
    for m in range(1, arcs.shape[0]):
        total += arcs[heads[m - 1], m]
    return total


@helper
def find_without(problem, arcs, m, h, is_forced, work):
    """The score of the best tree that has the arc from h to m, or has not; its heads are left in `work.heads`."""
    size = arcs.shape[0]
    options = work.options
    for head in range(size):
        options[head] = arcs[head, m]
        if head != m and (head == h) != is_forced:
            arcs[head, m] = NEVER / size
    arc_tables.find_heads(problem, arcs, work.heads, work)
    score = score_heads(arcs, work.heads)
    for head in range(size):
        arcs[head, m] = options[head]
    return score


@implements(arc_tables.find_through, NonprojectiveProblem)
def find_crossing_through(problem, arcs, through, work):
    size = arcs.shape[0]
    for m in range(1, size):
        for h in range(size):
            if h != m:
                through[h, m] = find_without(problem, arcs, m, h, True, work)


@implements(arc_tables.find_others, NonprojectiveProblem)
def find_other_crossing(problem, arcs, heads, through, work):
    size = arcs.shape[0]
    for m in range(1, size):
        for h in range(size):
            through[h, m] = NEVER
        score = find_without(problem, arcs, m, heads[m - 1], False, work)
        through[work.heads[m - 1], m] = score


@helper
def fill_logs(arcs, weights, top):
    """Weights = arcs less the best to each word, and of impossible arcs so little that no tree has any."""
    size = arcs.shape[0]
    lowest = 0.0
    for m in range(1, size):
        for h in range(size):
            if h != m and arcs[h, m] > IMPOSSIBLE / 2:
                lowest = min(lowest, arcs[h, m] - top[m])
    for m in range(1, size):
        for h in range(size):
            is_possible = h != m and arcs[h, m] > IMPOSSIBLE / 2
            weights[h, m] = arcs[h, m] - top[m] if is_possible else size * (lowest - 1) - 100


@implements(arc_tables.sum_trees, NonprojectiveProblem)
def sum_crossing_trees(problem, arcs, means, work):
    size = arcs.shape[0]
    weights = table_of(work.walk, 0, size)
    taken_out = arc_tables.fill_weights(arcs, weights, work.top)
    log_z = share_all_heads(Sums(), size, problem.single_root, work.walk, means)
    if log_z == NEVER:
        arc_tables.find_heads(problem, arcs, work.heads, work)
        best = score_heads(arcs, work.heads)
        fill_logs(arcs, weights, work.top)
        log_z = share_all_heads(LogSums(), size, problem.single_root, work.walk, means)
        for m in range(1, size):
            for h in range(size):
                is_possible = h != m and arcs[h, m] > IMPOSSIBLE / 2
                means[h, m] = math.exp(min(means[h, m], 0.0)) if is_possible else 0.0
        if best < IMPOSSIBLE / 2:
            return best  # no tree is possible, of which sums of what is nearly nothing do not tell
    return taken_out + log_z


@implements(arc_tables.start_drawing, NonprojectiveProblem)
def start_drawing_crossing(problem, arcs, work):
    pass


@implements(arc_tables.draw_heads, NonprojectiveProblem)
def draw_crossing_heads(problem, arcs, draws, heads, rest, work):
    """Word by word: each head is drawn by its probability, given those before, in O(n^4) for all of them."""
    size = arcs.shape[0]
    weights = table_of(work.walk, 0, size)
    left = table_of(work.walk, 1, size)
    shares = matrix(work.through, 0, size, size)
    arc_tables.fill_weights(arcs, weights, work.top)
    fill_logs(arcs, weights, work.top)
    nothing = size * (weights[:, 1:size].min() - 1)
    for m in range(1, size):
        copy_left(weights, 1, size, left)
        eliminate_range(LogSums(), left, 1, size, 1, m, problem.single_root, work.walk)
        eliminate_range(LogSums(), left, m, size, m + 1, size, problem.single_root, work.walk)
        share_heads(LogSums(), weights, left, m, work.walk.totals, shares)
        for h in range(size):
            work.options[h] = shares[h, m] if h != m else NEVER
        head, rest[m - 1] = pick(LogSums(), work.options[:size], draws[m - 1])
        heads[m - 1] = head
        for h in range(size):
            if h != head:
                weights[h, m] = nothing
