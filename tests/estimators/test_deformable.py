import itertools

import numpy as np
import pytest

from maxmargin import BCFW, DeformableCRF, DeformableSVM, Status, load

pytestmark = pytest.mark.long

EDGES = [(1, 0), (1, 2)]


def draw_poses(rng, n, noise):
    """Three joints in a row, 3 cells apart to the right or to the left; the third looks like every other cell."""
    X, y = [], []
    for _ in range(n):
        height, width = rng.integers(6, 9), rng.integers(11, 14)
        way = rng.choice([-3, 3])
        middle = np.array([rng.integers(3, width - 3), rng.integers(1, height - 1)])
        pose = middle + np.array([[-way, 0], [0, 0], [way, rng.integers(-1, 2)]])
        grid = noise * rng.normal(size=(height, width, 2))
        for joint in (0, 1):
            grid[pose[joint, 1], pose[joint, 0], joint] += 2
        X.append(grid)
        y.append(pose)
    return X, y


@pytest.fixture(scope="module")
def poses():
    return draw_poses(np.random.default_rng(0), 30, 0.4)


@pytest.fixture(scope="module")
def model(poses):
    return DeformableSVM(edges=EDGES, n_types=2, C=10.0, tol=0.01, random_state=0).fit(*poses)


def test_learns_and_certifies(model, poses):
    X, y = poses
    assert model.status_ is Status.OPTIMAL
    assert {name: part.shape for name, part in model.coef_.items()} == {
        "unary": (2, 3),
        "springs": (2, 2, 4),
        "types": (2, 2),
    }
    assert model.coef_.springs[:, :, [0, 2]].min() >= np.float32(0.01)
    assert np.allclose(np.sort(model.anchor_[0, :, 0]), [-3, 3])
    X_test, y_test = draw_poses(np.random.default_rng(1), 30, 0.4)
    alone = DeformableSVM(C=10.0, tol=0.01, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > alone.score(X_test, y_test) + 0.1
    assert alone.coef_.springs.shape == (0, 1, 4)


def score_of(model, grid, pose):
    """The best score of a pose over the types of its edges, from `coef_`."""
    total = sum(grid[y, x] @ model.coef_.unary[:, joint] for joint, (x, y) in enumerate(pose))
    for e, (parent, child) in enumerate(EDGES):
        u, v = ((pose[child] - pose[parent] - model.anchor_[e]) / model.scale_[e]).T
        springs = model.coef_.springs[e] * np.column_stack([u**2, u, v**2, v])
        total += (model.coef_.types[e] - springs.sum(axis=1)).max()
    return total


def test_hidden_types_make_no_pose_of_their_own():
    """Ways that are all over the place, so that the types of an edge are much alike."""
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 3, 2)) for _ in range(6)], [rng.integers(0, 3, (3, 2)) for _ in range(6)]
    model = DeformableSVM(edges=EDGES, n_types=2, tol=0.1, random_state=0).fit(X, y)
    for grid, (found, scores) in zip(X, model.predict_topk(X, 60), strict=True):
        assert len({tuple(pose.ravel()) for pose in found}) == 60
        every = [score_of(model, grid, np.array(pose).reshape(3, 2)) for pose in itertools.product(range(3), repeat=6)]
        np.testing.assert_allclose(scores, np.sort(every)[:-61:-1], atol=1e-4)
        np.testing.assert_allclose([score_of(model, grid, pose) for pose in found], scores, atol=1e-4)


def test_predictions_have_the_best_scores(model, poses):
    X = poses[0][:4]
    rng = np.random.default_rng(0)
    for grid, pose, (found, scores), through in zip(
        X, model.predict(X), model.predict_topk(X, 6), model.decision_function(X), strict=True
    ):
        best = score_of(model, grid, pose)
        assert np.isclose(scores[0], best, atol=1e-4)
        assert np.array_equal(found[0], pose)
        assert (np.diff(scores) <= 0).all()
        np.testing.assert_allclose([score_of(model, grid, other) for other in found], scores, atol=1e-4)
        assert len({tuple(other.ravel()) for other in found}) == 6  # types are not what is asked for
        for _ in range(200):
            other = rng.integers(0, grid.shape[1::-1], (3, 2))
            value = score_of(model, grid, other)
            assert value <= best + 1e-4
            assert all(value <= through[y, x, joint] + 1e-4 for joint, (x, y) in enumerate(other))
        assert through.shape == (*grid.shape[:2], 3)
        assert np.isclose(through.max(), best, atol=1e-4)


