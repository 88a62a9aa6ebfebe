import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BCFW, SGD, FrankWolfe, NSlack, OneSlack, Perceptron
from maxmargin import problem as generics
from maxmargin.inference import certified_outputs, known_marginals
from maxmargin.losses import RelaxedLoss, SquaredLoss
from maxmargin.problem import IMPOSSIBLE, METHODS
from maxmargin.runtime import interpreted
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.relaxed.idal import IDAL
from maxmargin.structures.graphs.cliques import EdgeType
from maxmargin.structures.graphs.elimination import with_elimination
from maxmargin.structures.graphs.elimination_plan import NONE
from maxmargin.structures.graphs.fractional import UNITS
from maxmargin.structures.graphs.graph_problem import EliminationProblem, GraphProblem, LoopyProblem
from maxmargin.structures.graphs.loopy import with_oracles
from maxmargin.supervision.exclusions import exclude_labels
from maxmargin.testing import Caller, check_structure, toy_chains
from maxmargin.trace import Status
from tests.structures.test_pairwise import ONE_TYPE, TRIANGLE, all_labellings, grid, make_problem, random_graph

pytestmark = pytest.mark.long

COMPLETE = np.zeros(5, int), [*itertools.combinations(range(5), 2)]


@pytest.fixture
def no_elimination(monkeypatch):
    """Small graphs are dealt with as if they were large."""
    monkeypatch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)


def score_all(problem, i, theta):
    return np.array([generics.score_output(problem, i, theta, np.array(y)) for y in all_labellings(problem)(i)])


def potentials(problem, rng, i, w=None):
    theta = np.zeros(generics.part_sizes(problem)[i])
    generics.scores(problem, rng.normal(size=generics.new_weights(problem).size) if w is None else w, i, theta)
    return theta


def find(problem, i, theta, work, call=None):
    y = np.zeros(generics.true_output(problem, i).size, np.int32)
    bound = (call or (lambda generic, *args: generic(problem, *args)))(generics.bound_oracle, i, theta, y, work)
    return y, generics.score_output(problem, i, theta, y), bound, METHODS[work.method[i]]


def test_small_treewidths_are_eliminated_and_others_are_not():
    problem = make_problem(np.random.default_rng(0), [grid(2, 2), grid(16, 16), (np.zeros(3, int), TRIANGLE)])
    assert isinstance(with_oracles(make_problem(np.random.default_rng(0), [grid(2, 2)])), EliminationProblem)
    loopy = with_oracles(problem)
    assert isinstance(loopy, LoopyProblem)
    assert (loopy.plan.which == NONE).tolist() == [False, True, False]


