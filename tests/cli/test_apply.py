"""`maxmargin predict`, `evaluate` and `inspect`."""

import json

import pytest

import maxmargin
from tests.cli.conftest import input_error, run, usage_error
from tests.sentences import column_text, respelled, tagged_sentences

SENTENCES = tagged_sentences()[18:]


def test_predictions_are_one_more_column(files):
    text = (files / "dev.txt").read_text()
    code, out, err = run("predict", files / "tagger.model", files / "dev.txt")
    assert (code, err) == (0, "")
    assert out == column_text([[(*token, token[2]) for token in sentence] for sentence in SENTENCES])
    untagged = column_text([[token[:2] for token in sentence] for sentence in SENTENCES])
    assert run("predict", files / "tagger.model", text=untagged).out == text


def test_other_lines_stay_and_probabilities_follow(files, tmp_path):
    text = "-DOCSTART- -X- O\n\nAnn\tNNP\r\nleft\tVB\n"
    code, out, _ = run("predict", files / "tagger.model", "-", "--probabilities", text=text)
    assert code == 0
    lines = out.split("\n")
    assert lines[:2] == ["-DOCSTART- -X- O O 1.0000", ""]  # as many columns more as others
    assert lines[2].startswith("Ann\tNNP\tB-PER\t0.")
    assert lines[3].startswith("left\tVB\tO\t0.")
    target = tmp_path / "out.txt"
    assert run("predict", files / "tagger.model", "-", "-o", target, text=text) == (0, "", "")
    assert target.read_text() == "-DOCSTART- -X- O O\n\nAnn\tNNP\tB-PER\nleft\tVB\tO\n"


