"""Kernels on chains: against linear models, an independent QP on explicit features, and each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from maxmargin import (
    BCFW,
    ChainCRF,
    ChainSVM,
    ExcessiveGap,
    ExponentiatedGradient,
    KernelChainCRF,
    KernelChainSVM,
    regularization_path,
)
from maxmargin.losses import NAMED
from maxmargin.solvers import all_solvers
from tests import naive

PAIRWISE = BCFW(steps="pairwise", sampling="gap")
EXACT = {"dtype": "float64", "tol": 1e-10, "max_passes": 5000, "random_state": 0}
TAKING = {"auto", "bcfw", "excessive-gap", "exponentiated-gradient", "extragradient", "frank-wolfe", "one-slack"}
TAKING |= {"n-slack"}


@pytest.fixture(scope="module")
def tiny():
    """Five short sequences of two labels that no linear scores tell apart."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 2)) for length in (3, 1, 2, 3, 2)]
    return X, [(x.prod(axis=1) > 0).astype(int) for x in X]


def explicit(gram, X):
    """Rows whose inner products are a Gram matrix, cut into sequences."""
    values, vectors = np.linalg.eigh(gram)
    return np.split(vectors * np.sqrt(np.maximum(values, 0)), np.cumsum([len(x) for x in X])[:-1])


def test_a_linear_kernel_is_the_linear_model(words, interpreted_loops):
    X, y = words
    linear = ChainSVM(C=0.3, solver=PAIRWISE, **EXACT).fit(X[:8], y[:8])
    model = KernelChainSVM(kernel="linear", C=0.3, solver=PAIRWISE, **EXACT).fit(X[:8], y[:8])
    assert abs(model.certificate_.primal - linear.certificate_.primal) < 1e-8
    assert abs(model.certificate_.dual - linear.certificate_.dual) < 1e-8
    rng = np.random.default_rng(1)
    X, y = [rng.normal(size=(4, 3)) for _ in range(30)], [["a", "b", "b", "c"]] * 30  # on which no scores are tied
    for ours, theirs in zip(model.decision_function(X), linear.decision_function(X), strict=True):
        assert np.allclose(ours, theirs, atol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(model.predict(X), linear.predict(X), strict=True))
    assert model.score(X, y) == linear.score(X, y)
    ours, theirs = model.predict_topk(X[:1], 3)[0], linear.predict_topk(X[:1], 3)[0]
    assert np.array_equal(ours[0], theirs[0])
    assert np.allclose(ours[1], theirs[1], atol=1e-6)
    assert np.allclose(model.coef_.transitions, linear.coef_.transitions, atol=1e-6)
    assert np.allclose(model.support_vectors_.T @ model.coef_.dual, linear.coef_.emissions, atol=1e-6)


@pytest.mark.usefixtures("interpreted_loops")
def test_a_linear_kernel_is_the_linear_crf(words):
    X, y = words
    linear = ChainCRF(C=0.3, tol=1e-9).fit(X[:10], y[:10])
    model = KernelChainCRF(kernel="linear", C=0.3, tol=1e-9, random_state=0).fit(X[:10], y[:10])
    assert abs(model.certificate_.primal - linear.certificate_.primal) < 1e-8
    for ours, theirs in zip(model.predict_marginals(X), linear.predict_marginals(X), strict=True):
        assert np.allclose(ours, theirs, atol=1e-4)
    assert np.allclose(model.log_likelihood(X, y), linear.log_likelihood(X, y), atol=1e-2)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_optimum_of_a_dense_qp(tiny, kernel, fit_intercept):
    X, y = tiny
    model = KernelChainSVM(
        kernel=kernel, gamma=0.5, degree=2, C=2.0, fit_intercept=fit_intercept, solver=PAIRWISE, **EXACT
    )
    model.fit(X, y)
    rows = np.concatenate(X)
    gram = rbf_kernel(rows, gamma=0.5) if kernel == "rbf" else polynomial_kernel(rows, degree=2, gamma=0.5, coef0=1)
    if fit_intercept:
        starts = np.cumsum([0, *map(len, X)])
        biases = np.zeros((len(rows), 3))
        biases[:, 0] = biases[starts[:-1], 1] = biases[starts[1:] - 1, 2] = 1
        gram = gram + biases @ biases.T
    features = explicit(gram, X)
    blocks = naive.table(features, y, 2)
    optimum = naive.solve(blocks, 2.0)[1]
    assert np.isclose(model.certificate_.primal, optimum, rtol=1e-7)
    assert np.isclose(model.certificate_.dual, optimum, rtol=1e-7)
    coefficients = np.zeros((len(rows), 2))
    coefficients[model.support_] = model.coef_.dual
    weights = np.concatenate([(np.concatenate(features).T @ coefficients).ravel(), model.coef_.transitions.ravel()])
    assert np.isclose(naive.primal(weights, blocks, 2.0), model.certificate_.primal)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("name", all_solvers())
