"""Sums over the paths through a grid, in any semiring.

A path goes from node (0, 0) to node (m, n), by moves that take the next item of both sides, of the left one or of the
right one. Nodes are numbered by rows, i (n + 1) + j. ``entry[node, move]`` is what it takes to get to a node by a move,
``turn[a, b]`` what it takes to make move b after move a; the first move comes after a `MATCH`.

    ahead[node, a]  = sum over moves b of turn[a, b] * entry[next, b] * ahead[next, b]       from there to the end
    behind[node, b] = entry[node, b] * sum over moves a of behind[last, a] * turn[a, b]      from the start to there
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import clear, first_best
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.k_best import branch_off, offer, take
from maxmargin.structures.scalar_semirings import Best, add, as_share, one, pick, times, zero

MATCH, DELETE, INSERT, N_MOVES = range(4)
START = MATCH  # node 0, after a match
ENDED = -1  # in place of a move, after the last one


class Grid(NamedTuple):
    """A grid and its tables; the choices of its K best paths are moves from the start on."""

    entry: np.ndarray  # (nodes, 3)
    turn: np.ndarray  # (3, 3)
    n_left: int
    n_right: int
    ahead: np.ndarray  # (nodes, 3)
    behind: np.ndarray  # (nodes, 3)
    options: np.ndarray  # (3,)


@helper
def next_node(node, move, n_right):
    """The node that a move leads to."""
    return node + (0 if move == INSERT else n_right + 1) + (0 if move == DELETE else 1)


@helper
def can_move(node, move, n_left, n_right):
    """Whether a move stays within the grid."""
    return (move == INSERT or node // (n_right + 1) < n_left) and (move == DELETE or node % (n_right + 1) < n_right)


@helper
def fill_ahead(semiring, grid):
    """Fill the table from the end on; return the sum over all paths."""
    entry, turn, n_left, n_right, ahead, _, _ = grid
    last = entry.shape[0] - 1
    for move in range(N_MOVES):
        ahead[last, move] = one(semiring)
    for node in range(last - 1, -1, -1):
        i = node // (n_right + 1)
        j = node - i * (n_right + 1)
        below = node + n_right + 1
        match = zero(semiring)
        delete = zero(semiring)
        insert = zero(semiring)
        if i < n_left and j < n_right:
            match = times(semiring, entry[below + 1, MATCH], ahead[below + 1, MATCH])
        if i < n_left:
            delete = times(semiring, entry[below, DELETE], ahead[below, DELETE])
        if j < n_right:
            insert = times(semiring, entry[node + 1, INSERT], ahead[node + 1, INSERT])
        for before in range(N_MOVES):
            total = times(semiring, turn[before, MATCH], match)
            total = add(semiring, total, times(semiring, turn[before, DELETE], delete))
            ahead[node, before] = add(semiring, total, times(semiring, turn[before, INSERT], insert))
    return ahead[0, MATCH]


@helper
def fill_behind(semiring, grid):
    """Fill the table from the start on."""
    entry, turn, n_left, n_right, _, behind, _ = grid
    for node in range(entry.shape[0]):
        for move in range(N_MOVES):
            behind[node, move] = zero(semiring)
    behind[0, MATCH] = one(semiring)
    for node in range(entry.shape[0]):
        for move in range(N_MOVES):
            if can_move(node, move, n_left, n_right):
                after = next_node(node, move, n_right)
                total = times(semiring, behind[node, MATCH], turn[MATCH, move])
                total = add(semiring, total, times(semiring, behind[node, DELETE], turn[DELETE, move]))
                total = add(semiring, total, times(semiring, behind[node, INSERT], turn[INSERT, move]))
                behind[after, move] = times(semiring, total, entry[after, move])


@helper
def fill_options(semiring, grid, node, before):
    """The sums over all that is ahead of a node, by the next move."""
    entry, turn, n_left, n_right, ahead, _, options = grid
    for move in range(N_MOVES):
        options[move] = zero(semiring)
        if can_move(node, move, n_left, n_right):
            after = next_node(node, move, n_right)
            options[move] = times(semiring, turn[before, move], times(semiring, entry[after, move], ahead[after, move]))


@helper
def read_path(semiring, grid, draws, y):
    """Write a path, picked from the start on by one number per move: the nodes, each times 3 plus the move to it."""
    node = 0
    before = MATCH
    for s in range(y.size):
        if node == grid.entry.shape[0] - 1:
            y[s] = ENDED
            continue
        fill_options(semiring, grid, node, before)
        before, _ = pick(semiring, grid.options, draws[s])
        node = next_node(node, before, grid.n_right)
        y[s] = node * N_MOVES + before


@helper
def count_turns(semiring, grid, total, counts):
    """The expected number of times that each move is made after each other."""
    entry, turn, n_left, n_right, ahead, behind, _ = grid
    clear(counts)
    for node in range(entry.shape[0]):
        for move in range(N_MOVES):
            if can_move(node, move, n_left, n_right):
                after = next_node(node, move, n_right)
                rest = times(semiring, entry[after, move], ahead[after, move])
                for before in range(N_MOVES):
                    both = times(semiring, behind[node, before], turn[before, move])
                    counts[before * N_MOVES + move] += as_share(semiring, times(semiring, both, rest), total)


@implements(take, Grid)
def take_move(choices, y, s, option):
    y[s] = option


@implements(branch_off, Grid)
def branch_off_path(choices, y, s, branches):
    options = choices.options
    at = np.int64(START if s == 0 else y[s - 1])
    node = at // N_MOVES
    if at == ENDED or node == choices.entry.shape[0] - 1:
        y[s] = ENDED
        return
    fill_options(Best(), choices, node, at % N_MOVES)
    best = first_best(options)
    for move in range(N_MOVES):
        if move != best and can_move(node, move, choices.n_left, choices.n_right):
            option = next_node(node, move, choices.n_right) * N_MOVES + move
            offer(branches, s, option, max(options[best] - options[move], 0.0))
    y[s] = next_node(node, best, choices.n_right) * N_MOVES + best
