"""Portions of examples that are out of memory, but for the one that is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maxmargin.garbage import give_back
from maxmargin.persist.spilled import Spilled
from maxmargin.solvers.parted.portions import LocalPortions, Portion

MANY_BYTES = 10_000_000  # of a portion: a pass over these takes far longer than giving memory back


class SpilledPortions(LocalPortions):
    """Portions whose arrays are mapped into memory while they are open.

    Parameters
    ----------
    kept
        Of each portion its problem and the weights of its examples, or None, in a file.
    sizes
        The numbers of their examples.
    """

    def __init__(self, kept: Sequence[Spilled], sizes: Sequence[int]) -> None:
        self.kept = kept
        self.sizes = np.array(sizes)
        self.folder = kept[0].home.folder
        self.like = self.open(0).problem

    def each(self, *args: Any, **options: Any) -> Iterator[Any]:
        if self.kept[0].size >= MANY_BYTES:
            give_back()  # what was free between vectors as long as the weights
        yield from super().each(*args, **options)

    def open(self, k: int) -> Portion:
        return Portion(*self.kept[k].load(maps=True))