@pytest.mark.usefixtures("interpreted_loops")
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    n_states=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ties=st.sampled_from(["full", "symmetric", "potts"]),
    integer=st.booleans(),
)
def test_labels_and_bounds_of_random_graphs(seed, sizes, n_states, ties, integer):
    """Several components, isolated nodes, no edges, one state; one work for all calls, which start from the last."""
    rng = np.random.default_rng(seed)
    edge_types = [EdgeType(0, 0, ties), EdgeType(0, 1), EdgeType(1, 1, ties)]
    graphs = [random_graph(rng, size, 2) for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
        problem = with_oracles(make_problem(rng, graphs, n_states, edge_types, integer=integer))
    work = generics.workspace(problem, 1)
    for i in 2 * [*range(len(graphs))]:
        theta = potentials(problem, rng, i)
        best = score_all(problem, i, theta).max()
        y, score, bound, method = find(problem, i, theta, work)
        assert score <= best + 1e-9
        assert bound >= max(score, best - 1e-9)
        if method == "cut":
            assert np.isclose(score, best)
        assert generics.max_oracle(problem, i, theta, y, work) >= score - 1e-9  # not worse the second time
        mu = np.zeros_like(theta)
        assert generics.relax_oracle(problem, i, theta, mu, work) >= best - 1e-9
        assert_local(problem, i, mu)
        assert np.dot(theta, mu) <= bound + 1e-6 * (1 + abs(bound))


def assert_local(problem, i, mu):
    """Mean parts are not negative, those of a node add up to 1, those of an edge to the ones of its nodes."""
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    lo = nodes.starts[i]
    means = [mu[nodes.part[c] :][: nodes.n_parts[nodes.type[c]]] for c in range(lo, nodes.starts[i + 1])]
    assert mu.min() >= 0
    assert np.allclose([mean.sum() for mean in means], 1)
    for e in range(edges.starts[i], edges.starts[i + 1]):
        first, second = (means[end] for end in problem.graphs.ends[e])
        table = mu[edges.part[e] :][: first.size * second.size].reshape(first.size, second.size)
        assert np.allclose(table.sum(axis=1), first)
        assert np.allclose(table.sum(axis=0), second)


@pytest.mark.usefixtures("no_elimination")
@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.long
def test_attractive_edges_of_two_states_are_cut(is_compiled):
    """Submodular in any form, not only that of Potts: erratum 7 of the papers."""
    rng = np.random.default_rng(0)
    problem = with_oracles(make_problem(rng, [random_graph(rng, 6) for _ in range(5)], (2,)))
    call, work = Caller(problem) if is_compiled else None, generics.workspace(problem, 1)
    for i in 3 * [*range(5)]:
        theta = potentials(problem, rng, i)
        tables = theta[2 * generics.true_output(problem, i).size :].reshape(-1, 4)
        tables[:, 0] += np.maximum(tables[:, 1] + tables[:, 2] - tables[:, 0] - tables[:, 3], 0)
        _, score, bound, method = find(problem, i, theta, work, call)
        assert method == "cut"
        assert np.isclose(score, score_all(problem, i, theta).max())
        assert np.isclose(score, bound)


@pytest.mark.usefixtures("no_elimination", "interpreted_loops")
def test_impossible_parts_are_avoided():
    rng = np.random.default_rng(0)
    problem = with_oracles(make_problem(rng, [random_graph(rng, 5) for _ in range(6)]))
    work = generics.workspace(problem, 1)
    for i in range(6):
        theta = potentials(problem, rng, i)
        nodes = theta[: 3 * generics.true_output(problem, i).size].reshape(-1, 3)
        nodes[np.arange(len(nodes)), rng.integers(3, size=len(nodes))] = IMPOSSIBLE
        best = score_all(problem, i, theta).max()
        y, score, bound, _ = find(problem, i, theta, work)
        assert (nodes[np.arange(len(nodes)), y] > IMPOSSIBLE / 2).all()
        assert score - 1e-9 <= best <= bound + 1e-9


@pytest.mark.usefixtures("no_elimination")
@pytest.mark.long
def test_forests_are_solved_by_their_relaxation():
    graphs = [
        (np.zeros(5, int), [(0, 1), (2, 1), (1, 3), (4, 3)]),
        (np.zeros(4, int), [(3, 0), (1, 2)]),
        (np.zeros(2, int), []),
    ]
    problem = with_oracles(make_problem(np.random.default_rng(0), graphs))
    check_structure(problem, all_labellings(problem))


# --- training with such an oracle -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frustrated():
    """Complete graphs, whose relaxations are not tight, with and without their exact oracle, and the optimum."""
    problem = make_problem(np.random.default_rng(3), [COMPLETE] * 4)
    exact = with_elimination(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
        loopy = with_oracles(problem)
    optimum = BCFW(steps="pairwise").solve(exact, 0.3, tol=1e-7, max_passes=2000, random_state=0).certificate
    return exact, loopy, optimum


def objective(problem, w, C):
    """By definition."""
    total = 0.0
    n = len(problem.graphs.nodes.starts) - 1
    for i in range(n):
        theta = potentials(problem, None, i, w)
        truth = generics.score_output(problem, i, theta, generics.true_output(problem, i))
        generics.augment(problem, i, theta)
        total += (score_all(problem, i, theta).max() - truth) / n
    return total + np.dot(w, w) / (2 * n * C)


@pytest.mark.parametrize(
    "solver",
    [
        BCFW(steps="pairwise", sampling="gap"),
        OneSlack(),
        Perceptron(),
        *(
            pytest.param(solver, marks=pytest.mark.long)
            for solver in (BCFW(), BCFW(steps="away", cache=5), BCFW(averaging=True), NSlack(), FrankWolfe(), SGD())
        ),
    ],
    ids=str,
)
def test_certificates_are_true_whatever_the_oracle_finds(frustrated, solver):
    exact, loopy, optimum = frustrated
    result = solver.solve(loopy, 0.3, tol=1e-2, max_passes=400, random_state=0)
    primal, dual = result.certificate
    assert objective(exact, result.w, 0.3) <= primal * (1 + 1e-12)
    assert dual <= optimum.primal * (1 + 1e-9)
    if not isinstance(solver, Perceptron):
        assert result.status in (Status.OPTIMAL, Status.INEXACT)
    if result.status is Status.OPTIMAL:
        assert result.certificate.relative_gap <= 1e-2


def test_squares_of_bounds(frustrated):
    """The squared loss is computed with bounds, its dual with outputs."""
    exact, loopy, _ = frustrated
    optimum = OneSlack().solve(exact, 0.3, loss=SquaredLoss(), tol=1e-5).certificate
    result = OneSlack().solve(loopy, 0.3, loss=SquaredLoss(), tol=1e-2, max_passes=200)
    assert result.certificate.dual <= optimum.primal * (1 + 1e-9)
    assert Objective(exact, 0.3, loss=SquaredLoss()).evaluate(result.w).value <= result.certificate.primal * (1 + 1e-9)
    assert result.status in (Status.OPTIMAL, Status.INEXACT)


def test_the_status_says_that_the_oracle_cannot_tell_more(frustrated):
    _, loopy, optimum = frustrated
    result = NSlack().solve(loopy, 0.3, tol=1e-4, random_state=0)
    assert result.status is Status.INEXACT
    assert "only bounds of their scores" in result.trace.notes[-1]
    assert result.certificate.relative_gap > 1e-4
    assert result.certificate.dual >= optimum.dual * (1 - 0.01)


def test_tight_relaxations_train_to_the_optimum():
    """Attractive edges of many states, where relaxations are tight at most weights."""
    rng = np.random.default_rng(0)
    problem = make_problem(rng, [grid(3, 3)] * 3, edge_types=[EdgeType(ties="potts")])
    exact = BCFW(steps="pairwise").solve(with_elimination(problem), tol=1e-4, max_passes=2000, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
        loopy = with_oracles(problem)
    result = BCFW(steps="pairwise").solve(loopy, tol=1e-2, max_passes=500, random_state=0)
    assert result.certificate.dual <= exact.certificate.primal * (1 + 1e-9)
    assert result.certificate.primal >= exact.certificate.dual * (1 - 1e-9)
    assert result.certificate.relative_gap <= 2e-2


# --- outputs of the local polytope ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("interpreted_loops")
@given(seed=st.integers(0, 10**6), n_states=st.tuples(st.integers(1, 3), st.integers(1, 3)), ties=st.booleans())
def test_fractional_outputs_are_consistent_to_the_unit(seed, n_states, ties):
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng, size, 2) for size in (1, 4)]
    base = make_problem(rng, graphs, n_states, [EdgeType(0, 0), EdgeType(0, 1), EdgeType(1, 1)], integer=ties)
    problem = with_oracles(base, relaxed=True)
    work = generics.workspace(problem, 1)
    for i in range(2):
        theta = potentials(problem, rng, i)
        y = np.zeros(theta.size, np.int32)
        bound = generics.bound_oracle(problem, i, theta, y, work)
        best = score_all(base, i, theta).max()
        assert best - 1e-9 <= bound <= best + abs(best) + 10
        assert generics.score_output(problem, i, theta, y) <= bound
        assert bound - generics.score_output(problem, i, theta, y) <= 1e-2 * (1 + abs(bound))
        for row in (y, generics.true_output(problem, i)):
            assert_local(problem, i, row / UNITS)
            sums = [row[at : at + size].sum(dtype=int) for at, size in node_parts(problem, i)]
            assert set(sums) == {UNITS}
    truth = np.zeros(generics.part_sizes(base)[1])
    generics.add_output(base, 1, generics.true_output(base, 1), 1.0, truth)
    assert np.array_equal(generics.true_output(problem, 1), UNITS * truth)


def node_parts(problem, i):
    nodes = problem.graphs.nodes
    return [(nodes.part[c], nodes.n_parts[nodes.type[c]]) for c in range(nodes.starts[i], nodes.starts[i + 1])]


@pytest.mark.parametrize("solver", [BCFW(steps="pairwise", sampling="gap"), NSlack(), OneSlack()], ids=str)
@pytest.mark.long
def test_over_generating_training_minimises_the_relaxed_loss(frustrated, solver):
    """Which is that of IDAL as the temperature tends to zero: entropies of c nodes and edges are at most c."""
    exact, _, optimum = frustrated
    base = GraphProblem(exact.graphs)
    result = solver.solve(with_oracles(base, relaxed=True), 0.3, tol=1e-2, max_passes=400, random_state=0)
    temperature, n_cliques = 1e-3, 15
    relaxed = IDAL().solve(base, 0.3, loss=RelaxedLoss(level=temperature), tol=1e-2, max_passes=5000, random_state=0)
    assert result.certificate.dual <= relaxed.certificate.primal
    assert result.certificate.primal >= relaxed.certificate.dual - temperature * n_cliques
    assert result.certificate.primal >= optimum.dual
    assert objective(exact, result.w, 0.3) <= result.certificate.primal * (1 + 1e-12)
    assert result.status in (Status.OPTIMAL, Status.INEXACT)


# --- predictions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_predictions_say_what_is_known_of_them(n_jobs):
    rng = np.random.default_rng(0)
    problem = with_oracles(make_problem(rng, [(np.zeros(3, int), TRIANGLE), grid(12, 12), (np.zeros(2, int), [])]))
    w = rng.normal(size=generics.new_weights(problem).size)
    found = certified_outputs(problem, w, n_jobs)
    assert [prediction.method for prediction in found][::2] == ["elimination"] * 2
    assert found[1].method in ("relaxation", "expansion")
    for i, (output, score, bound, is_exact, _, integrality) in enumerate(found):
        assert np.isclose(score, generics.score_output(problem, i, potentials(problem, rng, i, w), output))
        assert score <= bound
        assert is_exact or 0 <= integrality <= 1
        assert is_exact == np.isclose(score, bound, rtol=1e-9)
    means, is_exact = known_marginals(problem, w, n_jobs)
    assert is_exact.tolist() == [True, False, True]
    for i in range(3):
        assert_local(problem, i, means.values[means.starts[i] : means.starts[i + 1]])


def test_other_structures_are_exact():
    problem = toy_chains()
    w = np.random.default_rng(0).normal(size=generics.new_weights(problem).size)
    with interpreted():
        assert all(found.is_exact and found.integrality == 1 for found in certified_outputs(problem, w))
        assert known_marginals(problem, w)[1].all()


@pytest.mark.usefixtures("no_elimination", "interpreted_loops")
def test_relaxed_marginals_maximise_score_and_entropy():
    """The best point in directions that stay in the local polytope is where it is: towards other such points."""
    rng = np.random.default_rng(0)
    problem = with_oracles(make_problem(rng, [random_graph(rng, 4), COMPLETE], (3,), ONE_TYPE))
    work = generics.workspace(problem, 1)
    for i in range(2):
        theta = potentials(problem, rng, i)
        mu = np.zeros_like(theta)
        assert not generics.mean_oracle(problem, i, theta, mu, work)
        assert_local(problem, i, mu)
        slope = theta - 2 * mu
        other = np.zeros_like(theta)
        generics.relax_oracle(problem, i, slope, other, work)
        assert np.dot(slope, other - mu) <= 0.05 * (1 + abs(np.dot(theta, mu)))


@pytest.mark.usefixtures("interpreted_loops", "no_elimination")
@given(seed=st.integers(0, 10**6), n_states=st.integers(2, 3), integer=st.booleans(), share=st.sampled_from([0.3, 0.9]))
@settings(max_examples=4)
def test_states_that_are_ruled_out(seed, n_states, integer, share):
    """Bounds and mean parts are those of the labels left, of which the best that were found are some."""
    rng = np.random.default_rng(seed)
    problem = with_oracles(
        make_problem(rng, [random_graph(rng, 4), (np.zeros(3, int), TRIANGLE)], (n_states,), integer=integer)
    )
    truth = np.eye(n_states, dtype=bool)[problem.graphs.supervision.labels]
    excluded = ~truth & (rng.random(truth.shape) < share)
    restricted = generics.restrict(problem, exclude_labels(excluded, problem.graphs.nodes.starts))

    def is_left(i, y):
        lo = problem.graphs.nodes.starts[i]
        return not excluded[lo + np.arange(len(y)), y].any()

    with interpreted():
        check_structure(restricted, lambda i: [y for y in all_labellings(problem)(i) if is_left(i, y)], seed)
    work = generics.workspace(restricted, 1)
    for i in range(2):
        assert is_left(i, find(restricted, i, potentials(restricted, rng, i), work)[0])
