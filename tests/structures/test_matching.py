import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from maxmargin.encode.links.matching_encoder import MatchingEncoder, stack_pairs
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import exp_oracle, max_marginals, max_oracle, part_sizes, topk_oracle, workspace
from maxmargin.runtime import interpreted
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers import Auto
from maxmargin.structures.matchings.assignment import NOBODY
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive
from tests.toy import METHODS, random_rows, tolerance

SIDES = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda sides: sum(sides) < 8)


def make_problem(rng, sides, storage="dense", dtype="float64", integer=False, complete=False):
    """Random pairs; `integer` data gives many ties."""
    X = [(random_rows(rng, n * m, storage, integer), (n, m)) for n, m in sides]
    y = [rng.choice(list(naive.matchings(n, m, complete))) for n, m in sides]
    weights = [rng.random(shape) for shape in sides]
    costs = {"wrong_cost": 1.0, "missed_cost": 2.0, "link_weight": weights}
    return MatchingEncoder.learn(X, y, dtype=dtype, complete=complete, **costs).problem


def all_matchings(sides, complete=False):
    return lambda i: naive.matchings(*sides[i], complete)


def parts_of(y, n_left, n_right):
    """The parts of a matching, by their definition."""
    links = np.zeros((n_left, n_right))
    for v, z in enumerate(y):
        if z >= 0:
            links[v, z] = 1
    return np.concatenate([links.ravel(), np.array(y) < 0])


def test_oracles_equal_enumeration():
    sides = [(1, 1), (3, 2), (2, 3), (3, 3)]
    check_structure(make_problem(np.random.default_rng(0), sides, "binary", "float32"), all_matchings(sides), k=6)


@given(
    seed=st.integers(0, 10**6),
    sides=st.lists(SIDES, min_size=1, max_size=3),
    k=st.integers(1, 50),
    integer=st.booleans(),
)
def test_random_matchings(seed, sides, k, integer):
    """Ties, single nodes, empty sides, and more outputs asked for than there are."""
    problem = make_problem(np.random.default_rng(seed), sides, integer=integer)
    check_structure(problem, all_matchings(sides), random_state=seed, k=k)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    sides=st.lists(SIDES.map(sorted), min_size=1, max_size=3),
    k=st.integers(1, 50),
    integer=st.booleans(),
)
def test_random_complete_matchings(seed, sides, k, integer):
    """Every left node has a link: permutations where there are as many right ones."""
    problem = make_problem(np.random.default_rng(seed), sides, integer=integer, complete=True)
    with interpreted():
        check_structure(problem, all_matchings(sides, complete=True), random_state=seed, k=k)


@given(seed=st.integers(0, 10**6), sides=SIDES, integer=st.booleans())
def test_max_marginals_equal_enumeration(seed, sides, integer):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, [sides])
    n_parts = part_sizes(problem)[0]
    theta = rng.integers(-2, 3, n_parts).astype(float) if integer else rng.normal(size=n_parts)
    out = np.zeros(n_parts)
    Caller(problem)(max_marginals, 0, theta, out, workspace(problem, 1))
    parts = np.array([parts_of(y, *sides) for y in naive.matchings(*sides)])
    expected = np.where(parts > 0, (parts @ theta)[:, np.newaxis], -np.inf).max(axis=0, initial=-np.inf)
    assert np.allclose(out, expected)