def probabilities(model, grid):
    """Of all poses, by the scores of all cells and types."""
    height, width = grid.shape[:2]
    every = [*itertools.product([(x, y) for y in range(height) for x in range(width)], repeat=3)]
    unary, values = grid @ model.coef_.unary, []
    for pose in every:
        total = sum(unary[y, x, joint] for joint, (x, y) in enumerate(pose))
        for e, (parent, child) in enumerate(EDGES):
            apart = (np.subtract(pose[child], pose[parent]) - model.anchor_[e]) / model.scale_[e]
            statistics = np.stack([apart[:, 0] ** 2, apart[:, 0], apart[:, 1] ** 2, apart[:, 1]], axis=1)
            total += np.logaddexp.reduce(model.coef_.types[e] - (statistics * model.coef_.springs[e]).sum(axis=1))
        values.append(total)
    return np.array(every), np.exp(np.array(values) - np.logaddexp.reduce(values))


def test_probabilities_are_those_of_all_poses(interpreted_loops, tmp_path):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(2, 3, 2)) for _ in range(6)], [rng.integers(0, (3, 2), (3, 2)) for _ in range(6)]
    DeformableCRF(edges=EDGES, n_types=2, dtype="float64").fit(X, y).save(tmp_path / "a.model")
    model = load(tmp_path / "a.model")
    assert model.certificate_.gap <= 1e-2 * model.certificate_.primal
    drawn = model.sample(X, 400, random_state=0)
    found = zip(X, y, model.predict_marginals(X), model.log_likelihood(X, y), drawn, strict=True)
    for grid, pose, marginals, log_p, samples in found:
        every, shares = probabilities(model, grid)
        expected = np.zeros((2, 3, 3))
        for cells, share in zip(every, shares, strict=True):
            expected[cells[:, 1], cells[:, 0], range(3)] += share
        np.testing.assert_allclose(marginals, expected, atol=1e-9)
        assert np.isclose(log_p, np.log(shares[(every == pose).all(axis=(1, 2))][0]))
        counts = np.zeros((2, 3, 3))
        for cells in samples:
            counts[cells[:, 1], cells[:, 0], range(3)] += 1 / 400
        assert np.abs(counts - expected).max() < 5 * np.sqrt(0.25 / 400)
    known = [[None, pose[1], None] for pose in y]
    for grid, pose, log_p in zip(X, y, model.log_likelihood(X, known), strict=True):
        every, shares = probabilities(model, grid)
        assert np.isclose(log_p, np.log(shares[(every[:, 1] == pose[1]).all(axis=1)].sum()))
    weak = DeformableCRF(edges=EDGES).fit(X, [*y[:4], [None, y[4][1], y[4][2]], None])
    assert weak.status_ is Status.STATIONARY


