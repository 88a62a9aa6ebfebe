"""Memory that is wanted soon, asked for ahead: examples drawn at random would be waited for, line by line.

A *stretch* is where in an array what is read of each example lies: the array, with the first places and those after the
last, one per example.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext

from maxmargin.arrays.lanes import lowers
from maxmargin.runtime.dispatch import helper

Stretch = tuple[np.ndarray, np.ndarray, np.ndarray]
LINE = 64  # bytes that come from memory together
COUNTED = 128  # numbers of lines
MOST_LINES = COUNTED - 1  # of one stretch: where it is longer, the processor goes on by itself


def lines_of(stretches: Iterable[Stretch]) -> np.ndarray:
    """(n, K) where K stretches of n examples lie: the number of the first line, and how many lines."""
    found = []
    for array, begin, end in stretches:
        width = array.strides[0]
        first, after = (array.ctypes.data + width * np.asarray(at, np.int64) for at in (begin, end))
        n_lines = np.where(after > first, (after - 1) // LINE - first // LINE + 1, 0)
        found.append(first // LINE * COUNTED + np.minimum(n_lines, MOST_LINES))
    return np.stack(found, axis=1) if found else np.zeros((0, 0), np.int64)


def prefetch(table: np.ndarray, p: int) -> None:
    """Ask for the line of table[p], without waiting for it; in Python, for nothing."""


def prefetch_address(address: int) -> None:
    """Ask for the line at an address."""


def _ask(context: BaseContext, builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [pointer, number(0), number(3), number(1)])  # to read, into the nearest cache, data
    return context.get_dummy_value()


@lowers(prefetch, lambda table, p: types.none)
def _prefetch(context, builder, sig, args):
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    place = context.cast(builder, args[1], sig.args[1], types.intp)
    return _ask(context, builder, builder.bitcast(builder.gep(data, [place]), cgutils.voidptr_t))


@lowers(prefetch_address, lambda address: types.none)
def _prefetch_address(context, builder, sig, args):
    return _ask(context, builder, builder.inttoptr(args[0], cgutils.voidptr_t))


@helper(interpreted=lambda lines, i: None)
def prefetch_row(lines, i):
    """Ask for lines[i] itself."""
    if lines.size > 0:
        prefetch(lines, i * lines.shape[1])


@helper(interpreted=lambda lines, i: None)
def prefetch_example(lines, i):
    """Ask for what is to be read of example i."""
    if lines.size > 0:
        for k in range(lines.shape[1]):
            address = lines[i, k] // COUNTED * LINE
            for line in range(lines[i, k] % COUNTED):
                prefetch_address(address + LINE * line)


@helper(interpreted=lambda table, begin, end: None)
def prefetch_range(table, begin, end):
    """Ask for table[begin:end], or as much of it as is worth it."""
    step = LINE // table.itemsize
    for p in range(begin, min(end, begin + MOST_LINES * step), step):
        prefetch(table, p)
