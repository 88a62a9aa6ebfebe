"""`maxmargin.pycrfsuite` beside python-crfsuite: the same files, labels, probabilities and weights."""

import contextlib
import random

import numpy as np
import pytest

from maxmargin import ChainCRF, load
from maxmargin.pycrfsuite import ItemSequence, Tagger, Trainer, read_crfsuite

pycrfsuite = pytest.importorskip("pycrfsuite")


def sequences(n, seed=0):
    draw, found = random.Random(seed), []
    for _ in range(n):
        y = [draw.choice(["b", "A", "zé"]) for _ in range(draw.randint(1, 6))]
        x = [{"w": f"{label}{draw.randint(0, 4)}", "v": draw.random(), "k": {"in": ["p", label]}} for label in y]
        found.append((x, y))
    return found


def train(trainer, path, data):
    for x, y in data:
        trainer.append(x, y)
    trainer.train(str(path))
    return path


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    path = tmp_path_factory.mktemp("crfsuite") / "a.crfsuite"
    return train(pycrfsuite.Trainer(verbose=False), path, sequences(30))


def both(path):
    taggers = pycrfsuite.Tagger(), Tagger()
    for tagger in taggers:
        tagger.open(str(path))
    return taggers


def test_models_of_crfsuite(theirs):
    a, b = both(theirs)
    assert a.labels() == b.labels()
    for x, y in sequences(10, seed=1):
        assert a.tag(x) == b.tag(x)
        assert np.isclose(a.probability(y), b.probability(y))
        assert np.allclose(
            [a.marginal(k, len(x) - 1) for k in a.labels()], [b.marginal(k, len(x) - 1) for k in a.labels()]
        )
    first, second = a.info(), b.info()
    assert first.labels == second.labels
    assert first.attributes == second.attributes
    for name in ("transitions", "state_features"):
        weights, others = getattr(first, name), getattr(second, name)
        assert weights.keys() == others.keys()
        assert np.allclose([weights[key] for key in weights], [others[key] for key in weights], atol=1e-5)
    b.open_inmemory(theirs.read_bytes())
    assert b.tag(x) == a.tag(x)


def test_a_model_of_crfsuite_is_a_crf(theirs):
    crf = read_crfsuite(theirs)
    assert isinstance(crf.model_, ChainCRF)
    assert crf.classes_ == both(theirs)[0].labels()
    assert [*crf.predict([x for x, _ in sequences(2)])[0]] == both(theirs)[0].tag(sequences(2)[0][0])


def test_a_model_of_crfsuite_is_saved(theirs, tmp_path):
    crf, X = read_crfsuite(theirs), [x for x, _ in sequences(4)]
    crf.save(tmp_path / "any.model")
    again = load(tmp_path / "any.model")
    assert (again.classes_, again.transition_features_) == (crf.classes_, crf.transition_features_)
    assert again.predict(X).tolist() == crf.predict(X).tolist()
    assert again.predict_marginals(X).tolist() == crf.predict_marginals(X).tolist()


def test_training_finds_the_same_model(theirs, tmp_path):
    params = {"epsilon": 1e-7, "delta": 1e-9}
    ours = train(Trainer(params=params, verbose=False), tmp_path / "a.model", sequences(30))
    exact = train(pycrfsuite.Trainer(params=params, verbose=False), tmp_path / "b.crfsuite", sequences(30))
    (a, _), b = both(exact), Tagger()
    with b.open(ours):
        assert sorted(a.labels()) == sorted(b.labels())
        weights, others = a.info().state_features, b.info().state_features
        assert weights.keys() == others.keys()
        assert np.allclose([weights[key] for key in weights], [others[key] for key in weights], atol=1e-2)
    with pytest.raises(ValueError, match="not opened"):
        b.tag([["a"]])


def test_parameters():
    ours, their = Trainer("lbfgs"), pycrfsuite.Trainer("lbfgs", verbose=False)
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "averaged-perceptron"):
        ours.select(algorithm)
        their.select(algorithm)
        assert ours.get_params() == their.get_params()
        assert all(ours.help(name) for name in ours.params())
    ours.select("lbfgs")
    ours.set_params({"c1": "0.5", "feature.possible_states": True, "max_iterations": 7})
    assert (ours.get("c1"), ours.get("feature.possible_states"), ours.get("max_iterations")) == (0.5, True, 7)
    with pytest.raises(ValueError, match="Parameter not found: foo"):
        ours.set("foo", 3)
    with pytest.raises(ValueError, match="The parameter c1 must be a float, not 'many'"):
        ours.set("c1", "many")
    with pytest.raises(ValueError, match="Bad arguments: algorithm='foo'"):
        ours.select("foo")
    with pytest.raises(ValueError, match="algorithm='arow' has no counterpart"):
        ours.select("arow")


