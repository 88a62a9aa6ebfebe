"""Packages that import python-crfsuite, on `maxmargin.pycrfsuite` in its place."""

import importlib
import sys
from pathlib import Path

import pytest

import maxmargin.pycrfsuite

ADDRESSES = [
    "123 Main St. Suite 100 Chicago, IL",
    "1775 Broadway And 57th, Newyork NY",
    "PO Box 123, Omaha NE 68101",
    "State & Lake, Chicago",
    "3600 North Pulaski Road #2, Chicago, Illinois 60641",
    "Robie House, 5757 South Woodlawn Avenue, Chicago, IL 60637",
]


@pytest.fixture
def on_ours(monkeypatch):
    """What imports a package anew, with this library in the place of python-crfsuite."""

    def on_ours(name):
        monkeypatch.setitem(sys.modules, "pycrfsuite", maxmargin.pycrfsuite)
        monkeypatch.delitem(sys.modules, name, raising=False)
        module = importlib.import_module(name)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return on_ours


def test_addresses(on_ours, interpreted_loops):
    theirs = pytest.importorskip("usaddress", reason="usaddress is not installed")
    ours = on_ours("usaddress")
    assert isinstance(ours.TAGGER, maxmargin.pycrfsuite.Tagger)
    assert not isinstance(theirs.TAGGER, maxmargin.pycrfsuite.Tagger)
    for address in ADDRESSES:
        assert ours.parse(address) == theirs.parse(address)
        assert ours.tag(address) == theirs.tag(address)


def test_sounds_and_kinds_of_words(on_ours, interpreted_loops):
    models = Path(pytest.importorskip("gruut_lang_en", reason="gruut is not installed").__file__).parent
    words, sentence = ["maxmargin", "Chicago", "naïve", "x"], ["A", "dog", "barks", "at", "the", "old", "tree", "."]
    kinds = {"g2p": ("GraphemesToPhonemes", words), "pos": ("PartOfSpeechTagger", [sentence])}
    modules = {folder: importlib.import_module(f"gruut.{folder}") for folder in kinds}  # on theirs
    for folder, (name, inputs) in kinds.items():
        model = models / folder / "model.crf"
        theirs, ours = (getattr(package, name)(model) for package in (modules[folder], on_ours(f"gruut.{folder}")))
        assert isinstance(ours.crf_tagger, maxmargin.pycrfsuite.Tagger)
        assert not isinstance(theirs.crf_tagger, maxmargin.pycrfsuite.Tagger)
        assert [*map(ours, inputs)] == [*map(theirs, inputs)]


def test_parts_of_speech(on_ours, tmp_path, monkeypatch, interpreted_loops):
    nltk = pytest.importorskip("nltk", reason="NLTK is not installed")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])  # where it may write
    tagger = on_ours("nltk.tag.crf").CRFTagger()
    sentences = [
        [("University", "Noun"), ("is", "Verb"), ("a", "Det"), ("good", "Adj"), ("place", "Noun")],
        [("dog", "Noun"), ("eat", "Verb"), ("meat", "Noun")],
    ]
    wanted = [[("dog", "Noun"), ("is", "Verb"), ("good", "Adj")], [("Cat", "Noun"), ("eat", "Verb"), ("meat", "Noun")]]
    tagger.train(sentences, str(tmp_path / "model.crf.tagger"))  # the example of its documentation
    assert tagger.tag_sents([[word for word, _ in sentence] for sentence in wanted]) == wanted
