import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

from maxmargin import LBFGS, MatchingSVM, Status, load
from tests import naive


@pytest.fixture(scope="module")
def points():
    """Points and the same ones moved a little and shuffled, some without a partner; features of pairs."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(25):
        left = rng.normal(size=(rng.integers(2, 5), 2))
        order = rng.permutation(len(left))
        right = left[order] + 0.2 * rng.normal(size=left.shape)
        has_partner = rng.random(len(left)) < 0.8
        right = np.vstack([right[has_partner[order]], rng.normal(size=(1, 2))])
        kept = order[has_partner[order]]
        y.append(np.array([list(kept).index(v) if v in kept else -1 for v in range(len(left))]))
        apart = np.abs(left[:, None] - right[None])
        X.append(np.dstack([apart, apart.sum(axis=2) ** 2, np.ones(apart.shape[:2])]))
    return X, y


@pytest.fixture(scope="module")
def model(points):
    return MatchingSVM(C=10.0, random_state=0).fit(*points)


def test_learns_and_certifies(model, points):
    X, y = points
    assert model.status_ is Status.OPTIMAL
    assert model.score(X, y) > 0.9
    assert cross_val_score(MatchingSVM(C=10.0, random_state=0), X, y, cv=2).mean() > 0.8
    halves = [1.0] * 12 + [0.0] * 13
    assert np.isclose(model.score(X, y, halves), model.score(X[:12], y[:12]))


def as_parts(y, n_right):
    return np.eye(n_right + 1)[y]  # -1 is the last column


def test_predictions_are_the_best_matchings(model, points):
    X, _ = points
    results = zip(X, model.predict(X), model.predict_topk(X, 4), model.decision_function(X), strict=True)
    for x, y, (best, scores), decision in results:
        every = list(naive.matchings(*x.shape[:2]))
        theta = np.column_stack([x @ model.coef_, np.zeros(len(x))])
        parts = np.array([as_parts(matching, x.shape[1]) for matching in every])
        values = (parts * theta).sum(axis=(1, 2))
        order = np.argsort(-values)
        assert np.array_equal(y, every[order[0]])
        assert np.array_equal(best[0], y)
        assert np.allclose(scores, values[order[:4]], atol=1e-4)
        through = np.where(parts > 0, values[:, None, None], -np.inf).max(axis=0)
        assert np.allclose(decision, through, atol=1e-4)


@pytest.fixture(scope="module")
def weak():
    """Features that rarely tell the true link from all others; four nodes in ten have none."""
    rng = np.random.default_rng(0)
    y = [np.where(rng.random(6) < 0.6, np.arange(6), -1) for _ in range(20)]
    return [np.dstack([1.5 * np.diag(t >= 0) + rng.normal(size=(6, 6)), np.ones((6, 6))]) for t in y], y


def links(matches):
    return {(i, v, z) for i, match in enumerate(matches) for v, z in enumerate(match) if z >= 0}


def f1(y, predictions):
    true, found = links(y), links(predictions)
    return 2 * len(true & found) / (len(true) + len(found))


def test_a_threshold_for_models_that_link_too_few(weak, tmp_path):
    X, y = weak
    with pytest.warns(UserWarning, match=r"Of the left nodes .* the model links \d+: .* choose_threshold makes it"):
        model = MatchingSVM(dtype="float64", random_state=0).fit(X, y)
    before, optimum = f1(y, model.predict(X)), model.certificate_
    assert (model.threshold_, model.status_) == (0.0, Status.OPTIMAL)
    assert model.choose_threshold(X, y) is model
    assert f1(y, model.predict(X)) > before + 0.2
    assert model.certificate_ == optimum
    for x, (best, scores) in zip(X[:4], model.predict_topk(X[:4], 2), strict=True):
        table = np.column_stack([x @ model.coef_, np.full(6, model.threshold_)])
        every = np.array([*naive.matchings(6, 6)][::-1])
        values = table[np.arange(6), every].sum(axis=1)
        assert np.allclose(scores, np.sort(values)[:-3:-1])
        assert np.isclose(table[np.arange(6), best[0]].sum(), scores[0])
    model.save(tmp_path / "links.model")
    loaded = load(tmp_path / "links.model")
    assert loaded.threshold_ == model.threshold_
    assert links(loaded.predict(X)) == links(model.predict(X))
    model.choose_threshold(X, y, scoring=lambda y, predictions: -len(links(predictions)))
    assert not links(model.predict(X))
    with pytest.warns(UserWarning, match="choose_threshold"):
        assert model.fit(X, y).threshold_ == 0


def test_good_features_need_no_threshold(points):
    X, y = points
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MatchingSVM(C=10.0, random_state=0).fit(X, y)
    before = f1(y, model.predict(X))
    assert f1(y, model.choose_threshold(X, y).predict(X)) >= before
    with pytest.raises(ValueError, match="X must hold at least one pair of nodes"):
        model.choose_threshold([np.zeros((2, 0, 4))], [[-1, -1]])


def test_the_objective_is_the_documented_one(points):
    X, y = (part[:4] for part in points)
    weight = [np.random.default_rng(0).random(x.shape[:2]) for x in X]
    model = MatchingSVM(C=0.4, wrong_cost=0.5, missed_cost=3.0, dtype="float64", random_state=0)
    model.fit(X, y, np.arange(4.0), link_weight=weight)
    blocks = []
    for x, truth, factor in zip(X, y, weight, strict=True):
        every = list(naive.matchings(*x.shape[:2]))
        gold = as_parts(truth, x.shape[1])[:, :-1]
        links = np.array([as_parts(matching, x.shape[1])[:, :-1] for matching in every])
        wrong, missed = (links * (1 - gold) * factor).sum(axis=(1, 2)), ((1 - links) * gold).sum(axis=(1, 2))
        blocks.append((np.einsum("kvz,vzf->kf", gold - links, x), 0.5 * wrong + 3.0 * missed))
    _, optimum = naive.solve(blocks, 0.4, np.arange(4.0), tol=1e-7)
    assert np.isclose(naive.primal(model.coef_, blocks, 0.4, np.arange(4.0)), model.trace_.primal[-1])
    assert model.trace_.dual[-1] <= optimum <= model.trace_.primal[-1]


def test_input_forms_are_equivalent(points, interpreted_loops):
    X, y = points
    options = {"solver": "bcfw", "random_state": 0, "max_passes": 5, "tol": 1e-9}  # "auto" chooses by the clock
    reference = MatchingSVM(**options).fit(X, y)
    links = [[(v, z) for v, z in enumerate(match.tolist()) if z >= 0] for match in y]
    others = [
        MatchingSVM(**options).fit(X, links),
        MatchingSVM(**options).fit(X, [set(pairs) for pairs in links]),
        MatchingSVM(**options).fit([x.tolist() for x in X], [match.tolist() for match in y]),
        MatchingSVM(**options).fit([(x.reshape(-1, 4), x.shape[:2]) for x in X], y),
    ]
    for other in others:
        assert np.array_equal(reference.coef_, other.coef_)
    sparse_X = [(sp.csr_array(x.reshape(-1, 4)), x.shape[:2]) for x in X]
    assert np.allclose(reference.coef_, MatchingSVM(**options).fit(sparse_X, y).coef_, atol=1e-3)
    assert all(np.array_equal(a, b) for a, b in zip(reference.predict(X), reference.predict(sparse_X), strict=True))


def test_empty_sides(model, points):
    X, y = points
    fitted = MatchingSVM(random_state=0).fit([*X, np.zeros((0, 3, 4)), np.zeros((2, 0, 4))], [*y, [], [-1, -1]])
    nothing, alone = fitted.predict([np.zeros((0, 3, 4)), np.zeros((2, 0, 4))])
    assert nothing.tolist() == []
    assert alone.tolist() == [-1, -1]
    assert fitted.decision_function([np.zeros((2, 0, 4))])[0].tolist() == [[0], [0]]
    assert len(fitted.predict_topk([np.zeros((2, 0, 4))], 3)[0][0]) == 1


def test_warm_starts(points):
    model = MatchingSVM(warm_start=True, tol=1e-2, random_state=0).fit(*points)
    model.set_params(tol=9e-3).fit(*points)
    assert model.n_iter_ <= 10


def test_complete_matchings_are_the_best_of_all(points, interpreted_loops, tmp_path):
    X = [np.dstack([x[:2, :2], x[:2, :2] ** 2]) for x in points[0] if x.shape[1] > 1]
    y = [[0, 1] if np.trace(x[:, :, 2]) < np.trace(x[:, ::-1, 2]) else [1, 0] for x in X]
    model = MatchingSVM(C=10.0, complete=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "a.model")
    wide = [np.dstack([x, x**2]) for x in points[0] if x.shape[0] <= x.shape[1]]
    predictions = load(tmp_path / "a.model").predict(wide)
    results = zip(wide, predictions, model.predict_topk(wide, 4), model.decision_function(wide), strict=True)
    for x, found, (best, scores), decision in results:
        n, m = x.shape[:2]
        every = [*naive.matchings(n, m, complete=True)]
        parts = np.array([as_parts(matching, m)[:, :m] for matching in every])
        values = (parts * (x @ model.coef_)).sum(axis=(1, 2))
        assert np.array_equal(found, every[values.argmax()])
        assert len(best) == min(4, len(every))
        assert np.allclose(scores, np.sort(values)[::-1][:4], atol=1e-3)
        assert np.allclose(decision, np.where(parts > 0, values[:, None, None], -np.inf).max(axis=0), atol=1e-3)
    known = MatchingSVM(complete=True, random_state=0).fit(X, [[None, {0, 1}], *y[1:]])
    assert known.predict(X[:1], allowed=[[None, 0]])[0].tolist() == [1, 0]


def test_bad_complete_matchings():
    square, tall = np.ones((2, 2, 1)), np.ones((2, 1, 1))
    with pytest.raises(ValueError, match=r"X\[1\] has 2 left and 1 right nodes, but with complete=True every left one"):
        MatchingSVM(complete=True).fit([square, tall], [[0, 1], [0, None]])
    with pytest.raises(ValueError, match=r"y\[0\] leaves left node 1 without a link, but complete=True"):
        MatchingSVM(complete=True).fit([square], [[0, -1]])
    model = MatchingSVM(complete=True).fit([square], [[0, 1]])
    with pytest.raises(ValueError, match=r"X\[0\] has 2 left and 1 right nodes"):
        model.predict([tall])
    with pytest.raises(ValueError, match=r"y\[0\] leaves left node 0 without a link"):
        model.score([square], [[-1, 1]])
    with pytest.raises(ValueError, match="choose_threshold is for models whose left nodes may have no link"):
        model.choose_threshold([square], [[0, 1]])
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no output of X\[0\]"):
        model.predict([square], allowed=[[-1, None]])


def test_probabilities_are_out_of_reach(points):
    with pytest.raises((TypeError, ValueError), match="LBFGS"):
        MatchingSVM(solver=LBFGS()).fit(*points)


X = [np.ones((2, 3, 1)), np.ones((1, 2, 1))]


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "X must hold at least one pair of sides, but it is empty"),
        ([X[0], np.ones((2, 2))], [[0, 1], [0, 1]], {}, ValueError, r"X\[1\] must be an \(n, m, F\) array"),
        ([X[0], np.ones((1, 2, 3))], [[0, 1], [0]], {}, ValueError, r"X\[1\] has 3 features, but X\[0\] has 1"),
        ([X[0], np.full((1, 2, 1), np.nan)], [[0, 1], [0]], {}, ValueError, r"X\[1\] contains NaN or infinity"),
        ([(np.ones((5, 1)), (2, 3))], [[0, 1]], {}, ValueError, r"X\[0\] must have 2 x 3 rows of features"),
        ([(np.ones((6, 1)), (2, 1.5))], [[0, 1]], {}, ValueError, r"X\[0\] must give the numbers of left and right"),
        (5, [[0, 1]], {}, TypeError, r"X must be a list of \(n, m, F\) arrays, one per example, not an int"),
        (X, [[0, 1]], {}, ValueError, "X has 2 examples, but y has 1"),
        (X, None, {}, TypeError, "y must be a list with one matching per example"),
        (X, [[0, 1, 2], [0]], {}, ValueError, r"y\[0\] has 3 entries, but there are 2 left nodes"),
        (X, [[1, 1], [0]], {}, ValueError, r"y\[0\] links the right node 1 twice"),
        (X, [[0, 3], [0]], {}, ValueError, r"y\[0\] links the right node 3, but there are 3, from 0"),
        (X, [[0, -2], [0]], {}, ValueError, r"y\[0\] contains -2; a left node without a link is -1"),
        (X, [[(0, 0), (0, 1)], [0]], {}, ValueError, r"y\[0\] links the left node 0 twice"),
        (X, [[(2, 0)], [0]], {}, ValueError, r"y\[0\] links the left node 2, but there are 2, from 0"),
        (X, [[(0, -1)], [0]], {}, ValueError, r"y\[0\] links the right node -1, but there are 3, from 0"),
        (X, [[(0, 1), (1, 1)], [0]], {}, ValueError, r"y\[0\] links the right node 1 twice"),
        (X, [[0.5, 1.0], [0]], {}, TypeError, r"y\[0\] must hold integers"),
        (X, [[0, 1], [0]], {"link_weight": [X[0][:, :, 0]]}, ValueError, "but link_weight has 1"),
        (X, [[0, 1], [0]], {"link_weight": [X[0][:, :, 0], [[1]]]}, ValueError, r"link_weight\[1\] must have the"),
        (X, [[0, 1], [0]], {"link_weight": [-X[0][:, :, 0], [[1, 1]]]}, ValueError, r"link_weight\[0\] must hold"),
    ],
)
def test_bad_input(X, y, options, error, message):
    with pytest.raises(error, match=message):
        MatchingSVM().fit(X, y, **options)


def test_bad_costs(points):
    with pytest.raises(ValueError, match="missed_cost must be a number, 0 or more, not -1"):
        MatchingSVM(missed_cost=-1).fit(*points)
