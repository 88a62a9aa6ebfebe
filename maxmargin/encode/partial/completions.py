"""Labels of sequences that agree with what is known of them, and keep to the transitions that are allowed."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np


class MeanPaths(NamedTuple):
    """Independent labels of positions, given that they keep to the transitions that are allowed, as tables (N, L).

    At t, a is followed by b with probability leaving[t, a] arriving[t + 1, b], which sums to that of b there, and both
    by c with leaving[t, a] through[t + 1, b] arriving[t + 2, c]: where the transitions are allowed.
    """

    means: np.ndarray
    leaving: np.ndarray
    through: np.ndarray
    arriving: np.ndarray


def mean_paths(shares: np.ndarray, may_follow: np.ndarray, may_end: np.ndarray, starts: np.ndarray) -> MeanPaths:
    """What is expected of labels with probabilities `shares`, (N, L), if they must keep to transitions.

    Other arguments are those of `complete_paths`. Raises where no labelling has a probability above zero.
    """
    lengths, follows = np.diff(starts), may_follow.astype(float)
    arriving, onward, means = np.zeros(shares.shape), np.zeros(shares.shape), np.zeros(shares.shape)
    for t in range(int(lengths.max(initial=0)) - 1, -1, -1):
        examples = np.flatnonzero(lengths > t)
        at, goes_on = starts[examples] + t, lengths[examples] > t + 1
        onward[at[~goes_on]] = may_end[1]
        onward[at[goes_on]] = arriving[at[goes_on] + 1] @ follows.T
        arriving[at] = shares[at] * onward[at] * (may_end[0] if t == 0 else 1.0)
        total = arriving[at].sum(axis=1, keepdims=True)
        if not total.all():
            _refuse("y", int(examples[np.argmin(total)]), t, "after")
        arriving[at] /= total
    leaving, through = np.zeros(shares.shape), np.divide(arriving, onward, out=np.zeros(shares.shape), where=onward > 0)
    for t in range(int(lengths.max(initial=0))):
        at = starts[:-1][lengths > t] + t
        means[at] = arriving[at] * (1.0 if t == 0 else leaving[at - 1] @ follows)
        leaving[at] = np.divide(means[at], onward[at], out=np.zeros(means[at].shape), where=onward[at] > 0)
    return MeanPaths(means, leaving, through, arriving)


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
            _refuse(name, int(examples[np.argmax(is_lost)]), t, "before")
    labels = np.zeros(len(allowed), np.int64)
    for t in range(int(lengths.max(initial=0)) - 1, -1, -1):
        examples = np.flatnonzero(lengths > t)
        at = starts[examples] + t
        options = reachable[at]
        goes_on = lengths[examples] > t + 1
        options[goes_on] &= may_follow[:, labels[at[goes_on] + 1]].T
        labels[at] = np.argmax(options, axis=1)
    return labels


def _refuse(name: str, i: int, t: int, side: str) -> NoReturn:
    where = "after the labels before" if side == "before" else "before the labels after"
    raise ValueError(
        f"{name}[{i}] leaves no labelling: no label at position {t} keeps to what it says there, and, {where}, to "
        "allowed_transitions and constraints."
    )
