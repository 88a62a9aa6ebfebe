import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import maximum_flow

from maxmargin import problem as generics
from maxmargin.encode.cut_encoder import GraphCutEncoder, stack_graphs
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers import BCFW, Auto, FrankWolfe
from maxmargin.structures.cuts.max_flow import change_excess, new_flow, plant_trees, saturate
from maxmargin.structures.cuts.minimum_cuts import NotSubmodularError, arcs
from maxmargin.supervision.label_supervision import supervise_evenly
from maxmargin.testing import Caller, check_structure
from maxmargin.trace import Status
from tests import naive


def make_graph(rng, n_nodes, n_edges, integer=False):
    """A random graph; `integer` data gives many ties and edges without capacity."""
    pairs = list(itertools.combinations(range(n_nodes), 2))
    chosen = rng.permutation(len(pairs))[:n_edges]
    edges = np.array([pairs[k][:: rng.choice([1, -1])] for k in chosen], int).reshape(-1, 2)
    if integer:
        return rng.integers(-2, 3, (n_nodes, 2)), edges, rng.integers(0, 3, (len(edges), 2))
    return rng.normal(size=(n_nodes, 2)), edges, rng.random((len(edges), 2))


def make_encoder(n_features, n_edge_features, dtype="float64"):
    widths = {"n_features_in": n_features, "n_edge_features_in": n_edge_features}
    return GraphCutEncoder(dtype=np.dtype(dtype), stores_sparse=False, classes=np.arange(2), **widths)


def make_problem(rng, graphs, dtype="float64"):
    stacked = stack_graphs(graphs)
    n_nodes = stacked.nodes.starts[-1]
    labels, cost = rng.integers(0, 2, n_nodes), rng.integers(1, 3, n_nodes) / 2
    return make_encoder(2, 2, dtype).assemble(stacked, supervise_evenly(labels, cost, 2, dtype), with_grams=True)


def all_labellings(problem):
    return lambda i: naive.labellings(problem.starts[i + 1] - problem.starts[i], 2)


def call(oracle, problem, *args):
    return Caller(problem)(oracle, *args)


LOWER = np.array([-np.inf, -np.inf, 0, 0])
SHAPES = [(1, 0), (2, 1), (4, 0), (5, 3), (4, 6), (6, 8)]  # single nodes, no edges, isolated nodes, all edges


@pytest.mark.parametrize("integer", [False, True])
def test_oracles_equal_enumeration(integer):
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [make_graph(rng, *shape, integer) for shape in SHAPES])
    check_structure(problem, all_labellings(problem), k=70, lower=LOWER)
    with pytest.raises(NotImplementedError):
        generics.exp_oracle(problem, 0, np.zeros(2), np.zeros(2), None)


