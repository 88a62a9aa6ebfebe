"""How good predictions are, compared with true outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Merits(NamedTuple):
    """Numbers that say how good outputs are, the higher the better; how many each example has, and their weights."""

    values: np.ndarray
    sizes: np.ndarray | int = 1
    weights: np.ndarray | float = 1.0
    best: float = 1.0  # the highest there can be

    @classmethod
    def joined(cls, parts: Sequence[Merits]) -> Merits:
        """Those of several portions of the examples, for their mean."""
        weights = [np.broadcast_to(part.weights, part.values.shape) for part in parts]
        return cls(np.concatenate([part.values for part in parts]), weights=np.concatenate(weights))

    def by_example(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(n,) their weighted sums for each example, and the sums of the weights."""
        weights = np.broadcast_to(self.weights, self.values.shape)
        which = np.repeat(np.arange(n), self.sizes)
        return np.bincount(which, weights * self.values, n), np.bincount(which, weights, n)

    def mean(self, sample_weight: np.ndarray | None = None) -> float:
        """Their weighted mean."""
        weights = np.broadcast_to(self.weights, self.values.shape)
        if sample_weight is not None:
            weights = weights * np.repeat(sample_weight, self.sizes)
        return float(np.average(self.values, weights=weights))
