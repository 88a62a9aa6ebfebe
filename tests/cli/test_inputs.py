"""Several files, folders, patterns and compressed files in place of one file."""

import bz2
import gzip
import json
import lzma

from tests.cli.conftest import input_error, run
from tests.sentences import column_text, tagged_sentences

SENTENCES = tagged_sentences()[:18]


def figures(*arguments):
    outcome = run("train", *arguments, "--json", "--quiet")
    assert outcome.code == 0, outcome
    found = json.loads(outcome.out)
    return {name: found[name] for name in ("objective", "sentences", "features", "tags")}


def test_files_folders_and_patterns_are_trained_on_as_one_file(files, tmp_path):
    folder, target = tmp_path / "parts", tmp_path / "a.model"
    folder.mkdir()
    texts = [column_text(SENTENCES[lo : lo + 6]).encode() for lo in (0, 6, 12)]
    (folder / "1.txt.gz").write_bytes(gzip.compress(texts[0]))
    (folder / "2.txt.bz2").write_bytes(bz2.compress(texts[1]))
    (folder / "3.txt.xz").write_bytes(lzma.compress(texts[2]))
    (folder / ".hidden").write_text("not a file of sentences")
    whole = figures(files / "train.txt", "-m", target)
    assert whole["sentences"] == 18
    for given in ([folder], [folder / "*.txt.*"], sorted(folder.glob("*.txt.*"))):
        assert figures(*given, "-m", target) == whole


def test_a_model_is_named_after_the_first_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "few.txt.gz").write_bytes(gzip.compress(column_text(SENTENCES[:6]).encode()))
    for given, name in ((tmp_path / "some" / "few.txt.gz", "few.model"), (tmp_path / "some", "some.model")):
        assert run("train", given, "--quiet").code == 0
        assert (tmp_path / name).is_file()


def test_messages_name_the_file_and_its_line(files, tmp_path):
    odd = tmp_path / "odd.txt"
    odd.write_text("Ann NNP\n")
    assert input_error("train", files / "train.txt", odd, "-m", tmp_path / "a.model").startswith(f"{odd}, line 1: ")
    assert "No such file" in input_error("train", files / "train.txt", tmp_path / "*.none", "-m", tmp_path / "a.model")


def test_several_files_are_tagged_and_scored_one_after_the_other(files):
    dev, model = files / "dev.txt", files / "tagger.model"
    once = run("predict", model, dev).out
    assert run("predict", model, dev, dev).out == once + once
    found = json.loads(run("evaluate", model, dev, dev, "--json").out)
    counted = json.loads(run("evaluate", model, dev, "--json").out)
    assert found["entities"]["overall"]["n_right"] == 2 * counted["entities"]["overall"]["n_right"]
