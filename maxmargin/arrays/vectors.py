"""Arithmetic of whole vectors: loops where it is compiled, NumPy where it is interpreted.

A loop written with these costs a user's own structure, which runs interpreted, a few calls of NumPy per step in place
of a turn of Python's loop per number. Compiled, they are the loops that they look like, inlined.
"""

from __future__ import annotations

import numpy as np

from maxmargin.runtime.dispatch import helper

DENORMAL = 1e-30  # smaller numbers are dropped: they would decay into denormal ones, a hundred times slower
PIECE = 8192  # of vectors: short enough for products to stay in the processor's cache, and for BLAS to start no threads


def _clear(array: np.ndarray) -> None:
    array.fill(0)


@helper(interpreted=_clear)
def clear(array):
    """Set all entries to zero."""
    for p in range(array.size):
        array[p] = 0


def _copy_into(array: np.ndarray, source: np.ndarray) -> None:
    array[: source.size] = source


@helper(interpreted=_copy_into)
def copy_into(array, source):
    """Array = source, which may be shorter."""
    for p in range(source.size):
        array[p] = source[p]


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a == b).all())


@helper(interpreted=_is_same)
def is_same(a, b):
    """Whether two vectors of one size are equal."""
    p = 0
    while p < a.size and a[p] == b[p]:
        p += 1
    return p == a.size


def _first_best(values: np.ndarray) -> int:
    return int(np.argmax(values))


@helper(interpreted=_first_best)
def first_best(values):
    """The place of the largest number, the first of several."""
    best = 0
    top = values[0]
    for p in range(1, values.size):
        if values[p] > top:
            best = p
            top = values[p]
    return best


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    if a.dtype != np.float64 or b.dtype != np.float64:
        return float(np.einsum("i,i", a, b, dtype=np.float64))
    if a.size <= PIECE:
        return float(np.dot(a, b))
    return float(sum(np.dot(a[lo : lo + PIECE], b[lo : lo + PIECE]) for lo in range(0, a.size, PIECE)))


@helper(interpreted=_inner)
def inner(a, b):
    """<a, b> in float64."""
    total = 0.0
    for p in range(a.size):
        total += np.float64(a[p]) * np.float64(b[p])
    return total


def _scale(array: np.ndarray, factor: float) -> None:
    array *= factor


@helper(interpreted=_scale)
def scale(array, factor):
    """Array *= factor."""
    for p in range(array.size):
        array[p] *= factor


def _add_scaled(array: np.ndarray, other: np.ndarray, factor: float) -> None:
    for lo in range(0, array.size, PIECE):
        array[lo : lo + PIECE] += factor * other[lo : lo + PIECE]


@helper(interpreted=_add_scaled)
def add_scaled(array, other, factor):
    """Array += factor * other."""
    for p in range(array.size):
        array[p] += factor * other[p]


def approach(array: np.ndarray, target: np.ndarray, share: float) -> None:
    """Go this share of the way to a target; called from Python only."""
    for lo in range(0, array.size, PIECE):
        piece = array[lo : lo + PIECE]
        piece += array.dtype.type(share) * (target[lo : lo + PIECE] - piece)


def _move_by(array: np.ndarray, step: np.ndarray, factor: float) -> None:
    _add_scaled(array, step, factor)
    array[np.abs(array) < DENORMAL] = 0


@helper(interpreted=_move_by)
def move_by(array, step, factor):
    """As `add_scaled`; numbers that are next to nothing become zero."""
    for p in range(array.size):
        array[p] += factor * step[p]
        if abs(array[p]) < DENORMAL:
            array[p] = 0
