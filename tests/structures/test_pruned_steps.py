"""Viterbi's steps from few labels: all that is found is what steps from all labels find, bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import inference
from maxmargin.arrays.lanes import padded
from maxmargin.arrays.semirings import MaxPlus, times_matrix
from maxmargin.features.linear_map import as_matrix
from maxmargin.problem import IMPOSSIBLE, new_weights
from maxmargin.structures.chains import chain_dp, pruned_steps
from maxmargin.structures.chains.pruned_steps import arrive, find_highs, new_pruning
from tests import naive
from tests.toy import random_chains


def draw_tables(seed, n_labels, spread, integer, dtype):
    """Scores of labels at t - 1, and transitions; what is in padded columns is never looked at."""
    rng = np.random.default_rng(seed)
    width = padded(n_labels)
    forward, table = np.full((2, width), 1e3, dtype), np.full((n_labels, width), 1e3, dtype)
    forward[0, :n_labels] = spread * rng.normal(size=n_labels)
    table[:, :n_labels] = rng.normal(size=(n_labels, n_labels))
    if integer:
        forward, table = np.round(forward), np.round(table)
    return forward, table


CASES = {
    "seed": st.integers(0, 10**6),
    "n_labels": st.integers(8, 40),
    "spread": st.sampled_from([0.0, 1.0, 5.0, 50.0]),
    "integer": st.booleans(),
    "dtype": st.sampled_from(["float32", "float64"]),
}


@given(**CASES, gap=st.sampled_from([0.0, 1.0, 5.0, 1e3]), density=st.sampled_from([0.3, 0.9, 1.0]))
def test_a_step_is_that_from_all_labels_whatever_was_guessed(seed, n_labels, spread, integer, dtype, gap, density):
    forward, table = draw_tables(seed, n_labels, spread, integer, dtype)
    table[:, :n_labels][np.random.default_rng(seed).random((n_labels, n_labels)) > density] = IMPOSSIBLE
    pruning, found, expected = new_pruning(n_labels, dtype), np.zeros_like(forward), np.zeros_like(forward)
    find_highs(table, pruning)
    assert (pruning.highs[0, :n_labels] == table[:, :n_labels].max(axis=1)).all()
    times_matrix(MaxPlus(), forward, 0, table, n_labels, expected, 1)
    distance = arrive(forward, table, 1, gap, pruning, found)
    if distance >= 0:
        assert (found[1, :n_labels] == expected[1, :n_labels]).all()
        assert distance == (forward[0] + pruning.highs[0])[:n_labels].max() - expected[1, :n_labels].min()


def test_few_labels_are_enough_where_scores_are_far_apart():
    forward, table = draw_tables(0, 40, 50.0, False, "float64")
    pruning = new_pruning(40, "float64")
    find_highs(table, pruning)
    assert arrive(forward, table, 1, 0.0, pruning, np.zeros_like(forward)) >= 0
    assert arrive(0 * forward, table, 1, 0.0, pruning, np.zeros_like(forward)) < 0  # all are alike


@pytest.fixture
def looks_everywhere(monkeypatch, interpreted_loops):
    monkeypatch.setattr(pruned_steps, "MANY", 8)
    monkeypatch.setattr(pruned_steps, "LONG", 2)
    monkeypatch.setattr(pruned_steps, "REST", 1)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("spread", [0.0, 1.0, 20.0])
def test_the_best_paths_of_all(integer, spread, looks_everywhere):
    rng = np.random.default_rng(0)
    nodes, pairs = spread * rng.normal(size=(3, 9)), rng.normal(size=(9, 9))
    if integer:
        nodes, pairs = np.round(nodes), np.round(pairs)
    pruning, y = new_pruning(9, "float64"), np.zeros(3, np.int32)
    forward, arrivals, table = np.zeros((3, 16)), np.zeros((3, 16)), np.zeros((9, 16))
    lacking = chain_dp.viterbi(nodes, pairs, forward, arrivals, table, pruning)
    value = lacking + chain_dp.backtrack(nodes, pairs, forward, arrivals, y)
    scores = {
        tuple(path): nodes[np.arange(3), path].sum() + pairs[path[:-1], path[1:]].sum()
        for path in map(np.asarray, naive.labellings(3, 9))
    }
    best = max(scores.values())
    assert value == pytest.approx(best, abs=1e-9)
    ties = [path for path, score in scores.items() if score >= best - 1e-9]
    assert tuple(y) == min(ties, key=lambda path: path[::-1])


def test_compiled_with_many_labels():
    """Long and short chains of far apart potentials, and of such that are alike, beside dynamic programs by NumPy."""
    n_labels = pruned_steps.MANY + 3
    problem = random_chains(np.random.default_rng(0), [40, 3], n_labels)
    rows, rng = as_matrix(problem.features, problem.starts[-1]), np.random.default_rng(1)
    for spread in (0.1, 10.0):
        w = rng.normal(size=new_weights(problem).size)
        n_pairs = n_labels**2
        w[:-n_pairs] *= spread
        found = inference.best_outputs(problem, w, 1)
        for lo, hi in zip(problem.starts[:-1], problem.starts[1:], strict=True):
            nodes = rows[lo:hi] @ w[:-n_pairs].reshape(-1, n_labels)
            assert found.values[lo:hi].tolist() == best_path(nodes, w[-n_pairs:].reshape(n_labels, n_labels))


def best_path(nodes, pairs):
    """By a dynamic program over NumPy's rows."""
    score, sources = nodes[0], []
    for row in nodes[1:]:
        sums = score[:, np.newaxis] + pairs
        sources.append(sums.argmax(axis=0))
        score = sums.max(axis=0) + row
    path = [int(score.argmax())]
    for source in sources[::-1]:
        path.insert(0, int(source[path[0]]))
    return path
