import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from maxmargin import LBFGS, ChainCRF, ChainSVM, KernelChainCRF, Status, regularization_path
from maxmargin.encode.inputs.rows import as_stored, stack_rows
from tests import naive


@pytest.fixture(scope="module")
def model(words):
    return ChainCRF(C=1.0, fit_intercept=False, tol=1e-6).fit(*words)


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


def test_ten_thousand_tokens(words):
    X, y = words
    long = [np.concatenate(X * 80)[:10_000]]
    labels = [np.concatenate(y * 80)[:10_000]]
    fitted = ChainCRF(tol=1e-2).fit(long, labels)
    marginals = fitted.predict_marginals(long)[0]
    assert np.isfinite(fitted.log_likelihood(long, labels)).all()
    assert np.allclose(marginals.sum(axis=1), 1, atol=1e-4)
    samples = fitted.sample(long, 20, random_state=0)[0]
    shares = [(samples == label).mean() for label in fitted.classes_]
    assert np.allclose(shares, marginals.mean(axis=0), atol=0.01)


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


def test_auto_is_lbfgs_for_smooth_losses(words):
    X, y = words
    auto, named = (ChainCRF(solver=solver).fit(X, y) for solver in ("auto", "lbfgs"))
    assert np.array_equal(auto.coef_.emissions, named.coef_.emissions)
    assert ChainSVM(loss="smooth_hinge", dtype="float64", tol=0.01).fit(X, y).status_ is Status.OPTIMAL


def test_half_precision_features_can_be_stored_sparse(words):
    rows = stack_rows([np.where(np.abs(x) > 0.9, x, 0).astype(np.float16) for x in words[0]], None)
    assert as_stored(rows, sparse=True).matrix.dtype == np.float32


def test_bad_input(words):
    X, y = words
    with pytest.raises(ValueError, match=r"solver must be a Solver of the log loss or one of .*lbfgs.*, not 'bcfw'"):
        ChainCRF(solver="bcfw").fit(X, y)
    with pytest.raises(ValueError, match="A path needs a model of the hinge loss, which ChainCRF is not"):
        regularization_path(ChainCRF(), X, y)
    with pytest.raises(ValueError, match=r"y\[1\] contains a label that was not seen in fit, at position 0\."):
        ChainCRF(tol=0.1).fit(X, y).log_likelihood(X[:2], [y[0], ["z", *y[1][1:]]])
    for ratio in (-0.1, 1.5, "half"):
        with pytest.raises(ValueError, match="l1_ratio must be a number from 0 to 1"):
            ChainCRF(l1_ratio=ratio).fit(X, y)
    with pytest.raises(ValueError, match="SGD knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS"):
        ChainCRF(l1_ratio=0.5, solver="sgd").fit(X, y)
    with pytest.raises(ValueError, match="n_samples must be an integer, at least 1, not 0"):
        ChainCRF(tol=0.1).fit(X, y).sample(X, n_samples=0)


def test_samples_have_the_frequencies_of_enumeration(model, words):
    X = [x for x in words[0] if len(x) <= 3][:4]
    n = 20_000
    for x, drawn in zip(X, model.sample(X, n, random_state=0), strict=True):
        every, scores = scores_of(model, x)
        p = np.exp(scores - np.logaddexp.reduce(scores))
        codes = np.searchsorted(model.classes_, drawn) @ 3 ** np.arange(len(x))[::-1]
        found = np.bincount(codes, minlength=len(p)) / n  # labellings are enumerated in this order
        assert np.array_equal(every @ 3 ** np.arange(len(x))[::-1], np.arange(len(p)))
        assert (np.abs(found - p) <= 5 * np.sqrt(p / n) + 1e-3).all()


