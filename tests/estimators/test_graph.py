import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import IDAL, ChainSVM, Graph, GraphCRF, GraphSVM, RelaxedLoss, Status, Tree, TreeCRF
from maxmargin.estimators.foundation.fitting import find_loss
from maxmargin.structures.graphs.elimination_plan import TreewidthError

SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
pytestmark = pytest.mark.usefixtures("interpreted_loops")


def noisy(labels, rng, n_features=3):
    return np.eye(n_features)[labels] + 0.5 * rng.normal(size=(len(labels), n_features))


@pytest.fixture(scope="module")
def squares():
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, 4) for _ in range(6)]
    return [Graph(noisy(labels, rng), SQUARE, rng.normal(size=(4, 2))) for labels in y], y


def score(coef, graph, y, interaction):
    """The score of labels 0, 1, ... of a graph of one type, from its definition."""
    nodes = np.asarray(graph.features) @ coef.nodes + coef.bias
    total = sum(nodes[v, label] for v, label in enumerate(y))
    features = np.column_stack([graph.edge_features, np.ones(len(graph.edges))])
    for (a, b), x in zip(graph.edges, features, strict=True):
        if interaction == "potts":
            total += (y[a] == y[b]) * coef.edges @ x
        elif interaction == "full":
            total += coef.edges[:, y[a], y[b]] @ x
        else:
            total += coef.edges[:, min(y[a], y[b]), max(y[a], y[b])] @ x
    return total


@pytest.mark.parametrize("interaction", ["symmetric", "full", "potts"])
def test_the_best_labels_by_the_named_weights(squares, interaction):
    X, y = squares
    model = GraphSVM(interaction=interaction, C=1.0, max_passes=5, random_state=0).fit(X, y)
    everything = [*itertools.product(range(3), repeat=4)]
    for graph, predicted, (_, values) in zip(X, model.predict(X), model.predict_topk(X, 3), strict=True):
        scores = sorted((score(model.coef_, graph, labels, interaction) for labels in everything), reverse=True)
        assert np.isclose(score(model.coef_, graph, predicted, interaction), scores[0], rtol=1e-4)
        assert np.allclose(values, scores[:3], rtol=1e-4, atol=1e-5)


def test_a_chain_is_a_graph():
    rng = np.random.default_rng(1)
    y = [rng.integers(0, 3, length) for length in (4, 1, 3, 2)]
    X = [noisy(labels, rng) for labels in y]
    options = {"C": 1.0, "tol": 1e-3, "fit_intercept": False, "random_state": 0, "dtype": "float64"}
    chain = ChainSVM(**options).fit(X, y)
    graph = GraphSVM(interaction="full", **options).fit([(x, [(t - 1, t) for t in range(1, len(x))]) for x in X], y)
    assert chain.status_ is graph.status_ is Status.OPTIMAL
    assert max(chain.certificate_.dual, graph.certificate_.dual) <= chain.certificate_.primal
    assert max(chain.certificate_.dual, graph.certificate_.dual) <= graph.certificate_.primal


def test_a_tree_is_a_graph():
    rng = np.random.default_rng(2)
    y = [rng.integers(0, 2, 4) for _ in range(5)]
    X = [Tree(noisy(labels, rng, 2), [(0, 1), (0, 2), (2, 3)]) for labels in y]
    options = {"C": 1.0, "tol": 1e-8, "fit_intercept": False}
    tree, graph = TreeCRF(**options).fit(X, y), GraphCRF(interaction="full", **options).fit([x[:2] for x in X], y)
    assert np.allclose(tree.coef_.emissions, graph.coef_.nodes, atol=1e-3)
    assert np.allclose(tree.coef_.transitions, graph.coef_.edges[0], atol=1e-3)
    assert np.allclose(tree.log_likelihood(X, y), graph.log_likelihood([x[:2] for x in X], y), atol=1e-3)
    marginals = zip(tree.predict_marginals(X), graph.predict_marginals([x[:2] for x in X]), strict=True)
    assert all(np.allclose(*pair, atol=1e-3) for pair in marginals)


