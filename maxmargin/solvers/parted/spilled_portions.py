"""Portions of examples that are out of memory, but for the one that is open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.persist.spilled import Spilled
from maxmargin.solvers.parted.portions import LocalPortions, Portion


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

    def open(self, k: int) -> Portion:
        return Portion(*self.kept[k].load(maps=True))