def test_solvers_that_take_kernels_reach_the_optimum(tiny, name):
    X, y = tiny
    solver = all_solvers()[name]
    if not solver.takes(NAMED["hinge"]):
        pytest.skip("not a solver of the hinge loss")
    model = KernelChainSVM(C=0.5, gamma=0.5, dtype="float64", tol=0.01, solver=solver, random_state=0)
    if name not in TAKING:
        with pytest.raises(ValueError, match=rf"{type(solver).__name__} takes no kernels: use BCFW"):
            model.fit(X, y)
        return
    optimum = naive.solve(naive.table(explicit(rbf_kernel(np.concatenate(X), gamma=0.5), X), y, 2), 0.5)[1]
    certificate = model.set_params(fit_intercept=False).fit(X, y).certificate_
    assert certificate.dual <= optimum * (1 + 1e-9)
    assert certificate.primal >= optimum * (1 - 1e-9)
    assert certificate.gap <= 0.01 * certificate.primal


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_a_precomputed_kernel_or_a_function_is_the_same(words, kernel):
    X, y = words[0][:12], words[1][:12]
    options = {"C": 0.1, "solver": PAIRWISE, **EXACT | {"tol": 1e-8}}
    named = KernelChainSVM(kernel=kernel, gamma=0.4, degree=2, **options).fit(X, y)
    rows = np.concatenate(X)

    def function(a, b):
        products = a @ b.T
        return {
            "linear": lambda: products,
            "poly": lambda: (0.4 * products + 1) ** 2,
            "rbf": lambda: rbf_kernel(a, b, 0.4),
        }[kernel]()

    precomputed = KernelChainSVM(kernel="precomputed", **options).fit([function(x, rows) for x in X], y)
    called = KernelChainSVM(kernel=function, **options).fit(X, y)
    others = words[0][12:]
    for model, given in ((precomputed, [function(x, rows) for x in others]), (called, others)):
        assert np.isclose(model.certificate_.primal, named.certificate_.primal, rtol=1e-7)
        for ours, theirs in zip(model.decision_function(given), named.decision_function(others), strict=True):
            assert np.allclose(ours, theirs, atol=1e-3)
    assert not hasattr(precomputed, "support_vectors_")


@pytest.mark.parametrize("solver", [PAIRWISE, ExcessiveGap()], ids=["bcfw", "excessive-gap"])
def test_what_is_kept_changes_nothing(words, solver, interpreted_loops):
    X, y = words
    n_bytes = 8 * sum(map(len, X)) * 3  # for three rows
    options = {"C": 1.0, "dtype": "float64", "solver": solver, "random_state": 0, "max_passes": 5}
    most, least = (KernelChainSVM(cache_size=size, **options).fit(X, y) for size in (100, n_bytes / 1e6))
    assert np.allclose(most.trace_.primal, least.trace_.primal)
    assert np.allclose(most.trace_.dual, least.trace_.dual)


def test_sparse_rows_and_names(words):
    X, y = words[0][:10], words[1][:10]
    options = {"C": 1.0, "dtype": "float64", "random_state": 0}
    dense, sparse = (
        KernelChainSVM(gamma=0.5, tol=1e-8, **options).fit(rows, y) for rows in (X, [sp.csr_array(x) for x in X])
    )
    assert np.isclose(dense.certificate_.primal, sparse.certificate_.primal)
    wide = [sp.csr_array((np.ones(len(x)), (np.arange(len(x)), np.arange(len(x)) * 10**4)), (len(x), 10**5)) for x in X]
    model = KernelChainSVM(kernel="poly", cache_size=10, **options).fit(wide, y)
    assert sp.issparse(model.support_vectors_)
    assert len(model.predict(wide)) == 10
    names = [[{"odd": bool(t % 2)} for t in range(len(x))] for x in X]
    named = KernelChainSVM(kernel="poly", **options).fit(names, y)
    assert len(named.predict([[{"odd": True}]])[0]) == 1


def test_a_warm_start_at_another_gamma(words):
    X, y = words[0][:10], words[1][:10]
    model = KernelChainSVM(gamma=0.5, C=1.0, dtype="float64", tol=1e-6, warm_start=True, random_state=0).fit(X, y)
    again = model.set_params(gamma=2.0).fit(X, y).certificate_
    fresh = KernelChainSVM(gamma=2.0, C=1.0, dtype="float64", tol=1e-6, random_state=0).fit(X, y).certificate_
    assert np.isclose(again.primal, fresh.primal, rtol=1e-5)
    assert again.dual <= fresh.primal


