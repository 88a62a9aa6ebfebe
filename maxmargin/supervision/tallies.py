"""What only all portions of the data together can tell: how often names of features and labels occur in them.

Portions are read once to count, each with a tally of its own; in all, these tell what is rare, and what is balanced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any, Self

import numpy as np


class Tally:
    """Counts of names and of labels.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.supervision.tallies import Tally, labels_in_all, tallying
    >>> tally = Tally()
    >>> for counts in ([3, 0], [1, 2]):
    ...     with tallying(tally):
    ...         _ = labels_in_all(np.array(["a", "b"]), np.array(counts))
    >>> with tallying(tally.finished()):
    ...     labels_in_all(np.array(["b"]), np.array([2]))
    {'a': 4, 'b': 2}
    """

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.labels: list[Counter[Any]] = []  # of each question for labels, in the order in which models ask
        self.has_weak = False  # whether less than one true output is known of some examples
        self.is_finished = False

    def add(self, other: Tally) -> Self:
        """Count what another one has counted, too."""
        self.names.update(other.names)
        self.labels += [Counter() for _ in range(len(other.labels) - len(self.labels))]
        for mine, others in zip(self.labels, other.labels, strict=False):
            mine.update(others)
        return self

    def finished(self) -> Self:
        """The same, when all is counted: from now on it is asked."""
        self.is_finished = True
        return self


_tally: ContextVar[tuple[Tally, Iterator[int]] | None] = ContextVar("_tally", default=None)


@contextmanager
def tallying(tally: Tally | None) -> Iterator[None]:
    """A context in which what a portion has is counted or, when all is, looked up; None for data in one place."""
    token = _tally.set(None if tally is None else (tally, count()))
    try:
        yield
    finally:
        _tally.reset(token)


def in_portions() -> bool:
    """Whether data are one portion of several, so that what it lacks may be in others."""
    return _tally.get() is not None


def others_are_weak() -> bool:
    """Whether other portions have outputs that are known in part, so that this one, too, is to say what agrees."""
    found = _tally.get()
    return found is not None and found[0].is_finished and found[0].has_weak


def is_frequent(names: Collection[str], counts: np.ndarray, least: int) -> np.ndarray:
    """Flags of names that occur often enough in all portions; of all names, while they are counted."""
    found = _tally.get()
    if found is None:
        return counts >= least
    tally, _ = found
    if tally.is_finished:
        return np.fromiter((tally.names[name] >= least for name in names), bool, len(names))
    tally.names.update(dict(zip(names, counts.tolist(), strict=True)))
    return np.ones(len(names), bool)


def labels_in_all(classes: np.ndarray, counts: Iterable[float]) -> dict[object, float]:
    """How often labels occur in all portions, given how often they do in this one; while they are counted, once."""
    here, found = dict(zip(classes.tolist(), np.asarray(counts).tolist(), strict=True)), _tally.get()
    if found is None:
        return here
    tally, questions = found
    k = next(questions)
    if tally.is_finished:
        return dict(tally.labels[k])
    tally.labels += [Counter()] * (k == len(tally.labels))
    tally.labels[k].update(here)
    return dict.fromkeys(here, 1)
