"""Chains of second order: every oracle against enumeration, and against the chain where trigrams have no weight."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import inference
from maxmargin.problem import add_output, new_weights, part_sizes, score_output, scores
from maxmargin.runtime import interpreted
from maxmargin.structures.second_order.contexts import find_contexts
from maxmargin.structures.second_order.second_order_problem import SecondOrderProblem
from maxmargin.testing import Caller, check_structure
from tests.structures.test_chain import all_labellings
from tests.structures.test_edge_chain import with_edges
from tests.toy import CHAIN_SIZES, random_chains, random_transitions


def with_trigrams(base, rng, density=0.5):
    """A problem of second order, with weights of some trigrams."""
    n_labels = len(base.penalty)
    contexts = find_contexts(np.flatnonzero(rng.random(n_labels**3) < density), n_labels)
    return SecondOrderProblem(base, contexts, new_weights(base).size)


@pytest.mark.long
def test_oracles_equal_enumeration():
    rng = np.random.default_rng(0)
    problem = with_trigrams(random_chains(rng, [1, 2, 4, 3], 3), rng)
    check_structure(problem, all_labellings(problem.base), k=5)


@pytest.mark.long
def test_oracles_with_features_of_transitions_equal_enumeration():
    rng = np.random.default_rng(0)
    problem = with_trigrams(with_edges(random_chains(rng, [1, 2, 4, 3], 3, dtype="float32"), rng), rng)
    check_structure(problem, all_labellings(problem.base), k=5)


@given(**CHAIN_SIZES, density=st.floats(0.3, 1.0), observed=st.floats(0.0, 1.0), has_edges=st.booleans())
@settings(max_examples=15)
def test_random_chains(seed, lengths, n_labels, k, integer, density, observed, has_edges):
    rng = np.random.default_rng(seed)
    allowed = random_transitions(rng, n_labels, density)
    base = random_chains(rng, lengths, n_labels, integer=integer, allowed=allowed)
    base = with_edges(base, rng, integer=integer) if has_edges else base
    problem = with_trigrams(base, rng, observed)
    with interpreted():
        check_structure(problem, all_labellings(base, allowed), random_state=seed, k=k)


def test_expected_counts_are_derivatives(interpreted_loops):
    """Of sequences longer than a tile, and of labels with more contexts than there are numbers in a vector."""
    rng = np.random.default_rng(4)
    problem = with_trigrams(random_chains(rng, [20, 35], 10), rng)
    w = 0.5 * rng.normal(size=new_weights(problem).size)
    n = 10**2 + len(problem.contexts.after)  # weights of transitions and of trigrams, which are the last ones
    step = np.append(np.zeros(w.size - n), 1e-4 * rng.normal(size=n))
    means, _ = inference.marginals(problem, w)
    (_, above), (_, below) = (inference.marginals(problem, w + sign * step) for sign in (1, -1))
    for i in range(2):
        counts = means.values[means.starts[i + 1] - n : means.starts[i + 1]]
        np.testing.assert_allclose(above[i] - below[i], 2 * counts @ step[-n:], rtol=1e-5)


@pytest.mark.parametrize("has_edges", [False, True])
def test_with_weights_of_first_order_it_is_the_chain(has_edges, interpreted_loops):
    rng = np.random.default_rng(1)
    base = random_chains(rng, [1, 2, 5, 40 if has_edges else 130], 3)
    base = with_edges(base, rng) if has_edges else base
    problem = with_trigrams(base, rng)
    w = rng.normal(size=new_weights(base).size)
    longer = np.append(w, np.zeros(len(problem.contexts.after)))
    for find in (inference.marginals, inference.scored_outputs):
        first, second = find(base, w), find(problem, longer)
        assert np.allclose(first[1], second[1])
    (of_chain, _), (found, _) = inference.marginals(base, w), inference.marginals(problem, longer)
    for i in range(4):
        parts = of_chain.values[of_chain.starts[i] : of_chain.starts[i + 1]]
        assert np.allclose(parts, found.values[found.starts[i] : found.starts[i] + len(parts)])
    pairs = np.arange(9)
    assert all(map(np.allclose, inference.transitions(base, w, pairs), inference.transitions(problem, longer, pairs)))


@pytest.mark.parametrize("has_edges", [False, True])
@pytest.mark.parametrize("size", [100.0, 1000.0])  # of potentials, beyond the range of probabilities
def test_sums_where_probabilities_are_no_numbers(size, has_edges, interpreted_loops):
    rng = np.random.default_rng(2)
    base = random_chains(rng, [4, 3], 2)
    problem = with_trigrams(with_edges(base, rng) if has_edges else base, rng)
    w = size * rng.normal(size=new_weights(problem).size)
    found, values = inference.marginals(problem, w)
    for i in range(2):
        theta = np.zeros(part_sizes(problem)[i])
        call = Caller(problem)
        call(scores, w, i, theta)
        outputs = [np.array(y, np.int32) for y in all_labellings(problem.base)(i)]
        logs = np.array([call(score_output, i, theta, y) for y in outputs])
        chances = np.exp(logs - np.logaddexp.reduce(logs))
        means = np.zeros_like(theta)
        for y, chance in zip(outputs, chances, strict=True):
            call(add_output, i, y, chance, means)
        assert np.isclose(values[i], np.logaddexp.reduce(logs))
        assert np.allclose(found.values[found.starts[i] : found.starts[i + 1]], means)
