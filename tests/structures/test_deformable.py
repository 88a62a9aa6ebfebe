import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BCFW, FrankWolfe, Status
from maxmargin import problem as generics
from maxmargin.encode.pose_encoder import DeformableEncoder
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import scores
from maxmargin.runtime import interpreted
from maxmargin.structures.poses import pose_sums
from maxmargin.structures.poses.distance_transform import new_transform_work, transform_grid
from maxmargin.testing import Caller, check_structure
from tests import naive

pytestmark = pytest.mark.usefixtures("loops_either_way")

VARIANTS = [{"image_types": True}, {"both_ways": True}, {"image_types": True, "both_ways": True}]
EDGES = {1: [], 2: [(1, 0)], 3: [(1, 0), (1, 2)], 4: [(2, 1), (0, 3)]}  # the last is a forest


def make_problem(rng, shapes, n_joints=3, n_types=2, dtype="float64", integer=False, **more):
    """Random features and poses; `integer` data gives many ties."""

    def draw(size):
        return rng.integers(-1, 2, size).astype(float) if integer else rng.normal(size=size)

    X = [draw((*shape, 2)) for shape in shapes]
    n = len(shapes)
    y = [[rng.integers(0, (w, h)) for _ in range(n_joints)] for h, w in shapes]
    skeleton = {"edges": EDGES[n_joints], "n_types": n_types, "reference": None, **more}
    weights = n_joints * rng.random((n, n_joints))
    problem = DeformableEncoder.learn(X, y, dtype=dtype, joint_weight=weights, **skeleton).problem
    if integer:
        problem = problem._replace(anchor=np.rint(problem.anchor), scale=np.ones_like(problem.scale))
    radius = rng.uniform(1, 3, n).astype(dtype)
    return problem._replace(supervision=problem.supervision._replace(radius=radius))


def all_poses(problem):
    n_joints, (n_arcs, n_types, _) = problem.supervision.joint_cost.shape[1], problem.anchor.shape
    sizes = np.diff(problem.starts)

    def outputs(i):
        ranges = [range(sizes[i])] * n_joints + [range(n_types)] * n_arcs
        return [np.array(y, np.int32) for y in itertools.product(*ranges)]

    return outputs


def test_oracles_equal_enumeration():
    problem = make_problem(np.random.default_rng(0), [(2, 2), (1, 3), (3, 1), (1, 1)], dtype="float32")
    check_structure(problem, all_poses(problem), k=7)


@pytest.mark.parametrize("more", VARIANTS, ids=str)
def test_types_that_depend_on_the_image_and_springs_both_ways(more):
    for shapes in [(2, 2), (1, 1), (1, 3)], [(3, 1), (1, 2)]:
        problem = make_problem(np.random.default_rng(0), shapes, 2, integer=len(shapes) == 2, **more)
        with interpreted():
            check_structure(problem, all_poses(problem), k=7)


@given(
    seed=st.integers(0, 10**6),
    shapes=st.lists(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2)]), min_size=2, max_size=3),
    n_joints=st.integers(1, 4),
    n_types=st.integers(1, 2),
    k=st.integers(1, 40),
    integer=st.booleans(),
    more=st.sampled_from([{}, *VARIANTS]),
)
@pytest.mark.long
def test_random_poses(seed, shapes, n_joints, n_types, k, integer, more):
    n_types = 1 if n_joints == 4 and more else n_types  # to be enumerated
    problem = make_problem(np.random.default_rng(seed), shapes, n_joints, n_types, integer=integer, **more)
    check_structure(problem, all_poses(problem), random_state=seed, k=k)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_hidden_types_make_no_output_of_their_own(integer, is_compiled):
    rng = np.random.default_rng(3)
    problem = make_problem(rng, [(2, 2), (3, 1), (1, 1)], integer=integer)._replace(hides_types=True)
    run = Caller(problem) if is_compiled else lambda generic, *args: generic(problem, *args)
    w, k = rng.normal(size=generics.new_weights(problem).size), 70
    for i in range(3):
        theta = np.zeros(generics.part_sizes(problem)[i])
        scores(problem, w, i, theta)
        best: dict[tuple[int, ...], float] = {}
        for y in all_poses(problem)(i):
            cells = tuple(y[:3].tolist())
            best[cells] = max(best.get(cells, -np.inf), generics.score_output(problem, i, theta, y))
        outputs, values = np.zeros((k, 5), np.int32), np.zeros(k)
        count = run(generics.topk_oracle, i, theta, outputs, values, EVERY, generics.workspace(problem, k))
        found = [tuple(y[:3].tolist()) for y in outputs[:count]]
        assert len(set(found)) == count == min(k, len(best))
        np.testing.assert_allclose(values[:count], sorted(best.values(), reverse=True)[:k], atol=1e-9)
        np.testing.assert_allclose([best[cells] for cells in found], values[:count], atol=1e-9)
        reached = [generics.score_output(problem, i, theta, y) for y in outputs[:count]]
        np.testing.assert_allclose(reached, values[:count], atol=1e-9)