@given(
    seed=st.integers(0, 10**6),
    shapes=st.lists(st.tuples(st.integers(1, 7), st.integers(0, 14)), min_size=1, max_size=4),
    k=st.integers(1, 20),
    integer=st.booleans(),
)
def test_random_graphs(seed, shapes, k, integer):
    """One work for all calls, so that flows start from those of other weights, costs and constraints."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, [make_graph(rng, *shape, integer) for shape in shapes])
    work = generics.workspace(problem, k)
    for _ in range(4):
        w = np.maximum(rng.integers(-2, 3, 4) if integer else rng.normal(size=4), LOWER)
        for i, (n_nodes, _) in enumerate(shapes):
            theta = np.zeros(generics.part_sizes(problem)[i])
            call(generics.scores, problem, w, i, theta)
            if rng.random() < 0.5:
                call(generics.augment, problem, i, theta)
            every = np.array(list(naive.labellings(n_nodes, 2)))
            values = np.array([generics.score_output(problem, i, theta, y) for y in every])
            best = np.sort(values)[::-1]

            y = np.zeros(n_nodes, np.int32)
            assert np.isclose(call(generics.max_oracle, problem, i, theta, y, work), best[0])
            assert np.array_equal(y, every[np.isclose(values, best[0], rtol=0, atol=1e-9)].min(axis=0))  # fewest ones

            through = np.zeros_like(theta)
            call(generics.max_marginals, problem, i, theta, through, work)
            expected = [[values[every[:, p] == label].max() for p in range(n_nodes)] for label in (0, 1)]
            assert np.allclose(through[: 2 * n_nodes], np.ravel(expected))
            assert not through[2 * n_nodes :].any()

            outputs, found = np.zeros((k, n_nodes), np.int32), np.zeros(k)
            count = call(generics.topk_oracle, problem, i, theta, outputs, found, EVERY, work)
            assert count == min(k, 2**n_nodes)
            assert np.allclose(found[:count], best[:count])
            assert np.allclose(
                [generics.score_output(problem, i, theta, output) for output in outputs[:count]], best[:count]
            )
            assert len({tuple(output) for output in outputs[:count]}) == count


def test_labels_and_cuts_that_are_ruled_out():
    """One work for all calls; at least one output is possible."""
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [make_graph(rng, *shape) for shape in SHAPES])
    work, k = generics.workspace(problem, 70), 70
    for _ in range(10):
        for i, (n_nodes, n_edges) in enumerate(SHAPES):
            truth = problem.supervision.labels[problem.starts[i] : problem.starts[i + 1]]
            ends = problem.ends[problem.edge_starts[i] : problem.edge_starts[i + 1]]
            theta = np.concatenate([rng.normal(size=2 * n_nodes), -rng.random(n_edges)])
            other = (1 - truth) * n_nodes + np.arange(n_nodes)
            theta[other[rng.random(n_nodes) < 0.4]] = IMPOSSIBLE
            theta[2 * n_nodes :][(truth[ends[:, 0]] == truth[ends[:, 1]]) & (rng.random(n_edges) < 0.3)] = IMPOSSIBLE
            call(generics.augment, problem, i, theta)
            every = np.array(list(naive.labellings(n_nodes, 2)))
            values = np.array([generics.score_output(problem, i, theta, y) for y in every])
            is_possible = values > IMPOSSIBLE / 2
            every, values = every[is_possible], values[is_possible]

            y = np.zeros(n_nodes, np.int32)
            assert np.isclose(call(generics.max_oracle, problem, i, theta, y, work), values.max())
            through = np.zeros_like(theta)
            call(generics.max_marginals, problem, i, theta, through, work)
            for p, label in itertools.product(range(n_nodes), (0, 1)):
                best = values[every[:, p] == label].max(initial=IMPOSSIBLE)
                assert np.isclose(through[label * n_nodes + p], best)
            outputs, found = np.zeros((k, n_nodes), np.int32), np.zeros(k)
            assert call(generics.topk_oracle, problem, i, theta, outputs, found, EVERY, work) == len(values)
            assert np.allclose(found[: len(values)], np.sort(values)[::-1])


def grid(height, width):
    nodes = np.arange(height * width).reshape(height, width)
    across, down = (nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (across, down)])


def grid_problem(height, width):
    edges = grid(height, width)
    return make_encoder(1, 1).problem([(np.ones((height * width, 1)), edges)])


@loop
def flow_of(problem, excess, capacity, flow):
    """The maximum flow of the first graph, with the same capacity both ways along each edge."""
    for p in range(excess.size):
        flow.excess[p] = excess[p]
    for e in range(capacity.size):
        flow.residual[2 * e] = capacity[e]
        flow.residual[2 * e + 1] = capacity[e]
    first, out, ends = arcs(problem, 0)
    plant_trees(flow, excess.size, ends)
    return saturate(first, out, ends, flow)


@loop
def flow_after(problem, flow, p, amount):
    """What flows in addition once `amount` has been added to the excess of p."""
    first, out, ends = arcs(problem, 0)
    change_excess(first, out, ends, flow, p, amount)
    return saturate(first, out, ends, flow)


def scipy_flow(edges, excess, capacity):
    n = len(excess)
    source, sink = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    rows = np.concatenate([edges[:, 0], edges[:, 1], np.full(len(source), n), sink])
    columns = np.concatenate([edges[:, 1], edges[:, 0], source, np.full(len(sink), n + 1)])
    data = np.concatenate([capacity, capacity, excess[source], -excess[sink]])
    return maximum_flow(
        sp.csr_array((data.astype(np.int32), (rows, columns)), shape=(n + 2, n + 2)), n, n + 1
    ).flow_value


@given(seed=st.integers(0, 10**6), height=st.integers(1, 12), width=st.integers(2, 12), largest=st.integers(0, 50))
def test_flows_equal_those_of_scipy(seed, height, width, largest):
    rng = np.random.default_rng(seed)
    problem, edges = grid_problem(height, width), grid(height, width)
    n = height * width
    excess, capacity = rng.integers(-20, 21, n), rng.integers(0, largest + 1, len(edges))
    flow = new_flow(n, 2 * len(edges))
    total = flow_of(problem, excess, capacity, flow)
    assert total == scipy_flow(edges, excess, capacity)
    for _ in range(5):  # the trees live on
        p, amount = int(rng.integers(n)), int(rng.integers(1, 40))
        total += min(amount, max(-flow.excess[p], 0))  # from the source to the sink through p alone
        total += flow_after(problem, flow, p, amount)
        excess[p] += amount  # a node's own source and sink cancel
        through = np.abs(excess[p] - amount) + amount - np.abs(excess[p])
        total -= through // 2
        assert total == scipy_flow(edges, excess, capacity)


def test_warm_and_cold_cuts_are_the_same():
    rng = np.random.default_rng(0)
    problem = grid_problem(30, 30)
    size = generics.part_sizes(problem)[0]
    warm, y, again = generics.workspace(problem, 1), np.zeros(900, np.int32), np.zeros(900, np.int32)
    theta = np.concatenate([np.zeros(900), rng.normal(size=900), -rng.random(size - 1800)])
    for scale in (0.0, 1e-12, 0.05, 0.5, 1e12):
        theta[900:1800] += scale * rng.normal(size=900)
        theta[1800:] = np.minimum(theta[1800:] + scale * rng.normal(size=size - 1800), 0)
        value = call(generics.max_oracle, problem, 0, theta, y, warm)
        assert value == call(generics.max_oracle, problem, 0, theta, again, generics.workspace(problem, 1))
        assert np.array_equal(y, again)
        assert 0 < y.mean() < 1


def test_dynamic_cuts_on_a_grid_equal_cuts_with_fixed_labels():
    rng = np.random.default_rng(1)
    problem = grid_problem(8, 9)
    theta = np.concatenate([np.zeros(72), rng.normal(size=72), np.full(generics.part_sizes(problem)[0] - 144, -0.7)])
    work, out = generics.workspace(problem, 1), np.zeros_like(theta)
    call(generics.max_marginals, problem, 0, theta, out, work)
    y = np.zeros(72, np.int32)
    for p in range(72):
        for label in (0, 1):
            forced = theta.copy()
            forced[label * 72 + p] += 1000
            value = call(generics.max_oracle, problem, 0, forced, y, work) - 1000
            assert y[p] == label
            assert np.isclose(out[label * 72 + p], value)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_potentials_of_any_size(scale):
    problem = grid_problem(2, 2)
    theta = scale * np.array([0, 0, 0, 0, 3, -1, -1, -0.5, -1, -1, -0.6, -0.6])
    y, work = np.zeros(4, np.int32), generics.workspace(problem, 1)
    value = call(generics.max_oracle, problem, 0, theta, y, work)
    best = max(naive.labellings(4, 2), key=lambda labels: generics.score_output(problem, 0, theta, labels))
    assert np.array_equal(y, best)
    assert value == generics.score_output(problem, 0, theta, best)


def test_capacities_that_differ_by_sixteen_orders():
    """Pushing tiny amounts next to huge ones must end."""
    rng = np.random.default_rng(0)
    problem = grid_problem(20, 20)
    n_edges = generics.part_sizes(problem)[0] - 800
    theta = np.concatenate([np.zeros(400), rng.normal(size=400) * 10.0 ** rng.integers(-12, 5, 400), np.zeros(n_edges)])
    theta[800:] = -(10.0 ** rng.uniform(-12, 4, n_edges))
    y = np.zeros(400, np.int32)
    value = call(generics.max_oracle, problem, 0, theta, y, generics.workspace(problem, 1))
    for p in range(400):  # no single change improves it
        flipped = y.copy()
        flipped[p] = 1 - flipped[p]
        assert generics.score_output(problem, 0, theta, flipped) <= value + 1e-12 * abs(value)


def test_rewarded_cuts_raise():
    problem = grid_problem(2, 2)
    theta = np.array([0, 0, 0, 0, 1, 1, -1, -1, -0.5, 0.25, -0.5, -0.5])
    for oracle in (generics.max_oracle, lambda *args: call(generics.max_oracle, *args)):
        with pytest.raises(NotSubmodularError, match="An edge rewards different labels"):
            oracle(problem, 0, theta, np.zeros(4, np.int32), generics.workspace(problem, 1))
    theta[9] = 1e-9  # rounding
    call(generics.max_oracle, problem, 0, theta, np.zeros(4, np.int32), generics.workspace(problem, 1))


def test_solvers_without_bounds_raise():
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [make_graph(rng, 6, 10) for _ in range(3)])
    with pytest.raises(NotSubmodularError, match="lower=0"):
        BCFW().solve(problem, 10.0, tol=1e-6, random_state=0)


METHODS = [
    *(
        BCFW(steps=steps, sampling=sampling, cache=3)
        for steps in ("fw", "pairwise", "away")
        for sampling in ("gap", "uniform")
    ),
    BCFW(averaging=True),
    BCFW(steps="pairwise", averaging="recent"),
    FrankWolfe(),
    Auto(),
]


@pytest.fixture(scope="module")
def reference():
    """Six graphs on which the bounds of the edge weights matter, and the optimum by an independent solver."""
    rng = np.random.default_rng(4)
    graphs = [make_graph(rng, *shape) for shape in [(1, 0), (3, 2), (4, 5), (5, 4), (4, 0), (5, 7)]]
    problem = make_problem(rng, graphs)
    cuts = problem.starts[1:-1]
    blocks = naive.graph_table(
        graphs, np.split(problem.supervision.labels, cuts), np.split(problem.supervision.weight, cuts)
    )
    w, optimum = naive.solve(blocks, 1.0, lower=LOWER)
    assert (w[2:] == 0).any()
    assert (w[2:] > 0.01).any()
    return problem, blocks, optimum


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_solvers_reach_the_reference_optimum(method, reference):
    problem, blocks, optimum = reference
    tol = 1e-4 if isinstance(method, Auto) or getattr(method, "steps", "fw") != "fw" else 1e-2
    result = method.solve(problem, 1.0, lower=LOWER, tol=tol, max_passes=1e5, random_state=0)
    assert result.status is Status.OPTIMAL
    assert (result.w >= LOWER).all()
    assert (result.trace.dual <= optimum * (1 + 1e-9)).all()
    assert (result.trace.primal >= optimum * (1 - 1e-9)).all()
    assert np.isclose(naive.primal(result.w, blocks, 1.0), result.trace.primal[-1])