@given(
    seed=st.integers(0, 10**6),
    n_left=st.integers(1, 30),
    n_right=st.integers(1, 30),
    kind=st.sampled_from(["normal", "integer", "positive", "far apart"]),
)
def test_assignments_equal_those_of_scipy(seed, n_left, n_right, kind):
    """SciPy has no unmatched nodes: each left node gets a column of its own, worth as much as staying alone."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, [(1, 1)])._replace(
        pair_starts=np.array([0, n_left * n_right]), left_starts=np.array([0, n_left]), n_right=np.array([n_right])
    )
    theta = rng.normal(size=part_sizes(problem)[0])
    if kind == "integer":
        theta = np.round(2 * theta)
    elif kind == "positive":
        theta[: n_left * n_right] += 10
    elif kind == "far apart":
        theta = np.sinh(5 * theta)
    y = np.zeros(n_left, np.int32)
    score = Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1))
    alone = np.full((n_left, n_left), -1e12)
    np.fill_diagonal(alone, theta[n_left * n_right :])
    table = np.hstack([theta[: n_left * n_right].reshape(n_left, n_right), alone])
    rows, columns = linear_sum_assignment(table, maximize=True)
    assert np.isclose(score, table[rows, columns].sum())
    linked = y[y != NOBODY]
    assert len(set(linked)) == len(linked)


def test_tied_matchings_leave_nodes_alone():
    problem = make_problem(np.random.default_rng(0), [(2, 2)])
    y = np.zeros(2, np.int32)
    assert max_oracle(problem, 0, np.zeros(6), y, workspace(problem, 1)) == 0
    assert y.tolist() == [-1, -1]


def test_topk_of_many_nodes_is_sorted_and_distinct():
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [(1, 1)])._replace(
        pair_starts=np.array([0, 600]), left_starts=np.array([0, 20]), n_right=np.array([30])
    )
    theta = rng.normal(size=620)
    outputs, values = np.zeros((60, 20), np.int32), np.zeros(60)
    assert Caller(problem)(topk_oracle, 0, theta, outputs, values, EVERY, workspace(problem, 60)) == 60
    assert (np.diff(values) <= 1e-12).all()
    assert len({tuple(y) for y in outputs}) == 60
    second = np.zeros(620)
    Caller(problem)(max_marginals, 0, theta, second, workspace(problem, 1))
    assert np.isclose(values[1], second[parts_of(outputs[0], 20, 30) == 0].max())


def test_no_exp_oracle():
    assert not supports(exp_oracle, make_problem(np.random.default_rng(0), [(1, 1)]))


@pytest.mark.parametrize("method", [*METHODS, Auto()], ids=str)
def test_every_method_reaches_the_reference_optimum(method):
    sides = [(2, 2), (1, 3), (3, 2), (0, 2), (2, 0), (3, 3)]
    problem = make_problem(np.random.default_rng(1), sides)
    rows = np.split(problem.features.rows, problem.pair_starts[1:-1])
    costs = np.split(problem.supervision.cost, (problem.pair_starts + problem.left_starts)[1:-1])
    truth = np.split(problem.supervision.matches, problem.left_starts[1:-1])
    blocks = []
    for x, cost, gold, (n, m) in zip(rows, costs, truth, sides, strict=True):
        parts = np.array([parts_of(y, n, m) for y in naive.matchings(n, m)])
        psi = (parts_of(gold, n, m) - parts)[:, : n * m] @ x
        blocks.append((psi, parts @ cost))
    _, optimum = naive.solve(blocks, 1.0)
    check_solver(method, problem, optimum, tol=tolerance(method))


def test_costs_count_wrong_and_missed_links():
    truth, weight = np.array([1, -1, 0]), np.array([[1.0, 2], [3, 4], [5, 6]])
    costs = {"wrong_cost": 10.0, "missed_cost": 1.0, "link_weight": [weight]}
    cost = MatchingEncoder.learn([np.zeros((3, 2, 1))], [truth], dtype="float64", **costs).problem.supervision.cost
    for y in naive.matchings(3, 2):
        wrong = sum(10 * weight[v, z] for v, z in enumerate(y) if z >= 0 and z != truth[v])
        missed = sum(t >= 0 and z != t for z, t in zip(y, truth, strict=True))
        assert np.isclose(parts_of(y, 3, 2) @ cost, wrong + missed)


def test_sparse_and_dense_pairs_are_alike():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    (dense, sides), (sparse, again) = stack_pairs([x]), stack_pairs([(sp.csr_array(x.reshape(6, 4)), (2, 3))])
    assert np.array_equal(dense.matrix, sparse.matrix.toarray())
    assert np.array_equal(sides, again)
