"""The drop-in for sklearn-crfsuite, beside python-crfsuite itself."""

import pickle
import random

import numpy as np
import pycrfsuite
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import maxmargin
from maxmargin import ChainCRF, ChainSVM
from maxmargin.crfsuite import CRF, metrics, scorers

NAMES = {
    "all_possible_transitions": "feature.possible_transitions",
    "all_possible_states": "feature.possible_states",
    "min_freq": "feature.minfreq",
}
EXACT = {"delta": 1e-9, "epsilon": 1e-7}


@pytest.fixture(scope="module")
def sentences():
    rng = random.Random(0)
    words, tags = "abcdef", "XYZ"
    X, y = [], []
    for _ in range(30):
        drawn = [rng.choice(words) for _ in range(rng.randint(1, 6))]
        X.append([{"w": w, "v": rng.choice([0.5, 1, 2.0]), "t": w < "c", "n": [f"p{w}"]} for w in drawn])
        y.append([tags[(words.index(w) + (rng.random() < 0.3)) % 3] for w in drawn])
    return X, y


@pytest.fixture(scope="module")
def fitted(sentences):
    return CRF(c1=0.1, c2=0.1, all_possible_transitions=True).fit(*sentences)


@pytest.mark.parametrize(
    "options",
    [
        {"c2": 1.0},
        {"c1": 0.3, "c2": 0.2},
        {"c1": 0.1, "c2": 0.1, "all_possible_transitions": True},
        {"c2": 0.5, "all_possible_states": True},
        {"c2": 0.3, "all_possible_states": True, "all_possible_transitions": True},
        {"c2": 0.2, "min_freq": 10},
        {"c2": 0.2, "min_freq": 25},
        {"c2": 0.2, "min_freq": 3, "all_possible_states": True},
    ],
)
def test_the_model_is_that_of_crfsuite(sentences, tmp_path, options):
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({NAMES.get(name, name): value for name, value in (options | EXACT).items()})
    for items, labels in zip(*sentences, strict=True):
        trainer.append(items, labels)
    path = str(tmp_path / "model")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    theirs = tagger.info()
    crf = CRF(**options, **EXACT).fit(*sentences)

    assert crf.training_log_.last_iteration["loss"] == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-6)
    for ours, others in ((crf.state_features_, theirs.state_features), (crf.transition_features_, theirs.transitions)):
        pairs = ours.keys() | others.keys()
        assert max((abs(ours.get(pair, 0) - others.get(pair, 0)) for pair in pairs), default=0) < 0.01
    assert crf.classes_ == tagger.labels()
    items = sentences[0][0]
    assert crf.predict_single(items) == tagger.tag(items)
    tagger.set(items)
    expected = [{label: tagger.marginal(label, t) for label in tagger.labels()} for t in range(len(items))]
    for row, other in zip(crf.predict_marginals_single(items), expected, strict=True):
        assert row == pytest.approx(other, abs=2e-3)


def test_predictions_have_its_types(fitted, sentences):
    X, y = sentences
    predicted = fitted.predict([X[0], [], X[1]])
    assert predicted.shape == (3,)
    assert predicted.dtype == object
    assert predicted[1] == []
    assert isinstance(predicted[0], list)
    assert all(type(label) is str for label in predicted[0])
    marginals = fitted.predict_marginals(X[:2])
    assert [*marginals[0][0]] == fitted.classes_
    assert sum(marginals[0][0].values()) == pytest.approx(1)
    assert fitted.score(X, y) == metrics.flat_accuracy_score(y, fitted.predict(X))
    assert fitted.num_attributes_ == len(fitted.attributes_) == len({name for name, _ in fitted.state_features_})


def test_it_is_cloned_and_pickled(fitted, sentences):
    X, _ = sentences
    again = pickle.loads(pickle.dumps(fitted))
    assert again.state_features_ == fitted.state_features_
    assert (again.predict(X) == fitted.predict(X)).all()
    assert not hasattr(clone(fitted), "model_")
    assert clone(fitted).get_params() == fitted.get_params()


def test_it_is_saved(fitted, sentences, tmp_path):
    X, y = sentences
    fitted.save(tmp_path / "a.model")
    again = maxmargin.load(tmp_path / "a.model")
    assert again.get_params() == fitted.get_params()
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.training_log_ == fitted.training_log_

    path = str(tmp_path / "b.model")
    first = CRF(max_iterations=3, model_filename=path).fit(X, y)
    assert CRF(model_filename=path).state_features_ == first.state_features_
    assert CRF(model_filename=path).classes_ == first.classes_
    assert CRF(model_filename=path).predict_single(X[0]) == first.predict_single(X[0])
    assert CRF(model_filename=path).predict_marginals_single(X[0]) == first.predict_marginals_single(X[0])
    with pytest.raises(OSError, match="cannot be written"):
        CRF(model_filename=str(tmp_path / "none" / "c.model")).fit(X, y)
    (tmp_path / "theirs").write_bytes(b"lCRF" + bytes(100))
    with pytest.raises(ValueError, match="cannot be loaded"):
        CRF(model_filename=str(tmp_path / "theirs")).predict(X)


