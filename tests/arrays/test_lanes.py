"""Vectors of eight numbers: compiled as in Python, and exponentials to the last digits."""

import numpy as np
import pytest

from maxmargin.arrays import lanes
from maxmargin.arrays.exponential import exp
from maxmargin.runtime.dispatch import loop


@loop
def use_all(table, out, sums, doubles):
    x = lanes.fetch(table, 0, 0)
    y = lanes.fetch(table, 1, 3)
    a = lanes.at(table, 1, 2)
    lanes.store(out, 0, 0, lanes.fma(a, x, y))
    lanes.store(out, 1, 0, lanes.fma(x, x, lanes.splat(a)))
    lanes.store(out, 2, 0, lanes.times(a, lanes.plus(x, y)))
    lanes.store(out, 3, 0, lanes.upper(lanes.lower(x, y), a))
    lanes.store(out, 4, 0, lanes.where_below(x, a, y, lanes.splat(a)))
    lanes.store(out, 5, 0, lanes.without_first(x, 3))
    lanes.store(doubles, 0, 0, lanes.as_precise(x, doubles))
    lanes.copy_row(table, 2, out, 6, 11)
    lanes.copy_row(table, 2, out, 7, 3)
    sums[0] = lanes.total(x)
    sums[1] = lanes.highest(x)
    sums[2] = lanes.lowest(x)
    sums[3] = lanes.is_zero(x)
    sums[4] = lanes.is_zero(lanes.without_first(x, 8))
    sums[5] = lanes.is_zero(lanes.without_first(x, 7))


@loop
def exponentials(table, out):
    for t in range(table.shape[0]):
        for c in range(0, table.shape[1], lanes.LANES):
            lanes.store(out, t, c, exp(lanes.fetch(table, t, c)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_as_in_python(dtype):
    table = np.random.default_rng(0).normal(size=(3, 16)).astype(dtype)
    found, expected = ([np.zeros((8, 16), dtype), np.zeros(6, dtype), np.zeros((1, 8))] for _ in range(2))
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
    assert [lanes.padded(n) for n in (1, 8, 9, 26)] == [8, 8, 16, 32]
