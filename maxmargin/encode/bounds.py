"""Bounds of weights, given by the names of `coef_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def bounds_by_name(
    bounds: Any, n_weights: int, name_weights: Callable[[np.ndarray], Any]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The lower and upper bounds of all weights, from those of parts of them by their names; or None and None."""
    if bounds is None:
        return None, None
    limits = np.full(n_weights, -np.inf), np.full(n_weights, np.inf)
    parts = [name_weights(limit) for limit in limits]
    for name, pair in bounds.items():
        if name not in parts[0]:
            raise ValueError(f"bounds names {name!r}, but the weights are {', '.join(parts[0])}.")
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ValueError(f"bounds[{name!r}] must be a pair of a lower and an upper bound, not {pair!r}.")
        for part, bound in zip(parts, pair, strict=True):
            if bound is not None:
                shape = part[name].shape
                if np.shape(bound) not in ((), shape):
                    raise ValueError(f"bounds[{name!r}] has the shape {np.shape(bound)}, but the part has {shape}.")
                part[name][...] = bound
        if not (parts[0][name] <= parts[1][name]).all():
            raise ValueError(f"bounds[{name!r}] must be numbers, the lower ones at most the upper ones.")
    return limits
