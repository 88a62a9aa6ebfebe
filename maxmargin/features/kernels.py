"""Kernels: functions of two rows that are inner products of what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.persist.registry import register
from maxmargin.runtime.dispatch import helper, loop

LINEAR, POLY, RBF = 0, 1, 2
SHAPES = {"linear": LINEAR, "poly": POLY, "rbf": RBF}


@register
class Shape(NamedTuple):
    """A kernel that is a function of inner products: of <x, x'>, or of distances for `RBF`."""

    kind: int  # one of `SHAPES`
    gamma: float
    coef0: float
    degree: int


@helper
def apply_kernel(row, square, squares, shape):
    """Turn the inner products of a row with others into values of the kernel, given their squared norms."""
    gamma = row.dtype.type(shape.gamma)
    if shape.kind == RBF:
        for u in range(row.size):
            distance = max(square + squares[u] - 2 * row[u], row.dtype.type(0))
            row[u] = np.exp(-gamma * distance)
    elif shape.kind == POLY:
        coef0 = row.dtype.type(shape.coef0)
        for u in range(row.size):
            base = gamma * row[u] + coef0
            power = base
            for _ in range(shape.degree - 1):
                power *= base
            row[u] = power


@loop
def apply_to_rows(products, squares, others, shape):
    """As `apply_kernel`, for all rows of a matrix."""
    for t in range(products.shape[0]):
        apply_kernel(products[t], squares[t], others, shape)


@register
@dataclass(frozen=True)
class Kernel:
    """A kernel: a `Shape`, or a function of two matrices that returns the values of all pairs of their rows."""

    shape: Shape | None = None
    function: Callable[[Any, Any], Any] | None = None

    def __call__(self, rows: object, others: Any) -> np.ndarray:
        """The values of all pairs of rows, in the dtype of the rows."""
        if self.shape is None:
            assert self.function is not None
            return np.asarray(self.function(rows, others))
        products = rows @ others.T
        products = np.ascontiguousarray(products.toarray() if sp.issparse(products) else products)
        apply_to_rows(products, squared_lengths(rows), squared_lengths(others), self.shape)
        return products


def squared_lengths(rows: Any) -> np.ndarray:
    """The squared norm of each row."""
    squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
    return np.ascontiguousarray(squares.sum(axis=1), rows.dtype)
