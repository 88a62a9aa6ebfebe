import itertools
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BCFW, Status, Tree
from maxmargin import problem as generics
from maxmargin.encode.tree_encoder import TreeEncoder, check_trees, excluded_labels, stack_trees
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime import interpreted
from maxmargin.supervision.label_supervision import supervise
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive


def random_tree(rng, size, n_edge_features, integer=False, sparse=False):
    """Nodes in any order, some of them roots; `integer` data gives many ties."""
    draw = (lambda shape: rng.integers(-1, 2, shape)) if integer else (lambda shape: rng.normal(size=shape))
    nodes = rng.permutation(size)
    edges = [(nodes[rng.integers(k)], nodes[k]) for k in range(1, size) if rng.random() < 0.8]
    features = draw((size, 3))
    return Tree(
        sp.csr_array(features * (rng.random((size, 3)) < 0.5)) if sparse else features,
        np.array(edges, int).reshape(-1, 2),
        rng.integers(-1, 2, (len(edges), n_edge_features)) if n_edge_features else None,
    )


def make_problem(rng, trees, n_labels, dtype="float64", with_bias=False):
    stacked = stack_trees(check_trees(trees), [tree[0] for tree in trees])
    n_nodes, n_edge_features = stacked.nodes.starts[-1], stacked.edges.matrix.shape[1]
    costs = rng.integers(0, 3, (n_labels, n_labels)).astype(float)
    np.fill_diagonal(costs, 0)
    excluded = excluded_labels(trees, stacked.nodes, np.arange(n_labels))
    labels = rng.integers(0, n_labels, n_nodes)
    if len(excluded):
        labels = excluded.argmin(axis=1)
    encoder = TreeEncoder(
        n_features_in=3,
        n_edge_features=n_edge_features,
        dtype=np.dtype(dtype),
        stores_sparse=sp.issparse(stacked.nodes.matrix),
        has_bias=with_bias,
        classes=np.arange(n_labels),
    )
    return encoder.assemble(stacked, supervise(labels, costs, rng.random(n_nodes), dtype), excluded, with_grams=True)


def all_labellings(problem):
    lengths, n_labels = np.diff(problem.starts), problem.supervision.cost.shape[1]

    def outputs(i):
        values, starts = problem.excluded
        is_allowed = ~values[starts[i] : starts[i + 1]].reshape(-1, n_labels)
        for y in naive.labellings(lengths[i], n_labels):
            if not len(is_allowed) or is_allowed[np.arange(lengths[i]), y].all():
                yield y

    return outputs


@pytest.mark.parametrize(("dtype", "sparse"), [("float32", False), ("float64", True)])
def test_oracles_equal_enumeration(dtype, sparse):
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, size, 2, sparse=sparse) for size in (1, 2, 4, 5)]
    problem = make_problem(rng, trees, 3, dtype, with_bias=True)
    with interpreted() if sparse else nullcontext():  # compiled, sparse rows are those of chains
        check_structure(problem, all_labellings(problem), k=5)


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    n_labels=st.integers(1, 6),
    n_edge_features=st.integers(0, 2),
    k=st.integers(1, 40),
    integer=st.booleans(),
)
def test_random_forests(seed, sizes, n_labels, n_edge_features, k, integer):
    rng = np.random.default_rng(seed)
    sizes = [min(size, int(np.log(300) / np.log(max(n_labels, 2)))) for size in sizes]
    trees = [random_tree(rng, size, n_edge_features, integer) for size in sizes]
    problem = make_problem(rng, trees, n_labels)
    check_structure(problem, all_labellings(problem), random_state=seed, k=k)


