import numpy as np
import pytest

from maxmargin import SegmentCRF, Tagger, load
from maxmargin.data.sharding import Shards
from maxmargin.text import FeatureSources, SegmentFeatures, WindowFeatures

pytestmark = pytest.mark.usefixtures("interpreted_loops")

X = [["Ann", "Lee", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
Y = [["B-PER", "I-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]]
SEGMENTS = [
    [(0, 2, "PER"), (2, 3, "O"), (3, 4, "O"), (4, 5, "LOC")],
    [(0, 1, "PER"), (1, 2, "O")],
    [(0, 1, "LOC"), (1, 2, "O")],
]


def names_of(rows, i, begin, end):
    return {(b, e): names for b, e, names in rows.segment_features()[i]}[begin, end]


def test_names_of_segments():
    features = SegmentFeatures(window=0, gazetteers={"city": ["new york", "Rome"], "state": ["New York"]})
    rows = features.transform([["in", "New", "York", "now"], [], ["Rome"]])
    assert names_of(rows, 0, 1, 3) == [
        *("in=Aa Aa", "ends=Aa Aa 2", "around=a a 2", "words=new york", "city=whole", "state=whole"),
    ]
    assert names_of(rows, 0, 0, 4) == ["in=a Aa Aa a", "ends=a a 4", "around=BOS EOS 4"]
    assert [span[:2] for span in rows.segment_features()[2]] == [(0, 1)]
    assert rows.segment_features()[1] == []
    assert rows[2:].segment_features() == rows.segment_features()[2:]
    windows = WindowFeatures(window=0, gazetteers=features.gazetteers)
    assert [*rows] == [*windows.transform([["in", "New", "York", "now"], [], ["Rome"]])]


def test_columns_of_tags_take_the_place_of_shapes():
    rows = SegmentFeatures().transform([[("a", "DT", "x"), ("dog", "NN", "y"), ("barks", "VB", "z")]])
    assert names_of(rows, 0, 0, 2) == [
        *("in=DT NN", "ends=DT NN 2", "around=BOS VB 2", "2 in=x y", "2 ends=x y 2", "2 around=BOS z 2"),
        "words=a dog",
    ]


def test_they_stand_beside_other_sources():
    segments, words = SegmentFeatures(window=0), WindowFeatures()
    rows = FeatureSources(sources=[words, segments]).fit_transform(X, Y)
    assert rows.segment_features() == segments.fit_transform(X, Y).segment_features()
    assert FeatureSources(sources=[words]).transform(X).segment_features() is None
    with pytest.raises(ValueError, match="sources must have features of segments in one place, not in 2"):
        FeatureSources(sources=[segments, segments]).transform(X).segment_features()


def test_segments_are_no_longer_than_the_longest():
    spans = [s[:2] for s in SegmentFeatures(longest_segment=2).transform([list("abc")]).segment_features()[0]]
    assert spans == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("y", [Y, [[s for s in row if s[2] != "O"] for row in SEGMENTS]])
def test_only_names_of_enough_segments_in_y_are_features(y):
    features = SegmentFeatures().fit(X, y)
    assert features.segment_names_ == {"in=Aa", "ends=Aa Aa 1", "around=BOS a 1", "words=rome"}
    assert names_of(features.transform(X), 0, 4, 5) == ["in=Aa", "ends=Aa Aa 1", "words=rome"]
    assert all(e - b == 1 for b, e, _ in features.transform(X).segment_features()[0])
    assert "words=ann lee" in SegmentFeatures(min_segments=1).fit(X, y).segment_names_
    assert SegmentFeatures().fit(X).segment_names_ is None


def test_lists_made_of_y_are_cross_fit():
    sentences = [[f"Name{i}", "left"] for i in range(30)]
    tags = [["B-PER", "O"]] * 30
    features = SegmentFeatures(gazetteers={"person": [sentence[0] for sentence in sentences]})
    rows = features.fit_transform(iter(sentences), tags)
    assert features.cross_fit_ == ["person"]
    assert not any("person=whole" in names for row in rows.segment_features() for _, _, names in row)
    assert "person=whole" in names_of(features.transform(sentences[:1]), 0, 0, 1)


def test_a_tagger_has_them_in_predictions_and_in_its_file(tmp_path):
    model = SegmentCRF(C=10.0, tol=0.05)
    tagger = Tagger(features=SegmentFeatures(window=0, min_segments=1), model=model).fit(X, Y)
    assert {*tagger.model_.segment_feature_names_in_} == tagger.features_.segment_names_
    assert tagger.predict(X) == Y
    tagger.save(tmp_path / "tagger")
    again = load(tmp_path / "tagger")
    new = [["Eve", "Lee", "fell"]]
    np.testing.assert_array_equal(again.predict_marginals(new)[0], tagger.predict_marginals(new)[0])
    weights = tagger.model_.coef_.segments
    before = again.predict_marginals(new)[0]
    weights[:] = 0
    assert not np.allclose(tagger.predict_marginals(new)[0], before, atol=1e-3)


def test_models_take_them_without_a_tagger():
    features = SegmentFeatures(window=0)
    model = SegmentCRF(C=10.0, tol=0.05).fit(features.fit_transform(X, SEGMENTS), SEGMENTS)
    assert model.predict(features.transform(X)) == SEGMENTS


@pytest.mark.parametrize("name", ["longest_segment", "min_segments"])
def test_bad_arguments(name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        SegmentFeatures(**{name: 0}).fit(X, Y)


def test_names_are_not_learned_from_shards():
    with pytest.raises(ValueError, match="features must be WindowFeatures or TemplateFeatures with shards"):
        Tagger(features=SegmentFeatures(), model=SegmentCRF()).fit(Shards.cut(X, Y, n_shards=1))
