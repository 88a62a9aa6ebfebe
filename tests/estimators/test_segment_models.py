import numpy as np
import pytest

from maxmargin import ChainCRF, SegmentCRF, SegmentSVM, load
from tests.naive import segmentations

pytestmark = pytest.mark.usefixtures("interpreted_loops")

ROWS = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 0]], np.eye(3)[[0, 1]]]
SEGMENTS = [[(0, 2, "a"), (2, 3, "b")], [(0, 1, "b"), (1, 2, "a")], [(0, 2, "a")]]
TAGS = [["B-a", "I-a", "B-b"], ["B-b", "O"], ["B-a", "I-a"]]


def fit_crf(**options):
    return SegmentCRF(C=10.0, **options).fit(ROWS, SEGMENTS)


def test_segments_of_one_row_are_a_chain():
    labels = [["a", "b", "b"], ["b", "a"], ["a", "a"]]
    single = [[(t, t + 1, label) for t, label in enumerate(row)] for row in labels]
    chain = ChainCRF().fit(ROWS, labels)
    model = SegmentCRF(max_passes=1).fit(ROWS, single)
    model._w[:] = 0
    model.coef_.begin[:], model.coef_.transitions[:] = chain.coef_.emissions, chain.coef_.transitions
    model.coef_.intercepts[:, 0] = chain.coef_.bias, chain.coef_.first, chain.coef_.last
    np.testing.assert_allclose(model.log_likelihood(ROWS, single), chain.log_likelihood(ROWS, labels))
    both = model.predict_marginals(ROWS), chain.predict_marginals(ROWS)
    for found, expected in zip(*both, strict=True):
        np.testing.assert_allclose(found[:, 0], expected)
        np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-12)
    for found, expected in zip(model.decision_function(ROWS), chain.decision_function(ROWS), strict=True):
        np.testing.assert_allclose(found[:, 0], expected)


def test_predictions_have_the_form_of_y():
    assert fit_crf().predict(ROWS) == SEGMENTS
    tagged = SegmentSVM(C=10.0, random_state=0).fit(ROWS, TAGS)
    assert tagged.scheme_ == "IOB2"
    assert [row.tolist() for row in tagged.predict(ROWS)] == TAGS
    best, scores = tagged.predict_topk(ROWS[:1], 2)[0]
    assert best.shape == (2, 3)
    assert scores[0] > scores[1]
    assert tagged.classes_.tolist() == ["O", "a", "b"]
    assert tagged.predict([np.zeros((0, 3))])[0].shape == (0,)
    assert tagged.predict_marginals([np.zeros((0, 3))])[0].shape == (0, 2, 3)


@pytest.mark.parametrize("cls", [SegmentSVM, SegmentCRF])
def test_transitions_that_are_not_allowed(cls):
    """The best outputs are all that use others: segments of a have two rows at most, those of b one."""
    model = cls(allowed_transitions={("a", "a"), ("a", "b"), ("b", "a")}, random_state=0).fit(ROWS, SEGMENTS)
    x, allowed = np.eye(3)[[2, 2, 2]], np.array([[True, True], [True, False]])
    outputs, scores = model.predict_topk([x], 100)[0]
    assert len(outputs) == len(scores) == len([*segmentations(3, [2, 1], allowed)])
    assert not any("bb" in "".join(label for _, _, label in segments) for segments in outputs)
    assert model.predict([x]) == outputs[:1]
    if cls is SegmentCRF:
        known = [np.exp(model.log_likelihood([x], [segments]))[0] for segments in outputs]
        assert np.isclose(sum(known), 1)
        for segment in ((0, 1, "b"), (1, 2, "b")):
            expected = sum(p for p, segments in zip(known, outputs, strict=True) if segment in segments)
            assert np.isclose(model.segment_probabilities([x], [[segment]])[0][0], expected)


def test_other_schemes_come_back():
    tags = [["B-a", "E-a", "S-b"], ["S-b", "O"], ["B-a", "E-a"]]
    model = SegmentCRF(C=10.0).fit(ROWS, tags)
    assert model.scheme_ == "IOBES"
    assert [row.tolist() for row in model.predict(ROWS)] == tags


def test_probabilities_of_segments_add_up():
    model = fit_crf()
    every = [(s, e, label) for e in range(1, 4) for s in range(e) for label in ("a", "b")]
    found = dict(zip(every, model.segment_probabilities(ROWS[:1], [every])[0], strict=True))
    table = model.predict_marginals(ROWS[:1])[0]
    for t in range(3):
        for k, label in enumerate("ab"):
            begins = sum(p for (s, _, name), p in found.items() if s == t and name == label)
            goes_on = sum(p for (s, e, name), p in found.items() if s < t < e and name == label)
            np.testing.assert_allclose(table[t, :, k], [begins, goes_on], atol=1e-12)
    assert found[1, 3, "b"] == 0  # longer than any such segment in y


