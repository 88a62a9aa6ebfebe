import sys

import numpy as np
import pytest

from maxmargin.metrics import iou
from maxmargin.vision import box_candidates, box_features, selective_search, sliding_boxes


def test_sliding_boxes_are_all_inside():
    boxes = sliding_boxes((5, 7), [(2, 3), (5, 7), (6, 1)])
    assert len(np.unique(boxes, axis=0)) == len(boxes) == 4 * 5 + 1
    assert (boxes >= 0).all()
    assert (boxes[:, 2:] <= [5, 7]).all()
    assert sliding_boxes((2, 2), [(3, 3)]).shape == (0, 4)


def test_features_are_sums_or_means():
    rng = np.random.default_rng(0)
    cells, boxes = rng.normal(size=(4, 5, 3)), sliding_boxes((4, 5), [(1, 1), (2, 3), (4, 5)])
    slices = [cells[top:bottom, left:right] for top, left, bottom, right in boxes]
    assert np.allclose(box_features(cells, boxes), [piece.sum(axis=(0, 1)) for piece in slices])
    assert np.allclose(box_features(cells, boxes, mean=True), [piece.mean(axis=(0, 1)) for piece in slices])


def test_the_true_box_is_the_best_candidate():
    cells, boxes = np.ones((4, 5, 1)), sliding_boxes((4, 5), [(2, 2), (3, 3)])
    candidates = box_candidates(cells, boxes, boxes[3])
    assert len(candidates.costs) == len(boxes)  # the true box is not there twice
    assert candidates.costs[candidates.best] == 0
    assert (np.delete(candidates.costs, candidates.best) > 0).all()
    assert np.allclose(candidates.costs, 1 - iou(candidates.boxes, boxes[3]))


def test_selective_search_finds_a_square():
    pytest.importorskip("cv2.ximgproc", reason="OpenCV with contributed modules is not installed")
    image = np.full((80, 100, 3), 40, np.uint8)
    image[20:50, 30:70] = [200, 60, 60]
    boxes = selective_search(image, max_boxes=50)
    assert len(np.unique(boxes, axis=0)) == len(boxes) <= 50
    assert iou(boxes, [20, 30, 50, 70]).max() > 0.9


def test_without_opencv(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=r"pip install maxmargin\[vision\]"):
        selective_search(np.zeros((4, 4, 3), np.uint8))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: sliding_boxes((3, 3), [(1, 1)], step=0), "step must be at least 1"),
        (lambda: sliding_boxes((3, 3), [(0, 1)]), "pairs of positive integers"),
        (lambda: selective_search(np.zeros((4, 4))), r"must be an \(H, W, 3\) array of bytes"),
        (lambda: box_features(np.zeros((3, 3)), [[0, 0, 1, 1]]), "must be an .* array, but it has 2 dimensions"),
        (lambda: box_features(np.zeros((3, 3, 1)), [[0, 0, 1.0, 1]]), "array of integers"),
        (
            lambda: box_features(np.zeros((3, 3, 1)), [[0, 0, 1, 1], [0, 0, 4, 1]]),
            r"boxes\[1\] .* is not inside the image",
        ),
        (lambda: box_features(np.zeros((3, 3, 1)), [[2, 0, 2, 1]]), r"boxes\[0\] = \(2, 0, 2, 1\) has no area"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
