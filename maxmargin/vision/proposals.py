"""Boxes as candidates: proposals, their features and costs, for models that choose among candidates.

Where a score is not a sum over cells, or the grid is too fine to search, a list of likely boxes takes the place of all
boxes. Boxes are (top, left, bottom, right), half-open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.metrics import iou

__all__ = ["Candidates", "box_candidates", "box_features", "nearest_candidates", "selective_search", "sliding_boxes"]


def sliding_boxes(shape: tuple[int, int], sizes: Iterable[tuple[int, int]], step: int = 1) -> np.ndarray:
    """All boxes of the given sizes inside an image, `step` apart.

    Parameters
    ----------
    shape
        Height and width of the image.
    sizes
        The pairs of height and width of the boxes; those larger than the image are left out.
    step
        From one box to the next, down and to the right.

    Returns
    -------
    (K, 4) array of boxes

    Examples
    --------
    >>> from maxmargin.vision import sliding_boxes
    >>> sliding_boxes((2, 4), [(2, 2), (9, 9)], step=2).tolist()
    [[0, 0, 2, 2], [0, 2, 2, 4]]
    """
    if step < 1:
        raise ValueError(f"step must be at least 1, not {step}.")
    boxes = [np.zeros((0, 4), np.int64)]
    for height, width in sizes:
        if height < 1 or width < 1:
            raise ValueError(f"sizes must hold pairs of positive integers, not {(height, width)}.")
        tops, lefts = np.arange(0, shape[0] - height + 1, step), np.arange(0, shape[1] - width + 1, step)
        top, left = (side.ravel() for side in np.meshgrid(tops, lefts, indexing="ij"))
        boxes.append(np.stack([top, left, top + height, left + width], axis=1))
    return np.concatenate(boxes)


def selective_search(image: np.ndarray, max_boxes: int = 1000, quality: bool = False) -> np.ndarray:
    """Likely boxes of objects, by selective search: regions of like colour and texture, merged step by step.

    Needs OpenCV with its contributed modules: ``pip install maxmargin[vision]``.

    Parameters
    ----------
    image
        (H, W, 3) array of bytes.
    max_boxes
        At most so many boxes, the likeliest first.
    quality
        Look at more colour spaces and scales: more boxes, and several times slower.

    Returns
    -------
    (K, 4) array of boxes in pixels, distinct

    References
    ----------
    Uijlings, van de Sande, Gevers, Smeulders (2013), Selective search for object recognition.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import selective_search
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> image[20:40, 30:60] = 255
    >>> selective_search(image).shape[1]  # doctest: +SKIP
    4
    """
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ValueError(f"image must be an (H, W, 3) array of bytes, not of shape {image.shape} and {image.dtype}.")
    try:
        from cv2 import ximgproc
    except ImportError:
        raise ImportError(
            "selective_search needs OpenCV with contributed modules: pip install maxmargin[vision]."
        ) from None
    search = ximgproc.segmentation.createSelectiveSearchSegmentation()
    search.setBaseImage(np.ascontiguousarray(image))
    if quality:
        search.switchToSelectiveSearchQuality()
    else:
        search.switchToSelectiveSearchFast()
    left, top, width, height = np.asarray(search.process(), np.int64)[:max_boxes].T
    boxes = np.stack([top, left, top + height, left + width], axis=1)
    _, first = np.unique(boxes, axis=0, return_index=True)
    return boxes[np.sort(first)]


def box_features(cells: np.ndarray, boxes: ArrayLike, mean: bool = False) -> np.ndarray:
    """The sum of cell features over each box, or their mean.

    Parameters
    ----------
    cells
        (H, W, F) features of the cells.
    boxes
        (K, 4) boxes in cells.

    Returns
    -------
    (K, F) array

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import box_features
    >>> box_features(np.ones((3, 4, 1)), [[0, 0, 3, 4], [1, 1, 2, 3]]).tolist()
    [[12.0], [2.0]]
    """
    cells, boxes = np.asarray(cells, np.float64), np.asarray(boxes)
    if cells.ndim != 3:
        raise ValueError(f"cells must be an (H, W, F) array, but it has {cells.ndim} dimensions.")
    check_inside(boxes, cells.shape)
    integral = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1, cells.shape[2]))
    integral[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    top, left, bottom, right = boxes.T
    sums = integral[bottom, right] - integral[top, right] - integral[bottom, left] + integral[top, left]
    return sums / ((bottom - top) * (right - left))[:, None] if mean else sums


def check_inside(boxes: np.ndarray, shape: tuple[int, ...], name: str = "boxes", unit: str = "cells") -> None:
    """Raise unless boxes are (K, 4) integers, of positive areas and inside an image."""
    if boxes.ndim != 2 or boxes.shape[1] != 4 or boxes.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a (K, 4) array of integers, not of shape {boxes.shape} and {boxes.dtype}.")
    for k, (top, left, bottom, right) in enumerate(boxes.tolist()):
        one = f"{name}[{k}] = ({top}, {left}, {bottom}, {right})"
        if bottom <= top or right <= left:
            raise ValueError(f"{one} has no area.")
        if top < 0 or left < 0 or bottom > shape[0] or right > shape[1]:
            raise ValueError(f"{one} is not inside the image, which has {shape[0]} x {shape[1]} {unit}.")


class Candidates(NamedTuple):
    """The candidates of one training image."""

    features: np.ndarray  # (K, F)
    costs: np.ndarray  # (K,) 1 - IoU with the best candidate
    best: int  # the candidate of cost 0: the true box itself, or the one that stands for it
    boxes: np.ndarray  # (K, 4)


def box_candidates(cells: np.ndarray, boxes: ArrayLike, true: ArrayLike, mean: bool = False) -> Candidates:
    """Turn proposals into candidates to train on: the true box first, then the proposals that differ from it.

    Parameters
    ----------
    cells, boxes
        As in `box_features`.
    true
        The true box.
    mean
        Describe a box by the mean of its cells instead of the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import box_candidates, sliding_boxes
    >>> candidates = box_candidates(np.ones((2, 4, 3)), sliding_boxes((2, 4), [(2, 2)]), (0, 0, 2, 3))
    >>> candidates.best, candidates.costs.round(2).tolist(), candidates.features.shape
    (0, [0.0, 0.33, 0.33, 0.75], (4, 3))
    """
    proposals, true = np.asarray(boxes), np.asarray(true)
    others = proposals[(proposals != true).any(axis=1)]
    all_boxes = np.concatenate([true[None], others])
    return Candidates(box_features(cells, all_boxes, mean), 1 - iou(all_boxes, true), 0, all_boxes)


def nearest_candidates(features: ArrayLike, boxes: ArrayLike, true: ArrayLike, with_none: bool = False) -> Candidates:
    """Candidates to train on where the proposal nearest to the true box stands for it (*Smoother*, section 7.1.2).

    In contrast to `box_candidates`, a model sees only boxes that it is to choose among later, and features may be any.
    Where the true box is one of the proposals that you pass, it stands for itself.

    Parameters
    ----------
    features
        (K, ...) features of the proposals; those of each are made flat.
    boxes
        (K, 4) proposals.
    true
        The true box; with `with_none`, None for an image without an object.
    with_none
        Add "none" as the last candidate, with features and a box of zeros, so of score 0; let proposals have a constant
        feature then.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import nearest_candidates
    >>> candidates = nearest_candidates(np.eye(3), [[0, 0, 4, 4], [0, 0, 4, 5], [5, 5, 6, 6]], (0, 0, 4, 6))
    >>> candidates.best, candidates.costs.round(2).tolist()
    (1, [0.2, 0.0, 1.0])
    """
    rows, proposals = np.asarray(features), np.asarray(boxes)
    if len(rows) != len(proposals) or not len(rows):
        raise ValueError(f"features and boxes must be as many, at least one, but are {len(rows)} and {len(proposals)}.")
    rows = rows.reshape(len(rows), -1)
    if true is None:
        if not with_none:
            raise ValueError("true must be a box: with_none=True is for images without an object.")
        best, costs = len(rows), np.ones(len(rows))
    else:
        best = int(np.argmax(iou(proposals, true)))
        costs = 1 - iou(proposals, proposals[best])
        costs[(proposals == proposals[best]).all(axis=1)] = 0
    if with_none:
        rows, proposals = (np.concatenate([table, np.zeros_like(table[:1])]) for table in (rows, proposals))
        costs = np.append(costs, float(best < len(costs)))
    return Candidates(rows, costs, best, proposals)
