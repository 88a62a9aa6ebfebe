"""Costs as tables: of labels of nodes, of edges, of transitions."""

import itertools

import numpy as np
import pytest

from maxmargin import ChainCRF, ChainSVM, Graph, GraphCRF, GraphCutSVM, GraphSVM, Tree, TreeSVM
from maxmargin.inference import costs_of
from maxmargin.losses import RelaxedLoss
from maxmargin.problem import all_true_outputs, augment, part_sizes, score_output
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.relaxed.relaxed_objective import Relaxation

pytestmark = pytest.mark.usefixtures("interpreted_loops")

ROWS = [np.random.default_rng(k).normal(size=(size, 2)) for k, size in enumerate((3, 2, 1))]
EDGES = [[(0, 1), (2, 0)], [(1, 0)], []]
Y = [[0, 1, 2], [2, 0], [1]]
MATRIX = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [1.0, 4.0, 0.0]])


def tables(random_state=0):
    """Costs of nodes and edges that are zero for the labels in Y."""
    rng = np.random.default_rng(random_state)
    nodes = [rng.integers(0, 4, (len(y), 3)).astype(float) for y in Y]
    edges = [rng.integers(0, 4, (len(pairs), 3, 3)).astype(float) for pairs in EDGES]
    for y, pairs, of_nodes, of_edges in zip(Y, EDGES, nodes, edges, strict=True):
        of_nodes[np.arange(len(y)), y] = 0
        for e, (a, b) in enumerate(pairs):
            of_edges[e, y[a], y[b]] = 0
    return nodes, edges


def check_costs(model, X, y, expected, **data):
    """The cost of every output is as expected, from the definition."""
    encoder, problem, *_ = model._learn(X, y, **data)
    for i, size in enumerate(np.diff(all_true_outputs(problem).starts)):
        theta = np.zeros(part_sizes(problem)[i], problem_dtype(problem))
        augment(problem, i, theta)
        for row in itertools.product(range(len(encoder.classes)), repeat=size):
            output = np.array(row, np.int32)
            labels = encoder.decode(problem, i, output[np.newaxis])[0]
            assert np.isclose(score_output(problem, i, theta, output), expected(i, labels), atol=1e-5)
    assert not costs_of(problem, all_true_outputs(problem)).any()


def problem_dtype(problem):
    return (problem.graphs if hasattr(problem, "graphs") else problem).supervision.cost.dtype


@pytest.mark.parametrize("make", [Tree, Graph])
def test_costs_of_nodes_and_edges(make):
    nodes, edges = tables()
    X = [*map(make, ROWS, EDGES)]
    model = (TreeSVM if make is Tree else GraphSVM)(random_state=0, max_passes=3, tol=1e-6)
    weight = [np.arange(1.0, len(y) + 1) for y in Y]

    def expected(i, y):
        of_nodes = weight[i] @ nodes[i][np.arange(len(y)), y]
        return of_nodes + sum(edges[i][e, y[a], y[b]] for e, (a, b) in enumerate(EDGES[i]))

    data = {"node_cost": nodes, "edge_cost": edges, "node_weight": weight}
    if make is Tree:  # a child has one parent
        X = [Tree(x, pairs) for x, pairs in zip(ROWS, [[(0, 1), (2, 0)], [(1, 0)], []], strict=True)]
    check_costs(model, X, Y, expected, **data)
    model.fit(X, Y, **data)
    assert model.certificate_.gap >= 0
    weak = [[None, 1, 2], *Y[1:]]
    with pytest.raises(
        ValueError, match=r"node_cost\[0\] must be zero for labels that agree with y, but is .* at node 0"
    ):
        model.fit(X, weak, node_cost=[np.where(np.arange(3) == 0, 0, table + 1) for table in nodes])
    wrong = [table.copy() for table in edges]
    wrong[1][0, Y[1][1], Y[1][0]] = 2
    message = r"edge_cost\[1\] must be zero for labels that agree with y, but is 2 for 0 and 2 at edge 0"
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, edge_cost=wrong)
    with pytest.raises(ValueError, match=r"edge_cost\[0\] must have the shape \(2, 3, 3\)"):
        model.fit(X, Y, edge_cost=nodes)
    with pytest.raises(ValueError, match=r"class_weight weighs the costs of labels, which node_cost replaces"):
        type(model)(class_weight="balanced").fit(X, Y, node_cost=nodes)