def test_posterior_decoding_has_the_most_right_rows_of_outputs_that_agree():
    model = SegmentCRF(C=0.1).fit([*ROWS, ROWS[1]], [*SEGMENTS, [(0, 2, "a")]])
    allowed = [None, None, [(0, 1, None), (1, 2, None)]]
    for table, found, known in zip(
        model.predict_marginals(ROWS, allowed=allowed),
        model.predict_posterior(ROWS, allowed=allowed),
        allowed,
        strict=True,
    ):
        every = [*segmentations(len(table), [1, 1] if known else [2, 1])]
        best = max(table.reshape(len(table), -1)[np.arange(len(table)), states].sum() for states in every)
        starts = {start: "ab".index(label) for start, _, label in found}
        states, label = [], 0
        for t in range(len(table)):
            label = starts.get(t, label)
            states.append(label if t in starts else 2 + label)
        assert table.reshape(len(table), -1)[np.arange(len(table)), states].sum() == pytest.approx(best)
    tagged = SegmentSVM(C=10.0, random_state=0).fit(ROWS, TAGS)
    assert [row.tolist() for row in tagged.predict_posterior([*ROWS, ROWS[0][:0]])] == [*TAGS, []]


def test_features_of_segments_decide():
    """Whether rows are a segment is known by features of the whole alone."""
    X = [np.ones((2, 1))] * 6
    y = [[(0, 2, "a")], [(0, 1, "a"), (1, 2, "a")]] * 3
    named = [[(0, 2, ["together"])], []] * 3
    arrays = [[(0, 2, np.array([1.0]))], []] * 3
    for given in (named, arrays):
        model = SegmentCRF(C=100.0).fit(X, y, segment_features=given)
        assert model.predict(X, segment_features=given) == y
        assert model.score(X, y, segment_features=given) == 1.0
        assert model.predict(X, segment_features=[[]] * 6) != y
        with pytest.raises(ValueError, match="segment_features are missing, but the model was fitted with 1 feature"):
            model.predict(X)
        sure = model.segment_probabilities(X, [[(0, 2, "a")]] * 6, segment_features=given)
        assert sure[0][0] > 0.9 > 0.1 > sure[1][0]
    assert SegmentCRF().fit(X, y, segment_features=named).segment_feature_names_in_.tolist() == ["together"]


def test_known_in_part():
    """Labels that agree with what is known, in training and in predictions, by segments and by tags."""
    partly = [[(0, 2, "a"), (2, 3)], [(0, 1, {"a", "b"}), (1, 2, None)], None, [(0, 1, "b"), (1, 2, "a")]]
    rows = [*ROWS, ROWS[1]]
    model = SegmentCRF(C=10.0).fit(rows, partly)
    assert model.predict(rows)[0][0] == (0, 2, "a")
    assert model.log_likelihood(rows, partly)[2] == 0
    assert model.predict(ROWS[:1], allowed=[[(1, 3, "a")]])[0][-1] == (1, 3, "a")
    tagged = SegmentSVM(C=10.0, random_state=0).fit(ROWS, [["B-a", "I-a", None], [{"B-b", "O"}, "O"], None])
    assert tagged.predict(ROWS)[0][:2].tolist() == ["B-a", "I-a"]
    assert tagged.predict(ROWS[:1], allowed=[[None, "B-a", None]])[0][1] == "B-a"


