"""`maxmargin predict` on a few sentences: what it loads, and that tags are those of the whole tagger."""

import subprocess
import sys

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, Tagger
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.chains.numpy_paths import best_path, marginals
from maxmargin.tagger import light_tagger
from maxmargin.tagger.light_tagger import LightTagger, open_tagger
from maxmargin.text import WindowFeatures, WordVectors
from tests.cli.conftest import input_error, run
from tests.naive import labellings
from tests.sentences import tagged_sentences

HEAVY = {"llvmlite", "matplotlib", "numba", "pandas", "rich", "scipy", "sklearn", "threadpoolctl", "torch"}
ROOMS = {"estimators", "features", "inference", "inspection", "losses", "metrics", "paths", "runtime", "solvers"}
PROGRAM = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from maxmargin.cli import app; app()"

X = [[token[:2] for token in sentence] for sentence in tagged_sentences()]
Y = [[token[2] for token in sentence] for sentence in tagged_sentences()]


VECTORS = WordVectors(["ann", "left"], np.array([[1.0, 0.5, -1.0], [0.0, -0.5, 2.0]]))


def saved(tagger, folder):
    path = folder / "a.model"
    tagger.fit(X, Y).save(path)
    return path


@pytest.mark.parametrize(
    ("command", "rooms", "first"),
    [
        (["predict"], ROOMS, "Ann NNP B-PER"),
        (["predict", "-p"], ROOMS, "Ann NNP B-PER"),
        (["predict", "--format", "jsonl"], ROOMS, '{"tokens": [["Ann", "NNP"]'),
        (["evaluate"], ROOMS - {"metrics"}, "processed 2 tokens with 1 phrases"),
    ],
    ids=["tags", "probabilities", "entities", "scores"],
)
def test_what_a_sentence_needs_not_is_not_loaded(files, command, rooms, first):
    name, *options = command
    done = quick_start([name, files / "tagger.model", *options], "Ann NNP B-PER\nleft VB O\n\n")
    assert done[0].startswith(first)
    check_loaded(done[-1], rooms)


def test_what_a_text_needs_not_is_not_loaded(tmp_path):
    model = tmp_path / "a.model"
    Tagger().fit([["Ann", "left"], ["Bob", "ran"]], [["B-PER", "O"], ["B-PER", "O"]]).save(model)
    done = quick_start(["tag", model], "Ann ran.")
    assert done[0].startswith('{"text": "Ann ran.", "entities": [{"start": 0, "end": 3')
    check_loaded(done[-1], ROOMS)


def quick_start(command, text):
    """The lines that a command writes of a text, and the modules that it has loaded."""
    command = [sys.executable, "-c", PROGRAM, *command]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def check_loaded(modules, rooms):
    loaded = {name.split(".")[0] for name in modules.split()}
    assert not loaded & HEAVY
    assert not {name.split(".")[1] for name in modules.split() if name.startswith("maxmargin.")} & rooms


TAGGERS = {
    "default": Tagger(),
    "inside": Tagger(inside="IOBES"),
    "tags beside others": Tagger(scheme="IOB1", inside="BILOU"),
    "all weights": Tagger(scheme=None, model=ChainCRF(fit_intercept=False, max_passes=3)),
    "lists": Tagger(features=WindowFeatures(gazetteers={"person": ["Ann", "Bob Smith"]}, elsewhere=True)),
    "vectors": Tagger(features=WindowFeatures(vectors=VECTORS), model=ChainCRF(max_passes=20)),
    "two stages": Tagger(two_stages=True, inside="IOBES", model=ChainCRF(only_observed=True, max_passes=20)),
}


@pytest.mark.parametrize("tagger", TAGGERS.values(), ids=TAGGERS)
def test_tags_are_those_of_the_whole_tagger(tagger, tmp_path):
    path = saved(tagger, tmp_path)
    light = open_tagger(path)
    assert isinstance(light, LightTagger)
    expected = maxmargin.load(path)
    assert light.predict(X) == expected.predict(X)
    assert light.predict([x[:1] for x in X]) == expected.predict([x[:1] for x in X])
    assert (light.layout, light.scheme_, light.asks_documents) == (None, expected.scheme_, expected.asks_documents)
    assert light.classes_.tolist() == expected.classes_.tolist()
    for found, wanted in zip(light.predict_marginals(X), expected.predict_marginals(X), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert "whole" not in vars(light)


def test_entities_are_those_of_the_whole_tagger(tmp_path):
    path = saved(Tagger(inside="IOBES", threshold=0.7), tmp_path)
    light, expected = open_tagger(path), maxmargin.load(path)
    assert light.predict(X) == expected.predict(X)
    light.threshold = expected.threshold = None
    for found, wanted in zip(light.predict_entities(X), expected.predict_entities(X), strict=True):
        assert [entity[:3] for entity in found] == [entity[:3] for entity in wanted]
        np.testing.assert_allclose([entity[3] for entity in found], [entity[3] for entity in wanted], atol=1e-9)
    assert "whole" not in vars(light)


def test_many_sentences_are_left_to_the_whole_tagger_of_the_same_file(tmp_path, monkeypatch):
    path = saved(Tagger(), tmp_path)
    light = open_tagger(path, 3)
    (tmp_path / "other").write_text("another model")
    (tmp_path / "other").replace(path)
    monkeypatch.setattr(light_tagger, "MOST", 0)
    assert light.predict(X) == Tagger().fit(X, Y).predict(X)
    assert "whole" in vars(light)
    assert light.whole.model_.n_jobs == 3


def test_what_it_does_not_know_is_left_to_the_whole_tagger(tmp_path):
    assert isinstance(open_tagger(saved(Tagger(model=ChainCRF(n_hashed=50, max_passes=3)), tmp_path)), Tagger)


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


def test_sums_over_all_paths():
    rng = np.random.default_rng(0)
    nodes, pairs = rng.normal(scale=3, size=(4, 3)), rng.normal(scale=3, size=(3, 3))
    pairs[0, 1] = nodes[2, 2] = IMPOSSIBLE
    paths = np.array([*labellings(4, 3)])
    scores = nodes[np.arange(4), paths].sum(axis=1) + pairs[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    chances = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    shares, steps = marginals(nodes, pairs)
    for t in range(4):
        np.testing.assert_allclose(shares[t], np.bincount(paths[:, t], chances, 3), atol=1e-12)
    for t in range(3):
        both = 3 * paths[:, t] + paths[:, t + 1]
        np.testing.assert_allclose(steps[t].ravel(), np.bincount(both, chances, 9), atol=1e-12)
