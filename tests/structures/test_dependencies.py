import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.problem import (
    IMPOSSIBLE,
    exp_oracle,
    max_marginals,
    max_oracle,
    part_sizes,
    sample_oracle,
    topk_oracle,
    workspace,
)
from maxmargin.runtime import interpreted
from maxmargin.solvers import BCFW, LBFGS
from maxmargin.structures.dependencies import matrix_tree, projective
from maxmargin.structures.dependencies.arc_tables import DependencySupervision
from maxmargin.structures.dependencies.dependency_problem import NonprojectiveProblem, ProjectiveProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive
from tests.toy import random_rows

SORTS = [ProjectiveProblem, NonprojectiveProblem]


def make_problem(rng, lengths, cls, n_labels=0, single_root=True, storage="dense", dtype="float64", integer=False):
    """Random sentences; `integer` data gives many ties."""
    n_arcs = [n * (n + 1) for n in lengths]
    rows = Rows(random_rows(rng, sum(n_arcs), storage, integer), starts_of(n_arcs))
    trees = [rng.choice(all_trees(n, cls, n_labels, single_root)) if n < 6 else np.arange(n) for n in lengths]
    return cls(
        features=row_features(rows, dtype, with_grams=True),
        starts=starts_of(lengths),
        arc_starts=rows.starts,
        supervision=DependencySupervision(
            np.concatenate(trees).astype(np.int32), rng.random(sum(lengths)).astype(dtype), 0.5
        ),
        excluded=nothing_excluded(len(lengths)),
        n_features=3,
        n_labels=n_labels,
        single_root=single_root,
    )


def all_trees(n, cls, n_labels=0, single_root=True):
    return [*naive.dependency_trees(n, n_labels, single_root, projective=cls is ProjectiveProblem)]


def parts_of(y, n_labels):
    """The parts of a tree, by their definition."""
    parts = np.zeros((len(y), len(y) + 1, 1 + n_labels))
    for m, arc in enumerate(y):
        head, label = divmod(arc, max(n_labels, 1))
        parts[m, head, 0] = 1
        if n_labels:
            parts[m, head, 1 + label] = 1
    return parts.ravel()


@pytest.mark.long
@pytest.mark.parametrize(("cls", "n_labels"), [(ProjectiveProblem, 2), (NonprojectiveProblem, 0)])
def test_compiled_oracles_equal_enumeration(cls, n_labels):
    lengths = [1, 2, 3] if n_labels else [1, 3, 4]
    problem = make_problem(np.random.default_rng(0), lengths, cls, n_labels, storage="binary", dtype="float32")
    check_structure(problem, lambda i: all_trees(lengths[i], cls, n_labels), k=6)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    cls=st.sampled_from(SORTS),
    n_labels=st.integers(0, 2),
    single_root=st.booleans(),
    integer=st.booleans(),
    k=st.integers(1, 30),
)
def test_random_sentences(seed, cls, n_labels, single_root, integer, k):
    """Ties, single words, one root or several, labels or none, and more trees asked for than there are."""
    lengths = [1, 2] if n_labels else [1, 3]
    problem = make_problem(np.random.default_rng(seed), lengths, cls, n_labels, single_root, integer=integer)
    with interpreted():
        check_structure(problem, lambda i: all_trees(lengths[i], cls, n_labels, single_root), random_state=seed, k=k)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), cls=st.sampled_from(SORTS), single_root=st.booleans())
