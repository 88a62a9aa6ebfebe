"""Box regression: boxes moved nearer to objects, by linear functions of their features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from maxmargin.checks import check_positive, check_share
from maxmargin.metrics import iou
from maxmargin.vision.box_geometry import as_boxes

__all__ = ["BoxRegressor"]


class BoxRegressor(BaseEstimator):
    """Moves boxes nearer to objects, as R-CNN does: by ridge regression from the features of a box.

    What is learned are the shifts of the centre, in heights and widths of a box, and the logarithms of the factors of
    its height and width. A choice among proposals can be no better than these; what it found can. Features of the moved
    box allow for another step.

    Parameters
    ----------
    alpha
        Strength of the regularization.
    min_iou
        Learn from boxes that overlap a true one by at least so much; those further away tell little of it.

    Attributes
    ----------
    coef_, intercept_
        (4, F) and (4,) weights of the shifts down and to the right and of the logarithms of the factors.

    References
    ----------
    Girshick, Donahue, Darrell, Malik (2014), Rich feature hierarchies for accurate object detection and semantic
    segmentation, appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import BoxRegressor
    >>> rng, true = np.random.default_rng(0), np.array([20, 30, 60, 80])
    >>> boxes = true + rng.integers(-8, 9, (50, 4))
    >>> features = (true - boxes) / 40  # as if a network could tell
    >>> model = BoxRegressor(alpha=0.01).fit([features], [boxes], [true])
    >>> moved, = model.predict([features[:1]], [boxes[:1]])
    >>> bool(np.abs(moved - true).max() <= 1)
    True
    """

    def __init__(self, *, alpha: float = 1.0, min_iou: float = 0.5) -> None:
        self.alpha = alpha
        self.min_iou = min_iou

    def fit(self, features: Sequence[ArrayLike], boxes: Sequence[ArrayLike], y: Sequence[ArrayLike]) -> Self:
        """Learn from boxes around true ones.

        Parameters
        ----------
        features
            For each image the (K_i, ...) features of its boxes; those of each are made flat.
        boxes
            For each image (K_i, 4) boxes, such as proposals, or true boxes with sides moved at random.
        y
            For each image its true box, or (m_i, 4) boxes, of which the nearest counts; none where m_i is 0.
        """
        check_positive("alpha", self.alpha)
        check_share("min_iou", self.min_iou)
        if not len(features) == len(boxes) == len(y):
            raise ValueError(
                f"features, boxes and y must be of as many images, but are {len(features)}, {len(boxes)} and {len(y)}."
            )
        rows, targets = [], []
        for i, (some, own, true) in enumerate(zip(features, boxes, y, strict=True)):
            known, flat = _pair(some, own, i)
            true_boxes = np.reshape(as_boxes(true), (-1, 4)) if np.size(true) else np.zeros((0, 4))
            if not len(known) or not len(true_boxes):
                continue
            overlaps = iou(known[:, np.newaxis], true_boxes)
            is_near = overlaps.max(axis=1) >= self.min_iou
            rows.append(flat[is_near])
            targets.append(_changes(known[is_near], true_boxes[overlaps.argmax(axis=1)[is_near]]))
        if not sum(map(len, rows)):
            raise ValueError(f"boxes must hold some that overlap true ones by min_iou, {self.min_iou:g}.")
        found = Ridge(alpha=self.alpha).fit(np.concatenate(rows), np.concatenate(targets))
        self.coef_, self.intercept_ = found.coef_, found.intercept_
        return self

    def predict(
        self, features: Sequence[ArrayLike], boxes: Sequence[ArrayLike], shapes: Sequence[tuple[int, ...]] | None = None
    ) -> list[np.ndarray]:
        """Boxes moved to where objects should be.

        Parameters
        ----------
        features, boxes
            As in `fit`.
        shapes
            For each image its height and width, beyond which no box goes.

        Returns
        -------
        for each image (K_i, 4) boxes of integers
        """
        check_is_fitted(self)
        moved = []
        for i, (some, own) in enumerate(zip(features, boxes, strict=True)):
            known, flat = _pair(some, own, i)
            if flat.shape[1] != self.coef_.shape[1]:
                raise ValueError(f"features[{i}] are {flat.shape[1]} of each box, but {self.coef_.shape[1]} in fit.")
            found = _change(known, flat @ self.coef_.T + self.intercept_)
            moved.append(found if shapes is None else _inside(found, shapes[i]))
        return moved


def _pair(features: ArrayLike, boxes: ArrayLike, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of an image and their features, flat."""
    rows, known = np.asarray(features, np.float64), as_boxes(boxes)
    if known.ndim != 2 or len(rows) != len(known):
        raise ValueError(
            f"features[{i}] and boxes[{i}] must be as many, but have the shapes {rows.shape} and {known.shape}."
        )
    return known, rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, int(np.prod(rows.shape[1:])))


def _changes(boxes: np.ndarray, true_boxes: np.ndarray) -> np.ndarray:
    """How to get from boxes to true ones."""
    sides = boxes[:, 2:] - boxes[:, :2]
    shifts = (true_boxes[:, :2] + true_boxes[:, 2:] - boxes[:, :2] - boxes[:, 2:]) / (2 * sides)
    return np.concatenate([shifts, np.log((true_boxes[:, 2:] - true_boxes[:, :2]) / sides)], axis=1)


def _change(boxes: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """The boxes with these changes made, in whole pixels, at least one each way."""
    sides = boxes[:, 2:] - boxes[:, :2]
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2 + changes[:, :2] * sides
    halves = sides * np.exp(np.clip(changes[:, 2:], -1, 1)) / 2  # by no more than a factor of e
    corners = np.rint(centres - halves)
    return np.concatenate([corners, np.maximum(np.rint(centres + halves), corners + 1)], axis=1).astype(np.int64)


def _inside(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The parts of boxes that are inside an image, at least one pixel each way."""
    corners = np.clip(boxes[:, :2], 0, np.array(shape[:2]) - 1)
    return np.concatenate([corners, np.clip(boxes[:, 2:], corners + 1, shape[:2])], axis=1)
