"""Taggers of shards, from Python and from the command line."""

import inspect
import json
from copy import deepcopy

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from maxmargin import ChainCRF, Shards, Tagger, load
from maxmargin.tagger.training_data import pack_tags
from maxmargin.text import TemplateFeatures
from tests.cli.conftest import input_error, run, usage_error
from tests.sentences import column_text, tagged_sentences

SENTENCES = tagged_sentences()[:18]
X = [[token[:2] for token in sentence] for sentence in SENTENCES]
Y = [[token[2] for token in sentence] for sentence in SENTENCES]


def test_a_tagger_of_shards_is_that_of_all_sentences(tmp_path):
    (tmp_path / "a.txt").write_text(column_text(SENTENCES))
    whole = Tagger().fit(X, Y)
    for size in (18, 5):
        shards = Shards.from_files([tmp_path / "a.txt"], size=size)
        tagger = Tagger().fit(shards, X_dev=None)
        assert tagger.scheme_ == whole.scheme_
        assert tagger.model_.feature_names_in_.tolist() == whole.model_.feature_names_in_.tolist()
        assert tagger.predict(X) == whole.predict(X)
        assert tagger.certificate_.dual <= whole.certificate_.primal
        assert whole.certificate_.dual <= tagger.certificate_.primal
        if size == 18:
            np.testing.assert_array_equal(tagger.model_._w, whole.model_._w)


def test_tags_are_packed():
    tags = pack_tags(Y)
    assert len(tags) == len(Y)
    assert [*tags] == Y
    assert [*tags[3:7][1:]] == Y[4:7]
    assert tags[-1] == Y[-1]
    known = [[None, "O"], [{"O", "B-PER"}]]
    assert pack_tags(known) is known


def test_predictions_of_shards_are_those_of_all_sentences():
    tagger, shards = Tagger().fit(X, Y), Shards.cut(X, Y, n_shards=4)
    assert tagger.predict(shards) == tagger.predict(X)
    assert tagger.predict_entities(shards) == tagger.predict_entities(X)
    for found, expected in zip(tagger.predict_topk(shards, 2), tagger.predict_topk(X, k=2), strict=True):
        assert found[0] == expected[0]
    assert tagger.score(shards) == tagger.score(X, Y)
    assert "allowed" in inspect.signature(tagger.predict).parameters
    with pytest.raises(ValueError, match="allowed must be None where X is Shards"):
        tagger.predict(shards, allowed=Y)
    with pytest.raises(TypeError, match="y must hold the tags of X"):
        tagger.score(X)


def test_preferences_of_shards_are_those_of_all_sentences():
    whole, found = (Tagger(prefer="recall").fit(*data) for data in ((X, Y), (Shards.cut(X, Y, n_shards=1),)))
    np.testing.assert_array_equal(found.model_.cost, whole.model_.cost)
    np.testing.assert_array_equal(found.model_._w, whole.model_._w)


@pytest.mark.usefixtures("interpreted_loops")
def test_held_out_shards_are_scored_as_all_sentences():
    shards = Shards.cut(X, Y, n_shards=3)
    for scoring, inside in ((None, "IOBES"), ("entity_f1", None), ("token_accuracy", None)):
        tagger = Tagger(model=ChainCRF(scoring=scoring, max_passes=4, patience=2), inside=inside)
        scores = tagger.fit(X, Y, X_dev=X[:7], y_dev=Y[:7]).trace_.dev_score
        assert scores.max() > 0
        held_out = Shards.cut(X[:7], Y[:7], n_shards=2)
        np.testing.assert_array_equal(tagger.fit(X, Y, X_dev=held_out).trace_.dev_score, scores)
    assert tagger.fit(shards, X_dev=shards).trace_.has_dev_scores
    with pytest.raises(ValueError, match="y_dev must be None where X_dev is Shards"):
        tagger.fit(X, Y, X_dev=shards, y_dev=Y)
    with pytest.raises(TypeError, match="In X_dev, shard 0 has no tags"):
        tagger.fit(X, Y, X_dev=Shards.cut(X, n_shards=2))