def test_impossible_arcs(seed, cls, single_root):
    """Oracles of trees without some arcs are those of the others."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, [3], cls, 0, single_root)
    trees = np.array(all_trees(3, cls, 0, single_root))
    parts = np.array([parts_of(y, 0) for y in trees])
    theta = 3 * rng.normal(size=12)
    theta[(rng.random(12) < 0.5) & (parts[rng.integers(len(trees))] == 0)] = IMPOSSIBLE
    left = trees[(parts @ (theta == IMPOSSIBLE)) == 0]
    scores = np.array([parts_of(y, 0) for y in left]) @ np.where(theta == IMPOSSIBLE, 0, theta)
    y, mu, work = np.zeros(3, np.int32), np.zeros(12), workspace(problem, 30)
    with interpreted():
        assert np.isclose(max_oracle(problem, 0, theta, y, work), scores.max())
        assert np.isclose(exp_oracle(problem, 0, theta, mu, work), np.logaddexp.reduce(scores))
        outputs, values = np.zeros((30, 3), np.int32), np.zeros(30)
        count = topk_oracle(problem, 0, theta, outputs, values, 1e30, work)
        assert {tuple(row) for row in outputs[:count]} == {tuple(row) for row in left}
        draws = rng.random((20, 3))
        sample_oracle(problem, 0, theta, draws, outputs[:20], work)
    assert {tuple(row) for row in outputs[:20]} <= {tuple(row) for row in left}
    shares = np.exp(scores - np.logaddexp.reduce(scores))
    assert np.allclose(mu, shares @ np.array([parts_of(y, 0) for y in left]))


@pytest.mark.parametrize("cls", SORTS)
@pytest.mark.parametrize("possible", [{(2, 1), (1, 2)}, {(0, 1), (0, 2)}], ids=["a circle", "two roots"])
def test_no_tree_is_possible(cls, possible):
    """All oracles say so by scores below those of all that is possible, and what they find are trees all the same."""
    n = 4
    problem = make_problem(np.random.default_rng(0), [n], cls)
    theta = np.random.default_rng(1).normal(size=(n, n + 1))
    for m, h in itertools.product(range(n), range(n + 1)):
        if (m < 2 and (h, m + 1) not in possible) or (m > 1 and h == 0):
            theta[m, h] = IMPOSSIBLE
    y, mu, work, best = np.zeros(n, np.int32), np.zeros(theta.size), workspace(problem, 1), np.zeros(theta.size)
    with interpreted():
        assert max_oracle(problem, 0, theta.ravel(), y, work) < IMPOSSIBLE / 2
        assert exp_oracle(problem, 0, theta.ravel(), mu, work) < IMPOSSIBLE / 2
        max_marginals(problem, 0, theta.ravel(), best, work)
    assert naive.is_tree(y.tolist())
    assert (y == 0).sum() == 1
    assert np.isfinite(mu).all()
    assert (best < IMPOSSIBLE / 2).all()


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_there_are_as_many_trees_as_there_should_be(n):
    """Log Z of zero potentials: projective trees are counted by Fuss-Catalan numbers, all trees by Cayley's formula."""
    counts = {
        (ProjectiveProblem, False): math.comb(3 * n, n) // (2 * n + 1),
        (ProjectiveProblem, True): math.comb(3 * n - 2, n - 1) // n,
        (NonprojectiveProblem, False): (n + 1) ** (n - 1),
        (NonprojectiveProblem, True): n ** (n - 1),
    }
    for (cls, single_root), count in counts.items():
        problem = make_problem(np.random.default_rng(0), [n], cls, 0, single_root)
        mu = np.zeros(part_sizes(problem)[0])
        with interpreted():
            log_z = exp_oracle(problem, 0, np.zeros(mu.size), mu, workspace(problem, 1))
        assert np.isclose(log_z, math.log(count))
        assert np.allclose(mu.reshape(n, n + 1).sum(axis=1), 1)


@pytest.mark.parametrize("cls", SORTS)
def test_sums_of_scores_far_apart(cls):
    """Two words that would rather have each other as heads than anything else: determinants cancel down to nothing."""
    problem = make_problem(np.random.default_rng(0), [3], cls)
    parts = np.array([parts_of(y, 0) for y in all_trees(3, cls)])
    for far in (60.0, 600.0, 6e5):
        theta = np.random.default_rng(1).normal(size=12)
        theta.reshape(3, 4)[[0, 1], [2, 1]] += far
        scores, mu = parts @ theta, np.zeros(12)
        with interpreted():
            log_z = exp_oracle(problem, 0, theta, mu, workspace(problem, 1))
        assert np.isclose(log_z, np.logaddexp.reduce(scores), rtol=1e-13, atol=1e-9)
        assert np.allclose(mu, np.exp(scores - np.logaddexp.reduce(scores)) @ parts, atol=1e-9)


@pytest.mark.parametrize("cls", SORTS)
def test_logarithms_are_the_same_sums(cls, monkeypatch):
    problem = make_problem(np.random.default_rng(0), [7], cls)
    theta = np.random.default_rng(1).normal(size=56)
    with interpreted():
        fast, slow = np.zeros(56), np.zeros(56)
        log_z = exp_oracle(problem, 0, theta, fast, workspace(problem, 1))
        monkeypatch.setattr(projective, "has_underflown", lambda total, n_words: True)
        eliminate = matrix_tree.eliminate
        monkeypatch.setattr(
            matrix_tree, "eliminate", lambda s, *args: type(s).__name__ != "Sums" and eliminate(s, *args)
        )
        assert np.isclose(exp_oracle(problem, 0, theta, slow, workspace(problem, 1)), log_z)
    assert np.allclose(fast, slow)


