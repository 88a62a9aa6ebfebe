"""A trial of whether what is private to Numba (`numba_private`) still is what the library relies on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from maxmargin.runtime import numba_private
from maxmargin.runtime.numba_private import (
    Compiled,
    Context,
    Lowering,
    address_of,
    call_address,
    can_be_kept,
    dump,
    dump_bitcode,
    finish,
    keep_in,
    load,
    make_array,
    multiply_matrices,
    raise_if_null,
)

if TYPE_CHECKING:
    from numba.core.typing.templates import Signature

ARGUMENTS = types.int64, types.int64  # of the function that is called by address in a trial


class _Shelf:
    """A cache of one entry, first as one that came with the package, and then as one on disk."""

    content = bitcode = b""

    def load_overload(self, signature: object, context: Context) -> Compiled | None:
        if not self.content:
            return None
        content = finish(self.bitcode, context) if self.bitcode else self.content
        self.bitcode = b""
        return load(content, context)

    def save_overload(self, signature: object, compiled: Compiled) -> None:
        if can_be_kept(compiled):
            self.content, self.bitcode = dump(compiled), dump_bitcode(compiled)


@intrinsic
def _call(typing_context: object, address: types.Type, data: types.Type, k: types.Type) -> tuple[Signature, Lowering]:
    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, values: Sequence[ir.Value]) -> ir.Value:
        raise_if_null(context, builder, values[0], "no address")
        return call_address(context, builder, values[0], types.float64, ARGUMENTS, values[1:])

    return types.float64(address, data, k), lower


@intrinsic
def _array_of_three(typing_context: object, data: types.Type) -> tuple[Signature, Lowering]:
    array_type = types.Array(types.float64, 1, "C")

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, values: Sequence[ir.Value]) -> ir.Value:
        return make_array(context, builder, array_type, values[0], [ir.IntType(64)(3)])

    return array_type(data), lower


@intrinsic
def _square_into_last(typing_context: object, data: types.Type) -> tuple[Signature, Lowering]:
    array_type, one = types.Array(types.float64, 2, "C"), ir.IntType(64)(1)

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, values: Sequence[ir.Value]) -> ir.Value:
        last = builder.add(values[0], ir.IntType(64)(3 * 8))
        number, square = (make_array(context, builder, array_type, at, [one, one]) for at in (values[0], last))
        multiply_matrices(context, builder, [array_type] * 3, [number, number, square])
        return context.get_dummy_value()

    return types.none(data), lower


@register_jitable(nogil=True, **(numba_private.INNER_OPTIONS if numba_private.in_use else {}))
def _positive(x):
    if x <= 0:
        raise ValueError("not positive")
    return x


def _number(data, k):
    _square_into_last(data)  # type: ignore[call-arg]
    return _positive(_array_of_three(data)[k]) + k


def _call_number(address, data, k):
    return _call(address, data, k)  # type: ignore[call-arg]


def try_out() -> None:
    """Compile, keep, load and call a few lines by all of it; raises whatever is not as it was."""
    if numba_private.missing is not None:
        raise numba_private.missing
    numbers = np.array([1.5, 2.5, -1.0, 0.0])
    called, shelf = numba.njit(**{**numba_private.ADDRESS_OPTIONS, **numba_private.UNCOUNTED})(_number), _Shelf()
    called.compile(types.float64(*ARGUMENTS))
    address = address_of(called.overloads[ARGUMENTS])
    arguments = types.int64, *ARGUMENTS
    for is_there in (False, True, True):
        dispatcher = numba.njit(**{**numba_private.LOOP_OPTIONS, **numba_private.UNCOUNTED})(_call_number)
        keep_in(dispatcher, shelf)
        if bool(shelf.content) != is_there:
            raise AssertionError("Dispatchers do not keep what they compile.")
        dispatcher.compile(arguments)
        call = dispatcher.overloads[arguments].entry_point
        if call(address, numbers.ctypes.data, 1) != 3.5:
            raise AssertionError("A call by address returns another number.")
        if numbers[3] != 2.25:
            raise AssertionError("BLAS has another product.")
        for error, where, k in ((ValueError, address, 2), (RuntimeError, 0, 0)):
            try:
                call(where, numbers.ctypes.data, k)
            except error:
                continue
            raise AssertionError("A call by address does not pass on errors.")
