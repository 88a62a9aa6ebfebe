import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BCFW, FrankWolfe, Status
from maxmargin.encode.deformable import deformable_problem, make_skeleton, stack_grids
from maxmargin.problem import max_marginals, max_oracle, new_weights, part_sizes, score_output, scores, workspace
from maxmargin.structures.distance_transform import new_transform_work, transform_grid, transform_line
from maxmargin.testing import check_structure
from tests import naive

EDGES = {1: [], 2: [(1, 0)], 3: [(1, 0), (1, 2)], 4: [(2, 1), (0, 3)]}  # the last is a forest


def make_problem(rng, shapes, n_joints=3, n_types=2, edges=None, dtype="float64", integer=False):
    def draw(size):
        return rng.integers(-1, 2, size).astype(float) if integer else rng.normal(size=size)

    grids = stack_grids([draw((*shape, 3)) for shape in shapes])
    n = len(shapes)
    cells = np.stack([[rng.integers(0, (w, h)) for _ in range(n_joints)] for h, w in shapes])
    skeleton, types = make_skeleton(EDGES[n_joints] if edges is None else edges, cells, n_types, 0, dtype)
    if integer:
        skeleton = skeleton._replace(anchor=np.rint(skeleton.anchor), scale=np.ones_like(skeleton.scale))
    return deformable_problem(grids, skeleton, cells, types, rng.random((n, n_joints)), rng.uniform(1, 3, n))


def all_poses(problem):
    n_joints, (n_edges, n_types, _) = problem.joint_cost.shape[1], problem.anchor.shape
    sizes = np.diff(problem.offsets)

    def outputs(i):
        ranges = [range(sizes[i])] * n_joints + [range(n_types)] * n_edges
        return [np.array(y, np.int32) for y in itertools.product(*ranges)]

    return outputs


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_oracles_equal_enumeration(dtype):
    problem = make_problem(np.random.default_rng(0), [(2, 2), (1, 3), (3, 1), (1, 1)], dtype=dtype)
    check_structure(problem, all_poses(problem), k=7)


@given(
    seed=st.integers(0, 10**6),
    shapes=st.lists(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2)]), min_size=2, max_size=3),
    n_joints=st.integers(1, 4),
    n_types=st.integers(1, 2),
    k=st.integers(1, 40),
    integer=st.booleans(),
)
def test_random_poses(seed, shapes, n_joints, n_types, k, integer):
    problem = make_problem(np.random.default_rng(seed), shapes, n_joints, n_types, integer=integer)
    check_structure(problem, all_poses(problem), random_state=seed, k=k)
