"""Multiclass SVMs of Crammer and Singer."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin import inference
from maxmargin.costs import label_costs
from maxmargin.encode.multiclass import as_rows, multiclass_problem
from maxmargin.encode.rows import check_sample_weight, is_better_sparse
from maxmargin.estimators.base import StructuredModel, Task
from maxmargin.structures.multiclass import MulticlassProblem


class MulticlassSVM(ClassifierMixin, StructuredModel):
    """Multiclass SVM of Crammer and Singer: all classes are trained together, with costs of your own if you like.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    the objective of ``LinearSVC(multi_class="crammer_singer")`` at the same C divided by n C, and certifies how far
    from the optimum it can at most be.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    cost : (L, L) array, default=None
        Cost of predicting the column's class where the row's is true, in the order of `classes_`; by default 1 for
        every wrong class.
    loss : {"hinge", "smooth_hinge"} or Loss, default="hinge"
        The hinge loss or, for solvers that need it smooth, a smoothed one such as ``Loss("l2", mu=0.1)``.
    solver : str or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(averaging=True)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the examples after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    fit_intercept : bool, default=True
        Add a constant to the scores of each class, regularized like the other weights.
    class_weight : dict or "balanced", default=None
        Weights of the examples' losses by their class.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if there are as many examples, features and the same classes.
    n_jobs : int, default=None
        Threads of passes over all examples; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the examples.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    classes_ : (L,) array
        The classes, sorted.
    coef_ : (L, F) array
        The weights of each class.
    intercept_ : (L,) array
        The constant of each class, zero without `fit_intercept`.
    trace_ : Trace
        Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
    status_ : Status
        Why the fit stopped.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        The number of features F.
    feature_names_in_ : (F,) array
        The names of the columns, if X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVM(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.decision_function(X).shape
    (True, (150, 3))
    """

    def __init__(
        self,
        C: float = 1.0,
        cost: Any = None,
        loss: Any = "hinge",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        dtype: Any = "float32",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.cost = cost
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MulticlassSVM:
        """Train on examples.

        Parameters
        ----------
        X : (n, F) array or sparse matrix
        y : (n,) classes
        sample_weight : (n,) weights of the examples' losses

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight)
        return self

    def _encode(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        self._check_parameters()
        checked = copy(self)  # a failed fit changes nothing
        X, y = validate_data(checked, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        rows = as_rows(X, self.dtype)
        classes, labels = np.unique(y, return_inverse=True)
        if self.class_weight is not None:
            weights = (1.0 if weights is None else weights) * compute_sample_weight(self.class_weight, y)
        costs = label_costs("hamming" if self.cost is None else self.cost, classes, np.bincount(labels))
        stores_sparse = is_better_sparse(rows)
        problem = multiclass_problem(
            rows, labels, costs, self.dtype, sparse=stores_sparse, with_intercept=self.fit_intercept
        )
        fitted = {
            "classes_": classes,
            "n_features_in_": X.shape[1],
            "_n_examples": len(y),
            "_stores_sparse": stores_sparse,
        }
        if hasattr(checked, "feature_names_in_") or hasattr(self, "feature_names_in_"):
            fitted["feature_names_in_"] = getattr(checked, "feature_names_in_", None)
        can_continue = (
            self.warm_start
            and hasattr(self, "_w")
            and self._w.size == problem.n_features * len(classes)
            and self._n_examples == len(y)
            and np.array_equal(self.classes_, classes)
        )
        return Task(problem, weights, self._last_point() if can_continue else None, None, None, fitted)

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        table = w.reshape(-1, len(self.classes_))
        width = self.n_features_in_
        self.coef_ = table[:width].T
        self.intercept_ = table[width] if len(table) > width else np.zeros(len(self.classes_), w.dtype)

    def _problem(self, X: Any) -> MulticlassProblem:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        dtype, n_classes = self._w.dtype, len(self.classes_)
        return multiclass_problem(
            as_rows(X, dtype),
            np.zeros(X.shape[0]),
            np.zeros((n_classes, n_classes)),
            dtype,
            sparse=self._stores_sparse,
            with_intercept=self._w.size > self.coef_.size,
        )

    def predict(self, X: Any) -> np.ndarray:
        """The class of the highest score of each example.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n,) array of classes
        """
        best = inference.best_outputs(self._problem(X), self._w, self.n_jobs).values
        return self.classes_[best]

    def predict_topk(self, X: Any, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The k best classes of each example, best first, with their scores; all where there are fewer than k.

        Parameters
        ----------
        X : as in `fit`
        k : the number of classes

        Returns
        -------
        list of pairs: (k,) array of classes, (k,) array of scores
        """
        return [(np.array(labels), scores) for labels, scores in super().predict_topk(X, k)]

    def _decode(self, problem: Any, i: int, output: np.ndarray) -> Any:
        return self.classes_[output[0]]

    def predict_marginals(self, X: Any) -> np.ndarray:
        """The probabilities of the classes under p(y) ~ exp(score(y)): not calibrated, as the loss is a hinge.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n, L) array, columns in the order of `classes_`
        """
        means, _ = inference.marginals(self._problem(X), self._w, self.n_jobs)
        return means.values.reshape(-1, len(self.classes_))

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of the classes; for two classes, as in scikit-learn, how far the second is above the first.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n, L) array, or (n,) for two classes
        """
        scores = inference.best_through_parts(self._problem(X), self._w, self.n_jobs).values
        table = scores.reshape(-1, len(self.classes_))
        return table[:, 1] - table[:, 0] if table.shape[1] == 2 else table
