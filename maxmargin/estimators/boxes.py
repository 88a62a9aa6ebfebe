"""Structural SVMs that find one box in each image."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.encode.boxes import Cells, box_problem, check_boxes, check_min_size, stack_cells
from maxmargin.encode.features import append_constant
from maxmargin.encode.rows import as_stored, check_sample_weight, is_better_sparse
from maxmargin.estimators.base import StructuredModel, Task, per_example
from maxmargin.metrics import iou
from maxmargin.structures.boxes import BoxProblem


class BoxSVM(StructuredModel):
    """Structural SVM for localization: the box with the highest sum of cell scores.

    An image is a grid of cells, each with features or with a visual word. A box is (top, left, bottom, right) in cells
    and half-open: it has the rows top:bottom and the columns left:right of its image. Its score is the sum over its
    cells of <weights, features>, or of the weights of their words: additive and bag-of-features models. The best box
    is found by branch and bound (efficient subwindow search), exactly.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {1 - IoU(y_i, y) + score(y) - score(y_i)},
    lambda = 1/(n C), and certifies how far from the optimum it can at most be.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    min_size : int or (height, width), default=1
        The smallest box to consider, in cells.
    loss : {"hinge", "smooth_hinge"} or Loss, default="hinge"
        The hinge loss or, for solvers that need it smooth, a smoothed one such as ``Loss("l2", mu=0.1)``.
    solver : str or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(averaging=True)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the images after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    fit_bias : bool, default=True
        Add a weight of every cell, whatever its features.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if the images have the same shapes and boxes.
    n_jobs : int, default=None
        Threads of passes over all images; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the images.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``cells`` (F,) and, with `fit_bias`, ``bias``.
    trace_ : Trace
        Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
    status_ : Status
        Why the fit stopped.
    n_iter_ : int
        Passes made.
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

    def __init__(
        self,
        C: float = 1.0,
        min_size: Any = 1,
        loss: Any = "hinge",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        fit_bias: bool = True,
        dtype: Any = "float32",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.min_size = min_size
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.fit_bias = fit_bias
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoxSVM:
        """Train on images.

        Parameters
        ----------
        X : list of (H_i, W_i, F) arrays of cell features, or of (H_i, W_i) integer maps of visual words, numbered from
            0; -1 for a cell without a word
        y : list of boxes (top, left, bottom, right), one per image
        sample_weight : (n,) weights of the images' losses

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def _encode(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        self._check_parameters()
        cells = stack_cells(X, dtype=self.dtype)
        smallest = check_min_size(self.min_size, cells.shapes)
        boxes = check_boxes(y, cells.shapes, smallest)
        weights = check_sample_weight(sample_weight, len(boxes))
        fitted = {
            "n_features_in_": cells.rows.matrix.shape[1],
            "_has_bias": self.fit_bias,
            "_are_words": cells.are_words,
            "_stores_sparse": is_better_sparse(cells.rows),
            "_smallest": smallest,
            "_shapes": cells.shapes,
            "_boxes": boxes,
            "_dtype": np.dtype(self.dtype),
        }
        rows = as_stored(cells.rows, fitted["_stores_sparse"])
        rows = append_constant(rows) if self.fit_bias else rows
        problem = box_problem(rows, cells.shapes, boxes, smallest, self.dtype)
        start = self._last_point() if self._can_continue(cells, boxes) else None
        return Task(problem, weights, start, None, None, fitted)

    def _can_continue(self, cells: Cells, boxes: np.ndarray) -> bool:
        """Whether a warm start is asked for and the last fit was on grids and boxes like these."""
        return (
            self.warm_start
            and hasattr(self, "_w")
            and np.array_equal(self._shapes, cells.shapes)
            and np.array_equal(self._boxes, boxes)
        )

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        self.coef_ = Bunch(cells=w[: self.n_features_in_])
        if self._has_bias:
            self.coef_["bias"] = w[-1]

    def _problem(self, X: Any) -> BoxProblem:
        check_is_fitted(self)
        cells = stack_cells(X, self.n_features_in_, self._are_words, self._dtype)
        check_min_size(tuple(self._smallest.tolist()), cells.shapes)
        rows = as_stored(cells.rows, self._stores_sparse)
        rows = append_constant(rows) if self._has_bias else rows
        return box_problem(rows, cells.shapes, None, self._smallest, self._dtype)

    def _decode(self, problem: BoxProblem, i: int, output: np.ndarray) -> np.ndarray:
        return output

    def predict(self, X: Any) -> np.ndarray:
        """The best box of each image.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n, 4) array of boxes
        """
        return np.array(super().predict(X))

    def predict_topk(self, X: Any, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The k best boxes of each image, best first, with their scores; all where there are fewer than k.

        They mostly differ by a cell or two.

        Parameters
        ----------
        X : as in `fit`
        k : the number of boxes

        Returns
        -------
        list of pairs: (k, 4) array of boxes, (k,) array of scores
        """
        return [(np.array(boxes), scores) for boxes, scores in super().predict_topk(X, k)]

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """For each cell the probability that it is inside the box, if boxes have p ~ exp(score).

        All boxes are enumerated: this takes O(H^2 W^2) time per image.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (H_i, W_i) arrays
        """
        problem = self._problem(X)
        means, _ = inference.marginals(problem, self._w, self.n_jobs)
        grids = zip(per_example(means), problem.shapes, strict=True)
        return [parts[:-1].reshape(height, width) for parts, (height, width) in grids]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean IoU of predicted and true boxes.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the images
        """
        problem = self._problem(X)
        boxes = check_boxes(y, problem.shapes, np.ones(2, np.int64))
        weights = check_sample_weight(sample_weight, len(boxes))
        predicted = inference.best_outputs(problem, self._w, self.n_jobs).values.reshape(-1, 4)
        return float(np.average(iou(boxes, predicted), weights=weights))
