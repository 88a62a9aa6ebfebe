"""Trees without crossing arcs, by Eisner's algorithm (1996), in any semiring.

Two tables grow from short spans to long ones. ``linked[h, m]`` adds up all that can be below the arc from h to m,
between the two, with the arc; ``whole[h, e]`` all that can be below h from there to the end e, on one side of it.

    linked[h, m] = arcs[h, m] * sum over u of whole[lo, u] * whole[hi, u + 1],   lo and hi the lesser and larger of h, m
    whole[h, e]  = sum over m from h, excluded, to e of linked[h, m] * whole[m, e]

The root is left of all words, and whole[0, n] is the sum over all trees. If it is to have a single word, whole[0, e] is
nothing for e < n: then it has none before another. Tables of derivatives go the other way.
"""

from __future__ import annotations

import math

from maxmargin.arrays.views import matrix
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.dependencies import arc_tables
from maxmargin.structures.dependencies.arc_tables import ROOT, ProjectiveProblem
from maxmargin.structures.scalar_semirings import Best, LogSums, Sums, add, has_underflown, one, pick, times, zero

WEIGHTS, LINKED, WHOLE, ABOVE_LINKED, ABOVE_WHOLE, LEVELS = range(6)


@helper
def table_of(work, level, size):
    """One of the tables, of a sentence with that many words and a root."""
    return matrix(work.tables, level * work.tables.shape[1], size, size)


@helper
def inside_tables(work, size):
    """The two tables."""
    return table_of(work, LINKED, size), table_of(work, WHOLE, size)


@helper
def fill_inside(semiring, problem, arcs, work):
    """Fill the two tables; return the sum over all trees."""
    size = arcs.shape[0]
    linked, whole = inside_tables(work, size)
    nothing = zero(semiring)
    for h in range(size):
        whole[h, h] = one(semiring)
    for width in range(1, size):
        for lo in range(size - width):
            hi = lo + width
            between = nothing
            for u in range(lo, hi):
                between = add(semiring, between, times(semiring, whole[lo, u], whole[hi, u + 1]))
            linked[lo, hi] = times(semiring, arcs[lo, hi], between)
            linked[hi, lo] = nothing if lo == ROOT else times(semiring, arcs[hi, lo], between)
            right = nothing
            left = nothing
            for m in range(lo, hi):
                right = add(semiring, right, times(semiring, linked[lo, m + 1], whole[m + 1, hi]))
                left = add(semiring, left, times(semiring, linked[hi, m], whole[m, lo]))
            is_second = problem.single_root and lo == ROOT and width < size - 1
            whole[lo, hi] = nothing if is_second else right
            whole[hi, lo] = nothing if lo == ROOT else left
    return whole[ROOT, size - 1]


@helper
def fill_outside(semiring, problem, arcs, work):
    """Fill the tables of derivatives of the sum over all trees by the entries of the two tables.

    Return `linked` and its derivatives, whose products are the sums over trees with an arc.
    """
    size = arcs.shape[0]
    linked, whole = inside_tables(work, size)
    above_linked, above_whole = table_of(work, ABOVE_LINKED, size), table_of(work, ABOVE_WHOLE, size)
    for h in range(size):
        for m in range(size):
            above_linked[h, m] = zero(semiring)
            above_whole[h, m] = zero(semiring)
    above_whole[ROOT, size - 1] = one(semiring)
    for width in range(size - 1, 0, -1):
        for lo in range(size - width):
            hi = lo + width
            if not (problem.single_root and lo == ROOT and width < size - 1):
                above = above_whole[lo, hi]
                for m in range(lo + 1, hi + 1):
                    below = times(semiring, above, whole[m, hi])
                    above_linked[lo, m] = add(semiring, above_linked[lo, m], below)
                    below = times(semiring, above, linked[lo, m])
                    above_whole[m, hi] = add(semiring, above_whole[m, hi], below)
            above = times(semiring, above_linked[lo, hi], arcs[lo, hi])
            if lo != ROOT:
                left = above_whole[hi, lo]
                for m in range(lo, hi):
                    above_linked[hi, m] = add(semiring, above_linked[hi, m], times(semiring, left, whole[m, lo]))
                    above_whole[m, lo] = add(semiring, above_whole[m, lo], times(semiring, left, linked[hi, m]))
                above = add(semiring, above, times(semiring, above_linked[hi, lo], arcs[hi, lo]))
            for u in range(lo, hi):
                below = times(semiring, above, whole[hi, u + 1])
                above_whole[lo, u] = add(semiring, above_whole[lo, u], below)
                below = times(semiring, above, whole[lo, u])
                above_whole[hi, u + 1] = add(semiring, above_whole[hi, u + 1], below)
    return linked, above_linked


