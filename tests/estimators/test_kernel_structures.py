"""Kernels on trees and classes: against linear models on explicit features, an independent QP, and each other."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from maxmargin import (
    BCFW,
    CandidateSVM,
    Graph,
    GraphSVM,
    KernelCandidateSVM,
    KernelGraphSVM,
    KernelMulticlassSVM,
    KernelTreeSVM,
    MulticlassSVM,
    Tags,
    TreeSVM,
)
from maxmargin.solvers import all_solvers
from tests import naive
from tests.estimators.test_kernel import TAKING
from tests.fuzz.certified import blocks_of, explicit
from tests.small import make

LINEAR = {
    KernelTreeSVM: TreeSVM,
    KernelMulticlassSVM: MulticlassSVM,
    KernelGraphSVM: GraphSVM,
    KernelCandidateSVM: CandidateSVM,
}
EXACT = {"dtype": "float64", "tol": 1e-9, "max_passes": 5000, "random_state": 0, "C": 0.5}
EXACT["solver"] = BCFW(steps="pairwise", sampling="gap")
POLY = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
BY_MODEL = pytest.mark.parametrize("kind", LINEAR, ids=lambda kind: kind.__name__)

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def rows_of(X):
    """The rows of all examples."""
    return np.concatenate([x[0] if isinstance(x, tuple) else np.atleast_2d(x) for x in X])


def with_rows(X, change):
    """Examples with other rows."""
    if isinstance(X, np.ndarray):
        return change(X)
    return [change_first(x, change) if isinstance(x, tuple) else change(x) for x in X]


def change_first(x, change):
    """A tuple of the same class with another first entry."""
    make = getattr(type(x), "_make", tuple)
    return make((change(x[0]), *x[1:]))


def monomials(rows):
    """Features whose inner products are (<x, x'> + 1)^2."""
    first, second = np.triu_indices(rows.shape[1], 1)
    pairs = np.sqrt(2) * rows[:, first] * rows[:, second]
    return np.hstack([np.ones((len(rows), 1)), np.sqrt(2) * rows, rows**2, pairs])


def assert_alike(model, linear, X, Z):
    """Two models of the same objective have the same certificates, and scores of other examples."""
    assert np.isclose(model.certificate_.primal, linear.certificate_.primal, rtol=1e-7)
    assert np.isclose(model.certificate_.dual, linear.certificate_.dual, rtol=1e-7)
    for ours, theirs in zip(model.decision_function(X), linear.decision_function(Z), strict=True):
        assert np.allclose(ours, theirs, atol=1e-3)
    assert all(np.array_equal(a, b) for a, b in zip(model.predict(X), linear.predict(Z), strict=True))


@BY_MODEL
def test_a_linear_kernel_is_the_linear_model(kind):
    _, X, y, _ = make(kind.__name__)
    model, linear = kind(kernel="linear", **EXACT).fit(X[:6], y[:6]), LINEAR[kind](**EXACT).fit(X[:6], y[:6])
    assert_alike(model, linear, X[6:], X[6:])


@BY_MODEL
def test_a_polynomial_kernel_is_the_linear_model_of_monomials(kind):
    _, X, y, _ = make(kind.__name__)
    Z = with_rows(X, monomials)
    model, linear = kind(**POLY, **EXACT).fit(X[:6], y[:6]), LINEAR[kind](**EXACT).fit(Z[:6], y[:6])
    assert_alike(model, linear, X[6:], Z[6:])


@BY_MODEL
def test_every_solver_reaches_the_optimum_of_a_dense_qp(kind):
    _, X, y, _ = make(kind.__name__)
    X, y = X[1:5], y[1:5]
    model = kind(gamma=0.5, **EXACT).fit(X, y)
    problem, (w,) = explicit(model._encode(X, y).problem, model)
    blocks = blocks_of(problem)
    optimum = naive.solve(blocks, 0.5)[1]
    assert np.isclose(model.certificate_.primal, optimum, rtol=1e-7)
    assert np.isclose(model.certificate_.dual, optimum, rtol=1e-7)
    assert np.isclose(naive.primal(w, blocks, 0.5), optimum, rtol=1e-7)
    for name in TAKING:
        model.set_params(solver=all_solvers()[name], tol=0.02).fit(X, y)
        certificate = model.certificate_
        assert certificate.dual <= optimum * (1 + 1e-9), name
        assert certificate.primal >= optimum * (1 - 1e-9), name
        assert certificate.gap <= 0.02 * certificate.primal, name


@BY_MODEL
def test_a_precomputed_kernel_or_a_function_is_the_same(kind):
    _, X, y, _ = make(kind.__name__)
    rows = rows_of(X[:6])
    named = kind(**POLY, **EXACT).fit(X[:6], y[:6])

    def function(a, b):
        return polynomial_kernel(a, b, degree=2, gamma=1.0, coef0=1.0)

    called = kind(kernel=function, **EXACT).fit(X[:6], y[:6])
    assert_alike(called, named, X[6:], X[6:])
    Z = with_rows(X, lambda own: function(own, rows))
    precomputed = kind(kernel="precomputed", **EXACT).fit(Z[:6], y[:6])
    assert_alike(precomputed, named, Z[6:], X[6:])
    assert not hasattr(precomputed, "support_vectors_")
    assert np.allclose(named.support_vectors_, rows[named.support_])
    assert len(named.coef_.dual) == len(named.support_)
    with pytest.raises(ValueError, match=r"precomputed kernel must be square"):
        kind(kernel="precomputed").fit(X[:6], y[:6])


@BY_MODEL
def test_going_on_with_other_data(kind):
    model, X, y, _ = make(kind.__name__)
    model.fit(X, y)
    with pytest.raises(ValueError, match="Kernel models cannot go on with other data"):
        model.partial_fit(X[:5], y[:5])


def test_features_of_edges():
    _, X, y, _ = make("KernelTreeSVM")
    rng = np.random.default_rng(1)
    X = [tree._replace(edge_features=rng.normal(size=(len(tree.edges), 2))) for tree in X]
    Z = with_rows(X, monomials)
    model, linear = KernelTreeSVM(**POLY, **EXACT).fit(X[:6], y[:6]), TreeSVM(**EXACT).fit(Z[:6], y[:6])
    assert_alike(model, linear, X[6:], Z[6:])
    assert np.allclose(model.coef_.transitions, linear.coef_.transitions, atol=1e-3)
    assert np.allclose(model.coef_.edges, linear.coef_.edges, atol=1e-3)


def test_rows_and_columns_of_a_precomputed_kernel_are_split():
    _, X, y, _ = make("KernelMulticlassSVM")
    scores = cross_val_score(KernelMulticlassSVM(gamma=0.5, random_state=0), X, y, cv=3)
    gram = rbf_kernel(X, gamma=0.5)
    precomputed = KernelMulticlassSVM(kernel="precomputed", random_state=0)
    assert np.array_equal(cross_val_score(precomputed, gram, y, cv=3), scores)


@pytest.mark.long
def test_scikit_learn_checks():
    """All but those that compare two fits to more digits than the tolerance asks for, or ask for `partial_fit`."""
    reason = "two fits agree within tol, not to ten digits"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    expected["check_fit_score_takes_y"] = "partial_fit refuses: kernel models cannot go on with other data"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(KernelMulticlassSVM(random_state=0), expected_failed_checks=expected)


def test_types_of_nodes_have_functions_of_their_own():
    """As the linear model of monomials, where types of nodes have different labels."""
    rng = np.random.default_rng(2)
    types = ["left", "left", "right"]
    X = [Graph(rng.normal(size=(3, 2)), [(0, 1), (1, 2)], node_types=types) for _ in range(8)]
    y = [["ab"[a], "ab"[b], "cd"[a]] for a, b in rng.integers(2, size=(8, 2))]
    Z = with_rows(X, monomials)
    model, linear = KernelGraphSVM(**POLY, **EXACT).fit(X[:6], y[:6]), GraphSVM(**EXACT).fit(Z[:6], y[:6])
    assert_alike(model, linear, X[6:], Z[6:])
    assert model.coef_["dual[left]"].shape == model.coef_["dual[right]"].shape == (len(model.support_), 2)


def test_boxes_are_no_labels_of_a_kernel():
    _, X, y, _ = make("KernelGraphSVM")
    with pytest.raises(ValueError, match="models with kernels take no Tags, Boxes or Seeds"):
        KernelGraphSVM().fit(X, [Tags(["a", "b"]), *y[1:]])


def test_where_nothing_has_a_coefficient():
    """Costs of zero leave nothing to learn: predictions are there all the same."""
    _, X, y, _ = make("KernelGraphSVM")
    model = KernelGraphSVM(cost=np.zeros((3, 3)), random_state=0).fit(X, y)
    assert model.coef_.dual.shape == (0, 3)
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]
