"""Labels of sequences that agree with what is known of them, and keep to the transitions that are allowed."""

from __future__ import annotations

import numpy as np


def complete_paths(
    allowed: np.ndarray, may_follow: np.ndarray, may_end: np.ndarray, starts: np.ndarray, name: str
) -> np.ndarray:
    """(N,) labels of sequences, the lowest ones when read from the end; raises where there are none.

    Parameters
    ----------
    allowed
        (N, L) flags of the labels that each position may have.
    may_follow
        (L, L) whether the column may follow the row.
    may_end
        (2, L) whether a label may be the first, and the last.
    starts
        (n + 1,) where sequences begin.
    name
        What is known of them, for messages.
    """
    lengths = np.diff(starts)
    reachable = allowed.copy()
    follows = may_follow.astype(np.float32)
    for t in range(int(lengths.max(initial=0))):
        examples = np.flatnonzero(lengths > t)
        at = starts[examples] + t
        if t == 0:
            reachable[at] &= may_end[0]
        else:
            reachable[at] &= reachable[at - 1].astype(np.float32) @ follows > 0
        last = at[lengths[examples] == t + 1]
        reachable[last] &= may_end[1]
        is_lost = ~reachable[at].any(axis=1)
        if is_lost.any():
            i = int(examples[np.argmax(is_lost)])
            raise ValueError(
                f"{name}[{i}] leaves no labelling: no label at position {t} keeps to what it says there, and, after "
                "the labels before, to allowed_transitions and constraints."
            )
    labels = np.zeros(len(allowed), np.int64)
    for t in range(int(lengths.max(initial=0)) - 1, -1, -1):
        examples = np.flatnonzero(lengths > t)
        at = starts[examples] + t
        options = reachable[at]
        goes_on = lengths[examples] > t + 1
        options[goes_on] &= may_follow[:, labels[at[goes_on] + 1]].T
        labels[at] = np.argmax(options, axis=1)
    return labels
