import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from maxmargin import BCFW, ChainSVM, MulticlassSVM, Status
from maxmargin.testing import check_solver, check_structure
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


def small_problem(dtype="float64", **options):
    """Seven examples of three classes, one of them without features, and two alike with other labels."""
    X = np.random.default_rng(0).normal(size=(7, 2))
    X[3], X[5] = 0, X[4]
    y = np.array([0, 1, 2, 0, 1, 2, 2])
    problem = MulticlassSVM(fit_intercept=False, dtype=dtype, **options)._encode(X, y).problem
    blocks = []
    for x, label in zip(X, y, strict=True):
        phi = np.array([np.outer(x, (np.arange(3) == label) * 1.0 - (np.arange(3) == k)).ravel() for k in range(3)])
        blocks.append((phi, problem.supervision.cost[label].astype(float)))
    return problem, blocks


def test_classes_are_a_structure():
    for dtype in ("float32", "float64"):
        check_structure(small_problem(dtype)[0], lambda i: [np.array([k], np.int32) for k in range(3)])


@pytest.mark.parametrize("sampling", ["uniform", "permutation", "gap"])
@pytest.mark.parametrize("averaging", [False, True])
def test_exact_steps_reach_the_reference_optimum(sampling, averaging):
    problem, blocks = small_problem()
    weight = np.array([1.0, 2, 0.5, 1, 0, 1, 1])
    solver = BCFW(steps="exact", sampling=sampling, averaging=averaging)
    if not averaging:
        check_solver(solver, problem, naive.solve(blocks, 2.0)[1], C=2.0)
    for lower in (-np.inf, np.array([-0.1, -np.inf, 0, 0, -np.inf, 0.1])):
        optimum = naive.solve(blocks, 2.0, weight, lower=lower)[1]
        result = solver.solve(problem, 2.0, weight, lower=lower, tol=1e-2 if averaging else 1e-5, random_state=0)
        assert result.certificate.dual <= optimum * (1 + 1e-9)
        assert naive.primal(result.w, blocks, 2.0, weight) <= result.certificate.primal * (1 + 1e-9)
        assert result.certificate.primal >= optimum * (1 - 1e-9)
        assert result.status is Status.OPTIMAL


def test_auto_takes_exact_steps(flowers):
    X, y = flowers
    model = MulticlassSVM(C=1.0, tol=1e-4, random_state=0, warm_start=True).fit(X, y)
    assert "Chose steps='exact', sampling='gap'." in model.trace_.notes
    exact = model.trace_.oracle_calls[-1]
    pairwise = MulticlassSVM(C=1.0, tol=1e-4, random_state=0, solver=BCFW(steps="pairwise", sampling="gap")).fit(X, y)
    assert exact < pairwise.trace_.oracle_calls[-1]
    assert model.fit(X, y).trace_.passes[-1] <= 1


def test_exact_steps_are_refused_where_there_are_none():
    with pytest.raises(TypeError, match="BCFW needs the block oracle"):
        ChainSVM(solver=BCFW(steps="exact")).fit([np.eye(2)], [[0, 1]])
    with pytest.raises(ValueError, match="cache must be 0 with exact steps"):
        BCFW(steps="exact", cache=3)


@pytest.mark.parametrize("solver", ["bcfw", "frank-wolfe"])
def test_warm_starts_know_the_true_classes(solver, interpreted_loops):
    """Dual points are counted from the true outputs: with those of others they would certify what is not so."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 3)), np.append([0, 1, 2], rng.integers(0, 3, 8)[3:])
    model = MulticlassSVM(C=1.0, solver=solver, warm_start=True, dtype="float64", tol=1e-2, random_state=0).fit(X, y)
    y[4] = (y[4] + 1) % 3
    other = model.fit(X, y).certificate_
    afresh = MulticlassSVM(C=1.0, solver="one-slack", dtype="float64", tol=1e-3).fit(X, y).certificate_
    assert other.dual <= afresh.primal
    assert afresh.dual <= other.primal
