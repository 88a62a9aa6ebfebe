"""Vectors of eight numbers, for loops that LLVM does not vectorise well by itself.

A compiled loop over the columns of a table is fast where it keeps sums in registers, and where no column is left over
after the last full register. So the tables of dynamic programs are `padded` to full vectors, and the innermost loops
are written with the functions below: LLVM turns a vector into the registers of the machine. In Python they are the same
functions of NumPy arrays.

A table is a matrix, C-contiguous; what is beyond its end must not be read. Rows that are not padded are covered by
vectors that overlap: see `copy_row`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.extending import lower_builtin, register_model

from maxmargin.runtime.dispatch import helper

Index = int | np.signedinteger
LANES = 8
BLOCK = 4 * LANES  # columns whose sums fit into registers


@helper
def padded(n: int) -> int:
    """The columns of a table with at least n of them, in full vectors."""
    return -(-n // LANES) * LANES


@helper
def columns_of_block(begin, width):
    """Where the four vectors of a block of columns begin; at the end of a row they overlap, or are the same."""
    last = width - LANES
    return min(begin, last), min(begin + LANES, last), min(begin + 2 * LANES, last), min(begin + 3 * LANES, last)


# --- the functions in Python ----------------------------------------------------------------------------------------


def fetch(table: np.ndarray, t: Index, c: Index) -> np.ndarray:
    """table[t, c : c + 8]."""
    return table[t, c : c + LANES].copy()


def store(table: np.ndarray, t: Index, c: Index, x: np.ndarray) -> None:
    """table[t, c : c + 8] = x."""
    table[t, c : c + LANES] = x


def at(table: np.ndarray, t: Index, c: Index) -> float:
    """table[t, c], not negative: Numba would check for that."""
    return table[t, c]


def splat(number: float) -> np.ndarray:
    """Eight times the same number."""
    return np.repeat(number, LANES)


def fma(a: float | np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A x + y, rounded once in compiled code; `a` is a number or a vector, as it is below."""
    return a * x + y


def plus(a: float | np.ndarray, x: np.ndarray) -> np.ndarray:
    """A + x."""
    return a + x


