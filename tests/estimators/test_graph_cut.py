import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from maxmargin import GraphCutSVM, Status, graph_cut, regularization_path
from tests import naive


def make_graphs(n, seed=0, n_nodes=(3, 7)):
    """Paths with a few more edges, whose labels change rarely along strong edges; features are noisy."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(*n_nodes))
        changes = rng.random(size - 1) < 0.3
        labels = (rng.integers(2) + np.concatenate([[0], np.cumsum(changes)])) % 2
        edges = [(p, p + 1) for p in range(size - 1)] + [(0, size - 1)] * int(labels[0] == labels[-1])
        strength = np.array([[1.0, 2.0 * (labels[p] == labels[q]) + rng.random()] for p, q in edges])
        X.append(
            (np.stack([2 * labels - 1 + 1.5 * rng.normal(size=size), rng.normal(size=size)], axis=1), edges, strength)
        )
        y.append(np.array(["no", "yes"])[labels])
    return X, y


@pytest.fixture(scope="module")
def data():
    return make_graphs(30)


@pytest.fixture(scope="module")
def model(data):
    return GraphCutSVM(random_state=0).fit(*data)


def with_bias(X):
    return [(np.hstack([nodes, np.ones((len(nodes), 1))]), edges, features) for nodes, edges, features in X]


def flat_weights(model):
    return np.concatenate([model.coef_.nodes, model.coef_.bias, model.coef_.edges]).astype(float)


def test_learns_and_certifies(model, data):
    X, y = data
    assert model.status_ is Status.OPTIMAL
    assert model.trace_.gap[-1] <= model.tol * model.trace_.primal[-1]
    assert model.classes_.tolist() == ["no", "yes"]
    assert {name: part.shape for name, part in model.coef_.items()} == {"nodes": (2,), "edges": (2,), "bias": (1,)}
    assert (model.coef_.edges >= 0).all()
    X_test, y_test = make_graphs(200, seed=1)
    without = GraphCutSVM(random_state=0).fit([(nodes, []) for nodes, *_ in X], y)
    assert model.score(X_test, y_test) > without.score([(nodes, []) for nodes, *_ in X_test], y_test) + 0.02


def test_the_objective_is_the_documented_one(data):
    X, y = (part[:8] for part in data)
    model = GraphCutSVM(C=0.7, random_state=0).fit(X, y)
    golds = [np.searchsorted(model.classes_, labels) for labels in y]
    blocks = naive.graph_table(with_bias(X), golds, [np.ones(len(gold)) for gold in golds])
    assert np.isclose(naive.primal(flat_weights(model), blocks, 0.7), model.trace_.primal[-1])
    _, optimum = naive.solve(blocks, 0.7, lower=np.array([-np.inf] * 3 + [0.0] * 2))
    assert model.trace_.dual[-1] <= optimum * (1 + 1e-5)
    assert model.trace_.primal[-1] >= optimum * (1 - 1e-5)


@pytest.mark.parametrize("cost", ["hamming", "normalized_hamming", np.array([[0, 2], [0.5, 0]])], ids=str)
@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 3.0}], ids=str)
def test_costs_are_the_documented_ones(data, cost, class_weight):
    X, y = (part[:6] for part in data)
    rng = np.random.default_rng(0)
    areas = [rng.random(len(labels)) for labels in y]
    model = GraphCutSVM(cost=cost, class_weight=class_weight)
    task = model._encode(X, y, node_weight=areas)
    by_class = {
        label: sum(area[labels == label].sum() for area, labels in zip(areas, y, strict=True))
        for label in ("no", "yes")
    }
    for i, (area, labels) in enumerate(zip(areas, y, strict=True)):
        expected = area.copy()
        if isinstance(cost, str) and cost == "normalized_hamming":
            expected /= area.sum()
        if not isinstance(cost, str):
            expected *= np.where(labels == "no", 2, 0.5)
        if class_weight == "balanced":
            expected *= [sum(by_class.values()) / (2 * by_class[label]) for label in labels]
        elif class_weight:
            expected *= np.where(labels == "yes", 3, 1)
        starts = task.problem.starts
        assert np.allclose(task.problem.supervision.weight[starts[i] : starts[i + 1]], expected)


def test_single_nodes_are_a_linear_svm():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    labels = (rows[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)
    X = [(row[None], []) for row in rows]
    model = GraphCutSVM(C=0.5, fit_intercept=False, tol=1e-4, random_state=0).fit(X, labels[:, None])
    linear = LinearSVC(C=0.5, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6).fit(rows, labels)
    w = linear.coef_[0]
    optimum = w @ w / (2 * 40 * 0.5) + np.maximum(1 - (2 * labels - 1) * (rows @ w), 0).mean()
    assert np.isclose(model.trace_.primal[-1], optimum, rtol=2e-4)
    assert np.allclose(model.coef_.nodes, w, atol=0.05)


def test_predictions_are_the_best_labellings(model, data):
    X, _ = (part[:6] for part in data)
    w = flat_weights(model)
    for graph, y, (outputs, scores), decision in zip(
        with_bias(X), model.predict(X), model.predict_topk(X, 10), model.decision_function(X), strict=True
    ):
        every = list(naive.labellings(len(y), 2))
        values = np.array([naive.graph_features(graph, labels) @ w for labels in every])
        order = np.argsort(-values)
        assert np.array_equal(y, model.classes_[every[order[0]]])
        assert np.array_equal(y, outputs[0])
        assert len(outputs) == min(10, len(every))
        assert np.allclose(scores, values[order[:10]], atol=1e-4)
        has_label = np.array(every)[:, :, None] == np.arange(2)
        assert np.allclose(decision, np.where(has_label, values[:, None, None], -np.inf).max(axis=0), atol=1e-4)


def test_input_forms_are_equivalent(data, interpreted_loops):
    X, y = data
    options = {"random_state": 0, "max_passes": 3, "tol": 1e-9}
    reference = GraphCutSVM(**options).fit([(nodes, edges) for nodes, edges, _ in X], y)
    ones = GraphCutSVM(**options).fit([(nodes, edges, np.ones(len(edges))) for nodes, edges, _ in X], y)
    lists = GraphCutSVM(**options).fit([(nodes.tolist(), [e[::-1] for e in edges]) for nodes, edges, _ in X], y)
    assert np.array_equal(flat_weights(reference), flat_weights(ones))
    assert np.allclose(flat_weights(reference), flat_weights(lists), atol=1e-5)
    options |= {"solver": "frank-wolfe"}
    dense = GraphCutSVM(**options).fit([(nodes, np.array(edges)) for nodes, edges, _ in X], y)
    sparse = GraphCutSVM(**options).fit([(sp.csr_matrix(nodes), edges) for nodes, edges, _ in X], y)
    assert np.allclose(flat_weights(dense), flat_weights(sparse), atol=1e-5)
    assert dense.score([(nodes, edges) for nodes, edges, _ in X], y) == dense.score(
        [(sp.csr_array(nodes), edges) for nodes, edges, _ in X], y
    )


def test_graphs_without_edges_and_single_nodes(model):
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(5, 2))
    alone = [model.predict([(node[None], [], [])])[0][0] for node in nodes]
    assert model.predict([(nodes, [], [])])[0].tolist() == alone
    assert model.predict([(nodes, [(0, 1)], [[0.0, 0.0]])])[0].tolist() == alone  # no capacity
    outputs, scores = model.predict_topk([(nodes[:1], [], [])], 5)[0]
    assert len(outputs) == len(scores) == 2


def test_warm_start_continues(data):
    X, y = data
    model = GraphCutSVM(warm_start=True, random_state=0).fit(X, y)
    before = model.n_iter_
    model.set_params(tol=1e-2).fit(X, y)
    assert model.n_iter_ <= 1 < before
    model.fit(X[:10], y[:10])  # other graphs
    assert model.status_ is Status.OPTIMAL


def test_weights_of_graphs_and_nodes(data):
    X, y = data
    weight = np.repeat([1.0, 0.0], [5, 25])
    some = GraphCutSVM(random_state=0, tol=1e-4).fit(X[:5], y[:5])
    weighted = GraphCutSVM(random_state=0, tol=1e-4).fit(X, y, weight)
    assert np.isclose(some.trace_.primal[-1] * 5, weighted.trace_.primal[-1] * 30, rtol=2e-4)
    areas = [np.arange(1.0, len(labels) + 1) for labels in y]
    right = [labels == predicted for labels, predicted in zip(y, some.predict(X), strict=True)]
    share = sum(area[is_right].sum() for area, is_right in zip(areas, right, strict=True)) / sum(a.sum() for a in areas)
    assert np.isclose(some.score(X, y, node_weight=areas), share)
    assert np.isclose(some.score(X, y, weight), np.concatenate(right[:5]).mean())


def test_paths_keep_edges_attractive(data):
    X, y = data
    path = regularization_path(GraphCutSVM(), X[:5], y[:5], eps=1.0, lambda_min=0.1, random_state=0)
    assert (path.gap <= 1.0).all()
    assert (path.model_at(path.lambdas[-1]).coef_.edges >= 0).all()


NODES = np.ones((3, 2))
BAD_GRAPHS = [
    (5, TypeError, "X must be a list of graphs"),
    ([], ValueError, "at least one graph"),
    ([NODES], TypeError, r"X\[0\] must be a pair \(nodes, edges\)"),
    ([(NODES, []), (NODES, [], [])], ValueError, r"X\[1\] has 3 parts, but X\[0\] has 2"),
    ([(NODES, []), (np.ones((0, 2)), [])], ValueError, r"X\[1\] is empty: every graph needs at least one row"),
    ([(NODES, []), (np.ones((3, 4)), [])], ValueError, r"X\[1\] has 4 features, but X\[0\] has 2"),
    ([(NODES, []), (NODES * np.nan, [])], ValueError, r"X\[1\] contains NaN"),
    ([(NODES, []), (NODES, [(0, 1), (1, 3)])], ValueError, r"Edge 1 of X\[1\] is \(1, 3\), but the nodes are 0 to 2"),
    ([(NODES, [(-1, 1)])], ValueError, r"Edge 0 of X\[0\] is \(-1, 1\)"),
    ([(NODES, [(0, 1), (2, 2)])], ValueError, r"Edge 1 of X\[0\] joins node 2 to itself"),
    ([(NODES, [(0, 1), (1, 2), (1, 0)])], ValueError, r"Edges 0 and 2 of X\[0\], \(0, 1\) and \(1, 0\), are the same"),
    ([(NODES, [(0, 1, 2)])], ValueError, r"edges of X\[0\] must be an \(E, 2\) array"),
    ([(NODES, [(0.5, 1.0)])], ValueError, r"edges of X\[0\] must be an \(E, 2\) array"),
    ([(NODES, [(0, 1)], [[1.0], [2.0]])], ValueError, r"edge features of X\[0\] must be a matrix .* 1 rows"),
    ([(NODES, [(0, 1)], [["a"]])], ValueError, r"edge features of X\[0\] must be a matrix of numbers"),
    ([(NODES, [(0, 1)], [[]])], ValueError, r"X\[0\] must have at least one edge feature"),
    (
        [(NODES, [(0, 1)], [[1.0, 2.0]]), (NODES, [(0, 1)], [[1.0]])],
        ValueError,
        r"X\[1\] has 1 features per edge, but 2 are expected",
    ),
    ([(NODES, [(0, 1), (0, 2)], [[1.0], [-0.5]])], ValueError, r"Feature 0 of edge 1 of X\[0\], \(0, 2\), is -0.5"),
    ([(NODES, [(0, 1)], [[np.inf]])], ValueError, r"edge features of X\[0\] must be numbers within"),
]


@pytest.mark.parametrize(("X", "error", "message"), BAD_GRAPHS, ids=[m for *_, m in BAD_GRAPHS])
def test_bad_graphs(X, error, message):
    with pytest.raises(error, match=message):
        GraphCutSVM().fit(X, [[0, 1, 1]] * 2)


BAD_LABELS = [
    ([[0, 1, 1]], "X has 2 graphs, but y has 1"),
    ([[0, 1, 1], [0, 1]], r"y\[1\] has 2 labels, but X\[1\] has 3 rows"),
    ([[0, 1, 2], [0, 1, 1]], r"two classes, but has 3: \[0, 1, 2\]"),
    ([[1, 1, 1], [1, 1, 1]], r"two classes, but has 1: \[1\]"),
]


@pytest.mark.parametrize(("y", "message"), BAD_LABELS)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        GraphCutSVM().fit([(NODES, [(0, 1)])] * 2, y)


def test_bad_options_leave_the_model_as_it_was(data):
    X, y = (part[:5] for part in data)
    model = GraphCutSVM(random_state=0, tol=0.1).fit(X, y)
    before = flat_weights(model)
    with pytest.raises(ValueError, match="cost must be one of"):
        model.set_params(cost="huber").fit(X, y)
    with pytest.raises(ValueError, match=r"cost must have shape \(2, 2\)"):
        model.set_params(cost=np.zeros((3, 3))).fit(X, y)
    model.set_params(cost="hamming")
    with pytest.raises(ValueError, match=r"node_weight\[0\] must have the shape"):
        model.fit(X, y, node_weight=[[1.0]] * 5)
    with pytest.raises(ValueError, match="node_weight is zero for all nodes of the class 'yes'"):
        model.fit(X, y, node_weight=[labels == "no" for labels in y])
    with pytest.raises(ValueError, match=r"X\[0\] has 1 features per edge, but 2 are expected"):
        model.predict([(nodes, edges) for nodes, edges, _ in X])
    with pytest.raises(ValueError, match="X has 1 feature, but the model was fitted with 2"):
        model.predict([([[1.0]], [], [])])
    with pytest.raises(ValueError, match=r"y contains no label that was seen in fit: 'maybe' is none"):
        model.score(X[:1], [["maybe"] * len(y[0])])
    share = model.score(X[:2], [y[0], ["maybe"] * len(y[1])])
    assert share <= len(y[0]) / (len(y[0]) + len(y[1]))  # labels that cannot be predicted are wrong
    assert np.array_equal(flat_weights(model), before)


def test_graph_cut():
    rng = np.random.default_rng(0)
    edges, weights, potentials = [(0, 1), (1, 2), (0, 3), (3, 4)], rng.random(4), rng.normal(size=5)
    graph = (potentials[:, None], edges, weights[:, None])
    best = max(naive.labellings(5, 2), key=lambda y: naive.graph_features(graph, y).sum())
    assert np.array_equal(graph_cut(potentials, edges, weights), best)
    assert graph_cut([0.0, 0.0], [(0, 1)], [1.0]).tolist() == [0, 0]
    assert graph_cut([1.0], [], []).tolist() == [1]
    with pytest.raises(ValueError, match=r"weights\[1\] is -0.5, .* not submodular"):
        graph_cut([1.0, 2.0, 3.0], [(0, 1), (1, 2)], [1.0, -0.5])
    with pytest.raises(ValueError, match="one finite number per node"):
        graph_cut([1.0, np.nan], [(0, 1)], [1.0])
    with pytest.raises(ValueError, match="one finite number per node"):
        graph_cut([[1.0, 2.0]], [(0, 1)], [1.0])
