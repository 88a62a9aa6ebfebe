import numpy as np
import pytest

from maxmargin.metrics import iou
from maxmargin.vision import BoxRegressor

TRUE = np.array([20, 30, 60, 80])


def around(seed, n=80, spread=8):
    return TRUE + np.random.default_rng(seed).integers(-spread, spread + 1, (n, 4))


def told(boxes):
    """Features that tell the way to the true box, and noise."""
    return np.concatenate([(TRUE - boxes) / 40, np.random.default_rng(0).normal(size=boxes.shape)], axis=1)


def test_changes_are_those_of_ridge_regression():
    boxes = around(0)
    model = BoxRegressor(alpha=3.0, min_iou=0.6).fit([told(boxes).reshape(-1, 2, 4)], [boxes], [TRUE])
    near = iou(boxes, TRUE) >= 0.6
    X, sides = told(boxes)[near], boxes[near, 2:] - boxes[near, :2]
    shifts = ((TRUE[:2] + TRUE[2:]) / 2 - (boxes[near, :2] + boxes[near, 2:]) / 2) / sides
    Y = np.concatenate([shifts, np.log((TRUE[2:] - TRUE[:2]) / sides)], axis=1)
    X, Y = X - (centre := X.mean(axis=0)), Y - (mean := Y.mean(axis=0))
    expected = np.linalg.solve(X.T @ X + 3.0 * np.eye(8), X.T @ Y).T
    np.testing.assert_allclose(model.coef_, expected, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, mean - expected @ centre, atol=1e-9)


def test_boxes_come_nearer():
    model = BoxRegressor(alpha=0.1).fit([told(around(0)), told(around(1))], [around(0), around(1)], [TRUE, TRUE])
    (moved,) = model.predict([told(around(2))], [around(2)])
    assert iou(moved, TRUE).mean() > 0.95 > iou(around(2), TRUE).mean()
    (inside,) = model.predict([told(around(2))], [around(2)], [(50, 70, 3)])
    assert (inside[:, :2] >= 0).all()
    assert (inside[:, 2:] <= [50, 70]).all()
    assert (inside[:, 2:] > inside[:, :2]).all()


def test_several_objects_and_none():
    other = TRUE + 100
    boxes = np.concatenate([around(0), around(1) + 100])
    features = np.concatenate([told(around(0)), told(around(1))])
    both = BoxRegressor().fit([features, np.zeros((0, 8))], [boxes, np.zeros((0, 4))], [np.stack([TRUE, other]), []])
    apart = BoxRegressor().fit([told(around(0)), told(around(1))], [around(0), around(1)], [TRUE, TRUE])
    np.testing.assert_allclose(both.coef_, apart.coef_, atol=1e-9)
    assert both.predict([np.zeros((0, 8))], [np.zeros((0, 4))])[0].shape == (0, 4)


def test_bad_input():
    boxes = around(0)
    model = BoxRegressor().fit([told(boxes)], [boxes], [TRUE])
    for call, message in (
        (lambda: BoxRegressor(alpha=0).fit([told(boxes)], [boxes], [TRUE]), "alpha must be a positive number"),
        (lambda: BoxRegressor().fit([told(boxes)], [boxes], []), "of as many images, but are 1, 1 and 0"),
        (
            lambda: BoxRegressor().fit([told(boxes)[:3]], [boxes], [TRUE]),
            r"features\[0\] and boxes\[0\] must be as many",
        ),
        (
            lambda: BoxRegressor().fit([told(boxes)], [boxes + 500], [TRUE]),
            "boxes must hold some that overlap true ones",
        ),
        (lambda: model.predict([told(boxes)[:, :3]], [boxes]), r"features\[0\] are 3 of each box, but 8 in fit"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
