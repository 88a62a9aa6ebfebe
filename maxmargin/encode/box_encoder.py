"""Grids of cells and boxes to a `BoxProblem`.

Every check of the user's images and boxes is here: what passes is safe for the loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.encode.inputs.base_encoder import RowEncoder, by_row
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import check_array, check_examples, check_truths
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows, append_constant, row_features, stack_grids
from maxmargin.metrics import iou
from maxmargin.structures.boxes.box_problem import BoxProblem
from maxmargin.supervision.weak import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxEncoder(RowEncoder):
    """The encoder of images with one box each, or none."""

    are_words: bool
    smallest: np.ndarray  # (2,) the least height and width of a box
    has_none: bool = False  # whether images need not have a box

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "smallest", self.smallest.shape == (2,) and self.smallest.dtype.kind in "iu"
        yield "smallest", bool((self.smallest > 0).all())

    @property
    def n_weights(self) -> int:
        return super().n_weights + self.has_none

    @classmethod
    def learn(cls, X: object, y: object, *, dtype: DTypeLike, fit_intercept: bool, min_size: Any) -> Learned:
        """The encoder and the problem of training images; arguments are those of `BoxSVM`."""
        rows, shapes = stack_cells(X)
        smallest = check_min_size(min_size, shapes)
        boxes = check_boxes(y, shapes, smallest)
        options = {"are_words": sp.issparse(rows.matrix), "smallest": smallest, "has_none": bool(is_none(boxes).any())}
        encoder = cls.of(rows, dtype, has_bias=fit_intercept, **options)
        return Learned(encoder, encoder.assemble(rows, shapes, boxes, with_grams=True))

    def problem(self, X: object, y: object = None) -> BoxProblem:
        rows, shapes = stack_cells(X, self.n_features_in, self.are_words)
        check_min_size(tuple(self.smallest.tolist()), shapes)
        truths = [(0, 0, 1, 1)] * len(shapes) if y is None else y
        return self.assemble(rows, shapes, check_boxes(truths, shapes, np.ones(2, np.int64)), with_grams=False)

    def assemble(self, rows: Rows, shapes: np.ndarray, boxes: np.ndarray, *, with_grams: bool) -> BoxProblem:
        rows = self.stored(rows, append_constant)
        return BoxProblem(
            features=row_features(rows, self.dtype, with_grams=with_grams),
            starts=rows.starts.astype(np.int64),
            shapes=shapes,
            boxes=boxes,
            smallest=self.smallest,
            weights=np.zeros(rows.matrix.shape[1] + self.has_none, self.dtype),
            has_none=self.has_none,
        )

    def dual_shape(self, problem: BoxProblem) -> tuple[Any, ...]:
        return problem.shapes, problem.boxes

    def names(self, w: np.ndarray) -> Bunch:
        bias = {"bias": w[self.n_features_in]} if self.has_bias else {}
        return Bunch(cells=w[: self.n_features_in], **bias, **({"box": w[-1]} if self.has_none else {}))

    def decode_all(self, problem: Any, outputs: Blocks) -> np.ndarray:
        return outputs.values.reshape(-1, 4)

    def arrange(self, problem: BoxProblem, parts: Blocks) -> list[np.ndarray]:
        cells = by_row(parts, problem.starts, 1)
        return [column.reshape(shape) for column, shape in zip(cells, problem.shapes, strict=True)]

    def judge(self, problem: BoxProblem, outputs: Blocks) -> Merits:
        found = outputs.values.reshape(-1, 4)
        with_box = ~is_none(problem.boxes) & ~is_none(found)
        overlaps = (is_none(problem.boxes) & is_none(found)).astype(float)
        overlaps[with_box] = iou(problem.boxes[with_box], found[with_box])
        return Merits(overlaps)


def is_none(boxes: np.ndarray) -> np.ndarray:
    """Which of (n, 4) boxes are empty: "no box"."""
    return (boxes == 0).all(axis=1)


def stack_cells(X: Any, n_features: int | None = None, are_words: bool | None = None) -> tuple[Rows, np.ndarray]:
    """Check images, all of features or all of words, and stack their cells; with the shapes of the grids."""
    check_examples(X, "images", "image")
    kind = "an (H, W, F) array of numbers or an (H, W) map of visual words, integers"
    grids = [check_array(x, f"X[{i}]", kind, (None, None, None), (None, None)) for i, x in enumerate(X)]
    expected = grids[0].ndim == 2 if are_words is None else are_words
    for i, grid in enumerate(grids):
        if grid.ndim == 2 and grid.dtype.kind not in "iu":
            raise TypeError(f"X[{i}] has 2 dimensions, so it must hold visual words, integers, not {grid.dtype}.")
        if (grid.ndim == 2) != expected:
            found, other = ("word map", "feature array")[:: 1 if grid.ndim == 2 else -1]
            where = "X[0] is" if are_words is None else "the model was fitted on"
            raise ValueError(f"X[{i}] is a {found}, but {where} a {other}: all images must be of the same kind.")
    rows = _stack_words(grids, n_features) if expected else stack_grids(grids, n_features)
    return rows, np.array([grid.shape[:2] for grid in grids], np.int64)


def _stack_words(grids: list[np.ndarray], n_words: int | None) -> Rows:
    """The cells of word maps as sparse rows, with a 1 for the word of each, if it has one."""
    sizes = np.array([grid.size for grid in grids])
    if not sizes.all():
        raise ValueError(f"X[{int(np.argmin(sizes))}] is empty: every image needs at least one row.")
    most = max(int(grid.max()) for grid in grids) + 1 if n_words is None else n_words
    for i, grid in enumerate(grids):
        if grid.min() < -1:
            raise ValueError(f"X[{i}] contains the word {grid.min()}; words are numbered from 0; -1 is for none.")
        if grid.max() >= most:
            raise ValueError(f"X[{i}] contains the word {grid.max()}, but the model was fitted with {most} words.")
    if most == 0:
        raise ValueError("X must contain at least one word, but all its cells are -1.")
    words = np.concatenate([grid.ravel() for grid in grids]).astype(np.int64)
    indptr, known = starts_of(words >= 0), words[words >= 0]
    matrix = sp.csr_array((np.ones(len(known)), known, indptr), shape=(len(words), most))
    return Rows(matrix, starts_of(sizes))


def check_min_size(min_size: Any, shapes: np.ndarray) -> np.ndarray:
    """The least height and width of a box, checked; every image has room for one."""
    pair = (min_size, min_size) if isinstance(min_size, Integral) else min_size
    are_counts = isinstance(pair, tuple) and all(isinstance(side, Integral) and int(side) >= 1 for side in pair)
    if not are_counts or len(pair) != 2 or bool in map(type, pair):
        raise ValueError(f"min_size must be a positive integer or a pair of them, (height, width), not {min_size!r}.")
    smallest = np.array(pair, np.int64)
    too_small = (shapes < smallest).any(axis=1)
    if too_small.any():
        i = int(np.flatnonzero(too_small)[0])
        size, least = ("{} x {}".format(*pair) for pair in (shapes[i], smallest))
        raise ValueError(f"X[{i}] has {size} cells, too few for a box of min_size {least}.")
    return smallest


def check_boxes(y: Any, shapes: np.ndarray, smallest: np.ndarray) -> np.ndarray:
    """Check one box per image, or None, and stack them; zeros for none."""
    check_truths(y, len(shapes), "one box (top, left, bottom, right) per image", "image")
    boxes = np.zeros((len(y), 4), np.int32)
    for i, (box, (height, width)) in enumerate(zip(y, shapes, strict=True)):
        if box is None:
            continue
        sides = check_array(box, f"y[{i}]", "a box of four integers, (top, left, bottom, right)", (4,), dtypes="iu")
        if not sides.any():
            continue
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
