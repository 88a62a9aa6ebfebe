"""Conditional random fields on sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin.checks import check_count, check_share
from maxmargin.encode.rows import check_labels_given, encode_labels, flatten_labels
from maxmargin.estimators.base import Task, as_seed
from maxmargin.estimators.sequences import SequenceModel


class ChainCRF(SequenceModel):
    """Linear-chain conditional random field: p(y) ~ exp(score(y)), with emissions and transitions.

    Minimises lambda {l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2} + (1/n) sum_i weight_i {-log p(y_i)}, lambda =
    1/(n C), and certifies how far from the optimum it can at most be. In terms of CRFsuite's c1 and c2,
    C = 1/(c1 + 2 c2) and l1_ratio = c1/(c1 + 2 c2).

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    l1_ratio : float, default=0.0
        The share of the L1 norm in the regularization, from 0 to 1: it makes weights exactly zero. Needs the solver
        "lbfgs", which is OWL-QN then.
    solver : str or Solver, default="lbfgs"
        The optimizer.
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
        l1_ratio: float = 0.0,
        solver: Any = "lbfgs",
        tol: float = 1e-3,
        max_passes: float = 1000,
        time_limit: float | None = None,
        patience: int = 10,
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
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.patience = patience
        self.fit_bias = fit_bias
        self.allowed_transitions = allowed_transitions
        self.only_observed = only_observed
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("l1_ratio", self.l1_ratio)

    def _encode(self, *args: Any, **options: Any) -> Task:
        return super()._encode(*args, **options)._replace(options={"l1_ratio": float(self.l1_ratio)})

    def log_likelihood(self, X: Any, y: Any, *, lengths: Any = None) -> np.ndarray:
        """Log p(y_i | x_i) of a labelling of each sequence.

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
        return self._log_likelihood(problem, encode_labels(flat, self.classes_, rows))

    def confidence(self, X: Any, *, lengths: Any = None) -> np.ndarray:
        """The probability p(y_i | x_i) of the predicted labelling of each sequence as a whole.

        That of another labelling is exp of its `log_likelihood`; those of single labels are the `predict_marginals`.
        A long sequence has very many labellings that differ in a few places, so that even the best is improbable.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainCRF
        >>> model = ChainCRF(C=100.0).fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> unclear = np.array([[0.5, 0.5], [0.5, 0.5]])
        >>> sure, unsure = model.confidence([np.eye(2), unclear])
        >>> bool(sure > 0.9 > unsure)
        True
        """
        problem, _ = self._sequences(X, lengths)
        predicted = inference.best_outputs(problem, self._w, self.n_jobs).values
        return np.exp(self._log_likelihood(problem, predicted))

    def _log_likelihood(self, problem: Any, labels: np.ndarray) -> np.ndarray:
        _, log_partition = inference.marginals(problem, self._w, self.n_jobs)
        return inference.scores_of(problem._replace(labels=labels), self._w, self.n_jobs) - log_partition

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None, *, lengths: Any = None) -> list[np.ndarray]:
        """Independent labellings of each sequence, drawn from p(y_i | x_i).

        Parameters
        ----------
        X, lengths : as in `fit`
        n_samples : the number of labellings of each sequence
        random_state : int, RandomState or Generator, default=None
            Seed of the draws.

        Returns
        -------
        list of (n_samples, T_i) arrays of labels

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainCRF
        >>> model = ChainCRF().fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> model.sample([np.eye(2)], n_samples=5, random_state=0)[0].shape
        (5, 2)
        """
        check_count("n_samples", n_samples)
        problem, _ = self._sequences(X, lengths)
        rng = np.random.default_rng(as_seed(random_state))
        samples = inference.samples(problem, self._w, n_samples, rng, self.n_jobs)
        return [self.classes_[outputs] for outputs in samples]