@pytest.fixture(scope="module")
def papers():
    """Papers and their authors, who have labels of their own, on cycles; edges come in both orders."""
    rng, types = np.random.default_rng(3), np.array(["paper", "author", "paper", "author"])
    names = np.array([["good", "bad"], ["old", "young"]])
    X, y = [], []
    for _ in range(6):
        labels = rng.integers(0, 2, 4)
        features = noisy(labels, rng, 2)
        X.append(Graph(features, SQUARE, None, types, ["writes", "writes", "writes", "reads"]))
        y.append(np.where(types == "paper", names[0][labels], names[1][labels]))
    return X, y


def test_types_have_labels_and_weights_of_their_own(papers):
    X, y = papers
    model = GraphSVM(C=10.0, tol=0.01, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["bad", "good", "old", "young"]
    expected = {"nodes[author]", "bias[author]", "nodes[paper]", "bias[paper]"}
    assert {*model.coef_} == {*expected, "edges[writes: author, paper]", "edges[reads: author, paper]"}
    assert model.score(X, y) > 0.9
    for labels in model.predict(X):
        assert {*labels[[0, 2]]} <= {"bad", "good"}
        assert {*labels[[1, 3]]} <= {"old", "young"}
    table = model.decision_function(X)[0]
    assert np.array_equal(np.isneginf(table), np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 1, axis=0)[[0, 1, 0, 1]] == 1)
    with pytest.raises(ValueError, match="not fitted yet"):
        GraphCRF().edge_probabilities(X)
    crf = GraphCRF(C=1.0).fit(X, y)
    for (a, b), table in zip(X[0].edges, crf.edge_probabilities(X)[0], strict=True):
        for first, second in itertools.product(*([("bad", "good"), ("old", "young")][node % 2] for node in (a, b))):
            known = [first if node == a else second if node == b else None for node in range(4)]
            row, column = crf.classes_.searchsorted([first, second])
            assert np.isclose(table[row, column], np.exp(crf.log_likelihood(X[:1], [known])[0]))
        assert np.isclose(table.sum(), 1)
    marginals = crf.predict_marginals(X)[0]
    assert np.allclose(marginals[[0, 2], :2].sum(axis=1), 1)
    assert np.allclose(marginals[[0, 2], 2:], 0)


def test_types_that_were_not_seen(papers):
    X, y = papers
    model = GraphSVM(max_passes=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"The type of node 1 of X\[0\], 'editor', was not seen in fit"):
        model.predict([X[0]._replace(node_types=["paper", "editor", "paper", "author"])])
    with pytest.raises(ValueError, match=r"The type of edge 0 of X\[1\], 'cites', was not seen in fit"):
        model.predict([X[0], X[0]._replace(edge_types=["cites"] * 4)])
    with pytest.raises(
        ValueError, match=r"Edge 0 of X\[0\] joins nodes of types 'paper' and 'paper', which no edge of"
    ):
        model.predict([X[0]._replace(edges=[(0, 2)], edge_types=["writes"])])
    with pytest.raises(ValueError, match=r"node_types of X\[0\] must name 4 types, one per node, not 3"):
        model.predict([X[0]._replace(node_types=["paper"] * 3)])


@pytest.mark.parametrize("make", [GraphSVM, GraphCRF])
def test_relaxed_losses_of_labels_that_are_known_in_part(make, interpreted_loops):
    graphs = [(np.eye(3), [(0, 1), (1, 2), (2, 0)]), (np.eye(3)[::-1], [(0, 1)])]
    soft = [["a", {"a": 0.25, "b": 0.75}, "b"], ["b", "a", "a"]]
    model = make(loss="relaxed", random_state=0).fit(graphs, soft)
    assert model.status_.name == "OPTIMAL"
    (_, problem, weak), loss = model._learn(graphs, soft), model._trainer.find_loss(model)
    again = IDAL().solve(problem, model.C, loss=loss, weak=weak, tol=1e-5, max_passes=5000, random_state=1)
    assert again.certificate.dual <= model.certificate_.primal <= again.certificate.primal * 1.002
    heavy = make(loss="relaxed", C=1e-6, random_state=0).fit(graphs, [["a", "b", "b"], ["b", "a", "a"]], prior=model)
    assert np.allclose(heavy._w, model._w, atol=1e-4)
    with pytest.raises(
        ValueError, match=r"^y has None, or a set, in place of labels, which the relaxed loss does not .*"
    ):
        make(loss="relaxed").fit(graphs, [["a", None, {"a", "b"}], ["b", "a", "a"]])


