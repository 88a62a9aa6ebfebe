"""Structural SVMs on graphs of binary labels with attractive edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.costs import label_costs
from maxmargin.encode.graph_cut import Graphs, graph_problem, stack_graphs
from maxmargin.encode.rows import (
    as_stored,
    check_labels_given,
    check_sample_weight,
    encode_labels,
    flatten_labels,
    flatten_weights,
    is_better_sparse,
)
from maxmargin.estimators.base import StructuredModel, Task, per_example
from maxmargin.structures.graph_cut import GraphCutProblem


class GraphCutSVM(StructuredModel):
    """Structural SVM for labelling the nodes of graphs with one of two labels, where edges favour equal labels.

    The score of a labelling is the sum of <nodes, features of p> + bias over the nodes p that have the second label,
    minus the sum of <edges, features of e> over the edges e whose ends differ. Weights and features of edges are not
    negative, so that the best labelling is a minimum cut, which is found exactly.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. On single nodes this is scikit-learn's ``LinearSVC`` with
    the hinge loss.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the regularization.
    cost : {"hamming", "normalized_hamming"} or (2, 2) array, default="hamming"
        Cost of a labelling: the weight of the nodes that are labelled wrong, the same divided by the weight of all
        nodes of the graph, or the sum of the entries [true label, predicted label] of a matrix in the order of
        `classes_`. Nodes weigh 1 unless `fit` is told otherwise.
    class_weight : dict or "balanced", default=None
        Factors of the cost by true label; "balanced" gives both classes the same share of the weight of all nodes.
    loss : {"hinge", "smooth_hinge"} or Loss, default="hinge"
        The hinge loss or, for solvers that need it smooth, a smoothed one such as ``Loss("l2", mu=0.1)``.
    solver : str or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(averaging=True)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the graphs after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    fit_bias : bool, default=True
        Add a constant to the features of the nodes.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if the graphs have the same nodes, edges and labels.
    n_jobs : int, default=None
        Threads of passes over all graphs; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the graphs.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    classes_ : (2,) array
        The labels, sorted.
    coef_ : Bunch
        The weights: ``nodes`` (F,), ``edges`` (G,) and, with `fit_bias`, ``bias`` (1,).
    trace_ : Trace
        Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
    status_ : Status
        Why the fit stopped.
    n_iter_ : int
        Passes made.
    n_features_in_, n_edge_features_in_ : int
        The numbers of features of nodes, F, and of edges, G.

    Examples
    --------
    Three pixels in a row, the middle one noisy:

    >>> import numpy as np
    >>> from maxmargin import GraphCutSVM
    >>> edges = [(0, 1), (1, 2)]
    >>> X = [([[1.0], [-0.2], [1.0]], edges), ([[-1.0], [0.2], [-1.0]], edges)]
    >>> y = [["ink", "ink", "ink"], ["paper", "paper", "paper"]]
    >>> model = GraphCutSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X)[0].tolist()
    ['ink', 'ink', 'ink']
    >>> bool(model.coef_.edges[0] > 0)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        cost: Any = "hamming",
        class_weight: Any = None,
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
        self.cost = cost
        self.class_weight = class_weight
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_weight: Any = None) -> GraphCutSVM:
        """Train on labelled graphs.

        Parameters
        ----------
        X : list of pairs (nodes, edges) or triples (nodes, edges, edge features): an array or sparse matrix (V_i, F) of
            node features, the ends of the edges (E_i, 2), and an array (E_i, G) without negative numbers; edges without
            features have the single feature 1
        y : list of (V_i,) labels, integers or strings, of two classes
        sample_weight : (n,) weights of the graphs' losses
        node_weight : list of (V_i,) weights of the nodes in the cost, such as the areas of superpixels

        Returns
        -------
        self
        """
        self._set_weights(self._solve(self._encode(X, y, sample_weight, node_weight=node_weight)))
        return self

    def _encode(self, X: Any, y: Any, sample_weight: Any = None, *, node_weight: Any = None) -> Task:
        self._check_parameters()
        graphs = stack_graphs(X, dtype=self.dtype)
        flat = _flatten_labels(y, graphs)
        classes = np.unique(flat)
        if len(classes) != 2:
            raise ValueError(f"y must hold labels of two classes, but has {len(classes)}: {classes[:5].tolist()}.")
        labels = encode_labels(flat, classes, graphs.nodes)
        weights = check_sample_weight(sample_weight, len(graphs.nodes.lengths))
        cost = self._costs(graphs, labels, classes, node_weight)
        stores_sparse = is_better_sparse(graphs.nodes)
        graphs = graphs._replace(nodes=as_stored(graphs.nodes, stores_sparse))
        problem = graph_problem(graphs, labels, cost, self.dtype, with_bias=self.fit_bias, for_training=True)
        width = graphs.nodes.matrix.shape[1]
        fitted = {
            "classes_": classes,
            "n_features_in_": width,
            "n_edge_features_in_": problem.n_edge_features,
            "_stores_sparse": stores_sparse,
            "_dtype": np.dtype(self.dtype),
            "_trained_on": (problem.offsets, problem.ends, labels),
        }
        start = self._last_point() if self._can_continue(fitted) else None
        lower = np.full(problem.n_features + problem.n_edge_features, -np.inf)
        lower[problem.n_features :] = 0.0
        return Task(problem, weights, start, lower, None, fitted)

    def _costs(self, graphs: Graphs, labels: np.ndarray, classes: np.ndarray, node_weight: Any) -> np.ndarray:
        """The cost of the wrong label of every node."""
        scales = _flatten_weights(node_weight, graphs)
        by_class = np.bincount(labels, scales, minlength=2)
        if not by_class.all():
            raise ValueError(f"node_weight is zero for all nodes of the class {classes[by_class == 0][0].item()!r}.")
        costs = label_costs(self.cost, classes, by_class, self.class_weight)
        if isinstance(self.cost, str) and self.cost == "normalized_hamming":
            totals = np.add.reduceat(scales, graphs.nodes.offsets[:-1])
            scales = scales / np.repeat(np.where(totals > 0, totals, 1), graphs.nodes.lengths)
        return scales * costs[labels, 1 - labels]

    def _can_continue(self, fitted: dict[str, Any]) -> bool:
        """Whether a warm start is asked for and the last fit was on graphs like these."""
        names = "classes_", "n_features_in_", "n_edge_features_in_", "_dtype"
        return (
            self.warm_start
            and hasattr(self, "_w")
            and all(np.array_equal(getattr(self, name), fitted[name]) for name in names)
            and all(np.array_equal(*pair) for pair in zip(self._trained_on, fitted["_trained_on"], strict=True))
        )

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        width = self.n_features_in_
        self.coef_ = Bunch(nodes=w[:width], edges=w[-self.n_edge_features_in_ :])
        if w.size > width + self.n_edge_features_in_:
            self.coef_["bias"] = w[width : width + 1]

    def _problem(self, X: Any) -> GraphCutProblem:
        return self._problem_of(self._graphs(X))

    def _graphs(self, X: Any) -> Graphs:
        check_is_fitted(self)
        return stack_graphs(X, self.n_features_in_, self.n_edge_features_in_, self._dtype)

    def _problem_of(self, graphs: Graphs) -> GraphCutProblem:
        graphs = graphs._replace(nodes=as_stored(graphs.nodes, self._stores_sparse))
        nothing = np.zeros(int(graphs.nodes.offsets[-1]))
        return graph_problem(graphs, nothing, nothing, self._dtype, with_bias="bias" in self.coef_, for_training=False)

    def _decode(self, problem: GraphCutProblem, i: int, output: np.ndarray) -> np.ndarray:
        return self.classes_[output]

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Max-marginals: the score of the best labelling that has label l at node p.

        The label of the highest one at each node is that of `predict`, up to ties; differences say how much score it
        takes to change it.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (V_i, 2) arrays
        """
        problem = self._problem(X)
        best = per_example(inference.best_through_parts(problem, self._w, self.n_jobs))
        return [parts[: 2 * n].reshape(2, n).T for parts, n in zip(best, np.diff(problem.offsets), strict=True)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_weight: Any = None) -> float:
        """The share of nodes labelled right, by weight.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the graphs
        node_weight : list of (V_i,) weights of the nodes
        """
        graphs = self._graphs(X)
        labels = encode_labels(_flatten_labels(y, graphs), self.classes_, graphs.nodes)
        shares = _flatten_weights(node_weight, graphs)
        weights = check_sample_weight(sample_weight, len(graphs.nodes.lengths))
        if weights is not None:
            shares = shares * np.repeat(weights, graphs.nodes.lengths)
        predicted = inference.best_outputs(self._problem_of(graphs), self._w, self.n_jobs).values
        return float(np.average(predicted == labels, weights=shares))


def _flatten_labels(y: Any, graphs: Graphs) -> np.ndarray:
    check_labels_given(y)
    if len(y) != len(graphs.nodes.lengths):
        raise ValueError(f"X has {len(graphs.nodes.lengths)} graphs, but y has {len(y)}.")
    return flatten_labels(y, graphs.nodes)


def _flatten_weights(node_weight: Any, graphs: Graphs) -> np.ndarray:
    if node_weight is None:
        return np.ones(int(graphs.nodes.offsets[-1]))
    return flatten_weights(node_weight, graphs.nodes, "node_weight")


def graph_cut(potentials: Any, edges: Any, weights: Any) -> np.ndarray:
    """The labels y of nodes, 0 or 1, that maximise sum_p potentials[p] y_p - sum_(p, q) weights[p, q] [y_p != y_q].

    Of several such labellings it is the one with the fewest ones.

    Parameters
    ----------
    potentials : (V,) numbers
    edges : (E, 2) pairs of nodes
    weights : (E,) non-negative numbers

    Returns
    -------
    (V,) array of 0 and 1

    Examples
    --------
    >>> from maxmargin import graph_cut
    >>> graph_cut([2.0, -0.5, 1.0, -2.0], [(0, 1), (1, 2), (2, 3)], [1.0, 1.0, 0.1]).tolist()
    [1, 1, 1, 0]
    """
    nodes, costs = np.asarray(potentials, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if nodes.ndim != 1 or not np.isfinite(nodes).all():
        raise ValueError("potentials must hold one finite number per node.")
    if not (costs >= 0).all():
        e = int(np.flatnonzero(~(costs >= 0))[0])
        raise ValueError(f"weights[{e}] is {costs.flat[e]:.3g}, but edges with negative weights are not submodular.")
    graphs = stack_graphs([(nodes[:, np.newaxis], edges, costs)])
    nothing = np.zeros(len(nodes))
    problem = graph_problem(graphs, nothing, nothing, np.float64, with_bias=False, for_training=False)
    return inference.best_outputs(problem, np.ones(2)).values