@given(seed=st.integers(0, 10**6), n_labels=st.integers(2, 4))
def test_allowed_labels(seed, n_labels):
    rng = np.random.default_rng(seed)
    trees = []
    for size in (1, 3, 4):
        choice = [rng.choice(n_labels, rng.integers(1, n_labels + 1), replace=False).tolist() for _ in range(size)]
        allowed = [None if len(labels) == n_labels else labels for labels in choice]
        trees.append(random_tree(rng, size, 1)._replace(allowed=allowed))
    trees[0] = trees[0]._replace(allowed=None)
    problem = make_problem(rng, trees, n_labels)
    check_structure(problem, all_labellings(problem), random_state=seed, k=50)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_max_marginals_equal_enumeration(is_compiled):
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, size, 1) for size in (1, 4, 5, 5)]
    trees[3] = trees[3]._replace(allowed=[[0], None, [0, 2], None, None])
    problem = make_problem(rng, trees, 3)
    run = Caller(problem) if is_compiled else lambda generic, *args: generic(problem, *args)
    w = rng.normal(size=generics.new_weights(problem).size)
    for i, length in enumerate(np.diff(problem.starts)):
        theta = np.zeros(generics.part_sizes(problem)[i])
        generics.scores(problem, w, i, theta)
        every = list(naive.labellings(length, 3))
        values = np.array([generics.score_output(problem, i, theta, y) for y in every])
        out = np.full(theta.size, 7.0)
        run(generics.max_marginals, i, theta, out, generics.workspace(problem, 1))
        through = np.where(np.array(every)[:, :, None] == np.arange(3), values[:, None, None], -np.inf).max(axis=0)
        best, is_possible = out[: length * 3].reshape(length, 3), through > IMPOSSIBLE / 2
        assert np.allclose(best[is_possible], through[is_possible])
        assert (best[~is_possible] < IMPOSSIBLE / 2).all()
        assert (out[length * 3 :] == 7).all()  # counts of edges are not there once or not at all


def test_edges_with_the_same_features_share_their_parts():
    rng = np.random.default_rng(0)
    star = [(0, k) for k in range(1, 6)]
    plain, typed = (
        Tree(rng.normal(size=(6, 3)), star),
        Tree(rng.normal(size=(6, 3)), star, [[0], [1], [0], [1], [-0.0]]),
    )
    assert generics.part_sizes(make_problem(rng, [plain], 3)).tolist() == [6 * 3 + 9]
    assert generics.part_sizes(make_problem(rng, [typed], 3)).tolist() == [6 * 3 + 2 * 9]


def test_ties_are_broken_towards_low_labels_from_the_root():
    problem = make_problem(np.random.default_rng(0), [Tree(np.eye(3), [(1, 0), (1, 2)])], 4)
    theta, y = np.zeros(generics.part_sizes(problem)[0]), np.zeros(3, np.int32)
    theta[[4 + 1, 4 + 3]] = 1.0  # labels 1 and 3 tie at the root
    generics.max_oracle(problem, 0, theta, y, generics.workspace(problem, 1))
    assert y.tolist() == [0, 1, 0]


# --- large trees and far-apart potentials ---------------------------------------------------------------------------


def oracle_call(oracle, problem, *args):
    return Caller(problem)(oracle, *args)


@pytest.mark.parametrize("shape", ["star", "chain", "random"])
def test_ten_thousand_nodes_do_not_underflow(shape):
    rng = np.random.default_rng(0)
    n, n_labels = 10_000, 3
    child = np.arange(1, n)
    parent = {"star": 0 * child, "chain": child - 1, "random": rng.integers(0, child)}[shape]
    problem = make_problem(rng, [Tree(np.ones((n, 1)), np.column_stack([parent, child]))], n_labels, "float32")
    theta = rng.normal(size=generics.part_sizes(problem)[0]).astype("float32")
    mu, y = np.zeros_like(theta), np.zeros(n, np.int32)
    log_z = oracle_call(generics.exp_oracle, problem, 0, theta, mu, generics.workspace(problem, 1))
    best = oracle_call(generics.max_oracle, problem, 0, theta, y, generics.workspace(problem, 1))
    assert best <= log_z <= best + n * np.log(n_labels)
    assert np.allclose(mu[: n * n_labels].reshape(n, n_labels).sum(axis=1), 1, atol=1e-3)
    assert np.isclose(mu[n * n_labels :].sum(), n - 1, rtol=1e-3)


