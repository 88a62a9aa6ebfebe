"""Options of taggers that are searched by held-out sentences, and recall or precision by costs."""

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, ChainSVM, Status, Tagger, search_options
from maxmargin.tagger import option_search
from maxmargin.tagger.preferences import preference_costs
from maxmargin.text import Corpus, WindowFeatures, find_entities

X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"], ["in", "Oslo"], ["they", "ran"], ["Oslo", "won"]]
Y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"], ["O", "B-LOC"], ["O", "O"], ["B-LOC", "O"]]
NEW = [["Rom", "ran"], ["in", "Ann"], ["Bo", "fell"], ["they", "in", "Os"], ["won", "they"]]


def quick_tagger(**options):
    return Tagger(features=WindowFeatures(window=1, word_ngrams=1), model=ChainCRF(tol=0.3, max_passes=3), **options)


def test_what_helps_is_kept(interpreted_loops, monkeypatch):
    worth = {"inside": 0.02, "features__affixes": 0.03, "model__C": 0.04, "features__char_ngrams": -0.1}

    def score(clock, title, options):
        gains = {name: gain for name, gain in worth.items() if name in options}
        if "features__affixes" in gains and "model__C" in gains:
            del gains["features__affixes"]  # of no use beside the other
        return 0.5 + sum(gains.values()), 1.0

    monkeypatch.setattr(option_search._Clock, "score", score)
    search = search_options(Tagger(features=WindowFeatures(affixes=3)), X, Y)
    kept = {trial.title for trial in search.trials if trial.is_kept}
    assert kept == {"C 9", "IOBES inside"}
    assert search.score == 0.56
    assert search.first_score == 0.5
    assert search.tagger.model.C == 9
    assert search.tagger.inside == "IOBES"
    assert search.tagger.features.affixes == 3
    assert [trial.is_kept for trial in search.trials][:3] == [True, True, False]
    assert "affixes of up to 5          +3.00          +0.00    no" in str(search)
    assert search.as_dict()["trials"][0]["title"] == "C 9"


def test_a_search(interpreted_loops):
    scores = {}
    documents = Corpus(X, [0, 0, 1, 1, 2, 3])
    search = search_options(quick_tagger(), documents, Y, X, Y, effort="thorough", callback=scores.__setitem__)
    assert search.is_whole
    assert scores["as given"] == search.first_score <= search.score <= max(scores.values())
    assert {trial.title for trial in search.trials} <= scores.keys()
    assert {"IOBES inside", "spelling elsewhere", "min_count 2", "two stages", "SVM"} <= scores.keys()
    assert search.tagger.fit(documents, Y).predict(X[:1])[0][1] == "O"
    assert search.tagger.model_.tol == 0.3


def test_fits_of_a_search_end_with_its_time(interpreted_loops, monkeypatch):
    fit, limits = Tagger.fit, []

    def watched_fit(tagger, *args, **options):
        limits.append(tagger.model.time_limit)
        fit(tagger, *args, **options)
        if len(limits) == 3:
            tagger.model_.status_ = Status.TIMEOUT
        return tagger

    monkeypatch.setattr(Tagger, "fit", watched_fit)
    search = search_options(quick_tagger(), X, Y, X, Y, time_limit=1000)
    assert (len(search.trials), search.is_whole) == (1, False)  # the third fit was cut, and does not count
    assert 1000 > limits[0] > limits[1] > limits[2] > 0
    assert search.tagger.model.time_limit is None
    limits.clear()
    own = quick_tagger().set_params(model__time_limit=50.0)
    assert search_options(own, X, Y, X, Y, time_limit=1000).is_whole  # it is that of each fit
    assert {*limits} == {50.0}


def test_a_search_has_an_end(interpreted_loops):
    features = WindowFeatures(classes={"kind": {"Rome": "city"}})
    search = search_options(Tagger(features=features, model=ChainCRF(tol=0.3)), X, Y, X, Y, callback=lambda *_: True)
    assert not search.is_whole
    assert not search.trials
    assert search.tagger.features.classes == features.classes
    assert not search_options(quick_tagger(), X, Y, time_limit=1e-9).is_whole
    with pytest.raises(ValueError, match=r"effort must be one of quick, thorough, not 'slow'."):
        search_options(Tagger(), X, Y, effort="slow")
    with pytest.raises(ValueError, match=r"X_dev and y_dev must be given together, or neither."):
        search_options(Tagger(), X, Y, X)
    with pytest.raises(ValueError, match=r"time_limit must be a positive number, not 0."):
        search_options(Tagger(), X, Y, time_limit=0)


@pytest.mark.parametrize("model", [ChainCRF(tol=0.01), ChainSVM(tol=0.05, random_state=0)])
def test_more_entities_or_fewer(model, tmp_path, interpreted_loops):
    counts = {}
    for prefer in ("recall", None, "precision"):
        tagger = Tagger(model=model, prefer=prefer, inside="IOBES").fit(X, Y)
        counts[prefer] = sum(map(len, find_entities(tagger.predict(NEW))))
    assert counts["recall"] >= counts[None] >= counts["precision"]
    assert counts["recall"] > counts["precision"]
    tagger.save(tmp_path / "any.model")
    loaded = maxmargin.load(tmp_path / "any.model")
    assert loaded.prefer == "precision"
    assert loaded.predict(NEW) == tagger.predict(NEW)


def test_costs_of_preferences():
    assert preference_costs(["B-A", "I-A", "O"], "recall", 1.0).tolist() == [[0, 1, 3], [1, 0, 3], [1, 1, 0]]
    assert preference_costs(["B-A", "O"], "precision", 0.0).tolist() == [[0, 0], [2, 0]]
    needs = r"prefer needs tags that spell entities, and a model without a cost of its own."
    with pytest.raises(ValueError, match=needs):
        Tagger(prefer="recall").fit(X, [["NOUN"] * len(x) for x in X])
    with pytest.raises(ValueError, match=needs):
        Tagger(prefer="recall", model=ChainCRF(cost=np.ones((3, 3)) - np.eye(3))).fit(X, Y)
    with pytest.raises(ValueError, match=r"prefer must be one of recall, precision, not 'both'."):
        Tagger(prefer="both").fit(X, Y)
