"""How good predictions are, compared with true outputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Merits(NamedTuple):
    """Numbers that say how good outputs are, the higher the better; how many each example has, and their weights."""

    values: np.ndarray
    sizes: np.ndarray | int = 1
    weights: np.ndarray | float = 1.0

    def mean(self, sample_weight: np.ndarray | None = None) -> float:
        """Their weighted mean."""
        weights = np.broadcast_to(self.weights, self.values.shape)
        if sample_weight is not None:
            weights = weights * np.repeat(sample_weight, self.sizes)
        return float(np.average(self.values, weights=weights))
