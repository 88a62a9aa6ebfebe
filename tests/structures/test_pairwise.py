import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BCFW, LBFGS
from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.problem import IMPOSSIBLE, max_marginals, max_oracle, new_weights, part_sizes, scores, workspace
from maxmargin.structures.graphs import elimination
from maxmargin.structures.graphs.cliques import EdgeType
from maxmargin.structures.graphs.elimination import with_elimination
from maxmargin.structures.graphs.elimination_plan import TreewidthError
from maxmargin.structures.graphs.graph_problem import make_graph_problem
from maxmargin.supervision.label_supervision import supervise_evenly
from maxmargin.testing import Caller, check_solver, check_structure, toy_chains
from tests import naive

pytestmark = pytest.mark.usefixtures("loops_either_way")

ONE_TYPE = (EdgeType(),)
TRIANGLE = [(0, 1), (2, 1), (0, 2)]


def store(matrix, dtype):
    return row_features(Rows(matrix, np.array([0, matrix.shape[0]])), np.dtype(dtype))


def make_problem(rng, graphs, n_states=(3,), edge_types=ONE_TYPE, dtype="float64", sparse=False, integer=False):
    """Graphs, each the types of its nodes and its edges."""
    draw = (lambda shape: rng.integers(-1, 2, shape).astype(float)) if integer else (lambda s: rng.normal(size=s))
    starts = np.concatenate([[0], np.cumsum([len(types) for types, _ in graphs])])
    edge_starts = np.concatenate([[0], np.cumsum([len(edges) for _, edges in graphs])])
    node_type = np.concatenate([types for types, _ in graphs])
    ends = np.concatenate([np.reshape(edges, (-1, 2)) for _, edges in graphs]).astype(int)
    kinds = {(kind.first, kind.second): k for k, kind in enumerate(edge_types)}
    edge_type = [kinds[tuple(types[list(edge)])] for types, edges in graphs for edge in edges]
    rows, edge_rows = draw((len(node_type), 2)), draw((len(ends), 2))
    if sparse:
        rows, edge_rows = sp.csr_array(rows * (rng.random(rows.shape) < 0.5)), sp.csr_array(edge_rows)
    labels = rng.integers(0, np.array(n_states)[node_type])
    return make_graph_problem(
        store(rows, dtype),
        store(edge_rows, dtype),
        (2, 2),
        starts,
        edge_starts,
        ends,
        supervise_evenly(labels, rng.integers(1, 3, len(labels)), max(n_states), dtype),
        n_states,
        edge_types,
        node_type,
        np.array(edge_type, int),
    )


def random_graph(rng, size, n_types=1):
    """Nodes of some types and any edges, each from the lower type to the higher."""
    types = rng.integers(0, n_types, size)
    pairs = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < 0.6]
    ordered = [sorted(rng.permutation(pair).tolist(), key=lambda v: types[v]) for pair in pairs]
    return types, ordered


def all_labellings(problem):
    n_states = np.split(problem.graphs.nodes.n_parts[problem.graphs.nodes.type], problem.graphs.nodes.starts[1:-1])
    return lambda i: itertools.product(*map(range, n_states[i]))


def naive_features(problem, i, y, column_of):
    """The joint features of dense graphs, by definition: `column_of` gives the weights of a pair, or None."""
    phi = np.zeros(new_weights(problem).size)
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    for c, label in zip(range(nodes.starts[i], nodes.starts[i + 1]), y, strict=True):
        at = nodes.weight[nodes.type[c]] + 2 * label
        phi[at : at + 2] += nodes.features.rows[c]
    for e in range(edges.starts[i], edges.starts[i + 1]):
        column = column_of(*(y[v] for v in problem.graphs.ends[e]))
        if column is not None:
            at = edges.weight[edges.type[e]] + 2 * column
            phi[at : at + 2] += edges.features.rows[edges.row[e]]
    return phi


def test_oracles_equal_enumeration():
    """Sparse, in float32; dense graphs in float64 are those of the random tests."""
    rng = np.random.default_rng(0)
    graphs = [
        (np.array([0]), []),
        (np.array([0, 0, 0]), TRIANGLE),
        (np.array([0, 1, 0, 1]), [(0, 1), (0, 3), (2, 3)]),
        (np.array([0, 0, 0, 1, 1]), [*TRIANGLE, (0, 3)]),
    ]
    edge_types = [EdgeType(), EdgeType(0, 1)]
    problem = make_problem(rng, graphs, (3, 2), edge_types, "float32", sparse=True)
    check_structure(with_elimination(problem), all_labellings(problem), k=5)


