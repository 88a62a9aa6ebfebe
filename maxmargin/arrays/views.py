"""Matrix views of flat arrays, products of matrices that make no array in compiled code, and indices.

Numba's ``reshape`` takes a quarter of a microsecond and counts references, as much as a short Viterbi pass; loops
take such views several times per step.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, overload

from maxmargin.runtime.dispatch import helper
from maxmargin.runtime.modes import is_plain
from maxmargin.runtime.numba_private import make_array, multiply_matrices


def matrix(flat: np.ndarray, start: int, n_rows: int, n_columns: int) -> np.ndarray:
    """flat[start : start + n_rows * n_columns] as a matrix. In compiled code `flat` must outlive it.

    `flat` may have more axes, if it is C-contiguous: then it is flattened.
    """
    return flat.reshape(-1)[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


@infer_global(matrix)
class _Matrix(AbstractTemplate):
    def generic(self, args, kws):
        flat = args[0]
        if isinstance(flat, types.Array) and flat.layout == "C" and not is_plain():
            return signature(types.Array(flat.dtype, 2, "C"), flat, types.intp, types.intp, types.intp)
        return None


@overload(matrix, strict=False)
def _reshape(flat, start, n_rows, n_columns):
    return matrix if is_plain() else None


@lower_builtin(matrix, types.Array, types.Integer, types.Integer, types.Integer)
def _make_matrix(context, builder, sig, args):
    flat, begin, rows, columns = args
    source = context.make_array(sig.args[0])(context, builder, flat)
    address = builder.ptrtoint(builder.gep(source.data, [begin]), context.get_value_type(types.intp))
    return make_array(context, builder, sig.return_type, address, [rows, columns])


@helper
def part_of_row(table, t, lo, hi):
    """table[t, lo:hi] as a matrix of one row; `table` is C-contiguous, and lo:hi within its row.

    Numba checks indices that may be negative, and such loops do not vectorise; those from 0 on cannot be.
    """
    return matrix(table, t * table.shape[1] + lo, 1, max(hi - lo, 0))


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Out = a b, for matrices, by BLAS."""
    np.dot(a, b, out)


@infer_global(multiply)
class _Multiply(AbstractTemplate):
    def generic(self, args, kws):
        return None if is_plain() else signature(types.none, *args)


@overload(multiply, strict=False)
def _dot(a, b, out):
    return multiply if is_plain() else None


@lower_builtin(multiply, types.Array, types.Array, types.Array)
def _multiply(context, builder, sig, args):
    multiply_matrices(context, builder, sig.args, args)
    return context.get_dummy_value()


@helper(interpreted=lambda k: k)
def index(k):
    """K as an index that is never negative: compiled code does not look whether it counts from the end.

    Where one index is found by another, as along a path, that is a sixth of the time.
    """
    return np.uint64(k)