class Watched(Trainer):
    def message(self, message):
        self.log = [*getattr(self, "log", []), message]


def test_held_out_groups_and_logs(tmp_path, interpreted_loops):
    trainer = Watched(params={"max_iterations": 5})
    for k, (x, y) in enumerate(sequences(8)):
        trainer.append(ItemSequence(x), y, group=k % 2)
    trainer.train("", holdout=1)
    assert trainer.logparser.last_iteration["item_accuracy_float"] >= 0
    assert trainer.log[0] == "Training by lbfgs on 4 sequences\n"
    assert "***** Iteration #1 *****\nLoss: " in "".join(trainer.log)
    with pytest.raises(ValueError, match=r"The numbers of items and labels differ: \|x\| = 1, \|y\| = 2"):
        trainer.append([["a"]], ["x", "y"])
    trainer.clear()
    with pytest.raises(ValueError, match="no sequences to train on"):
        trainer.train("")


def test_items():
    item = {"a": 1.5, "b": "x", "c": True, "d": {"e": ["f", "g"], "h": 2}, "i": {"j"}}
    assert ItemSequence([item, ["k", "k"]]).items()[0] == pycrfsuite.ItemSequence([item]).items()[0]
    assert repr(ItemSequence([item])) == "<ItemSequence of size 1>"
    with pytest.raises(TypeError, match="Item 0 must be a dictionary or a list of names, not a str"):
        ItemSequence(["abc"])
    with pytest.raises(TypeError, match="Names of features must be strings, not 3"):
        ItemSequence([[3]])


def test_dumps(theirs, tmp_path):
    a, b = both(theirs)
    a.dump(str(tmp_path / "a.txt"))
    b.dump(tmp_path / "b.txt")
    lines = [
        {*path.read_text().split("STATE_FEATURES")[1].split("\n")} for path in (tmp_path / "a.txt", tmp_path / "b.txt")
    ]
    assert lines[0] == lines[1]


def test_what_is_asked_of_no_sequence_or_of_no_label(theirs):
    tagger = Tagger()
    tagger.open(theirs)
    with pytest.raises(ValueError, match="There is no sequence"):
        tagger.tag()
    tagger.set([["a"], ["b"]])
    with pytest.raises(ValueError, match="'nobody' is not a label of the model"):
        tagger.marginal("nobody", 0)
    with pytest.raises(ValueError, match="pos must be from 0 to 1, not 2"):
        tagger.marginal("b", 2)
    with pytest.raises(ValueError, match="yseq must have 2 labels"):
        tagger.probability(["b"])


def test_broken_files(theirs, tmp_path):
    content, path = theirs.read_bytes(), tmp_path / "a.crfsuite"
    odd = {
        "it is truncated, or damaged": content[:-100],
        "it is truncated, after 20 bytes": content[:20],
        "cannot be loaded: it is not a file of this library": b"anything else",
        "of the type b'FOMX'": content.replace(b"FOMC", b"FOMX"),
        "its features are not where": content.replace(b"FEAT", b"FEAX"),
        "its names are not where": content.replace(b"CQDB", b"CQDX"),
        "features of attributes or labels that are not there": content[:60] + b"\xff" * 12 + content[72:],
    }
    for message, changed in odd.items():
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=message):
            Tagger().open(path)
    rng = np.random.default_rng(0)
    for _ in range(200):
        changed = bytearray(content)
        changed[rng.integers(len(content))] = rng.integers(256)
        with contextlib.suppress(ValueError):  # and nothing else
            Tagger().open_inmemory(bytes(changed))
    ChainCRF(max_passes=1).fit([[["a"]]], [["x"]]).save(path)
    with pytest.raises(ValueError, match="holds a ChainCRF, not a model of a Trainer"):
        Tagger().open(path)
    with pytest.raises(FileNotFoundError):
        Tagger().open(tmp_path / "none")
