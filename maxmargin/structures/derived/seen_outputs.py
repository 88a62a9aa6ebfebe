"""Outputs of any kind by number, with their joint features: what problems of Python methods remember."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.wording import name_type, quote


class SeenOutputs:
    """The outputs of an example that were seen so far, by number, with the non-zeros of their parts."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.outputs: list[Any] = []
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, key: object, y: object, parts: tuple[np.ndarray, np.ndarray]) -> None:
        self.numbers[key] = len(self.outputs)
        self.outputs.append(y)
        self.parts.append(parts)


def count_features(features: Any) -> int:
    return features.shape[-1] if sp.issparse(features) else np.size(features)


def non_zeros(features: Any, size: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The places and values of the non-zeros of joint features, which may be sparse."""
    is_sparse = sp.issparse(features)
    try:
        entries: Any = features.tocoo() if is_sparse else np.asarray(features, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {size} finite numbers, not {quote(features)}.") from None
    shape = entries.shape
    numbers = np.asarray(entries.data, np.float64) if is_sparse else entries
    is_finite = bool(np.isfinite(numbers).all())
    if not (shape == (size,) or (is_sparse and shape == (1, size))) or not is_finite:
        raise ValueError(
            f"{name} must be {size} finite numbers, but has shape {shape}"
            f"{'' if is_finite else ' and holds NaN or infinity'}."
        )
    if is_sparse:
        indices, at = np.unique(entries.col, return_inverse=True)  # entries of one place are summed
        return indices, np.bincount(at, weights=numbers, minlength=len(indices))
    indices = np.flatnonzero(entries != 0)  # of flags in a tenth of the time
    return indices, entries[indices]


def squared_distances(table: sp.csr_array) -> np.ndarray:
    """Of the rows from their mean."""
    mean = np.asarray(table.mean(axis=0)).ravel()
    return np.maximum(table.power(2).sum(axis=1) - 2 * (table @ mean) + mean @ mean, 0)


def key_of(y: object) -> Hashable:
    """Something hashable that equal outputs share: themselves, if they are."""
    try:
        hash(y)
    except TypeError:
        return _key_of_unhashable(y)
    return y


def _key_of_unhashable(y: object) -> Hashable:
    if isinstance(y, np.ndarray):
        return (y.shape, *y.ravel().tolist())
    if isinstance(y, (list, tuple)):
        return tuple(key_of(part) for part in y)
    if isinstance(y, dict):
        return frozenset((name, key_of(value)) for name, value in y.items())
    if isinstance(y, set):
        return frozenset(y)
    raise TypeError(f"Outputs must be hashable, but {name_type(y)} is not.")
