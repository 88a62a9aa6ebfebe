"""A user's own features of words: the protocol of `docs/extending.md` gives the model that lists of names give."""

import numpy as np
import pytest

from maxmargin import ChainCRF, ChainSVM
from maxmargin.encode.names.name_columns import Columns, HashedColumns
from maxmargin.text import NamedFeatures, WindowFeatures
from tests.sentences import tagged_sentences
from tests.test_docs import ROOT, python_blocks


@pytest.fixture(scope="module")
def page():
    """What the page on features of words defines."""
    namespace = {"__name__": "extending"}
    blocks = [block for block in python_blocks(ROOT / "docs/extending.md") if "look_up" in block or "Source" in block]
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/extending.md", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"n_hashed": 64}, {"only_observed": True}])
@pytest.mark.parametrize("model", [ChainCRF, ChainSVM])
def test_columns_make_the_model_of_names(page, interpreted_loops, model, options):
    sentences, tags = ([[token[k] for token in sentence] for sentence in tagged_sentences(6)] for k in (0, 2))
    coded = page["Ends"]().fit(sentences).transform(sentences)
    assert isinstance(coded, NamedFeatures)
    named = [*coded]
    assert not isinstance(named, NamedFeatures)
    fast, slow = (model(max_passes=3, tol=0.5, random_state=0, **options).fit(X, tags) for X in (coded, named))
    assert fast._w.tobytes() == slow._w.tobytes()
    for X in (coded, page["EndFeatures"](sentences[:1])):
        for a, b in zip(fast.predict(X), slow.predict([*X]), strict=True):
            np.testing.assert_array_equal(a, b)


def test_it_is_asked_for_columns(page, monkeypatch, interpreted_loops):
    asked = []
    features = page["EndFeatures"]
    monkeypatch.setattr(features, "__getitem__", lambda *_: pytest.fail("names were asked for"))
    look_up = features.look_up
    monkeypatch.setattr(features, "look_up", lambda self, columns: [asked.append(columns), *look_up(self, columns)][1:])
    model = ChainCRF(max_passes=1, tol=0.5).fit(features([["a", "b"], ["b"]]), [["x", "y"], ["y"]])
    model.predict(features([["a"], ["b"]]))
    assert [columns.grows for columns in asked] == [True, False]


def test_what_looks_up_names_finds_columns():
    assert Columns(["a", "b"]).find(["b", "c"]) == [1, -1]
    assert Columns(["a"], grows=True).find(["b", "a", "b"]) == [1, 0, 1]
    hashed = HashedColumns(8)
    assert not hashed.grows
    assert hashed.find(["a", "a"]) == [hashed["a"]] * 2


def test_a_source_adds_features_and_an_option(page):
    rows = page["WithLengths"](lengths=5).transform([["sang", "together"]])
    assert [row[-1] for row in rows[0]] == ["length=4", "length=5"]
    assert [row[:-1] for row in rows[0]] == WindowFeatures().transform([["sang", "together"]])[0]
    known = Columns(["length=4"])
    assert [[row[-1] for row in sentence] for sentence in rows.look_up(known)] == [[0, -1]]
    with pytest.raises(ValueError, match=r"lengths must be an integer, from 1 to 100, not 0."):
        page["WithLengths"](lengths=0).fit([])
