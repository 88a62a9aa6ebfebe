"""Features of a kernel: what is computed, kept, released and completed, against whole Gram matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from maxmargin.features import WeightLayout, join_layouts, layout_of_rows
from maxmargin.features.kernel_features import complete, kernel_features, tables, whole_gram_features
from maxmargin.features.kernels import SHAPES, Kernel, Shape
from maxmargin.features.linear_map import rows_of, score_rows, spread_rows, squared_norm_rows, squared_sums
from maxmargin.runtime import loop

NAMED = {
    "linear": linear_kernel,
    "poly": lambda x, z: polynomial_kernel(x, z, degree=3, gamma=0.5, coef0=1.5),
    "rbf": lambda x, z: rbf_kernel(x, z, gamma=0.5),
}
OFFSETS = np.array([0, 3, 4, 8, 12])


@loop
def spread_all(features, weights, starts, delta, scale):
    for i in range(starts.size - 1):
        spread_rows(features, weights, starts[i], starts[i + 1], delta[starts[i] : starts[i + 1]], scale)


def small(name="rbf", n_kept=12, n_extra=2, dtype=np.float64):
    """Features of twelve rows in four examples, and their whole Gram matrix."""
    rng = np.random.default_rng(0)
    rows, extra = rng.normal(size=(12, 3)).astype(dtype), rng.integers(0, 2, (12, n_extra)).astype(dtype)
    features = kernel_features(rows, extra, OFFSETS, 2, Shape(SHAPES[name], 0.5, 1.5, 3), n_kept)
    return features, NAMED[name](rows.astype(float), rows.astype(float)) + extra @ extra.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMED)
def test_values_are_those_of_scikit_learn(name, dtype):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(4, 3)).astype(dtype), rng.normal(size=(5, 3)).astype(dtype)
    values = Kernel(Shape(SHAPES[name], 0.5, 1.5, 3))(x, z)
    assert values.dtype == dtype
    assert np.allclose(values, NAMED[name](x, z), rtol=1e-4 if dtype == np.float32 else 1e-12)


@given(seed=st.integers(0, 1000), n_kept=st.integers(1, 12), name=st.sampled_from([*NAMED]))
def test_scores_are_those_of_the_coefficients(seed, n_kept, name):
    """After any sequence of steps and completions, whatever is kept, and released."""
    features, gram = small(name, n_kept)
    followed, rng = features._replace(follows=True), np.random.default_rng(seed)
    w = np.zeros(2 * 2 * 12 + 4)
    for _ in range(4):
        if rng.random() < 0.5:
            delta = rng.normal(size=(12, 2)) * (rng.random((12, 2)) < 0.3)
            spread_all.interpreted(followed, w[:48].reshape(4, 12), OFFSETS, delta, 0.7)
        else:
            tables(features, w)[0][:] = rng.normal(size=(2, 12)) * (rng.random(12) < 0.5)
            complete(features, w)
        coefficients, scores = tables(features, w)
        assert np.allclose(scores, coefficients @ gram)
        kept = np.flatnonzero(features.slot >= 0)
        assert len({*features.slot[kept]}) == len(kept) == n_kept - features.n_free[0]
        assert np.allclose(features.kept[features.slot[kept]], gram[kept])
    out = np.zeros((4, 2))
    score_rows(features, w[:48].reshape(4, 12), 4, 8, out)
    assert np.allclose(out, (coefficients @ gram).T[4:8])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_steps_are_those_of_interpreted_ones(dtype):
    rng = np.random.default_rng(1)
    delta = (rng.normal(size=(12, 2)) * (rng.random((12, 2)) < 0.5)).astype(dtype)
    found = []
    for run in (spread_all, spread_all.interpreted):
        features, _ = small("poly", 5, dtype=dtype)
        weights = np.zeros((4, 12), dtype)
        for _ in range(2):  # computed, then kept or computed again
            run(features._replace(follows=True), weights, OFFSETS, delta, 0.7)
        found.append((weights, features.slot))
    assert np.allclose(found[0][0], found[1][0], rtol=1e-5)
    assert np.array_equal(found[0][1], found[1][1])


def test_sums_leave_the_scores_out():
    features, _ = small()
    weights = np.zeros((4, 12))
    spread_all.interpreted(features, weights, OFFSETS, np.ones((12, 2)), 1.0)
    assert (weights[0::2] == 1).all()
    assert (weights[1::2] == 0).all()


def test_inner_products_and_norms():
    features, gram = small()
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 52))
    layout = join_layouts(layout_of_rows(features, 12, 2), WeightLayout(4))
    layout.complete(a)
    layout.complete(b)
    expected = np.sum(tables(features, a)[0] @ gram * tables(features, b)[0]) + a[48:] @ b[48:]
    assert np.isclose(layout.inner(a, b), expected)
    assert 0 <= layout.squared_length(a) - layout.inner(a, a) < 1e-12
    model = layout.to_model(a)
    assert np.array_equal(model, np.append([a[:12], a[24:36]], a[48:]))
    again = layout.to_solver(model)
    layout.complete(again)
    assert np.array_equal(again, a)
    assert not layout.is_explicit
    delta = rng.normal(size=(4, 2))
    norm = squared_norm_rows(features, 2, 4, 8, delta, np.zeros(0))
    assert np.isclose(norm, np.sum(gram[4:8, 4:8] * (delta @ delta.T)))
    assert np.isclose(squared_sums(features, rows_of(OFFSETS))[1], abs(gram[3, 3]))


def test_a_whole_matrix_is_the_same():
    features, gram = small()
    rng = np.random.default_rng(3)
    whole = whole_gram_features(gram - features.extra @ features.extra.T, features.extra, OFFSETS, 2)
    a = rng.normal(size=52)
    b = a.copy()
    complete(features, a)
    complete(whole, b)
    assert np.allclose(a, b)
    assert np.allclose(whole.gram.values, features.gram.values)
