"""Texts on the command line: tagging, training, converting."""

import json

import pytest

import maxmargin
from maxmargin import Tagger
from maxmargin.text import Layout, read_document
from tests.cli.conftest import input_error, run, usage_error
from tests.pages import check_page

TEXT = "Ann lives in Rome. Bob Dole lives in Lima.\n\nYesterday Ann left La Caixa."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a text in brat's format, and the model of it."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text(TEXT)
    spans = [("PER", "Ann"), ("LOC", "Rome"), ("PER", "Bob Dole"), ("LOC", "Lima"), ("ORG", "La Caixa")]
    lines = [f"T{k}\t{t} {TEXT.index(w)} {TEXT.index(w) + len(w)}\t{w}\n" for k, (t, w) in enumerate(spans)]
    (folder / "a.ann").write_text("".join(lines) + f"T9\tPER {TEXT.rindex('Ann')} {TEXT.rindex('Ann') + 3}\tAnn\n")
    outcome = run("train", folder / "a.ann", "--model", folder / "model", "--tokenizer", "rules")
    assert outcome.code == 0, outcome
    return folder


def test_a_text_is_tagged_as_it_is(folder):
    code, out, _ = run("tag", folder / "model", text=TEXT + "\n")
    found = json.loads(out)
    assert (code, found["text"]) == (0, TEXT + "\n")
    assert [entity["text"] for entity in found["entities"]] == ["Ann", "Rome", "Bob Dole", "Lima", "Ann", "La Caixa"]
    assert all(0 < entity["probability"] < 1 for entity in found["entities"])
    assert json.loads(run("tag", folder / "model", "--threshold", 1, text=TEXT).out)["entities"] == []


def test_files_of_texts_are_predicted_and_scored(folder, tmp_path):
    (tmp_path / "b.txt").write_text("Bob Dole left Rome.")
    assert "PER 0 8\tBob Dole" in run("predict", folder / "model", tmp_path / "b.txt", "--format", "brat").out
    run("convert", folder / "a.ann", "--to", "doccano", "-o", tmp_path / "a.jsonl")
    twice = run("convert", folder / "a.ann", folder / "a.ann", "-f", "brat", "--to", "standoff").out.splitlines()
    assert [json.loads(line)["text"] for line in twice] == [TEXT, TEXT]
    assert "FB1: 100.00" in run("evaluate", folder / "model", tmp_path / "a.jsonl", "-f", "doccano").out
    assert (
        run("tag", folder / "model", folder / "a.txt", tmp_path / "b.txt", "-f", "brat", "-o", tmp_path / "new").code
        == 0
    )
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a.ann", "a.txt", "b.ann", "b.txt"]


def test_columns_become_texts_and_texts_columns(files, tmp_path):
    assert run("convert", files / "dev.txt", "-t", "standoff", "-o", tmp_path / "dev.jsonl").code == 0
    code, out, _ = run("convert", tmp_path / "dev.jsonl", "-f", "standoff", "--tokenizer", "blanks")
    wanted = ["\t".join(line.split()[::2]) for line in (files / "dev.txt").read_text().splitlines()]
    assert (code, out.splitlines()) == (0, wanted)


def test_bad_texts(folder, files, tmp_path):
    assert "trained on tokens of 2 columns, but texts have words only" in input_error(
        "tag", files / "tagger.model", text="Ann"
    )
    assert input_error("tag", folder / "model", text="") == "standard input holds no text."
    (tmp_path / "odd.txt").write_bytes(b"caf\xe9")
    assert "it is not utf-8: pass the encoding" in input_error("tag", folder / "model", tmp_path / "odd.txt")
    (tmp_path / "odd.jsonl").write_text('{"text": "Ann", "label": [[0, 9, "PER"]]}')
    message = input_error("train", tmp_path / "odd.jsonl", "-f", "doccano", "-m", tmp_path / "m")
    assert message.endswith("'PER' is from 0 to 9, but the text has 3 characters.")
    assert "texts with entities are other formats" in input_error("train", tmp_path / "odd.jsonl", "-m", tmp_path / "m")
    assert "tokenizer must be rules, lines" in usage_error("tag", folder / "model", "--tokenizer", "odd", text="Ann")
    assert "need a path to write to" in input_error("tag", folder / "model", "-f", "docbin", text="Ann")


def test_two_taggers_are_compared(files, folder, tmp_path):
    dev = "--dev", files / "dev.txt", "--precision", 0.9
    outcome = run("train", files / "train.txt", "--model", tmp_path / "other", "--C", "1e-6", *dev)
    assert (outcome.code, "All entities are kept" in outcome.err) == (0, True), outcome
    names = files / "tagger.model", tmp_path / "other", files / "dev.txt"
    found = json.loads(run("evaluate", *names, "--json", "--matches").out)
    comparison = found["comparison"]
    assert comparison["first"]["value"] == found["entities"]["overall"]["f1"] == 1
    assert comparison["difference"]["value"] == comparison["second"]["value"] - 1 < 0
    assert comparison["p_value"] < 0.2
    assert found["matches"]["type"]["f1"] == 1
    out = run("evaluate", *names).out
    assert "Scores, with intervals of 95 %:" in out
    assert "swapped at random" in out
    alone = run("evaluate", names[0], names[2], "--intervals", "--matches", "--precision", 0.9).out
    assert "F1, with an interval of 95 %: 100.00 (100.00 to 100.00)" in alone
    assert "strict       100.00   100.00   100.00" in alone
    assert "have a precision of 90.00% at least" in alone
    message = input_error("evaluate", names[0], folder / "model", names[2])
    assert "tokens have 2 columns, but the tagger was trained on 1" in message