@helper
def read_tree(semiring, size, draws, heads, rest, work):
    """Write the heads of a tree, picked from the top down by one number per word, and what is left of these numbers."""
    linked, whole = inside_tables(work, size)
    options, stack = work.options, work.stack
    stack[0, 0] = ROOT
    stack[0, 1] = size - 1
    n_open = 1
    n_read = 0
    while n_open > 0:
        n_open -= 1
        h = stack[n_open, 0]
        end = stack[n_open, 1]
        if h == end:
            continue
        step = 1 if end > h else -1
        n_options = abs(end - h)
        for k in range(n_options):
            m = h + step * (k + 1)
            options[k] = times(semiring, linked[h, m], whole[m, end])
        chosen, left = pick(semiring, options[:n_options], draws[n_read])
        m = h + step * (chosen + 1)
        lo = min(h, m)
        hi = max(h, m)
        for u in range(lo, hi):
            options[u - lo] = times(semiring, whole[lo, u], whole[hi, u + 1])
        split, left = pick(semiring, options[: hi - lo], left)
        heads[m - 1] = h
        rest[m - 1] = left
        n_read += 1
        for a, b in ((m, end), (lo, lo + split), (hi, lo + split + 1)):
            stack[n_open, 0] = a
            stack[n_open, 1] = b
            n_open += 1


@implements(arc_tables.find_heads, ProjectiveProblem)
def find_projective_heads(problem, arcs, heads, work):
    fill_inside(Best(), problem, arcs, work)
    read_tree(Best(), arcs.shape[0], work.rest, heads, work.rest, work)


@implements(arc_tables.find_through, ProjectiveProblem)
def find_projective_through(problem, arcs, through, work):
    size = arcs.shape[0]
    fill_inside(Best(), problem, arcs, work)
    linked, above = fill_outside(Best(), problem, arcs, work)
    for h in range(size):
        for m in range(1, size):
            through[h, m] = linked[h, m] + above[h, m]


@implements(arc_tables.find_others, ProjectiveProblem)
def find_other_projective(problem, arcs, heads, through, work):
    arc_tables.find_through(problem, arcs, through, work)


@implements(arc_tables.sum_trees, ProjectiveProblem)
def sum_projective_trees(problem, arcs, means, work):
    size = arcs.shape[0]
    weights = table_of(work, WEIGHTS, size)
    taken_out = arc_tables.fill_weights(arcs, weights, work.top)
    total = fill_inside(Sums(), problem, weights, work)
    if has_underflown(total, size - 1):
        log_z = fill_inside(LogSums(), problem, arcs, work)
        linked, above = fill_outside(LogSums(), problem, arcs, work)
        for h in range(size):
            for m in range(1, size):
                means[h, m] = math.exp(min(linked[h, m] + above[h, m] - log_z, 0.0)) if h != m else 0.0
        return log_z
    linked, above = fill_outside(Sums(), problem, weights, work)
    for h in range(size):
        for m in range(1, size):
            means[h, m] = linked[h, m] * above[h, m] / total if h != m else 0.0
    return taken_out + math.log(total)


@implements(arc_tables.start_drawing, ProjectiveProblem)
def start_drawing_projective(problem, arcs, work):
    fill_inside(LogSums(), problem, arcs, work)


@implements(arc_tables.draw_heads, ProjectiveProblem)
def draw_projective_heads(problem, arcs, draws, heads, rest, work):
    read_tree(LogSums(), arcs.shape[0], draws, heads, rest, work)
