"""Arguments that models of different structures have in common."""

import numpy as np
import pytest

from maxmargin import (
    CandidateCRF,
    CandidateSVM,
    GraphSVM,
    MultiLabelSVM,
    ProblemModel,
    StructuredSVM,
    TreeSVM,
)
from maxmargin.estimators import all_estimators
from maxmargin.testing import toy_chains
from tests.small import CASES, make

pytestmark = pytest.mark.usefixtures("interpreted_kernels")


@pytest.mark.parametrize("name", CASES)
def test_an_unknown_argument_of_fit_is_named_with_those_it_has(name):
    model, X, y, _ = make(name)
    with pytest.raises(TypeError, match=f"fit of {name} takes no argument 'wieght', only X, y, sample_weight, .*X_dev"):
        model.fit(X, y, wieght=1)


def test_nodes_of_trees_have_weights():
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(3, 2)), [(0, 1), (1, 2)]) for _ in range(4)]
    y = [rng.integers(0, 2, 3) for _ in X]
    weights = [[1.0, 0.0, 2.0]] * 4
    options = {"C": 1.0, "interaction": "full"}
    graphs = GraphSVM(dtype="float64", fit_intercept=False, tol=1e-4, random_state=0, **options)
    trees = TreeSVM(C=1.0, dtype="float64", fit_intercept=False, tol=1e-4, random_state=0)
    weighted = trees.fit(X, y, node_weight=weights).certificate_.primal
    assert np.isclose(weighted, graphs.fit(X, y, node_weight=weights).certificate_.primal, rtol=1e-3)
    assert not np.isclose(weighted, trees.fit(X, y).certificate_.primal, rtol=1e-2)
    with pytest.raises(ValueError, match=r"node_weight\[0\] must have the shape \(3,\)"):
        trees.fit(X, y, node_weight=[[1.0]] * 4)


@pytest.mark.parametrize("model", [CandidateSVM, CandidateCRF])
def test_features_of_candidates_have_names(model):
    X = [[{"long": 1.0}, {"short": 1.0, "odd": 0.5}], [["long", "odd"], ["short"], []], [["short"], ["long"]]]
    y = [0, 0, 1]
    fitted = model(C=10.0, random_state=0).fit(X, y)
    assert fitted.feature_names_in_.tolist() == ["long", "short", "odd"]
    assert fitted.predict([[["short", "new"], ["long"]]]).tolist() == [1]
    rows = [[[1, 0, 0], [0, 1, 0.5]], [[1, 0, 1], [0, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0]]]
    assert np.allclose(fitted.coef_, model(C=10.0, random_state=0).fit(rows, y).coef_, atol=1e-3)
    assert model(min_count=3, random_state=0).fit(X, y).feature_names_in_.tolist() == ["long", "short"]
    assert model(n_hashed=8, random_state=0).fit(X, y).n_features_in_ == 8
    with pytest.raises(TypeError, match="X must hold features by name"):
        fitted.predict(rows)


def test_labels_of_rows_have_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), (rng.random((20, 3)) < [0.2, 0.5, 0.8]).astype(int)
    options = {"C": 1.0, "graph": None, "dtype": "float64", "tol": 1e-4, "random_state": 0}

    def primal(class_weight=None, **data):
        return MultiLabelSVM(class_weight=class_weight, **options).fit(X, y, **data).certificate_.primal

    twice = np.where(y == 1, 2.0, 1.0)
    assert np.isclose(primal({1: 2.0}), primal(label_weight=twice), rtol=1e-3)
    of_each = [{1: 2.0}, None, {0: 3.0}]
    factors = np.where(y == 1, [2.0, 1.0, 1.0], [1.0, 1.0, 3.0])
    assert np.isclose(primal(of_each), primal(label_weight=factors), rtol=1e-3)
    share = y.mean(axis=0)
    assert np.isclose(primal("balanced"), primal(label_weight=0.5 / np.where(y == 1, share, 1 - share)), rtol=1e-3)
    for wrong in ({"class_weight": [None]}, {"class_weight": {2: 1.0}}, {"label_weight": [1.0]}):
        with pytest.raises(ValueError, match=r"class_weight|label_weight"):
            primal(**wrong)


def test_problems_of_your_own_have_what_fields_have():
    def make_problem(X, y=None):
        return toy_chains(len(X))

    model = ProblemModel(make_problem, loss="log", C=1.0, random_state=0).fit(range(4), range(4))
    marginals, best = model.predict_marginals(range(4)), model.decision_function(range(4))
    assert [len(parts) for parts in marginals] == [len(parts) for parts in best]
    assert all((parts >= 0).all() for parts in marginals)
    assert (model.log_likelihood(range(4), range(4)) < 0).all()
    drawn = model.sample(range(4), n_samples=3, random_state=0)
    assert [rows.shape for rows in drawn] == [(3, len(output)) for output in model.predict(range(4))]
    assert all(np.array_equal(a, b) for a, b in zip(drawn, model.sample(range(4), 3, random_state=0), strict=True))


def test_problems_without_sums_say_what_they_lack():
    model, X, y, _ = make("ProblemModel")
    model.fit(X, y)
    for call, needed in (
        (lambda: model.sample(X), "sample needs sample_oracle of the problem, which CustomProblem lacks"),
        (lambda: model.decision_function(X), "decision_function needs max_marginals of the problem"),
    ):
        with pytest.raises(TypeError, match=needed):
            call()


def test_models_of_your_own_structures_have_the_same_defaults():
    def defaults(name):
        return {key: all_estimators()[name].__dataclass_fields__[key].default for key in ("C", "tol", "patience")}

    assert defaults("ProblemModel") == defaults("StructuredSVM")
    assert StructuredSVM(None).tol == ProblemModel(None).tol
