"""The K best outputs of structures whose outputs are made by choices, one after the other, and lists of the best.

Every choice loses a score that does not depend on what is chosen later, and the best one loses nothing. So every output
but the best follows a better one up to some choice s, takes another option there, and the best options from then on:
it *branches off* at s. The list holds the K best branches found so far: once entry k is reached it is final, and making
its choices yields its own branches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import copy_into, first_best
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import generic, helper

SOURCE, CHOICE, OPTION = 0, 1, 2  # the columns of a branch: the output it leaves, where, and for what


class Branches(NamedTuple):
    """The list, and the output whose branches are to be found."""

    values: np.ndarray  # (K,) scores, falling
    rows: np.ndarray  # (K, 3) int64
    k: int
    value: float  # values[k]
    least: float  # up to which scores have no weight


@generic
def take(choices, y, s, option):
    """Write the option that is taken at choice s into the output `y`, which has those of all choices before."""


@generic
def branch_off(choices, y, s, branches):
    """`offer` all options of choice s but the best, and `take` that one."""


@helper(forceinline=True)  # with all that it calls
def k_best(choices, n_choices, best, outputs, values, level, rows):
    """Write the K best outputs and their scores, best first, as long as they have a weight; return how many there are.

    `choices` says by its type how they are made, and `best` is the highest score. After k outputs, a score of at most
    (their sum - level) / k has no weight.
    """
    clear_list(values)
    make_room(values, rows, 0, best)
    rows[0, SOURCE] = 0
    rows[0, CHOICE] = -1
    least = IMPOSSIBLE / 2
    total = 0.0
    for k in range(values.size):
        if values[k] <= least:
            return k
        total += values[k]
        least = max(least, (total - level) / (k + 1))
        y = outputs[k]
        branch = rows[k, CHOICE]
        copy_into(y, outputs[rows[k, SOURCE]])
        if branch >= 0:
            take(choices, y, branch, rows[k, OPTION])
        for s in range(branch + 1, n_choices):
            branch_off(choices, y, s, Branches(values, rows, k, values[k], least))
    return values.size


@helper
def offer(branches, s, option, lost):
    """Put an option that loses this much at choice s on the list, if it is among the best."""
    values, rows, k, score, least = branches
    value = score - lost
    if value > max(values[values.size - 1], least):
        place = make_room(values, rows, k + 1, value)
        rows[place, SOURCE] = k
        rows[place, CHOICE] = s
        rows[place, OPTION] = option


@helper
def offer_others(branches, s, scores):
    """Offer all options of choice s but the best, by what they score; return that one."""
    best = first_best(scores)
    for option in range(scores.size):
        if option != best:
            offer(branches, s, option, scores[best] - scores[option])
    return best


@helper
def clear_list(values):
    """Make a list of nothing."""
    for k in range(values.size):
        values[k] = 2 * IMPOSSIBLE


@helper(forceinline=False)  # rarely called: the loops around it keep their registers
def make_room(values, rows, first, value):
    """Put a value that is above the last into a list of falling ones, after its equals; return its place.

    The rows that belong to the values move along, and the entries before `first` are final.
    """
    k = values.size - 1
    while k > first and values[k - 1] < value:
        values[k] = values[k - 1]
        for field in range(rows.shape[1]):
            rows[k, field] = rows[k - 1, field]
        k -= 1
    values[k] = value
    return k
