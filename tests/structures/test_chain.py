from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import IMPOSSIBLE, exp_oracle, max_oracle, part_sizes, topk_oracle, workspace
from maxmargin.runtime import interpreted
from maxmargin.structures.chains.chain_sums import forward_shares
from maxmargin.testing import Caller, check_structure
from tests import naive
from tests.toy import CHAIN_SIZES, STORAGES, random_chains, random_transitions


def all_labellings(problem, allowed=None):
    lengths, n_labels = np.diff(problem.starts), len(problem.penalty)
    return lambda i: naive.labellings(lengths[i], n_labels, allowed)


@pytest.mark.parametrize(("storage", "dtype"), STORAGES)
def test_oracles_equal_enumeration(storage, dtype):
    problem = random_chains(np.random.default_rng(0), [1, 2, 4, 3], 3, storage, dtype, with_bias=True)
    with interpreted() if storage == "binary" else nullcontext():  # compiled, binary rows are those of candidates
        check_structure(problem, all_labellings(problem), k=5)


@given(**CHAIN_SIZES | {"n_labels": st.integers(1, 6)})
def test_random_chains(seed, lengths, n_labels, k, integer):
    if n_labels ** max(lengths) > 300:
        lengths = [min(length, 3) for length in lengths]
    problem = random_chains(np.random.default_rng(seed), lengths, n_labels, integer=integer)
    check_structure(problem, all_labellings(problem), random_state=seed, k=k)


@given(seed=st.integers(0, 10**6), n_labels=st.integers(2, 4), density=st.floats(0.3, 0.9))
def test_forbidden_transitions(seed, n_labels, density):
    rng = np.random.default_rng(seed)
    allowed = random_transitions(rng, n_labels, density)
    problem = random_chains(rng, [1, 3, 4], n_labels, allowed=allowed)
    check_structure(problem, all_labellings(problem, allowed), random_state=seed, k=50)


@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 4), dtype=st.sampled_from(["float32", "float64"]))
@settings(max_examples=10)
def test_forbidden_ends(seed, n_labels, dtype):
    rng = np.random.default_rng(seed)
    problem = random_chains(rng, [1, 2, 4], n_labels, dtype=dtype)
    allowed = rng.random((2, n_labels)) < 0.6
    allowed[:, 0] = True  # a labelling of any length
    labels = problem.supervision.labels.copy()
    labels[problem.starts[:-1]] = labels[problem.starts[1:] - 1] = 0
    problem = problem._replace(
        end_penalty=np.where(allowed, 0, IMPOSSIBLE).astype(dtype),
        supervision=problem.supervision._replace(labels=labels, annotation=labels),
    )

    def possible(i):
        return (y for y in all_labellings(problem)(i) if allowed[0, y[0]] and allowed[1, y[-1]])

    check_structure(problem, possible, random_state=seed, k=50)


def test_forbidden_ends_stay_out_of_the_log_domain():
    """Shares of impossible labels are zero, which no other label has to wait for."""
    problem = random_chains(np.random.default_rng(0), [3], 2, dtype="float32")
    theta = np.array([0, IMPOSSIBLE, 1, 2, IMPOSSIBLE, 0, 0, 0, 0, 0], "float32")
    work = workspace(problem, 1)
    log_z, is_safe = forward_shares(theta[:6].reshape(3, 2), theta[6:].reshape(2, 2), work.sums)
    assert is_safe
    assert np.isclose(log_z, np.log(np.e + np.e**2))


def test_many_labels():
    problem = random_chains(np.random.default_rng(0), [2, 1], 40)
    check_structure(problem, all_labellings(problem), k=3)


def test_ties_are_broken_towards_low_labels_from_the_end():
    problem = random_chains(np.random.default_rng(0), [3], 4)
    theta, y = np.zeros(part_sizes(problem)[0]), np.zeros(3, np.int32)
    max_oracle(problem, 0, theta, y, workspace(problem, 1))
    assert y.tolist() == [0, 0, 0]
    theta[2 * 4 + 1] = theta[2 * 4 + 3] = 1.0  # labels 1 and 3 tie at the last position
    max_oracle(problem, 0, theta, y, workspace(problem, 1))
    assert y.tolist() == [0, 0, 1]


