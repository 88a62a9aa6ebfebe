import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import CandidateCRF, CandidateSVM, Status, regularization_path
from tests import naive


@pytest.fixture(scope="module")
def lists():
    """Forty lists of two to six candidates, the true one mostly the highest in a direction."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(2, 7), 4)) for _ in range(40)]
    return X, [int(np.argmax(x @ [2, -1, 0, 1] + 0.5 * rng.normal(size=len(x)))) for x in X]


@pytest.fixture(scope="module")
def model(lists):
    return CandidateSVM(random_state=0).fit(*lists)


def test_learns_and_certifies(model, lists):
    X, y = lists
    assert model.status_ is Status.OPTIMAL
    assert model.score(X, y) > 0.75
    assert model.coef_.shape == (4,)
    assert model.n_features_in_ == 4


def test_the_objective_is_the_documented_one(lists):
    X, y = (part[:12] for part in lists)
    rng = np.random.default_rng(1)
    costs = [3 * rng.random(len(x)) for x in X]
    for cost, label in zip(costs, y, strict=True):
        cost[label] = 0
    weight = rng.random(12)
    model = CandidateSVM(C=0.3, dtype="float64", random_state=0).fit(X, y, weight, costs=costs)
    blocks = [(x[label] - x, cost) for x, label, cost in zip(X, y, costs, strict=True)]
    _, optimum = naive.solve(blocks, 0.3, weight)
    assert np.isclose(naive.primal(model.coef_, blocks, 0.3, weight), model.trace_.primal[-1])
    assert model.trace_.dual[-1] <= optimum <= model.trace_.primal[-1]


def test_predictions(model, lists):
    X, y = lists
    scores = [x @ model.coef_ for x in X]
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(scores, model.decision_function(X), strict=True))
    assert model.predict(X).tolist() == [int(np.argmax(s)) for s in scores]
    for s, (indices, values) in zip(scores, model.predict_topk(X, 3), strict=True):
        assert indices.tolist() == np.argsort(-s)[:3].tolist()
        assert np.allclose(values, np.sort(s)[::-1][:3], atol=1e-5)
    halves = [1.0] * 20 + [0.0] * 20
    assert np.isclose(model.score(X, y, halves), model.score(X[:20], y[:20]))


def test_sparse_candidates_are_the_same(lists):
    X, y = lists
    dense = CandidateSVM(random_state=0, tol=1e-6, dtype="float64").fit(X, y)
    rows = [sp.csr_array(x) for x in X]
    sparse = CandidateSVM(random_state=0, tol=1e-6, dtype="float64").fit(rows, y)
    assert np.allclose(dense.coef_, sparse.coef_, atol=1e-3)
    assert np.array_equal(sparse.predict(X), sparse.predict(rows))  # each converts what it is given


def test_crf_maximises_the_conditional_likelihood(lists):
    X, y = lists
    model = CandidateCRF(C=0.5, tol=1e-8).fit(X, y)
    p = model.predict_marginals(X)
    for x, marginal in zip(X, p, strict=True):
        e = np.exp(x @ model.coef_)
        assert np.allclose(marginal, e / e.sum())
    gradient = model.coef_ / 0.5 - sum(x[label] - q @ x for x, label, q in zip(X, y, p, strict=True))
    assert np.allclose(gradient, 0, atol=1e-3)
    assert model.score(X, y) > 0.75


def test_paths_and_warm_starts(lists):
    X, y = lists
    path = regularization_path(CandidateSVM(), X, y, eps=0.3, X_dev=X, y_dev=y, random_state=0)
    assert path.is_complete
    assert path.model_at(path.best_lambda).score(X, y) == path.scores.max()
    model = CandidateSVM(warm_start=True, tol=1e-2, random_state=0).fit(X, y)
    model.set_params(tol=9e-3).fit(X, y)
    assert model.n_iter_ <= 10
    assert CandidateCRF(warm_start=True).fit(X, y).fit(X, y).n_iter_ <= 2


GOOD = [[[1.0, 2.0], [0.0, 1.0]], [[1.0, 1.0]]]


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "X must hold at least one candidate set, but it is empty"),
        ([GOOD[0], np.zeros((0, 2))], [0, 0], {}, ValueError, r"X\[1\] is empty: every candidate set needs"),
        ([GOOD[0], [[1.0]]], [0, 0], {}, ValueError, r"X\[1\] has 1 feature, but X\[0\] has 2"),
        ([GOOD[0], [[1.0, np.nan]]], [0, 0], {}, ValueError, r"X\[1\] contains NaN or infinity, in row 0"),
        (np.eye(2), [0, 0], {}, ValueError, "X is one matrix: pass a list of matrices, one per candidate set"),
        (GOOD, [0, 1], {}, ValueError, r"y\[1\] is 1, but X\[1\] has only the candidates 0 to 0"),
        (GOOD, [-1, 0], {}, ValueError, r"y\[0\] is -1, but X\[0\] has only the candidates 0 to 1"),
        (GOOD, [0], {}, ValueError, "X has 2 candidate sets, but y has 1"),
        (GOOD, [0, 0.5], {}, TypeError, r"y\[1\] must be the index of a candidate, an integer, not 0.5"),
        (GOOD, None, {}, TypeError, "y must be a list with the index of the true candidate"),
        (GOOD, [0, 0], {"costs": [[0, 1]]}, ValueError, "X has 2 candidate sets, but costs has 1"),
        (
            GOOD,
            [0, 0],
            {"costs": [[0, 1], [0, 1]]},
            ValueError,
            r"costs\[1\] must have the shape \(1,\), to go with X\[1\]",
        ),
        (GOOD, [0, 0], {"costs": [[0, -1], [0]]}, ValueError, r"costs\[0\] must hold numbers from 0"),
        (GOOD, [1, 0], {"costs": [[0, 2], [0]]}, ValueError, r"costs\[0\] must be zero for the true candidate 1"),
    ],
)
def test_bad_input(X, y, options, error, message):
    with pytest.raises(error, match=message):
        CandidateSVM().fit(X, y, **options)
