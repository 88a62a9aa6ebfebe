"""scikit-learn's contract, kept without scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from maxmargin import BCFW, CandidateSVM, ChainCRF, GraphSVM, Loss, Tagger
from maxmargin.sklearn_contract import unfitted
from maxmargin.text import WindowFeatures
from tests.small import candidates

FIT_AND_TAG = """
import sys
from maxmargin import Tagger
from maxmargin.runtime import interpreted
X, y = [["Ann", "ran"], ["Bob", "sat"]], [["B-PER", "O"], ["B-PER", "O"]]
with interpreted():
    Tagger().fit(X, y).predict(X)
print(*{"sklearn", "pandas", "scipy.stats", "scipy.optimize"} & {*sys.modules})
"""


def test_chains_are_trained_without_scikit_learn():
    ended = subprocess.run([sys.executable, "-c", FIT_AND_TAG], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


def test_a_repr_has_the_arguments_that_were_changed():
    assert repr(ChainCRF()) == "ChainCRF()"
    assert repr(Tagger(model=ChainCRF(C=2.0, solver="lbfgs"))) == "Tagger(model=ChainCRF(C=2.0, solver='lbfgs'))"


def test_parameters_of_parameters():
    tagger = Tagger(features=WindowFeatures(window=1), model=ChainCRF())
    assert tagger.get_params()["features__window"] == 1
    assert "features__window" not in tagger.get_params(deep=False)
    tagger.set_params(model__C=3.0, features__window=2, scheme=None)
    assert (tagger.model.C, tagger.features.window, tagger.scheme) == (3.0, 2, None)
    tagger.set_params(model__C=4.0, model=ChainCRF(tol=0.5))  # of the new one
    assert (tagger.model.C, tagger.model.tol) == (4.0, 0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'Z' for estimator Tagger"):
        tagger.set_params(Z=1)


@pytest.mark.parametrize("copied", [unfitted, clone])
def test_copies_are_not_fitted_and_share_nothing(copied):
    tagger = Tagger(features=LogisticRegression(C=2.0), model=ChainCRF(allowed_transitions={("a", "b")}))
    tagger.model_ = "fitted"
    again = copied(tagger)
    assert not hasattr(again, "model_")
    assert again.features is not tagger.features
    assert again.features.C == 2.0
    assert again.model is not tagger.model
    assert again.model.allowed_transitions == {("a", "b")}
    assert again.model.allowed_transitions is not tagger.model.allowed_transitions


def test_weights_of_examples_are_routed(interpreted_loops):
    X, y, *_ = candidates(np.random.default_rng(0))
    given = []

    class Weighted(CandidateSVM):
        def fit(self, X, y, sample_weight=None, **options):
            given.append(sample_weight)
            return super().fit(X, y, sample_weight, **options)

    weights = np.arange(1.0, len(y) + 1)
    with sklearn.config_context(enable_metadata_routing=True):
        cross_validate(Weighted(), X, y, cv=2, params={"sample_weight": weights}, error_score="raise")
    assert sorted(np.concatenate(given)) == weights.tolist()


def test_requests_of_metadata_are_told(interpreted_loops):
    X, y, *_ = candidates(np.random.default_rng(0))
    with sklearn.config_context(enable_metadata_routing=True):
        model = CandidateSVM(random_state=0).set_fit_request(sample_weight=False, costs=True)
        asked = model.get_metadata_routing().fit.requests
        assert (asked["sample_weight"], asked["costs"], asked["callback"]) == (False, True, None)
        costs = [np.arange(len(x)) != best for x, best in zip(X, y, strict=True)]
        cross_validate(model, X, y, cv=2, params={"costs": costs}, error_score="raise")


LATER = """
import sys
from maxmargin import ChainCRF, Tagger
first, tagger = ChainCRF(), Tagger()
assert "sklearn" not in sys.modules
from sklearn.base import BaseEstimator, clone
assert isinstance(ChainCRF(), BaseEstimator) and isinstance(first, BaseEstimator) and isinstance(tagger, BaseEstimator)
assert "<style>" in tagger._repr_html_()
"""


def test_estimators_are_those_of_scikit_learn_once_it_is_loaded():
    subprocess.run([sys.executable, "-c", LATER], check=True)
    assert isinstance(ChainCRF(), BaseEstimator)


def test_parameters_of_solvers_and_losses():
    model = GraphSVM(solver=BCFW(), loss=Loss("l2", level=2.0))
    assert (model.get_params()["solver__steps"], model.get_params()["loss__level"]) == ("fw", 2.0)
    model.set_params(solver__steps="pairwise", loss__level=0.5)
    assert (model.solver, model.loss) == (BCFW(steps="pairwise"), Loss("l2", level=0.5))
    with pytest.raises(
        ValueError, match=r"Invalid parameter 'stepz' of solver, which is BCFW.*: it has steps, sampling"
    ):
        model.set_params(solver__stepz="fw")
    with pytest.raises(
        ValueError, match="Invalid parameter 'steps' of solver, which is 'auto': set solver to an object"
    ):
        ChainCRF().set_params(solver__steps="fw")


def test_fitted_models_are_written_by_skops(interpreted_loops):
    skops = pytest.importorskip("skops.io")
    X, y, *_ = candidates(np.random.default_rng(0))
    model = CandidateSVM(random_state=0).fit(X, y)
    written = skops.dumps(model)
    read = skops.loads(written, trusted=skops.get_untrusted_types(data=written))
    assert read.status_ is model.status_
    assert np.array_equal(read.predict(X), model.predict(X))


def test_parts_of_the_package_are_there_once_it_is_imported():
    code = "import maxmargin; print(maxmargin.datasets.__name__, maxmargin.text.__name__, 'metrics' in dir(maxmargin))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["maxmargin.datasets", "maxmargin.text", "True"]
