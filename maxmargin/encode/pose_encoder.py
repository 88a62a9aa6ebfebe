"""Grids of features and poses to a `DeformableProblem`.

Every check of the user's images and poses is here: what passes is safe for the loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.checks import LARGEST
from maxmargin.encode.inputs.base_encoder import Encoder, by_row
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.edges import check_parents, children_first
from maxmargin.encode.inputs.example_checks import check_array, check_examples, check_truths, flatten_weights
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows, row_features, stack_grids
from maxmargin.inference import best_outputs
from maxmargin.problem import restrict
from maxmargin.structures.poses.pose_problem import N_STATISTICS, DeformableProblem, PoseSupervision
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import NO_LABEL
from maxmargin.supervision.weak import Learned, Weak

LEAST_SCALE = 1.0  # of displacements, in cells
MOST_JOINTS = 1_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class DeformableEncoder(Encoder[DeformableProblem]):
    """The encoder of images with a pose each."""

    published = ("n_features_in", "n_joints", "anchor", "scale")

    n_features_in: int
    n_joints: int
    edges: np.ndarray  # (E, 2) parent and child
    anchor: np.ndarray  # (A, K, 2) the mean ways along arcs, in x and y, for each type
    scale: np.ndarray  # (A, 2) the spread around them
    reference: Any = field(compare=False)  # of costs, which also judge predictions
    image_types: bool = False

    @property
    def n_columns(self) -> int:
        return self.n_joints + (self.anchor[:, :, 0].size if self.image_types else 0)

    @property
    def n_weights(self) -> int:
        return self.n_features_in * self.n_columns + self.anchor[:, :, 0].size * N_STATISTICS

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "n_joints", 0 < self.n_joints <= MOST_JOINTS and self.n_features_in > 0
        ends = check_parents(self.edges, "the skeleton", self.n_joints)
        parents = np.full(self.n_joints, -1)
        parents[ends[:, 1]] = ends[:, 0]
        children_first(parents, np.array([0, self.n_joints]), "the skeleton")
        n_edges, dtype = len(ends), self.anchor.dtype
        n_arcs = len(self.anchor)
        yield "image_types", isinstance(self.image_types, bool)
        yield "anchor", n_arcs in (n_edges, 2 * n_edges)
        yield "anchor", self.anchor.ndim == 3 and self.anchor.shape[2] == 2 and dtype == w.dtype
        yield "anchor", self.anchor.shape[1] > 0 and bool((np.abs(self.anchor) <= LARGEST).all())
        yield "scale", self.scale.shape == (n_arcs, 2) and self.scale.dtype == dtype
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
        edges: ArrayLike,
        n_types: int,
        reference: object,
        image_types: bool = False,
        both_ways: bool = False,
        joint_weight: object = None,
        dtype: DTypeLike,
    ) -> Learned:
        """The encoder and the problem of training images; arguments are those of `DeformableSVM`."""
        rows, shapes = stack_images(X)
        cells = stack_poses(y, shapes)
        n, n_joints, _ = cells.shape
        weights = flatten_weights(joint_weight, np.full(n, n_joints), "joint_weight", "image")
        is_known = cells[:, :, 0] != NO_LABEL
        joint_cost = weights.reshape(n, n_joints) * is_known / n_joints
        ends = check_parents(edges, "the skeleton", n_joints)
        arcs = np.concatenate([ends, ends[:, ::-1]]) if both_ways else ends
        anchor, scale, types = typical_ways(cells, arcs, n_types)
        encoder = cls(
            n_features_in=rows.matrix.shape[1],
            n_joints=n_joints,
            edges=ends,
            anchor=anchor.astype(dtype),
            scale=scale.astype(dtype),
            reference=reference,
            image_types=image_types,
        )
        problem = encoder.assemble(rows, shapes, cells, types, joint_cost, cost_radius(cells, reference))
        problem = problem._replace(hides_types=False)  # they are known in training
        if is_known.all():
            return Learned(encoder, problem)
        consistent = restrict(problem, encoder.excluded_places(problem, problem.supervision.outputs))
        supervision = problem.supervision._replace(outputs=encoder.usual_poses(consistent))
        weak = Weak(consistent._replace(supervision=supervision), is_weak=~is_known.all(axis=1))
        return Learned(encoder, problem._replace(supervision=supervision), weak)

    def problem(self, X: object, y: object = None) -> DeformableProblem:
        rows, shapes = stack_images(X, self.n_features_in)
        n = len(shapes)
        cells = np.full((n, self.n_joints, 2), NO_LABEL)
        if y is not None:
            cells = stack_poses(y, shapes, self.n_joints)
            if (cells < 0).any():
                i, joint, _ = np.argwhere(cells < 0)[0].tolist()
                raise ValueError(f"y[{i}] must hold the positions of all joints, but that of joint {joint} is unknown.")
        types = np.full((n, len(self.anchor)), NO_LABEL)
        return self.assemble(rows, shapes, cells, types, np.zeros((0, self.n_joints)), np.zeros(0))

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(
            pose is None or any(place is None or not np.isfinite(np.asarray(place, float)).all() for place in pose)
            for pose in y
        )

    def exclusions(self, problem: DeformableProblem, known: object, name: str) -> Blocks:
        shapes = np.column_stack([np.diff(problem.starts) // problem.width, problem.width])
        cells = stack_poses(known, shapes, self.n_joints, name)
        outputs = np.full((len(shapes), self.n_joints + len(self.anchor)), NO_LABEL)
        outputs[:, : self.n_joints] = _flat_cells(cells, problem.width)
        return self.excluded_places(problem, outputs)

    def excluded_places(self, problem: DeformableProblem, outputs: np.ndarray) -> Blocks:
        """Flags of all cells and types but those of `outputs`, of which some are unknown."""
        flags = []
        for row, n_cells in zip(outputs, np.diff(problem.starts), strict=True):
            places, types = np.split(row, [self.n_joints])
            of_cells = np.zeros((n_cells, self.n_columns), bool)
            of_cells[:, : self.n_joints] = (places != NO_LABEL) & (np.arange(n_cells)[:, np.newaxis] != places)
            of_types = np.zeros((len(types), self.anchor.shape[1], N_STATISTICS), bool)
            of_types[:, :, -1] = (types != NO_LABEL)[:, np.newaxis] & (np.arange(of_types.shape[1]) != types[:, None])
            flags.append(np.concatenate([of_cells.ravel(), of_types.ravel()]))
        return as_blocks(flags, bool)

    def usual_poses(self, problem: DeformableProblem) -> np.ndarray:
        """Poses of a problem with joints as far apart as they usually are."""
        w = np.zeros(self.n_weights, self.anchor.dtype)
        self.names(w).springs[:, :, ::2] = 1
        return best_outputs(problem, w).values.reshape(len(problem.width), -1)

    def assemble(
        self,
        rows: Rows,
        shapes: np.ndarray,
        cells: np.ndarray,
        types: np.ndarray,
        joint_cost: np.ndarray,
        radius: np.ndarray,
    ) -> DeformableProblem:
        """Put the checked parts together: true cells and types, weights of joints' costs, and where these are full."""
        dtype, width = self.anchor.dtype, np.ascontiguousarray(shapes[:, 1])
        flat = _flat_cells(cells, width)
        parent, child = np.asarray(self.edges.T, np.int32)
        goes_back = len(self.anchor) > len(self.edges)
        parents = np.full(self.n_joints, -1)
        parents[child] = parent
        place = np.argsort(children_first(parents, np.array([0, self.n_joints]), "the skeleton"))  # of each joint
        return DeformableProblem(
            features=row_features(rows, dtype),
            starts=rows.starts.astype(np.int64),
            width=width,
            supervision=PoseSupervision(
                outputs=np.ascontiguousarray(np.hstack([flat, types]), np.int32),
                joint_cost=np.ascontiguousarray(joint_cost, dtype),
                radius=radius.astype(dtype),
            ),
            excluded=nothing_excluded(len(shapes)),
            parent=np.concatenate([parent, child]) if goes_back else np.ascontiguousarray(parent),
            child=np.concatenate([child, parent]) if goes_back else np.ascontiguousarray(child),
            upward=np.argsort(place[child]).astype(np.int32),  # each edge after those below it
            roots=np.flatnonzero(parents < 0).astype(np.int32),
            anchor=self.anchor,
            scale=self.scale,
            n_features=self.n_features_in,
            has_image_types=self.image_types,
            hides_types=True,
        )

    def dual_shape(self, problem: DeformableProblem) -> tuple[object, ...]:
        return problem.starts, problem.width, problem.supervision.outputs

    def names(self, w: np.ndarray) -> Bunch:
        n_arcs, n_types, _ = self.anchor.shape
        n_arc_weights = n_arcs * n_types * N_STATISTICS
        arcs = w[w.size - n_arc_weights :].reshape(n_arcs, n_types, N_STATISTICS)
        columns = w[: w.size - n_arc_weights].reshape(-1, self.n_columns)
        named = Bunch(unary=columns[:, : self.n_joints], springs=arcs[:, :, :4], types=arcs[:, :, 4])
        if self.image_types:
            named["image_types"] = columns[:, self.n_joints :].reshape(-1, n_arcs, n_types)
        return named

    def decode(self, problem: DeformableProblem, i: int, rows: np.ndarray) -> np.ndarray:
        y, x = np.divmod(rows[:, : self.n_joints].astype(np.int64), problem.width[i])
        return np.stack([x, y], axis=2)

    def arrange(self, problem: DeformableProblem, parts: Blocks) -> list[np.ndarray]:
        cells = by_row(parts, problem.starts, self.n_columns)
        of_joints = (table[:, : self.n_joints] for table in cells)
        return [table.reshape(-1, width, self.n_joints) for table, width in zip(of_joints, problem.width, strict=True)]

    def judge(self, problem: DeformableProblem, outputs: Blocks) -> Merits:
        truth = np.array(self.decode_all(problem, outputs._replace(values=problem.supervision.outputs.ravel())))
        squares = np.square(np.array(self.decode_all(problem, outputs)) - truth).sum(axis=2)
        costs = np.minimum(1.0, squares / cost_radius(truth, self.reference)[:, np.newaxis] ** 2)
        return Merits(1.0 - costs.mean(axis=1))


