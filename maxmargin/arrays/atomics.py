"""Words that several threads read and write while compiled code runs, and how one gives way to others.

What a thread has written before it publishes a word is there for every thread that observes it.
"""

from __future__ import annotations

import ctypes
import functools
import os

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

_WORD = ir.IntType(64)
_BYTES = 8


def publish(words: np.ndarray, k: int, value: int) -> None:
    """Write a word, after all that was written before."""
    words[k] = value


def observe(words: np.ndarray, k: int) -> int:
    """Read a word, before all that is read after."""
    return words[k]


def give_way(address: int) -> None:
    """Let other threads run on this core, if any wait for one, by the function at the `address_to_yield`.

    To sleep, even for a microsecond, takes fifty: as long as two rounds of steps.
    """


@functools.cache
def address_to_yield() -> int:
    """Where the system has its function that lets other threads run; 0 if it has none."""
    try:
        library = ctypes.windll.kernel32 if os.name == "nt" else ctypes.CDLL(None)  # type: ignore[attr-defined]
        function = library.SwitchToThread if os.name == "nt" else library.sched_yield
    except (AttributeError, OSError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@infer_global(publish)
class _Publish(AbstractTemplate):
    def generic(self, args, kws):
        return signature(types.none, args[0], types.intp, types.int64)


@infer_global(observe)
class _Observe(AbstractTemplate):
    def generic(self, args, kws):
        return signature(types.int64, args[0], types.intp)


@infer_global(give_way)
class _GiveWay(AbstractTemplate):
    def generic(self, args, kws):
        return signature(types.none, types.int64)


def _address_of(context, builder, array_type, array, k):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [k])


@lower_builtin(publish, types.Array, types.Integer, types.Integer)
def _publish(context, builder, sig, args):
    builder.store_atomic(args[2], _address_of(context, builder, sig.args[0], *args[:2]), "release", _BYTES)
    return context.get_dummy_value()


@lower_builtin(observe, types.Array, types.Integer)
def _observe(context, builder, sig, args):
    return builder.load_atomic(_address_of(context, builder, sig.args[0], *args), "acquire", _BYTES)


@lower_builtin(give_way, types.Integer)
def _give_way(context, builder, sig, args):
    with builder.if_then(builder.icmp_unsigned("!=", args[0], _WORD(0))):
        function = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [])
    return context.get_dummy_value()
