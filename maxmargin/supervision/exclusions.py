"""Parts that are ruled out: flags of parts, one example after the other, or none at all where nothing is ruled out."""

from __future__ import annotations

import numpy as np

from maxmargin.arrays.blocks import Blocks, places_in, starts_of
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper

NOTHING_EXCLUDED = np.zeros(0, bool)


def exclude(excluded: np.ndarray, more: Blocks, sizes: np.ndarray) -> np.ndarray:
    """Flags of what is excluded and of what is to be so, too: of `sizes` parts of each example."""
    starts, given = starts_of(sizes), np.diff(more.starts)
    flags = np.zeros(starts[-1], bool)
    flags[np.repeat(starts[:-1], given) + places_in(given)] = more.values
    return flags | excluded if excluded.size else flags


def first_left(excluded: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Where parts are alternatives: the first of each example that is left, and whether there are several."""
    left = np.flatnonzero(~excluded.values)
    places = np.searchsorted(left, excluded.starts)
    return left[places[:-1]] - excluded.starts[:-1], np.diff(places) > 1


@helper
def rule_out_parts(excluded, start, parts):
    """Make those parts of an example impossible that are excluded; its flags begin at `start`, if there are any."""
    if excluded.size > 0:
        for p in range(parts.size):
            if excluded[start + p]:
                parts[p] = IMPOSSIBLE
