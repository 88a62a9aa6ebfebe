import numpy as np
import pytest

from maxmargin import BCFW, BoxSVM, Status, regularization_path
from maxmargin.metrics import average_precision, iou
from maxmargin.vision import non_max_suppression
from tests import naive


def make_images(n, dtype=float, seed=0):
    """Bright boxes on dark ground, with noise; every image has its own shape."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        height, width = rng.integers(5, 9, 2)
        top, left = rng.integers(0, 3, 2)
        box = (top, left, top + rng.integers(2, height - top + 1), left + rng.integers(2, width - left + 1))
        image = rng.normal(size=(height, width, 2)) - 1
        image[box[0] : box[2], box[1] : box[3]] += 2
        X.append(image)
        y.append(tuple(int(side) for side in box))
    return X, y


def words_of(X):
    return [2 * (x[:, :, 0] > 0) + (x[:, :, 1] > 0) for x in X]


@pytest.fixture(scope="module")
def images():
    return make_images(20)


@pytest.fixture(scope="module")
def model(images):
    return BoxSVM(C=1.0, random_state=0, dtype="float64").fit(*images)


def test_learns_and_certifies(model, images):
    X, y = images
    assert model.status_ is Status.OPTIMAL
    assert model.n_features_in_ == 2
    assert model.coef_.cells.shape == (2,)
    assert (model.coef_.cells > 0).all()
    predicted = model.predict(X)
    assert predicted.shape == (20, 4)
    assert np.isclose(model.score(X, y), np.mean(iou(predicted, y)))
    assert model.score(*make_images(10, seed=1)) > 0.8


def test_predictions_are_the_best_boxes(model):
    X, _ = make_images(3, seed=2)
    for x, (boxes, scores), inside in zip(X, model.predict_topk(X, 4), model.predict_marginals(X), strict=True):
        cells = x @ model.coef_.cells + model.coef_.bias
        outputs = list(naive.boxes(*cells.shape))
        values = np.array([cells[t:b, left:r].sum() for t, left, b, r in outputs])
        assert np.allclose(scores, np.sort(values)[::-1][:4])
        assert np.allclose([cells[t:b, left:r].sum() for t, left, b, r in boxes], scores)
        p = np.exp(values - values.max())
        expected = np.zeros_like(cells)
        for (t, left, b, r), share in zip(outputs, p / p.sum(), strict=True):
            expected[t:b, left:r] += share
        assert np.allclose(inside, expected)


def test_decision_function_is_the_best_box_around_each_cell(model):
    X, _ = make_images(3, seed=3)
    for x, best, (_, top) in zip(X, model.decision_function(X), model.predict_topk(X, 1), strict=True):
        cells = x @ model.coef_.cells + model.coef_.bias
        expected = np.full(cells.shape, -np.inf)
        for t, left, b, r in naive.boxes(*cells.shape):
            expected[t:b, left:r] = np.maximum(expected[t:b, left:r], cells[t:b, left:r].sum())
        assert np.allclose(best, expected)
        assert np.isclose(best.max(), top[0])


@pytest.mark.parametrize("threshold", [0.0, 0.31])  # which no IoU of so small grids equals
def test_detections_are_those_among_all_boxes(model, threshold):
    X, _ = make_images(4, seed=5)
    for x, (found, scores) in zip(X, model.detect(X, 4, threshold, min_score=0.5), strict=True):
        cells = x @ model.coef_.cells + model.coef_.bias
        boxes = np.array(list(naive.boxes(*cells.shape)))
        values = np.array([cells[t:b, left:r].sum() for t, left, b, r in boxes])
        kept = non_max_suppression(boxes, values, threshold, min_score=0.5, max_boxes=4)
        assert np.array_equal(found, boxes[kept])
        assert np.allclose(scores, values[kept])
    few = model.detect([-np.ones((3, 3, 2))], min_score=-np.inf)[0]
    assert len(few[0]) == 9  # disjoint cells
    assert len(model.detect([-np.ones((3, 3, 2))])[0][0]) == 0


def test_several_objects_and_none():
    X, y = make_images(20)
    empty = [np.random.default_rng(k).normal(size=(6, 6, 2)) - 1 for k in range(10)]
    model = BoxSVM(C=1.0, random_state=0, dtype="float64").fit(X + empty, y + [None] * 10)
    assert model.coef_.box < 0
    assert model.score(empty, [None] * 10) > 0.8
    assert (model.predict(empty) == 0).all(axis=1).mean() == model.score(empty, [(0, 0, 0, 0)] * 10)
    assert model.score(X, y) > 0.8
    two = np.concatenate([X[0], np.full((X[0].shape[0], 1, 2), -3.0), X[0]], axis=1)
    (boxes, scores), (none, _) = model.detect([two, np.full((5, 5, 2), -2.0)])
    assert none.shape == (0, 4)
    shift = np.array([0, 1, 0, 1]) * (X[0].shape[1] + 1)
    truths = np.array([y[0], y[0] + shift])
    assert average_precision([truths], [boxes], [scores]) == 1


def test_held_out_images_stop_a_fit(images, interpreted_loops):
    X_dev, y_dev = make_images(6, seed=7)
    y_dev[0] = None  # an image without an object counts as 0, as this model always finds one
    model = BoxSVM(random_state=0, patience=2, tol=1e-9).fit(*images, X_dev=X_dev, y_dev=y_dev)
    assert model.status_ is Status.EARLY_STOPPED
    assert model.score(X_dev, y_dev) <= 5 / 6


def test_more_boxes_than_there_are(model):
    boxes, scores = model.predict_topk([np.zeros((2, 2, 2))], 50)[0]
    assert boxes.shape == (9, 4)
    assert len(np.unique(boxes, axis=0)) == len(scores) == 9


def test_the_objective_is_the_documented_one():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 3, 2)) for _ in range(4)]
    y = [(0, 0, 2, 2), (1, 1, 3, 3), (0, 1, 1, 3), (0, 0, 3, 3)]
    fitted = BoxSVM(C=0.7, random_state=0, dtype="float64").fit(X, y)
    blocks = naive.box_table([np.dstack([x, np.ones((3, 3))]) for x in X], y)
    w = np.append(fitted.coef_.cells, fitted.coef_.bias)
    assert np.isclose(naive.primal(w, blocks, 0.7), fitted.trace_.primal[-1])
    assert fitted.trace_.dual[-1] <= naive.solve(blocks, 0.7)[1] <= fitted.trace_.primal[-1]


def test_visual_words_are_indicators(images):
    X, y = images
    words = words_of(X)
    by_word = BoxSVM(random_state=0, dtype="float64", fit_intercept=False, tol=1e-6).fit(words, y)
    by_indicator = BoxSVM(random_state=0, dtype="float64", fit_intercept=False, tol=1e-6).fit(
        [np.eye(4)[x] for x in words], y
    )
    assert np.allclose(by_word.coef_.cells, by_indicator.coef_.cells, atol=1e-3)
    assert np.isclose(by_word.trace_.primal[-1], by_indicator.trace_.primal[-1], rtol=1e-5)
    unknown = [np.full((3, 3), -1)]  # no cell has a word: all boxes score 0
    assert by_word.predict_topk(unknown, 2)[0][1].tolist() == [0, 0]


def test_min_size(model, images):
    X, y = images
    tall = BoxSVM(random_state=0, dtype="float64", min_size=(2, 1), fit_intercept=False).fit(X, y)
    boxes, _ = tall.predict_topk([-np.ones((3, 2, 2)) * np.sign(tall.coef_.cells)], 100)[0]
    assert len(boxes) == 3 * 3
    assert (boxes[:, 2] - boxes[:, 0] >= 2).all()


def test_warm_starts_go_on(images):
    X, y = (part[:5] for part in images)
    model = BoxSVM(random_state=0, dtype="float64", warm_start=True, tol=0.01).fit(X, y)
    assert model.fit(X, y).trace_.passes[-1] <= 1
    other = [(0, 0, 2, 2), *y[1:]]
    assert model.fit(X, other).trace_.passes[-1] > 1  # mean costs are those of the old boxes


def test_paths_and_threads(images):
    X, y = images
    path = regularization_path(BoxSVM(dtype="float64"), X, y, method="grid", lambdas=[1.0, 0.1], X_dev=X, y_dev=y)
    assert len(path.scores) == 2
    threads = BoxSVM(random_state=0, dtype="float64", n_jobs=2, solver=BCFW(steps="pairwise")).fit(X, y)
    assert threads.status_ is Status.OPTIMAL


CELLS = np.zeros((3, 4, 2))


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ([], [], "X must hold at least one image"),
        (7, [], "X must be a list of images, not an int"),
        ([CELLS, np.zeros((0, 4, 2))], [(0, 0, 1, 1)] * 2, r"X\[1\] is empty: every image needs at least one row"),
        ([CELLS, np.zeros((3, 4, 3))], [(0, 0, 1, 1)] * 2, r"X\[1\] has 3 features, but X\[0\] has 2"),
        ([CELLS, np.full((3, 4, 2), np.nan)], [(0, 0, 1, 1)] * 2, r"X\[1\] contains NaN or infinity"),
        ([CELLS, np.zeros((3, 4), int)], [(0, 0, 1, 1)] * 2, r"X\[1\] is a word map, but X\[0\] is a feature array"),
        ([np.zeros((3, 4))], [(0, 0, 1, 1)], r"X\[0\] has 2 dimensions, so it must hold visual words"),
        ([np.zeros(3)], [(0, 0, 1, 1)], r"X\[0\] must be an \(H, W, F\) array of numbers"),
        ([np.array([["a"]])], [(0, 0, 1, 1)], r"X\[0\] must be an \(H, W, F\) array of numbers"),
        ([np.full((2, 2), -3)], [(0, 0, 1, 1)], r"X\[0\] contains the word -3"),
        ([np.full((2, 2), -1)], [(0, 0, 1, 1)], "at least one word"),
        ([CELLS], 3, "y must be a list with one box"),
        ([CELLS, CELLS], [(0, 0, 1, 1)], "X has 2 images, but y has 1"),
        ([CELLS], [(0, 0, 1)], r"y\[0\] must be a box of four integers"),
        ([CELLS], [(0, 0, 1.5, 1)], r"y\[0\] must be a box of four integers"),
        ([CELLS, CELLS], [(0, 0, 1, 1), (2, 1, 2, 3)], r"y\[1\] = \(2, 1, 2, 3\) has no area"),
        ([CELLS, CELLS], [(0, 0, 1, 1), (0, 0, 4, 4)], r"y\[1\] = \(0, 0, 4, 4\) is not inside X\[1\], .* 3 x 4 cells"),
        ([CELLS], [(-1, 0, 3, 4)], r"y\[0\] = \(-1, 0, 3, 4\) is not inside"),
    ],
)
def test_bad_input(X, y, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        BoxSVM().fit(X, y)


def test_bad_parameters_and_new_images(model, images):
    X, y = images
    for min_size in (0, (1, 2, 3), "large", (1.5, 1)):
        with pytest.raises(ValueError, match="min_size must be a positive integer or a pair"):
            BoxSVM(min_size=min_size).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\] has 3 x 4 cells, too few for a box of min_size 4 x 4"):
        BoxSVM(min_size=4).fit([CELLS], [(0, 0, 3, 4)])
    with pytest.raises(ValueError, match=r"y\[0\] = \(0, 0, 1, 1\) is smaller than min_size, 2 x 2"):
        BoxSVM(min_size=2).fit([CELLS], [(0, 0, 1, 1)])
    for bad in ({"max_boxes": 0}, {"threshold": 2}, {"min_score": np.nan}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
            model.detect(X, **bad)
    with pytest.raises(ValueError, match="X has 3 features, but the model was fitted with 2"):
        model.predict([np.zeros((2, 2, 3))])
    with pytest.raises(ValueError, match=r"X\[0\] is a word map, but the model was fitted on a feature array"):
        model.predict([np.zeros((2, 2), int)])
