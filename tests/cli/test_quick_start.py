"""`maxmargin predict` on a few sentences: what it loads, and that tags are those of the whole tagger."""

import subprocess
import sys

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, Tagger
from maxmargin.tagger import light_tagger
from maxmargin.tagger.light_tagger import LightTagger, best_path, open_tagger
from maxmargin.text import WindowFeatures
from tests.cli.conftest import input_error, run
from tests.naive import labellings
from tests.sentences import tagged_sentences

HEAVY = {"llvmlite", "matplotlib", "numba", "pandas", "rich", "scipy", "sklearn", "threadpoolctl", "torch"}
ROOMS = {"estimators", "features", "inference", "inspection", "losses", "metrics", "paths", "runtime", "solvers"}
PROGRAM = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from maxmargin.cli import app; app()"

X = [[token[:2] for token in sentence] for sentence in tagged_sentences()]
Y = [[token[2] for token in sentence] for sentence in tagged_sentences()]


def saved(tagger, folder):
    path = folder / "a.model"
    tagger.fit(X, Y).save(path)
    return path


def test_what_a_sentence_needs_not_is_not_loaded(files):
    command = [sys.executable, "-c", PROGRAM, "predict", files / "tagger.model"]
    done = subprocess.run(command, input="Ann NNP\nleft VB\n\n", capture_output=True, text=True, check=True)
    *tagged, modules = done.stdout.splitlines()
    assert tagged[0] == "Ann NNP B-PER"
    loaded = {name.split(".")[0] for name in modules.split()}
    assert not loaded & HEAVY
    rooms = {name.split(".")[1] for name in modules.split() if name.startswith("maxmargin.")}
    assert not rooms & ROOMS


@pytest.mark.parametrize(
    "tagger",
    [
        Tagger(),
        Tagger(inside="IOBES"),
        Tagger(scheme=None, model=ChainCRF(fit_intercept=False, max_passes=3)),
        Tagger(features=WindowFeatures(gazetteers={"person": ["Ann", "Bob Smith"]}, elsewhere=True)),
    ],
    ids=["default", "inside", "all weights", "lists"],
)
def test_tags_are_those_of_the_whole_tagger(tagger, tmp_path):
    path = saved(tagger, tmp_path)
    light = open_tagger(path)
    assert isinstance(light, LightTagger)
    expected = maxmargin.load(path)
    assert light.predict(X) == expected.predict(X)
    assert light.predict([x[:1] for x in X]) == expected.predict([x[:1] for x in X])
    assert "whole" not in vars(light)
    assert (light.layout, light.scheme_, light.asks_documents) == (None, expected.scheme_, expected.asks_documents)


def test_many_sentences_are_left_to_the_whole_tagger_of_the_same_file(tmp_path, monkeypatch):
    path = saved(Tagger(), tmp_path)
    light = open_tagger(path, 3)
    (tmp_path / "other").write_text("another model")
    (tmp_path / "other").replace(path)
    monkeypatch.setattr(light_tagger, "MOST", 0)
    assert light.predict(X) == Tagger().fit(X, Y).predict(X)
    assert "whole" in vars(light)
    assert light.whole.model_.n_jobs == 3


@pytest.mark.parametrize(
    "tagger",
    [Tagger(model=ChainCRF(n_hashed=50, max_passes=3)), Tagger(two_stages=True)],
    ids=["hashed names", "two stages"],
)
def test_what_it_does_not_know_is_left_to_the_whole_tagger(tagger, tmp_path):
    assert isinstance(open_tagger(saved(tagger, tmp_path)), Tagger)


def test_files_that_are_no_taggers(files, tmp_path):
    model = tmp_path / "a.model"
    model.write_bytes((files / "tagger.model").read_bytes()[:-100])
    assert "it is truncated" in input_error("predict", model, text="Ann NNP\n")
    ChainCRF().fit([[["a"]]], [["x"]]).save(model)
    assert "holds a ChainCRF, not a tagger" in input_error("predict", model, text="Ann NNP\n")
    Tagger().save(model)
    assert "not fitted" in input_error("predict", model, text="Ann NNP\n")


def test_probabilities_are_those_of_the_whole_tagger(files):
    assert run("predict", files / "tagger.model", "-p", text="Ann NNP\n").out.startswith("Ann NNP B-PER 0.")


def test_best_paths_are_lowest_from_the_end():
    rng = np.random.default_rng(0)
    for _ in range(20):
        nodes, pairs = rng.integers(3, size=(4, 3)), rng.integers(3, size=(3, 3))
        scores = {
            tuple(y): nodes[np.arange(4), y].sum() + pairs[y[:-1], y[1:]].sum() for y in map(np.array, labellings(4, 3))
        }
        best = min((y for y in scores if scores[y] == max(scores.values())), key=lambda y: y[::-1])
        assert tuple(best_path(nodes, pairs)) == best
