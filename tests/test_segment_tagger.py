"""Taggers whose model is one of segments."""

import numpy as np
import pytest

from maxmargin import SegmentCRF, SegmentSVM, Tagger, load
from maxmargin.text import WindowFeatures

pytestmark = pytest.mark.usefixtures("interpreted_loops")

WORDS = [["Ann", "Lee", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
TAGS = [["B-PER", "I-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]]


@pytest.fixture
def tagger(interpreted_loops):
    return Tagger(features=WindowFeatures(window=0), model=SegmentCRF(C=10.0, tol=0.05, only_observed=True)).fit(
        WORDS, TAGS
    )


def test_tags_entities_and_probabilities(tagger, tmp_path):
    assert tagger.predict(WORDS) == TAGS
    assert tagger.score(WORDS, TAGS) == 1.0
    assert tagger.classes_.tolist() == ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
    found = tagger.predict_entities(WORDS[:1])[0]
    assert [entity[:3] for entity in found] == [(0, 2, "PER"), (4, 5, "LOC")]
    assert tagger.entity_probabilities(WORDS[:1], [found]) == [[entity.probability for entity in found]]
    table = tagger.predict_marginals(WORDS[:1])[0]
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert [tagger.classes_[k] for k in table.argmax(axis=1)] == TAGS[0]
    best, scores = tagger.predict_topk(WORDS[:1], 2)[0]
    assert best[0] == TAGS[0]
    assert scores[0] > scores[1]
    assert tagger.predict(WORDS[:1], allowed=[[None, "O", None, None, None]])[0][1] == "O"
    assert tagger.predict_posterior(WORDS) == TAGS
    likelihoods = tagger.log_likelihood(WORDS, TAGS)
    np.testing.assert_allclose(np.exp(likelihoods / [5, 2, 2]), tagger.confidence(WORDS))
    assert tagger.log_likelihood(WORDS[:1], [[None, "I-PER", None, None, None]])[0] > likelihoods[0]
    assert ((tagger.confidence(WORDS) > 0) & (tagger.confidence(WORDS) < 1)).all()
    tagger.save(tmp_path / "tagger")
    again = load(tmp_path / "tagger")
    assert again.predict(WORDS) == TAGS
    again.threshold = 1.0
    assert again.predict(WORDS[1:2]) == [["O", "O"]]


def test_other_schemes_come_back():
    tags = [["B-PER", "E-PER", "O", "O", "S-LOC"], ["S-PER", "O"], ["S-LOC", "O"]]
    tagger = Tagger(features=WindowFeatures(window=0), model=SegmentSVM(C=10.0, random_state=0)).fit(WORDS, tags)
    assert tagger.scheme_ == "IOBES"
    assert tagger.predict(WORDS) == tags
    assert {"E-PER", "S-LOC", "O"} < {*tagger.classes_.tolist()}
    assert tagger.predict_posterior(WORDS) == tags
    np.testing.assert_allclose(np.exp(tagger.log_likelihood(WORDS, tags) / [5, 2, 2]), tagger.confidence(WORDS))
    with pytest.raises(ValueError, match="probabilities of tags of IOB2 alone"):
        tagger.predict_marginals(WORDS)
    with pytest.raises(
        ValueError, match=r"y must not be known in part: such tags of IOBES cannot be converted to .* IOB2"
    ):
        tagger.log_likelihood(WORDS, [None, *tags[1:]])


def test_bad_taggers(tagger):
    with pytest.raises(ValueError, match=r"SegmentCRF\(\) needs tags that spell entities"):
        Tagger(model=SegmentCRF()).fit(WORDS[1:], [["NOUN", "VERB"]] * 2)
    with pytest.raises(ValueError, match="and no other inside, and no prefer"):
        Tagger(model=SegmentCRF(), inside="IOBES").fit(WORDS, TAGS)
    with pytest.raises(TypeError, match="predict_transitions needs a ChainCRF or a ChainSVM, not a SegmentCRF"):
        tagger.predict_transitions(WORDS)
    for fit in (tagger.fit, tagger.partial_fit):
        with pytest.raises(TypeError, match="segment_features must be left out: a tagger makes"):
            fit(WORDS, TAGS, segment_features=[[], [], []])
    with pytest.raises(TypeError, match="must be a ChainSVM or a ChainCRF"):
        tagger.explain(WORDS[0], 0)