@pytest.mark.parametrize("far", [1.0, 60.0, 3e3])
def test_sums_of_scores_far_apart(far):
    """By products, where these are safe, and by logarithms."""
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [(2, 3), (3, 2)])
    with interpreted():
        for i in range(2):
            theta = far * rng.normal(size=generics.part_sizes(problem)[i])
            every = all_poses(problem)(i)
            parts = np.zeros((len(every), theta.size))
            for y, row in zip(every, parts, strict=True):
                generics.add_output(problem, i, y, 1.0, row)
            mu = np.zeros(theta.size)
            log_z = generics.exp_oracle(problem, i, theta, mu, generics.workspace(problem, 1))
            values = parts @ theta
            assert np.isclose(log_z, np.logaddexp.reduce(values), rtol=1e-12)
            np.testing.assert_allclose(mu, np.exp(values - log_z) @ parts, atol=1e-8)


def test_logarithms_are_the_same_sums(monkeypatch):
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [(4, 5), (1, 1)])
    theta, means = rng.normal(size=generics.part_sizes(problem)[0]), []
    with interpreted():
        for least, most in ((1e-150, 300.0), (np.inf, -np.inf)):
            monkeypatch.setattr(pose_sums, "LEAST_SUM", least)
            monkeypatch.setattr(pose_sums, "LOG_MOST", most)
            mu = np.zeros(theta.size)
            means.append(np.append(mu, generics.exp_oracle(problem, 0, theta, mu, generics.workspace(problem, 1))))
            means[-1][:-1] = mu
    np.testing.assert_allclose(*means, rtol=1e-10)


# --- distance transforms --------------------------------------------------------------------------------------------


def naive_transform(values, cost, anchor):
    """For each target the best source and value, one by one."""
    height, width = values.shape
    best, source = np.zeros(values.shape), np.zeros(values.shape, int)
    rows, columns = np.mgrid[:height, :width]
    for y, x in np.ndindex(height, width):
        u, v = columns - x - anchor[0], rows - y - anchor[1]
        scores = values - cost[0] * u**2 - cost[1] * u - cost[2] * v**2 - cost[3] * v
        best[y, x], source[y, x] = scores.max(), scores.argmax()
    return best, source


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    curvature=st.sampled_from([1e-12, 1e-6, 0.01, 1.0, 100.0, 0.0, -0.5]),
    integer=st.booleans(),
)
def test_transforms_equal_the_naive_message(seed, shape, curvature, integer):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, shape).astype(float) if integer else 10 * rng.normal(size=shape)
    cost = np.array([curvature, rng.normal(), abs(rng.normal()), rng.normal()])
    anchor = rng.integers(-3, 4, 2) if integer else 4 * rng.normal(size=2)
    best, source = np.zeros(values.size), np.zeros(values.size, np.int32)
    work = new_transform_work(values.size, max(shape), values.dtype)
    transform_grid(values.ravel(), *shape, cost, *anchor, best, source, work)
    expected, _ = naive_transform(values, cost, anchor)
    assert np.allclose(best, expected.ravel(), atol=1e-6)
    reached = values.ravel()[source]
    dy, dx = (
        a - b for a, b in zip(np.divmod(source, shape[1]), np.divmod(np.arange(values.size), shape[1]), strict=True)
    )
    u, v = dx - anchor[0], dy - anchor[1]
    assert np.allclose(best, reached - cost[0] * u**2 - cost[1] * u - cost[2] * v**2 - cost[3] * v)


def test_ties_of_a_transform_go_to_the_lowest_source():
    best, source, work = np.zeros(5), np.zeros(5, np.int32), new_transform_work(5, 5, np.dtype(float))
    for curvature in (0.0, 1.0):  # one by one, and by the envelope
        transform_grid(np.array([0.0, -9, -9, -9, 0]), 1, 5, [curvature, 0.0, 1.0, 0.0], 0, 0, best, source, work)
        assert source[2] == 0


def test_a_compiled_message_on_a_larger_grid():
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [(13, 17), (20, 9)], n_joints=2, n_types=1)
    w = rng.normal(size=generics.new_weights(problem).size)
    w[-5], w[-3] = 0.7, 0.02
    for i, (height, width) in enumerate([(13, 17), (20, 9)]):
        theta, y = np.zeros(generics.part_sizes(problem)[i]), np.zeros(3, np.int32)
        scores(problem, w, i, theta)
        maps = theta[:-5].reshape(height, width, 2)
        scale = problem.scale[0]
        cost = np.array([0.7, w[-4], 0.02, w[-2]]) / [scale[0] ** 2, scale[0], scale[1] ** 2, scale[1]]
        message, source = naive_transform(maps[:, :, 0], cost, problem.anchor[0, 0])
        belief = maps[:, :, 1] + message + w[-1]
        value = Caller(problem)(generics.max_oracle, i, theta, y, generics.workspace(problem, 1))
        assert np.isclose(value, belief.max())
        assert y.tolist() == [source.ravel()[belief.argmax()], belief.argmax(), 0]


