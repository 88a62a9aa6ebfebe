"""Grids of cells and boxes to a `BoxProblem`.

Every check of the user's images and boxes is here: what passes is safe for the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from maxmargin.encode.base import RowEncoder, by_row
from maxmargin.encode.features import append_constant, row_features
from maxmargin.encode.rows import Rows, check_examples, check_truths, stack_rows
from maxmargin.metrics import iou
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.boxes import BoxProblem


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxEncoder(RowEncoder):
    """The encoder of images with one box each."""

    are_words: bool
    smallest: np.ndarray  # (2,) the least height and width of a box

    @classmethod
    def learn(cls, X: Any, y: Any, *, dtype: Any, fit_bias: bool, min_size: Any) -> tuple[BoxEncoder, BoxProblem]:
        """The encoder and the problem of training images; arguments are those of `BoxSVM`."""
        cells = stack_cells(X, dtype=dtype)
        smallest = check_min_size(min_size, cells.shapes)
        boxes = check_boxes(y, cells.shapes, smallest)
        encoder = cls.of(cells.rows, dtype, has_bias=fit_bias, are_words=cells.are_words, smallest=smallest)
        rows = encoder.stored(cells.rows, append_constant)
        return encoder, box_problem(rows, cells.shapes, boxes, smallest, dtype)

    def problem(self, X: Any, y: Any = None) -> BoxProblem:
        cells = stack_cells(X, self.n_features_in, self.are_words, self.dtype)
        check_min_size(tuple(self.smallest.tolist()), cells.shapes)
        rows = self.stored(cells.rows, append_constant)
        problem = box_problem(rows, cells.shapes, None, self.smallest, self.dtype)
        return problem if y is None else problem._replace(boxes=check_boxes(y, cells.shapes, np.ones(2, np.int64)))

    def layout(self, problem: BoxProblem) -> tuple[Any, ...]:
        return problem.shapes, problem.boxes

    def names(self, w: np.ndarray) -> Bunch:
        return Bunch(cells=w[: self.n_features_in], **({"bias": w[-1]} if self.has_bias else {}))

    def decode_all(self, problem: Any, outputs: Blocks) -> np.ndarray:
        return outputs.values.reshape(-1, 4)

    def arrange(self, problem: BoxProblem, parts: Blocks) -> list[np.ndarray]:
        cells = by_row(parts, problem.offsets, 1)
        return [column.reshape(shape) for column, shape in zip(cells, problem.shapes, strict=True)]

    def judge(self, problem: BoxProblem, outputs: Blocks) -> tuple[np.ndarray, Any]:
        return iou(problem.boxes, outputs.values.reshape(-1, 4)), 1


class Cells(NamedTuple):
    """The cells of all images: their features, in row-major order, and the shapes of the grids."""

    rows: Rows
    shapes: np.ndarray  # (n, 2)
    are_words: bool


def stack_cells(X: Any, n_features: int | None = None, are_words: bool | None = None, dtype: Any = np.float64) -> Cells:
    """Check images and stack their cells.

    Parameters
    ----------
    X : a list of (H, W, F) arrays of cell features, or of (H, W) integer maps of visual words, -1 for a cell with none
    n_features : the expected F, or number of words
    are_words : whether word maps are expected; None for either
    dtype : what the values will be stored as

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.encode.boxes import stack_cells
    >>> cells = stack_cells([np.zeros((2, 3, 5)), np.ones((4, 1, 5))])
    >>> cells.rows.matrix.shape, cells.shapes.tolist()
    ((10, 5), [[2, 3], [4, 1]])
    """
    check_examples(X, "images", "image")
    grids = [_as_grid(x, f"X[{i}]") for i, x in enumerate(X)]
    if are_words is None:
        are_words = grids[0].ndim == 2
    for i, grid in enumerate(grids):
        if (grid.ndim == 2) != are_words:
            found, expected = ("word map", "feature array")[:: 1 if grid.ndim == 2 else -1]
            where = "X[0] is" if (grids[0].ndim == 2) == are_words else "the model was fitted on"
            raise ValueError(f"X[{i}] is a {found}, but {where} a {expected}: all images must be of the same kind.")
    shapes = np.array([grid.shape[:2] for grid in grids], np.int64)
    rows = _stack_words(grids, n_features) if are_words else _stack_features(grids, n_features, dtype)
    return Cells(rows, shapes, are_words)


def _as_grid(x: Any, name: str) -> np.ndarray:
    try:
        grid = np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; it must be an (H, W, F) array.") from None
    if grid.ndim not in (2, 3) or grid.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be an (H, W, F) array of numbers or an (H, W) map of integers, but it has {grid.ndim} "
            f"dimensions and dtype {grid.dtype}."
        )
    if grid.ndim == 2 and grid.dtype.kind not in "iu":
        raise TypeError(
            f"{name} has 2 dimensions, so it must hold visual words, integers, but its dtype is {grid.dtype}."
        )
    if grid.shape[0] == 0 or grid.shape[1] == 0:
        raise ValueError(f"{name} is empty: an image needs at least one cell, but its shape is {grid.shape}.")
    return grid


def _stack_features(grids: list[np.ndarray], n_features: int | None, dtype: Any) -> Rows:
    return stack_rows([grid.reshape(-1, grid.shape[2]) for grid in grids], None, n_features, dtype)


def _stack_words(grids: list[np.ndarray], n_words: int | None) -> Rows:
    most = max(int(grid.max()) for grid in grids) + 1 if n_words is None else n_words
    for i, grid in enumerate(grids):
        if grid.min() < -1:
            raise ValueError(f"X[{i}] contains the word {grid.min()}; words are numbered from 0; -1 is for none.")
        if grid.max() >= most:
            raise ValueError(f"X[{i}] contains the word {grid.max()}, but the model was fitted with {most} words.")
    if most == 0:
        raise ValueError("X must contain at least one word, but all its cells are -1.")
    words = np.concatenate([grid.ravel() for grid in grids]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(words >= 0)])
    known = words[words >= 0]
    offsets = np.concatenate([[0], np.cumsum([grid.size for grid in grids])])
    return Rows(sp.csr_array((np.ones(len(known)), known, indptr), shape=(len(words), most)), offsets)


def check_min_size(min_size: Any, shapes: np.ndarray) -> np.ndarray:
    """The least height and width of a box, checked; every image has room for one."""
    pair = (min_size, min_size) if isinstance(min_size, Integral) else min_size
    if not (
        isinstance(pair, tuple)
        and len(pair) == 2
        and all(isinstance(side, Integral) and not isinstance(side, bool) and int(side) >= 1 for side in pair)
    ):
        raise ValueError(f"min_size must be a positive integer or a pair of them, (height, width), not {min_size!r}.")
    smallest = np.array(pair, np.int64)
    too_small = (shapes < smallest).any(axis=1)
    if too_small.any():
        i = int(np.flatnonzero(too_small)[0])
        raise ValueError(
            f"X[{i}] has {shapes[i, 0]} x {shapes[i, 1]} cells, too few for a box of min_size "
            f"{smallest[0]} x {smallest[1]}."
        )
    return smallest


def check_boxes(y: Any, shapes: np.ndarray, smallest: np.ndarray) -> np.ndarray:
    """Check one box per image and stack them."""
    check_truths(y, len(shapes), "one box (top, left, bottom, right) per image", "image")
    boxes = np.zeros((len(y), 4), np.int32)
    for i, (box, (height, width)) in enumerate(zip(y, shapes, strict=True)):
        sides = np.asarray(box)
        if sides.shape != (4,) or sides.dtype.kind not in "iu":
            raise ValueError(f"y[{i}] must be a box of four integers, (top, left, bottom, right), not {box!r}.")
        top, left, bottom, right = (int(side) for side in sides)
        name = f"y[{i}] = ({top}, {left}, {bottom}, {right})"
        if bottom <= top or right <= left:
            raise ValueError(f"{name} has no area: a box has the rows top:bottom and the columns left:right.")
        if top < 0 or left < 0 or bottom > height or right > width:
            raise ValueError(f"{name} is not inside X[{i}], which has {height} x {width} cells.")
        if bottom - top < smallest[0] or right - left < smallest[1]:
            raise ValueError(f"{name} is smaller than min_size, {smallest[0]} x {smallest[1]}.")
        boxes[i] = sides
    return boxes


def box_problem(rows: Rows, shapes: np.ndarray, boxes: Any, smallest: np.ndarray, dtype: Any) -> BoxProblem:
    """Put the checked parts together; without true boxes, for predictions."""
    for_training = boxes is not None
    return BoxProblem(
        features=row_features(rows, dtype, with_grams=for_training),
        offsets=rows.offsets.astype(np.int64),
        shapes=shapes,
        boxes=boxes if for_training else np.tile(np.array([0, 0, 1, 1], np.int32), (len(shapes), 1)),
        smallest=smallest,
        weights=np.zeros(rows.matrix.shape[1], dtype),
    )
