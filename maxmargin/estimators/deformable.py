"""Structural SVMs that place joints on grids, held together by springs."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.encode.deformable import (
    check_joint_weight,
    cost_radius,
    deformable_problem,
    make_skeleton,
    stack_grids,
    stack_poses,
)
from maxmargin.encode.rows import check_sample_weight
from maxmargin.estimators.base import StructuredModel, Task
from maxmargin.structures.deformable import N_STATISTICS, DeformableProblem


class DeformableSVM(StructuredModel):
    """Structural SVM for poses: finds the cells of joints in grids of features, with springs between joints.

    A joint scores by the features of its cell, with weights of its own. An edge of the skeleton scores
    -(w1 u^2 + w2 u + w3 v^2 + w4 v), where (u, v) is the way from parent to child beyond its mean in training, in units
    of its spread there. With several types, ways are clustered, and each type has its own mean, weights and bias.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. The cost is the mean over joints of min(1, d^2 / r^2),
    d the distance from the joint's true position.

    Parameters
    ----------
    edges : list of pairs of joints, default=()
        The edges of the skeleton, parent and child of each: a tree or a forest. Joints without edges are placed
        independently.
    n_types : int, default=1
        Clusters of ways from parent to child.
    reference : pair of joints, default=None
        The distance of these two joints in the true pose is r; None is a quarter of the diagonal of the pose's box.
    min_stiffness : float, default=0.01
        The smallest value of the quadratic weights w1 and w3: positive, for predictions in linear time.
    C : float, default=1.0
        Inverse strength of the regularization.
    loss : {"hinge", "smooth_hinge"} or Loss, default="hinge"
        The hinge loss or, for solvers that need it smooth, a smoothed one such as ``Loss("l2", mu=0.1)``.
    solver : str or Solver, default="auto"
        The optimizer; pass a `Solver` such as ``BCFW(cache=20)`` to set its options.
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, at which to stop.
    max_passes : float, default=1000
        Passes over the images after which to stop.
    time_limit : float, default=None
        Seconds after which to stop.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training; certificates are summed in float64 in either.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`, if the grids and poses are the same.
    n_jobs : int, default=None
        Threads of passes over all images; None is 1, -1 all cores.
    random_state : int, RandomState or Generator, default=None
        Seed of the order of the images.
    verbose : int, default=0
        Print the trace as it grows.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``unary`` (F, J), ``springs`` (E, K, 4), in the order w1 to w4, and ``types`` (E, K).
    anchor_, scale_ : (E, K, 2), (E, 2) arrays
        The mean ways from parent to child of each type, in x and y, and their spread, in cells.
    n_joints_, n_features_in_ : int
        The numbers of joints J and of features F.
    trace_, status_, n_iter_ : as those of `ChainSVM`

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import DeformableSVM
    >>> rng = np.random.default_rng(0)
    >>> y = [np.array([[x, 2], [x + 2, 3]]) for x in (0, 1, 2, 3)]  # two joints: x and y of each
    >>> X = [rng.normal(size=(5, 6, 2)) for _ in y]
    >>> for grid, pose in zip(X, y):
    ...     grid[pose[:, 1], pose[:, 0]] += 4 * np.eye(2)
    >>> model = DeformableSVM(edges=[(0, 1)], random_state=0).fit(X, y)
    >>> model.predict(X)[0].tolist()
    [[0, 2], [2, 3]]
    """

    def __init__(
        self,
        edges: Any = (),
        n_types: int = 1,
        reference: Any = None,
        min_stiffness: float = 0.01,
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
        self.edges = edges
        self.n_types = n_types
        self.reference = reference
        self.min_stiffness = min_stiffness
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, joint_weight: Any = None) -> DeformableSVM:
        """Train on images and poses.

        Parameters
        ----------
        X : list of (H_i, W_i, F) arrays: the features of each cell
        y : list of (J, 2) arrays: x (column) and y (row) of each joint, rounded to cells
        sample_weight : (n,) weights of the images' losses
        joint_weight : (n, J) weights of the joints in the cost, such as 0 for those that are not visible

        Returns
        -------
        self
        """
        self._set_weights(self._solve(self._encode(X, y, sample_weight, joint_weight)))
        return self

    def _encode(self, X: Any, y: Any, sample_weight: Any = None, joint_weight: Any = None) -> Task:
        self._check_parameters()
        if not isinstance(self.n_types, Integral) or isinstance(self.n_types, bool) or self.n_types < 1:
            raise ValueError(f"n_types must be a positive integer, not {self.n_types!r}.")
        if not (isinstance(self.min_stiffness, (int, float)) and 0 < self.min_stiffness < np.inf):
            raise ValueError(f"min_stiffness must be a positive number, not {self.min_stiffness!r}.")
        grids = stack_grids(X, dtype=self.dtype)
        cells = stack_poses(y, grids)
        n, n_joints, _ = cells.shape
        weights = check_sample_weight(sample_weight, n)
        joint_cost = check_joint_weight(joint_weight, n, n_joints) / n_joints
        skeleton, types = make_skeleton(self.edges, cells, self.n_types, self.dtype)
        problem = deformable_problem(grids, skeleton, cells, types, joint_cost, cost_radius(cells, self.reference))
        fitted = {
            "n_features_in_": problem.n_features,
            "n_joints_": n_joints,
            "anchor_": skeleton.anchor,
            "scale_": skeleton.scale,
            "_skeleton": skeleton,
            "_examples": (grids.shapes, problem.outputs),
        }
        lower = np.full(problem.n_features * n_joints + skeleton.anchor.size // 2 * N_STATISTICS, -np.inf)
        self._name_weights(lower, n_joints, skeleton).springs[:, :, [0, 2]] = self.min_stiffness
        start = self._last_point() if self._can_continue(fitted) else None
        return Task(problem, weights, start, lower, None, fitted)

    def _can_continue(self, fitted: dict[str, Any]) -> bool:
        """Whether a warm start is asked for and the last fit was on the same poses."""
        return (
            self.warm_start
            and hasattr(self, "_w")
            and self.n_features_in_ == fitted["n_features_in_"]
            and all(np.array_equal(a, b) for a, b in zip(self._skeleton, fitted["_skeleton"], strict=True))
            and all(np.array_equal(a, b) for a, b in zip(self._examples, fitted["_examples"], strict=True))
        )

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        self.coef_ = self._name_weights(w, self.n_joints_, self._skeleton)

    def _name_weights(self, w: np.ndarray, n_joints: int, skeleton: Any) -> Bunch:
        n_edges, n_types, _ = skeleton.anchor.shape
        n_edge_weights = n_edges * n_types * N_STATISTICS
        edges = w[w.size - n_edge_weights :].reshape(n_edges, n_types, N_STATISTICS)
        unary = w[: w.size - n_edge_weights].reshape(-1, n_joints)
        return Bunch(unary=unary, springs=edges[:, :, :4], types=edges[:, :, 4])

    def _problem(self, X: Any) -> DeformableProblem:
        check_is_fitted(self)
        grids = stack_grids(X, self.n_features_in_, self._w.dtype)
        n, n_edges = len(grids.shapes), len(self._skeleton.edges)
        cells, types = np.zeros((n, self.n_joints_, 2), np.int64), np.zeros((n, n_edges), np.int64)
        return deformable_problem(grids, self._skeleton, cells, types, np.zeros((n, self.n_joints_)), np.ones(n))

    def _decode(self, problem: DeformableProblem, i: int, output: np.ndarray) -> np.ndarray:
        rows, columns = np.divmod(output[: self.n_joints_].astype(np.int64), problem.width[i])
        return np.column_stack([columns, rows])

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Max-marginals: the score of the best pose that has joint j at a cell.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        list of (H_i, W_i, J) arrays
        """
        problem = self._problem(X)
        best = inference.best_through_parts(problem, self._w, self.n_jobs)
        sizes = np.diff(problem.offsets) * self.n_joints_
        return [
            best.values[start : start + size].reshape(-1, width, self.n_joints_)
            for start, size, width in zip(best.start[:-1], sizes, problem.width, strict=True)
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 minus the mean cost of the predictions.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : (n,) weights of the images
        """
        check_is_fitted(self)
        grids = stack_grids(X, self.n_features_in_, self._w.dtype)
        cells = stack_poses(y, grids, self.n_joints_)
        weights = check_sample_weight(sample_weight, len(cells))
        apart = np.array(self.predict(X)) - cells
        costs = np.minimum(1.0, (apart**2).sum(axis=2) / cost_radius(cells, self.reference)[:, np.newaxis] ** 2)
        return 1.0 - float(np.average(costs.mean(axis=1), weights=weights))
