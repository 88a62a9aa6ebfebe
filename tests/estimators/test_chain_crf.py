import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from maxmargin import LBFGS, ChainCRF, Status, regularization_path
from tests import naive


@pytest.fixture(scope="module")
def model(words):
    return ChainCRF(C=1.0, fit_bias=False, tol=1e-6).fit(*words)


def scores_of(model, x):
    every = list(naive.labellings(len(x), 3))
    w = np.concatenate([model.coef_.emissions.ravel(), model.coef_.transitions.ravel()])
    return np.array(every), np.array([naive.chain_features(x, y, 3) @ w for y in every])


def test_learns_and_certifies(model, words):
    X, y = words
    assert model.status_ is Status.OPTIMAL
    assert model.score(X, y) > 0.9
    n = len(X)
    squared = sum((part**2).sum() for part in model.coef_.values())
    assert np.isclose(squared / (2 * n) - model.log_likelihood(X, y).mean(), model.trace_.primal[-1])


def test_marginals_and_likelihoods_equal_enumeration(model, words):
    X, y = ([s for s in part if len(s) <= 4] for part in words)
    for x, labels, marginal, log_p in zip(X, y, model.predict_marginals(X), model.log_likelihood(X, y), strict=True):
        every, scores = scores_of(model, x)
        p = np.exp(scores - np.logaddexp.reduce(scores))
        expected = [[p[every[:, t] == b].sum() for b in range(3)] for t in range(len(x))]
        assert np.allclose(marginal, expected)
        codes = np.searchsorted(model.classes_, labels)
        assert np.isclose(log_p, np.log(p[(every == codes).all(axis=1)].item()))


def test_predictions_are_the_most_likely_labellings(model, words):
    for x, (labels, scores) in zip(words[0][:5], model.predict_topk(words[0][:5], 3), strict=True):
        every, values = scores_of(model, x)
        order = np.argsort(-values)[:3]
        assert np.array_equal(labels, model.classes_[every[order]])
        assert np.allclose(scores, values[order])


def test_forbidden_transitions_have_no_probability(words):
    X, y = words
    allowed = {(a, b) for a in "abc" for b in "abc"} - {("c", "b")}
    y = [s if set(itertools.pairwise(s)) <= allowed else ["a"] * len(s) for s in y]
    fitted = ChainCRF(allowed_transitions=allowed).fit(X, y)
    assert np.isfinite(fitted.log_likelihood(X, y)).all()
    two = [np.zeros((2, 3))]
    assert fitted.log_likelihood(two, [["c", "b"]])[0] < -1e6


def test_long_sequences_and_float32(words):
    X, y = words
    long = [np.concatenate(X * 80)[:10_000]]
    labels = [np.concatenate(y * 80)[:10_000]]
    fitted = ChainCRF(dtype="float32", tol=1e-2).fit(long, labels)
    assert np.isfinite(fitted.log_likelihood(long, labels)).all()
    assert np.allclose(fitted.predict_marginals(long)[0].sum(axis=1), 1, atol=1e-4)


def test_warm_start_threads_weights_and_model_selection(words):
    X, y = words
    fitted = ChainCRF(warm_start=True, tol=1e-4, n_jobs=2).fit(X, y)
    first = fitted.n_iter_
    assert fitted.fit(X, y).n_iter_ == 1 < first
    doubled = ChainCRF(tol=1e-6).fit(X, y, sample_weight=np.full(len(X), 2.0))
    same = ChainCRF(C=2.0, tol=1e-6).fit(X, y)
    assert np.allclose(doubled.coef_.emissions, same.coef_.emissions, atol=1e-2)
    assert cross_val_score(clone(fitted), X, y, cv=2).shape == (2,)
    assert ChainCRF(solver=LBFGS(memory=3)).fit(X, y).status_ is Status.OPTIMAL


def test_bad_input(words):
    X, y = words
    with pytest.raises(ValueError, match="solver must be a Solver of the log loss or one of lbfgs, not 'bcfw'"):
        ChainCRF(solver="bcfw").fit(X, y)
    with pytest.raises(ValueError, match="A path needs a model of the hinge loss, which ChainCRF is not"):
        regularization_path(ChainCRF(), X, y)
    with pytest.raises(ValueError, match=r"y\[0\] contains the label 'z', which was not seen in fit"):
        ChainCRF(tol=0.1).fit(X, y).log_likelihood(X[:1], [["z"] * len(X[0])])