@pytest.mark.usefixtures("interpreted_loops")
def test_partial_fits_of_shards_are_those_of_all_sentences():
    first = Tagger(model=ChainCRF(max_passes=3), inside="IOBES").fit(X[:9], Y[:9])
    whole, parted = deepcopy(first).partial_fit(X[9:], Y[9:]), first.partial_fit(Shards.cut(X[9:], Y[9:], n_shards=1))
    assert parted.model_.n_seen_ == 18
    assert parted.model_.feature_names_in_.tolist() == whole.model_.feature_names_in_.tolist()
    np.testing.assert_array_equal(parted.model_._w, whole.model_._w)
    assert first.partial_fit(Shards.cut(X[:4], Y[:4], n_shards=2)).model_.n_seen_ == 22
    with pytest.raises(ValueError, match="y must be None where X is Shards"):
        first.partial_fit(Shards.cut(X, Y, n_shards=2), Y)
    with pytest.raises(TypeError, match="y must hold the tags of X"):
        first.partial_fit(X)


@pytest.mark.usefixtures("interpreted_loops")
def test_templates_of_shards_are_those_of_all_sentences():
    tagger = Tagger(features=TemplateFeatures(template="U0:%x[0,0]\nU1:%x[-1,1]\nB:%x[0,1]"))
    tagger.set_params(model__max_passes=3)
    whole = deepcopy(tagger).fit(X, Y)
    np.testing.assert_array_equal(tagger.fit(Shards.cut(X, Y, n_shards=1)).model_._w, whole.model_._w)
    tagger.fit(Shards.cut(X, Y, n_shards=3))
    assert tagger.model_.feature_names_in_.tolist() == whole.model_.feature_names_in_.tolist()
    assert len(tagger.predict(X)) == len(X)


def test_what_taggers_of_shards_do_not_take():
    shards = Shards.cut(X, Y, n_shards=2)
    with pytest.raises(ValueError, match="two_stages must be False"):
        Tagger(two_stages=True).fit(shards)
    with pytest.raises(TypeError, match="Shard 0 has no tags"):
        Tagger().fit(Shards.cut(X, n_shards=2))
    with pytest.raises(TypeError, match="y must hold the tags of X"):
        Tagger().fit(X)
    with pytest.raises(TypeError, match="X must be a list of sentences in tune, not Shards"):
        Tagger().tune(shards, None, X, Y)
    with pytest.raises(TypeError, match="X_dev must be a list of sentences in tune, not Shards"):
        Tagger().tune(X, Y, shards, None)
    with pytest.raises(ValueError, match="features must be WindowFeatures or TemplateFeatures with shards"):
        Tagger(features=FunctionTransformer()).fit(shards)


def test_shards_on_the_command_line(tmp_path):
    (tmp_path / "a.txt").write_text(column_text(SENTENCES))
    call = "train", tmp_path / "a.txt", "-m", tmp_path / "a.model"
    outcome = run(*call, "--shards", tmp_path / "s")
    assert outcome.code == 0, outcome
    assert "18 sentences in 1 shard" in outcome.err
    again = run(*call, "--shards", tmp_path / "s", "--dev", tmp_path / "a.txt", "--json", "--quiet")
    assert json.loads(again.out)["sentences"] == 18
    assert run(*call, "--shards", tmp_path / "s", "--checkpoint", tmp_path / "c").code == 0
    later = run(
        "train",
        tmp_path / "a.txt",
        "-m",
        tmp_path / "b.model",
        "--from",
        tmp_path / "a.model",
        "--shards",
        tmp_path / "s",
    )
    assert (later.code, load(tmp_path / "b.model").model_.n_seen_) == (0, 36)
    assert "--tune trains on all sentences in memory" in usage_error(
        *call, "--shards", tmp_path / "s", "--tune", "quick"
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    assert "holds no shards" in input_error(*call, "--shards", tmp_path / "mine")
