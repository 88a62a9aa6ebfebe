"""Assignments of rows to columns, where a row may stay unmatched: the best one, best ones through each pair.

Costs are minimised: cost[v, z] for matching row v with column z, unmatched[v] for leaving row v alone; TOO_MUCH rules
a choice out. Prices of rows u and columns p certify the best assignment: u[v] + p[z] <= cost[v, z] and u[v] <=
unmatched[v], with equality for what is chosen, and p <= 0, with equality for columns that nobody takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.views import matrix
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper

TOO_MUCH = 1e30  # above every sum of costs that can occur
NOBODY = -1


class AssignmentWork(NamedTuple):
    """Arrays for n rows and m columns."""

    cost: np.ndarray  # (n m,)
    unmatched: np.ndarray  # (n,)
    row_price: np.ndarray  # (n,)
    price: np.ndarray  # (m,) of the columns
    owner: np.ndarray  # (m,) the row that has the column, or NOBODY
    distance: np.ndarray  # (m,) from the row to be matched
    previous: np.ndarray  # (m,) the row before a column on the shortest path to it
    settled: np.ndarray  # (m,) the columns whose distance is final
    settled_price: np.ndarray  # (m,) their prices
    detour: np.ndarray  # ((n + 1)^2,) lengths of paths between rows


def assignment_work(n_rows: int, n_columns: int, n_cells: int) -> AssignmentWork:
    """Arrays for problems of at most these sizes."""
    return AssignmentWork(
        cost=aligned((n_cells,), np.float64),
        unmatched=aligned((n_rows,), np.float64),
        row_price=aligned((n_rows,), np.float64),
        price=aligned((n_columns,), np.float64),
        owner=aligned((n_columns,), np.int64),
        distance=aligned((n_columns,), np.float64),
        previous=aligned((n_columns,), np.int64),
        settled=aligned((n_columns,), np.int64),
        settled_price=aligned((n_columns,), np.float64),
        detour=aligned(((n_rows + 1) ** 2,), np.float64),
    )


@helper
def best_assignment(cost, match, work):
    """Write the column of each row, or NOBODY, into `match`; return whether there is an assignment at all.

    Rows are matched one at a time along shortest augmenting paths (Jonker and Volgenant 1987, Crouse 2016), which end
    at a column that is free or at a row that had better stay unmatched.
    """
    for z in range(cost.shape[1]):
        work.owner[z] = NOBODY
        work.price[z] = 0
    for v in range(cost.shape[0]):
        work.row_price[v] = 0
        match[v] = NOBODY
        if not match_row(cost, v, match, work):
            return False
    return True


@helper
def match_row(cost, first, match, work):
    """Match one more row, and move others if that is best; return False where it cannot be done."""
    n_columns = cost.shape[1]
    distance, previous, price = work.distance, work.previous, work.price
    for z in range(n_columns):
        distance[z] = TOO_MUCH
    row = first
    length = 0.0  # of the path to `row`
    shortest_exit = TOO_MUCH
    exit_row = NOBODY
    n_settled = 0
    while True:
        ahead = length - work.row_price[row]
        if ahead + work.unmatched[row] < shortest_exit:
            shortest_exit = ahead + work.unmatched[row]
            exit_row = row
        nearest = TOO_MUCH
        for z in range(n_columns):
            reached = ahead + cost[row, z] - price[z]
            previous[z] = row if reached < distance[z] else previous[z]
            distance[z] = min(reached, distance[z])
            nearest = min(nearest, distance[z])
        length = min(nearest, shortest_exit)
        if length >= TOO_MUCH / 2:
            return False
        column = NOBODY
        if length == shortest_exit:
            break
        column = 0
        while distance[column] != nearest:
            column += 1
        row = work.owner[column]
        if row == NOBODY:
            break
        work.settled[n_settled] = column
        work.settled_price[n_settled] = price[column] + length
        n_settled += 1
        distance[column] = TOO_MUCH
        price[column] = -2 * TOO_MUCH  # out of reach

    work.row_price[first] += length
    for k in range(n_settled):
        z = work.settled[k]
        price[z] = work.settled_price[k] - length
        work.row_price[work.owner[z]] = cost[work.owner[z], z] - price[z]
    if column == NOBODY:
        column = match[exit_row]
        match[exit_row] = NOBODY
    while column != NOBODY:
        row = previous[column]
        work.owner[column] = row
        after = match[row]
        match[row] = column
        column = after
    return True


@helper
def fill_detours(cost, match, work):
    """detour[a, b]: the least extra cost of finding room for row a if row b gives up what it has.

    Extra costs of single pairs are cost[v, z] - u[v] - p[z] >= 0; row a takes what the next row has, and so on. One
    more node stands for all that nobody has: columns without an owner, and staying unmatched. All shortest paths by
    Floyd and Warshall.
    """
    n_rows, n_columns = cost.shape
    detour = matrix(work.detour, 0, n_rows + 1, n_rows + 1)
    for a in range(n_rows):
        extra = work.unmatched[a]
        for z in range(n_columns):
            if work.owner[z] == NOBODY:
                extra = min(extra, cost[a, z])
        detour[a, n_rows] = extra - work.row_price[a]
        z = match[a]
        detour[n_rows, a] = 0 if z == NOBODY else -work.price[z]
        for b in range(n_rows):
            detour[b, a] = TOO_MUCH if z == NOBODY else cost[b, z] - work.row_price[b] - work.price[z]
        detour[a, a] = 0
    detour[n_rows, n_rows] = 0
    for k in range(n_rows + 1):
        for a in range(n_rows + 1):
            first = detour[a, k]
            for b in range(n_rows + 1):
                detour[a, b] = min(detour[a, b], first + detour[k, b])


@helper
def extra_cost(cost, match, v, z, work):
    """How much more the best assignment costs that matches row v with z, or with nothing: after `fill_detours`."""
    if match[v] == z:
        return 0.0
    n_rows = cost.shape[0]
    detour = matrix(work.detour, 0, n_rows + 1, n_rows + 1)
    if z == NOBODY:
        return max(work.unmatched[v] - work.row_price[v] + detour[n_rows, v], 0.0)
    owner = n_rows if work.owner[z] == NOBODY else work.owner[z]
    return max(cost[v, z] - work.row_price[v] - work.price[z] + detour[owner, v], 0.0)


@helper
def own_columns(match, owner):
    """Write down the rows that an assignment gives columns to."""
    for z in range(owner.size):
        owner[z] = NOBODY
    for v in range(match.size):
        if match[v] != NOBODY:
            owner[match[v]] = v