def test_edges_lie_by_their_nodes_with_their_types_and_features():
    rng = np.random.default_rng(0)
    edges = np.array([(3, 2), (0, 3), (0, 1), (2, 1), (1, 3)])
    kinds, features = np.array([0, 1, 0, 1, 0]), store(rng.normal(size=(10, 1)), "float64")
    problem = make_graph_problem(
        features,
        features,
        (1, 1),
        np.array([0, 4, 8]),
        np.array([0, 5, 10]),
        np.vstack([edges, edges[::-1]]),
        supervise_evenly(np.zeros(8), np.ones(8), 2, float),
        [2],
        [EdgeType(), EdgeType()],
        edge_type=np.concatenate([kinds, kinds[::-1]]),
    )
    later = problem.graphs.ends.max(axis=1)
    assert later.tolist() == [1, 2, 3, 3, 3] * 2
    given = np.where(problem.graphs.edges.row < 5, problem.graphs.edges.row, 9 - problem.graphs.edges.row)
    assert np.array_equal(problem.graphs.ends, edges[given])
    assert np.array_equal(problem.graphs.edges.type, kinds[given])
    assert np.array_equal(np.diff(problem.graphs.edges.part.reshape(2, 5), axis=1), np.full((2, 4), 4))


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    n_states=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ties=st.sampled_from(["full", "symmetric", "potts"]),
    k=st.integers(1, 40),
    integer=st.booleans(),
)
@pytest.mark.long
def test_random_graphs(seed, sizes, n_states, ties, k, integer):
    rng = np.random.default_rng(seed)
    edge_types = [EdgeType(0, 0, ties), EdgeType(0, 1), EdgeType(1, 1, ties)]
    problem = make_problem(rng, [random_graph(rng, size, 2) for size in sizes], n_states, edge_types, integer=integer)
    check_structure(with_elimination(problem), all_labellings(problem), random_state=seed, k=k)


@pytest.mark.parametrize(
    ("ties", "n_columns", "column_of"),
    [
        ("full", 9, lambda a, b: 3 * a + b),
        ("symmetric", 9, lambda a, b: 3 * min(a, b) + max(a, b)),
        ("potts", 1, lambda a, b: 0 if a == b else None),
    ],
)
def test_features_by_definition(ties, n_columns, column_of):
    rng = np.random.default_rng(0)
    problem = make_problem(
        rng, [(np.zeros(2, int), [(1, 0)]), (np.zeros(3, int), TRIANGLE)], edge_types=[EdgeType(ties=ties)]
    )
    w = rng.normal(size=new_weights(problem).size)
    assert w.size == 2 * (3 + n_columns)
    exact = with_elimination(problem)
    for i in range(2):
        theta = np.zeros(part_sizes(problem)[i])
        scores(problem, w, i, theta)
        y = np.zeros(np.diff(problem.graphs.nodes.starts)[i], np.int32)
        best = max_oracle(exact, i, theta, y, workspace(exact, 1))
        every = [w @ naive_features(problem, i, y, column_of) for y in all_labellings(problem)(i)]
        assert np.isclose(best, max(every))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_max_marginals_equal_enumeration(is_compiled):
    rng = np.random.default_rng(0)
    problem = with_elimination(make_problem(rng, [random_graph(rng, size) for size in (1, 4, 5)]))
    run = Caller(problem) if is_compiled else lambda generic, *args: generic(problem, *args)
    w = rng.normal(size=new_weights(problem).size)
    for i in range(3):
        theta, found = np.zeros((2, part_sizes(problem)[i]))
        scores(problem, w, i, theta)
        run(max_marginals, i, theta, found, workspace(problem, 1))
        expected = np.full(theta.size, 2 * IMPOSSIBLE)
        for y in all_labellings(problem)(i):
            has = np.zeros(theta.size)
            mark_parts(problem, i, y, has)
            expected[has == 1] = np.maximum(expected[has == 1], theta @ has)
        assert np.allclose(found, expected)


def mark_parts(problem, i, y, mu):
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    lo = nodes.starts[i]
    for c, label in enumerate(y):
        mu[nodes.part[lo + c] + label] = 1
    for e in range(edges.starts[i], edges.starts[i + 1]):
        a, b = problem.graphs.ends[e]
        mu[edges.part[e] + y[a] * nodes.n_parts[nodes.type[lo + b]] + y[b]] = 1


def chain_as_graph(chains):
    """The same model as a graph: transitions are one feature that is 1."""
    n_labels = len(chains.penalty)
    inner = np.setdiff1d(np.arange(chains.starts[-1]), chains.starts[1:] - 1)
    first = chains.starts[np.searchsorted(chains.starts, inner, side="right") - 1]
    lengths = np.diff(chains.starts)
    return make_graph_problem(
        chains.features,
        store(np.ones((1, 1)), chains.supervision.cost.dtype),
        (chains.n_features, 1),
        chains.starts,
        np.concatenate([[0], np.cumsum(lengths - 1)]),
        np.stack([inner - first, inner - first + 1], axis=1),
        chains.supervision,
        [n_labels],
        edge_row=np.zeros(len(inner), int),
    )


