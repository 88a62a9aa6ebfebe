"""Checks of kernels: their names and parameters, their values, and whether there is room for these."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.checks import LARGEST, check_cost, check_count, check_positive
from maxmargin.features.kernels import SHAPES, Kernel, Shape
from maxmargin.wording import quote

KERNELS = (*SHAPES, "precomputed")
NOT_POSITIVE = 1e-5  # of the largest entry: more negative eigenvalues than that are not rounding
NOT_SYMMETRIC = 1e-5
MOST_DEGREE = 1000


def is_shape(shape: object) -> bool:
    """Whether these can be the kind and the parameters of a kernel."""
    return (
        isinstance(shape, Shape)
        and all(isinstance(number, (int, float)) for number in shape)
        and shape.kind in SHAPES.values()
        and 1 <= shape.degree <= MOST_DEGREE
        and 0 < shape.gamma < np.inf
        and 0 <= shape.coef0 < np.inf
    )


def is_finite(values: np.ndarray, dtype: np.dtype | None) -> bool:
    """Whether an array holds finite numbers, of a dtype if there is one."""
    return values.dtype.kind == "f" and (dtype is None or values.dtype == dtype) and bool(np.isfinite(values).all())


def as_dense(matrix: Any) -> np.ndarray:
    """A matrix of SciPy as an array."""
    return matrix.toarray() if sp.issparse(matrix) else matrix


def make_kernel(kernel: Any, rows: Any, gamma: Any, degree: int, coef0: float) -> Kernel:
    """The kernel of a name, or of a function."""
    if callable(kernel):
        return Kernel(function=kernel)
    if isinstance(gamma, str):
        spread = float(rows.mean() * -rows.mean() + rows.multiply(rows).mean()) if sp.issparse(rows) else rows.var()
        spread = float(spread) if gamma == "scale" else 1.0
        gamma = 1.0 / (rows.shape[1] * spread) if spread > 0 else 1.0
    return Kernel(Shape(SHAPES[kernel], float(gamma), float(coef0), int(degree)))


def check_kernel(kernel: object, gamma: object, degree: int, coef0: object, cache_size: object) -> None:
    """Raise unless these are a kernel and its parameters."""
    if not (callable(kernel) or (isinstance(kernel, str) and kernel in KERNELS)):
        raise ValueError(f"kernel must be a function or one of {', '.join(KERNELS)}, not {quote(kernel)}.")
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be a positive number, 'scale' or 'auto', not {gamma!r}.")
    else:
        check_positive("gamma", gamma)
    check_count("degree", degree)
    if degree > MOST_DEGREE:
        raise ValueError(f"degree must be at most {MOST_DEGREE}, not {degree}.")
    check_cost("coef0", coef0)  # the polynomial of a kernel is one if its coefficients are not negative
    check_positive("cache_size", cache_size)


def check_memory(n: int, n_bytes: int, room: int) -> None:
    """Raise where so many bytes, for n rows, are more than there is room for."""
    if n_bytes > room:
        raise ValueError(
            f"The kernel of {n} rows takes {n_bytes:,} bytes, but cache_size leaves {room:,}: raise it, or "
            "train a linear model on features of sklearn.kernel_approximation.Nystroem."
        )


def check_square(matrix: np.ndarray) -> None:
    """Raise unless there is a column for every row."""
    n, width = matrix.shape
    if n != width:
        raise ValueError(
            f"A precomputed kernel must be square: X has {n} rows in all, so that each must have {n} entries, its "
            f"values with all rows, but they have {width}."
        )


def check_values(values: object, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
    """What a function returned as the values of a kernel, as an array of that shape."""
    try:
        found = np.asarray(as_dense(values), dtype)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != shape:
        raise ValueError(f"kernel must return a matrix of numbers of the shape {shape}, but returned {quote(values)}.")
    return found


def check_gram(gram: np.ndarray, name: str) -> None:
    """Raise unless a matrix is symmetric and positive semidefinite, but for rounding."""
    size = float(np.abs(gram).max())
    check_size(gram)
    uneven = np.abs(gram - gram.T)
    if uneven.max() > NOT_SYMMETRIC * size:
        t, u = np.unravel_index(np.argmax(uneven), gram.shape)
        raise ValueError(
            f"{name} must be symmetric, but its entries at ({t}, {u}) and ({u}, {t}) are {gram[t, u]:g} and "
            f"{gram[u, t]:g}."
        )
    shifted = gram.astype(np.float64)
    shifted[np.diag_indices(len(gram))] += NOT_POSITIVE * size
    try:
        scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        least = scipy.linalg.eigvalsh(gram.astype(np.float64), subset_by_index=[0, 0])[0]
        raise ValueError(f"{name} must be positive semidefinite, but its smallest eigenvalue is {least:.3g}.") from None


def check_size(values: np.ndarray) -> None:
    """Raise where values of a kernel, or sums of them, are too large to compute with."""
    largest = float(np.abs(values).max(initial=0))
    if not largest <= LARGEST**2:  # False for NaN
        raise ValueError(f"Values of the kernel reach {largest:.3g}, beyond {LARGEST**2:g}: scale the features.")
