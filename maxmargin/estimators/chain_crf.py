"""Conditional random fields on sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin.encode.sequences import check_labels_given, encode_labels, flatten_labels
from maxmargin.estimators.sequences import SequenceModel


class ChainCRF(SequenceModel):
    """Linear-chain conditional random field: p(y) ~ exp(score(y)), with emissions and transitions.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. C = 1/(2 c2) is CRFsuite's c2.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    solver : {"lbfgs", "casimir", "svrg", "sgd"} or Solver, default="lbfgs"
        The optimizer.
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
    only_observed : bool, default=False
        Have weights only for the pairs of a feature and a label, and of two successive labels, that occur in the
        training sequences, as CRFsuite does by default; all others are zero. Takes less memory and time on text, where
        most features go with one or two labels. Rows are then stored sparse.
    dtype : {"float32", "float64"}, default="float64"
        Precision of potentials and marginals.
    warm_start : bool, default=False
        Continue from the weights of the previous `fit`, if the sequences have the same lengths and labels.
    n_jobs : int, default=None
        Threads of passes over all sequences; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed, for solvers that need one.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    classes_, coef_, trace_, status_, n_iter_, n_features_in_ : as those of `ChainSVM`

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainCRF
    >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[1, 2]], np.eye(3)[[0, 1]]]
    >>> y = [["a", "b", "c"], ["b", "c"], ["a", "b"]]
    >>> model = ChainCRF(C=10.0).fit(X, y)
    >>> model.predict([np.eye(3)[[0, 1]]])
    [array(['a', 'b'], dtype='<U1')]
    >>> model.predict_marginals([np.eye(3)[[0, 1]]])[0].shape
    (2, 3)
    """

    _loss = "log"

    def __init__(
        self,
        C: float = 1.0,
        solver: Any = "lbfgs",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        fit_bias: bool = True,
        allowed_transitions: Any = None,
        only_observed: bool = False,
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
        self.fit_bias = fit_bias
        self.allowed_transitions = allowed_transitions
        self.only_observed = only_observed
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def predict_marginals(self, X: Any, *, lengths: Any = None) -> list[np.ndarray]:
        """The probabilities of the labels at each position.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        list of (T_i, L) arrays, columns in the order of `classes_`
        """
        problem, rows = self._sequences(X, lengths)
        means, _ = inference.marginals(problem, self._w, self.n_jobs)
        return self._node_parts(means, rows)

    def log_likelihood(self, X: Any, y: Any, *, lengths: Any = None) -> np.ndarray:
        """Log p(y_i | x_i) of a labelling of each sequence, such as the prediction's: its confidence is exp of it.

        Parameters
        ----------
        X, y, lengths : as in `fit`

        Returns
        -------
        (n,) array
        """
        problem, rows = self._sequences(X, lengths)
        check_labels_given(y)
        flat = flatten_labels(y, rows, is_stacked=lengths is not None)
        labels = encode_labels(flat, self.classes_, rows)
        _, log_partition = inference.marginals(problem, self._w, self.n_jobs)
        scores = inference.scores_of(problem._replace(labels=labels), self._w, self.n_jobs)
        return scores - log_partition
