"""Structural SVMs on matchings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.encode.matching import (
    Pairs,
    link_weights,
    matching_costs,
    matching_problem,
    stack_pairs,
    stored_pairs,
    true_matches,
)
from maxmargin.encode.rows import check_sample_weight, is_better_sparse
from maxmargin.estimators.base import StructuredModel, Task, per_example
from maxmargin.structures.matching import MatchingProblem


class MatchingSVM(StructuredModel):
    """Structural SVM that links left and right nodes, each with at most one other: a max-margin bipartite matching.

    The score of a matching is the sum of the scores of its links, which are linear in the features of the pairs; nodes
    without a link add nothing, so a constant feature decides how readily nodes are linked.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    wrong_cost : float, default=1.0
        Cost of a link that is not in the true matching.
    missed_cost : float, default=1.0
        Cost of a true link that is missing.
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
        Continue from the solution of the previous `fit`, if the examples have the same numbers of nodes.
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

    References
    ----------
    Taskar, Lacoste-Julien, Klein (2005), A discriminative matching approach to word alignment.

    Examples
    --------
    Two left and three right nodes, one feature: how much a pair is alike.

    >>> import numpy as np
    >>> from maxmargin import MatchingSVM
    >>> alike = np.array([[0.1, 0.9, 0.3], [0.8, 0.7, -0.2]])
    >>> X, y = [alike[:, :, None], -alike[:, :, None]], [[1, 0], [-1, 2]]
    >>> model = MatchingSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X)
    [array([1, 0], dtype=int32), array([-1,  2], dtype=int32)]
    """

    def __init__(
        self,
        C: float = 1.0,
        wrong_cost: float = 1.0,
        missed_cost: float = 1.0,
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
        self.wrong_cost = wrong_cost
        self.missed_cost = missed_cost
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, link_weight: Any = None) -> MatchingSVM:
        """Train on matchings.

        Parameters
        ----------
        X : list of (n_i, m_i, F) arrays, the features of all pairs of a left and a right node; or, for sparse features,
            of tuples of an (n_i m_i, F) matrix, whose row v m_i + z is that of the pair (v, z), and of (n_i, m_i)
        y : list of (n_i,) arrays with the right node of each left node, or -1; or of lists of links (left, right)
        sample_weight : (n,) weights of the examples' losses
        link_weight : list of (n_i, m_i) factors of `wrong_cost`, such as 0 for links that do no harm

        Returns
        -------
        self
        """
        self._set_weights(self._solve(self._encode(X, y, sample_weight, link_weight=link_weight)))
        return self

    def _encode(self, X: Any, y: Any, sample_weight: Any = None, *, link_weight: Any = None) -> Task:
        self._check_parameters()
        for name in ("wrong_cost", "missed_cost"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float, np.number)) and 0 <= value < np.inf):
                raise ValueError(f"{name} must be a number, 0 or more, not {value!r}.")
        pairs = stack_pairs(X, dtype=self.dtype)
        matches = true_matches(y, pairs)
        weights = check_sample_weight(sample_weight, len(pairs.n_left))
        costs = matching_costs(matches, link_weights(link_weight, pairs), self.wrong_cost, self.missed_cost, pairs)
        stores_sparse = is_better_sparse(pairs.rows)
        problem = matching_problem(stored_pairs(pairs, stores_sparse), matches, costs, self.dtype)
        shapes = np.array([pairs.n_left, pairs.n_right])
        fitted = {
            "n_features_in_": problem.n_features,
            "_shapes": shapes,
            "_stores_sparse": stores_sparse,
        }
        can_continue = (
            self.warm_start
            and hasattr(self, "_w")
            and np.array_equal(self._shapes, shapes)
            and self.n_features_in_ == problem.n_features
        )
        return Task(problem, weights, self._last_point() if can_continue else None, None, None, fitted)

    def _pairs(self, X: Any) -> Pairs:
        check_is_fitted(self)
        return stored_pairs(stack_pairs(X, self.n_features_in_, self._w.dtype), self._stores_sparse)

    def _problem(self, X: Any) -> MatchingProblem:
        pairs = self._pairs(X)
        n_left, n_pairs = pairs.left_offsets[-1], pairs.rows.offsets[-1]
        return matching_problem(pairs, np.zeros(n_left), np.zeros(n_pairs + n_left), self._w.dtype)

    def _decode(self, problem: Any, i: int, output: np.ndarray) -> np.ndarray:
        return output

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Max-marginals: the score of the best matching that has the link (v, z) or, in the last column, none of v.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (n_i, m_i + 1) arrays
        """
        problem = self._problem(X)
        parts = per_example(inference.best_through_parts(problem, self._w, self.n_jobs))
        n_left = np.diff(problem.left_offsets)
        links = [p[: n * m].reshape(n, m) for p, n, m in zip(parts, n_left, problem.n_right, strict=True)]
        return [np.column_stack([link, p[link.size :]]) for link, p in zip(links, parts, strict=True)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of left nodes whose right node, or that there is none, is predicted right.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the examples
        """
        pairs = self._pairs(X)
        truth = true_matches(y, pairs)
        weights = check_sample_weight(sample_weight, len(pairs.n_left))
        per_node = None if weights is None else np.repeat(weights, pairs.n_left)
        predicted = inference.best_outputs(self._problem(X), self._w, self.n_jobs).values
        return float(np.average(predicted == truth, weights=per_node))