def test_far_apart_potentials_take_the_log_domain():
    """The leaves insist on labels 0 and 1, edges on the same label at both ends."""
    problem = make_problem(np.random.default_rng(0), [Tree(np.eye(3), [(1, 0), (1, 2)])], 2, "float32")
    theta = np.array([2000, 0, 0, 0, 0, 2000, 0, -4000, -4000, 0], "float32")
    mu = np.zeros_like(theta)
    log_z = oracle_call(generics.exp_oracle, problem, 0, theta, mu, generics.workspace(problem, 1))
    assert np.isclose(log_z, 2000 + np.log(2), rtol=1e-6)
    assert np.allclose(mu, [*[0.5] * 6, 1, 0, 0, 1])


def test_topk_of_a_large_tree_is_sorted_and_distinct():
    rng = np.random.default_rng(0)
    child = np.arange(1, 300)
    problem = make_problem(rng, [Tree(np.ones((300, 1)), np.column_stack([rng.integers(0, child), child]))], 8)
    theta = rng.normal(size=generics.part_sizes(problem)[0])
    outputs, values = np.zeros((100, 300), np.int32), np.zeros(100)
    assert (
        oracle_call(generics.topk_oracle, problem, 0, theta, outputs, values, EVERY, generics.workspace(problem, 100))
        == 100
    )
    assert (np.diff(values) <= 0).all()
    assert len({tuple(y) for y in outputs}) == 100


# --- training -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    """A problem, its blocks, a box, and the optima without and within the box."""
    rng = np.random.default_rng(1)
    trees = [random_tree(rng, size, 1) for size in (1, 3, 4, 4, 2)]
    problem = make_problem(rng, trees, 2)
    blocks = []
    for i, tree in enumerate(trees):
        gold = problem.supervision.labels[problem.starts[i] : problem.starts[i + 1]]
        scale = problem.supervision.weight[problem.starts[i] : problem.starts[i + 1]]
        every = list(naive.labellings(len(gold), 2))
        truth = naive.tree_features(tree, gold, 2)
        psi = np.array([truth - naive.tree_features(tree, y, 2) for y in every])
        blocks.append((psi, np.array([naive.chain_cost(gold, y, problem.supervision.cost, scale) for y in every])))
    lower, upper = np.full(14, -np.inf), np.full(14, 0.1)
    lower[6:] = 0.0
    boxed = naive.solve(blocks, 1.0, lower=lower, upper=upper)[1]
    return problem, blocks, (lower, upper), naive.solve(blocks, 1.0)[1], boxed


METHODS = [BCFW(steps=steps, sampling="gap", cache=cache) for steps in ("fw", "pairwise", "away") for cache in (0, 3)]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_solvers_reach_the_optimum(trained, method):
    problem, blocks, (lower, upper), optimum, boxed = trained
    tol = 1e-2 if method.steps == "fw" else 1e-4
    check_solver(method, problem, optimum, tol=tol)
    result = method.solve(problem, lower=lower, upper=upper, tol=tol, max_passes=1e5, random_state=0)
    assert result.status is Status.OPTIMAL
    assert (result.w >= lower).all()
    assert (result.w <= upper).all()
    assert boxed > optimum + 1e-3  # the box matters
    assert result.trace.dual[-1] <= boxed * (1 + 1e-9)
    assert result.trace.primal[-1] >= boxed * (1 - 1e-9)
    assert np.isclose(naive.primal(result.w, blocks, 1.0), result.trace.primal[-1])


def test_a_tree_that_is_a_chain_has_its_labellings():
    """Rooted at the last position, so that transitions are those of the chain."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 3)), rng.normal(size=18)
    problem = make_problem(rng, [Tree(x, [(1, 0), (2, 1), (3, 2)])], 3)
    theta = np.zeros(generics.part_sizes(problem)[0])
    generics.scores(problem, w, 0, theta)
    for y in itertools.product(range(3), repeat=4):
        assert np.isclose(generics.score_output(problem, 0, theta, np.array(y)), naive.chain_features(x, y, 3) @ w)
