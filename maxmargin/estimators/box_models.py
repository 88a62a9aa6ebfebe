"""Structural SVMs that find a box in each image, or several, or none."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np

from maxmargin.checks import check_count, check_number, check_share
from maxmargin.drawings.image_drawings import BOXES
from maxmargin.encode.box_encoder import BoxEncoder
from maxmargin.estimators.foundation.arguments import MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.parameters import parameter
from maxmargin.vision.detections import find_detections


@estimator
class BoxSVM(MaxMargin, Precision, StructuredModel):
    """Structural SVM for localization: the box with the highest sum of cell scores.

    An image is a grid of cells, each with features or with a visual word. A box is (top, left, bottom, right) in cells
    and half-open: it has the rows top:bottom and the columns left:right of its image. Its score is the sum over its
    cells of <weights, features>, or of the weights of their words: additive and bag-of-features models. The best box
    is found by branch and bound (efficient subwindow search), exactly; the k best of `predict_topk` mostly differ by a
    cell or two: `detect` finds several objects. `score` is the mean IoU of predicted and true boxes.

    Where some training images have no object, "none" is one of the outputs, a box without cells, of score 0 and
    written (0, 0, 0, 0). All others then have a constant more, with a weight, the score that it takes to be one.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {1 - IoU(y_i, y) + score(y) - score(y_i)},
    lambda = 1/(n C), and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``cells`` (F,), with `fit_intercept` ``bias``, and ``box``, that of any box, if there may be none.
    n_features_in_ : int
        The number of features F, or of words.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import BoxSVM
    >>> sky, bird = 0, 1
    >>> X = [np.full((4, 6), sky), np.full((5, 5), sky)]
    >>> X[0][1:3, 2:5] = X[1][0:2, 1:4] = bird
    >>> model = BoxSVM(C=10.0, random_state=0).fit(X, [(1, 2, 3, 5), (0, 1, 2, 4)])
    >>> model.predict([np.array([[sky, bird, bird], [sky, bird, bird], [sky, sky, sky]])])
    array([[0, 1, 2, 3]], dtype=int32)
    """

    min_size: Any = parameter("int or (height, width)", "The smallest box to consider, in cells.", default=1)
    fit_intercept: bool = parameter("bool", "Add a weight of every cell, whatever its features.", default=True)

    _encoder_type = BoxEncoder
    _drawing = BOXES

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on images.

        Parameters
        ----------
        X
            List of (H_i, W_i, F) arrays of cell features, or of (H_i, W_i) integer maps of visual words, numbered from
            0; -1 for a cell without a word.
        y
            List of boxes (top, left, bottom, right), one per image; None, or zeros, for images without an object. Where
            less is known, "present", "absent", "unknown" or a `KnownBox`.
        """
        return self._fit(X, y, sample_weight, options)

    def detect(
        self, X: object, max_boxes: int = 10, threshold: float = 0.0, min_score: float = 0.0
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Several boxes in each image, or none: the best one, then the best that does not overlap it, and so on.

        This is non-maximum suppression over all boxes of an image, exactly. Boxes within the one of an object have
        high scores, too, so that those which may overlap are seldom other objects.

        Parameters
        ----------
        X
            As in `fit`.
        max_boxes
            At most so many in an image.
        threshold
            The IoU with a better box above which a box is left out.
        min_score
            The least score of a detection; 0 is that of no box.

        Returns
        -------
        list of pairs: (k_i, 4) boxes, (k_i,) scores; such as `maxmargin.metrics.average_precision` takes

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import BoxSVM
        >>> X = [np.array([[0, 0, 1, 1], [0, 0, 1, 1]]), np.array([[0, 1], [0, 0]]), np.zeros((2, 2), int)]
        >>> model = BoxSVM(C=10.0, random_state=0).fit(X, [(0, 2, 2, 4), (0, 1, 1, 2), None])
        >>> (two, _), (none, _) = model.detect([np.array([[1, 1, 0, 1], [1, 1, 0, 0]]), np.zeros((2, 3), int)])
        >>> two.tolist(), len(none), model.predict([np.zeros((2, 3), int)]).tolist()
        ([[0, 0, 2, 2], [0, 3, 1, 4]], 0, [[0, 0, 0, 0]])
        """
        check_count("max_boxes", max_boxes)
        check_share("threshold", threshold)
        check_number("min_score", min_score)
        return find_detections(self._problem(X), self._w, max_boxes, threshold, min_score, self.n_jobs)
