import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.metrics import average_precision, corloc, iou, mean_iou
from tests import naive

boxes = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(6, 9), st.integers(6, 9)) | st.tuples(
    st.integers(0, 2), st.integers(0, 2), st.integers(3, 4), st.integers(3, 4)
)


@given(boxes, boxes)
def test_iou_counts_cells(a, b):
    assert np.isclose(iou(a, b), naive.box_iou(a, b))
    assert iou(a, b) == iou(b, a)
    assert iou(a, a) == 1


def test_iou_broadcasts():
    grid = iou(np.array([[[0, 0, 1, 1]], [[0, 0, 2, 2]]]), np.array([[0, 0, 1, 1], [1, 1, 2, 2], [5, 5, 6, 6]]))
    assert grid.tolist() == [[1, 0, 0], [0.25, 0.25, 0]]


def test_the_nearest_of_several_true_boxes_counts():
    true = [np.array([[0, 0, 4, 4], [6, 6, 8, 8]]), [0, 0, 2, 2]]
    predicted = [[6, 6, 8, 8], [0, 0, 2, 1]]
    assert mean_iou(true, predicted) == 0.75
    assert corloc(true, predicted) == 1
    assert corloc(true, predicted, threshold=0.6) == 0.5


def test_average_precision_by_hand():
    """Ranked right, wrong, right (a repeat of the first is wrong), with one true box of four never found."""
    true = [[[0, 0, 2, 2], [5, 5, 7, 7]], [[0, 0, 3, 3]], [], [[1, 1, 2, 2]]]
    predicted = [[[0, 0, 2, 2], [0, 0, 2, 2], [5, 5, 7, 7]], [], [[0, 0, 1, 1]], [[1, 1, 2, 2]]]
    scores = [[0.9, 0.8, 0.7], [], [0.1], [0.6]]
    # precisions at the hits: 1, 2/3, 3/4; interpolated: 1, 3/4, 3/4; each hit is worth a recall of 1/4
    assert np.isclose(average_precision(true, predicted, scores), (1 + 0.75 + 0.75) / 4)
    # recalls 0, .1, .2 -> 1; .3 to .7 -> 3/4; .8 and more -> 0
    assert np.isclose(average_precision(true, predicted, scores, interpolation="11-point"), (3 + 5 * 0.75) / 11)


def test_no_detections():
    for interpolation in ("all", "11-point"):
        assert average_precision([[[0, 0, 1, 1]]], [[]], [[]], interpolation=interpolation) == 0


@given(seed=st.integers(0, 1000))
def test_perfect_detections(seed):
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 50, (3, 4, 2))
    true = np.concatenate([corners, corners + rng.integers(1, 9, (3, 4, 2))], axis=2)
    true = [np.unique(boxes, axis=0) for boxes in true]
    scores = [rng.random(len(boxes)) for boxes in true]
    assert np.isclose(average_precision(true, true, scores, threshold=1.0), 1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: iou([0, 0, 1], [0, 0, 1, 1]), r"a must hold boxes .* its shape is \(3,\)"),
        (lambda: iou([0, 0, 1, 1], [0, 0, 0, 1]), "b must hold finite boxes of positive area"),
        (lambda: iou([0, 0, np.nan, 1], [0, 0, 1, 1]), "a must hold finite boxes"),
        (lambda: corloc([[0, 0, 1, 1]], []), "but hold 1 and 0"),
        (lambda: mean_iou([np.zeros((0, 4))], [[0, 0, 1, 1]]), r"true\[0\] holds no box"),
        (lambda: average_precision([[]], [[]], [[]]), "at least one box"),
        (
            lambda: average_precision([[[0, 0, 1, 1]]], [[[0, 0, 1, 1]]], [[]]),
            r"predicted\[0\] has 1 boxes, but scores",
        ),
        (lambda: average_precision([[[0, 0, 1, 1]]], [], []), "have 1, 0 and 0 images"),
        (lambda: average_precision([[]], [[]], [[]], interpolation="voc"), "'all' or '11-point'"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
