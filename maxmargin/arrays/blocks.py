"""One flat array with a block per example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.persist.registry import register_state


@register_state
class Blocks(NamedTuple):
    """One flat array with a block per example; that of example i is values[starts[i]:starts[i + 1]]."""

    values: np.ndarray
    starts: np.ndarray


def starts_of(sizes: ArrayLike) -> np.ndarray:
    """Where blocks of the given sizes begin, one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def places_in(sizes: np.ndarray) -> np.ndarray:
    """0 to size - 1 for each of the sizes, one after the other."""
    starts = starts_of(sizes)
    return np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)


def new_blocks(sizes: np.ndarray, dtype: DTypeLike) -> Blocks:
    """Blocks of zeros of the given sizes."""
    starts = starts_of(sizes)
    return Blocks(np.zeros(starts[-1], dtype), starts)


def as_blocks(arrays: Blocks | np.ndarray | Sequence[np.ndarray], dtype: DTypeLike) -> Blocks:
    """Blocks of the given arrays, or of the rows of a matrix, one after the other."""
    if isinstance(arrays, Blocks):
        return Blocks(np.ascontiguousarray(arrays.values, dtype), np.ascontiguousarray(arrays.starts, np.int64))
    if isinstance(arrays, np.ndarray) and arrays.ndim == 2:
        return Blocks(arrays.astype(dtype).ravel(), arrays.shape[1] * np.arange(len(arrays) + 1))
    starts = starts_of([len(array) for array in arrays])
    return Blocks(np.concatenate([*arrays, np.zeros(0, dtype)]).astype(dtype), starts)


def in_precision(value: object, dtype: DTypeLike) -> Any:
    """A NamedTuple with its numbers, those of the tuples inside it included, in another precision."""
    if isinstance(value, np.ndarray):
        return value.astype(dtype, copy=False) if value.dtype.kind == "f" else value
    if isinstance(value, tuple):
        return type(value)(*(in_precision(field, dtype) for field in value))
    return value
