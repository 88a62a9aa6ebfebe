"""What all estimators have in common, on small data of each; interpreted, as compiling is not the point."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

from maxmargin import CandidateSVM
from maxmargin.estimators import all_estimators
from maxmargin.testing import check_estimator
from tests.small import CASES, candidates, make

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def test_there_is_data_for_every_estimator():
    assert {*CASES} == {*all_estimators()}


@pytest.mark.parametrize("name", CASES)
def test_estimator(name):
    check_estimator(*make(name))


def test_a_constant_has_one_name():
    arguments = {name: {*model.__dataclass_fields__} for name, model in all_estimators().items()}
    assert not [name for name, known in arguments.items() if "fit_bias" in known]
    assert all("fit_intercept" in arguments[name] for name in ("BoxSVM", "ChainCRF", "GraphSVM", "MultiLabelSVM"))


class ChangesItsArguments(CandidateSVM):
    def fit(self, X, y, sample_weight=None, **options):
        self.n_jobs = 1
        return super().fit(X, y, sample_weight, **options)


class WorstFirst(CandidateSVM):
    def predict_topk(self, X, k):
        return [(outputs[::-1], scores[::-1]) for outputs, scores in super().predict_topk(X, k)]


class TooEarly(CandidateSVM):
    def _learn(self, X, y, **data):
        learned = super()._learn(X, y, **data)
        self._encoder, self._w = learned.encoder, np.zeros(2)
        return learned


class Deaf(CandidateSVM):
    def fit(self, X, y, sample_weight=None, *, callback=None, **options):
        return super().fit(X, y, sample_weight, **options)


class Forgetful(CandidateSVM):
    _dual_shape = property(lambda self: None, lambda self, value: None)


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
    assert 'solver : str or Solver, default="auto"\n    The optimizer' in doc
    assert doc.index("l1_ratio :") < doc.index("C :") < doc.index("Attributes") < doc.index("trace_ :")
