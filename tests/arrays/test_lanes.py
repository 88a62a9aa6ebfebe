"""Vectors of eight numbers: compiled as in Python, and exponentials to the last digits."""

import numpy as np
import pytest

from maxmargin.arrays.lanes import (
    LANES,
    as_precise,
    at,
    copy_row,
    exp,
    fetch,
    fma,
    highest,
    lower,
    lowest,
    padded,
    plus,
    splat,
    store,
    times,
    total,
    upper,
    where_below,
    without_first,
)
from maxmargin.runtime.dispatch import loop


@loop
def use_all(table, out, sums, doubles):
    x = fetch(table, 0, 0)
    y = fetch(table, 1, 3)
    a = at(table, 1, 2)
    store(out, 0, 0, fma(a, x, y))
    store(out, 1, 0, fma(x, x, splat(a)))
    store(out, 2, 0, times(a, plus(x, y)))
    store(out, 3, 0, upper(lower(x, y), a))
    store(out, 4, 0, where_below(x, a, y, splat(a)))
    store(out, 5, 0, without_first(x, 3))
    store(doubles, 0, 0, as_precise(x, doubles))
    copy_row(table, 2, out, 6, 11)
    copy_row(table, 2, out, 7, 3)
    sums[0] = total(x)
    sums[1] = highest(x)
    sums[2] = lowest(x)


@loop
def exponentials(table, out):
    for t in range(table.shape[0]):
        for c in range(0, table.shape[1], LANES):
            store(out, t, c, exp(fetch(table, t, c)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_as_in_python(dtype):
    table = np.random.default_rng(0).normal(size=(3, 16)).astype(dtype)
    found, expected = ([np.zeros((8, 16), dtype), np.zeros(3, dtype), np.zeros((1, 8))] for _ in range(2))
    use_all(table, *found)
    use_all.interpreted(table, *expected)
    for a, b in zip(found, expected, strict=True):
        assert np.allclose(a, b, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("dtype", "least"), [("float32", -87.0), ("float64", -708.0)])
def test_exponentials(dtype, least):
    table = np.linspace(1.1 * least, 0, 8000).astype(dtype).reshape(-1, 16)
    found = np.zeros_like(table)
    exponentials(table, found)
    is_zero = table < np.dtype(dtype).type(least)
    assert not found[is_zero].any()
    errors = found[~is_zero] / np.exp(table[~is_zero].astype(np.longdouble)) - 1
    assert np.abs(errors).max() < 4 * np.finfo(dtype).eps


def test_padded_rows_are_full_vectors():
    assert [padded(n) for n in (1, 8, 9, 26)] == [8, 8, 16, 32]
