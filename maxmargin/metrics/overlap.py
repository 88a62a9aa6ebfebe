"""Quality of boxes: overlap, correct localization, average precision.

Boxes are (top, left, bottom, right), half-open and in any unit: a box contains the points with top <= row < bottom and
left <= column < right, so that its area is (bottom - top) (right - left).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Boxes = Sequence[ArrayLike] | np.ndarray  # (top, left, bottom, right) each


def iou(a: ArrayLike, b: ArrayLike) -> Any:
    """Intersection over union of boxes: 1 where they are equal, 0 where they are disjoint.

    Parameters
    ----------
    a, b
        (..., 4) boxes; the shapes before the last axis are broadcast against each other.

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> from maxmargin.metrics import iou
    >>> iou([0, 0, 2, 2], [0, 1, 2, 3])
    0.3333333333333333
    >>> iou([[0, 0, 2, 2], [5, 5, 6, 6]], [0, 0, 2, 1])
    array([0.5, 0. ])
    """
    a, b = _boxes(a, "a"), _boxes(b, "b")
    shared = _area(np.concatenate([np.maximum(a, b)[..., :2], np.minimum(a, b)[..., 2:]], axis=-1))
    overlap = shared / (_area(a) + _area(b) - shared)
    return overlap if overlap.ndim else float(overlap)


def mean_iou(true: Boxes, predicted: Boxes) -> float:
    """The mean overlap of one predicted box per image with the true one, or with the nearest of several true ones.

    Parameters
    ----------
    true
        For each image a box, or an (m, 4) array of boxes.
    predicted
        (n, 4) one box per image.

    Examples
    --------
    >>> from maxmargin.metrics import mean_iou
    >>> mean_iou([[0, 0, 2, 2], [0, 0, 2, 2]], [[0, 0, 2, 2], [0, 1, 2, 2]])
    0.75
    """
    return float(np.mean(_best_overlaps(true, predicted)))


def corloc(true: Boxes, predicted: Boxes, threshold: float = 0.5) -> float:
    """Correct localization: the share of images whose predicted box overlaps a true one by at least `threshold`.

    Parameters
    ----------
    true, predicted
        As in `mean_iou`.
    threshold
        The least IoU of a correct box.

    Examples
    --------
    >>> from maxmargin.metrics import corloc
    >>> corloc([[0, 0, 2, 2], [0, 0, 2, 2]], [[0, 0, 2, 1], [1, 1, 3, 3]])
    0.5
    """
    return float(np.mean(_best_overlaps(true, predicted) >= threshold))


def average_precision(
    true: Sequence[Any],
    predicted: Sequence[Any],
    scores: Sequence[Any],
    threshold: float = 0.5,
    interpolation: str = "all",
) -> float:
    """Average precision of detections, as in PASCAL VOC: the area under precision as a function of recall.

    Detections of all images are taken by falling score. One is right if the true box it overlaps most, by at least
    `threshold`, was not found before; a second detection of the same box is wrong. Precision at a recall is
    interpolated: the highest one at that recall or any above.

    Parameters
    ----------
    true
        For each image an (m_i, 4) array of the true boxes; m_i may be 0.
    predicted
        For each image a (k_i, 4) array of detections; k_i may be 0.
    scores
        For each image the (k_i,) scores of its detections.
    threshold
        The least IoU of a correct detection.
    interpolation
        "all" averages over all recalls, the area under the curve (VOC since 2010); "11-point" over the recalls 0, 0.1,
        ..., 1 (VOC until 2009).

    Examples
    --------
    >>> from maxmargin.metrics import average_precision
    >>> true = [[[0, 0, 2, 2]], [[1, 1, 4, 4]]]
    >>> predicted = [[[0, 0, 2, 2], [5, 5, 6, 6]], [[1, 1, 4, 4]]]
    >>> average_precision(true, predicted, [[0.9, 0.8], [0.7]])
    0.8333333333333333
    """
    if interpolation not in ("all", "11-point"):
        raise ValueError(f"interpolation must be 'all' or '11-point', not {interpolation!r}.")
    if not len(true) == len(predicted) == len(scores):
        raise ValueError(f"true, predicted and scores have {len(true)}, {len(predicted)} and {len(scores)} images.")
    truths = [_list_of_boxes(boxes, f"true[{i}]") for i, boxes in enumerate(true)]
    found = [_list_of_boxes(boxes, f"predicted[{i}]") for i, boxes in enumerate(predicted)]
    for i, (boxes, values) in enumerate(zip(found, scores, strict=True)):
        if len(boxes) != len(values):
            raise ValueError(f"predicted[{i}] has {len(boxes)} boxes, but scores[{i}] has {len(values)}.")
    n_true = sum(len(boxes) for boxes in truths)
    if n_true == 0:
        raise ValueError("true must hold at least one box.")
    is_right = _match(truths, found, [np.asarray(values, float) for values in scores], threshold)
    hits = np.cumsum(is_right)
    recall, precision = hits / n_true, hits / np.arange(1, len(hits) + 1)
    best_from = np.maximum.accumulate(precision[::-1])[::-1]
    if interpolation == "all":
        return float(np.sum(best_from * np.diff(recall, prepend=0.0)))
    at = np.searchsorted(recall, np.linspace(0, 1, 11) - 1e-12)
    return float(np.mean(np.append(best_from, 0.0)[at]))


def _match(truths: list[np.ndarray], found: list[np.ndarray], scores: list[np.ndarray], threshold: float) -> np.ndarray:
    """Whether each detection is right, by falling score; equal scores in the order given."""
    ranked = [(-value, i, k) for i, values in enumerate(scores) for k, value in enumerate(values)]
    is_taken = [np.zeros(len(boxes), bool) for boxes in truths]
    is_right = np.zeros(len(ranked), bool)
    for rank, (_, i, k) in enumerate(sorted(ranked)):
        if len(truths[i]):
            overlaps = iou(truths[i], found[i][k])
            nearest = int(np.argmax(overlaps))
            is_right[rank] = overlaps[nearest] >= threshold and not is_taken[i][nearest]
            is_taken[i][nearest] |= is_right[rank]
    return is_right


def _best_overlaps(true: Boxes, predicted: Boxes) -> np.ndarray:
    if len(true) != len(predicted) or len(true) == 0:
        raise ValueError(
            f"true and predicted must hold one entry per image, but hold {len(true)} and {len(predicted)}."
        )
    overlaps = []
    for i, (boxes, box) in enumerate(zip(true, predicted, strict=True)):
        boxes = _list_of_boxes(np.atleast_2d(boxes), f"true[{i}]")
        if len(boxes) == 0:
            raise ValueError(f"true[{i}] holds no box.")
        overlaps.append(np.max(iou(boxes, _boxes(box, f"predicted[{i}]"))))
    return np.array(overlaps)


def _list_of_boxes(boxes: ArrayLike, name: str) -> np.ndarray:
    return _boxes(boxes, name) if np.size(boxes) else np.zeros((0, 4))


def _boxes(boxes: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(boxes, np.float64)
    if array.ndim == 0 or array.shape[-1] != 4:
        raise ValueError(f"{name} must hold boxes (top, left, bottom, right), but its shape is {array.shape}.")
    if not (np.isfinite(array).all() and (array[..., 2:] > array[..., :2]).all()):
        raise ValueError(f"{name} must hold finite boxes of positive area, top < bottom and left < right.")
    return array


def _area(boxes: np.ndarray) -> np.ndarray:
    return np.prod(np.maximum(boxes[..., 2:] - boxes[..., :2], 0), axis=-1)
