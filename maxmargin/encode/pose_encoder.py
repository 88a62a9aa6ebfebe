"""Grids of features and poses to a `DeformableProblem`.

Every check of the user's images and poses is here: what passes is safe for the loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import LARGEST
from maxmargin.encode.inputs.base_encoder import Encoder, by_row
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.edges import check_parents, children_first
from maxmargin.encode.inputs.example_checks import check_array, check_examples, check_truths, flatten_weights
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows, row_features, stack_grids
from maxmargin.structures.poses.pose_problem import N_STATISTICS, DeformableProblem
from maxmargin.supervision.weak import Learned

LEAST_SCALE = 1.0  # of displacements, in cells
MOST_JOINTS = 1_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class DeformableEncoder(Encoder):
    """The encoder of images with a pose each."""

    published = ("n_features_in", "n_joints", "anchor", "scale")

    n_features_in: int
    n_joints: int
    edges: np.ndarray  # (E, 2) parent and child
    anchor: np.ndarray  # (E, K, 2) the mean ways from parent to child, in x and y, for each type
    scale: np.ndarray  # (E, 2) the spread around them
    reference: Any = field(compare=False)  # of costs, which also judge predictions

    @property
    def n_weights(self) -> int:
        return self.n_features_in * self.n_joints + self.anchor[:, :, 0].size * N_STATISTICS

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "n_joints", 0 < self.n_joints <= MOST_JOINTS and self.n_features_in > 0
        ends = check_parents(self.edges, "the skeleton", self.n_joints)
        parents = np.full(self.n_joints, -1)
        parents[ends[:, 1]] = ends[:, 0]
        children_first(parents, np.array([0, self.n_joints]), "the skeleton")
        n_edges, dtype = len(ends), self.anchor.dtype
        yield "anchor", self.anchor.ndim == 3 and self.anchor.shape[::2] == (n_edges, 2) and dtype == w.dtype
        yield "anchor", self.anchor.shape[1] > 0 and bool((np.abs(self.anchor) <= LARGEST).all())
        yield "scale", self.scale.shape == (n_edges, 2) and self.scale.dtype == dtype
        yield "scale", bool((self.scale >= LEAST_SCALE).all() and (self.scale <= LARGEST).all())
        cost_radius(np.zeros((1, self.n_joints, 2)), self.reference)
        yield "n_weights", w.shape == (self.n_weights,)
        yield "springs", bool((self.names(w).springs[:, :, ::2] > 0).all())

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        dtype: DTypeLike,
        edges: Any,
        n_types: int,
        reference: Any,
        joint_weight: Any = None,
    ) -> Learned:
        """The encoder and the problem of training images; arguments are those of `DeformableSVM`."""
        rows, shapes = stack_images(X)
        cells = stack_poses(y, shapes)
        n, n_joints, _ = cells.shape
        weights = flatten_weights(joint_weight, np.full(n, n_joints), "joint_weight", "image")
        joint_cost = weights.reshape(n, n_joints) / n_joints
        ends = check_parents(edges, "the skeleton", n_joints)
        anchor, scale, types = typical_ways(cells[:, ends[:, 1]] - cells[:, ends[:, 0]], n_types)
        encoder = cls(
            n_features_in=rows.matrix.shape[1],
            n_joints=n_joints,
            edges=ends,
            anchor=anchor.astype(dtype),
            scale=scale.astype(dtype),
            reference=reference,
        )
        problem = encoder.assemble(rows, shapes, cells, types, joint_cost, cost_radius(cells, reference))
        return Learned(encoder, problem._replace(hides_types=False))  # they are known in training

    def problem(self, X: object, y: object = None) -> DeformableProblem:
        rows, shapes = stack_images(X, self.n_features_in)
        n = len(shapes)
        cells = np.zeros((n, self.n_joints, 2), np.int64) if y is None else stack_poses(y, shapes, self.n_joints)
        types = np.zeros((n, len(self.edges)), np.int64)
        return self.assemble(rows, shapes, cells, types, np.zeros((n, self.n_joints)), np.ones(n))

    def assemble(
        self, rows: Rows, shapes: np.ndarray, cells: np.ndarray, types: Any, joint_cost: np.ndarray, radius: np.ndarray
    ) -> DeformableProblem:
        """Put the checked parts together: true cells and types, weights of joints' costs, and where these are full."""
        dtype, width = self.anchor.dtype, np.ascontiguousarray(shapes[:, 1])
        flat = cells[:, :, 1] * width[:, np.newaxis] + cells[:, :, 0]
        parent, child = np.ascontiguousarray(self.edges.T, np.int32)
        parents = np.full(self.n_joints, -1)
        parents[child] = parent
        place = np.argsort(children_first(parents, np.array([0, self.n_joints]), "the skeleton"))  # of each joint
        return DeformableProblem(
            features=row_features(rows, dtype),
            starts=rows.starts.astype(np.int64),
            width=width,
            outputs=np.ascontiguousarray(np.hstack([flat, types]), np.int32),
            joint_cost=np.ascontiguousarray(joint_cost, dtype),
            radius=radius.astype(dtype),
            parent=parent,
            child=child,
            upward=np.argsort(place[child]).astype(np.int32),  # each edge after those below it
            roots=np.flatnonzero(parents < 0).astype(np.int32),
            anchor=self.anchor,
            scale=self.scale,
            n_features=self.n_features_in,
            hides_types=True,
        )

    def dual_shape(self, problem: DeformableProblem) -> tuple[Any, ...]:
        return problem.starts, problem.width, problem.outputs

    def names(self, w: np.ndarray) -> Bunch:
        n_edges, n_types, _ = self.anchor.shape
        n_edge_weights = n_edges * n_types * N_STATISTICS
        edges = w[w.size - n_edge_weights :].reshape(n_edges, n_types, N_STATISTICS)
        unary = w[: w.size - n_edge_weights].reshape(-1, self.n_joints)
        return Bunch(unary=unary, springs=edges[:, :, :4], types=edges[:, :, 4])

    def decode(self, problem: DeformableProblem, i: int, rows: np.ndarray) -> np.ndarray:
        y, x = np.divmod(rows[:, : self.n_joints].astype(np.int64), problem.width[i])
        return np.stack([x, y], axis=2)

    def arrange(self, problem: DeformableProblem, parts: Blocks) -> list[np.ndarray]:
        cells = by_row(parts, problem.starts, self.n_joints)
        return [table.reshape(-1, width, self.n_joints) for table, width in zip(cells, problem.width, strict=True)]

    def judge(self, problem: DeformableProblem, outputs: Blocks) -> Merits:
        truth = np.array(self.decode_all(problem, outputs._replace(values=problem.outputs.ravel())))
        squares = np.square(np.array(self.decode_all(problem, outputs)) - truth).sum(axis=2)
        costs = np.minimum(1.0, squares / cost_radius(truth, self.reference)[:, np.newaxis] ** 2)
        return Merits(1.0 - costs.mean(axis=1))