@pytest.mark.parametrize("cls", SORTS)
def test_gradients_are_those_of_log_z(cls):
    problem = make_problem(np.random.default_rng(0), [4], cls, n_labels=2)
    theta = np.random.default_rng(1).normal(size=60)
    mu, unused, work, step = np.zeros(60), np.zeros(60), workspace(problem, 1), 1e-5
    with interpreted():
        exp_oracle(problem, 0, theta, mu, work)
        for p in range(0, 60, 7):
            moved = [theta + sign * step * np.eye(60)[p] for sign in (1, -1)]
            above, below = (exp_oracle(problem, 0, point, unused, work) for point in moved)
            assert np.isclose((above - below) / (2 * step), mu[p], atol=1e-8)


@pytest.mark.parametrize("cls", SORTS)
def test_long_sentences(cls, interpreted_loops):
    """The best of the K best is the best, all are trees, and marginals of all words sum to one."""
    rng, n = np.random.default_rng(0), 15
    problem = make_problem(rng, [n], cls)
    theta = 2 * rng.normal(size=n * (n + 1))
    y, mu = np.zeros(n, np.int32), np.zeros(theta.size)
    outputs, values, work = np.zeros((5, n), np.int32), np.zeros(5), workspace(problem, 5)
    call = Caller(problem)
    best = call(max_oracle, 0, theta, y, work)
    assert call(topk_oracle, 0, theta, outputs, values, 1e30, work) == 5
    assert np.isclose(values[0], best)
    assert (np.diff(values) <= 0).all()
    assert all(naive.is_tree(tree.tolist()) and (tree == 0).sum() == 1 for tree in outputs)
    if cls is ProjectiveProblem:
        assert not any(naive.crossing(tree.tolist()) for tree in outputs)
    assert call(exp_oracle, 0, theta, mu, work) >= np.logaddexp.reduce(values)
    assert np.allclose(mu.reshape(n, n + 1).sum(axis=1), 1)


@pytest.mark.parametrize("cls", SORTS)
@pytest.mark.parametrize("single_root", [True, False])
def test_the_best_tree_is_all_that_is_left_of_the_sum_of_large_scores(cls, single_root, interpreted_loops):
    """Of sentences too long to enumerate, whose cycles are within cycles."""
    rng, level = np.random.default_rng(0), 1e-4
    for n in (7, 10):
        problem = make_problem(rng, [n], cls, 0, single_root)
        theta, y, mu = rng.normal(size=n * (n + 1)), np.zeros(n, np.int32), np.zeros(n * (n + 1))
        best = max_oracle(problem, 0, theta, y, workspace(problem, 1))
        smooth = level * exp_oracle(problem, 0, theta / level, mu, workspace(problem, 1))
        assert best <= smooth + 1e-9 <= best + level * n * math.log(n + 1)
        assert np.allclose(mu, parts_of(y, 0))


@pytest.mark.parametrize("cls", SORTS)
@pytest.mark.parametrize("n_labels", [0, 2])
def test_solvers_reach_the_reference_optimum(cls, n_labels):
    lengths = [1, 2, 3, 2] if n_labels == 0 else [1, 2, 2]
    problem = make_problem(np.random.default_rng(1), lengths, cls, n_labels)
    width = 1 + n_labels
    blocks = []
    for i, (lo, hi) in enumerate(itertools.pairwise(problem.arc_starts)):
        x, n = problem.features.rows[lo:hi], lengths[i]
        truth = problem.supervision.arcs[problem.starts[i] : problem.starts[i + 1]]
        cost = problem.supervision.word_cost[problem.starts[i] : problem.starts[i + 1]]
        parts, costs = [], []
        for y in [truth, *all_trees(n, cls, n_labels)]:
            parts.append(np.einsum("rf,rc->fc", x, parts_of(y, n_labels).reshape(-1, width)).ravel())
            wrong = y // max(n_labels, 1) != truth // max(n_labels, 1)
            costs.append((cost * np.where(wrong, 1.0, 0.5 * (y != truth))).sum())
        blocks.append((parts[0] - np.array(parts[1:]), np.array(costs[1:])))
    with interpreted():
        check_solver(BCFW(steps="pairwise"), problem, naive.solve(blocks, 1.0)[1], tol=1e-4)
        reference = naive.log_primal(naive.solve_log(blocks, 1.0), blocks, 1.0)
        check_solver(LBFGS(), problem, reference, loss="log", tol=1e-4)
