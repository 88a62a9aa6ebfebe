"""Helpers with two forms, loops to be compiled and NumPy to be interpreted: both do the same."""

import copy

import numpy as np
import pytest

from maxmargin.arrays import vectors
from maxmargin.losses import combine
from maxmargin.problem import IMPOSSIBLE, is_beyond_reach
from maxmargin.solvers.objective.bounds import confine, make_bounds, release
from maxmargin.solvers.objective.loss_pass import largest_potential, size_of_score
from maxmargin.solvers.stochastic import perceptron
from maxmargin.solvers.stochastic.lazy_weights import clip, lazy_weights


def arguments(dtype, size):
    """Arguments of every helper with two forms."""
    rng = np.random.default_rng(size)
    a, b, small = rng.normal(size=(3, size)).astype(dtype)
    small[::2] = 1e-31
    theta = np.where(rng.random(size) < 0.2, IMPOSSIBLE, a).astype(dtype)
    far, undefined = theta.copy(), theta.copy()
    far[-1:], undefined[-1:] = 1e20, np.nan
    lower = np.where(rng.random(size) < 0.5, -np.inf, 0.1)
    bounds = make_bounds(lower, None, a)
    bounds.free[:] = rng.normal(size=bounds.which.size)
    lazy = lazy_weights(rng.normal(size=size), dtype, rng.normal(size=size))
    lazy.state[:3] = 0.5, 0.25, 2.0
    yield vectors.clear, a
    yield vectors.copy_into, a, b[:1]
    yield vectors.is_same, a, a.copy()
    yield vectors.is_same, a, b
    yield vectors.inner, a, b
    yield vectors.scale, a, 0.3
    yield vectors.add_scaled, a, b, -0.7
    yield vectors.move_by, small, np.zeros(size, dtype), 0.5
    yield from ((is_beyond_reach, potentials) for potentials in (a, theta, far, undefined))
    yield combine, theta, 0.5, b, 2.0
    yield combine, theta, 0.5, theta, 0.0
    yield largest_potential, theta
    yield size_of_score, theta, b, 0.5
    yield size_of_score, a, b, np.inf
    yield release, a, bounds
    yield confine, a, bounds
    yield clip, lazy, bounds
    yield perceptron.clip, a, bounds, b.astype(np.float64), 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 12, vectors.PIECE + 3])
def test_both_forms_agree(dtype, size):
    eps = float(np.finfo(dtype).eps)
    for function, *args in arguments(dtype, size):
        loop_args, sliced_args = copy.deepcopy(args), copy.deepcopy(args)
        expected, found = function.compiled(*loop_args), function(*sliced_args)
        assert (found is None) == (expected is None)
        if expected is not None:
            assert np.allclose(found, expected, rtol=100 * eps, atol=100 * eps), function.__name__
        for one, other in zip(loop_args, sliced_args, strict=True):
            arrays = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
            for left, right in arrays:
                assert np.allclose(left, right, rtol=10 * eps, atol=10 * eps, equal_nan=True), function.__name__
