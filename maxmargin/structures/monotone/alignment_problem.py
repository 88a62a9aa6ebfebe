"""Monotone alignments of two sequences: which items of the left one are linked to which of the right one.

Alignments are of one of two sorts. Where items are *edited*, each has at most one link, links do not cross, and the
others are deleted, on the left, or inserted, on the right; what is deleted between two links comes before what is
inserted, so that every set of links is one path. Where one side is *warped* onto the other, every item has at least one
link: links are the cells that a path goes through, from the first items of both sides to the last.

An output of example i is a path through the grid (`grid_paths`): the nodes it gets to, each times 3 plus the move to
it, then -1. Its parts are the m x n indicators of links, then, where items are edited, those of the m deleted and of
the n inserted items, each with a row of features and one weight per feature; then the 3 x 3 counts of moves after each
other, whose weights come last: what it costs to open a gap, and to go on with it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import clear, inner
from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.features import score_parts, spread_parts, squared_norm_parts
from maxmargin.features.linear_map import as_matrix
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import k_best
from maxmargin.structures.monotone.grid_paths import (
    DELETE,
    ENDED,
    INSERT,
    MATCH,
    N_MOVES,
    Grid,
    count_turns,
    fill_ahead,
    fill_behind,
    read_path,
)
from maxmargin.structures.scalar_semirings import NEVER, Best, LogSums, Sums, as_share, times
from maxmargin.supervision.exclusions import exclude_parts, rule_out

N_TURNS = N_MOVES * N_MOVES
MOST_ITEMS = 200  # whose sums cannot overflow: there are fewer than 3^200 paths, of weights of at most 1
LEAST_SUM = 1e-150  # beside which that many paths, each too light to be told from nothing, are nothing


class AlignmentSupervision(NamedTuple):
    """The true paths, and what others cost."""

    paths: np.ndarray  # (sum of m + n,) int32
    cost: np.ndarray  # (rows,) the cost of each part that has features; (0,) where there are none


class AlignmentProblem(NamedTuple):
    """The parts of example i, but for the last nine, have the rows starts[i]:starts[i + 1]."""

    features: Any
    starts: np.ndarray  # (n + 1,) int64
    path_starts: np.ndarray  # (n + 1,) int64, of outputs
    sides: np.ndarray  # (n, 2) int64, the numbers of left and right items
    supervision: AlignmentSupervision
    excluded: Blocks  # flags of parts that are ruled out
    n_features: int
    warps: bool


class AlignmentWork(NamedTuple):
    """Tables for grids of up to so many nodes, and up to K outputs."""

    entry: np.ndarray  # (nodes x 3,)
    ahead: np.ndarray  # (nodes x 3,)
    behind: np.ndarray  # (nodes x 3,)
    turn: np.ndarray  # (3, 3)
    counts: np.ndarray  # (9,) of moves after each other
    options: np.ndarray  # (3,)
    draws: np.ndarray  # (m + n,) which nobody looks at
    spread: np.ndarray  # (F,) of direction norms
    branches: np.ndarray  # (K, 3) of the top-K oracle


@implements(generics.true_outputs, AlignmentProblem)
def true_paths(problem):
    return Blocks(problem.supervision.paths, problem.path_starts)


@implements(generics.new_weights, AlignmentProblem)
def new_alignment_weights(problem):
    return np.zeros(problem.n_features + N_TURNS, problem.supervision.cost.dtype)


@implements(generics.part_sizes, AlignmentProblem)
def alignment_part_sizes(problem):
    return np.diff(problem.starts) + N_TURNS


implements(generics.restrict, AlignmentProblem)(exclude_parts)


@implements(generics.squared_diameters, AlignmentProblem)
def alignment_squared_diameters(problem):
    """By the largest features of a part, of which no path has more than it has moves."""
    rows = as_matrix(problem.features, int(problem.starts[-1])).astype(np.float64)
    norms = np.sqrt(np.append(np.asarray((rows * rows).sum(axis=1)).ravel(), 0.0))
    n_moves = problem.sides.sum(axis=1)
    bounds = zip(problem.starts[:-1], problem.starts[1:], strict=True)
    largest = np.array([norms[lo:hi].max(initial=0.0) for lo, hi in bounds])
    return np.square(2 * n_moves) * (np.square(largest) + 1)


@implements(generics.workspace, AlignmentProblem)
def alignment_workspace(problem, n_best):
    size = int((problem.sides + 1).prod(axis=1).max()) * N_MOVES
    return AlignmentWork(
        entry=aligned((size,), np.float64),
        ahead=aligned((size,), np.float64),
        behind=aligned((size,), np.float64),
        turn=aligned((N_MOVES, N_MOVES), np.float64),
        counts=aligned((N_TURNS,), np.float64),
        options=aligned((N_MOVES,), np.float64),
        draws=aligned((int(problem.sides.sum(axis=1).max()),), np.float64),
        spread=aligned((problem.n_features,), problem.supervision.cost.dtype),
        branches=aligned((n_best, 3), np.int64),
    )


@implements(generics.scores, AlignmentProblem)
def alignment_scores(problem, w, i, theta):
    score_parts(problem.features, w[: problem.n_features], problem.starts[i], problem.starts[i + 1], theta)
    for k in range(N_TURNS):
        theta[theta.size - N_TURNS + k] = w[problem.n_features + k]
    rule_out(problem.excluded, i, theta)


@implements(generics.spread, AlignmentProblem)
def spread_alignment(problem, w, i, delta, scale):
    weights = w[: problem.n_features]
    spread_parts(problem.features, weights, problem.starts[i], problem.starts[i + 1], delta, scale)
    for k in range(N_TURNS):
        w[problem.n_features + k] += scale * delta[delta.size - N_TURNS + k]


@implements(generics.squared_norm, AlignmentProblem)
def alignment_squared_norm(problem, i, delta, work):
    total = squared_norm_parts(problem.features, i, problem.starts[i], problem.starts[i + 1], delta, work.spread)
    turns = delta[delta.size - N_TURNS :]
    return total + inner(turns, turns)


@implements(generics.augment, AlignmentProblem)
def augment_alignment(problem, i, theta):
    cost = problem.supervision.cost
    if cost.size > 0:
        for p in range(theta.size - N_TURNS):
            theta[p] += cost[problem.starts[i] + p]


@helper
def part_of(problem, i, node, move):
    """The part, of those with features, that a path has where it gets to a node by a move."""
    n_left = problem.sides[i, 0]
    n_right = problem.sides[i, 1]
    left = node // (n_right + 1) - 1
    right = node % (n_right + 1) - 1
    if move == MATCH or problem.warps:
        return left * n_right + right
    return n_left * n_right + (left if move == DELETE else n_left + right)


@implements(generics.add_output, AlignmentProblem)
def add_path(problem, i, y, scale, mu):
    before = np.int64(MATCH)
    for s in range(y.size):
        if y[s] == ENDED:
            return
        move = np.int64(y[s]) % N_MOVES
        mu[part_of(problem, i, np.int64(y[s]) // N_MOVES, move)] += scale
        mu[mu.size - N_TURNS + before * N_MOVES + move] += scale
        before = move


@implements(generics.score_output, AlignmentProblem)
def score_path(problem, i, theta, y):
    before = np.int64(MATCH)
    total = 0.0
    for s in range(y.size):
        if y[s] == ENDED:
            return total
        move = np.int64(y[s]) % N_MOVES
        total += theta[part_of(problem, i, np.int64(y[s]) // N_MOVES, move)]
        total += theta[theta.size - N_TURNS + before * N_MOVES + move]
        before = move
    return total


@helper
def grid_of(problem, i, work):
    """The grid of example i, with a row of each table per node and a column per move."""
    n_left = problem.sides[i, 0]
    n_right = problem.sides[i, 1]
    size = (n_left + 1) * (n_right + 1)
    entry = matrix(work.entry, 0, size, N_MOVES)
    ahead = matrix(work.ahead, 0, size, N_MOVES)
    return Grid(entry, work.turn, n_left, n_right, ahead, matrix(work.behind, 0, size, N_MOVES), work.options)


@helper
def fill_scores(problem, i, theta, grid):
    """The scores of getting into nodes, and of moves after each other."""
    entry, turn, _, n_right, _, _, _ = grid
    for node in range(entry.shape[0]):
        is_first_left = node // (n_right + 1) == 0
        is_first_right = node % (n_right + 1) == 0
        for move in range(N_MOVES):
            takes_first = is_first_left and (move != INSERT or problem.warps)
            takes_first = takes_first or (is_first_right and (move != DELETE or problem.warps))
            entry[node, move] = NEVER if takes_first else theta[part_of(problem, i, node, move)]
    for before in range(N_MOVES):
        for move in range(N_MOVES):
            turn[before, move] = theta[theta.size - N_TURNS + before * N_MOVES + move]
    if not problem.warps:
        turn[INSERT, DELETE] = NEVER


@implements(generics.max_oracle, AlignmentProblem)
def best_path(problem, i, theta, y, work):
    grid = grid_of(problem, i, work)
    fill_scores(problem, i, theta, grid)
    fill_ahead(Best(), grid)
    read_path(Best(), grid, work.draws, y)
    return generics.score_output(problem, i, theta, y)


@implements(generics.topk_oracle, AlignmentProblem)
def best_k_paths(problem, i, theta, outputs, values, level, work):
    grid = grid_of(problem, i, work)
    fill_scores(problem, i, theta, grid)
    best = fill_ahead(Best(), grid)
    count = k_best(grid, outputs.shape[1], best, outputs, values, level, work.branches)
    generics.rank(problem, i, theta, outputs, values, count)
    return count


@implements(generics.max_marginals, AlignmentProblem)
def alignment_max_marginals(problem, i, theta, out, work):
    grid = grid_of(problem, i, work)
    fill_scores(problem, i, theta, grid)
    fill_ahead(Best(), grid)
    fill_behind(Best(), grid)
    for p in range(theta.size - N_TURNS):
        out[p] = NEVER
    for node in range(grid.entry.shape[0]):
        for move in range(N_MOVES):
            if grid.entry[node, move] > NEVER / 2:
                p = part_of(problem, i, node, move)
                out[p] = max(out[p], grid.behind[node, move] + grid.ahead[node, move])


@helper
def weigh(grid):
    """Turn scores into weights of at most 1: exp(score less as much per item as any move has); return that."""
    entry, turn, _, _, _, _, _ = grid
    per_item = IMPOSSIBLE
    for move in range(N_MOVES):
        largest = max(turn[MATCH, move], turn[DELETE, move], turn[INSERT, move])
        n_items = 2.0 if move == MATCH else 1.0
        for node in range(entry.shape[0]):
            per_item = max(per_item, (entry[node, move] + largest) / n_items)
    for move in range(N_MOVES):
        largest = max(turn[MATCH, move], turn[DELETE, move], turn[INSERT, move])
        taken_out = per_item * (2 if move == MATCH else 1) - largest
        for node in range(entry.shape[0]):
            entry[node, move] = math.exp(entry[node, move] - taken_out)
        for before in range(N_MOVES):
            turn[before, move] = math.exp(turn[before, move] - largest)
    return per_item


@helper
def average_parts(semiring, problem, i, grid, total, mu, counts):
    """Write mean parts, with the table ahead, and the sum over all paths, at hand."""
    fill_behind(semiring, grid)
    clear(mu)
    for node in range(1, grid.entry.shape[0]):
        for move in range(N_MOVES):
            share = as_share(semiring, times(semiring, grid.behind[node, move], grid.ahead[node, move]), total)
            if share > 0:
                mu[part_of(problem, i, node, move)] += share
    count_turns(semiring, grid, total, counts)
    for k in range(N_TURNS):
        mu[mu.size - N_TURNS + k] = counts[k]


@implements(generics.exp_oracle, AlignmentProblem)
def sum_paths(problem, i, theta, mu, work):
    grid = grid_of(problem, i, work)
    fill_scores(problem, i, theta, grid)
    n_items = grid.n_left + grid.n_right
    if n_items <= MOST_ITEMS:
        per_item = weigh(grid)
        total = fill_ahead(Sums(), grid)
        if total > LEAST_SUM:
            average_parts(Sums(), problem, i, grid, total, mu, work.counts)
            return math.log(total) + per_item * n_items
        fill_scores(problem, i, theta, grid)
    log_z = fill_ahead(LogSums(), grid)
    average_parts(LogSums(), problem, i, grid, log_z, mu, work.counts)
    return log_z


@implements(generics.sample_oracle, AlignmentProblem)
def draw_paths(problem, i, theta, draws, outputs, work):
    grid = grid_of(problem, i, work)
    fill_scores(problem, i, theta, grid)
    fill_ahead(LogSums(), grid)
    for k in range(outputs.shape[0]):
        read_path(LogSums(), grid, draws[k], outputs[k])
