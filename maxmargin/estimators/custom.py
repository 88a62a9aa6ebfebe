"""Structural SVMs on your own structure."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.encode.rows import check_sample_weight
from maxmargin.estimators.base import StructuredModel, Task
from maxmargin.structures.custom import CustomProblem


class StructuredSVM(StructuredModel):
    """Structural SVM on a structure of your own, given by two or three Python methods.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    where score(y) = <w, features(x, y)>, and certifies how far from the optimum it can at most be.

    Parameters
    ----------
    model : object
        The structure, with the methods ``features(x, y)``, ``cost(y_true, y)`` and either
        ``argmax(x, w, y_true=None)`` or ``outputs(x)``; `maxmargin.CustomProblem` says what they return.
    C : float, default=1.0
        Inverse strength of the regularization.
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
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if it was on the same objects X and y, unchanged.
    n_jobs : int, default=None
        Threads of passes over all examples; None is 1, -1 all cores. Python code gains little from them.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the examples.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    coef_ : (d,) array
        The weights.
    trace_ : Trace
        Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
    status_ : Status
        Why the fit stopped.
    n_iter_ : int
        Passes made.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVM
    >>> class Ordinal:
    ...     "Grades 0 to 4: costs grow with the distance."
    ...     def features(self, x, y):
    ...         return np.append(y * x, np.arange(5) == y)
    ...     def cost(self, y_true, y):
    ...         return abs(y_true - y)
    ...     def outputs(self, x):
    ...         return range(5)
    >>> X = [-0.9, -0.8, -0.4, -0.3, 0.0, 0.1, 0.4, 0.5, 0.8, 0.9]
    >>> svm = StructuredSVM(Ordinal(), C=10.0, random_state=0).fit(X, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    >>> svm.predict([-1.0, 0.05, 1.0])
    [0, 2, 4]
    """

    dtype = "float64"

    def __init__(
        self,
        model: Any,
        C: float = 1.0,
        loss: Any = "hinge",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _encode(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        self._check_parameters()
        last = getattr(self, "_last", None) if self.warm_start else None
        goes_on = last is not None and last[0] is self.model and last[1] is X and last[2] is y
        problem = last[3] if last is not None and goes_on else CustomProblem(self.model, X, y)
        weights = check_sample_weight(sample_weight, len(problem.X))
        fitted = {"_last": (self.model, X, y, problem) if self.warm_start else None}
        return Task(problem, weights, self._last_point() if goes_on else None, None, None, fitted)

    def _problem(self, X: Any) -> CustomProblem:
        check_is_fitted(self)
        return CustomProblem(self.model, X, None, len(self._w))

    def _decode(self, problem: CustomProblem, i: int, output: np.ndarray) -> Any:
        return problem.output(i, output)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean cost of the predictions: the higher the better, at most 0.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the examples
        """
        predicted = self.predict(X)
        if len(y) != len(predicted):
            raise ValueError(f"X has {len(predicted)} examples, but y has {len(y)}.")
        costs = [self.model.cost(truth, output) for truth, output in zip(y, predicted, strict=True)]
        return -float(np.average(costs, weights=check_sample_weight(sample_weight, len(costs))))