def test_data_are_checked(files, tmp_path):
    code, out, _ = run("check", files / "train.txt", files / "dev.txt")
    assert code == 0
    assert "sentences that are in" in out
    assert run("check", files / "train.txt", files / "dev.txt", "--strict").code == 1
    (tmp_path / "odd.txt").write_text("Ann B-PER\nLee I-LOC\nran O\n")
    code, out, _ = run("check", tmp_path / "odd.txt", "--json")
    found = json.loads(out)
    assert (code, found["error"]) == (1, 1)
    assert found["findings"][0]["examples"] == ["line 2 goes from 'B-PER' to 'I-LOC' at position 1"]


def test_sentences_are_suggested(files, folder, tmp_path):
    sentences = "Ann NNP\nlives VB\nin VB\nRome NNP\n. .\n\nUnseen NNP\nRome VB\nodd .\n\nUnseen NNP\nRome VB\nodd .\n"
    (tmp_path / "new.txt").write_text(sentences)
    code, out, _ = run("suggest", files / "tagger.model", tmp_path / "new.txt", "-n", 5)
    first, tagged, second, _ = out.splitlines()
    assert code == 0
    assert first.endswith("new.txt, line 7")
    assert "Unseen" in tagged
    assert second.endswith("new.txt, line 1")
    found = json.loads(run("suggest", files / "tagger.model", tmp_path / "new.txt", "-n", 1, "--json").out)
    assert found[0]["words"] == ["Unseen", "Rome", "odd"]
    assert 0 < found[0]["confidence"] < 1


def test_taggers_are_trained_for_a_precision(files, tmp_path):
    train = "train", files / "train.txt", "--model", tmp_path / "model", "--precision", 0.9
    outcome = run(*train, "--dev", files / "dev.txt")
    assert outcome.code == 0
    assert "are left out." in outcome.err
    assert 0 < maxmargin.load(tmp_path / "model").threshold < 1
    assert run("predict", tmp_path / "model", files / "dev.txt").code == 0
    assert "--precision needs --dev" in usage_error(*train)


def test_predictions_are_lines_of_json(files, tmp_path):
    code, out, _ = run("predict", files / "tagger.model", files / "dev.txt", "--format", "jsonl")
    tagger, document = maxmargin.load(files / "tagger.model"), read_document(files / "dev.txt", Layout("columns"))
    records = [json.loads(line) for line in out.splitlines()]
    X, tags = [[tuple(token) for token in record["tokens"]] for record in records], tagger.predict(document.X)
    assert (code, X, [record["tags"] for record in records]) == (0, document.X, tags)
    tables, classes = tagger.predict_marginals(document.X), tagger.classes_.tolist()
    for record, found, table in zip(records, tagger.predict_entities(document.X), tables, strict=True):
        wanted = [(*entity[:3], round(entity.probability, 6)) for entity in found]
        assert [(e["start"], e["end"], e["type"], e["probability"]) for e in record["entities"]] == wanted
        words = [token[0] for token in record["tokens"]]
        assert all(e["text"] == " ".join(words[e["start"] : e["end"]]) for e in record["entities"])
        p = [table[t, classes.index(tag)] for t, tag in enumerate(record["tags"])]
        assert record["probabilities"] == pytest.approx(p, abs=1e-6)
    Tagger(scheme=None, layout=Layout("columns")).fit([["a", "b"]], [["X", "Y"]]).save(tmp_path / "parts")
    (record,) = map(json.loads, run("predict", tmp_path / "parts", "-f", "jsonl", text="a ?\nb ?\n").out.splitlines())
    assert [*record] == ["tokens", "tags", "probabilities"]


def test_predictions_are_a_page(files, folder, tmp_path):
    (tmp_path / "new.txt").write_text("<script>alert(1)</script> NNP\n\nRome NNP\n\u202e VB\nLima NNP\n")
    code, out, _ = run("predict", files / "tagger.model", tmp_path / "new.txt", "--format", "html")
    tagger = maxmargin.load(files / "tagger.model")
    found = tagger.predict_entities(read_document(tmp_path / "new.txt", tagger.layout, needs_tags=False).X)
    marks = [given for name, given in check_page(out).tags if name == "mark"]
    assert code == 0
    assert [mark["data-p"] for mark in marks] == [f"{e.probability:.6f}" for row in found for e in row]
    assert "&lt;script&gt;" in out
    texts = tmp_path / "a.html"
    for command in (("tag", folder / "model", "--html"), ("predict", folder / "model", "-f", "html")):
        assert run(*command, folder / "a.txt", "-o", texts).code == 0
        page = check_page(texts.read_text())
        assert page.row("PER") == ["3"]
        assert "Bob Dole" in texts.read_text()
    assert json.loads(run("predict", folder / "model", folder / "a.txt", "-f", "jsonl").out)["text"] == TEXT
    assert "give one of them" in usage_error("tag", folder / "model", "--html", "-f", "brat", text="Ann")
    assert "would take the place of" in input_error(
        "tag", folder / "model", folder / "a.txt", "--html", "-o", folder / "a.txt"
    )
    assert "There are none." in run("tag", folder / "model", "--html", "--threshold", 1, text="so it is").out
