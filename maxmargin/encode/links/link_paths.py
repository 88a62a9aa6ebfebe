"""Alignments as users give them, lists of links or of operations, as paths through a grid; and back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from maxmargin.encode.inputs.example_checks import check_array, check_truths
from maxmargin.encode.links.matching_encoder import as_match, link_costs
from maxmargin.structures.monotone.grid_paths import DELETE, ENDED, INSERT, MATCH, N_MOVES
from maxmargin.wording import quote

OPERATIONS = "MDI"  # in the order of moves
STEPS = {(1, 1): MATCH, (1, 0): DELETE, (0, 1): INSERT}  # from one link to the next, where one side is warped


def read_paths(y: object, sides: np.ndarray, warps: bool) -> list[np.ndarray]:
    """Check alignments; return the output of each."""
    y = check_truths(y, len(sides), "one alignment per example", "example")
    return [read_path(links, sides[i], warps, f"y[{i}]") for i, links in enumerate(y)]


def read_path(links: object, sides: np.ndarray, warps: bool, name: str) -> np.ndarray:
    """The output of an alignment, checked."""
    n_left, n_right = sides.tolist()
    read = _read_warped if warps else _read_edited
    return as_path(read(links, n_left, n_right, name), n_left, n_right)


def as_path(moves: list[int], n_left: int, n_right: int) -> np.ndarray:
    """The output of an alignment with these moves."""
    steps = np.array(moves, np.int64)
    nodes = np.cumsum(steps != INSERT) * (n_right + 1) + np.cumsum(steps != DELETE)
    return np.append(nodes * N_MOVES + steps, np.full(n_left + n_right - len(steps), ENDED)).astype(np.int32)


def links_of(path: np.ndarray, n_right: int, warps: bool) -> np.ndarray:
    """The links of an output, (L, 2)."""
    nodes, moves = np.divmod(path[path != ENDED], N_MOVES)
    return np.column_stack(np.divmod(nodes[warps | (moves == MATCH)], n_right + 1)) - 1


def match_of(path: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """The right item of each left item, or -1, of an output whose items are edited."""
    match = np.full(sides[0], -1, np.int32)
    left, right = links_of(path, sides[1], warps=False).T
    match[left] = right
    return match


def flag_links(path: np.ndarray, sides: np.ndarray, warps: bool) -> np.ndarray:
    """Flags of the links of an output and, in the last column, of left items without one: (m, n + 1)."""
    table = np.zeros((sides[0], sides[1] + 1), bool)
    table[tuple(links_of(path, sides[1], warps).T)] = True
    table[:, -1] = ~table.any(axis=1)
    return table


def path_costs(is_open: np.ndarray, wrong_cost: float, missed_cost: float, warps: bool) -> list[np.ndarray]:
    """What parts cost, from flags of those that may be true (`flag_links`)."""
    if not warps:
        return [*link_costs(is_open, wrong_cost, missed_cost), np.zeros(is_open.shape[1] - 1)]
    cells = is_open[:, :-1].ravel()
    costs = np.where(cells, -missed_cost, wrong_cost)
    costs[0] += missed_cost * cells.sum()  # every path has the first link
    return [costs]


def _read_edited(links: object, n_left: int, n_right: int, name: str) -> list[int]:
    if isinstance(links, str):
        moves = _read_operations(links, n_left, n_right, name)
        links = links_of(as_path(moves, n_left, n_right), n_right, warps=False)
    match = as_match(links, np.array([n_left, n_right]), name)
    moves, i, j = [], 0, 0
    for left in np.flatnonzero(match >= 0).tolist():
        if match[left] < j:
            (before,) = np.flatnonzero(match == j - 1)
            raise ValueError(f"{name} has links that cross: ({before}, {j - 1}) and ({left}, {match[left]}).")
        moves += [DELETE] * (left - i) + [INSERT] * (int(match[left]) - j) + [MATCH]
        i, j = left + 1, int(match[left]) + 1
    return moves + [DELETE] * (n_left - i) + [INSERT] * (n_right - j)


def _read_warped(links: object, n_left: int, n_right: int, name: str) -> list[int]:
    if isinstance(links, str):
        moves = _read_operations(links, n_left, n_right, name)
        if moves[0] != MATCH:
            raise ValueError(f"{name} must begin with M, the link of the first items of both sides.")
        return moves
    array = check_array(links, name, "a list of links, pairs of a left and a right item", (None, 2), dtypes="iu")
    cells = [(-1, -1), *sorted({*map(tuple, array.tolist())})]
    for (i, j), (left, right) in pairwise(cells):
        if (left - i, right - j) not in STEPS:
            has_crossed = right < j
            why = "which cross" if has_crossed else "with items between them that have none"
            links = (
                f"the links ({i}, {j}) and ({left}, {right}), {why}" if i >= 0 else f"the first link ({left}, {right})"
            )
            raise ValueError(f"{name} has {links}: where one side is warped, links must lead on from (0, 0).")
    if cells[-1] != (n_left - 1, n_right - 1):
        raise ValueError(f"{name} must end with the link {(n_left - 1, n_right - 1)}, but ends with {cells[-1]}.")
    return [STEPS[left - i, right - j] for (i, j), (left, right) in pairwise(cells)]


def _read_operations(operations: str, n_left: int, n_right: int, name: str) -> list[int]:
    """Moves from a letter for each."""
    for operation in operations:
        if operation not in OPERATIONS:
            raise ValueError(f"{name} must be made of the operations M, D and I, not {quote(operation)}.")
    moves = [OPERATIONS.index(operation) for operation in operations]
    taken = tuple(len(moves) - moves.count(other) for other in (INSERT, DELETE))
    if taken != (n_left, n_right):
        raise ValueError(
            f"{name} takes {taken[0]} left and {taken[1]} right items, but there are {n_left} and {n_right}."
        )
    return moves
