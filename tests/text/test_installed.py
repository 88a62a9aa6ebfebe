"""Packages that bring word classes and lists of names, as they are."""

import pytest

from maxmargin.cli.text_commands.outside_files import read_all_lists
from maxmargin.text import WindowFeatures, read_classes, read_gazetteers

lookups = pytest.importorskip("spacy_lookups_data", reason="the extra classes is not installed")
mimesis = pytest.importorskip("mimesis", reason="the extra names is not installed")


def test_paths_of_spacy_lookups_data():
    paths = read_classes("spacy:en")
    assert len(paths) > 100_000
    assert paths["Monday"][:10] == paths["Tuesday"][:10] != paths["the"][:10]


def test_cases_of_spacy_lookups_data():
    cases = read_classes("spacy-case:en")
    assert 100_000 < len(cases) < 300_000
    assert {word: cases[word] for word in ("the", "london", "usa")} == {"the": "4:0", "london": "0:4", "usa": "0:0"}
    features = WindowFeatures(window=0, classes={"case": cases}).transform([["LONDON", "the"]])[0]
    assert [row[-1] for row in features] == ["case=0:4", "case=4:0"]


def test_names_of_mimesis():
    lists = read_gazetteers("mimesis:de")
    assert {*lists} >= {"forename", "surname", "city", "country", "company"}
    assert "Italien" in lists["country"]
    every = read_all_lists(["mimesis:all"], "utf-8")
    assert all({*lists[title]} <= {*every[title]} for title in lists)
    assert "Paris" in every["city"]