def test_relaxed_losses(squares):
    X, y = squares
    svm = GraphSVM(loss="relaxed", C=0.1, tol=0.05, random_state=0).fit(X, y)
    crf = GraphCRF(loss="relaxed", C=0.1, tol=0.05, random_state=0).fit(X, y)
    own = GraphSVM(loss=RelaxedLoss(level=0.5), solver=IDAL(rho=0.5), C=0.1, tol=0.05, random_state=0).fit(X, y)
    for model in (svm, crf, own):
        assert model.status_ is Status.OPTIMAL
        assert model.certificate_.gap <= 0.05 * model.certificate_.primal
        assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match="solver must be a Solver of the relaxed loss or one of gdmm, idal"):
        GraphSVM(loss="relaxed", solver="bcfw").fit(X, y)
    assert find_loss(crf) == RelaxedLoss(margin=False)
    by_solver = GraphCRF(solver=IDAL(), C=0.1, tol=0.05, random_state=0).fit(X, y)
    assert np.array_equal(by_solver._w, crf._w)
    for solver in ("idal", IDAL()):
        with pytest.raises(ValueError, match=r'(?i)idal.* minimises relaxed losses: set loss="relaxed"'):
            GraphSVM(solver=solver).fit(X, y)
    with pytest.raises(
        ValueError, match="loss must be one of hinge, squared_hinge, smooth_hinge, log, relaxed, not 'huber'"
    ):
        GraphSVM(loss="huber").fit(X, y)
    with pytest.raises(ValueError, match="loss must be one of auto, log, relaxed, not 'hinge'"):
        GraphCRF(loss="hinge").fit(X, y)


def test_nodes_that_do_not_matter(squares):
    X, y = squares
    weight = [np.array([1.0, 1.0, 1.0, 0.0])] * len(X)
    model = GraphSVM(C=1.0, tol=1e-3, random_state=0).fit(X, y, node_weight=weight)
    other = GraphSVM(C=1.0, tol=1e-3, random_state=0).fit(X, y)
    assert model.certificate_.primal < other.certificate_.dual
    right = [predicted == labels for predicted, labels in zip(model.predict(X), y, strict=True)]
    assert np.isclose(model.score(X, y, node_weight=weight), np.mean([r[:3] for r in right]))


def test_storage_and_edges_without_features(squares):
    X, y = squares
    options = {"C": 1.0, "max_passes": 3, "solver": "frank-wolfe", "random_state": 0}
    dense = GraphSVM(**options).fit([graph[:2] for graph in X], y)
    sparse = GraphSVM(**options).fit([(sp.csr_matrix(graph.features), np.array(SQUARE)) for graph in X], y)
    constant = GraphSVM(**options, fit_intercept=False).fit(
        [(np.column_stack([graph.features, np.ones(4)]), SQUARE, np.ones((4, 1))) for graph in X], y
    )
    assert dense.coef_.edges.shape == constant.coef_.edges.shape == (1, 3, 3)
    assert np.allclose(dense._w, sparse._w, atol=1e-5)
    assert np.allclose(dense._w, constant._w, atol=1e-5)
    lonely = GraphSVM(random_state=0).fit([(graph.features, []) for graph in X], y)
    assert "edges" not in lonely.coef_
    assert lonely.score([(graph.features, []) for graph in X], y) > 0.5


@pytest.fixture
def small_tables(monkeypatch):
    """Makes the treewidth of a square too large."""
    monkeypatch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 20)