def test_it_is_searched(sentences):
    search = GridSearchCV(CRF(max_iterations=5), {"c2": [0.1, 1.0]}, cv=2, scoring=scorers.flat_accuracy)
    search.fit(*sentences)
    assert search.best_params_["c2"] in (0.1, 1.0)


def test_empty_sequences_and_held_out_data(sentences):
    X, y = sentences
    crf = CRF(max_iterations=3).fit([[], *X], [[], *y], X_dev=X, y_dev=y)
    assert len(crf.training_log_.iterations) <= 4
    assert crf.training_log_.last_iteration["item_accuracy_float"] == crf.score(X, y)
    with pytest.raises(ValueError, match="both X_dev and y_dev"):
        CRF().fit(X, y, X_dev=X)


@pytest.mark.parametrize(("algorithm", "kind"), [("l2sgd", ChainCRF), ("ap", ChainSVM), ("pa", ChainSVM)])
def test_other_algorithms_learn(sentences, algorithm, kind):
    X, y = sentences
    crf = CRF(algorithm=algorithm, max_iterations=20).fit(X, y)
    assert isinstance(crf.model_, kind)
    assert crf.score(X, y) > 0.6
    assert crf.transition_features_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "arow"}, "no counterpart here: use 'ap'"),
        ({"algorithm": "sgd"}, "algorithm must be one of lbfgs, l2sgd, ap, pa"),
        ({"c1": -1}, "c1 must be a number, 0 or more"),
        ({"c1": 0.1, "algorithm": "l2sgd"}, "c1 needs algorithm='lbfgs'"),
        ({"algorithm": "pa", "pa_type": 2}, "pa_type must be 1, not 2: use 1 in place of 2"),
        ({"algorithm": "pa", "error_sensitive": False}, "error_sensitive must be True"),
        ({"linesearch": "Armijo"}, "linesearch must be one of"),
        ({"max_iterations": 0}, "max_iterations must be an integer"),
        ({"min_freq": 1000}, "occurs 1000 times or more"),
        ({"trainer_cls": object}, "trainer_cls must be None"),
    ],
)
def test_bad_arguments(sentences, options, message):
    with pytest.raises(ValueError, match=message):
        CRF(**options).fit(*sentences)


def test_it_must_be_fitted(sentences):
    with pytest.raises(AttributeError, match="not fitted"):
        CRF().predict(sentences[0])


def test_metrics():
    true, predicted = [["a", "b"], ["a", "a"]], np.array([["a", "b"], ["a", "b"]], object)
    assert metrics.flat_accuracy_score(true, predicted) == 0.75
    assert metrics.sequence_accuracy_score(true, predicted) == 0.5
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.flat_precision_score(true, predicted, pos_label="a") == 1
    assert metrics.flat_recall_score(true, predicted, pos_label="b") == 1
    assert metrics.flat_fbeta_score(true, predicted, beta=1, pos_label="b") == pytest.approx(2 / 3)
    assert metrics.flat_f1_score(true, predicted, average="weighted", labels=["b"]) == pytest.approx(2 / 3)
    assert "precision" in metrics.flat_classification_report(true, predicted, labels=["a", "b"], digits=3)


def test_what_is_no_list_is_named(sentences):
    for X, y, name in ((None, sentences[1], "X"), (sentences[0], 3, "y")):
        with pytest.raises(TypeError, match=f"{name} must be a list of sequences, not (None|3)"):
            CRF().fit(X, y)


def test_features_of_transitions(interpreted_loops):
    """The word between two labels tells what follows: nothing else does."""
    X = [[{"w": "x"}, {"w": "x"}], [{"w": "x"}, {"w": "x"}], []] * 4
    y = [["a", "a"], ["a", "b"], []] * 4
    between = [[["stay"]], [["go"]], []] * 4
    crf = CRF(c2=0.01).fit(X, y, X, y, edge_features=between, edge_features_dev=between)
    assert crf.training_log_.last_iteration["item_accuracy_float"] == 1.0
    assert crf.predict(X, edge_features=between).tolist() == y
    assert crf.predict_single(X[1], edge_features=between[1]) == ["a", "b"]
    assert crf.predict_marginals_single(X[1], edge_features=between[1])[1]["b"] > 0.9
    assert crf.score(X, y, edge_features=between) == 1.0
    with pytest.raises(ValueError, match="edge_features must have an entry for each of the 12 sequences of X, not 1"):
        crf.predict(X, edge_features=between[:1])
    with pytest.raises(ValueError, match="edge_features"):
        crf.predict(X)
