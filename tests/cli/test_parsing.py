"""`maxmargin train --parse`, and what `predict` and `evaluate` make of a parser."""

import io
import json

import pytest

import maxmargin
from maxmargin import DependencyCRF, DependencySVM, Tagger
from maxmargin.runtime import interpreted
from maxmargin.text import Sentence, Word, read_conllu, write_conllu
from tests.cli.conftest import input_error, run, usage_error
from tests.pages import check_page

NOUNS, VERBS = ("Ann", "Bob", "dogs", "cats"), ("see", "like", "know")
CROSSING = "1 a _ X _ _ 3 dep _ _|2 b _ Y _ _ 4 dep _ _|3 c _ X _ _ 4 dep _ _|4 d _ Y _ _ 0 root _ _"


def sentence(*lines, comments=()):
    return Sentence([Word(*line.split()) for line in lines], comments)


def text_of(sentences):
    out = io.StringIO()
    write_conllu(out, sentences)
    return out.getvalue()


SENTENCES = [
    sentence(
        f"1 {NOUNS[i % 4]} _ NOUN _ _ 2 nsubj _ _",
        f"2 {VERBS[i % 3]} _ VERB _ _ 0 root _ _",
        "2.1 seen _ VERB _ _ _ _ 2:conj _",
        f"3 {NOUNS[(i + 1) % 4]} _ NOUN _ _ 2 obj _ _",
        "4 . _ PUNCT _ _ 2 punct _ _",
        comments=[f"sent_id = {i}"],
    )
    for i in range(8)
]