def test_large_treewidths(squares, small_tables):
    X, y = squares
    X, y = [*X, Graph(X[0].features[:2], [(0, 1)], X[0].edge_features[:1])], [*y, y[0][:2]]
    svm = GraphSVM(C=1.0, tol=0.05, random_state=0).fit(X, y)
    crf = GraphCRF(C=0.1, tol=0.05, random_state=0).fit(X, y)
    assert svm.status_ in (Status.OPTIMAL, Status.INEXACT)
    assert crf.status_ is Status.OPTIMAL
    everything = [*itertools.product(range(3), repeat=4)]
    found = svm.predict_certified(X)
    assert [prediction.method for prediction in found][-1] == "elimination"
    for graph, labels, prediction in zip(X[:-1], svm.predict(X), found, strict=False):
        best = max(score(svm.coef_, graph, y, "symmetric") for y in everything)
        assert prediction.score <= best + 1e-4 <= prediction.bound + 2e-4
        assert np.isclose(score(svm.coef_, graph, prediction.output, "symmetric"), prediction.score, rtol=1e-4)
        assert prediction.method in ("relaxation", "expansion")
        assert not prediction.is_exact or np.isclose(prediction.score, best, rtol=1e-4)
        assert np.array_equal(labels, prediction.output)
    tables, is_exact = crf.predict_marginals(X, return_exact=True)
    assert is_exact.tolist() == [False] * 6 + [True]
    assert all(np.allclose(table.sum(axis=1), 1, atol=1e-4) for table in tables)
    for graph, table, of_edges in zip(X, tables, crf.edge_probabilities(X), strict=True):
        for axis, nodes in ((2, 0), (1, 1)):
            assert np.allclose(of_edges.sum(axis=axis), table[np.array(graph.edges)[:, nodes]], atol=1e-3)
    for call in (lambda: svm.predict_topk(X, 2), lambda: svm.decision_function(X), lambda: crf.log_likelihood(X, y)):
        with pytest.raises(TreewidthError, match=r" needs graphs of small treewidth, but that of X\[0\] is too large"):
            call()
    expected = "Auto needs the exp oracle for the log loss, which LoopyProblem does not have"
    with pytest.raises(TypeError, match=expected):
        GraphCRF(loss="log").fit(X, y)


NODES = np.ones((3, 2))
BAD_GRAPHS = [
    ([NODES], TypeError, r"X\[0\] must be a Graph"),
    ([(NODES, []), (NODES, [(0, 1), (1, 3)])], ValueError, r"Edge 1 of X\[1\] is \(1, 3\), but the nodes are 0 to 2"),
    ([(NODES, [(0, 1), (2, 2)])], ValueError, r"Edge 1 of X\[0\] joins node 2 to itself"),
    ([(NODES, [(0, 1), (1, 2), (1, 0)])], ValueError, r"Edges 0 and 2 of X\[0\], \(0, 1\) and \(1, 0\), are the same"),
    ([(NODES, [(0, 1)], None, None, [1, 2])], ValueError, r"edge_types of X\[0\] must name 1 types, one per edge"),
    ([(NODES, [(0, 1)], [[np.inf]])], ValueError, r"edge features of X\[0\] must be numbers within"),
]


@pytest.mark.parametrize(("X", "error", "message"), BAD_GRAPHS, ids=[m for *_, m in BAD_GRAPHS])
def test_bad_graphs(X, error, message):
    with pytest.raises(error, match=message):
        GraphSVM().fit(X, [[0, 1, 1]] * len(X))


def test_bad_options(squares):
    X, y = squares
    with pytest.raises(ValueError, match="interaction must be one of full, symmetric, potts"):
        GraphSVM(interaction="ising").fit(X, y)
    with pytest.raises(ValueError, match="cost must be one of hamming, normalized_hamming"):
        GraphSVM(cost="squared").fit(X, y)
    with pytest.raises(ValueError, match="with zeros on its diagonal"):
        GraphSVM(cost=np.ones((3, 3))).fit(X, y)
    with pytest.raises(ValueError, match=r"y\[0\] contains a label that was not seen in fit, at node 2"):
        GraphCRF(max_passes=1).fit(X, y).log_likelihood(X[:1], [[0, 1, 7, 1]])
