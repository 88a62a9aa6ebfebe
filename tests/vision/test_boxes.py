import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import CandidateSVM
from maxmargin.metrics import iou
from maxmargin.vision import nearest_candidates, non_max_suppression, sliding_boxes, to_cells, to_pixels


@given(st.integers(0, 1000), st.integers(1, 30))
def test_detections_are_far_apart_and_hide_the_others(seed, n):
    rng = np.random.default_rng(seed)
    corners, scores = rng.integers(0, 6, (n, 2)), rng.integers(0, 4, n).astype(float)
    boxes = np.concatenate([corners, corners + rng.integers(1, 5, (n, 2))], axis=1)
    kept = non_max_suppression(boxes, scores, 0.3, min_score=1.0)
    assert (np.diff(scores[kept]) <= 0).all()
    overlaps = iou(boxes[kept][:, None], boxes[kept]) if len(kept) else np.zeros((0, 0))
    assert (overlaps - np.eye(len(kept)) <= 0.3).all()
    for k in set(range(n)) - set(kept.tolist()):
        better = kept[scores[kept] >= scores[k]]
        assert scores[k] < 1.0 or (iou(boxes[better], boxes[k]) > 0.3).any()


def test_none_and_few():
    boxes = [[0, 0, 1, 1], [5, 5, 6, 6], [8, 8, 9, 9]]
    assert non_max_suppression(boxes, [1, 2, 3], min_score=4).tolist() == []
    assert non_max_suppression(boxes, [1, 2, 3], max_boxes=2).tolist() == [2, 1]
    assert non_max_suppression(np.zeros((0, 4)), []).tolist() == []


def test_cells_and_back():
    boxes = sliding_boxes((4, 5), [(1, 1), (2, 3), (4, 5)])
    assert (to_cells(to_pixels(boxes, 16), 16, (4, 5)) == boxes).all()
    assert to_cells((1, 2, 3, 4), 16, (4, 5, 7)).tolist() == [0, 0, 1, 1]
    assert to_cells([[70, 90, 99, 99]], 16, (4, 5)).tolist() == [[3, 4, 4, 5]]
    assert to_pixels([[3, 4, 4, 5]], 16, (60, 75)).tolist() == [[48, 64, 60, 75]]


def test_the_nearest_proposal_stands_for_the_truth_in_training():
    rng = np.random.default_rng(0)
    boxes = sliding_boxes((6, 6), [(2, 2), (3, 3)])
    lists = [
        nearest_candidates(rng.normal(size=(len(boxes), 2, 2)), boxes, boxes[k] + [0, 0, 0, 1]) for k in (3, 8, 20)
    ]
    assert [some.best for some in lists] == [3, 8, 20]
    for some in lists:
        assert some.costs[some.best] == 0
        assert np.allclose(some.costs, 1 - iou(boxes, boxes[some.best]))
    model = CandidateSVM(C=10.0, random_state=0).fit(
        [some.features for some in lists], [some.best for some in lists], costs=[some.costs for some in lists]
    )
    scores = model.decision_function([lists[0].features])[0]
    assert non_max_suppression(boxes, scores, max_boxes=1)[0] == model.predict([lists[0].features])[0]


def test_no_object_is_a_candidate():
    boxes = sliding_boxes((4, 4), [(2, 2)], step=2)
    features = np.array([[0.0, 1.0], [3.0, 1.0], [0.0, 1.0], [1.0, 1.0]])  # the last one is a constant
    some = nearest_candidates(features, boxes, boxes[1], with_none=True)
    none = nearest_candidates(features[[0, 0, 2, 3]], boxes, None, with_none=True)
    assert some.costs.tolist() == [1, 0, 1, 1, 1]
    assert none.costs.tolist() == [1, 1, 1, 1, 0]
    assert (some.best, none.best) == (1, 4)
    assert not none.features[4].any()
    assert none.boxes.shape == (5, 4)
    lists = [some, none]
    model = CandidateSVM(C=100.0, random_state=0).fit(
        [one.features for one in lists], [one.best for one in lists], costs=[one.costs for one in lists]
    )
    assert model.predict([one.features for one in lists]).tolist() == [1, 4]


def test_bad_input():
    for call, message in (
        (lambda: non_max_suppression([[0, 0, 1, 1]], [1, 2]), "scores must be 1, one per box"),
        (lambda: non_max_suppression([[0, 0, 1, 1]], [np.nan]), r"scores\[0\] is NaN"),
        (lambda: non_max_suppression([[0, 0, 1]], [1]), "four numbers each"),
        (lambda: non_max_suppression([[0, 0, 1, 1]], [1], threshold=2), "threshold must be a number from 0 to 1"),
        (lambda: nearest_candidates(np.zeros((1, 2)), [[0, 0, 1, 1]], None), "with_none=True is for images without"),
        (lambda: non_max_suppression([[0, 0, 1, 1]], [1], min_score=np.nan), "min_score must be a number"),
        (lambda: to_cells([[0, 0, 1, 1]], 0, (2, 2)), "cell must be an integer"),
        (lambda: nearest_candidates(np.zeros((0, 2)), np.zeros((0, 4)), (0, 0, 1, 1)), "at least one"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
