"""Metrics by name: as scorers of scikit-learn, and for early stopping."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from maxmargin import ChainCRF, ChainSVM, MulticlassSVM, regularization_path
from maxmargin.metrics import entity_f1, get_scorer, sequence_accuracy
from maxmargin.metrics.scoring import METRICS, find_metric
from maxmargin.text import convert_tags

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.fixture(scope="module")
def tagged():
    """Noisy sequences of one type of entities."""
    rng = np.random.default_rng(0)
    tags = ["O", "B-X", "I-X"]
    y = convert_tags([rng.choice(tags, size=4) for _ in range(16)], "IOB2")
    return [np.eye(3)[[tags.index(tag) for tag in row]] + rng.normal(size=(4, 3)) for row in y], y


@pytest.mark.parametrize("name", [name for name in METRICS if name != "bracket_f1"])
def test_scorers_choose_models(tagged, name):
    X, y = tagged
    search = GridSearchCV(ChainCRF(tol=0.1), {"C": [0.1, 1.0]}, scoring=get_scorer(name), cv=2).fit(X, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert np.isclose(get_scorer(name)(search, X, y), find_metric(name)(y, search.predict(X)))


def test_several_scorers(tagged):
    scores = cross_val_score(ChainCRF(tol=0.1), *tagged, scoring=get_scorer("entity_f1"), cv=2)
    assert scores.shape == (2,)


@pytest.mark.parametrize("scoring", ["entity_f1", sequence_accuracy])
def test_held_out_data_are_scored_by_it(tagged, scoring):
    X, y = tagged
    model = ChainSVM(C=10.0, scoring=scoring, random_state=0).fit(X[:8], y[:8], X_dev=X[8:], y_dev=iter(y[8:]))
    metric = find_metric(scoring)
    assert model.trace_.dev_score.max() == metric(y[8:], model.predict(X[8:]))
    lengths = [4] * 8
    stacked = ChainSVM(C=10.0, scoring=scoring, random_state=0).fit(
        X[:8], y[:8], X_dev=np.concatenate(X[8:]), y_dev=np.concatenate(y[8:]), lengths_dev=lengths
    )
    assert np.array_equal(stacked.trace_.dev_score, model.trace_.dev_score)


def test_paths_and_other_models_have_scores(tagged):
    X, y = tagged
    options = {"method": "grid", "lambdas": [1.0, 0.3], "eps": 0.5, "X_dev": X, "y_dev": y}
    path = regularization_path(ChainSVM(scoring="entity_f1"), X, y, **options)
    assert path.scores.max() == entity_f1(y, path.model_at(path.best_lambda).predict(X))
    model = MulticlassSVM(scoring=lambda true, predicted: np.mean(true == predicted))
    model.fit(np.eye(3), np.arange(3), X_dev=np.eye(3), y_dev=np.arange(3))
    assert model.trace_.dev_score.max() == 1


def test_bad_scoring(tagged):
    X, y = tagged
    for scoring in ("f1", 3, ["entity_f1"]):
        with pytest.raises(ValueError, match=r"^scoring must be one of .*entity_f1, .* or a function of .*, not .*\.$"):
            ChainCRF(scoring=scoring).fit(X, y)
    with pytest.raises(ValueError, match=r"^scoring must be one of"):
        get_scorer("f1")
    with pytest.raises(ValueError, match=r"^In the held-out data, X_dev and y_dev: y_true\[0\] has 'a' at "):
        ChainCRF(scoring="entity_f1").fit(X, y, X_dev=X[:1], y_dev=[["a", "O", "O", "O"]])
