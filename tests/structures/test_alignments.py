import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.problem import exp_oracle, max_oracle, part_sizes, sample_oracle, topk_oracle, workspace
from maxmargin.runtime import interpreted
from maxmargin.solvers import BCFW, LBFGS
from maxmargin.structures.monotone import alignment_problem
from maxmargin.structures.monotone.alignment_problem import AlignmentProblem, AlignmentSupervision
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive
from tests.toy import random_rows

SIDES = {least: st.tuples(st.integers(least, 3), st.integers(least, 3)).filter(any) for least in (False, True)}


def make_problem(rng, sides, warps=False, storage="dense", dtype="float64", integer=False):
    """Random sequences; `integer` data gives many ties."""
    n_rows = [m * n + (0 if warps else m + n) for m, n in sides]
    rows = Rows(random_rows(rng, sum(n_rows), storage, integer), starts_of(n_rows))
    every = [[*naive.alignments(m, n, warps)] if m * n < 30 else [[]] for m, n in sides]
    truth = [links[rng.integers(len(links))] for links in every]
    paths = [naive.alignment_row(links, m, n, warps) for links, (m, n) in zip(truth, sides, strict=True)]
    costs = []
    for links, (m, n), size in zip(truth, sides, n_rows, strict=True):
        cost = rng.random(size)
        is_true = naive.alignment_parts(links, m, n, warps)[:size] > 0
        costs.append(np.where(is_true, 0, cost))
    return AlignmentProblem(
        features=row_features(rows, dtype),
        starts=rows.starts,
        path_starts=starts_of([m + n for m, n in sides]),
        sides=np.array(sides, np.int64),
        supervision=AlignmentSupervision(np.concatenate(paths).astype(np.int32), np.concatenate(costs).astype(dtype)),
        excluded=nothing_excluded(len(sides)),
        n_features=3,
        warps=warps,
    )


def all_paths(sides, warps):
    return lambda i: [naive.alignment_row(links, *sides[i], warps) for links in naive.alignments(*sides[i], warps)]


def all_parts(m, n, warps):
    return np.array([naive.alignment_parts(links, m, n, warps) for links in naive.alignments(m, n, warps)])


@pytest.mark.long
@pytest.mark.parametrize("warps", [False, True])
def test_compiled_oracles_equal_enumeration(warps):
    sides = [(1, 1), (3, 2), (2, 3)]
    problem = make_problem(np.random.default_rng(0), sides, warps, "binary", "float32")
    check_structure(problem, all_paths(sides, warps), k=6)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), data=st.data(), warps=st.booleans(), integer=st.booleans(), k=st.integers(1, 30))
def test_random_alignments(seed, data, warps, integer, k):
    """Ties, single items, empty sides, and more paths asked for than there are."""
    sides = data.draw(st.lists(SIDES[warps], min_size=1, max_size=2))
    problem = make_problem(np.random.default_rng(seed), sides, warps, integer=integer)
    with interpreted():
        check_structure(problem, all_paths(sides, warps), random_state=seed, k=k)


@pytest.mark.parametrize("warps", [False, True])
def test_parts_are_those_of_the_definition(warps):
    problem = make_problem(np.random.default_rng(0), [(3, 4)], warps)
    for links in naive.alignments(3, 4, warps):
        parts = np.zeros(part_sizes(problem)[0])
        alignment_problem.add_path(problem, 0, naive.alignment_row(links, 3, 4, warps), 1.0, parts)
        assert np.array_equal(parts, naive.alignment_parts(links, 3, 4, warps))


def delannoy(m, n):
    return sum(math.comb(m, k) * math.comb(n, k) * 2**k for k in range(min(m, n) + 1))


@pytest.mark.parametrize("sides", [(1, 1), (3, 2), (1, 5), (20, 13)])
def test_there_are_as_many_alignments_as_there_should_be(sides):
    """Log Z of zero potentials: sets of links that do not cross, and paths of kings that only go on."""
    m, n = sides
    for warps, count in ((False, math.comb(m + n, n)), (True, delannoy(m - 1, n - 1))):
        problem = make_problem(np.random.default_rng(0), [sides], warps)
        mu = np.zeros(part_sizes(problem)[0])
        with interpreted():
            log_z = exp_oracle(problem, 0, np.zeros(mu.size), mu, workspace(problem, 1))
        assert np.isclose(log_z, math.log(count))


