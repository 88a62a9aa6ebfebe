"""Sums over labellings beside an independent reference: forward-backward in logarithms, in float64."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.problem import exp_oracle, max_oracle, workspace
from maxmargin.testing import Caller
from tests.toy import random_chains

ACCURACY = {"float32": 1e-5, "float64": 1e-10}


def log_sum(x, axis):
    """The logarithm of the sum of exponentials."""
    top = x.max(axis)
    return top + np.log(np.exp(x - np.expand_dims(top, axis)).sum(axis))


def reference(nodes, pairs):
    """The log-partition function, marginals and expected transitions.

    Tables are relative to their largest entry: what long sequences add up to must not round the differences of labels.
    """
    length = len(nodes)
    forward, backward = np.zeros_like(nodes), np.zeros_like(nodes)
    tops = np.zeros(length)
    for t in range(length):
        forward[t] = nodes[t] + (log_sum(forward[t - 1][:, None] + pairs, 0) if t else 0)
        tops[t] = forward[t].max()
        forward[t] -= tops[t]
    for t in range(length - 1, 0, -1):
        backward[t - 1] = log_sum(pairs + nodes[t] + backward[t], 1)
        backward[t - 1] -= backward[t - 1].max()
    log_z = math.fsum(tops) + log_sum(forward[-1], 0)
    counts = np.zeros_like(pairs)
    for t in range(1, length):
        joint = forward[t - 1][:, None] + pairs + nodes[t] + backward[t]
        counts += np.exp(joint - log_sum(joint.ravel(), 0))
    means = forward + backward
    return log_z, np.exp(means - log_sum(means, 1)[:, None]), counts


def check(length, n_labels, dtype, scale, has_ties, rng):
    """The reference starts from the same potentials, as rounded to `dtype`."""
    problem = random_chains(rng, [length], n_labels, dtype=dtype)
    n_parts = (length + n_labels) * n_labels
    drawn = rng.integers(-1, 2, n_parts) if has_ties else rng.uniform(-1, 1, n_parts)
    theta = (drawn * scale).astype(dtype)
    mu = np.zeros_like(theta)
    found = Caller(problem)(exp_oracle, 0, theta.copy(), mu, workspace(problem, 1))
    exact = theta.astype(np.float64)
    nodes, pairs = exact[: length * n_labels].reshape(length, -1), exact[length * n_labels :].reshape(n_labels, -1)
    log_z, means, counts = reference(nodes, pairs)
    assert abs(found - log_z) <= ACCURACY[dtype] * max(abs(log_z), 1)
    expected = np.concatenate([means.ravel(), counts.ravel()])
    assert np.linalg.norm(mu - expected) <= ACCURACY[dtype] * np.linalg.norm(expected)


@given(
    seed=st.integers(0, 10**6),
    length=st.integers(1, 12),
    n_labels=st.sampled_from([1, 2, 5, 7, 8, 9, 22, 26, 33, 35, 41]),
    dtype=st.sampled_from(["float32", "float64"]),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 20.0, 50.0, 300.0, 1e4]),
    has_ties=st.booleans(),
)
@settings(max_examples=40)
def test_sums_equal_those_in_logarithms(seed, length, n_labels, dtype, scale, has_ties):
    check(length, n_labels, dtype, scale, has_ties, np.random.default_rng(seed))


@pytest.mark.long
@pytest.mark.parametrize("scale", [3.0, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_twenty_thousand_positions(dtype, scale):
    check(20_000, 3, dtype, scale, False, np.random.default_rng(0))


@pytest.mark.parametrize("n_labels", [8, 9, 26, 35])
def test_viterbi_of_many_labels(n_labels):
    """Against the best of all paths, found by a table in NumPy."""
    rng = np.random.default_rng(n_labels)
    problem = random_chains(rng, [6], n_labels, dtype="float32")
    theta = rng.integers(-3, 4, (6 + n_labels) * n_labels).astype(np.float32)  # with ties
    y = np.zeros(6, np.int32)
    value = Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1))
    nodes, pairs = theta[: 6 * n_labels].reshape(6, -1), theta[6 * n_labels :].reshape(n_labels, -1)
    best = nodes[0]
    for t in range(1, 6):
        best = nodes[t] + (best[:, None] + pairs).max(axis=0)
    assert value == best.max() == nodes[range(6), y].sum() + pairs[y[:-1], y[1:]].sum()
