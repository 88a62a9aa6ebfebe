"""What all estimators have in common, on small data of each; interpreted, as compiling is not the point."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

import maxmargin
from maxmargin import CandidateSVM, Tree
from maxmargin.estimators import all_estimators
from maxmargin.testing import check_estimator
from tests.toy import Labels, label_data


def chains(rng):
    y = [rng.integers(0, 3, length) for length in (4, 3, 2, 3, 1, 2, 3, 2)]
    X = [np.eye(3)[labels] + 0.4 * rng.normal(size=(len(labels), 3)) for labels in y]
    return X, [np.array(["a", "b", "c"])[labels] for labels in y], [np.eye(2)]


def trees(rng):
    X, y, _ = chains(rng)
    return [Tree(x, [(0, child) for child in range(1, len(x))]) for x in X], y, [(np.eye(2), [(0, 1)])]


def graphs(rng):
    y = [np.arange(size) % 2 for size in (3, 2, 4, 3, 2, 1, 3, 2)]
    X = [(labels[:, None] - 0.5 + 0.4 * rng.normal(size=(len(labels), 2)), [(0, 1)][: len(labels) - 1]) for labels in y]
    return X, y, [(np.eye(3), [(0, 1)])]


def candidates(rng):
    X = [rng.normal(size=(rng.integers(2, 5), 2)) for _ in range(8)]
    return X, [int(np.argmax(x[:, 0] + 0.2 * rng.normal(size=len(x)))) for x in X], [np.eye(3)]


def classes(rng):
    y = np.arange(12) % 3
    return np.eye(3)[y] + 0.3 * rng.normal(size=(12, 3)), np.array(["a", "b", "c"])[y], np.eye(2)


def matchings(rng):
    y = [np.array(match) for match in ([0, 1], [1, -1], [-1], [2, 0], [1], [0, -1], [1, 0], [0])]
    X = [np.eye(3)[match] + 0.3 * rng.normal(size=(len(match), 3)) for match in y]
    return [np.dstack([x, np.ones_like(x)]) for x in X], y, [np.ones((2, 2, 3))]


def boxes(rng):
    y = [(0, 0, 2, 2), (1, 1, 3, 3), (0, 1, 2, 3), (1, 0, 3, 2), (0, 0, 3, 2), (1, 1, 2, 3), (0, 0, 1, 3), (0, 2, 3, 3)]
    X = [0.5 * rng.normal(size=(3, 3, 2)) - 1 for _ in y]
    for x, (top, left, bottom, right) in zip(X, y, strict=True):
        x[top:bottom, left:right] += 2
    return X, y, [np.ones((2, 2, 3))]


def poses(rng):
    y = [np.array([[x, 1], [x + 1, 2]]) for x in (0, 1, 2, 1, 0, 2, 1, 0)]
    X = [0.5 * rng.normal(size=(3, 4, 2)) for _ in y]
    for x, pose in zip(X, y, strict=True):
        x[pose[:, 1], pose[:, 0]] += 2 * np.eye(2)
    return X, y, [np.ones((3, 4, 3))]


def own(rng):
    return *label_data(8), None


CASES = {
    "BoxSVM": ({}, boxes),
    "CandidateCRF": ({}, candidates),
    "CandidateSVM": ({}, candidates),
    "ChainCRF": ({}, chains),
    "ChainSVM": ({}, chains),
    "DeformableSVM": ({"edges": [(0, 1)], "tol": 0.01}, poses),
    "GraphCutSVM": ({}, graphs),
    "MatchingSVM": ({}, matchings),
    "MulticlassSVM": ({}, classes),
    "StructuredSVM": ({"model": Labels()}, own),
    "TreeCRF": ({}, trees),
    "TreeSVM": ({}, trees),
}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(maxmargin.runtime.dispatch, "_implemented", {})


def make(name):
    options, data = CASES[name]
    return all_estimators()[name](random_state=0, **options), *data(np.random.default_rng(0))


def test_there_is_data_for_every_estimator():
    assert {*CASES} == {*all_estimators()}


@pytest.mark.parametrize("name", CASES)
def test_estimator(name):
    check_estimator(*make(name))


class ChangesItsArguments(CandidateSVM):
    def fit(self, X, y, sample_weight=None, **options):
        self.n_jobs = 1
        return super().fit(X, y, sample_weight, **options)


class WorstFirst(CandidateSVM):
    def predict_topk(self, X, k):
        return [(outputs[::-1], scores[::-1]) for outputs, scores in super().predict_topk(X, k)]


class TooEarly(CandidateSVM):
    def _learn(self, X, y, **data):
        self._encoder, problem = super()._learn(X, y, **data)
        self._w = np.zeros(2)
        return self._encoder, problem


class Deaf(CandidateSVM):
    def fit(self, X, y, sample_weight=None, *, callback=None, **options):
        return super().fit(X, y, sample_weight, **options)


class Forgetful(CandidateSVM):
    def _start(self, encoder, problem):
        return None


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ChangesItsArguments, "fit changes a constructor argument"),
        (WorstFirst, "the scores of example 0 rise"),
        (TooEarly, "a failed fit changes"),
        (Deaf, "a callback that raises does not raise"),
        (Forgetful, "a warm start begins where a cold one does"),
    ],
)
def test_broken_models_are_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_estimator(broken(random_state=0), *candidates(np.random.default_rng(0)))


@pytest.mark.parametrize("name", CASES)
def test_model_selection(name):
    model, X, y, _ = make(name)
    search = GridSearchCV(clone(model).set_params(tol=0.1), {"C": [0.1, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.best_score_)
    assert len(search.predict(X)) == len(y)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_estimator_tags_renamed,
    ],
)
def test_checks_of_scikit_learn_that_take_no_arrays(name, check):
    assert check(name, make(name)[0]) is None  # else it raises


def test_defaults_are_the_documented_ones():
    doc = all_estimators()["ChainCRF"].__doc__
    assert 'solver : str or Solver, default="lbfgs"\n    The optimizer' in doc
    assert doc.index("l1_ratio :") < doc.index("C :") < doc.index("Attributes") < doc.index("trace_ :")
