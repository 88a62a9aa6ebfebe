"""Parameters of features are options of the command line: written once, with their defaults and what they are for."""

import inspect
import json
from dataclasses import fields
from functools import partial

import pytest
import typer
from typer.testing import CliRunner

from maxmargin import load
from maxmargin.cli.options import Choices, with_choices
from maxmargin.cli.text_commands import clustering
from maxmargin.parameters import has_parameters, parameter
from maxmargin.text import WindowFeatures, write_classes
from tests.cli.conftest import input_error, run, usage_error


@has_parameters
class WithLengths(WindowFeatures):
    """Features with an option of their own.

    Attributes
    ----------
    none : there are none
    """

    lengths: int = parameter("int", "The length from which on words count as equally long.", default=10, least=1)
    marks: bool = parameter("bool", "Marks in words.", default=False)


@pytest.fixture
def made():
    """A command of these features, and what it is called with."""
    app, found = typer.Typer(), []

    def command(choices: Choices, extra: int = 3) -> None:
        found.append((choices, extra))

    app.command()(with_choices(command, WithLengths))
    return lambda *arguments: CliRunner().invoke(app, [*arguments]), found


def test_a_new_option_is_in_python_and_on_the_command_line(made):
    call, found = made
    assert WithLengths(lengths=4).get_params()["lengths"] == 4
    assert "lengths : int, default=10\n    The length from which on words count as equally long." in WithLengths.__doc__
    shown = " ".join(call("--help").stdout.replace("│", "").split())
    assert "--lengths <int range> [x>=1] The length from which on words count as equally long. [default: 10]" in shown
    assert call("file").exit_code == call("file", "--lengths", "4", "--marks", "--extra", "5").exit_code == 0
    (before, _), (after, extra) = found
    assert repr(WithLengths(**before.features)) == "WithLengths()"
    assert (repr(WithLengths(**after.features)), extra) == ("WithLengths(lengths=4, marks=True)", 5)
    assert call("file", "--lengths", "0").exit_code == 2


def test_lists_of_names_are_files(made, tmp_path):
    call, found = made
    cities = tmp_path / "cities.txt"
    cities.write_text("New York\n\nRome\n")
    assert call("file", "--gazetteer", f"city={cities}").exit_code == 0
    assert found[0][0].features["gazetteers"] == {"city": ["New York", "Rome"]}
    assert found[0][0].lists == [cities]
    assert call("file", "--gazetteer", "cities.txt").exit_code == 2
    assert "mimesis" in str(call("file", "--gazetteer", "mimesis:xx").exception)  # knows no xx, or is not there


def test_two_of_a_title_are_refused(made, tmp_path):
    call, _ = made
    write_classes(tmp_path / "a.txt", {"Rome": "01"})
    for flag, value in (("gazetteer", tmp_path / "a.txt"), ("classes", tmp_path / "a.txt"), ("pattern", "x")):
        told = call("file", f"--{flag}", f"a={value}", f"--{flag}", f"a={value}").stderr
        assert f"--{flag} has the title 'a' twice: give one of both another name." in " ".join(
            told.replace("│", "").split()
        )


def test_lists_and_classes_have_the_encoding_of_sentences_if_not_utf_8(made, tmp_path):
    call, found = made
    cities, classes = tmp_path / "cities.txt", tmp_path / "classes.txt"
    cities.write_bytes("Zürich\n".encode("latin-1"))
    classes.write_bytes("Zürich\t01\n".encode())
    (tmp_path / "any.vec").write_bytes("Zürich 1 2\n".encode("latin-1"))
    given = ("file", "--gazetteer", f"city={cities}", "--classes", f"brown={classes}", "--vector-length", "none")
    given += ("--vectors", str(tmp_path / "any.vec"))
    outcome = call(*given, "--encoding", "latin-1")
    assert outcome.exit_code == 0, outcome
    assert found[0][0].features["gazetteers"] == {"city": ["Zürich"]}
    assert found[0][0].features["classes"] == {"brown": {"Zürich": "01"}}
    assert found[0][0].features["vector_length"] is None
    assert found[0][0].features["vectors"].words == ["Zürich"]
    assert "cities.txt, line 1: it is not utf-8" in str(call(*given).exception)
    assert call("file", "--vector-length", "long").exit_code == 2


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--vectors={}", b"a 1 2\nb 1\n", "odd.txt, line 2: the vector of 'b' has 1 numbers, but others 2."),
        ("--vectors={}", b"a 1 2\nb 1 nan\n", "odd.txt, line 2: the vector of 'b' contains NaN or infinity."),
        ("--vectors={}", b"\xff 1 2\n", "odd.txt, line 1: the word is not utf-8: pass the encoding of the file."),
        ("--classes=a={}", b"a 0\nb 1\na 1\n", "odd.txt, line 3: the word 'a' has the class '1', but had '0' before."),
        ("--template={}", b"U00:%x[0,0]\nU01:%x[0\n", "odd.txt: Line 2 of the template has a broken macro, 'U01:%x[0'"),
        ("--gazetteer=a={}", b"\n \n", "odd.txt holds no names, but blank lines at most."),
    ],
)
def test_odd_files_are_told_in_a_sentence(option, content, message, files, tmp_path):
    odd = tmp_path / "odd.txt"
    odd.write_bytes(content)
    assert message in input_error("train", files / "train.txt", option.format(odd))


def test_a_folder_of_lists_has_no_title(made, tmp_path):
    assert "must be a file of names, but is a folder" in str(made[0]("file", "--gazetteer", f"a={tmp_path}").exception)