@pytest.mark.parametrize("only_observed", [False, True])
def test_saved_and_gone_on_with(tmp_path, only_observed):
    items = [[["Ann"], ["Lee"], ["sang"]], [["Bob"], ["ran"]]]
    tags = [["B-PER", "I-PER", "O"], ["B-PER", "O"]]
    model = SegmentCRF(C=10.0, only_observed=only_observed).fit(items, tags)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.log_likelihood(items, tags), model.log_likelihood(items, tags))
    other = [[["big"], ["red"], ["bus"], ["sang"]]]
    again.partial_fit(other, [["B-BUS", "I-BUS", "I-BUS", "O"]])
    assert again.classes_.tolist() == ["BUS", "O", "PER"]
    assert again.predict(other)[0].tolist() == ["B-BUS", "I-BUS", "I-BUS", "O"]
    assert again.predict(items)[0].tolist() == tags[0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(0, 2, "a"), (1, 3, "b")]], r"y\[0\] has the segment \(0, 2, 'a'\) and the segment \(1, 3, 'b'\).* overlap"),
        ([[(0, 1, "a"), (2, 3, "b")]], r"y\[0\] leaves a gap from row 1 to 2"),
        ([[(0, 2, "a")]], r"y\[0\] leaves a gap from row 2 to 3"),
        ([[(0, 4, "a")]], r"y\[0\] has the segment .* but segments are within 0 to 3"),
        ([[(0, 0, "a"), (0, 3, "a")]], r"y\[0\] has the segment \(0, 0, 'a'\)"),
        ([[(0, "3", "a")]], "start and end must be integers"),
        ([["a", "b", "c"]], r"y\[0\] has 'a' at position 0, but tags are O"),
        ([["B-a", "I-a"]], r"y\[0\] has 2 tags, but X\[0\] has 3 rows"),
        ([[3]], r"y\[0\] must be a list of segments"),
        ([[(0, 3)]], "nothing of it is known"),
        ([[(0, 1, "a"), (1, 3, 2)]], "all integers, or all strings"),
        ([], "X has 1 sequences, but y has 0"),
    ],
)
def test_bad_segments(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SegmentCRF().fit(ROWS[:1], y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 1}, r"y\[0\] has the segment \(0, 2, 'a'\) of 2 rows, but max_length allows 1"),
        ({"max_length": {"a": 1}}, "max_length allows 1"),
        ({"max_length": 0}, "max_length must be a positive integer"),
        ({"max_length": {"c": 2}}, "max_length names 'c', which is not a label"),
        ({"allowed_transitions": {("a", "a")}}, r"y\[0\] goes from 'a' to 'b'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        SegmentSVM(**options).fit(ROWS, SEGMENTS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[(0, 5, [1.0])], [], []], r"segment_features\[0\] has a segment from 0 to 5, but the sequence has 3 rows"),
        ([[(0, 1, [1.0]), (0, 1, [2.0])], [], []], r"segment_features\[0\] has the segment \(0, 1\) twice"),
        ([[(0, 1)], [], []], r"must be a list of \(start, end, features\)"),
        ([[(0, 1.5, [1.0])], [], []], "must be integers"),
        ([[]], "X has 3 sequences, but segment_features has 1"),
        ([[(0, 1, [np.nan])], [], []], "In segment_features: X"),
    ],
)
def test_bad_features_of_segments(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SegmentCRF().fit(ROWS, SEGMENTS, segment_features=given)


def test_bad_predictions():
    model = fit_crf()
    with pytest.raises(ValueError, match="fitted without"):
        model.predict(ROWS[:1], segment_features=[[(0, 1, [1.0])]])
    with pytest.raises(ValueError, match=r"y\[0\] has a segment of 3 rows at row 0, but max_length allows 2"):
        model.log_likelihood(ROWS[:1], [[(0, 3, "a")]])
    with pytest.raises(ValueError, match="not seen in fit"):
        model.log_likelihood(ROWS[:1], [[(0, 2, "a"), (2, 3, "c")]])
    with pytest.raises(ValueError, match=r"allowed\[0\] has the segment \(0, 2, 'a'\) and .* overlap"):
        model.predict(ROWS[:1], allowed=[[(0, 2, "a"), (1, 3, "b")]])
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no output"):
        model.predict(ROWS[:1], allowed=[[(0, 2, "b")]])


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([[(0, 1, "c")]], r"segments\[0\] names 'c', which is not a label"),
        ([[(0, 1, ["a"])]], r"segments\[0\] names \['a'\], which is not a label"),
        ([[(0, 5, "a")]], r"segments\[0\] has a segment from 0 to 5, but the sequence has 3 rows"),
        ([[(2, 1, "a")]], r"segments\[0\] has a segment from 2 to 1"),
        ([[(-1, 1, "a")]], r"segments\[0\] has a segment from -1 to 1"),
        ([[("x", 1, "a")]], r"segments\[0\] has a segment from 'x' to 1, which must be integers"),
        ([[(0, "a")]], r"segments\[0\] must be a list of \(start, end, label\), but holds \(0, 'a'\)"),
        ([[], []], "X has 1 sequences, but segments has 2"),
    ],
)
def test_bad_segments_to_ask_for(segments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit_crf().segment_probabilities(ROWS[:1], segments)


def test_segments_longer_than_the_limit_have_no_probability():
    assert fit_crf().segment_probabilities(ROWS[:1], [[(0, 3, "a")]])[0].tolist() == [0.0]


def test_only_tags_that_say_less_are_weak(interpreted_loops):
    X, y = [np.eye(2), np.eye(2), np.eye(2)], [["B-a", "I-a"], ["B-a", None], [{"B-a", "O"}, "O"]]
    model = SegmentCRF(weak_weight=0.0, tol=1e-6)
    assert model._learn(X, y).weak.is_weak.tolist() == [False, True, True]
    assert model.fit(X, y)._w.any()  # by the first one
    with pytest.raises(ValueError, match=r"y\[1\] must tell all segments and their labels"):
        model.score(X, y)
