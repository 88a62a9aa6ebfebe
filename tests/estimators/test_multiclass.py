import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from maxmargin import MulticlassSVM, Status
from tests import naive


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.array(["setosa", "versicolor", "virginica"])[y]


def objective(model, X, y, C):
    """That of LinearSVC, by its definition."""
    scores = X @ model.coef_.T + model.intercept_
    true = np.searchsorted(model.classes_, y)
    losses = scores + 1 - np.eye(len(model.classes_))[true]
    hinge = losses.max(axis=1) - scores[np.arange(len(y)), true]
    return 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2)) + C * hinge.sum()


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_optimum_is_that_of_linear_svc(flowers, C):
    X, y = flowers
    peer = LinearSVC(C=C, multi_class="crammer_singer", tol=1e-8, max_iter=1_000_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn announces that multi_class will go
        peer.fit(X, y)
    model = MulticlassSVM(C=C, tol=1e-4, dtype="float64", random_state=0).fit(X, y)
    optimum = objective(peer, X, y, C) / (len(X) * C)
    assert np.isclose(objective(model, X, y, C) / (len(X) * C), model.trace_.primal[-1])
    assert model.status_ is Status.OPTIMAL
    assert np.isclose(model.trace_.primal[-1], optimum, rtol=2e-4)
    assert model.trace_.dual[-1] <= optimum
    assert np.mean(model.predict(X) == peer.predict(X)) > 0.98


def test_costs_and_weights_are_the_documented_ones(flowers):
    X, y = (part[::15] for part in flowers)
    cost = np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0.0]])
    model = MulticlassSVM(
        C=0.5, cost=cost, class_weight={"setosa": 2.0, "virginica": 0.5}, fit_intercept=False, dtype="float64"
    ).fit(X, y, np.arange(1.0, 11.0))
    true = np.searchsorted(model.classes_, y)
    phi = [np.einsum("f,kl->kfl", x, np.eye(3)).reshape(3, -1) for x in X]
    blocks = [(p[label] - p, cost[label]) for p, label in zip(phi, true, strict=True)]
    weight = np.arange(1.0, 11.0) * np.array([2.0, 1.0, 0.5])[true]
    _, optimum = naive.solve(blocks, 0.5, weight)
    assert np.isclose(naive.primal(model.coef_.T.ravel(), blocks, 0.5, weight), model.trace_.primal[-1])
    assert model.trace_.dual[-1] <= optimum <= model.trace_.primal[-1]
    assert not model.intercept_.any()


def test_predictions(flowers):
    X, y = flowers
    model = MulticlassSVM(tol=1e-3, random_state=0).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    scores = X @ model.coef_.T + model.intercept_
    assert np.allclose(model.decision_function(X), scores, atol=1e-4)
    assert np.array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=1)])
    labels, values = model.predict_topk(X[:1], 5)[0]
    assert labels.tolist() == model.classes_[np.argsort(-scores[0])].tolist()
    assert np.allclose(values, np.sort(scores[0])[::-1], atol=1e-4)
    sparse = MulticlassSVM(tol=1e-3, random_state=0).fit(sp.csr_matrix(X), y)
    assert np.allclose(sparse.decision_function(sp.csr_matrix(X)), scores, atol=0.1)
    two = MulticlassSVM(tol=1e-3, random_state=0).fit(X[:100], y[:100])
    assert two.decision_function(X[:3]).shape == (3,)
    assert np.array_equal(two.decision_function(X[:100]) > 0, two.predict(X[:100]) == "versicolor")


def test_marginals_are_the_softmax_of_the_scores(flowers):
    X, y = flowers
    model = MulticlassSVM(random_state=0, max_passes=5).fit(X, y)
    exponentials = np.exp(model.decision_function(X))
    assert np.allclose(model.predict_marginals(X), exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-4)


def test_weights_are_repetitions(flowers):
    X, y = (part[::5] for part in flowers)
    options = {"tol": 1e-7, "dtype": "float64", "random_state": 0, "max_passes": 1e5}
    weight = np.arange(30) % 3
    weighted = MulticlassSVM(**options).fit(X, y, weight)
    repeated = MulticlassSVM(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_scikit_learn_checks():
    """All but those that compare two fits to more digits than the tolerance asks for."""
    reason = "two fits agree within tol, not to ten digits"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(MulticlassSVM(random_state=0), expected_failed_checks=expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": np.ones((2, 2))}, r"cost must have shape \(3, 3\)"),
        ({"cost": np.ones((3, 3))}, "with zeros on its diagonal"),
        ({"C": -1.0}, "C must be a positive number, not -1.0"),
        ({"solver": "newton"}, "newton"),
    ],
)
def test_bad_options(flowers, options, message):
    with pytest.raises(ValueError, match=message):
        MulticlassSVM(**options).fit(*flowers)


def test_numbers_too_large(flowers):
    model = MulticlassSVM(random_state=0, tol=0.1).fit(*flowers)
    with pytest.raises(ValueError, match=r"3.4e\+39, which is beyond 1e\+12, in row 0"):
        model.predict(np.full((1, 4), 3.4e39))


def test_names_of_features_are_those_of_the_last_fit(flowers):
    pandas = pytest.importorskip("pandas")
    X, y = flowers
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = MulticlassSVM(random_state=0, tol=0.1).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_unseen_classes_are_wrong(flowers):
    X, y = flowers
    model = MulticlassSVM(random_state=0, tol=0.1).fit(X, y)
    assert model.score(X[:2], ["rose", "rose"]) == 0
    assert model.score(X[:2], ["rose", model.predict(X[1:2])[0]]) == 0.5
    fitted = MulticlassSVM(random_state=0, tol=0.1).fit(X, y, X_dev=X.tolist(), y_dev=y.tolist())
    assert fitted.trace_.dev_score.max() == fitted.score(X, y)
