"""Arguments that models of different structures have in common."""

import itertools

import numpy as np
import pytest

from maxmargin import (
    CandidateCRF,
    CandidateSVM,
    ChainCRF,
    GraphCRF,
    GraphSVM,
    MultiLabelCRF,
    MultiLabelSVM,
    ProblemModel,
    StructuredSVM,
    TreeCRF,
    TreeSVM,
)
from maxmargin.estimators import all_estimators
from maxmargin.testing import toy_chains
from tests.small import CASES, make

pytestmark = pytest.mark.usefixtures("interpreted_loops")


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


def fields_of_nodes(rng):
    """The same rows as sequences, trees and graphs of two nodes, with a model and the name of its weights of nodes."""
    rows = [rng.normal(size=(2, 2)) for _ in range(5)]
    yield ChainCRF, rows, "position_weight"
    yield TreeCRF, [(x, [(0, 1)]) for x in rows], "node_weight"
    yield GraphCRF, [(x, [(0, 1)]) for x in rows], "node_weight"


def test_fields_take_costs_classes_and_weights_as_svms_do():
    """Softmax-margin: log of the sum of exp(score + cost), minus the score of the truth."""
    y, weights = [[0, 1], [1, 1], [0, 0], [0, 1], [1, 0]], [[1.0, 3.0]] * 5
    found = []
    for field, X, name in fields_of_nodes(np.random.default_rng(0)):
        options = {"C": 1.0, "fit_intercept": False, "tol": 1e-6, "random_state": 0}
        options |= {"interaction": "full"} if field is GraphCRF else {}
        with pytest.raises(ValueError, match=f"{name} weighs the cost of wrong labels: set cost"):
            field(**options).fit(X, y, **{name: weights})
        with pytest.raises(ValueError, match="class_weight weighs the cost"):
            field(class_weight="balanced", **options).fit(X, y)
        model = field(cost="hamming", class_weight={1: 2.0}, **options).fit(X, y, **{name: weights})
        losses = []
        for x, truth in zip(X, y, strict=True):
            best = {labels: score(model, x, labels) for labels in itertools.product((0, 1), repeat=2)}
            factors = np.multiply([1.0, 3.0], np.where(truth, 2.0, 1.0))
            costs = {labels: factors @ np.not_equal(truth, labels) for labels in best}
            losses.append(np.log(sum(np.exp(best[z] + costs[z]) for z in best)) - best[tuple(truth)])
        objective = np.mean(losses) + model._w @ model._w / (2 * 5)
        assert np.isclose(model.certificate_.primal, objective, rtol=1e-5)
        found.append(objective)
    assert np.allclose(found, found[0], rtol=1e-3)


def score(model, x, labels):
    """That of the labels of two nodes, by name."""
    rows = x[0] if isinstance(x, tuple) else x
    coef = model.coef_
    nodes, pairs = (coef.nodes, coef.edges[0]) if "nodes" in coef else (coef.emissions, coef.transitions)
    return sum(row @ nodes[:, label] for row, label in zip(rows, labels, strict=True)) + pairs[labels]


def test_fields_of_labels_take_costs_and_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), (rng.random((20, 2)) < 0.3).astype(int)
    plain = MultiLabelCRF(graph=None, cost="hamming").fit(X, y)
    costly = MultiLabelCRF(graph=None, cost="hamming", class_weight={1: 4.0}).fit(X, y)
    assert costly.predict_proba(X).mean() > plain.predict_proba(X).mean()  # rather too many labels than too few
    scores = X @ costly.coef_.T + costly.intercept_
    costs = np.where(y == 1, 4.0, 1.0)
    losses = np.logaddexp(np.where(y == 1, costs, 0), scores + np.where(y == 0, costs, 0)) - y * scores
    objective = losses.sum(axis=1).mean() + costly._w @ costly._w / (2 * 20)
    assert np.isclose(costly.certificate_.primal, objective, rtol=1e-5)
    with pytest.raises(ValueError, match="label_weight weighs the cost of wrong labels: set cost"):
        MultiLabelCRF().fit(X, y, label_weight=np.ones(y.shape))