def test_costs_of_nodes_of_cuts():
    X, y = [*zip(ROWS, EDGES, strict=True)], [[0, 1, None], [1, 0], [1]]
    nodes = [np.array([[0, 2], [5, 0], [0, 0]]), np.array([[1, 0], [0, 0.5]]), np.array([[3, 0]])]
    weight = [np.arange(1.0, len(labels) + 1) for labels in y]
    model, data = GraphCutSVM(random_state=0, max_passes=3), {"node_cost": nodes, "node_weight": weight}
    check_costs(model, X, y, lambda i, labels: weight[i] @ nodes[i][np.arange(len(labels)), labels], **data)
    assert model.fit(X, y, **data).certificate_.gap >= 0
    with pytest.raises(
        ValueError, match=r"node_cost\[1\] must be zero for labels that agree with y, but is 1 for 0 at"
    ):
        model.fit(X, [y[0], [0, 0], [1]], node_cost=nodes)
    with pytest.raises(ValueError, match=r"class_weight weighs the costs of labels, which node_cost replaces"):
        GraphCutSVM(class_weight="balanced").fit(X, y, node_cost=nodes)
    with pytest.raises(TypeError, match="edge_cost"):
        model.fit(X, y, edge_cost=nodes)


def test_costs_of_graphs_with_types():
    """Nodes of type x come first in their kinds of edges, which turns edges."""
    nodes, edges = tables()
    X = [Graph(x, pairs, node_types=["y", "x", "x"][: len(x)]) for x, pairs in zip(ROWS, EDGES, strict=True)]
    known = [Y[0], [{0, 2}, 0], [{1, 0, 2}]]
    nodes[1][0, [0, 2]] = edges[1][0, 0, [0, 2]] = nodes[2][0] = 0
    encoder, problem, *_ = GraphSVM()._learn(X, known, node_cost=nodes, edge_cost=edges)
    assert encoder.state.min() == -1
    theta = np.zeros(part_sizes(problem)[0], "float32")
    augment(problem, 0, theta)
    sizes = problem.graphs.nodes.n_parts[problem.graphs.nodes.type[:3]]
    for row in itertools.product(*map(range, sizes)):
        y = encoder.decode(problem, 0, np.array([row], np.int32))[0]
        cost = nodes[0][np.arange(3), y].sum() + sum(edges[0][e, y[a], y[b]] for e, (a, b) in enumerate(EDGES[0]))
        assert np.isclose(score_output(problem, 0, theta, np.array(row, np.int32)), cost)


@pytest.mark.parametrize("make", [GraphSVM, GraphCRF])
def test_a_matrix_of_costs_on_graphs(make):
    X = [*map(Graph, ROWS, EDGES)]
    check_costs(make(cost=MATRIX), X, Y, lambda i, y: MATRIX[Y[i], y].sum())
    weighted = MATRIX * np.array([[1.0], [3.0], [1.0]])
    check_costs(make(cost=MATRIX, class_weight={1: 3.0}), X, Y, lambda i, y: weighted[Y[i], y].sum())
    with pytest.raises(ValueError, match="cost"):
        make(cost=MATRIX[:2]).fit(X, Y)


def test_relaxed_losses_have_the_same_costs():
    """At w = 0, on trees, the relaxed loss is the highest cost, but for the entropy."""
    nodes, edges = tables()
    problem = GraphSVM()._learn([*map(Graph, ROWS, EDGES)], Y, node_cost=nodes, edge_cost=edges).problem
    relaxed = Relaxation(Objective(problem, loss=RelaxedLoss(level=1e-6)))
    truth = relaxed.true_means()
    assert np.isclose(relaxed._weigh(truth)[1], 0, atol=1e-9)
    theta = np.zeros(part_sizes(problem)[0], "float32")
    augment(problem, 0, theta)
    means = truth.copy()
    means[: len(theta)] = np.random.default_rng(0).random(len(theta))
    assert np.isclose(relaxed._weigh(means)[1], means[: len(theta)] @ theta, rtol=1e-4)


def test_costs_of_transitions():
    costs = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    y = [[0, 1, 0], [2, {0, 1}], [1]]

    def expected(i, labels):
        may_be = {(a, b) for a, b in [[(0, 1), (1, 0)], [(2, 0), (2, 1)], []][i]}
        known = [{label} if isinstance(label, int) else label for label in y[i]]
        wrong = sum(label not in some for label, some in zip(labels, known, strict=True))
        return wrong + sum(costs[pair] for pair in itertools.pairwise(labels) if pair not in may_be)

    check_costs(ChainSVM(), ROWS, y, expected, transition_cost=costs)
    model = ChainSVM(random_state=0, max_passes=3, tol=1e-6).fit(ROWS, Y, transition_cost=costs)
    assert model.certificate_.gap >= 0
    with pytest.raises(ValueError, match=r"transition_cost must hold \(3, 3\) numbers from 0 to"):
        model.fit(ROWS, Y, transition_cost=-costs)
    with pytest.raises(ValueError, match="transition_cost is part of the cost of wrong labels: set cost"):
        ChainCRF().fit(ROWS, Y, transition_cost=costs)
    with pytest.raises(ValueError, match="Slack rescaling counts costs of labels: it takes none of transitions"):
        ChainSVM(rescaling="slack").fit(ROWS, Y, transition_cost=costs)