def stack_images(X: object, n_features: int | None = None) -> tuple[Rows, np.ndarray]:
    """Check images and stack their cells, row by row; with the shapes of the grids."""
    X = check_examples(X, "(H, W, F) arrays", "image")
    grids = [check_array(x, f"X[{i}]", "an (H, W, F) array of numbers", (None,) * 3) for i, x in enumerate(X)]
    return stack_grids(grids, n_features), np.array([grid.shape[:2] for grid in grids], np.int64)


def stack_poses(y: object, shapes: np.ndarray, n_joints: int | None = None, name: str = "y") -> np.ndarray:
    """Check poses, (J, 2) arrays of the x and y of each joint, and round them to cells: (n, J, 2) integers.

    Joints that are None, or NaN, are unknown, and so are all joints of poses that are None.
    """
    y = check_truths(y, len(shapes), "one (J, 2) array of positions per image", "image", name)
    given = [i for i, pose in enumerate(y) if pose is not None]
    if n_joints is None and not given:
        raise ValueError(f"{name} must hold the pose of at least one image, but all of it is None.")
    poses = {}
    for i in given:
        kind = f"a ({n_joints or 'J'}, 2) array of numbers"
        poses[i] = check_array(_with_gaps(y[i]), f"{name}[{i}]", kind, (n_joints, 2), dtypes="iuf")
        n_joints = len(poses[i])
        if n_joints == 0:
            raise ValueError(f"{name}[{i}] must hold the position of at least one joint.")
        if (np.isnan(poses[i]).any(axis=1) != np.isnan(poses[i]).all(axis=1)).any() or np.isinf(poses[i]).any():
            raise ValueError(f"{name}[{i}] contains infinity, or NaN for one coordinate of a joint.")
    cells = np.full((len(shapes), n_joints or 0, 2), NO_LABEL)
    for i, pose in poses.items():
        cells[i] = np.where(np.isnan(pose), NO_LABEL, np.rint(pose))
    is_known = np.zeros(cells.shape[:2], bool)
    is_known[given] = [~np.isnan(pose).any(axis=1) for pose in poses.values()]
    is_outside = ((cells < 0) | (cells >= shapes[:, np.newaxis, ::-1])).any(axis=2) & is_known
    if is_outside.any():
        i, joint = np.argwhere(is_outside)[0].tolist()
        place = "x = {}, y = {}".format(*cells[i, joint])
        size = "{1} x {0}".format(*shapes[i])
        raise ValueError(f"{name}[{i}] has joint {joint} at {place}, outside of its grid of {size} cells.")
    return cells


