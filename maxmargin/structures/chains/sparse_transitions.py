"""The transitions that labellings of a chain may have, where these are few of all pairs of labels.

They are numbered by their first label, then by the second: dynamic programs go along those that leave a label on their
way back, and along those that arrive at one, which lie one after the other in another order, on their way forward.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.runtime.dispatch import helper

NONE = -1  # of two labels that are no transition, of a transition that has no weight
FEWEST_LABELS, LARGEST_SHARE = 64, 0.1  # of chains that are faster so: see `benchmarks.labels`


class Transitions(NamedTuple):
    """A transitions of L labels; unsigned, as Numba checks signed indices for negative ones."""

    starts: np.ndarray  # (L + 1,) uint32, those that leave label a are starts[a]:starts[a + 1]
    after: np.ndarray  # (A,) uint32, the labels that they arrive at
    arriving: np.ndarray  # (A,) uint32, the same transitions by the label that they arrive at, then by the first
    before: np.ndarray  # (A,) uint32, the labels that those leave
    ends: np.ndarray  # (L + 1,) uint32, those that arrive at label b are ends[b]:ends[b + 1] of them
    number: np.ndarray  # (L, L) int32, the number of the transition of two labels, or NONE
    weight: np.ndarray  # (A,) int64, the number of its weight among those of transitions, or NONE


def are_few(allowed: np.ndarray) -> bool:
    """Whether dynamic programs are faster along single transitions than along all pairs of labels, eight at a time."""
    return len(allowed) >= FEWEST_LABELS and allowed.mean() <= LARGEST_SHARE


def list_transitions(allowed: np.ndarray, weighted: np.ndarray | None = None) -> Transitions:
    """The transitions that an (L, L) table allows.

    `weighted` are the pairs of labels a L + b that have a weight, ascending; None if all do, allowed or not.
    """
    before, after = np.nonzero(allowed)
    number = np.full(allowed.shape, NONE, np.int32)
    number[before, after] = np.arange(len(before))
    arriving = np.lexsort((before, after))
    pairs = before * len(allowed) + after
    weight = pairs
    if weighted is not None:
        weight = np.searchsorted(weighted, pairs)
        weight[~np.isin(pairs, weighted)] = NONE
    return Transitions(
        starts=starts_of(allowed.sum(axis=1)).astype(np.uint32),
        after=after.astype(np.uint32),
        arriving=arriving.astype(np.uint32),
        before=before[arriving].astype(np.uint32),
        ends=starts_of(allowed.sum(axis=0)).astype(np.uint32),
        number=number,
        weight=weight.astype(np.int64),
    )


@helper
def sort_scores(scores, transitions, arrivals):
    """Put the scores of transitions in the order in which these arrive."""
    for k in range(scores.size):
        arrivals[k] = scores[transitions.arriving[k]]
