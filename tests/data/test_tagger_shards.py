"""Taggers of shards, from Python and from the command line."""

import inspect
import json

import numpy as np
import pytest

from maxmargin import Shards, Tagger
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


def test_what_taggers_of_shards_do_not_take():
    shards = Shards.cut(X, Y, n_shards=2)
    with pytest.raises(ValueError, match="two_stages must be False"):
        Tagger(two_stages=True).fit(shards)
    with pytest.raises(TypeError, match="Shard 0 has no tags"):
        Tagger().fit(Shards.cut(X, n_shards=2))
    with pytest.raises(TypeError, match="y must hold the tags of X"):
        Tagger().fit(X)


def test_shards_on_the_command_line(tmp_path):
    (tmp_path / "a.txt").write_text(column_text(SENTENCES))
    call = "train", tmp_path / "a.txt", "-m", tmp_path / "a.model"
    outcome = run(*call, "--shards", tmp_path / "s")
    assert outcome.code == 0, outcome
    assert "18 sentences in 1 shard" in outcome.err
    again = run(*call, "--shards", tmp_path / "s", "--dev", tmp_path / "a.txt", "--json", "--quiet")
    assert json.loads(again.out)["sentences"] == 18
    assert run(*call, "--shards", tmp_path / "s", "--checkpoint", tmp_path / "c").code == 0
    assert "--shards goes with neither" in usage_error(*call, "--shards", tmp_path / "s", "--tune", "quick")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    assert "holds no shards" in input_error(*call, "--shards", tmp_path / "mine")