def oracle_call(oracle, problem, *args):
    return Caller(problem)(oracle, *args)


def test_ten_thousand_tokens_do_not_underflow():
    rng = np.random.default_rng(0)
    problem = random_chains(rng, [10_000], 5)
    theta = 5 * rng.normal(size=part_sizes(problem)[0])
    mu = np.zeros_like(theta)
    log_z = oracle_call(exp_oracle, problem, 0, theta, mu, workspace(problem, 1))
    assert np.isfinite(log_z)
    assert np.allclose(mu[: 10_000 * 5].reshape(-1, 5).sum(axis=1), 1)
    assert np.isclose(mu[10_000 * 5 :].sum(), 9_999)
    y = np.zeros(10_000, np.int32)
    assert log_z >= oracle_call(max_oracle, problem, 0, theta, y, workspace(problem, 1))


def test_far_apart_potentials_take_the_log_domain():
    """Nodes insist on label 1 then 0, which is forbidden: rescaled probabilities underflow, logarithms do not."""
    allowed = np.array([[True, True], [False, True]])
    problem = random_chains(np.random.default_rng(0), [3], 2, dtype="float32", allowed=allowed)
    theta = np.array([0, 2000, 2000, 0, 0, 0, 0, 0, IMPOSSIBLE, 0], "float32")
    mu = np.zeros_like(theta)
    log_z = oracle_call(exp_oracle, problem, 0, theta, mu, workspace(problem, 1))
    assert np.isclose(log_z, 2000 + np.log(3), rtol=1e-6)  # 0 0 0, 0 0 1 and 1 1 1 tie; 1 1 0 is forbidden
    assert np.allclose(mu[:6].reshape(3, 2), [[2 / 3, 1 / 3], [2 / 3, 1 / 3], [1 / 3, 2 / 3]], atol=1e-3)


def test_topk_of_a_long_chain_is_sorted_and_distinct():
    rng = np.random.default_rng(0)
    problem = random_chains(rng, [300], 8)
    theta = rng.normal(size=part_sizes(problem)[0])
    outputs, values = np.zeros((100, 300), np.int32), np.zeros(100)
    assert oracle_call(topk_oracle, problem, 0, theta, outputs, values, EVERY, workspace(problem, 100)) == 100
    assert (np.diff(values) <= 0).all()
    assert len({tuple(y) for y in outputs}) == 100


@pytest.mark.parametrize(("dtype", "low"), [("float32", -120.0), ("float64", -800.0)])
def test_mass_that_is_small_at_first_and_matters_later(dtype, low):
    """Label 1 starts far below label 0, but only label 1 goes on for free."""
    problem = random_chains(np.random.default_rng(0), [4], 2, dtype=dtype)
    theta = np.array([0, low, *[0] * 6, low / 2, -5000, -5000, 0], dtype)
    mu = np.zeros_like(theta)
    log_z = oracle_call(exp_oracle, problem, 0, theta, mu, workspace(problem, 1))
    assert np.isclose(log_z, low, rtol=1e-5)
    assert np.allclose(mu[:8].reshape(4, 2), [[0, 1]] * 4, atol=1e-5)


def test_parallel_chains_lose_no_mass():
    """Two labels that never meet: their shares drift apart without bound, then back."""
    allowed = np.eye(2, dtype=bool)
    length = 2000
    problem = random_chains(np.random.default_rng(0), [length], 2, dtype="float32", allowed=allowed)
    theta = np.zeros((length, 2), "float32")
    theta[: length // 2, 0], theta[length // 2 :, 1] = 2, 3
    theta = np.concatenate([theta.ravel(), problem.penalty.ravel()])
    mu = np.zeros_like(theta)
    log_z = oracle_call(exp_oracle, problem, 0, theta, mu, workspace(problem, 1))
    assert np.isclose(log_z, 3 * length // 2, rtol=1e-4)
    assert np.allclose(mu[: 2 * length].reshape(length, 2)[:, 1], 1, atol=1e-2)
