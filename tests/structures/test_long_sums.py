"""Oracles in float32 on chains, and trees of their shape, so long that plain sums of scores would lose their digits."""

import numpy as np
import pytest

from maxmargin import ChainSVM, Tree
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import max_marginals, max_oracle, topk_oracle, workspace
from maxmargin.testing import Caller
from tests import naive
from tests.structures.test_tree import make_problem
from tests.toy import random_chains

LENGTH, N_LABELS, K = 100_000, 3, 6
EPS = np.finfo(np.float32).eps


def path_shaped_tree(rng):
    """A tree whose root is the last node: the rows of its edges are the labels of the nodes before, as in a chain."""
    nodes = np.arange(LENGTH)
    return make_problem(rng, [Tree(np.zeros((LENGTH, 3)), np.c_[nodes[1:], nodes[:-1]])], N_LABELS, "float32")


@pytest.fixture(params=["chain", "tree"])
def case(request):
    rng = np.random.default_rng(0)
    is_chain = request.param == "chain"
    problem = random_chains(rng, [LENGTH], N_LABELS, dtype="float32") if is_chain else path_shaped_tree(rng)
    theta = rng.uniform(-1, 1, (LENGTH + N_LABELS) * N_LABELS).astype(np.float32)
    nodes, pairs = np.split(theta.astype(float), [LENGTH * N_LABELS])
    return problem, theta, nodes.reshape(LENGTH, N_LABELS), pairs.reshape(N_LABELS, N_LABELS)


def score(nodes, pairs, y):
    return nodes[np.arange(len(y)), y].sum() + pairs[y[:-1], y[1:]].sum()


def rounding(nodes, pairs):
    """What the rounding of float32 potentials, of this size, could decide at most."""
    return EPS * len(nodes) * (np.abs(nodes).max() + np.abs(pairs).max())


def test_the_best_path(case):
    problem, theta, nodes, pairs = case
    y = np.zeros(LENGTH, np.int32)
    value = Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1))
    best = naive.value_of_chain(nodes, pairs)
    assert score(nodes, pairs, y) >= best - rounding(nodes, pairs)
    assert value == pytest.approx(best, abs=rounding(nodes, pairs))


def test_the_best_paths_and_their_scores(case):
    problem, theta, nodes, pairs = case
    outputs, values = np.zeros((K, LENGTH), np.int32), np.zeros(K)
    assert Caller(problem)(topk_oracle, 0, theta, outputs, values, EVERY, workspace(problem, K)) == K
    assert len({y.tobytes() for y in outputs}) == K
    assert np.allclose(values, [score(nodes, pairs, y) for y in outputs], rtol=1e-12)
    assert (np.diff(values) <= 0).all()
    assert values[0] >= naive.value_of_chain(nodes, pairs) - rounding(nodes, pairs)


def test_the_best_path_through_each_label(case):
    problem, theta, nodes, pairs = case
    out = np.zeros(theta.size)
    Caller(problem)(max_marginals, 0, theta, out, workspace(problem, 1))
    found = out[: LENGTH * N_LABELS].reshape(LENGTH, N_LABELS)
    assert np.allclose(found.max(axis=1), naive.value_of_chain(nodes, pairs), rtol=0, atol=rounding(nodes, pairs))
    for t in (0, LENGTH // 3):
        for label in range(N_LABELS):
            forced = nodes.copy()
            forced[t, np.arange(N_LABELS) != label] = -1e9
            best = naive.value_of_chain(forced, pairs)
            assert found[t, label] == pytest.approx(best, abs=rounding(nodes, pairs))


def test_many_children_of_one_node():
    """Sums that run long without a long path."""
    rng = np.random.default_rng(0)
    edges = np.c_[np.zeros(LENGTH - 1, int), np.arange(1, LENGTH)]
    problem = make_problem(rng, [Tree(np.zeros((LENGTH, 3)), edges)], N_LABELS, "float32")
    theta = rng.uniform(-1, 1, (LENGTH + N_LABELS) * N_LABELS).astype(np.float32)
    nodes, pairs = np.split(theta.astype(float), [LENGTH * N_LABELS])
    nodes, pairs = nodes.reshape(LENGTH, N_LABELS), pairs.reshape(N_LABELS, N_LABELS)
    by_root = nodes[0] + (nodes[1:, :, np.newaxis] + pairs).max(axis=1).sum(axis=0)
    y = np.zeros(LENGTH, np.int32)
    value = Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1))
    assert y[0] == by_root.argmax()
    assert value == pytest.approx(by_root.max(), abs=rounding(nodes, pairs))


def test_predictions_are_certified_by_sums_in_float64():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 3)) for _ in range(3)], [[0, 1, 2, 1], [2, 1, 0, 2], [0, 0, 1, 1]]
    model = ChainSVM(dtype="float32", fit_intercept=False, max_passes=1, random_state=0).fit(X, y)
    model._w[:] = rng.normal(size=model._w.size)
    long = rng.normal(size=(LENGTH, 3)).astype(np.float32)
    (found,) = model.predict_certified([long])
    nodes, pairs = long.astype(float) @ model.coef_.emissions.astype(float), model.coef_.transitions.astype(float)
    best = naive.value_of_chain(nodes, pairs)
    assert found.is_exact
    assert found.bound >= best * (1 - 1e-12)
    assert found.score == pytest.approx(score(nodes, pairs, np.asarray(found.output)), rel=1e-12)
    assert found.score == pytest.approx(best, rel=1e-12)
