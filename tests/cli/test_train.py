"""`maxmargin train` and `maxmargin path`."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import maxmargin
from maxmargin import ChainCRF, ChainSVM, SegmentCRF, Tagger
from maxmargin.estimators.foundation import predictor
from maxmargin.execution.threads import count_cores
from maxmargin.tagger import light_tagger
from maxmargin.wording import count_of
from tests.cli.conftest import input_error, run, usage_error
from tests.sentences import column_text, respelled, tagged_sentences

COMMANDS = ["predict", "--probabilities"], ["evaluate"]
SENTENCES = tagged_sentences()
TOKENS = [[token[:2] for token in sentence] for sentence in SENTENCES]
TAGS = [[token[2] for token in sentence] for sentence in SENTENCES]


def test_a_column_file_is_enough(files, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("train", files / "train.txt")
    assert (code, out) == (0, "")
    n_tokens = sum(map(len, SENTENCES[:18]))
    assert f"train.txt: 18 sentences, {n_tokens} tokens, 7 tags" in err
    assert "Tags are IOB2" in err
    assert "certified gap" in err
    assert "OPTIMAL" in err
    assert "The tagger is in train.model" in err
    tagger = maxmargin.load("train.model")
    assert tagger.predict(TOKENS) == TAGS
    assert (tagger.layout.x, tagger.layout.y, tagger.layout.width) == ((0, 1), 2, 3)
    assert tagger.scheme_ == "IOB2"


def test_quiet_and_json(files, tmp_path):
    target = tmp_path / "a.model"
    code, out, err = run("train", files / "train.txt", "-m", target, "--dev", files / "dev.txt", "--quiet", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["status"] in ("OPTIMAL", "EARLY_STOPPED", "HELD_OUT")
    assert found["held_out"] == 1
    assert found["relative_gap"] >= 0
    assert found["tags"] == sorted({tag for tags in TAGS for tag in tags})
    assert found["sentences"] == 18


def test_threads_are_those_that_are_asked_for(files, tmp_path, monkeypatch):
    seen, reading_on = [], predictor.reading_on
    monkeypatch.setattr(predictor, "reading_on", lambda n_jobs: seen.append(n_jobs) or reading_on(n_jobs))
    monkeypatch.setattr(light_tagger, "MOST", 0)  # sentences are many
    for option, said, jobs in (((), count_of(count_cores(), "thread"), -1), (("--jobs", "3"), "3 threads", 3)):
        target = tmp_path / "a.model"
        err = run("train", files / "train.txt", "-m", target, "--max-passes", "2", *option).err
        assert f"Training on {said} (--jobs)." in err
        assert maxmargin.load(target).model_.n_jobs == jobs
        seen.clear()
        found = [run(*command, files / "tagger.model", files / "dev.txt", *option) for command in COMMANDS]
        assert [outcome.code for outcome in found] == [0, 0]
        assert set(seen) == {jobs}
        assert found[0].out == run(*COMMANDS[0], files / "tagger.model", files / "dev.txt", "--jobs", "1").out


def test_held_out_scores_are_shown(files, tmp_path):
    outcome = run("train", files / "train.txt", "-m", tmp_path / "a.model", "--dev", files / "dev.txt")
    assert outcome.code == 0
    assert "held-out F1" in outcome.err
    assert "held-out F1 100.00." in outcome.err


def test_standard_input_and_options(tmp_path):
    target = tmp_path / "a.model"
    (tmp_path / "cities.txt").write_text("New York\nRome\n")
    options = ["--type", "svm", "-C", "1", "--scheme", "bilou", "--columns", "0", "--gazetteer"]
    code, _, err = run(
        "train", "-", "-m", target, *options, f"city={tmp_path / 'cities.txt'}", text=column_text(SENTENCES)
    )
    assert code == 0
    assert "Tags are IOB2, converted to BILOU" in err
    tagger = maxmargin.load(target)
    assert isinstance(tagger.model_, ChainSVM)
    assert tagger.model_.C == 1
    assert "U-PER" in tagger.classes_
    assert tagger.layout.x == 0
    assert "city=begin" in tagger.model_.feature_names_in_
    assert tagger.predict([["Ann", "lives", "in", "Rome", "."]]) == [["U-PER", "O", "O", "U-LOC", "O"]]


def test_lists_made_of_the_training_data(tmp_path):
    people = [[("Mr", "O"), (f"Name{i}", "B-PER"), ("left", "O")] for i in range(60)]
    (tmp_path / "train.txt").write_text(column_text(people[:30]))
    (tmp_path / "dev.txt").write_text(column_text(people[30:]))
    (tmp_path / "names.txt").write_text("".join(f"{sentence[1][0]}\n" for sentence in people[:30]))
    (tmp_path / "more.txt").write_text("".join(f"Name{i}\nOther{i}\n" for i in range(30)))
    command = ["train", tmp_path / "train.txt", "-o", tmp_path / "a.model", "--dev", tmp_path / "dev.txt"]
    command += ["--max-passes", "3", "--type", "svm"]
    code, _, err = run(*command, "--gazetteer", f"own={tmp_path / 'names.txt'}")
    assert code == 0
    assert "The list 'own' is made of the entities to train on" in err
    assert "Warning" not in err
    code, _, err = run(*command, "--gazetteer", f"mixed={tmp_path / 'more.txt'}")
    assert code == 0
    assert "Warning: The list 'mixed' has 100% of the entities to train on, but 0% of those held out" in err
    assert run(*command, "--gazetteer", f"mixed={tmp_path / 'more.txt'}", "--quiet") == (0, "", "")


def test_a_tab_can_be_typed(tmp_path):
    target = tmp_path / "a.model"
    assert run("train", "-", "-m", target, "--separator", r"\t", text="New York\tB-LOC\nfell\tO\n").code == 0
    assert maxmargin.load(target).layout.separator == "\t"


def test_conllu_and_json_lines(tmp_path):
    lines = [
        json.dumps({"tokens": [t[0] for t in s], "tags": [t[2] for t in s], "id": k}) for k, s in enumerate(SENTENCES)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert run("train", tmp_path / "a.jsonl", "-m", tmp_path / "a.model").code == 0
    assert maxmargin.load(tmp_path / "a.model").layout.format == "json"
    rows = [[f"{k}\t{t[0]}\t_\t{t[1]}\t_\t_\t_\t_\t_\t_" for k, t in enumerate(s, start=1)] for s in SENTENCES]
    (tmp_path / "a.conllu").write_text("# a comment\n" + "\n\n".join("\n".join(row) for row in rows) + "\n\n")
    code, _, err = run("train", tmp_path / "a.conllu", "-m", tmp_path / "b.model")
    assert code == 0
    assert "Tags are" not in err
    tagger = maxmargin.load(tmp_path / "b.model")
    assert tagger.scheme_ is None
    assert "NNP" in tagger.classes_


def test_a_checkpoint_is_gone_on_from(files, tmp_path, monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.frame.checkpoint.EVERY", 1e-9)

    def train(target, *options):
        outcome = run("train", files / "train.txt", "-m", tmp_path / target, *options)
        assert outcome.code == 0, outcome
        return maxmargin.load(tmp_path / target)

    checkpoint = tmp_path / "state"
    train("a.model", "--checkpoint", checkpoint, "--max-passes", "3")
    assert checkpoint.exists()
    resumed, whole = train("b.model", "--checkpoint", checkpoint), train("c.model")
    assert not checkpoint.exists()
    assert (resumed.model_._w == whole.model_._w).all()
    checkpoint.write_text("something else")
    assert "cannot be resumed from" in input_error(
        "train", files / "train.txt", "-m", tmp_path / "d.model", "--checkpoint", checkpoint
    )


def test_path_finds_a_C_and_draws_the_curve(files, tmp_path):
    pytest.importorskip("matplotlib")
    target, plot = tmp_path / "a.model", tmp_path / "a.png"
    options = ["--dev", files / "dev.txt", "-m", target, "-C", "1e-6,1", "--plot", plot, "--json"]
    code, out, err = run("path", files / "train.txt", *options)
    assert code == 0
    assert "█" in err
    found = json.loads(out)
    assert [row["C"] for row in found["path"]] == pytest.approx([1e-6, 1])
    assert found["C"] == pytest.approx(1)
    assert f"The best C is {found['C']:g} of those that were tried, at their end" in err
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert isinstance(maxmargin.load(target).model_, ChainCRF)
    assert maxmargin.load(target).predict(TOKENS) == TAGS


def test_path_holds_sentences_out_by_itself(files, tmp_path):
    target = tmp_path / "a.model"
    assert run("path", files / "train.txt", "-m", target, "-C", "1,10", "--type", "svm", "--quiet") == (0, "", "")
    tagger = maxmargin.load(target)
    assert tagger.model_.C in (pytest.approx(1), pytest.approx(10))
    assert tagger.predict(TOKENS) == TAGS
    message = input_error("path", "-", "-m", target, text="a B-X\n")
    assert "too few to hold some out" in message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a B-X\nb\n", "standard input, line 2: it has 1 column, but line 1 has 2"),
        ("", "holds no sentence"),
        ("\n\n", "holds no sentence"),
        ("word\n", "has one column only"),
        (b"a O\n\xff\xfe O\n", "line 2: it is not utf-8"),
    ],
)
def test_bad_files(tmp_path, text, problem):
    assert problem in input_error("train", "-", "-m", tmp_path / "a.model", text=text)
    assert not (tmp_path / "a.model").exists()


def test_bad_tags_are_located(files, tmp_path):
    target = ("-m", tmp_path / "a.model")
    message = input_error("train", "-", *target, "--scheme", "bio", text="a O\nb X-PER\n")
    assert message.startswith("standard input, line 2: the sentence has 'X-PER'")
    code, _, err = run("train", "-", *target, text="a O\nb I-PER\nc B-PER\n\nd B-PER\ne O\n")
    assert code == 0
    assert "Warning: 1 of 5 tags is wrong in IOB2, the scheme that fits best" in err
    assert "standard input, line 2: the sentence goes from 'O' to 'I-PER'" in err
    (tmp_path / "dev.txt").write_text("Ann NNP B-PER\n\nParis NNP B-CITY\n\nRome NNP B-CITY\n")
    code, _, err = run("train", files / "train.txt", *target, "--dev", tmp_path / "dev.txt")
    assert code == 0
    assert "dev.txt, line 3: 'B-CITY' is not among the tags of" in err
    (tmp_path / "dev.txt").write_text("Ann NNP B-PER\nParis NNP CITY\n")
    message = input_error("train", files / "train.txt", *target, "--dev", tmp_path / "dev.txt")
    assert "dev.txt, line 2: the sentence has 'CITY'" in message
    (tmp_path / "dev.txt").write_text("Ann B-PER\n")
    message = input_error("train", files / "train.txt", *target, "--dev", tmp_path / "dev.txt")
    assert "dev.txt, line 1: it has 2 columns, but 3 were expected" in message


CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP I-ORG
rejects VBZ B-VP O
German JJ B-NP I-MISC
call NN I-NP O

Peter NNP B-NP I-PER
Blackburn NNP I-NP I-PER
left VBD B-VP O
Rome NNP B-NP I-LOC
Lima NNP I-NP B-LOC

In IN B-PP O
Rome NNP B-NP B-LOC
, , O O
Lima NNP B-NP I-LOC

the DT B-NP O
British JJ I-NP B-MISC
call NN I-NP O
"""


