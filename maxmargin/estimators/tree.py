"""Structural SVMs and conditional random fields on trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin.costs import label_costs, position_costs
from maxmargin.encode.rows import Rows, encode_labels
from maxmargin.estimators.trees import TreeModel, flatten_node_labels


class TreeSVM(TreeModel):
    """Structural SVM that labels the nodes of trees: a max-margin Markov tree of nodes and edges.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. Examples are rooted trees or forests, see `Tree`.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    cost : {"hamming", "normalized_hamming"} or (L, L) array, default="hamming"
        Cost of a labelling: the number of wrong labels, the same divided by the number of nodes, or the sum of the
        entries [true label, predicted label] of a matrix in the order of `classes_`.
    loss : {"hinge", "smooth_hinge"} or Loss, default="hinge"
        The hinge loss or, for solvers that need it smooth, a smoothed one such as ``Loss("l2", mu=0.1)``.
    solver : str or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(averaging=True)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the trees after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    fit_bias : bool, default=True
        Add three weights per label: for every node, for roots and for leaves.
    bounds : dict, default=None
        Bounds of weights by the names of `coef_`, such as ``{"transitions": (0, None)}``: pairs of a lower and an upper
        bound, each None, a number or an array like that part of the weights.
    class_weight : dict or "balanced", default=None
        Factors of the cost by true label.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if the trees have the same edges and labels.
    n_jobs : int, default=None
        Threads of passes over all trees; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the trees.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    classes_ : (L,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``emissions`` (F, L); ``transitions`` (L, L), from the parent's label (row) to the child's
        (column); with edge features, ``edges`` (F_edge, L, L), the same for each of them; and, with `fit_bias`,
        ``bias``, ``root`` and ``leaf`` (L,).
    trace_ : Trace
        Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
    status_ : Status
        Why the fit stopped.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        The number of features F of a node.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Tree, TreeSVM
    >>> X = [Tree(np.eye(3), edges=[(0, 1), (0, 2)]), Tree(np.eye(3)[[0, 1]], edges=[(0, 1)])]
    >>> y = [["a", "b", "c"], ["a", "b"]]
    >>> model = TreeSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict([Tree(np.eye(3)[[2, 0]], edges=[(1, 0)])])
    [array(['c', 'a'], dtype='<U1')]
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
        fit_bias: bool = True,
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
        self.fit_bias = fit_bias
        self.bounds = bounds
        self.class_weight = class_weight
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _costs(self, rows: Rows, labels: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        costs = label_costs(self.cost, classes, np.bincount(labels), self.class_weight)
        return costs, position_costs(self.cost, rows.lengths)


class TreeCRF(TreeModel):
    """Conditional random field on trees: p(y) ~ exp(score(y)), with weights of nodes and edges.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be. Examples are rooted trees or forests, see `Tree`.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    solver : str or Solver, default="lbfgs"
        The optimizer.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the trees after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    fit_bias : bool, default=True
        Add three weights per label: for every node, for roots and for leaves.
    dtype : {"float32", "float64"}, default="float64"
        Precision of potentials and marginals.
    warm_start : bool, default=False
        Continue from the weights of the previous `fit`, if the trees have the same edges and labels.
    n_jobs : int, default=None
        Threads of passes over all trees; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed, for solvers that need one.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    classes_, coef_, trace_, status_, n_iter_, n_features_in_ : as those of `TreeSVM`

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Tree, TreeCRF
    >>> X = [Tree(np.eye(3), edges=[(0, 1), (0, 2)]), Tree(np.eye(3)[[0, 1]], edges=[(0, 1)])]
    >>> y = [["a", "b", "c"], ["a", "b"]]
    >>> model = TreeCRF(C=10.0).fit(X, y)
    >>> model.predict_marginals(X)[0].shape
    (3, 3)
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
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Log p(y_i | x_i) of a labelling of each tree, such as the prediction's: its confidence is exp of it.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        (n,) array
        """
        problem, trees = self._trees(X)
        labels = encode_labels(flatten_node_labels(y, trees.rows), self.classes_, trees.rows)
        _, log_partition = inference.marginals(problem, self._w, self.n_jobs)
        scores = inference.scores_of(problem._replace(labels=labels), self._w, self.n_jobs)
        return scores - log_partition
