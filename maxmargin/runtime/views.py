"""Matrix views of flat arrays that cost nothing in compiled code.

Numba's ``reshape`` takes a quarter of a microsecond and counts references, as much as a short Viterbi pass; kernels
take such views several times per step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import populate_array


def matrix(flat: np.ndarray, start: int, n_rows: int, n_columns: int) -> np.ndarray:
    """flat[start : start + n_rows * n_columns] as a matrix. In compiled code `flat` must outlive it."""
    return flat[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


@intrinsic
def _matrix(typing_context, flat, start, n_rows, n_columns):
    view = types.Array(flat.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = context.get_value_type(types.intp)
        begin, rows, columns = (
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(args[1:], signature.args[1:], strict=True)
        )
        source = context.make_array(flat)(context, builder, args[0])
        result = context.make_array(view)(context, builder)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(flat.dtype)))
        populate_array(
            result,
            data=builder.gep(source.data, [begin]),
            shape=cgutils.pack_array(builder, [rows, columns], ty=index),
            strides=cgutils.pack_array(builder, [builder.mul(columns, itemsize), itemsize], ty=index),
            itemsize=itemsize,
            meminfo=None,
        )
        return result._getvalue()

    return view(flat, start, n_rows, n_columns), generate


@overload(matrix, inline="always")
def _compiled_matrix(flat, start, n_rows, n_columns):
    def view(flat, start, n_rows, n_columns):
        return _matrix(flat, start, n_rows, n_columns)  # type: ignore[call-arg]

    return view