def test_files_like_those_of_conll_2003(tmp_path):
    """IOB1, two of whose tags are B after O."""
    (tmp_path / "a.txt").write_text(CONLL_2003)
    code, _, err = run("train", tmp_path / "a.txt", "-m", tmp_path / "a.model", "--dev", tmp_path / "a.txt")
    assert code == 0
    assert err.count("Warning: 2 of 16 tags are wrong in IOB1, the scheme that fits best") == 2  # training, held-out
    assert "a.txt, line 15: the sentence goes from 'O' to 'B-LOC' at position 1, which IOB1 forbids" in err
    assert "a.txt, line 20: the sentence goes from 'O' to 'B-MISC'" in err
    assert "Tags are IOB1: predictions keep to its rules." in err
    assert "held-out F1" in err
    assert "never predicted" not in err
    tagger = maxmargin.load(tmp_path / "a.model")
    assert tagger.scheme_ == "IOB1"
    assert "B-MISC" not in tagger.classes_
    code, out, err = run("evaluate", tmp_path / "a.model", tmp_path / "a.txt")
    assert code == 0
    assert "a.txt, line 15:" in err
    assert "with 8 phrases" in out


def test_a_sentence_of_odd_tags(tmp_path):
    text = column_text([*SENTENCES, [("a", "DT", "o"), ("Bo", "NNP", "b-PER"), ("?", ".", "?")]])
    n_lines = text.count("\n")
    code, _, err = run("train", "-", "-m", tmp_path / "a.model", text=text)
    assert code == 0
    assert "Warning: 3 of 145 tags are wrong in IOB2" in err
    assert f"standard input, line {n_lines - 1}: the sentence has '?' at position 2, which is no tag" in err
    assert maxmargin.load(tmp_path / "a.model").classes_.tolist() == sorted({tag for tags in TAGS for tag in tags})
    many = [[(word, "M-PER" if tag == "I-PER" else tag) for word, _, tag in sentence] for sentence in SENTENCES]
    code, _, err = run("train", "-", "-m", tmp_path / "a.model", text=column_text(many))
    assert code == 0
    assert "the sentence has 'M-PER' at position 1, but tags are" in err
    assert "Without a scheme, predictions keep to no rules." in err


