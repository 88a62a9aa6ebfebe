"""Chains whose transitions have features: every oracle against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.problem import exp_oracle, max_oracle, new_weights, part_sizes, scores, workspace
from maxmargin.runtime import interpreted
from maxmargin.structures.chains.edge_chain_problem import EdgeChainProblem
from maxmargin.structures.derived.rescaled import rescaled
from maxmargin.testing import Caller, check_structure
from tests.structures.test_chain import all_labellings
from tests.toy import CHAIN_SIZES, random_chains, random_transitions

pytestmark = pytest.mark.usefixtures("loops_either_way")


def with_edges(base, rng, n_edge_features=2, integer=False):
    """A problem of chains with features of transitions, the constant one first."""
    edge_starts = np.concatenate([[0], np.cumsum(np.diff(base.starts) - 1)])
    table = rng.normal(size=(edge_starts[-1], n_edge_features))
    table = np.hstack([np.ones((len(table), 1)), table.round() if integer else table])
    shared = {name: getattr(base, name) for name in EdgeChainProblem._fields if name in base._fields}
    shared |= {
        "edge_features": row_features(Rows(table, edge_starts), base.penalty.dtype, with_grams=True),
        "edge_starts": edge_starts,
        "n_edge_features": 1 + n_edge_features,
    }
    return EdgeChainProblem(**shared)


def test_oracles_equal_enumeration():
    rng = np.random.default_rng(0)
    problem = with_edges(random_chains(rng, [1, 2, 4, 3], 3), rng)
    check_structure(problem, all_labellings(problem), k=5)


@given(**CHAIN_SIZES, density=st.floats(0.3, 1.0))
@settings(max_examples=15)
def test_random_chains(seed, lengths, n_labels, k, integer, density):
    rng = np.random.default_rng(seed)
    allowed = random_transitions(rng, n_labels, density)
    problem = with_edges(random_chains(rng, lengths, n_labels, integer=integer, allowed=allowed), rng, integer=integer)
    with interpreted():
        check_structure(problem, all_labellings(problem, allowed), random_state=seed, k=k)


@pytest.mark.parametrize("n_labels", [3, 11])
def test_without_features_it_is_the_chain(n_labels, interpreted_loops):
    """Zero weights of all but the constant feature: the numbers of a `ChainProblem`."""
    rng = np.random.default_rng(0)
    base = random_chains(rng, [5], n_labels)
    other = with_edges(base, rng)
    w = rng.normal(size=new_weights(base).size)
    padded = np.append(w, np.zeros(2 * n_labels**2))
    found = []
    for problem, weights in ((base, w), (other, padded)):
        call, size = Caller(problem), part_sizes(problem)[0]
        theta, mu, y = np.zeros(size), np.zeros(size), np.zeros(5, np.int32)
        work = workspace(problem, 1)
        call(scores, weights, 0, theta)
        best = call(max_oracle, 0, theta, y, work)
        log_z = call(exp_oracle, 0, theta, mu, work)
        counts = mu[5 * n_labels :].reshape(-1, n_labels**2).sum(axis=0)
        found.append((best, log_z, y, mu[: 5 * n_labels], counts))
    for a, b in zip(*found, strict=True):
        assert np.allclose(a, b)


def test_potentials_far_apart_and_long_sequences():
    rng = np.random.default_rng(0)
    problem = with_edges(random_chains(rng, [3000], 3, dtype="float32"), rng)
    theta = (300 * rng.normal(size=part_sizes(problem)[0])).astype("float32")
    mu, y = np.zeros_like(theta), np.zeros(3000, np.int32)
    call, work = Caller(problem), workspace(problem, 1)
    log_z = call(exp_oracle, 0, theta, mu, work)
    assert np.isfinite(log_z)
    assert log_z >= call(max_oracle, 0, theta, y, work) * (1 - 1e-5)
    assert np.allclose(mu[:9000].reshape(-1, 3).sum(axis=1), 1, atol=1e-4)
    assert np.allclose(mu[9000:].reshape(2999, 9).sum(axis=1), 1, atol=1e-4)


def test_slack_rescaling():
    rng = np.random.default_rng(0)
    problem = rescaled(with_edges(random_chains(rng, [1, 3, 2], 2), rng))
    with interpreted():
        check_structure(problem, all_labellings(problem.base), k=3)