def test_the_image_tells_types_apart(interpreted_loops, tmp_path):
    """The last joint looks like nothing, to the left or to the right of the first, whose looks say where."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for k in range(16):
        first, way = np.array([rng.integers(2, 4), rng.integers(0, 2)]), (-2, 2)[k % 2]
        X.append(0.1 * rng.normal(size=(2, 6, 2)))
        X[-1][first[1], first[0]] += [2, way]
        y.append(first + np.array([[0, 0], [way, 0]]))
    blind, seeing, both = (
        DeformableSVM(edges=[(0, 1)], n_types=2, tol=0.05, C=10.0, random_state=0, **more).fit(X[:10], y[:10])
        for more in ({}, {"image_types": True}, {"image_types": True, "both_ways": True})
    )
    assert seeing.score(X[10:], y[10:]) == both.score(X[10:], y[10:]) == 1 > blind.score(X[10:], y[10:])
    assert [*seeing.coef_] == ["unary", "springs", "types", "image_types"]
    assert seeing.coef_.image_types.shape == (2, 1, 2)
    assert both.coef_.springs.shape == (2, 2, 4)
    np.testing.assert_allclose(both.anchor_[1], -both.anchor_[0], atol=1e-6)
    both.save(tmp_path / "a.model")
    assert np.array_equal(load(tmp_path / "a.model").predict(X), both.predict(X))
    known = [[pose[0], None] for pose in y]
    assert np.array_equal(both.predict(X, allowed=known), both.predict(X))
    assert both.decision_function(X)[0].shape == both.predict_marginals(X)[0].shape == (2, 6, 2)


def test_joint_weights_references_and_warm_starts(poses):
    X, y = poses
    blind = DeformableSVM(edges=EDGES, random_state=0, C=0.1).fit(X, y, joint_weight=np.zeros((30, 3)))
    seeing = DeformableSVM(edges=EDGES, random_state=0, C=0.1).fit(X, y)
    assert 5 * np.abs(blind.coef_.unary).max() < np.abs(seeing.coef_.unary).max()  # mistakes cost nothing
    warm = DeformableSVM(edges=EDGES, reference=(0, 1), tol=0.05, warm_start=True, random_state=0).fit(X, y)
    assert warm.n_iter_ > 0
    assert warm.fit(X, y).n_iter_ == 0
    assert warm.fit(X[:20], y[:20]).status_ is Status.OPTIMAL


# --- bad input ------------------------------------------------------------------------------------------------------

GRID = np.ones((4, 5, 2))
POSE = np.zeros((3, 2), int)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X must hold at least one image, but it is empty."),
        (None, [], r"X must be a list of \(H, W, F\) arrays, not None."),
        ([GRID, GRID[0]], [POSE] * 2, r"X\[1\] must be an \(H, W, F\) array of numbers, not one of shape .*"),
        ([GRID, GRID[:0]], [POSE] * 2, r"X\[1\] is empty: every image needs at least one row."),
        ([GRID, GRID[:, :, :1]], [POSE] * 2, r"X\[1\] has 1 feature, but X\[0\] has 2."),
        ([GRID, GRID * np.nan], [POSE] * 2, r"X\[1\] contains NaN or infinity, in row 0."),
        ([GRID], [POSE] * 2, "X has 1 images, but y has 2."),
        ([GRID], None, r"y must be a list with one \(J, 2\) array of positions per image."),
        ([GRID] * 2, [POSE, POSE[:2]], r"y\[1\] must be a \(3, 2\) array of numbers, not one of shape \(2, 2\) .*"),
        ([GRID], [np.zeros((0, 2))], r"y\[0\] must hold the position of at least one joint."),
        ([GRID], [[[0, 1], [2]]], r"y\[0\] must be a \(J, 2\) array of numbers, but its rows have different lengths."),
        ([GRID] * 2, [POSE, POSE + np.inf], r"y\[1\] contains infinity, or NaN for one coordinate of a joint."),
        (
            [GRID] * 2,
            [POSE, POSE + np.array([0, np.nan])],
            r"y\[1\] contains infinity, or NaN for one coordinate of a joint.",
        ),
        ([GRID] * 2, [None, None], r"y must hold the pose of at least one image, but all of it is None."),
        ([GRID] * 2, [POSE, POSE + 4], r"y\[1\] has joint 0 at x = 4, y = 4, outside of its grid of 5 x 4 cells."),
        ([GRID] * 2, [POSE, POSE - 1], r"y\[1\] has joint 0 at x = -1, y = -1, outside of its grid of 5 x 4 cells."),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        DeformableSVM(edges=EDGES).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"edges": [(0, 3)]}, r"Edge 0 of the skeleton is \(0, 3\), but the nodes are 0 to 2."),
        ({"edges": [(0, 1), (0, 1)]}, r"the skeleton has the edge \(0, 1\) twice."),
        ({"edges": [(0, 1), (1, 0)]}, "The edges of the skeleton form a cycle through nodes 0, 1, but must form .*"),
        ({"edges": [(0, 1), (2, 1)]}, "Node 1 of the skeleton has two parents, 0 and 2: edges run .*"),
        ({"n_types": 0}, "n_types must be an integer, at least 1, not 0."),
        ({"n_types": 3}, "n_types must be between 1 and the number of images, 2, not 3."),
        ({"min_stiffness": 0.0}, "min_stiffness must be a positive number, not 0.0."),
        ({"reference": (0, 5)}, r"reference must be two joints, from 0 to 2, not \(0, 5\)."),
        ({"solver": "lbfgs"}, "solver must be a Solver of the hinge loss or one of .*, not 'lbfgs'."),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        DeformableSVM(**{"edges": EDGES, **parameters}).fit([GRID] * 2, [POSE] * 2)


def test_bad_weights_and_predictions(model):
    with pytest.raises(ValueError, match="X has 2 images, but joint_weight has 3"):
        DeformableSVM(edges=EDGES, solver=BCFW()).fit([GRID] * 2, [POSE] * 2, joint_weight=[1, 1, 1])
    with pytest.raises(ValueError, match=r"joint_weight\[0\] must hold numbers from 0 to 1e\+12"):
        DeformableSVM(edges=EDGES).fit([GRID] * 2, [POSE] * 2, joint_weight=-np.ones((2, 3)))
    with pytest.raises(ValueError, match="X has 3 features, but the model was fitted with 2"):
        model.predict([np.ones((4, 5, 3))])
