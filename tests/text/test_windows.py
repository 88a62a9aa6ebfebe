"""Features of tokens: those that their names say, made when asked for, in pipelines."""

import gc
import pickle
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from maxmargin import ChainCRF
from maxmargin.encode.names.name_columns import Columns, HashedColumns, RareColumns
from maxmargin.encode.names.vocabulary import learn_names
from maxmargin.text import WindowFeatures

SENTENCES = [[("He", "PRP"), ("ran", "VBD"), ("home", "NN")], [("Stop", "VB")]]


def test_names_by_hand():
    first, middle, last = WindowFeatures(window=1, affixes=1, tag_ngrams=2).transform(SENTENCES)[0]
    assert middle == [
        *("word=ran", "lower=ran", "shape=a", "prefix=r", "suffix=n"),
        *("lower[-1]=he", "shape[-1]=Aa", "lower[+1]=home", "shape[+1]=a"),
        *("words[-1]=He|ran", "words[+0]=ran|home"),
        *("tag1[-1]=PRP", "tag1[+0]=VBD", "tag1[+1]=NN", "tag1[-1]=PRP|VBD", "tag1[+0]=VBD|NN"),
        *("lower[+0]|tag1[+0]=ran|VBD", "lower[+0]|tag1[-1]=ran|PRP", "lower[+0]|tag1[+1]=ran|NN"),
        *("lower[-1]|tag1[+0]=he|VBD", "lower[+1]|tag1[+0]=home|VBD"),
    ]
    assert "prefix=h" in first
    assert "prefix=H" in WindowFeatures(affixes=1, cased_affixes=True).transform(SENTENCES)[0][0]
    assert "none[-1]" in first
    assert "none[+1]" in last
    assert WindowFeatures(window=0, shapes=False, affixes=0, word_ngrams=1).transform([["a"]])[0] == [
        ["word=a", "lower=a"]
    ]


def test_the_longest_name_of_a_gazetteer():
    gazetteers = {"city": ["New York", "York"], "paper": ["new york times"], "any": ["YORK"]}
    rows = WindowFeatures(gazetteers=gazetteers).transform([["New", "York", "Times", "York", "new", "york", "x"]])[0]
    found = [[name for name in row if name.partition("=")[0] in gazetteers] for row in rows]
    assert found == [
        ["paper=begin"],
        ["paper=inside"],
        ["paper=inside"],
        ["city=begin", "any=begin"],
        ["city=begin"],
        ["city=inside"],
        [],
    ]


def test_gazetteers_are_indexed_once():
    windows = WindowFeatures(gazetteers={"city": iter(["York"])}).fit(None)
    for _ in range(2):
        assert "city=begin" in windows.transform([["York"]])[0][0]


def test_features_are_made_when_asked_for():
    rows = WindowFeatures().transform(iter(SENTENCES))
    assert len(rows) == 2
    assert rows[1] == rows[-1] == [*rows][1] == rows[1:][0] == pickle.loads(pickle.dumps(rows))[1]
    assert WindowFeatures().transform([[]])[0] == []


def columns_by_hand(windows, known):
    """The columns of all tokens, by name."""
    return [sorted(column for column in known.find(row) if column >= 0) for rows in windows for row in rows]


def columns_in_tables(windows, known):
    """The same, of many tokens at once."""
    tables = [table for table, _ in windows.column_tables(known)]
    return [sorted(column for column in row if column >= 0) for table in tables for row in table.tolist()]


WORDS = [[], ["He", "ran", "home"], ("ran", "Rome"), [("x",), ["ran"]], [], ["He", "e"], ["Zoe", "He", "ran", "he"], []]
TAGGED = [*SENTENCES, [("He", "PRP", "up"), ("ran", "VBD", "down")], [], ["He"], SENTENCES[0][::-1]]
OPTIONS = [
    {},
    {"window": 0, "shapes": False, "affixes": 0, "word_ngrams": 1},
    {"window": 3, "word_ngrams": 3, "tag_ngrams": 2, "cased_affixes": True, "tag_words": False},
    {"near_affixes": 2, "char_ngrams": 3, "patterns": {"short": ".."}, "elsewhere": True},
    {"gazetteers": {"city": ["Rome", "ran home"]}, "classes": {"brown": {"he": "0110", "ran": "10"}}},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("block", "most_kept", "many"), [(2, 3, 1000), (2, 1000, 1000), (2, 1000, 1), (9, 3, 1)])
