"""Smoothed maxima against their definition, the bounds of Proposition 2 and the exactness test of Proposition 4."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from maxmargin.losses.smoothing import bound_sorted, has_weight, project_to_simplex, smooth_max, smooth_sorted
from tests import naive

scores = st.lists(st.integers(-20, 20).map(lambda k: k / 4), min_size=1, max_size=8).map(np.array)  # ties are common
levels = st.sampled_from([1e-3, 0.1, 1.0, 7.0])


@given(scores)
def test_projection(v):
    u = project_to_simplex(v)
    assert np.allclose(u, naive.project_to_simplex(v))
    assert u.min() >= 0
    assert np.isclose(u.sum(), 1)


@given(scores, levels, st.sampled_from(["l2", "entropy"]), st.integers(0, 2**32 - 1))
def test_smooth_max_is_the_maximum_over_the_simplex(z, level, smoothing, seed):
    value, u = smooth_max(z, level, smoothing)
    others = np.random.default_rng(seed).dirichlet(np.full(len(z), 0.5), size=50)
    if smoothing == "l2":
        penalty = [level / 2 * (p @ p - 1) for p in (u, *others)]
    else:
        penalty = [level * np.sum(p[p > 0] * np.log(p[p > 0])) for p in (u, *others)]
    attained = np.array([p @ z for p in (u, *others)]) - penalty
    assert np.isclose(attained[0], value)
    assert attained.max() <= value + 1e-9


@given(scores, st.sampled_from(["l2", "entropy"]))
def test_bounds_of_proposition_2(z, smoothing):
    width = 0.5 if smoothing == "l2" else np.log(len(z))
    values = [z.max(), *(smooth_max(z, level, smoothing)[0] for level in (0.1, 0.5, 2.0))]
    for (low, mu_low), (high, mu_high) in zip(
        zip(values, (0, 0.1, 0.5), strict=False), zip(values[1:], (0.1, 0.5, 2.0), strict=True), strict=False
    ):
        assert -1e-9 <= high - low <= (mu_high - mu_low) * width + 1e-9


@pytest.mark.parametrize("smoothing", ["l2", "entropy"])
def test_gradient_by_finite_differences(smoothing):
    z = np.random.default_rng(0).normal(size=6)
    _, u = smooth_max(z, 0.3, smoothing)
    assert np.allclose(approx_fprime(z, lambda v: smooth_max(v, 0.3, smoothing)[0], 1e-7), u, atol=1e-5)


@given(scores, levels)
def test_top_k_is_exact_just_when_proposition_4_says_so(z, level):
    z = np.sort(z)[::-1]
    full, _ = smooth_max(z, level)
    for k in range(1, len(z)):
        weights = np.empty(k + 1)
        smooth_sorted(z, k + 1, level, weights)
        says_exact = level <= np.sum(z[:k] - z[k])
        assert (weights[k] == 0) == says_exact == (not has_weight(z, k, level))
        if says_exact:
            assert np.isclose(smooth_sorted(z, k, level, weights), full)
        else:
            assert smooth_sorted(z, k, level, weights) <= full + 1e-9 <= bound_sorted(z, k, level) + 2e-9


def test_large_scores_do_not_cancel():
    weights = np.empty(2)
    assert np.isclose(smooth_sorted(np.array([1e9 + 0.5, 1e9]), 2, 1.0, weights) - 1e9, smooth_max([0.5, 0.0], 1.0)[0])
    assert np.allclose(weights, [0.75, 0.25])


def test_bad_input():
    with pytest.raises(ValueError, match="level must be a positive number, not 0"):
        smooth_max([1.0], 0)
    with pytest.raises(ValueError, match="smoothing must be one of l2, entropy, not 'l1'"):
        smooth_max([1.0], 1.0, "l1")
    with pytest.raises(ValueError, match="v must be a non-empty vector of finite numbers"):
        project_to_simplex([])