def test_samples_are_reproducible_and_allowed(model, words):
    X = words[0][:3]
    first, again, other = (model.sample(X, 5, random_state=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    model.sample(X, random_state=np.random.RandomState(0))
    allowed = {("a", "a"), ("a", "b"), ("b", "b"), ("b", "c"), ("c", "c"), ("c", "a")}
    y = [s if set(itertools.pairwise(s)) <= allowed else ["a"] * len(s) for s in words[1]]
    fitted = ChainCRF(allowed_transitions=allowed).fit(words[0], y)
    for labels in np.concatenate([s[:, :2] for s in fitted.sample(words[0], 50, random_state=0)]):
        assert tuple(labels) in allowed


def test_confidence_is_the_probability_of_the_prediction(model, words):
    X = [x for x in words[0] if len(x) <= 4]
    for x, confidence in zip(X, model.confidence(X), strict=True):
        _, scores = scores_of(model, x)
        assert np.isclose(confidence, np.exp(scores.max() - np.logaddexp.reduce(scores)))
    assert np.allclose(np.log(model.confidence(X)), model.log_likelihood(X, model.predict(X)))


# --- weights of observed pairs only ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse_words(words):
    """Signs of the features, of which each goes with some labels only, as sparse binary rows."""
    X = [sp.csr_array(np.hstack([x > 0.9, x < -0.9]).astype(float)) for x in words[0]]
    return X, words[1]


def test_only_observed_minimises_over_the_observed_weights(sparse_words):
    X, y = sparse_words
    fitted = ChainCRF(only_observed=True, fit_intercept=False, tol=1e-7).fit(X, y)
    codes = [np.searchsorted(["a", "b", "c"], s) for s in y]
    mask = sum(naive.chain_features(x.toarray(), s, 3) for x, s in zip(X, codes, strict=True)) > 0
    assert 0 < mask.sum() < mask.size
    tables = naive.table([x.toarray() for x in X], codes, 3)

    def objective(w):
        losses = [np.logaddexp.reduce(-psi[:, mask] @ w) for psi, _ in tables]
        return np.dot(w, w) / (2 * len(X)) + np.mean(losses)

    best = minimize(objective, np.zeros(mask.sum()), tol=1e-10)
    assert np.isclose(fitted.trace_.primal[-1], best.fun, rtol=1e-6)
    dense = np.concatenate([fitted.coef_.emissions.toarray().ravel(), fitted.coef_.transitions.ravel()])
    assert np.allclose(dense[mask], best.x, atol=1e-2)
    assert not dense[~mask].any()


def test_only_observed_predicts_like_its_weights(sparse_words, interpreted_loops):
    X, y = sparse_words
    fitted = ChainCRF(only_observed=True, tol=1e-5).fit(X, y)
    everything = ChainCRF(tol=0.5).fit(X, y)
    parts = (fitted.coef_[name] for name in ("emissions", "bias", "first", "last", "transitions"))
    everything._set_weights(
        everything._encoder, np.concatenate([(p.toarray() if sp.issparse(p) else p).ravel() for p in parts])
    )
    assert np.allclose(fitted.log_likelihood(X, y), everything.log_likelihood(X, y))
    assert all(map(np.array_equal, fitted.predict(X), everything.predict(X)))
    assert all(map(np.allclose, fitted.predict_marginals(X), everything.predict_marginals(X)))
    assert fitted.score(X, y) > 0.7
    dense = [x.toarray() for x in X]
    assert np.allclose(fitted.log_likelihood(dense, y), fitted.log_likelihood(X, y))


def test_only_observed_continues_at_the_weights_of_pairs_that_both_have(sparse_words):
    X, y = sparse_words
    fitted = ChainCRF(only_observed=True, warm_start=True, tol=1e-4).fit(X, y)
    first = fitted.n_iter_
    assert fitted.fit(X, y).n_iter_ < first / 2
    other = [sp.csr_array(x.toarray()[:, ::-1].copy()) for x in X]
    afresh = ChainCRF(only_observed=True, max_passes=1).fit(other, y).trace_.primal[0]
    assert fitted.fit(other, y).trace_.primal[0] != afresh
    assert fitted.set_params(only_observed=False).fit(X, y).coef_.emissions.shape == (6, 3)


# --- elastic net -----------------------------------------------------------------------------------------------------


def test_l1_makes_weights_zero(words):
    X, y = words
    fitted = ChainCRF(C=0.3, l1_ratio=0.8, tol=1e-5).fit(X, y)
    assert fitted.status_ is Status.OPTIMAL
    weights = np.concatenate([part.ravel() for part in fitted.coef_.values()])
    assert 0 < np.count_nonzero(weights) < weights.size
    penalty = (0.8 * np.abs(weights).sum() + 0.1 * np.dot(weights, weights)) / (0.3 * len(X))
    assert np.isclose(fitted.trace_.primal[-1], penalty - fitted.log_likelihood(X, y).mean())


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (0.7, 0.2), (1.0, 0.0)])
def test_objectives_of_crfsuite(sparse_words, tmp_path, c1, c2):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = sparse_words
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": c1, "c2": c2, "epsilon": 1e-7, "delta": 1e-9, "max_iterations": 2000})
    for x, labels in zip(X, y, strict=True):
        trainer.append([[str(k) for k in np.flatnonzero(row)] for row in x.toarray()], labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info = tagger.info()

    total = c1 + 2 * c2
    fitted = ChainCRF(C=1 / total, l1_ratio=c1 / total, only_observed=True, fit_intercept=False, tol=1e-6).fit(X, y)
    theirs = ChainCRF(fit_intercept=False, tol=0.5).fit(X, y)
    w = np.zeros((9, 3))
    for (attribute, label), weight in info.state_features.items():
        w[int(attribute), "abc".index(label)] = weight
    for (before, after), weight in info.transitions.items():
        w[6 + "abc".index(before), "abc".index(after)] = weight
    theirs._set_weights(theirs._encoder, w.ravel())
    objective = c1 * np.abs(w).sum() + c2 * np.square(w).sum() - theirs.log_likelihood(X, y).sum()
    assert np.isclose(fitted.trace_.primal[-1] * len(X), objective, rtol=1e-4)
    assert fitted.trace_.dual[-1] * len(X) <= objective


# --- held-out data ---------------------------------------------------------------------------------------------------


def test_the_best_weights_on_held_out_data_are_kept(words, capsys):
    X, y = words
    fitted = ChainCRF(C=100.0, tol=1e-8, patience=3, verbose=1)
    fitted.fit(X[:15], y[:15], X_dev=X[15:], y_dev=y[15:])
    scores = fitted.trace_.dev_score
    assert fitted.status_ is Status.EARLY_STOPPED
    assert np.argmax(scores) == len(scores) - 4  # the first of the highest, then three that are no better
    assert fitted.score(X[15:], y[15:]) == scores.max()
    assert "held out" in capsys.readouterr().out
    assert "The held-out score was highest at certificate" in str(fitted.trace_)
    assert "dev_score" in fitted.trace_.to_frame()
    assert "dev_score" not in ChainCRF().fit(X, y).trace_.to_frame()


def test_held_out_data_may_be_stacked_and_for_svms(words):
    X, y = words
    stacked = {
        "X_dev": np.concatenate(X[20:]),
        "y_dev": np.concatenate(y[20:]),
        "lengths_dev": [len(x) for x in X[20:]],
    }
    fitted = ChainSVM(C=100.0, tol=1e-6, patience=2, random_state=0).fit(X[:20], y[:20], **stacked)
    assert fitted.status_ in (Status.EARLY_STOPPED, Status.OPTIMAL)
    assert np.isclose(fitted.score(X[20:], y[20:]), fitted.trace_.dev_score.max())


def test_bad_held_out_data(words):
    X, y = words
    model = ChainCRF(tol=0.1)
    with pytest.raises(ValueError, match="X_dev and y_dev must be given together"):
        model.fit(X, y, X_dev=X)
    with pytest.raises(
        ValueError, match=r"In the held-out data, X_dev and y_dev: y contains no label that was seen in fit"
    ):
        model.fit(X, y, X_dev=X[:1], y_dev=[["z"] * len(X[0])])
    with pytest.raises(ValueError, match="X_dev and y_dev: X has 2 features, but the model was fitted with 3"):
        model.fit(X, y, X_dev=[np.zeros((2, 2))], y_dev=[["a", "b"]])
    with pytest.raises(ValueError, match=r"y\[0\] has 1 label, but X\[0\] has 2 rows"):
        model.fit(X, y, X_dev=[np.zeros((2, 3))], y_dev=[["a"]])
    with pytest.raises(ValueError, match="X_dev and y_dev: lengths add up to 3, but X has 2 rows"):
        model.fit(X, y, X_dev=np.zeros((2, 3)), y_dev=["a", "b"], lengths_dev=[3])
    with pytest.raises(ValueError, match="patience must be an integer, at least 1, not 0"):
        ChainCRF(patience=0).fit(X, y, X_dev=X, y_dev=y)
    assert not hasattr(model, "coef_")


def test_held_out_labels_that_training_lacks_are_wrong(words):
    X, y = words
    fitted = ChainCRF(tol=1e-3).fit(X, y, X_dev=X[:2], y_dev=[y[0], ["z"] * len(y[1])])
    assert 0 < fitted.trace_.dev_score.max() <= len(y[0]) / (len(y[0]) + len(y[1]))


def test_marginals_of_an_svm_are_those_of_its_scores(words):
    X, y = words
    svm = ChainSVM(C=0.1, dtype="float64", random_state=0).fit(X, y)
    crf = ChainCRF().fit(X, y)
    crf._set_weights(crf._encoder, svm._w)
    assert all(map(np.allclose, svm.predict_marginals(X), crf.predict_marginals(X)))


def test_sequences_that_are_not_there(words, interpreted_loops):
    X, y = words
    for model in (ChainCRF(max_passes=2).fit(X, y), KernelChainCRF(kernel="rbf", max_passes=2).fit(X[:5], y[:5])):
        assert model.predict([]) == model.predict_marginals([]) == []
        for empty in ([], np.zeros((0, 3))):
            nothing, known, nothing_more = model.predict([empty, X[0], empty])
            assert (nothing.tolist(), nothing_more.tolist()) == ([], [])
            assert known.tolist() == model.predict(X[:1])[0].tolist()
        assert model.predict_marginals([[]])[0].shape == model.decision_function([[]])[0].shape == (0, 3)
        outputs, scores = model.predict_topk([[]], 2)[0]
        assert (outputs.shape, scores.tolist()) == ((1, 0), [0.0])
        assert model.sample([[]], 2)[0].shape == (2, 0)
        assert model.confidence([[], X[0]])[0] == 1
        assert model.log_likelihood([[], X[0]], [[], y[0]])[0] == 0
        assert model.score([[], X[0]], [[], y[0]]) == model.score(X[:1], y[:1])
        with pytest.raises(ValueError, match="X must hold at least one sequence, but it is empty"):
            model.score([], [])
    named = ChainCRF(max_passes=2).fit([[["a"], ["b"]]], [["x", "y"]])
    assert [labels.tolist() for labels in named.predict([[], [["a"]], iter([])])] == [
        [],
        named.predict([[["a"]]])[0].tolist(),
        [],
    ]
    assert named.predict([]) == named.predict(iter([])) == []
    assert named.predict([[]])[0].tolist() == []