def stack_images(X: Any, n_features: int | None = None) -> tuple[Rows, np.ndarray]:
    """Check images and stack their cells, row by row; with the shapes of the grids."""
    check_examples(X, "(H, W, F) arrays", "image")
    grids = [check_array(x, f"X[{i}]", "an (H, W, F) array of numbers", (None,) * 3) for i, x in enumerate(X)]
    return stack_grids(grids, n_features), np.array([grid.shape[:2] for grid in grids], np.int64)


def stack_poses(y: Any, shapes: np.ndarray, n_joints: int | None = None) -> np.ndarray:
    """Check poses, (J, 2) arrays of the x and y of each joint, and round them to cells: (n, J, 2) integers."""
    check_truths(y, len(shapes), "one (J, 2) array of positions per image", "image")
    poses: list[np.ndarray] = []
    for i, pose in enumerate(y):
        kind = f"a ({n_joints or 'J'}, 2) array of numbers"
        poses.append(check_array(pose, f"y[{i}]", kind, (n_joints, 2), dtypes="iuf"))
        n_joints = len(poses[0])
        if n_joints == 0:
            raise ValueError("y[0] must hold the position of at least one joint.")
        if not np.isfinite(poses[i]).all():
            raise ValueError(f"y[{i}] contains NaN or infinity.")
    cells = np.rint(np.array(poses)).astype(np.int64)
    is_outside = ((cells < 0) | (cells >= shapes[:, np.newaxis, ::-1])).any(axis=2)
    if is_outside.any():
        i, joint = np.argwhere(is_outside)[0].tolist()
        place = "x = {}, y = {}".format(*cells[i, joint])
        size = "{1} x {0}".format(*shapes[i])
        raise ValueError(f"y[{i}] has joint {joint} at {place}, outside of its grid of {size} cells.")
    return cells


def typical_ways(ways: np.ndarray, n_types: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cluster the ways along each edge in the true poses: the means of types, the spread around them, and the types."""
    from sklearn.cluster import KMeans  # slow to import

    n, n_edges, _ = ways.shape
    if not 1 <= n_types <= n:
        raise ValueError(f"n_types must be between 1 and the number of images, {n}, not {n_types}.")
    anchor, types = np.zeros((n_edges, n_types, 2)), np.zeros((n, n_edges), np.int64)
    for e in range(n_edges):
        n_clusters = min(n_types, len(np.unique(ways[:, e], axis=0)))
        clusters = KMeans(n_clusters, n_init=4, random_state=0).fit(ways[:, e].astype(np.float64))
        anchor[e, :n_clusters] = clusters.cluster_centers_
        anchor[e, n_clusters:] = clusters.cluster_centers_[0]
        types[:, e] = clusters.labels_
    apart = ways - anchor[np.arange(n_edges), types]
    return anchor, np.maximum(np.sqrt((apart**2).mean(axis=0)), LEAST_SCALE), types


def cost_radius(cells: np.ndarray, reference: Any) -> np.ndarray:
    """The distance from the true position at which the cost of a joint is full, in each image, at least one cell."""
    if reference is None:
        return np.maximum(np.linalg.norm(np.ptp(cells, axis=1), axis=1) / 4, 1.0)
    joints, n_joints = np.asarray(reference), cells.shape[1]
    if joints.shape != (2,) or joints.dtype.kind not in "iu" or (joints < 0).any() or (joints >= n_joints).any():
        raise ValueError(f"reference must be two joints, from 0 to {n_joints - 1}, not {reference!r}.")
    return np.maximum(np.linalg.norm(cells[:, joints[0]] - cells[:, joints[1]], axis=1), 1.0)
