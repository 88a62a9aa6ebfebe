"""The component in real pipelines of spaCy."""

import doctest
import importlib
import json
from pathlib import Path
from shutil import copy

import pytest

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install maxmargin[spacy]")

import maxmargin.spacy  # noqa: F401  (an installed package is found by its entry point)
from maxmargin import Tagger
from maxmargin.runtime import interpreted
from maxmargin.text import AnnotatedText, Layout, TextEntity, read_document, read_texts, write_texts
from maxmargin.text.standoff.tokenizer import find_tokenizer

X = [["Ann", "Lee", "ran"], ["Rome", "fell"], ["In", "Rome", "she", "ran"]]
Y = [["B-PER", "I-PER", "O"], ["B-LOC", "O"], ["O", "B-LOC", "O", "O"]]
TEXT = "Ann Lee  ran.\nIn Rome she fell."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("spacy") / "tagger.model"
    with interpreted():
        Tagger().fit(X, Y).save(path)
    return str(path)


def entities(doc):
    return [(entity.text, entity.label_) for entity in doc.ents]


def test_a_pipeline_finds_entities(model, interpreted_loops):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("maxmargin", config={"model": model})
    assert entities(nlp(TEXT)) == [("Ann Lee", "PER"), ("Rome", "LOC")]
    assert [entities(doc) for doc in nlp.pipe([TEXT, "", " \n"])] == [entities(nlp(TEXT)), [], []]
    tagger = nlp.get_pipe("maxmargin").tagger
    assert [found[:2] for found in tagger.tag(TEXT, "spacy:en")] == [(e.start_char, e.end_char) for e in nlp(TEXT).ents]


def test_pipelines_on_disk_and_in_bytes(model, tmp_path, interpreted_loops):
    nlp = spacy.blank("en")
    source = Path(copy(model, tmp_path / "original"))
    nlp.add_pipe("maxmargin", config={"model": str(source), "threshold": 0.2})
    nlp.to_disk(tmp_path / "pipeline")
    source.unlink()  # a pipeline on disk has all that it needs
    config = (tmp_path / "pipeline" / "config.cfg").read_text()
    assert "[components.maxmargin]" in config
    again = spacy.load(tmp_path / "pipeline")
    assert entities(again(TEXT)) == entities(nlp(TEXT)) != []
    other = spacy.blank("en")
    other.add_pipe("maxmargin")
    with pytest.raises(ValueError, match="has no tagger yet"):
        other(TEXT)
    assert entities(other.from_bytes(nlp.to_bytes())(TEXT)) == entities(nlp(TEXT))


def test_entities_that_are_there_stay_if_asked_for(model, interpreted_loops):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "CITY", "pattern": "Rome"}])
    nlp.add_pipe("maxmargin", config={"model": model, "overwrite": False})
    assert entities(nlp(TEXT)) == [("Ann Lee", "PER"), ("Rome", "CITY")]
    nlp.get_pipe("maxmargin").threshold = 1
    assert entities(nlp(TEXT)) == [("Rome", "CITY")]
    nlp.get_pipe("maxmargin").threshold = None
    assert entities(nlp(TEXT)) == [("Ann Lee", "PER"), ("Rome", "CITY")]
    assert nlp.get_pipe("maxmargin").tagger.threshold is None


def test_parts_of_speech_are_tags(tmp_path, interpreted_loops):
    Tagger().fit(X, [["NN", "NN", "VB"], ["NN", "VB"], ["IN", "NN", "PR", "VB"]]).save(tmp_path / "speech")
    nlp = spacy.blank("en")
    nlp.add_pipe("maxmargin", config={"model": str(tmp_path / "speech")})
    assert [token.tag_ for token in nlp("In Rome she ran")] == ["IN", "NN", "PR", "VB"]


def test_bad_models(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("maxmargin", config={"model": str(tmp_path / "none")})
    with pytest.raises(ValueError, match="there is no"):
        nlp(TEXT)


def test_docbin(tmp_path):
    texts = [AnnotatedText(TEXT, [TextEntity(0, 7, "PER", "Ann Lee")]), AnnotatedText("Nobody", [])]
    write_texts(tmp_path / "a.spacy", texts, "docbin")
    found = read_texts(tmp_path / "a.spacy")
    assert [(text.text, text.entities) for text in found] == [(text.text, text.entities) for text in texts]
    document = read_document(tmp_path / "a.spacy")
    assert document.y[0][:3] == ["B-PER", "I-PER", "O"]
    write_texts(tmp_path / "b.spacy", document.with_entities([[(0, 1, "PER")], []]), "docbin")
    again = read_texts(tmp_path / "b.spacy")
    assert (again[0].text, again[0].entities) == (TEXT, [TextEntity(0, 3, "PER", "Ann")])
    (tmp_path / "c.spacy").write_bytes(b"odd")
    with pytest.raises(ValueError, match="is no file of DocBin"):
        read_texts(tmp_path / "c.spacy")


def test_documents_as_json(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp(TEXT)
    doc.set_ents([spacy.tokens.Span(doc, 0, 2, "PER")])
    (tmp_path / "doc.json").write_text(json.dumps(doc.to_json()))
    document = read_document(tmp_path / "doc.json", Layout("spacy"))
    assert document.X[0][:2] == ["Ann", "Lee"]
    assert document.y[0][:2] == ["B-PER", "I-PER"]


def test_tokenizers_of_spacy():
    (sentence,) = find_tokenizer("spacy:de")("Z.B. Rom")
    assert ["Z.B. Rom"[a:b] for a, b in sentence] == ["Z.B.", "Rom"]
    with pytest.raises(ValueError, match="must name a language of spaCy"):
        find_tokenizer("spacy:nowhere")


def test_examples(interpreted_loops):
    for name in ("maxmargin.spacy", "maxmargin.spacy.component"):
        assert doctest.testmod(importlib.import_module(name)).failed == 0