def _with_gaps(pose: object) -> object:
    """A pose with NaN in place of joints that are None."""
    if isinstance(pose, (list, tuple)) and any(place is None for place in pose):
        return [(np.nan, np.nan) if place is None else place for place in pose]
    return pose


def _flat_cells(cells: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The numbers of cells, row by row; unknown ones stay so."""
    return np.where(cells[:, :, 0] < 0, NO_LABEL, cells[:, :, 1] * width[:, np.newaxis] + cells[:, :, 0])


def typical_ways(cells: np.ndarray, arcs: np.ndarray, n_types: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cluster the ways along each arc in the true poses: the means of types, the spread around them, and the types."""
    from sklearn.cluster import KMeans  # slow to import

    n, n_arcs = len(cells), len(arcs)
    if not 1 <= n_types <= n:
        raise ValueError(f"n_types must be between 1 and the number of images, {n}, not {n_types}.")
    anchor, types = np.zeros((n_arcs, n_types, 2)), np.full((n, n_arcs), NO_LABEL)
    scale = np.full((n_arcs, 2), LEAST_SCALE)
    for a, (parent, child) in enumerate(arcs.tolist()):
        is_known = (cells[:, [parent, child]] >= 0).all(axis=(1, 2))
        if not is_known.any():
            raise ValueError(f"y has no image with both joints of the edge ({parent}, {child}): their way is unknown.")
        ways = (cells[:, child] - cells[:, parent])[is_known]
        n_clusters = min(n_types, len(np.unique(ways, axis=0)))
        clusters = KMeans(n_clusters, n_init=4, random_state=0).fit(ways.astype(np.float64))
        anchor[a, :n_clusters] = clusters.cluster_centers_
        anchor[a, n_clusters:] = clusters.cluster_centers_[0]
        types[is_known, a] = clusters.labels_
        apart = ways - anchor[a, types[is_known, a]]
        scale[a] = np.maximum(np.sqrt((apart**2).mean(axis=0)), LEAST_SCALE)
    return anchor, scale, types


def cost_radius(cells: np.ndarray, reference: object) -> np.ndarray:
    """The distance from the true position at which the cost of a joint is full, in each image, at least one cell."""
    if reference is None:
        is_known = cells >= 0
        extent = cells.max(axis=1) - np.where(is_known, cells, cells.max()).min(axis=1)
        is_clear = is_known.sum(axis=1) >= min(2, cells.shape[1])
        return _lengths(np.where(is_clear, extent, np.nan) / 4)
    joints, n_joints = np.asarray(reference), cells.shape[1]
    if joints.shape != (2,) or joints.dtype.kind not in "iu" or (joints < 0).any() or (joints >= n_joints).any():
        raise ValueError(f"reference must be two joints, from 0 to {n_joints - 1}, not {reference!r}.")
    way = cells[:, joints[0]] - cells[:, joints[1]]
    is_clear = (cells[:, joints, :1] != NO_LABEL).all(axis=1)
    return _lengths(np.where(is_clear, way, np.nan))


def _lengths(ways: np.ndarray) -> np.ndarray:
    """The lengths of ways, at least one; their mean where they are unknown."""
    lengths = np.linalg.norm(ways, axis=1)
    known = lengths[~np.isnan(lengths)]
    return np.maximum(np.where(np.isnan(lengths), known.mean() if known.size else 1.0, lengths), 1.0)
