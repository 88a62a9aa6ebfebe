"""Chains with few transitions: every oracle against enumeration, and against the chain that looks at all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import inference
from maxmargin.problem import add_output, new_weights, part_sizes, score_output, scores
from maxmargin.runtime import interpreted
from maxmargin.structures.chains.sparse_chain_problem import sparse_chain
from maxmargin.structures.chains.sparse_transitions import list_transitions
from maxmargin.testing import Caller, check_structure
from tests.structures.test_chain import all_labellings
from tests.toy import CHAIN_SIZES, random_chains, random_transitions


def sparse_chains(rng, lengths, n_labels, density=0.4, **options):
    """The same problem with few transitions and as a chain."""
    allowed = random_transitions(rng, n_labels, density)
    chain = random_chains(rng, lengths, n_labels, allowed=allowed, **options)
    return sparse_chain(chain, list_transitions(allowed)), chain


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_oracles_equal_enumeration(dtype):
    problem, chain = sparse_chains(np.random.default_rng(0), [1, 2, 4, 3], 3, dtype=dtype)
    check_structure(problem, all_labellings(chain, chain.penalty == 0), k=5)


@given(**CHAIN_SIZES, density=st.floats(0.0, 1.0))
@settings(max_examples=25)
def test_random_chains(seed, lengths, n_labels, k, integer, density):
    problem, chain = sparse_chains(np.random.default_rng(seed), lengths, n_labels, density, integer=integer)
    with interpreted():
        check_structure(problem, all_labellings(chain, chain.penalty == 0), random_state=seed, k=k)


@pytest.mark.parametrize("size", [1.0, 300.0])  # of potentials: in probabilities, and beyond their range
def test_results_are_those_of_the_chain(size, interpreted_loops):
    rng = np.random.default_rng(1)
    problem, chain = sparse_chains(rng, [1, 2, 5, 70], 9, 0.3)
    w = size * rng.normal(size=new_weights(chain).size)
    pairs = np.arange(81)
    for find in (inference.marginals, inference.scored_outputs):
        assert np.allclose(find(problem, w)[1], find(chain, w)[1])
    found, expected = (inference.transitions(each, w, pairs) for each in (problem, chain))
    assert all(map(np.allclose, found, expected))
    means, of_chain = (inference.marginals(each, w)[0] for each in (problem, chain))
    for i in range(4):
        nodes, counts = np.split(of_chain.values[of_chain.starts[i] : of_chain.starts[i + 1]], [-81])
        parts = np.append(nodes, counts[chain.penalty.ravel() == 0])
        assert np.allclose(means.values[means.starts[i] : means.starts[i + 1]], parts)
    drawn = [inference.samples(each, w, 5, np.random.default_rng(0)) for each in (problem, chain)]
    assert all(map(np.array_equal, *drawn))


def test_transitions_without_weights():
    rng = np.random.default_rng(2)
    chain = random_chains(rng, [3], 3)
    allowed = ~np.eye(3, dtype=bool)
    found = list_transitions(allowed, weighted=np.array([0, 1, 5, 6]))
    assert found.weight.tolist() == [1, -1, -1, 2, 3, -1]
    assert found.after.tolist() == [1, 2, 0, 2, 0, 1]
    assert found.before.tolist() == [1, 2, 0, 2, 0, 1]
    problem = sparse_chain(chain, found)
    w, theta = np.arange(new_weights(chain).size, dtype=float), np.zeros(part_sizes(problem)[0])
    Caller(problem)(scores, w, 0, theta)
    assert theta[9:].tolist() == [10, 0, 0, 11, 12, 0]


def test_labellings_that_cannot_be():
    problem, _ = sparse_chains(np.random.default_rng(0), [2], 3, 0.0)
    y, theta = np.array([1, 2], np.int32), np.zeros(part_sizes(problem)[0])
    with interpreted():
        assert Caller(problem)(score_output, 0, theta, y) < -1e24
        Caller(problem)(add_output, 0, y, 1.0, theta)
    assert theta.sum() == 2
