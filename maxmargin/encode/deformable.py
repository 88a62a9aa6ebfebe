"""Grids of features and poses to a `DeformableProblem`.

Every check of the user's images and poses is here: what passes is safe for the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import Bunch

from maxmargin.encode.base import Encoder, by_row
from maxmargin.encode.edges import check_parents, children_first
from maxmargin.encode.features import WRITABLE
from maxmargin.encode.rows import check_examples, check_truths, stack_rows
from maxmargin.features import DenseFeatures
from maxmargin.features.base import Gram
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.deformable import N_STATISTICS, DeformableProblem

LEAST_SCALE = 1.0  # of displacements, in cells


class Skeleton(NamedTuple):
    """The edges between joints, and how far apart their joints are on average."""

    edges: np.ndarray  # (E, 2) parent and child
    upward: np.ndarray  # (E,) the edges, each after those below it
    roots: np.ndarray  # (R,) the joints that are no child
    anchor: np.ndarray  # (E, K, 2) the mean ways from parent to child, in x and y, for each type
    scale: np.ndarray  # (E, 2) the spread around them


class Grids(NamedTuple):
    """The cells of all images, one image after the other, row by row."""

    matrix: np.ndarray  # (N, F)
    offsets: np.ndarray  # (n + 1,)
    shapes: np.ndarray  # (n, 2) height and width


@dataclass(frozen=True, eq=False, kw_only=True)
class DeformableEncoder(Encoder):
    """The encoder of images with a pose each."""

    published = ("n_features_in", "n_joints", "anchor", "scale")

    n_features_in: int
    n_joints: int
    skeleton: Skeleton
    reference: Any = field(compare=False)  # of costs, which also judge predictions

    anchor = property(lambda self: self.skeleton.anchor)
    scale = property(lambda self: self.skeleton.scale)

    @classmethod
    def learn(
        cls, X: Any, y: Any, *, dtype: Any, edges: Any, n_types: int, reference: Any, joint_weight: Any = None
    ) -> tuple[DeformableEncoder, DeformableProblem]:
        """The encoder and the problem of training images; arguments are those of `DeformableSVM`."""
        grids = stack_grids(X, dtype=dtype)
        cells = stack_poses(y, grids)
        n, n_joints, _ = cells.shape
        joint_cost = check_joint_weight(joint_weight, n, n_joints) / n_joints
        skeleton, types = make_skeleton(edges, cells, n_types, dtype)
        problem = deformable_problem(grids, skeleton, cells, types, joint_cost, cost_radius(cells, reference))
        encoder = cls(n_features_in=problem.n_features, n_joints=n_joints, skeleton=skeleton, reference=reference)
        return encoder, problem

    def problem(self, X: Any, y: Any = None) -> DeformableProblem:
        grids = stack_grids(X, self.n_features_in, self.anchor.dtype)
        n = len(grids.shapes)
        cells = np.zeros((n, self.n_joints, 2), np.int64) if y is None else stack_poses(y, grids, self.n_joints)
        types = np.zeros((n, len(self.skeleton.edges)), np.int64)
        return deformable_problem(grids, self.skeleton, cells, types, np.zeros((n, self.n_joints)), np.ones(n))

    def layout(self, problem: DeformableProblem) -> tuple[Any, ...]:
        return problem.offsets, problem.width, problem.outputs

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
        cells = by_row(parts, problem.offsets, self.n_joints)
        return [table.reshape(-1, width, self.n_joints) for table, width in zip(cells, problem.width, strict=True)]

    def judge(self, problem: DeformableProblem, outputs: Blocks) -> tuple[np.ndarray, Any]:
        truth = np.array(self.decode_all(problem, outputs._replace(values=problem.outputs.ravel())))
        squares = np.square(np.array(self.decode_all(problem, outputs)) - truth).sum(axis=2)
        costs = np.minimum(1.0, squares / cost_radius(truth, self.reference)[:, np.newaxis] ** 2)
        return 1.0 - costs.mean(axis=1), 1


def stack_grids(X: Any, n_features: int | None = None, dtype: Any = np.float64) -> Grids:
    """Check grids of features and put them one after the other.

    Parameters
    ----------
    X : a list of (H_i, W_i, F) arrays
    n_features : the expected F
    dtype : what the values will be stored as

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.encode.deformable import stack_grids
    >>> stack_grids([np.zeros((2, 3, 5)), np.zeros((1, 4, 5))]).offsets
    array([ 0,  6, 10])
    """
    check_examples(X, "(H, W, F) arrays", "image")
    grids = [np.asarray(x) for x in X]
    for i, grid in enumerate(grids):
        if grid.ndim != 3 or grid.dtype.kind not in "biuf" or 0 in grid.shape:
            raise ValueError(f"X[{i}] must be an (H, W, F) array of numbers, none of them zero, not {_describe(grid)}.")
    rows = stack_rows([grid.reshape(-1, grid.shape[2]) for grid in grids], None, n_features, dtype)
    return Grids(rows.matrix, rows.offsets, np.array([grid.shape[:2] for grid in grids]))


def _describe(array: np.ndarray) -> str:
    return f"one of shape {array.shape} and dtype {array.dtype}"


def stack_poses(y: Any, grids: Grids, n_joints: int | None = None) -> np.ndarray:
    """Check poses, (J, 2) arrays of the x and y of each joint, and round them to cells: (n, J, 2) integers."""
    check_truths(y, len(grids.shapes), "one (J, 2) array of positions per image", "image")
    poses = [np.asarray(pose) for pose in y]
    expected = (len(poses[0]) if poses[0].ndim else 0) if n_joints is None else n_joints
    for i, pose in enumerate(poses):
        if pose.dtype.kind not in "iuf" or pose.shape != (expected, 2) or expected == 0:
            raise ValueError(f"y[{i}] must be a ({expected or 'J'}, 2) array of numbers, not {_describe(pose)}.")
        if not np.isfinite(pose).all():
            raise ValueError(f"y[{i}] contains NaN or infinity.")
    cells = np.rint(np.array(poses)).astype(np.int64)
    is_outside = ((cells < 0) | (cells >= grids.shapes[:, np.newaxis, ::-1])).any(axis=2)
    if is_outside.any():
        i, joint = np.argwhere(is_outside)[0].tolist()
        height, width = grids.shapes[i].tolist()
        x, row = cells[i, joint].tolist()
        raise ValueError(
            f"y[{i}] has joint {joint} at x = {x}, y = {row}, outside of its grid of {width} x {height} cells."
        )
    return cells


def make_skeleton(edges: Any, cells: np.ndarray, n_types: int, dtype: Any) -> tuple[Skeleton, np.ndarray]:
    """Check the edges between joints; find the typical ways along them in the true poses.

    Parameters
    ----------
    edges : (E, 2) parent and child of each edge
    cells : (n, J, 2) the true poses
    n_types : clusters of ways from parent to child, each with an anchor of its own
    dtype : of the anchors and scales

    Returns
    -------
    the skeleton and (n, E) the types of the true poses
    """
    n, n_joints, _ = cells.shape
    ends = check_parents(edges, "the skeleton", n_joints)
    parent = np.full(n_joints, -1)
    parent[ends[:, 1]] = ends[:, 0]
    order = children_first(parent, np.array([0, n_joints]), "the skeleton")
    place = np.argsort(order)  # of each joint
    ways = (cells[:, ends[:, 1]] - cells[:, ends[:, 0]]).astype(np.float64)  # (n, E, 2)
    if not 1 <= n_types <= n:
        raise ValueError(f"n_types must be between 1 and the number of images, {n}, not {n_types}.")
    anchor, types = np.zeros((len(ends), n_types, 2)), np.zeros((n, len(ends)), np.int64)
    for e in range(len(ends)):
        n_clusters = min(n_types, len(np.unique(ways[:, e], axis=0)))
        clusters = KMeans(n_clusters, n_init=4, random_state=0).fit(ways[:, e])
        anchor[e, :n_clusters] = clusters.cluster_centers_
        anchor[e, n_clusters:] = clusters.cluster_centers_[0]
        types[:, e] = clusters.labels_
    apart = ways - anchor[np.arange(len(ends)), types]
    scale = np.maximum(np.sqrt((apart**2).mean(axis=0)), LEAST_SCALE)
    upward = np.argsort(place[ends[:, 1]])
    return Skeleton(ends, upward, np.flatnonzero(parent < 0), anchor.astype(dtype), scale.astype(dtype)), types


def deformable_problem(
    grids: Grids, skeleton: Skeleton, cells: np.ndarray, types: np.ndarray, joint_cost: np.ndarray, radius: np.ndarray
) -> DeformableProblem:
    """Put the checked parts together, in the dtype of the skeleton's anchors.

    Parameters
    ----------
    grids : the images
    skeleton : the edges
    cells, types : (n, J, 2) and (n, E) the true outputs
    joint_cost, radius : (n, J) weights of the joints' costs and (n,) distances at which they are full
    """
    dtype, n = skeleton.anchor.dtype, len(grids.shapes)
    width = grids.shapes[:, 1]
    flat = cells[:, :, 1] * width[:, np.newaxis] + cells[:, :, 0]
    return DeformableProblem(
        features=DenseFeatures(np.require(grids.matrix, dtype, WRITABLE), Gram(np.empty(0), np.zeros(n, np.int64))),
        offsets=grids.offsets.astype(np.int64),
        width=width.astype(np.int64),
        outputs=np.ascontiguousarray(np.hstack([flat, types]), np.int32),
        joint_cost=np.ascontiguousarray(joint_cost, dtype),
        radius=radius.astype(dtype),
        parent=skeleton.edges[:, 0].astype(np.int32),
        child=skeleton.edges[:, 1].astype(np.int32),
        upward=skeleton.upward.astype(np.int32),
        roots=skeleton.roots.astype(np.int32),
        anchor=skeleton.anchor,
        scale=skeleton.scale,
        n_features=grids.matrix.shape[1],
    )


def cost_radius(cells: np.ndarray, reference: Any) -> np.ndarray:
    """(n,) the distance from the true position at which a joint's cost is full, at least one cell.

    Parameters
    ----------
    cells : (n, J, 2) the true poses
    reference : two joints whose distance it is; None for a quarter of the diagonal of the box around the pose
    """
    if reference is None:
        radius = np.linalg.norm(np.ptp(cells, axis=1), axis=1) / 4
    else:
        joints = np.asarray(reference)
        n_joints = cells.shape[1]
        if joints.shape != (2,) or joints.dtype.kind not in "iu" or (joints < 0).any() or (joints >= n_joints).any():
            raise ValueError(f"reference must be two joints, from 0 to {n_joints - 1}, not {reference!r}.")
        radius = np.linalg.norm(cells[:, joints[0]] - cells[:, joints[1]], axis=1)
    return np.maximum(radius, 1.0)


def check_joint_weight(joint_weight: Any, n: int, n_joints: int) -> np.ndarray:
    """Check the weights of the joints' costs, by default 1."""
    if joint_weight is None:
        return np.ones((n, n_joints))
    weights = np.asarray(joint_weight, dtype=np.float64)
    if weights.shape != (n, n_joints):
        raise ValueError(f"joint_weight must have the shape ({n}, {n_joints}), but has {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("joint_weight must be finite and non-negative.")
    return weights
