"""An exponential that vectorises: compiled loops over it run several at a time, unlike over ``math.exp``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

# exp(x) = 2^k exp(r) with k = round(x / log 2) and |r| <= log(2) / 2; log 2 in two parts, the first exact in products.
# exp(r) by its Taylor series, whose remainder is below the rounding error at these degrees.
_INVERSE_LOG_2 = 1.4426950408889634
_HIGH_32, _LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_HIGH_64, _LOW_64 = 0.693145751953125, 1.42860682030941723212e-6


@intrinsic
def _float32_of_bits(typing_context, bits):
    def generate(context: object, builder: ir.IRBuilder, signature: object, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def _float64_of_bits(typing_context, bits):
    def generate(context: object, builder: ir.IRBuilder, signature: object, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


def fast_exp(x: float) -> float:
    """exp(x) to a few units in the last place, for x <= 0; zero below -87 in float32 and -708 in float64."""
    return math.exp(x)


@overload(fast_exp, inline="always")
def _compiled_exp(x):
    if x == types.float32:

        def exp32(x):
            is_zero = x < np.float32(-87)
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
            return np.float32(0) if is_zero else p * power

        return exp32

    def exp64(x):
        is_zero = x < -708.0
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
        return 0.0 if is_zero else p * power

    return exp64
