"""Observed pairs as solvers keep them: the same scores, directions and solutions as by pairs alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import ChainCRF, ChainSVM, SegmentCRF, Shards, regularization_path
from maxmargin import problem as generics
from maxmargin.estimators.foundation import portioned
from maxmargin.features import WeightLayout, join_layouts, layout_of, observed, split, with_gram
from maxmargin.features.layout import PartialLayout
from maxmargin.features.split import SplitFeatures
from maxmargin.problem import scores
from maxmargin.testing import Caller


def make_data(n_labels, binary, seed=0):
    """Sequences of which some features go with all labels, and most with a few."""
    rng = np.random.default_rng(seed)
    X, y = [], [rng.integers(0, n_labels, length) for length in (1, 9, 30, 14, 22)]
    for labels in y:
        own = labels[:, None] == np.arange(3, 3 + 8) % n_labels
        kept = np.hstack([rng.random((len(labels), 3)) < 0.7, own & (rng.random(own.shape) < 0.8)])
        X.append(sp.csr_array(kept * (1.0 if binary else rng.normal(size=kept.shape))))
    return X, y


@pytest.mark.parametrize(
    ("n_labels", "binary", "dtype"), [(3, True, "float64"), (9, True, "float64"), (35, False, "float32")]
)
def test_the_same_map(n_labels, binary, dtype, monkeypatch):
    model, data = ChainCRF(only_observed=True, dtype=dtype), make_data(n_labels, binary)
    problem = model._encode(*data).problem
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0)  # features are split however few they are
    monkeypatch.setattr(observed, "ROWS", 25)
    monkeypatch.setattr(split, "ENTRIES", 40)
    other = model._encode(*data).problem
    assert layout_of(problem).place is None
    assert isinstance(other.features, SplitFeatures)
    layout = layout_of(other)
    place = layout.place
    assert len(np.unique(place)) == len(place) == generics.new_weights(problem).size
    rng = np.random.default_rng(1)
    w = rng.normal(size=len(place)).astype(dtype)
    moved = layout.to_solver(w)
    assert moved.dtype == generics.new_weights(other).dtype
    assert moved.shape == generics.new_weights(other).shape
    assert np.array_equal(layout.to_model(moved), w)
    eps = np.finfo(dtype).eps
    callers = Caller(problem), Caller(other)
    spreads = np.zeros_like(w), np.zeros_like(moved)
    for i, size in enumerate(generics.part_sizes(problem)):
        found, expected = np.zeros(size, dtype), np.zeros(size, dtype)
        callers[0](scores, w, i, expected)
        callers[1](scores, moved, i, found)
        assert np.allclose(found, expected, atol=50 * eps)
        delta = rng.normal(size=size).astype(dtype)
        for caller, sums in zip(callers, spreads, strict=True):
            caller(generics.spread, sums, i, delta, 0.5)
        norms = [
            c(generics.squared_norm, i, delta, generics.workspace(p, 1))
            for c, p in zip(callers, (problem, other), strict=True)
        ]
        assert np.isclose(*norms, rtol=1e3 * eps)
        precise = other._replace(features=with_gram(other.features, other.starts, other.n_features))
        bound = Caller(precise)(generics.squared_norm, i, delta, generics.workspace(precise, 1))
        assert bound >= norms[0] * (1 - 1e3 * eps)
    assert np.allclose(spreads[1][place], spreads[0], atol=1e3 * eps)
    assert not np.delete(spreads[1], place).any()
    assert np.allclose(generics.squared_diameters(other), generics.squared_diameters(problem))


@pytest.mark.parametrize(
    "model", [ChainCRF(C=2.0, tol=1e-8), ChainSVM(C=0.1, tol=1e-3, dtype="float64", random_state=0)]
)
def test_the_same_solution(model, monkeypatch):
    X, y = make_data(9, binary=True)
    model.set_params(only_observed=True)
    by_pairs = model.fit(X, y, X_dev=X, y_dev=y)
    expected, trace = by_pairs._w.copy(), by_pairs.trace_
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0)
    model.fit(X, y, X_dev=X, y_dev=y)
    assert model._w.shape == expected.shape
    assert model.trace_.primal[-1] == pytest.approx(trace.primal[-1], rel=1e-2)
    model.set_params(warm_start=True).fit(X, y)
    again = model.fit(X, y)  # from where it was
    assert again.trace_.primal[0] <= again.trace_.primal[-1] * (1 + 2 * model.tol) + 1e-9
    if isinstance(model, ChainCRF):
        assert np.allclose(model._w, ChainCRF(C=2.0, tol=1e-8, only_observed=True).fit(X, y)._w, atol=1e-3)


@pytest.mark.parametrize("model", [ChainSVM(), ChainCRF()], ids=["SVM", "CRF"])
def test_paths_have_the_weights_of_models(model, monkeypatch, interpreted_loops):
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0)
    X, y = make_data(3, binary=True)
    model.set_params(only_observed=True)
    options = {"eps": 1.0, "lambdas": [1.0, 0.1], "random_state": 0}
    path = regularization_path(model, X, y, method="grid", X_dev=X, y_dev=y, **options)
    scores = [path.model_at(regularization).score(X, y) for regularization in path.lambdas]
    assert np.array_equal(scores, path.scores)
    assert len(path.weights(0)) == len(model.fit(X, y)._w)


def test_segments_are_held_out_in_the_order_of_the_model(monkeypatch, interpreted_loops):
    X, y = [sp.eye_array(2, format="csr")] * 2, [[(0, 1, "a"), (1, 2, "b")]] * 2
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0)
    model = SegmentCRF(only_observed=True, max_passes=3).fit(X, y, X_dev=X, y_dev=y)
    assert model.trace_.dev_score[-1] == model.score(X, y)


def test_bounds_of_split_features(monkeypatch, interpreted_loops):
    X, y = make_data(3, binary=True)
    model = ChainSVM(C=0.1, only_observed=True, bounds={"emissions": (0, 0.5)}, dtype="float64", random_state=0)
    primal = model.fit(X, y).certificate_.primal
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0)
    model.fit(X, y)
    emissions = model.coef_.emissions.toarray()
    assert emissions.min() == 0
    assert emissions.max() == 0.5
    assert model.certificate_.dual <= primal
    assert model.certificate_.primal == pytest.approx(primal, rel=2 * model.tol)


@pytest.mark.parametrize("model", [ChainCRF(C=2.0), ChainSVM(C=0.1, random_state=0)], ids=["CRF", "SVM"])
def test_portions_have_the_weights_that_they_meet(model, monkeypatch):
    X, y = make_data(9, binary=True)
    own = [sp.csr_array(np.tile(row, (x.shape[0], 1))) for x, row in zip(X, np.eye(len(X)), strict=True)]
    X = [sp.hstack(both, format="csr") for both in zip(X, own, strict=True)]  # a feature of each sequence alone
    model.set_params(only_observed=True, max_passes=4)
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0)
    monkeypatch.setattr(split, "MOST_MET", 1)
    shards = Shards.cut(X, y, n_shards=3)
    layouts = [layout_of(portion.problem) for portion in open_portions(model, shards)]
    assert all(isinstance(layout, PartialLayout) and layout.n_solved < layout.n_weights for layout in layouts)
    few = model.fit(shards)._w
    monkeypatch.setattr(portioned, "without_unmet", lambda problem: problem)
    assert not any(isinstance(layout_of(portion.problem), PartialLayout) for portion in open_portions(model, shards))
    assert np.array_equal(few, model.fit(shards)._w)


def open_portions(model, shards):
    portions = portioned.prepare_shards(model, shards, None, None, None, {}).problem
    return [portions.open(k) for k in range(len(shards))]


def test_partial_layouts():
    layout = join_layouts(PartialLayout(3, np.array([2, 0]), np.array([1, 4]), 6), WeightLayout(2))
    w = np.arange(8.0)
    assert (layout.n_solved, layout.n_weights) == (5, 8)
    assert layout.to_solver(w, -1.0).tolist() == [4, -1, 1, 6, 7]
    assert layout.to_model(layout.to_solver(w)).tolist() == [0, 1, 0, 0, 4, 0, 6, 7]
    layout.put(-layout.to_solver(w), w)
    assert w.tolist() == [0, -1, 2, 3, -4, 5, -6, -7]
