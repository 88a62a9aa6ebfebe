"""Structural SVMs on sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.costs import label_costs, position_costs
from maxmargin.encode.chain import (
    BIASES,
    chain_features,
    chain_problem,
    check_feasible,
    check_gold_allowed,
    transition_penalties,
)
from maxmargin.encode.sequences import (
    Rows,
    as_stored,
    check_labels_given,
    check_sample_weight,
    encode_labels,
    flatten_labels,
    flatten_weights,
    is_better_sparse,
    split,
    stack_rows,
)
from maxmargin.estimators.base import StructuredSVM, Task, check_k
from maxmargin.solvers.active_sets import DualPoint
from maxmargin.structures.chain import ChainProblem


class ChainSVM(StructuredSVM):
    """Structural SVM for sequence labelling: a max-margin Markov chain of emissions and transitions.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    cost : {"hamming", "normalized_hamming"} or (L, L) array, default="hamming"
        Cost of a labelling: the number of wrong labels, the same divided by the length, or the sum of the entries
        [true label, predicted label] of a matrix in the order of `classes_`.
    solver : {"auto", "bcfw", "frank-wolfe"} or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(averaging=True)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the sequences after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    fit_bias : bool, default=True
        Add three weights per label: for every position, for the first and for the last of a sequence.
    allowed_transitions : set of pairs of labels or (L, L) boolean array, default=None
        The transitions a labelling may use, from the first label (row) to the second (column); None allows all.
    bounds : dict, default=None
        Bounds of weights by the names of `coef_`, such as ``{"transitions": (0, None)}``: pairs of a lower and an upper
        bound, each None, a number or an array like that part of the weights.
    class_weight : dict or "balanced", default=None
        Factors of the cost by true label.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if the sequences have the same lengths and labels.
    n_jobs : int, default=None
        Threads of passes over all sequences; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the sequences.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    classes_ : (L,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``emissions`` (F, L), ``transitions`` (L, L) and, with `fit_bias`, ``bias``, ``first`` and ``last``
        (L,).
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
    >>> from maxmargin import ChainSVM
    >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[1, 2]], np.eye(3)[[0, 1]]]
    >>> y = [["a", "b", "c"], ["b", "c"], ["a", "b"]]
    >>> model = ChainSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict([np.eye(3)[[0, 1]]])
    [array(['a', 'b'], dtype='<U1')]
    >>> model.status_.name
    'OPTIMAL'
    """

    def __init__(
        self,
        C: float = 1.0,
        cost: Any = "hamming",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        fit_bias: bool = True,
        allowed_transitions: Any = None,
        bounds: Any = None,
        class_weight: Any = None,
        dtype: Any = "float32",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.cost = cost
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.fit_bias = fit_bias
        self.allowed_transitions = allowed_transitions
        self.bounds = bounds
        self.class_weight = class_weight
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, position_weight: Any = None
    ) -> ChainSVM:
        """Train on sequences.

        Parameters
        ----------
        X : list of (T_i, F) arrays or sparse matrices, or one stacked (N, F) matrix together with `lengths`
        y : list of sequences of labels, integers or strings; with `lengths` also one flat sequence
        sample_weight : (n,) weights of the sequences' losses
        lengths : the numbers of rows of the sequences in a stacked X
        position_weight : list of (T_i,) weights of the positions in the cost

        Returns
        -------
        self
        """
        task = self._encode(X, y, sample_weight, lengths=lengths, position_weight=position_weight)
        self._set_weights(self._solve(task))
        return self

    def _encode(
        self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, position_weight: Any = None
    ) -> Task:
        """Check all input, keep what predictions need, and put the optimization problem together."""
        self._check_parameters()
        rows = stack_rows(X, lengths)
        check_labels_given(y)
        flat = flatten_labels(y, rows, is_stacked=lengths is not None)
        weights = check_sample_weight(sample_weight, len(rows.lengths))
        classes = np.unique(flat)
        labels = encode_labels(flat, classes, rows)
        penalty = transition_penalties(self.allowed_transitions, classes, self.dtype)
        check_feasible(penalty, rows.lengths)
        check_gold_allowed(labels, penalty, rows, classes)
        costs = label_costs(self.cost, classes, np.bincount(labels), self.class_weight)
        position_weight = None if position_weight is None else flatten_weights(position_weight, rows, "position_weight")
        scales = position_costs(self.cost, rows.lengths, position_weight)
        width, stores_sparse = rows.matrix.shape[1], is_better_sparse(rows)
        lower, upper = self._bound_weights(width, len(classes))

        rows = as_stored(rows, stores_sparse)
        features = chain_features(rows, self.dtype, with_bias=self.fit_bias, for_training=True)
        n_features = width + (len(BIASES) if self.fit_bias else 0)
        problem = chain_problem(features, rows, n_features, labels, costs, scales, penalty)
        start = self._previous_dual(rows, classes, penalty)
        self.classes_, self.n_features_in_ = classes, width
        self._penalty, self._lengths, self._stores_sparse = penalty, rows.lengths, stores_sparse
        return Task(problem, weights, start, lower, upper)

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        self.coef_ = self._name_weights(w, self.n_features_in_, len(self.classes_))

    def _previous_dual(self, rows: Rows, classes: np.ndarray, penalty: np.ndarray) -> DualPoint | None:
        if not self.warm_start or getattr(self, "_dual", None) is None:
            return None
        is_same = (
            np.array_equal(self._lengths, rows.lengths)
            and np.array_equal(self.classes_, classes)
            and np.array_equal(self._penalty, penalty)
        )
        return self._dual if is_same else None

    def _bound_weights(self, width: int, n_labels: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.bounds is None:
            return None, None
        n_weights = (width + n_labels + (len(BIASES) if self.fit_bias else 0)) * n_labels
        limits = np.full(n_weights, -np.inf), np.full(n_weights, np.inf)
        parts = [self._name_weights(limit, width, n_labels) for limit in limits]  # views
        for name, pair in self.bounds.items():
            if name not in parts[0]:
                raise ValueError(f"bounds names {name!r}, but the weights are {', '.join(parts[0])}.")
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ValueError(f"bounds[{name!r}] must be a pair of a lower and an upper bound, not {pair!r}.")
            for part, bound in zip(parts, pair, strict=True):
                if bound is not None:
                    shape = part[name].shape
                    if np.shape(bound) not in ((), shape):
                        raise ValueError(f"bounds[{name!r}] has the shape {np.shape(bound)}, but the part has {shape}.")
                    part[name][...] = bound
            if not (parts[0][name] <= parts[1][name]).all():
                raise ValueError(f"bounds[{name!r}] must be numbers, the lower ones at most the upper ones.")
        return limits

    def _name_weights(self, w: np.ndarray, width: int, n_labels: int) -> Bunch:
        table = w.reshape(-1, n_labels)
        named = Bunch(emissions=table[:width], transitions=table[-n_labels:])
        if self.fit_bias:
            named.update(zip(BIASES, table[width : width + len(BIASES)], strict=True))
        return named

    def _problem(self, X: Any, lengths: Any) -> tuple[ChainProblem, Rows]:
        check_is_fitted(self)
        rows = as_stored(stack_rows(X, lengths, self.n_features_in_), self._stores_sparse)
        check_feasible(self._penalty, rows.lengths)
        features = chain_features(rows, self._penalty.dtype, with_bias="bias" in self.coef_, for_training=False)
        n_labels, n_tokens = len(self.classes_), int(rows.offsets[-1])
        n_features = self._w.size // n_labels - n_labels
        no_labels, no_costs = np.zeros(n_tokens, np.int32), np.zeros((n_labels, n_labels))
        return chain_problem(features, rows, n_features, no_labels, no_costs, np.zeros(n_tokens), self._penalty), rows

    def predict(self, X: Any, *, lengths: Any = None) -> list[np.ndarray]:
        """The best labelling of each sequence.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        list of (T_i,) arrays of labels
        """
        problem, rows = self._problem(X, lengths)
        return split(self.classes_[inference.best_outputs(problem, self._w, self.n_jobs).values], rows)

    def predict_topk(self, X: Any, k: int, *, lengths: Any = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """The k best labellings of each sequence, best first, with their scores; all where there are fewer than k.

        Parameters
        ----------
        X, lengths : as in `fit`
        k : the number of labellings

        Returns
        -------
        list of pairs: (k, T_i) array of labels, (k,) array of scores

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainSVM
        >>> model = ChainSVM(C=10.0, fit_bias=False).fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> labels, scores = model.predict_topk([np.eye(2)], k=2)[0]
        >>> labels[0].tolist(), bool(scores[0] > scores[1])
        (['a', 'b'], True)
        """
        k = check_k(k)
        problem, _ = self._problem(X, lengths)
        return [(self.classes_[y], scores) for y, scores in inference.best_k_outputs(problem, self._w, k, self.n_jobs)]

    def decision_function(self, X: Any, *, lengths: Any = None) -> list[np.ndarray]:
        """Max-marginals: the score of the best labelling that has label l at position t.

        The label of the highest one at each position is that of `predict`, up to ties; differences say how much score
        it takes to change it.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        list of (T_i, L) arrays
        """
        problem, rows = self._problem(X, lengths)
        best = inference.best_through_parts(problem, self._w, self.n_jobs)
        n_labels = len(self.classes_)
        return [
            best.values[start : start + length * n_labels].reshape(length, n_labels)
            for start, length in zip(best.start[:-1], rows.lengths, strict=True)
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None) -> float:
        """The share of labels predicted right.

        Parameters
        ----------
        X, y, lengths : as in `fit`
        sample_weight : (n,) weights of the sequences
        """
        problem, rows = self._problem(X, lengths)
        check_labels_given(y)
        flat = flatten_labels(y, rows, is_stacked=lengths is not None)
        labels = encode_labels(flat, self.classes_, rows)
        weights = check_sample_weight(sample_weight, len(rows.lengths))
        per_token = None if weights is None else np.repeat(weights, rows.lengths)
        predicted = inference.best_outputs(problem, self._w, self.n_jobs).values
        return float(np.average(predicted == labels, weights=per_token))