def test_held_out_tags_of_another_scheme(files, tmp_path):
    (tmp_path / "dev.txt").write_text(column_text(respelled(SENTENCES[18:], "IOB1")))
    code, _, err = run("train", files / "train.txt", "-m", tmp_path / "a.model", "--dev", tmp_path / "dev.txt")
    assert code == 0
    assert "Warning" not in err
    assert "held-out F1 100.00." in err


def test_targets_that_cannot_be_written_are_found_before_training(files, tmp_path):
    assert "its folder does not exist" in input_error("train", files / "train.txt", "-m", tmp_path / "no" / "a.model")
    assert "it is a folder" in input_error("train", files / "train.txt", "-m", tmp_path)
    assert "No such file" in input_error("train", tmp_path / "none.txt", "-m", tmp_path / "a.model")
    assert input_error("train", tmp_path) == f"{tmp_path}: there are no files in this folder."


def test_a_model_never_takes_the_place_of_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("data.model", "train.txt", "dev.txt"):
        (tmp_path / name).write_text("a O\n")
    for arguments in (
        ["data.model"],
        ["train.txt", "-m", "train.txt"],
        ["train.txt", "--dev", "dev.txt", "-m", "dev.txt"],
    ):
        for command in ("train", "path"):
            assert f"would take the place of {arguments[-1]}" in input_error(command, *arguments)
        assert (tmp_path / arguments[-1]).read_text() == "a O\n"
    for option in (["--gazetteer", "X=dev.txt"], ["--checkpoint", "dev.txt"]):
        message = input_error("train", "train.txt", "--model", "dev.txt", *option)
        assert "The model would take the place of dev.txt" in message
    assert "would take the place of new.png" in input_error("path", "train.txt", "-m", "new.png", "--plot", "new.png")
    assert (tmp_path / "dev.txt").read_text() == "a O\n"