def test_nothing_against_something():
    for m, n in ((0, 3), (3, 0), (0, 0)):
        problem = make_problem(np.random.default_rng(0), [(m, n)])
        theta, mu = np.arange(1.0, m + n + 10), np.zeros(m + n + 9)
        y, outputs, values = np.zeros(m + n, np.int32), np.zeros((2, m + n), np.int32), np.zeros(2)
        (parts,) = all_parts(m, n, False)
        with interpreted():
            assert max_oracle(problem, 0, theta, y, workspace(problem, 2)) == parts @ theta
            assert np.isclose(exp_oracle(problem, 0, theta, mu, workspace(problem, 2)), parts @ theta)
            assert topk_oracle(problem, 0, theta, outputs, values, 1e30, workspace(problem, 2)) == 1
            sample_oracle(
                problem, 0, theta, np.random.default_rng(0).random((2, m + n)), outputs, workspace(problem, 2)
            )
        assert np.allclose(mu, parts)
        assert np.array_equal(outputs, [y, y])


@pytest.mark.parametrize("warps", [False, True])
def test_sums_of_scores_far_apart(warps):
    problem, parts = make_problem(np.random.default_rng(0), [(3, 4)], warps), all_parts(3, 4, warps)
    for far in (1.0, 60.0, 600.0, 6e5):
        theta = far * np.random.default_rng(1).normal(size=parts.shape[1])
        scores, mu = parts @ theta, np.zeros(theta.size)
        with interpreted():
            log_z = exp_oracle(problem, 0, theta, mu, workspace(problem, 1))
        assert np.isclose(log_z, np.logaddexp.reduce(scores), rtol=1e-13)
        assert np.allclose(mu, np.exp(scores - np.logaddexp.reduce(scores)) @ parts, atol=1e-9)


@pytest.mark.parametrize("warps", [False, True])
def test_logarithms_are_the_same_sums(warps, monkeypatch):
    problem = make_problem(np.random.default_rng(0), [(7, 5)], warps)
    theta = np.random.default_rng(1).normal(size=part_sizes(problem)[0])
    fast, slow = np.zeros(theta.size), np.zeros(theta.size)
    with interpreted():
        log_z = exp_oracle(problem, 0, theta, fast, workspace(problem, 1))
        monkeypatch.setattr(alignment_problem, "MOST_ITEMS", 0)
        assert np.isclose(exp_oracle(problem, 0, theta, slow, workspace(problem, 1)), log_z)
    assert np.allclose(fast, slow)


def edit_distance(left, right):
    """The textbook's."""
    table = np.add.outer(np.arange(len(left) + 1), np.arange(len(right) + 1))
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1, j + 1] = min(table[i, j] + (a != b), table[i, j + 1] + 1, table[i + 1, j] + 1)
    return table[-1, -1]


def warping_distance(left, right):
    """The textbook's."""
    table = np.full((len(left) + 1, len(right) + 1), np.inf)
    table[0, 0] = 0
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1, j + 1] = abs(a - b) + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


def test_distances_of_the_textbook(interpreted_loops):
    left, right = "grafites", "graphitti"
    problem = make_problem(np.random.default_rng(0), [(8, 9)])
    is_wrong = np.not_equal.outer(np.array([*left]), np.array([*right]))
    theta, y = np.concatenate([-1.0 * is_wrong.ravel(), -np.ones(17), np.zeros(9)]), np.zeros(17, np.int32)
    assert Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1)) == -edit_distance(left, right)
    left, right = np.random.default_rng(0).integers(0, 5, (2, 8)).astype(float)
    problem = make_problem(np.random.default_rng(0), [(8, 8)], warps=True)
    theta, y = np.append(-np.abs(np.subtract.outer(left, right)).ravel(), np.zeros(9)), np.zeros(16, np.int32)
    assert Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1)) == -warping_distance(left, right)


@pytest.mark.parametrize("warps", [False, True])
def test_solvers_reach_the_reference_optimum(warps):
    sides = [(2, 2), (1, 3), (3, 2)]
    problem = make_problem(np.random.default_rng(1), sides, warps)
    blocks = []
    for i, (m, n) in enumerate(sides):
        lo, hi = problem.starts[i : i + 2]
        x = problem.features.rows[lo:hi]
        parts = all_parts(m, n, warps)
        features = np.column_stack([parts[:, : hi - lo] @ x, parts[:, hi - lo :]])
        truth = problem.supervision.paths[problem.path_starts[i] : problem.path_starts[i + 1]]
        k = [*map(tuple, all_paths(sides, warps)(i))].index(tuple(truth))
        blocks.append((features[k] - features, parts[:, : hi - lo] @ problem.supervision.cost[lo:hi]))
    with interpreted():
        check_solver(BCFW(steps="pairwise"), problem, naive.solve(blocks, 1.0)[1], tol=1e-4)
        reference = naive.log_primal(naive.solve_log(blocks, 1.0), blocks, 1.0)
        check_solver(LBFGS(), problem, reference, loss="log", tol=1e-4)
