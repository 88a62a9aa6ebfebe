"""Candidate sets and classes: the problems whose outputs are one choice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encode.candidate_encoder import CandidateEncoder
from maxmargin.encode.class_encoder import MulticlassEncoder
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import exp_oracle, max_marginals, max_oracle, topk_oracle, true_outputs, workspace
from maxmargin.solvers import Auto
from maxmargin.supervision.label_supervision import supervise
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive
from tests.toy import METHODS, STORAGES, random_rows, tolerance

pytestmark = pytest.mark.usefixtures("loops_either_way")


def make_candidates(rng, sizes, storage="dense", dtype="float64", integer=False):
    rows, ends = random_rows(rng, sum(sizes), storage, integer), np.cumsum(sizes)
    labels = rng.integers(0, sizes)
    costs = rng.integers(0, 3, sum(sizes)).astype(float)
    costs[ends - sizes + labels] = 0
    X = [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return CandidateEncoder.learn(X, labels, dtype=dtype, costs=np.split(costs, ends[:-1])).problem


def make_classes(rng, n, n_classes, storage="dense", dtype="float64", integer=False):
    X = random_rows(rng, n, storage, integer)
    costs = rng.integers(0, 3, (n_classes, n_classes)).astype(float)
    np.fill_diagonal(costs, 0)
    encoder = MulticlassEncoder(
        n_features_in=3,
        dtype=np.dtype(dtype),
        stores_sparse=storage != "dense",
        classes=np.arange(n_classes),
        feature_names_in=None,
    )
    labels = rng.integers(0, n_classes, n)
    known = supervise(labels, costs, np.ones(n), dtype)
    return encoder.problem(X, labels)._replace(supervision=known)


def choices(sizes):
    return lambda i: [np.array([k], np.int32) for k in range(sizes[i])]


@pytest.mark.parametrize(("storage", "dtype"), STORAGES)
def test_candidate_oracles_equal_enumeration(storage, dtype):
    problem = make_candidates(np.random.default_rng(0), [1, 4, 2], storage, dtype)
    check_structure(problem, choices([1, 4, 2]), k=3)


def test_class_oracles_equal_enumeration():
    problem = make_classes(np.random.default_rng(0), 5, 4, "sparse", "float32")
    check_structure(problem, choices([4] * 5), k=3)


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    k=st.integers(1, 12),
    integer=st.booleans(),
)
def test_random_candidates(seed, sizes, k, integer):
    problem = make_candidates(np.random.default_rng(seed), sizes, integer=integer)
    check_structure(problem, choices(sizes), random_state=seed, k=k)


@given(seed=st.integers(0, 10**6), n_classes=st.integers(1, 6), k=st.integers(1, 8), integer=st.booleans())
def test_random_classes(seed, n_classes, k, integer):
    problem = make_classes(np.random.default_rng(seed), 3, n_classes, integer=integer)
    check_structure(problem, choices([n_classes] * 3), random_state=seed, k=k)


def test_ties_go_to_the_first_candidate():
    problem = make_candidates(np.random.default_rng(0), [5])
    theta, y, work = np.array([0.0, 2.0, 1.0, 2.0, 1.0]), np.zeros(1, np.int32), workspace(problem, 4)
    assert max_oracle(problem, 0, theta, y, work) == 2.0
    assert y.tolist() == [1]
    outputs, values = np.zeros((4, 1), np.int32), np.zeros(4)
    assert topk_oracle(problem, 0, theta, outputs, values, EVERY, work) == 4
    assert outputs.ravel().tolist() == [1, 3, 2, 4]
    assert values.tolist() == [2, 2, 1, 1]
    out = np.zeros(5)
    max_marginals(problem, 0, theta, out, work)
    assert np.array_equal(out, theta)


def test_far_apart_scores_do_not_overflow():
    problem = make_candidates(np.random.default_rng(0), [3])
    theta, mu = np.array([2000.0, -2000.0, 2000.0]), np.zeros(3)
    log_z = Caller(problem)(exp_oracle, 0, theta, mu, workspace(problem, 1))
    assert np.isclose(log_z, 2000 + np.log(2))
    assert np.allclose(mu, [0.5, 0, 0.5])


@pytest.mark.parametrize("kind", ["candidates", "classes"])
@pytest.mark.parametrize("method", [*METHODS, Auto()], ids=str)
def test_every_method_reaches_the_reference_optimum(method, kind):
    rng = np.random.default_rng(1)
    if kind == "candidates":
        problem = make_candidates(rng, [3, 5, 2, 4, 6])
        phi = np.split(problem.features.rows, problem.starts[1:-1])
        costs = np.split(problem.supervision.cost, problem.starts[1:-1])
    else:
        problem = make_classes(rng, 6, 3)
        phi = [np.einsum("f,kl->kfl", x, np.eye(3)).reshape(3, -1) for x in problem.features.rows]
        costs = problem.supervision.cost[problem.supervision.labels]
    blocks = [(p[label] - p, cost) for p, label, cost in zip(phi, np.ravel(true_outputs(problem)), costs, strict=True)]
    _, optimum = naive.solve(blocks, 1.0)
    check_solver(method, problem, optimum, tol=tolerance(method))