def test_the_model_is_an_output_like_others(files, tmp_path):
    (tmp_path / "a.model").write_text("an old one")
    (tmp_path / "a.model").chmod(0o600)
    for option in ("-o", "--output", "-m", "--model"):
        assert run("train", files / "train.txt", "-q", "--max-passes", "1", option, tmp_path / "a.model").code == 0
    assert (tmp_path / "a.model").stat().st_mode & 0o777 == 0o600
    assert isinstance(maxmargin.load(tmp_path / "a.model"), Tagger)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-"], "say where to write it"),
        (["-", "-m", "a.model", "--encoding", "none"], "no encoding that Python knows"),
        (["-", "-m", "a.model", "--columns", "0,,1"], "must be columns with commas"),
        (["-", "-m", "a.model", "--gazetteer", "city"], "must be a name and a file"),
        (["-", "-m", "a.model", "--format", "xml"], "Invalid value for '--format'"),
        (["-", "-m", "a.model", "--window", "-1"], "Invalid value for '--window'"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage(monkeypatch, tmp_path, arguments, problem):
    monkeypatch.chdir(tmp_path)
    assert problem in usage_error("train", *arguments, text="a O\n")


def test_wrong_options_of_models_and_columns(tmp_path):
    target = ("-m", tmp_path / "a.model")
    assert "C must be a positive number" in input_error("train", "-", *target, "-C", "-1", text="a O\n")
    assert "scheme must be one of" in input_error("train", "-", *target, "--scheme", "xyz", text="a O\n")
    assert "Column 7 was asked for" in input_error("train", "-", *target, "--columns", "7", text="a O\n")
    for columns in ("0,1", "0,-1"):
        assert "cannot be part of the tokens" in input_error("train", "-", *target, "--columns", columns, text="a O\n")
    assert "Columns must be numbers" in input_error("train", "-", *target, "--columns", "form", text="a O\n")
    assert "positive numbers with commas" in usage_error("path", "-", *target, "-C", "1,x", text="a O\n")


@pytest.mark.parametrize("is_training", [False, True])
def test_ctrl_c_after_a_path_keeps_what_was_found(files, tmp_path, monkeypatch, is_training):
    fit = Tagger.fit

    def interrupted(tagger, X, y):
        if not is_training:
            raise KeyboardInterrupt
        return fit(tagger, X, y, callback=lambda _: True)

    monkeypatch.setattr(Tagger, "fit", interrupted)
    code, out, err = run("path", files / "train.txt", "-m", tmp_path / "a.model", "-C", "1", "--json")
    assert code == 130
    assert "Interrupted: this is the best model so far." in err
    assert json.loads(out)["status"] == ("INTERRUPTED" if is_training else "OPTIMAL")
    assert maxmargin.load(tmp_path / "a.model").model_.C == 1


def start_training(folder):
    """A process that trains for long, with one certificate to show for it."""
    sentences = [[(f"w{(7 * i + 3 * t * t) % 97}", f"t{(i * t) % 5}") for t in range(30)] for i in range(400)]
    (folder / "train.txt").write_text(column_text(sentences))
    code = (
        "from maxmargin.solvers.frame import interrupt; interrupt.PATIENCE = 1e9; from maxmargin.cli import app; app()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "train", "train.txt", "--tol", "1e-12", "-C", "1e6"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for line in process.stderr:
        if line.startswith("pass"):
            break
    return process


def test_ctrl_c_saves_the_best_model_so_far(tmp_path):
    process = start_training(tmp_path)
    for _ in range(5):  # by somebody who cannot wait
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        if process.poll() is not None:
            break
    rest = process.stderr.read()
    assert process.wait() == 130, rest
    assert "Interrupted: this is the best model so far." in rest
    assert len(maxmargin.load(tmp_path / "train.model").classes_) == 5


@pytest.mark.parametrize("command", ["train", "path"])
def test_ctrl_c_while_the_model_is_written(files, tmp_path, monkeypatch, command):
    save = Tagger.save

    def interrupted(tagger, path):
        signal.raise_signal(signal.SIGINT)
        save(tagger, path)

    monkeypatch.setattr(Tagger, "save", interrupted)
    assert run(command, files / "train.txt", "-q", "-C", "1", "-m", tmp_path / "a.model").code == 130
    assert maxmargin.load(tmp_path / "a.model").predict(TOKENS) == TAGS
    monkeypatch.setattr(Tagger, "save", save)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert run(command, files / "train.txt", "-q", "-C", "1", "-m", tmp_path / "a.model").code == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_there_is_a_model(files, tmp_path, monkeypatch):
    monkeypatch.setattr(Tagger, "fit", lambda *_, **options: signal.raise_signal(signal.SIGINT))
    code, _, err = run("train", files / "train.txt", "-m", tmp_path / "a.model")
    assert (code, err.splitlines()[-1]) == (130, "Interrupted.")
    assert not (tmp_path / "a.model").exists()


def test_going_on_from_a_model_of_yesterday(files, tmp_path):
    old, new = tmp_path / "old.model", tmp_path / "new.model"
    assert run("train", files / "train.txt", "-m", old, "-q").code == 0
    later = [("Oslo", "NNP", "B-CITY"), ("sleeps", "VBZ", "O")]
    (tmp_path / "later.txt").write_text(column_text([later] * 3))
    code, out, err = run("train", tmp_path / "later.txt", "--from", old, "-m", new)
    assert (code, out) == (0, "")
    assert "OPTIMAL" in err
    tagger, before = maxmargin.load(new), maxmargin.load(old)
    assert {*before.classes_} < {*tagger.classes_}
    assert tagger.predict([[token[:2] for token in later]]) == [["B-CITY", "O"]]
    assert tagger.predict(TOKENS) == TAGS
    assert tagger.model_.n_seen_ == 21
    error = usage_error("train", tmp_path / "later.txt", "--from", old, "-m", new, "--min-count", "3")
    assert "keeps type, scheme and features" in error
    assert "--min-count" in error


def test_two_stages_cannot_go_on():
    tagger = Tagger(two_stages=True).fit(TOKENS, TAGS)
    with pytest.raises(ValueError, match="needs a tagger of one stage"):
        tagger.partial_fit(TOKENS, TAGS)


def test_models_of_segments(files, tmp_path):
    target = tmp_path / "a.model"
    assert run("train", files / "train.txt", "-m", target, "--type", "segments", "--quiet").code == 0
    tagger = maxmargin.load(target)
    assert isinstance(tagger.model_, SegmentCRF)
    assert len(tagger.model_.segment_feature_names_in_)
    assert tagger.predict(TOKENS) == TAGS
    tagged = run("predict", target, files / "dev.txt").out.splitlines()
    assert all(line.split()[2] == line.split()[3] for line in tagged if line)
    wrong = "train", files / "train.txt", "-m", target, "--type", "segments"
    assert "leave out --order" in usage_error(*wrong, "--order", "2")
    assert "leave out --type segments" in usage_error(*wrong, "--tune", "quick", "--dev", files / "dev.txt")
    assert "which has no segments" in usage_error(*wrong, "--parse", "--format", "conllu")
