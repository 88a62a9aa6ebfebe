"""An exponential and a logarithm that vectorise: compiled loops take several at a time, unlike those of `math`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from maxmargin.arrays.lanes import LANES, bits_of, call_llvm, lowers, vector_of

# exp(x) = 2^k exp(r) with k = round(x / log 2) and |r| <= log(2) / 2; log 2 in two parts, the first exact in products.
# exp(r) by its Taylor series, whose remainder is below the rounding error at these degrees. All without a branch: of
# one in a function that is inlined twice Numba warns.
_INVERSE_LOG_2 = 1.4426950408889634
_HIGH_32, _LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_HIGH_64, _LOW_64 = 0.693145751953125, 1.42860682030941723212e-6


@intrinsic
def _float32_of_bits(typing_context, bits):
    def generate(context: object, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]) -> ir.Value:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def _float64_of_bits(typing_context, bits):
    def generate(context: object, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]) -> ir.Value:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _bits_of_float64(typing_context, x):
    def generate(context: object, builder: ir.IRBuilder, signature: object, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


def fast_exp(x: float) -> float:
    """exp(x) to a few units in the last place, for x <= 0; zero below -87 in float32 and -708 in float64."""
    return math.exp(x)


@overload(fast_exp, inline="always")
def _compiled_exp(x):
    if x == types.float32:

        def exp32(x):
            is_possible = np.float32(x >= np.float32(-87))
            x = max(np.float32(-87), x)
            k = np.float32(math.floor(x * np.float32(_INVERSE_LOG_2) + np.float32(0.5)))
            r = x - k * _HIGH_32 - k * _LOW_32
            p = np.float32(1 / 720)
            p = p * r + np.float32(1 / 120)
            p = p * r + np.float32(1 / 24)
            p = p * r + np.float32(1 / 6)
            p = p * r + np.float32(0.5)
            p = p * r + np.float32(1)
            p = p * r + np.float32(1)
            power: Any = _float32_of_bits((np.int32(k) + np.int32(127)) << np.int32(23))  # type: ignore[call-arg]
            return p * power * is_possible

        return exp32

    def exp64(x):
        is_possible = np.float64(x >= -708.0)
        x = max(-708.0, x)
        k = math.floor(x * _INVERSE_LOG_2 + 0.5)
        r = x - k * _HIGH_64 - k * _LOW_64
        p = 1.0 / 6227020800
        p = p * r + 1.0 / 479001600
        p = p * r + 1.0 / 39916800
        p = p * r + 1.0 / 3628800
        p = p * r + 1.0 / 362880
        p = p * r + 1.0 / 40320
        p = p * r + 1.0 / 5040
        p = p * r + 1.0 / 720
        p = p * r + 1.0 / 120
        p = p * r + 1.0 / 24
        p = p * r + 1.0 / 6
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        power: Any = _float64_of_bits((np.int64(k) + np.int64(1023)) << np.int64(52))  # type: ignore[call-arg]
        return p * power * is_possible

    return exp64


# log(x) = k log 2 + log(m) with m from sqrt(1/2) to sqrt(2), whose bits are those of x less k in the exponent; and
# log(m) = 2 artanh(s) with s = (m - 1) / (m + 1), by its Taylor series.
_BITS_OF_SQRT_HALF = np.int64(0x3FE6A09E667F3BCD)
_LOG_2 = math.log(2)


def fast_log(x: float) -> float:
    """log(x) to a few units in the last place, for positive normal numbers in double precision."""
    return math.log(x)


@overload(fast_log, inline="always")
def _compiled_log(x):
    def log64(x):
        bits: Any = _bits_of_float64(np.float64(x))  # type: ignore[call-arg]
        k = (bits - _BITS_OF_SQRT_HALF) >> np.int64(52)
        m: Any = _float64_of_bits(bits - (k << np.int64(52)))
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 1.0 / 21
        p = p * z + 1.0 / 19
        p = p * z + 1.0 / 17
        p = p * z + 1.0 / 15
        p = p * z + 1.0 / 13
        p = p * z + 1.0 / 11
        p = p * z + 1.0 / 9
        p = p * z + 1.0 / 7
        p = p * z + 1.0 / 5
        p = p * z + 1.0 / 3
        p = p * z + 1.0
        return np.float64(k) * _LOG_2 + 2.0 * s * p

    return log64


# --- of eight numbers at once: vectors of `lanes` -------------------------------------------------------------------


def exp(x: np.ndarray) -> np.ndarray:
    """The exponentials of numbers <= 0, to a few units in the last place; 0 below -87 in float32, -708 in float64."""
    return np.exp(x)


class _Exp(NamedTuple):
    """How exp(x) = 2^k exp(r) is found, with k = round(x / log 2): log 2 in two parts, the first exact in products."""

    limit: float  # below which it is zero
    high: float
    low: float
    degree: int  # of the Taylor series of exp(r), whose remainder is below the rounding error
    magic: float  # added to k, it leaves k in the last bits
    bias: int  # of exponents
    digits: int  # of mantissas, in bits


_EXP = {
    32: _Exp(-87.0, 0.693359375, -2.12194440e-4, 6, 1.5 * 2**23, 127, 23),
    64: _Exp(-708.0, 0.693145751953125, 1.42860682030941723212e-6, 13, 1.5 * 2**52, 1023, 52),
}


@lowers(exp, vector_of)
def _exp(context, builder, sig, args):
    vector, bits = args[0].type, bits_of(sig.return_type.dtype)
    how, whole = _EXP[bits], ir.VectorType(ir.IntType(bits), LANES)

    def constant(value: object, kind: ir.Type = vector) -> ir.Value:
        return ir.Constant(kind, [value] * LANES)

    is_zero = builder.fcmp_ordered("<", args[0], constant(how.limit))
    x = builder.select(is_zero, constant(how.limit), args[0])
    k = call_llvm(builder, "rint", vector, [builder.fmul(x, constant(1 / math.log(2)))])
    r = call_llvm(builder, "fma", vector, [k, constant(-how.high), x])
    r = call_llvm(builder, "fma", vector, [k, constant(-how.low), r])
    series = constant(1 / math.factorial(how.degree))
    for n in reversed(range(how.degree)):
        series = call_llvm(builder, "fma", vector, [r, series, constant(1 / math.factorial(n))])
    power = builder.bitcast(builder.fadd(k, constant(how.magic)), whole)
    power = builder.shl(builder.add(power, constant(how.bias, whole)), constant(how.digits, whole))
    return builder.select(is_zero, constant(0.0), builder.fmul(series, builder.bitcast(power, vector)))