@pytest.fixture(scope="module", autouse=True)
def _interpreted_loops():
    with interpreted():
        yield


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A folder with train.conllu and the parser of it."""
    folder = tmp_path_factory.mktemp("trees")
    (folder / "train.conllu").write_text(text_of(SENTENCES))
    outcome = run(
        "train", "--parse", folder / "train.conllu", "-o", folder / "parser.model", "--type", "svm", "--max-passes", "6"
    )
    assert (outcome.code, outcome.out) == (0, ""), outcome
    assert "8 sentences, 32 words, 4 labels" in outcome.err
    assert "certified gap" in outcome.err
    assert "The parser is in" in outcome.err
    return folder


def test_a_parser_is_a_pipeline_of_sentences(trees):
    parser = maxmargin.load(trees / "parser.model")
    assert isinstance(parser[-1], DependencySVM)
    assert parser[-1].projective
    assert parser[-1].single_root
    sentences = read_conllu(trees / "train.conllu")
    assert parser.predict(sentences) == [each.arcs for each in sentences]
    tokens = [each.tokens("form", "upos") for each in sentences]
    assert parser.predict(tokens) == parser.predict(sentences)


def test_predictions_are_trees_of_conllu(trees):
    """All but trees stays: comments, and words that are not written; what there was of trees goes."""
    empty = [each.with_arcs([(0, "_")] * 4) for each in SENTENCES]
    assert run("predict", trees / "parser.model", text=text_of(empty)) == (0, text_of(SENTENCES), "")
    target = trees / "out.conllu"
    assert run("predict", trees / "parser.model", trees / "train.conllu", "-o", target) == (0, "", "")
    assert target.read_text() == text_of(SENTENCES)


def test_the_page_of_a_parser_draws_trees(trees, tmp_path):
    files, target = (trees / "parser.model", trees / "train.conllu"), tmp_path / "fit.html"
    assert run("report", *files, trees / "parser.model", "-o", target).code == 0
    text = target.read_text()
    elements = check_page(text)
    asked = f"maxmargin train --parse {trees}/train.conllu -o {trees}/parser.model --type svm --max-passes 6"
    assert elements.row("command") == [asked]
    assert elements.row("right heads and labels") == ["100.00 %"]
    assert elements.row("parser.model")[-3:] == ["1.000", "0", "0"]
    assert text.count('aria-label="arcs"') == len(SENTENCES)
    assert ">Ann</text>" in text
    assert run("report", trees / "parser.model", "-o", target).code == 0
    assert "There are no held-out examples" in target.read_text()
    assert "--train compares tags" in usage_error("report", *files, "--train", files[1], "-o", target)
    Tagger().save(tmp_path / "a.model")
    error = input_error("report", *files, tmp_path / "a.model", "-o", target)
    assert "holds no parser with the features of parser.model" in error


def test_scores_leave_out_punctuation(trees, tmp_path):
    file = tmp_path / "gold.conllu"
    wrong = SENTENCES[0].with_arcs([(2, "nsubj"), (0, "root"), (1, "obj"), (1, "punct")])
    other = SENTENCES[1].with_arcs([(2, "obj"), (0, "root"), (2, "obj"), (2, "punct")])
    file.write_text(text_of([wrong, other]))
    code, out, err = run("evaluate", trees / "parser.model", file)
    assert (code, err) == (0, "")
    assert out == "UAS 83.33%, LAS 66.67% of 6 words, punctuation left out\n"
    found = json.loads(run("evaluate", trees / "parser.model", file, "--json", "--intervals").out)
    assert found["uas"] == 5 / 6
    assert found["las"] == found["interval"]["value"] == 4 / 6
    assert found["words"] == 6
    compared = json.loads(run("evaluate", trees / "parser.model", trees / "parser.model", file, "--json").out)
    assert compared["comparison"]["difference"]["value"] == 0
    told = run("evaluate", trees / "parser.model", trees / "parser.model", file).out
    assert "LAS, with intervals of 95 %:" in told
    assert "the trees of sentences are swapped" in told


def test_held_out_trees_several_roots_and_other_columns(trees, tmp_path):
    """Trees of several roots let parsers have several; tokens are made of the columns that are asked for."""
    file, target = tmp_path / "train.conllu", tmp_path / "a.model"
    two = [
        each.with_arcs([(0, "root"), (0, "root"), (2, "obj"), (2, "punct")]).with_column("xpos", "NVNP")
        for each in SENTENCES
    ]
    file.write_text(text_of(two))
    options = [
        "--columns",
        "form,xpos",
        "--dev",
        file,
        "-o",
        target,
        "--crossing",
        "--max-passes",
        "20",
        "-q",
        "--json",
    ]
    code, out, err = run("train", "--parse", file, *options)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["held_out"] == {"uas": 1.0, "las": 1.0, "words": 24}
    assert (found["labels"], found["sentences"]) == (["obj", "punct", "root"], 8)
    assert found["passes"] <= 20
    parser = maxmargin.load(target)
    assert isinstance(parser[-1], DependencyCRF)
    assert not parser[-1].projective
    assert not parser[-1].single_root
    assert parser[0].columns == ("form", "xpos")


def test_arcs_that_cross_are_lifted_and_told_of(tmp_path):
    file = tmp_path / "train.conllu"
    file.write_text(text_of([sentence(*CROSSING.split("|"))]))
    outcome = run("train", "--parse", file, "-o", tmp_path / "a.model", "--max-passes", "5")
    assert outcome.code == 0
    assert "in 1 sentence arcs cross: words there are attached further up; --crossing learns such trees" in outcome.err
    crossing = run("train", "--parse", "--crossing", file, "-o", tmp_path / "a.model", "--max-passes", "5")
    assert crossing.code == 0
    assert "further up" not in crossing.err


def test_bad_trees_name_file_and_line(tmp_path):
    file = tmp_path / "bad.conllu"

    def fault(*lines):
        file.write_text(text_of([SENTENCES[0], sentence(*lines)]))
        return input_error("train", "--parse", file, "-o", tmp_path / "a.model")

    no_head = fault("1 Ann _ NOUN _ _ 0 root _ _", "2 sees _ VERB _ _ _ _ _ _")
    assert no_head == f"{file}, line 9: the head of 'sees' is '_', not a number."
    beyond = fault("1 Ann _ NOUN _ _ 3 nsubj _ _", "2 sees _ VERB _ _ 0 root _ _")
    assert beyond == f"{file}, line 8: the sentence has the head 3 at word 1, but heads are 0, the root, to 2."
    assert "is no tree: from head to head" in fault("1 a _ X _ _ 2 dep _ _", "2 b _ X _ _ 1 dep _ _")
    assert not (tmp_path / "a.model").exists()


def test_options_that_are_none_of_parsers(trees, tmp_path):
    file, parser = trees / "train.conllu", trees / "parser.model"
    maxmargin.load(parser)[-1].save(tmp_path / "no_parser.model")
    for option in (("--scheme", "bilou"), ("--tags", "xpos"), ("--from", parser), ("--window", "3")):
        expected = f"--parse trains a parser, not a tagger: leave out {option[0]}."
        assert expected in usage_error("train", "--parse", file, "-o", trees / "a.model", *option)
    assert "it needs --parse" in usage_error("train", "--crossing", file, "-o", trees / "a.model")
    assert "leave out --format" in input_error("train", "--parse", file, "-o", trees / "a.model", "--format", "json")
    assert "column must be one of id, form" in input_error(
        "train", "--parse", file, "-o", trees / "a.model", "--columns", "form,pos"
    )
    assert "leave out --format" in input_error("predict", parser, file, "--format", "columns")
    assert "no column for probabilities" in input_error("predict", parser, file, "--probabilities")
    assert "those of tags, not of parsers" in input_error("evaluate", parser, file, "--confusion")
    assert "holds no parser" in input_error("evaluate", parser, tmp_path / "no_parser.model", file)
    assert "holds a parser, not a tagger" in input_error("inspect", parser)
