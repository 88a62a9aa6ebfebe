"""Boxes in pixels and in cells, and detections: several objects in an image, or none.

Boxes are (top, left, bottom, right), half-open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_numbers, check_count, check_number, check_share
from maxmargin.metrics import iou

__all__ = ["as_boxes", "non_max_suppression", "to_cells", "to_pixels"]


def to_cells(boxes: ArrayLike, cell: int, shape: tuple[int, ...]) -> np.ndarray:
    """The nearest boxes in cells, at least one cell large and inside the grid.

    Parameters
    ----------
    boxes
        (..., 4) boxes in pixels.
    cell
        The side of a cell in pixels.
    shape
        Height and width of the grid, in cells; what follows is left alone.

    Examples
    --------
    >>> from maxmargin.vision import to_cells
    >>> to_cells([[5, 16, 30, 47], [0, 0, 3, 3]], 16, (2, 3)).tolist()
    [[0, 1, 2, 3], [0, 0, 1, 1]]
    """
    check_count("cell", cell)
    height, width = shape[:2]
    top, left, bottom, right = np.moveaxis(np.rint(as_boxes(boxes) / cell).astype(np.int64), -1, 0)
    top, left = np.clip(top, 0, height - 1), np.clip(left, 0, width - 1)
    bottom, right = np.clip(bottom, top + 1, height), np.clip(right, left + 1, width)
    return np.stack([top, left, bottom, right], axis=-1)


def to_pixels(boxes: ArrayLike, cell: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Boxes in cells as boxes in pixels.

    Parameters
    ----------
    boxes
        (..., 4) boxes in cells.
    cell
        The side of a cell in pixels.
    shape
        Height and width of the image in pixels, beyond which no box goes; None if it is cut into whole cells.

    Examples
    --------
    >>> from maxmargin.vision import to_pixels
    >>> to_pixels([[0, 1, 2, 3]], 16, (30, 48)).tolist()
    [[0, 16, 30, 48]]
    """
    check_count("cell", cell)
    pixels = cell * as_boxes(boxes)
    if shape is not None:
        pixels = np.minimum(pixels, [*shape[:2], *shape[:2]])
    return pixels.astype(np.int64)


def non_max_suppression(
    boxes: Sequence[ArrayLike] | np.ndarray,
    scores: ArrayLike,
    threshold: float = 0.5,
    min_score: float = -np.inf,
    max_boxes: int | None = None,
) -> np.ndarray:
    """Detections among scored boxes: the best one, then the best that does not overlap it, and so on.

    Where no score reaches `min_score`, there is none. With scores of `CandidateSVM.decision_function` a model that was
    trained on one object per image finds several, or none.

    Parameters
    ----------
    boxes
        (K, 4) boxes.
    scores
        (K,) their scores.
    threshold
        The IoU with a better box above which a box is left out.
    min_score
        The least score of a detection, such as a quantile of those on held-out images.
    max_boxes
        At most so many.

    Returns
    -------
    The indices of the detections, best first.

    Examples
    --------
    >>> from maxmargin.vision import non_max_suppression
    >>> boxes = [[0, 0, 4, 4], [0, 0, 4, 5], [6, 6, 9, 9], [0, 0, 1, 1]]
    >>> non_max_suppression(boxes, [2.0, 3.0, 1.0, -1.0], min_score=0.0)
    array([1, 2])
    """
    check_share("threshold", threshold)
    check_number("min_score", min_score)
    if max_boxes is not None:
        check_count("max_boxes", max_boxes)
    values = as_numbers("scores", scores)
    if values.ndim != 1 or len(values) != len(boxes):
        raise ValueError(f"scores must be {len(boxes)}, one per box, but have the shape {values.shape}.")
    if np.isnan(values).any():
        raise ValueError(f"scores[{int(np.flatnonzero(np.isnan(values))[0])}] is NaN.")
    if not len(values):
        return np.zeros(0, np.int64)
    kept: list[int] = []
    left = np.argsort(-values, kind="stable")
    left = left[values[left] >= min_score]
    known = as_boxes(boxes)
    while left.size and (max_boxes is None or len(kept) < max_boxes):
        best, left = left[0], left[1:]
        kept.append(int(best))
        left = left[iou(known[left], known[best]) <= threshold] if left.size else left
    return np.array(kept, np.int64)


def as_boxes(boxes: ArrayLike | Sequence[ArrayLike]) -> np.ndarray:
    """Boxes in float64; raises unless they have four numbers each."""
    array = as_numbers("boxes", boxes)
    if not array.ndim or array.shape[-1] != 4:
        raise ValueError(f"boxes must be (top, left, bottom, right), four numbers each, not of shape {array.shape}.")
    return array
