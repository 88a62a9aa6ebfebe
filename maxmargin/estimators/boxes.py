"""Structural SVMs that find one box in each image."""

from __future__ import annotations

from typing import Any, Self, Unpack

from maxmargin.encode.boxes import BoxEncoder
from maxmargin.estimators.families import SVM, ArrayModel, WithMarginals
from maxmargin.estimators.parameters import FitOptions, documents_fit, estimator, parameter


@estimator
class BoxSVM(SVM, WithMarginals, ArrayModel):
    """Structural SVM for localization: the box with the highest sum of cell scores.

    An image is a grid of cells, each with features or with a visual word. A box is (top, left, bottom, right) in cells
    and half-open: it has the rows top:bottom and the columns left:right of its image. Its score is the sum over its
    cells of <weights, features>, or of the weights of their words: additive and bag-of-features models. The best box
    is found by branch and bound (efficient subwindow search), exactly; the k best of `predict_topk` mostly differ by a
    cell or two. `score` is the mean IoU of predicted and true boxes.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {1 - IoU(y_i, y) + score(y) - score(y_i)},
    lambda = 1/(n C), and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``cells`` (F,) and, with `fit_bias`, ``bias``.
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
    fit_bias: bool = parameter("bool", "Add a weight of every cell, whatever its features.", default=True)

    @documents_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **options: Unpack[FitOptions]) -> Self:
        """Train on images.

        Parameters
        ----------
        X : list of (H_i, W_i, F) arrays of cell features, or of (H_i, W_i) integer maps of visual words, numbered from
            0; -1 for a cell without a word
        y : list of boxes (top, left, bottom, right), one per image
        """
        return self._fit(X, y, sample_weight, **options)

    def _learn(self, X: Any, y: Any, **data: Any) -> tuple[BoxEncoder, Any]:
        return BoxEncoder.learn(X, y, dtype=self.dtype, fit_bias=self.fit_bias, min_size=self.min_size)
