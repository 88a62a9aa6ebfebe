"""Choosing among candidates: structural SVMs and conditional logit models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.encode.candidates import candidate_costs, candidate_problem, stack_candidates, true_candidates
from maxmargin.encode.rows import as_stored, check_sample_weight, is_better_sparse
from maxmargin.estimators.base import StructuredModel, Task, per_example
from maxmargin.structures.candidates import CandidateProblem


class CandidateModel(StructuredModel):
    """What the models of candidate sets share: their data, weights and predictions."""

    def _encode(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> Task:
        self._check_parameters()
        rows = stack_candidates(X, dtype=self.dtype)
        labels = true_candidates(y, rows)
        weights = check_sample_weight(sample_weight, len(labels))
        flat_costs = candidate_costs(costs, labels, rows)
        stores_sparse = is_better_sparse(rows)
        problem = candidate_problem(as_stored(rows, stores_sparse), labels, flat_costs, self.dtype)
        fitted = {
            "n_features_in_": problem.n_features,
            "_offsets": problem.offsets,
            "_stores_sparse": stores_sparse,
        }
        can_continue = (
            self.warm_start
            and hasattr(self, "_w")
            and np.array_equal(self._offsets, problem.offsets)
            and self.n_features_in_ == problem.n_features
        )
        return Task(problem, weights, self._last_point() if can_continue else None, None, None, fitted)

    def _problem(self, X: Any) -> CandidateProblem:
        check_is_fitted(self)
        dtype = self._w.dtype
        rows = as_stored(stack_candidates(X, self.n_features_in_, dtype), self._stores_sparse)
        return candidate_problem(rows, np.zeros(len(rows.lengths)), np.zeros(rows.offsets[-1]), dtype)

    def _decode(self, problem: Any, i: int, output: np.ndarray) -> int:
        return int(output[0])

    def predict(self, X: Any) -> np.ndarray:
        """The index of the best candidate of each example.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n,) array of integers
        """
        return inference.best_outputs(self._problem(X), self._w, self.n_jobs).values

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """The scores of all candidates.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (K_i,) arrays
        """
        return per_example(inference.best_through_parts(self._problem(X), self._w, self.n_jobs))

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """The probabilities of the candidates.

        They are those of p(y) ~ exp(score(y)): estimates of probabilities if the model was trained as a CRF.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (K_i,) arrays
        """
        means, _ = inference.marginals(self._problem(X), self._w, self.n_jobs)
        return per_example(means)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of examples whose true candidate is predicted.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the examples
        """
        check_is_fitted(self)
        truth = true_candidates(y, stack_candidates(X, self.n_features_in_, self._w.dtype))
        weights = check_sample_weight(sample_weight, len(truth))
        return float(np.average(self.predict(X) == truth, weights=weights))


class CandidateSVM(CandidateModel):
    """Structural SVM that chooses among candidates: reranking, entity linking, learning to pick one of a list.

    Every example has its own candidates, any number of them, each with a row of features. The score of a candidate is
    linear in its features. Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_k {cost_ik + score_ik - score of the
    true candidate}, lambda = 1/(n C), and certifies how far from the optimum it can at most be.

    Parameters
    ----------
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
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if the examples have the same numbers of candidates.
    n_jobs : int, default=None
        Threads of passes over all examples; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the examples.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    coef_ : (F,) array
        The weights.
    trace_ : Trace
        Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
    status_ : Status
        Why the fit stopped.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        The number of features F.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import CandidateSVM
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 0.9], [0.8, 0.1], [0.5, 0.5]], [[0.9, 0.3], [0.1, 0.2]]]
    >>> y = [0, 1, 0]
    >>> model = CandidateSVM(C=10.0, random_state=0).fit(X, y, costs=[[0, 1], [2, 0, 1], [0, 1]])
    >>> model.predict(X).tolist(), model.predict([[[0.0, 1.0], [0.3, 0.6], [0.7, 0.2]]]).tolist()
    ([0, 1, 0], [2])
    """

    def __init__(
        self,
        C: float = 1.0,
        loss: Any = "hinge",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        dtype: Any = "float32",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> CandidateSVM:
        """Train on candidate sets.

        Parameters
        ----------
        X : list of (K_i, F) arrays or sparse matrices, one row per candidate
        y : (n,) indices of the true candidates
        sample_weight : (n,) weights of the examples' losses
        costs : list of (K_i,) costs of predicting each candidate, zero for the true one; by default 1 for all others

        Returns
        -------
        self
        """
        self._set_weights(self._solve(self._encode(X, y, sample_weight, costs=costs)))
        return self


class CandidateCRF(CandidateModel):
    """Conditional logit: the probability of a candidate is its share of exp(score) among those of its example.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(true candidate)}, lambda = 1/(n C), and certifies how
    far from the optimum it can at most be.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    solver : str or Solver, default="lbfgs"
        The optimizer.
    tol, max_passes, time_limit, warm_start, n_jobs, random_state, verbose : as those of `CandidateSVM`
    dtype : {"float32", "float64"}, default="float64"
        Precision of scores and probabilities.

    Attributes
    ----------
    coef_, trace_, status_, n_iter_, n_features_in_ : as those of `CandidateSVM`

    Examples
    --------
    >>> from maxmargin import CandidateCRF
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 0.9], [0.8, 0.1], [0.5, 0.5]], [[0.9, 0.3], [0.1, 0.2]]]
    >>> model = CandidateCRF(C=10.0).fit(X, [0, 1, 0])
    >>> model.predict_marginals(X)[1].round(1).tolist()
    [0.1, 0.7, 0.2]
    """

    _loss = "log"

    def __init__(
        self,
        C: float = 1.0,
        solver: Any = "lbfgs",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        dtype: Any = "float64",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