@pytest.mark.parametrize("n_joints", [1, 2, 3, 4])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_max_marginals_equal_enumeration(n_joints, is_compiled):
    rng = np.random.default_rng(n_joints)
    problem = make_problem(rng, [(2, 2), (3, 1)], n_joints)
    run = Caller(problem) if is_compiled else lambda generic, *args: generic(problem, *args)
    w = rng.normal(size=generics.new_weights(problem).size)
    for i in range(2):
        theta = np.zeros(generics.part_sizes(problem)[i])
        scores(problem, w, i, theta)
        poses = np.array(all_poses(problem)(i))
        values = np.array([generics.score_output(problem, i, theta, y) for y in poses])
        out = np.full(theta.size, 7.0)
        run(generics.max_marginals, i, theta, out, generics.workspace(problem, 1))
        n_cells = np.diff(problem.starts)[i]
        best = out[: n_cells * n_joints].reshape(n_cells, n_joints)
        for cell, joint in np.ndindex(n_cells, n_joints):
            assert np.isclose(best[cell, joint], values[poses[:, joint] == cell].max())
        assert (out[n_cells * n_joints :] == 7).all()  # springs are not there once or not at all


# --- training -------------------------------------------------------------------------------------------------------


def pose_features(problem, i, y):
    """The joint feature map, written down from the model: cells (F, J), then edges (E, K, 5), flat."""
    n_joints, (n_edges, n_types, _) = problem.supervision.joint_cost.shape[1], problem.anchor.shape
    rows = problem.features.rows[problem.starts[i] : problem.starts[i + 1]]
    unary, springs = np.zeros((rows.shape[1], n_joints)), np.zeros((n_edges, n_types, 5))
    places = np.array([divmod(cell, problem.width[i])[::-1] for cell in y[:n_joints]])
    for joint in range(n_joints):
        unary[:, joint] = rows[y[joint]]
    for e, (parent, child) in enumerate(zip(problem.parent, problem.child, strict=True)):
        kind = y[n_joints + e]
        u, v = (places[child] - places[parent] - problem.anchor[e, kind]) / problem.scale[e]
        springs[e, kind] = -(u**2), -u, -(v**2), -v, 1
    return np.concatenate([unary.ravel(), springs.ravel()])


def pose_cost(problem, i, y):
    outputs, joint_cost, radius = problem.supervision
    both = (outputs[i], y)
    truth, found = (np.array(np.divmod(cells[: joint_cost.shape[1]], problem.width[i])) for cells in both)
    return joint_cost[i] @ np.minimum(1, ((truth - found) ** 2).sum(axis=0) / radius[i] ** 2)


@pytest.fixture(scope="module")
def trained():
    """A problem, all its outputs, lower bounds of its weights, and the optimum by an independent solver."""
    problem = make_problem(np.random.default_rng(3), [(2, 2), (1, 4), (3, 1), (2, 2)])
    known = problem.supervision
    problem = problem._replace(supervision=known._replace(joint_cost=np.ones_like(known.joint_cost)))
    blocks = []
    for i in range(4):
        poses = all_poses(problem)(i)
        truth = pose_features(problem, i, problem.supervision.outputs[i])
        psi = np.array([truth - pose_features(problem, i, y) for y in poses])
        blocks.append((psi, np.array([pose_cost(problem, i, y) for y in poses])))
    lower = np.full(generics.new_weights(problem).size, -np.inf)
    lower[6:].reshape(2, 2, 5)[:, :, [0, 2]] = 0.3
    return problem, blocks, lower, naive.solve(blocks, 1.0, lower=lower)[1]


@pytest.mark.parametrize(
    "solver", [*(BCFW(steps=steps) for steps in ("fw", "pairwise", "away")), BCFW(cache=3), FrankWolfe()], ids=str
)
def test_solvers_reach_the_optimum_within_the_box(trained, solver):
    problem, blocks, lower, optimum = trained
    assert optimum > naive.solve(blocks, 1.0)[1] + 1e-3  # the box matters
    is_slow = isinstance(solver, FrankWolfe) or solver.steps == "fw"
    result = solver.solve(problem, 1.0, lower=lower, tol=1e-2 if is_slow else 1e-5, max_passes=1e5, random_state=0)
    assert result.status is Status.OPTIMAL
    assert (result.w >= lower).all()
    assert result.trace.dual[-1] <= optimum * (1 + 1e-9)
    assert result.trace.primal[-1] >= optimum * (1 - 1e-9)
    assert np.isclose(naive.primal(result.w, blocks, 1.0), result.trace.primal[-1])
