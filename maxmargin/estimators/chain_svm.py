"""Structural SVMs on sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.costs import label_costs, position_costs
from maxmargin.encode.rows import Rows, flatten_weights
from maxmargin.estimators.sequences import SequenceModel


class ChainSVM(SequenceModel):
    """Structural SVM for sequence labelling: a max-margin Markov chain of emissions and transitions.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization; infinite for none, where the solver can do without.
    cost : {"hamming", "normalized_hamming"} or (L, L) array, default="hamming"
        Cost of a labelling: the number of wrong labels, the same divided by the length, or the sum of the entries
        [true label, predicted label] of a matrix in the order of `classes_`.
    loss : {"hinge", "smooth_hinge"} or Loss, default="hinge"
        The hinge loss above or, for solvers that need it smooth, a smoothed one such as ``Loss("l2", mu=0.1)``.
    solver : str or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(averaging=True)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the sequences after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    patience : int, default=10
        With held-out data, the number of certificates without a better score there after which `fit` stops.
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
        loss: Any = "hinge",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        patience: int = 10,
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
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.patience = patience
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
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
        position_weight: Any = None,
        X_dev: Any = None,
        y_dev: Any = None,
        lengths_dev: Any = None,
    ) -> ChainSVM:
        """Train on sequences.

        Parameters
        ----------
        X : list of (T_i, F) arrays or sparse matrices, or one stacked (N, F) matrix together with `lengths`
        y : list of sequences of labels, integers or strings; with `lengths` also one flat sequence
        sample_weight : (n,) weights of the sequences' losses
        lengths : the numbers of rows of the sequences in a stacked X
        position_weight : list of (T_i,) weights of the positions in the cost
        X_dev, y_dev, lengths_dev : held-out sequences like X, y and lengths, on which the weights of each certificate
            are scored: those of the highest score are kept, and the fit stops when `patience` runs out

        Returns
        -------
        self
        """
        task = self._encode(X, y, sample_weight, lengths=lengths, position_weight=position_weight)
        self._set_weights(self._solve(self._with_held_out(task, X_dev, y_dev, lengths_dev)))
        return self

    def _costs(self, rows: Rows, labels: np.ndarray, classes: np.ndarray, position_weight: Any) -> tuple[Any, Any]:
        costs = label_costs(self.cost, classes, np.bincount(labels), self.class_weight)
        weights = None if position_weight is None else flatten_weights(position_weight, rows, "position_weight")
        return costs, position_costs(self.cost, rows.lengths, weights)
