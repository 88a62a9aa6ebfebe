"""Parts that are ruled out: flags of the first parts of each example, or none at all where nothing is ruled out."""

from __future__ import annotations

import numpy as np

from maxmargin.arrays.blocks import Blocks, places_in, starts_of
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper


class NoFlags(TypeError):
    """Raised by `restrict` of structures that are restricted by something else than flags of parts."""


def first_left(excluded: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Where parts are alternatives: the first of each example that is left, and whether there are several."""
    left = np.flatnonzero(~excluded.values)
    places = np.searchsorted(left, excluded.starts)
    return left[places[:-1]] - excluded.starts[:-1], np.diff(places) > 1


def nothing_excluded(n: int) -> Blocks:
    """No flags of n examples."""
    return Blocks(np.zeros(0, bool), np.zeros(n + 1, np.int64))


def exclude_labels(table: np.ndarray, starts: np.ndarray) -> Blocks:
    """From a table (N, L) of flags, whose rows starts[i]:starts[i + 1] are the nodes of example i; it may be empty."""
    return Blocks(table.ravel(), table.shape[1] * starts) if len(table) else nothing_excluded(len(starts) - 1)


def exclude_more(excluded: Blocks, more: Blocks) -> Blocks:
    """What either of two says."""
    if not excluded.values.size:
        return Blocks(np.ascontiguousarray(more.values, bool), np.ascontiguousarray(more.starts, np.int64))
    starts = starts_of(np.maximum(np.diff(excluded.starts), np.diff(more.starts)))
    flags = np.zeros(starts[-1], bool)
    for values, begin in (excluded, more):
        sizes = np.diff(begin)
        flags[np.repeat(starts[:-1], sizes) + places_in(sizes)] |= values
    return Blocks(flags, starts)


def exclude_parts(problem, excluded):
    """The `restrict` of structures that keep flags of excluded parts."""
    return problem._replace(excluded=exclude_more(problem.excluded, excluded))


@helper
def rule_out(excluded, i, theta):
    """Make the potentials of excluded parts of example i impossible."""
    first = excluded.starts[i]
    for p in range(excluded.starts[i + 1] - first):
        if excluded.values[first + p]:
            theta[p] = IMPOSSIBLE