def test_all_parameters_are_options(files, tmp_path):
    shown = run("train", "--help").out
    for argument in fields(WindowFeatures):
        assert argument.metadata.get("flag", f"--{argument.name.replace('_', '-')}") in shown
    target = tmp_path / "any.model"
    given = ("--window", 1, "--affixes", 0, "--no-shapes", "--word-ngrams", 1, "--tag-ngrams", 2)
    assert run("train", files / "train.txt", "--model", target, "--tol", 0.5, *given).code == 0
    assert repr(load(target).features_) == (
        "WindowFeatures(affixes=0, shapes=False, tag_ngrams=2, window=1, word_ngrams=1)"
    )
    assert "Invalid value for '--window'" in usage_error("train", files / "train.txt", "--window", -1)


def test_defaults_are_those_of_the_class():
    options = inspect.signature(with_choices(lambda choices: None)).parameters
    for name, argument in inspect.signature(WindowFeatures).parameters.items():
        assert options[name].default == argument.default


def test_what_comes_from_files(files, tmp_path, interpreted_loops):
    write_classes(tmp_path / "classes.tsv", {"the": "01", "Rome": "110"})
    (tmp_path / "vectors.txt").write_text("the 0.1 0.2\nRome 1 2\n")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "city.txt").write_text("Rome\n")
    given = ("--classes", f"brown={tmp_path / 'classes.tsv'}", "--class-prefixes", "1,2", "--near-affixes", 2)
    given += ("--vectors", tmp_path / "vectors.txt", "--vector-length", 0.5, "--vector-window", 1, "--elsewhere")
    given += ("--gazetteer", tmp_path / "lists", "--loose-names", "--pattern", "year=[0-9]=?", "--char-ngrams", 3)
    target = tmp_path / "any.model"
    assert run("train", files / "train.txt", "--model", target, "--tol", 0.5, *given).code == 0
    features = load(target).features_
    assert features.classes == {"brown": {"the": "01", "Rome": "110"}}
    assert (features.class_prefixes, features.patterns) == ((1, 2), {"year": "[0-9]=?"})
    assert (features.gazetteers, features.loose_names) == ({"city": ["Rome"]}, True)
    assert features.vectors.words == ["the", "Rome"]
    assert run("predict", target, files / "train.txt").code == 0
    assert "'4,x' must be whole numbers" in usage_error("train", files / "train.txt", "--class-prefixes", "4,x")
    assert "such as brown=paths.txt." in usage_error("train", files / "train.txt", "--classes", "paths.txt")


def test_features_are_hashed(files, tmp_path, interpreted_loops):
    target = tmp_path / "any.model"
    assert run("train", files / "train.txt", "--model", target, "--max-passes", 2, "--hashed", 64).code == 0
    assert load(target).model_.n_features_in_ == 64
    assert run("predict", target, files / "train.txt").code == 0


def test_options_are_searched(files, tmp_path, interpreted_loops):
    target = tmp_path / "any.model"
    given = ("--max-passes", 1, "--tune", "quick", "--time-limit", 0.01, "--prefer", "recall", "--json")
    outcome = run("train", files / "train.txt", "--model", target, *given)
    assert outcome.code == 0
    assert "as given" in outcome.err
    assert json.loads(outcome.out)["search"]["trials"] == []  # there was no time
    assert load(target).prefer == "recall"


def test_a_scheme_inside_and_two_stages(files, tmp_path, interpreted_loops):
    target = tmp_path / "any.model"
    given = ("--max-passes", 1, "--inside", "iobes", "--two-stages")
    assert run("train", files / "train.txt", "--model", target, *given).code == 0
    tagger = load(target)
    assert (tagger.inside_, tagger.first_.inside_, tagger.two_stages) == ("IOBES", "IOBES", True)
    lines = run("predict", target, files / "train.txt", "--probabilities").out.splitlines()
    assert {line.split()[-2] for line in lines if line} <= {*tagger.classes_}
    assert run("evaluate", target, files / "train.txt").code == 0


def test_classes_are_learned_from_text(files, tmp_path, interpreted_loops, monkeypatch):
    text, target = tmp_path / "text.txt", tmp_path / "any.model"
    text.write_text("".join(f"the w{k} ran w{k}\n" for k in range(9)))
    monkeypatch.setattr(clustering, "learn_classes", partial(clustering.learn_classes, n_classes=4, max_passes=1))
    monkeypatch.setattr(clustering, "learn_vectors", partial(clustering.learn_vectors, size=3))
    given = ("--max-passes", 1, "--unlabelled", text)
    assert run("train", files / "train.txt", "--model", target, *given).code == 0
    classes = load(target).features_.classes["class"]
    assert len({*classes.values()}) == 4
    assert "w7" in classes
    assert "would take the place of" in run("train", files / "train.txt", "--model", text, *given).err
    assert run("train", files / "train.txt", "--model", target, *given, "--learn", "both").code == 0
    features = load(target).features_
    assert features.classes["class"] == classes
    assert (features.vectors.width, "w7" in features.vectors.words) == (3, True)
    for wrong in (("--learn", "vectors"), (*given, "--learn", "both", "--vectors", text)):
        assert run("train", files / "train.txt", "--model", target, *wrong).code != 0


def test_a_longer_memory(files, tmp_path, interpreted_loops):
    target = tmp_path / "long.model"
    assert run("train", files / "train.txt", "--model", target, "--max-passes", 2, "--order", 2).code == 0
    tagger = load(target)
    assert tagger.model_.order == 2
    assert tagger.model_.coef_.trigrams.nnz
    assert run("predict", target, files / "train.txt").code == 0