def test_a_chain_as_a_graph_has_its_optimum():
    chains = toy_chains()
    graphs = with_elimination(chain_as_graph(chains))
    for solver in (BCFW(steps="pairwise"), LBFGS()):
        optimum = solver.solve(chains, tol=1e-6, max_passes=1e4, random_state=0).trace.primal[-1]
        found = solver.solve(graphs, tol=1e-6, max_passes=1e4, random_state=0)
        assert found.status.name == "OPTIMAL"
        assert np.isclose(found.trace.primal[-1], optimum, rtol=3e-6)


def test_a_solver_reaches_the_optimum_on_loops():
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [(np.zeros(3, int), TRIANGLE), (np.zeros(4, int), [*TRIANGLE, (0, 3), (3, 2)])], (2,))
    blocks = []
    for i in range(2):
        gold = np.split(problem.graphs.supervision.labels, problem.graphs.nodes.starts[1:-1])[i]
        cost = np.split(problem.graphs.supervision.weight, problem.graphs.nodes.starts[1:-1])[i]
        every = [*all_labellings(problem)(i)]
        truth = naive_features(problem, i, gold, lambda a, b: 2 * a + b)
        psi = np.array([truth - naive_features(problem, i, y, lambda a, b: 2 * a + b) for y in every])
        blocks.append((psi, np.array([cost[gold != y].sum() for y in every])))
    optimum = naive.solve(blocks, 1.0)[1]
    check_solver(BCFW(steps="pairwise", sampling="gap"), with_elimination(problem), optimum, tol=1e-4)


def test_equal_graphs_share_a_plan():
    graphs = [(np.zeros(3, int), TRIANGLE), (np.zeros(3, int), TRIANGLE[:2]), (np.zeros(3, int), TRIANGLE)]
    plan = with_elimination(make_problem(np.random.default_rng(0), graphs)).plan
    assert plan.which.tolist() == [0, 1, 0]
    assert len(plan.node) == 6


def grid(height, width):
    at = np.arange(height * width).reshape(height, width)
    down, right = np.stack([at[:-1].ravel(), at[1:].ravel()]), np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
    return np.zeros(at.size, int), np.concatenate([down, right], axis=1).T


def test_the_order_has_little_fill():
    """The treewidth of a grid is its smaller side, and that of a cycle 2."""
    for graph, width in ((grid(3, 30), 3), ((np.zeros(50, int), [(v, (v + 1) % 50) for v in range(50)]), 2)):
        plan = with_elimination(make_problem(np.random.default_rng(0), [graph])).plan
        assert np.diff(plan.scope_first).max() == width + 1


def test_a_large_treewidth_is_an_error_that_names_the_graph():
    problem = make_problem(np.random.default_rng(0), [grid(2, 2), grid(16, 16)])
    with pytest.raises(TreewidthError, match="Graph 1 has too large a treewidth"):
        with_elimination(problem)
    with pytest.raises(TypeError, match="BCFW needs the max oracle"):
        BCFW().solve(problem)


def test_large_scores_do_not_overflow():
    problem = with_elimination(make_problem(np.random.default_rng(0), [(np.zeros(3, int), TRIANGLE)]))
    tables = elimination.new_tables(problem.plan)
    theta = 1e5 * np.random.default_rng(1).normal(size=part_sizes(problem)[0])
    best = elimination.eliminate(problem.plan, 0, theta, tables, False)
    assert np.isclose(elimination.eliminate(problem.plan, 0, theta, tables, True), best)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"supervision": supervise_evenly(np.array([0, 1, 3]), np.ones(3), 3, float)},
            "Node 2 of graph 0 has the label 3, but its states are 0 to 2.",
        ),
        ({"node_type": np.array([0, 1, 0])}, r"Edge 0 of graph 0 joins nodes of types \(0, 1\)"),
        ({"edge_types": [EdgeType(0, 1, "potts")]}, "potts weights need as many states at both ends"),
        ({"edge_types": [EdgeType(0, 0, "tied")]}, "ties must be one of full, symmetric, potts"),
    ],
)
def test_bad_input(change, message):
    ends = np.array([(0, 1), (0, 2)])
    if change.get("edge_types", [EdgeType()])[0].second == 1:
        change = {**change, "node_type": np.array([0, 1, 1])}
    arguments = {
        "features": store(np.ones((3, 1)), "float64"),
        "edge_features": store(np.ones((2, 1)), "float64"),
        "widths": (1, 1),
        "starts": np.array([0, 3]),
        "edge_starts": np.array([0, 2]),
        "ends": ends,
        "supervision": supervise_evenly(np.zeros(3), np.ones(3), 3, float),
        "n_states": (3, 2),
    }
    with pytest.raises(ValueError, match=message):
        make_graph_problem(**{**arguments, **change})
