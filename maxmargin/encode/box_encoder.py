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
from maxmargin.problem import restrict
from maxmargin.structures.boxes.box_problem import BoxLimits, BoxProblem, BoxSupervision
from maxmargin.supervision.known_boxes import ABSENT, PRESENT, UNKNOWN_BOX, KnownBox
from maxmargin.supervision.weak import Learned, Weak


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxEncoder(RowEncoder[BoxProblem]):
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
    def learn(cls, X: object, y: object, *, dtype: DTypeLike, fit_intercept: bool, min_size: object) -> Learned:
        """The encoder and the problem of training images; arguments are those of `BoxSVM`."""
        rows, shapes = stack_cells(X)
        smallest = check_min_size(min_size, shapes)
        known = read_boxes(y, shapes, smallest)
        has_none = bool((known.is_exact & is_none(known.boxes)).any())
        options = {"are_words": sp.issparse(rows.matrix), "smallest": smallest, "has_none": has_none}
        encoder = cls.of(rows, dtype, has_bias=fit_intercept, **options)
        problem = encoder.assemble(rows, shapes, known, with_grams=True)
        if known.is_exact.all():
            return Learned(encoder, problem)
        consistent = restrict(problem, known.known)
        if all(np.array_equal(*pair) for pair in zip(consistent.limits, problem.limits, strict=True)):
            raise ValueError("y must say something of at least one box, but nothing of it is known.")
        return Learned(encoder, problem, Weak(consistent, is_weak=~known.is_exact))

    def problem(self, X: object, y: object = None) -> BoxProblem:
        rows, shapes = stack_cells(X, self.n_features_in, self.are_words)
        check_min_size(tuple(self.smallest.tolist()), shapes)
        boxes = np.full((len(shapes), 4), -1, np.int32)
        if y is not None:
            boxes = check_boxes(y, shapes, np.ones(2, np.int64))
        known = BoxSupervision(boxes, np.ones(len(shapes), bool), whole_images(shapes, self.has_none))
        return self.assemble(rows, shapes, known, with_grams=False)

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(isinstance(box, (str, KnownBox)) for box in y)

    def exclusions(self, problem: BoxProblem, known: object, name: str) -> BoxLimits:
        read = read_boxes(known, problem.shapes, problem.smallest, name)
        for i in np.flatnonzero(read.is_exact & is_none(read.boxes)):
            if not self.has_none:
                raise ValueError(f"{name}[{i}] is no box, but the model was fitted on images that all have one.")
        return read.known

    def assemble(self, rows: Rows, shapes: np.ndarray, known: BoxSupervision, *, with_grams: bool) -> BoxProblem:
        rows = self.stored(rows, append_constant)
        return BoxProblem(
            features=row_features(rows, self.dtype, with_grams=with_grams),
            starts=rows.starts.astype(np.int64),
            shapes=shapes,
            supervision=known,
            limits=whole_images(shapes, self.has_none),
            smallest=self.smallest,
            weights=np.zeros(rows.matrix.shape[1] + self.has_none, self.dtype),
            has_none=self.has_none,
        )

    def dual_shape(self, problem: BoxProblem) -> tuple[object, ...]:
        return problem.shapes, problem.supervision.boxes

    def names(self, w: np.ndarray) -> Bunch:
        bias = {"bias": w[self.n_features_in]} if self.has_bias else {}
        return Bunch(cells=w[: self.n_features_in], **bias, **({"box": w[-1]} if self.has_none else {}))

    def decode_all(self, problem: BoxProblem, outputs: Blocks) -> np.ndarray:
        return outputs.values.reshape(-1, 4)

    def arrange(self, problem: BoxProblem, parts: Blocks) -> list[np.ndarray]:
        cells = by_row(parts, problem.starts, 1)
        return [column.reshape(shape) for column, shape in zip(cells, problem.shapes, strict=True)]

    def judge(self, problem: BoxProblem, outputs: Blocks) -> Merits:
        found = outputs.values.reshape(-1, 4)
        truth = problem.supervision.boxes
        with_box = ~is_none(truth) & ~is_none(found)
        overlaps = (is_none(truth) & is_none(found)).astype(float)
        overlaps[with_box] = iou(truth[with_box], found[with_box])
        return Merits(overlaps)


def is_none(boxes: np.ndarray) -> np.ndarray:
    """Which of (n, 4) boxes are empty: "no box"."""
    return (boxes == 0).all(axis=1)


def stack_cells(X: object, n_features: int | None = None, are_words: bool | None = None) -> tuple[Rows, np.ndarray]:
    """Check images, all of features or all of words, and stack their cells; with the shapes of the grids."""
    X = check_examples(X, "images", "image")
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