def test_a_path(words):
    X, y = words[0][:10], words[1][:10]
    path = regularization_path(
        KernelChainSVM(gamma=0.5, dtype="float64"), X, y, eps=0.3, lambda_min=0.05, X_dev=X, y_dev=y, random_state=0
    )
    assert (path.gap <= 0.3).all()
    model = path.model_at(path.best_lambda)
    assert np.isclose(model.score(X, y), path.scores.max())


def test_only_support_positions_are_kept(words):
    X, y = words
    model = KernelChainSVM(kernel="poly", C=10.0, dtype="float64", random_state=0).fit(X, y)
    n_all = sum(map(len, X))
    assert 0 < len(model.support_) == len(model.support_vectors_) == len(model.coef_.dual) < n_all
    assert np.allclose(model.support_vectors_, np.concatenate(X)[model.support_], atol=1e-6)
    assert model._w.size == 3 * len(model.support_) + 9
    assert not any(np.size(value) > 9 * n_all for value in vars(model._encoder).values())


@pytest.mark.usefixtures("interpreted_loops")
def test_a_crf_takes_batch_steps_and_smoothed_losses(tiny):
    X, y = tiny
    blocks, batch = [
        KernelChainCRF(gamma=0.5, C=1.0, tol=1e-4, solver=ExponentiatedGradient(batch=batch), random_state=0).fit(X, y)
        for batch in (False, True)
    ]
    assert np.isclose(blocks.certificate_.primal, batch.certificate_.primal, rtol=1e-3)
    assert blocks.sample(X, 2, random_state=0)[0].shape == (2, 3)
    assert (blocks.confidence(X) <= 1).all()


def not_positive(n):
    return np.eye(n) - 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "cosine"}, r"kernel must be a function or one of linear, poly, rbf, precomputed, not 'cosine'\."),
        ({"kernel": None}, "kernel must be a function or one of"),
        ({"gamma": 0.0}, "gamma must be a positive number, not 0"),
        ({"gamma": -1.0}, "gamma must be a positive number"),
        ({"gamma": "wide"}, "gamma must be a positive number, 'scale' or 'auto', not 'wide'"),
        ({"degree": 0}, "degree must be"),
        ({"degree": 1.5}, "degree must be"),
        ({"coef0": -1.0}, "coef0 must be a number, 0 or more"),
        ({"cache_size": 0}, "cache_size must be a positive number"),
        ({"kernel": "precomputed"}, r"must be square: X has 11 rows in all, .* but they have 2\."),
        ({"kernel": lambda a, b: a}, r"kernel must return a matrix of numbers of the shape \(11, 11\)"),
        ({"kernel": lambda a, b: "no"}, "kernel must return a matrix of numbers"),
        (
            {"kernel": lambda a, b: np.arange(11.0) + np.zeros((11, 1))},
            r"must be symmetric, .* \(0, 10\) and \(10, 0\)",
        ),
        (
            {"kernel": lambda a, b: not_positive(len(a))},
            r"positive semidefinite, but its smallest eigenvalue is -4\.5\.",
        ),
        ({"kernel": lambda a, b: np.full((11, 11), np.nan)}, "Values of the kernel reach nan"),
        ({"kernel": lambda a, b: a @ b.T, "cache_size": 1e-4}, r"11 rows takes 484 bytes, .*Nystroem"),
        ({"cache_size": 4e-5}, r"11 rows takes 44 bytes, but cache_size leaves 40: raise it, .*Nystroem"),
        ({"solver": "lbfgs"}, "solver must be a Solver of the hinge loss"),
        ({"solver": "sgd"}, "SGD takes no kernels"),
    ],
)
def test_bad_input(tiny, options, message):
    with pytest.raises(ValueError, match=message):
        KernelChainSVM(**options).fit(*tiny)


def test_bad_data(tiny):
    X, y = tiny
    options = {"dtype": "float64", "random_state": 0}
    with pytest.raises(ValueError, match=r"Values of the kernel reach .*: scale the features\."):
        KernelChainSVM(kernel="poly", gamma=1.0, degree=9, **options).fit([1e6 * x for x in X], y)
    gram = [x @ np.concatenate(X).T for x in X]
    model = KernelChainSVM(kernel="precomputed", **options).fit(gram, y)
    with pytest.raises(ValueError, match="X has 10 features, but the model was fitted with 11"):
        model.predict([rows[:, :10] for rows in gram])
    called = KernelChainSVM(kernel=lambda a, b: a @ b.T if len(a) > 5 else a, **options).fit(X, y)
    with pytest.raises(ValueError, match="kernel must return a matrix of numbers"):
        called.predict(X[:1])


def test_every_value_of_the_gram_matrix_is_in_the_dtype(tiny):
    for dtype in ("float32", "float64"):
        features = KernelChainSVM(dtype=dtype)._encode(*tiny).problem.features
        assert features.kept.dtype == features.rows.dtype == features.room.dtype == dtype
