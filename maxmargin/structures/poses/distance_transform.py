"""Generalized distance transforms: the best source of every target on a grid, less a quadratic cost of the way.

References
----------
Felzenszwalb, Huttenlocher (2005), Pictorial structures for object recognition; (2012), Distance transforms of sampled
functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper

FLAT = 1e-9  # curvature at and below which parabolas are compared one by one: their crossings would be far away
FAR = 1e300


class TransformWork(NamedTuple):
    """Buffers for grids of up to a number of cells and a longest side."""

    along_x: np.ndarray  # the transform of each row, column by column
    source_x: np.ndarray  # and its sources
    vertex: np.ndarray  # the sources of the envelope, from left to right
    crossing: np.ndarray  # where each of them takes over from the last
    height: np.ndarray  # of each source's parabola at zero, up to sign and a common quadratic


def new_transform_work(n_cells: int, longest: int, dtype: np.dtype) -> TransformWork:
    """Buffers for grids of up to `n_cells` cells and sides up to `longest`."""
    return TransformWork(
        along_x=aligned((n_cells,), dtype),
        source_x=aligned((n_cells,), np.int32),
        vertex=aligned((longest,), np.int64),
        crossing=aligned((longest,), np.float64),
        height=aligned((longest,), np.float64),
    )


@helper
def transform_line(values, lo, n, quadratic, linear, anchor, best, source, out, step, work):
    """best[out + step q] = max_x values[lo + x] - quadratic d^2 - linear d with d = x - q - anchor, for 0 <= x, q < n.

    `source` takes the lowest best x. Linear in n, by the upper envelope of the parabolas of all x, if `quadratic` is
    positive; otherwise exact all the same, but quadratic in n.
    """
    if quadratic <= FLAT:
        for q in range(n):
            top = -FAR
            for x in range(n):
                d = x - q - anchor
                value = values[lo + x] - quadratic * d * d - linear * d
                if value > top:
                    top = value
                    source[out + step * q] = x
            best[out + step * q] = top
        return
    last = -1  # of the envelope
    for x in range(n):
        p = x - anchor
        work.height[x] = quadratic * p * p + linear * p - values[lo + x]
        crossing = -FAR
        while last >= 0:
            v = work.vertex[last]
            crossing = (work.height[x] - work.height[v]) / (2 * quadratic * (x - v))
            if last == 0 or crossing > work.crossing[last]:
                break
            last -= 1
        last += 1
        work.vertex[last] = x
        work.crossing[last] = crossing
    k = 0
    for q in range(n):
        while k < last and work.crossing[k + 1] < q:
            k += 1
        x = work.vertex[k]
        d = x - q - anchor
        best[out + step * q] = values[lo + x] - quadratic * d * d - linear * d
        source[out + step * q] = x


@helper
def transform_grid(values, height, width, cost, anchor_x, anchor_y, best, source, work):
    """The transform of a grid, flat by rows: the cost is the sum of those along x and y.

    Parameters
    ----------
    values
        (height * width,).
    cost
        Quadratic and linear cost along x, quadratic and linear cost along y.
    anchor_x, anchor_y
        The way from target to source that is free of cost.
    best, source
        (height * width,) the best value of each target, and the cell it comes from.
    work
        TransformWork.
    """
    for y in range(height):  # turned on its side, so that columns can be read like rows
        transform_line(
            values, y * width, width, cost[0], cost[1], anchor_x, work.along_x, work.source_x, y, height, work
        )
    for x in range(width):
        transform_line(work.along_x, x * height, height, cost[2], cost[3], anchor_y, best, source, x, width, work)
    for y in range(height):
        for x in range(width):
            row = source[y * width + x]
            source[y * width + x] = row * width + work.source_x[x * height + row]