def test_tables_have_the_columns_of_the_names(options, block, most_kept, many, monkeypatch):
    monkeypatch.setattr("maxmargin.text.token_features.windows.BLOCK", block)
    limits = {"MOST_KEPT": most_kept, "MOST_ROWS": most_kept, "MANY": many, "MOST_CELLS": most_kept}
    for name, limit in limits.items():
        monkeypatch.setattr(f"maxmargin.text.token_features.token_blocks.{name}", limit)
    for sentences in (WORDS, TAGGED):
        transformer = WindowFeatures(**options)
        names = {name for rows in transformer.transform(sentences[:-1]) for row in rows for name in row}
        for known in (Columns(sorted(names)), HashedColumns(1000), RareColumns(sorted(names), 3)):
            windows = transformer.transform(sentences)
            for _ in range(2):  # with and without what is remembered
                assert columns_in_tables(windows, known) == columns_by_hand(windows, known)
            lengths = [length for _, lengths in windows.column_tables(known) for length in lengths]
            assert lengths == [*map(len, sentences)]


def test_tables_in_several_threads():
    known = Columns(f"word={k}" for k in range(200))
    transformer = WindowFeatures()
    transformer.transform([["0"]])
    sentences = [[[str((7 * k + 11 * t) % 300) for t in range(40)]] for k in range(60)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda X: columns_in_tables(transformer.transform(X), known), sentences)
        expected = (columns_by_hand(WindowFeatures().transform(X), known) for X in sentences)
        assert [*found] == [*expected]


def test_look_up_finds_the_columns_of_the_names():
    sentences = deque([["He", "ran", "home"], ("ran", "Rome"), [("x",), ["ran"]], iter(["He"])])
    names = [["He", "ran", "home"], ["ran", "Rome"], ["x", "ran"], ["He"]]
    known = Columns({name for rows in WindowFeatures().transform(names[:2]) for row in rows for name in row})
    found = [*WindowFeatures().transform(sentences).look_up(known)]
    assert found == [[[known[name] for name in row] for row in rows] for rows in WindowFeatures().transform(names)]


def test_in_a_pipeline(interpreted_loops):
    X = [[word for word, _ in sentence] for sentence in SENTENCES * 3]
    y = [[pos for _, pos in sentence] for sentence in SENTENCES * 3]
    tagger = make_pipeline(WindowFeatures(), ChainCRF(C=10.0))
    search = GridSearchCV(clone(tagger), {"windowfeatures__window": [0, 1], "chaincrf__min_count": [1, 2]}, cv=2)
    assert search.fit(X, y).best_score_ == 1
    assert tagger.fit(X, y).score(X, y) == 1


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"window": -1}, [["a"]], "window must be an integer, from 0 to 100, not -1."),
        ({"word_ngrams": 0}, [["a"]], "word_ngrams must be an integer, from 1 to 100, not 0."),
        ({"gazetteers": ["York"]}, [["a"]], "gazetteers must be a dict with lists of names, not a list."),
        ({"gazetteers": {"city": "York"}}, [["a"]], r"gazetteers\['city'\] must be a list of names, strings that .*"),
        ({"gazetteers": {"city": [" "]}}, [["a"]], r"gazetteers\['city'\] must be a list of names, strings that .*"),
        ({}, "a b", "X must be a list of sentences, not a str."),
        ({}, ["a b"], r"X\[0\] must be a list of tokens, not 'a b'."),
        ({}, [["a", 3]], r"X\[0\] has 3 at position 1, but a token must be a string or a tuple of strings."),
        ({}, [[("a", "B"), ("a",)]], r"X\[0\] has 1 strings at position 1, but 2 at position 0."),
    ],
)
def test_bad_input(options, X, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        [*WindowFeatures(**options).transform(X)]


def test_the_collector_is_left_as_it_was():
    for X in ([["a"]], [["a"], [3]]):
        with nullcontext() if len(X) == 1 else pytest.raises(TypeError):
            learn_names(WindowFeatures().transform(X), min_count=1, n_hashed=None)
        assert gc.isenabled()