def test_files_are_written_as_a_whole_or_not_at_all(files, tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("secret\n")
    target.chmod(0o600)
    assert run("predict", files / "tagger.model", "-", "-o", target, text="Ann NNP\n\n-DOCSTART-\n") == (0, "", "")
    assert target.read_text() == "Ann NNP B-PER\n\n-DOCSTART-\n"
    assert target.stat().st_mode & 0o777 == 0o600
    assert "it has 4 columns, but 3 or, without tags, 2 were expected" in input_error(
        "predict", files / "tagger.model", "-", "-o", target, text="Ann a b c\n"
    )
    assert target.read_text() == "Ann NNP B-PER\n\n-DOCSTART-\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert run("predict", files / "tagger.model", target, "-o", "/dev/null") == (0, "", "")
    missing = input_error("predict", files / "tagger.model", target, "-o", tmp_path / "none" / "a.txt")
    assert "its folder does not exist" in missing


def test_what_is_read_is_never_written(files, tmp_path):
    source, model, link = tmp_path / "a.txt", tmp_path / "a.model", tmp_path / "link"
    source.write_text("Ann NNP\n")
    model.write_bytes((files / "tagger.model").read_bytes())
    link.symlink_to(source)
    for target in (source, model, link):
        before = target.read_bytes()
        assert "The output would take the place of" in input_error("predict", model, source, "-o", target)
        assert target.read_bytes() == before


def test_files_in_another_encoding(files, tmp_path):
    (tmp_path / "a.txt").write_bytes("Ann NNP B-PER\né . O\n".encode("latin-1"))
    for command in ("predict", "evaluate", "inspect"):
        message = input_error(command, files / "tagger.model", tmp_path / "a.txt")
        assert "line 2: it is not utf-8: pass the encoding of the file" in message
        assert run(command, files / "tagger.model", tmp_path / "a.txt", "--encoding", "latin-1").code == 0
        assert "is no encoding" in usage_error(command, files / "tagger.model", "-", "--encoding", "x")


def test_predictions_in_other_formats(files, tmp_path):
    lines = json.dumps({"id": 1, "tokens": [["Ann", "NNP"], ["left", "VB"]]})
    code, out, _ = run("predict", files / "tagger.model", "-", "--format", "json", "-p", text=lines)
    assert code == 0
    found = json.loads(out)
    assert (found["id"], found["tags"]) == (1, ["B-PER", "O"])
    assert len(found["probabilities"]) == 2
    with_tags = json.dumps({"tokens": [["Ann", "NNP"]], "tags": ["O"]})
    out = run("predict", files / "tagger.model", "-", "-f", "json", text=with_tags).out
    assert json.loads(out) == {"tokens": [["Ann", "NNP"]], "tags": ["O"], "predicted": ["B-PER"]}
    message = input_error("predict", files / "tagger.model", "-", "-f", "conllu", text="1\tAnn" + "\t_" * 8 + "\n")
    assert "tokens have 1 column, but the tagger was trained on 2" in message


def test_sentences_without_tokens(files, tmp_path):
    texts = [[["Ann", "NNP"], ["left", "VB"]], []]
    lines = "\n".join(json.dumps({"tokens": tokens}) for tokens in [[], *texts])
    for options in ([], ["-p"]):
        outcome = run("predict", files / "tagger.model", "-", "-f", "json", *options, text=lines)
        assert outcome.code == 0
        assert [json.loads(line)["tags"] for line in outcome.out.splitlines()] == [[], ["B-PER", "O"], []]
    tagged = "\n".join(json.dumps({"tokens": tokens, "tags": ["B-PER", "O"][: len(tokens)]}) for tokens in texts)
    (tmp_path / "a.jsonl").write_text(tagged)
    assert run("train", tmp_path / "a.jsonl", "-m", tmp_path / "a.model").code == 0
    code, out, _ = run("evaluate", tmp_path / "a.model", tmp_path / "a.jsonl", "--json")
    assert (code, json.loads(out)["sentence_accuracy"]) == (0, 1.0)


def test_conllu_has_its_tags_in_their_column(tmp_path):
    text = (
        "# text = Ann left\n1-2\tAnnleft"
        + "\t_" * 8
        + "\n1\tAnn\t_\tX"
        + "\t_" * 6
        + "\n2\tleft\t_\tY"
        + "\t_" * 6
        + "\n\n"
    )
    (tmp_path / "a.conllu").write_text(text)
    assert run("train", tmp_path / "a.conllu", "-m", tmp_path / "a.model", "-q").code == 0
    assert run("predict", tmp_path / "a.model", "-", text=text.replace("\tX", "\t_").replace("\tY", "\t_")).out == text
    assert "no column for probabilities" in input_error("predict", tmp_path / "a.model", "-", "-p", text=text)


def in_scheme(scheme, sentences=SENTENCES):
    return column_text(respelled(sentences, scheme))


def test_evaluations_compare_tags_in_one_scheme(files):
    options = ("--confusion", "--calibration", "--json")
    expected = json.loads(run("evaluate", files / "tagger.model", files / "dev.txt", *options).out)
    assert expected["token_accuracy"] == expected["sentence_accuracy"] == 1
    for scheme in ("IOB1", "BILOU"):
        code, out, err = run("evaluate", files / "tagger.model", "-", *options, text=in_scheme(scheme))
        assert (code, json.loads(out)) == (0, expected)
        assert err == f"Tags of standard input are {scheme}: they are compared as IOB2.\n"


def test_predictions_are_in_the_scheme_of_the_file(tmp_path):
    train = ("train", "-", "-q", "-m", tmp_path / "a.model", "--scheme", "bilou")
    assert run(*train, text=in_scheme("IOB1", tagged_sentences()[:18])).code == 0
    assert "U-PER" in maxmargin.load(tmp_path / "a.model").classes_
    for scheme in ("IOB1", "IOB2", "BILOU"):
        lines = [line.split() for line in run("predict", tmp_path / "a.model", text=in_scheme(scheme)).out.split("\n")]
        assert [line[2] for line in lines if line] == [line[3] for line in lines if line]
    untagged = column_text([[token[:2] for token in sentence] for sentence in SENTENCES])
    assert run("predict", tmp_path / "a.model", text=untagged).out == in_scheme("IOB1")
    lines = json.dumps({"tokens": [token[:2] for token in SENTENCES[0]]})
    out = run("predict", tmp_path / "a.model", "-", "-f", "json", text=lines).out
    assert {tag[0] for tag in json.loads(out)["tags"]} == {"I", "O"}


def test_a_file_of_words_only(tmp_path):
    train = ("train", "-", "-q", "-m", tmp_path / "a.model", "--columns", "0")
    assert run(*train, text=column_text(tagged_sentences()[:18])).code == 0
    words = column_text([[token[:1] for token in sentence] for sentence in SENTENCES])
    tagged = column_text([[(token[0], token[2]) for token in sentence] for sentence in SENTENCES])
    assert run("predict", tmp_path / "a.model", text=words) == (0, tagged, "")
    assert run("inspect", tmp_path / "a.model", "-", text=words).code == 0


def test_evaluations(files):
    code, out, _ = run("evaluate", files / "tagger.model", files / "dev.txt", "--confusion", "--calibration")
    assert code == 0
    assert f"processed {sum(map(len, SENTENCES))} tokens with" in out
    assert "FB1: 100.00" in out
    assert "tags: 100.00% right" in out
    assert "expected calibration error" in out
    assert "True tags in rows" in out
    found = json.loads(run("evaluate", files / "tagger.model", files / "dev.txt", "--json").out)
    assert found["entities"]["overall"]["f1"] == 1
    assert found["token_accuracy"] == 1
    untagged = column_text([[token[:2] for token in sentence] for sentence in SENTENCES])
    assert "it has 2 columns, but 3 were expected" in input_error("evaluate", files / "tagger.model", text=untagged)


def test_weights_are_shown(files):
    code, out, _ = run("inspect", files / "tagger.model", "--top", "3")
    assert code == 0
    assert "features of B-PER" in out
    assert "transitions" in out
    found = json.loads(run("inspect", files / "tagger.model", "--json", "--tag", "B-LOC").out)
    assert [*found["features"]] == ["B-LOC"]
    names = [name for name, _ in found["features"]["B-LOC"]]
    assert "lower[-1]=in" in names
    assert "is not a label of the model" in input_error("inspect", files / "tagger.model", "--tag", "B-X")


def test_reasons_are_shown(files):
    code, out, _ = run("inspect", files / "tagger.model", files / "dev.txt", "--sentence", "2")
    assert code == 0
    assert "runner-up" in out
    assert "EFE" in out
    code, out, _ = run("inspect", files / "tagger.model", files / "dev.txt", "-s", "1", "-w", "1", "--rival", "B-LOC")
    assert code == 0
    assert "B-PER, not B-LOC, by a margin of" in out
    found = json.loads(run("inspect", files / "tagger.model", files / "dev.txt", "-w", "1", "--json").out)
    assert sum(c["value"] for c in found["contributions"]) == pytest.approx(found["margin"])
    assert "no sentence 99" in input_error("inspect", files / "tagger.model", files / "dev.txt", "-s", "99")
    assert "no word 99" in input_error("inspect", files / "tagger.model", files / "dev.txt", "-w", "99")
    for option in (["-s", "1"], ["-w", "1"], ["--rival", "O"]):
        assert "need a FILE" in usage_error("inspect", files / "tagger.model", *option)
    assert "without a FILE" in usage_error("inspect", files / "tagger.model", files / "dev.txt", "--tag", "O")


def test_a_tagger_of_one_tag(tmp_path):
    assert run("train", "-", "-m", tmp_path / "a.model", "-q", text="a O\n\nb O\n") == (0, "", "")
    assert "none" in run("inspect", tmp_path / "a.model", "-", text="a\n").out
    assert "a: O; nothing else is allowed" in run("inspect", tmp_path / "a.model", "-", "-w", "1", text="a\n").out
    assert json.loads(run("inspect", tmp_path / "a.model", "-", "--json", text="a\n").out)["words"][0]["margin"] is None
    assert run("predict", tmp_path / "a.model", text="c\n").out == "c O\n"


def test_files_that_are_no_taggers(files, tmp_path):
    (tmp_path / "a.model").write_text("no model")
    assert "cannot be loaded: it is not a file of this library" in input_error(
        "predict", tmp_path / "a.model", text="a O\n"
    )
    maxmargin.ChainCRF().save(tmp_path / "b.model")
    assert "holds a ChainCRF, not a tagger" in input_error("predict", tmp_path / "b.model", text="a O\n")
    assert "does not exist" in usage_error("predict", tmp_path / "none.model")
    data = (files / "tagger.model").read_bytes()
    (tmp_path / "c.model").write_bytes(data[:8] + (99).to_bytes(4, "little") + data[12:])
    assert "newer" in input_error("predict", tmp_path / "c.model", text="a O\n")