def check_boxes(y: object, shapes: np.ndarray, smallest: np.ndarray) -> np.ndarray:
    """Check one box per image, or None, and stack them; zeros for none."""
    y = check_truths(y, len(shapes), "one box (top, left, bottom, right) per image", "image")
    boxes = np.zeros((len(y), 4), np.int32)
    for i, (box, shape) in enumerate(zip(y, shapes, strict=True)):
        if box is not None:
            boxes[i] = check_box(box, i, shape, smallest, f"y[{i}]", or_none=True)
    return boxes


def check_box(
    box: object, i: int, shape: np.ndarray, smallest: np.ndarray | tuple[int, int], name: str, *, or_none: bool = False
) -> np.ndarray:
    """Check a box in image i, `name` in messages; zeros may be one that is not there."""
    sides = check_array(box, name, "a box of four integers, (top, left, bottom, right)", (4,), dtypes="iu")
    if or_none and not sides.any():
        return sides
    top, left, bottom, right = (int(side) for side in sides)
    name = f"{name} = ({top}, {left}, {bottom}, {right})"
    if bottom <= top or right <= left:
        raise ValueError(f"{name} has no area: a box has the rows top:bottom and the columns left:right.")
    if top < 0 or left < 0 or bottom > shape[0] or right > shape[1]:
        raise ValueError(f"{name} is not inside X[{i}], which has {shape[0]} x {shape[1]} cells.")
    if bottom - top < smallest[0] or right - left < smallest[1]:
        raise ValueError(f"{name} is smaller than min_size, {smallest[0]} x {smallest[1]}.")
    return sides


def whole_images(shapes: np.ndarray, has_none: bool) -> BoxLimits:
    """The limits of all boxes."""
    sides = np.zeros((len(shapes), 4, 2), np.int64)
    sides[:, :, 1] = np.tile(shapes, 2)
    return BoxLimits(sides, np.full(len(shapes), has_none))


def read_boxes(y: object, shapes: np.ndarray, smallest: np.ndarray, name: str = "y") -> BoxSupervision:
    """Check what is known of the box of each image: the box, None for none, a word or a `KnownBox`."""
    y = check_truths(y, len(shapes), "one box (top, left, bottom, right) per image", "image", name)
    known = whole_images(shapes, has_none=True)
    boxes, is_exact = np.zeros((len(shapes), 4), np.int32), np.zeros(len(shapes), bool)
    for i, (box, shape) in enumerate(zip(y, shapes, strict=True)):
        if isinstance(box, str) and box not in (PRESENT, ABSENT, UNKNOWN_BOX):
            words = '"present", "absent" or "unknown"'
            raise ValueError(f"{name}[{i}] must be a box, a KnownBox, None, {words}, not {box!r}.")
        sides = known.sides[i]
        known.none[i] = isinstance(box, str) and box == UNKNOWN_BOX
        if isinstance(box, (str, KnownBox)) and box != ABSENT:
            if isinstance(box, KnownBox):
                limit_sides(box, i, shape, sides, f"{name}[{i}]")
            boxes[i] = sides[[0, 1, 2, 3], [0, 0, 1, 1]]  # the largest there can be
            if (boxes[i, 2:] - boxes[i, :2] < smallest).any():
                least = f"{smallest[0]} x {smallest[1]}"
                raise ValueError(f"{name}[{i}] leaves no box: none of min_size {least} is inside {box.inside}.")  # type: ignore[union-attr]
            continue
        is_exact[i] = True
        if box is not None and not isinstance(box, str):
            boxes[i] = check_box(box, i, shape, smallest, f"{name}[{i}]", or_none=True)
        known.none[i] = not boxes[i].any()
        sides[:] = [[1, 0]] * 4 if known.none[i] else np.repeat(boxes[i], 2).reshape(4, 2)
    return BoxSupervision(boxes, is_exact, known)


def limit_sides(box: KnownBox, i: int, shape: np.ndarray, sides: np.ndarray, name: str) -> None:
    """Limit the first and the last place of each side by what is known of a box of image i, `name` in messages."""
    if box.inside is not None:
        outer = check_box(box.inside, i, shape, (1, 1), f"{name}.inside")
        sides[:2, 0], sides[2:, 1] = outer[:2], outer[2:]
    if box.contains is not None:
        inner = np.asarray(box.contains)
        if inner.shape == (2,) and inner.dtype.kind in "iu":
            inner = np.concatenate([inner, inner + 1])
        inner = check_box(inner, i, shape, (1, 1), f"{name}.contains")
        sides[:2, 1], sides[2:, 0] = inner[:2], inner[2:]
    if (sides[:, 0] > sides[:, 1]).any():
        raise ValueError(f"{name} leaves no box: it contains {box.contains}, which is not inside {box.inside}.")