def times(a: float | np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x."""
    return a * x


def upper(a: float | np.ndarray, x: np.ndarray) -> np.ndarray:
    """The larger of each two."""
    return np.maximum(a, x)


def lower(a: float | np.ndarray, x: np.ndarray) -> np.ndarray:
    """The smaller of each two."""
    return np.minimum(a, x)


def where_below(x: np.ndarray, limit: float, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Of y where x is below the limit, else of z."""
    return np.where(x < limit, y, z)


def without_first(x: np.ndarray, n: int) -> np.ndarray:
    """The vector with zeros in its first n places."""
    return np.where(np.arange(LANES) < n, x.dtype.type(0), x)


def as_precise(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The vector in the precision of a table."""
    return x.astype(table.dtype)


def total(x: np.ndarray) -> float:
    """The sum of the eight."""
    return x.sum()


def highest(x: np.ndarray) -> float:
    """The largest of the eight."""
    return x.max()


def lowest(x: np.ndarray) -> float:
    """The smallest of the eight."""
    return x.min()


def is_zero(x: np.ndarray) -> bool:
    """Whether all eight are zero."""
    return not x.any()


# --- compiled -------------------------------------------------------------------------------------------------------


class Vector(types.Type):
    """The type of eight numbers."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: object, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(_scalar(kind.dtype), LANES))


def _scalar(dtype: types.Type) -> ir.Type:
    return ir.FloatType() if dtype == types.float32 else ir.DoubleType()


def bits_of(dtype: types.Type) -> int:
    """Of a number."""
    return 32 if dtype == types.float32 else 64


def _pointer(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
    """The address of an entry of a table."""
    table = context.make_array(sig.args[0])(context, builder, args[0])
    t, c = (context.cast(builder, args[k], sig.args[k], types.intp) for k in (1, 2))
    width = cgutils.unpack_tuple(builder, table.shape, 2)[1]
    return builder.gep(table.data, [builder.add(builder.mul(t, width), c)])


def lowers(function: object, result: Callable[..., types.Type]) -> Callable[[Callable[..., ir.Value]], object]:
    """Let compiled code call the decorated generator of code in place of a function whose result has this type."""

    class _Typed(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            return signature(result(*args), *args)

    infer_global(function)(_Typed)
    return lower_builtin(function, types.VarArg(types.Any))


def vector_of(*kinds: types.Type) -> Vector:
    """The type of the last vector among arguments."""
    return next(kind for kind in reversed(kinds) if isinstance(kind, Vector))


def _splat(builder: ir.IRBuilder, number: ir.Value, kind: ir.Type) -> ir.Value:
    undefined, first = ir.Constant(kind, ir.Undefined), ir.IntType(32)(0)
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(undefined, number, first), undefined, places)


def _vectors(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> list[ir.Value]:
    """The arguments, with numbers as vectors."""
    kind = vector_of(*sig.args)
    number, vector = context.get_value_type(kind.dtype), context.get_value_type(kind)
    found = []
    for value, given in zip(args, sig.args, strict=True):
        if not isinstance(given, Vector):
            scalar = context.cast(builder, value, given, kind.dtype)
            value = _splat(builder, scalar, vector) if scalar.type == number else scalar
        found.append(value)
    return found


def call_llvm(
    builder: ir.IRBuilder, name: str, result: ir.Type, args: list[ir.Value], flags: tuple[str, ...] = ()
) -> ir.Value:
    """A call of LLVM's function of that name on vectors."""
    bits = 32 if args[-1].type.element == ir.FloatType() else 64
    kind = ir.FunctionType(result, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f{bits}")
    return builder.call(function, args, fastmath=flags)


@lowers(fetch, lambda table, t, c: Vector(table.dtype))
def _fetch(context, builder, sig, args):
    pointer = _pointer(context, builder, sig, args)
    vector = context.get_value_type(sig.return_type)
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=bits_of(sig.return_type.dtype) // 8)


@lowers(store, lambda table, t, c, x: types.none)
def _store(context, builder, sig, args):
    pointer = builder.bitcast(_pointer(context, builder, sig, args), args[3].type.as_pointer())
    builder.store(args[3], pointer, align=bits_of(sig.args[0].dtype) // 8)
    return context.get_dummy_value()


@lowers(at, lambda table, t, c: table.dtype)
def _at(context, builder, sig, args):
    return builder.load(_pointer(context, builder, sig, args))


@lowers(splat, Vector)
def _splat_number(context, builder, sig, args):
    return _splat(builder, args[0], context.get_value_type(sig.return_type))


@lowers(fma, vector_of)
def _fma(context, builder, sig, args):
    a, x, y = _vectors(context, builder, sig, args)
    return call_llvm(builder, "fma", y.type, [a, x, y])


@lowers(plus, vector_of)
def _plus(context, builder, sig, args):
    return builder.fadd(*_vectors(context, builder, sig, args))


@lowers(times, vector_of)
def _times(context, builder, sig, args):
    return builder.fmul(*_vectors(context, builder, sig, args))


@lowers(upper, vector_of)
def _upper(context, builder, sig, args):
    a, x = _vectors(context, builder, sig, args)
    return builder.select(builder.fcmp_ordered(">", a, x, flags=("nnan", "nsz")), a, x)


@lowers(lower, vector_of)
def _lower(context, builder, sig, args):
    a, x = _vectors(context, builder, sig, args)
    return builder.select(builder.fcmp_ordered("<", a, x, flags=("nnan", "nsz")), a, x)


@lowers(where_below, vector_of)
def _where_below(context, builder, sig, args):
    x, limit, y, z = _vectors(context, builder, sig, args)
    return builder.select(builder.fcmp_ordered("<", x, limit), y, z)


@lowers(without_first, lambda x, n: x)
def _without_first(context, builder, sig, args):
    places = ir.VectorType(ir.IntType(64), LANES)
    first = _splat(builder, context.cast(builder, args[1], sig.args[1], types.int64), places)
    is_first = builder.icmp_signed("<", ir.Constant(places, [*range(LANES)]), first)
    return builder.select(is_first, ir.Constant(args[0].type, [0.0] * LANES), args[0])


@lowers(as_precise, lambda x, table: Vector(table.dtype))
def _as_precise(context, builder, sig, args):
    vector, before = context.get_value_type(sig.return_type), bits_of(sig.args[0].dtype)
    if bits_of(sig.return_type.dtype) == before:
        return args[0]
    return (builder.fpext if before == 32 else builder.fptrunc)(args[0], vector)


@lowers(total, lambda x: x.dtype)
def _total(context, builder, sig, args):
    zero = ir.Constant(args[0].type.element, 0.0)
    return call_llvm(builder, "vector.reduce.fadd", zero.type, [zero, args[0]], ("reassoc",))


@lowers(highest, lambda x: x.dtype)
def _highest(context, builder, sig, args):
    return call_llvm(builder, "vector.reduce.fmax", args[0].type.element, args, ("nnan", "nsz"))


@lowers(lowest, lambda x: x.dtype)
def _lowest(context, builder, sig, args):
    return call_llvm(builder, "vector.reduce.fmin", args[0].type.element, args, ("nnan", "nsz"))


@lowers(is_zero, lambda x: types.boolean)
def _is_zero(context, builder, sig, args):
    is_other = builder.fcmp_unordered("!=", args[0], ir.Constant(args[0].type, [0.0] * LANES))
    return builder.icmp_unsigned("==", builder.bitcast(is_other, ir.IntType(LANES)), ir.IntType(LANES)(0))


# --- loops over rows ------------------------------------------------------------------------------------------------


@helper
def copy_row(source, s, out, t, n):
    """out[t, :n] = source[s, :n]: rows of at least eight numbers by vectors, of which the last two overlap."""
    if n < LANES:
        for c in range(n):
            out[t, c] = source[s, c]
    else:
        for c in range(0, n, LANES):
            first = min(c, n - LANES)
            store(out, t, first, fetch(source, s, first))
