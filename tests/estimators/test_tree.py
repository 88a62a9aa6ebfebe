import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import BCFW, Status, Tree, TreeCRF, TreeSVM, regularization_path
from tests import naive

NAMES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def trees():
    """Small trees whose labels follow their parents', or the reverse, as an edge feature says."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        size = int(rng.integers(1, 5))
        labels, edges, signs = [int(rng.integers(3))], [], []
        for child in range(1, size):
            parent = int(rng.integers(child))
            signs.append(float(rng.integers(2)))
            edges.append((parent, child))
            labels.append((labels[parent] + (1 if signs[-1] else 2)) % 3)
        order = rng.permutation(size)  # where each node stands
        features = np.eye(3)[labels] + 0.5 * rng.normal(size=(size, 3))
        X.append(
            Tree(features[np.argsort(order)], order[np.array(edges, int).reshape(-1, 2)], np.array(signs)[:, None])
        )
        y.append(NAMES[labels][np.argsort(order)])
    return X, y


@pytest.fixture(scope="module")
def svm(trees):
    return TreeSVM(random_state=0).fit(*trees)


@pytest.fixture(scope="module")
def crf(trees):
    return TreeCRF(tol=1e-6).fit(*trees)


def enumerate_scores(model, tree):
    """All labellings and their scores, from `coef_`."""
    tree = Tree(with_biases(tree), tree.edges, np.asarray(tree.edge_features))
    coef = model.coef_
    nodes = np.concatenate([coef.emissions.ravel(), coef.bias, coef.root, coef.leaf])
    edges = np.concatenate([coef.transitions[None], coef.edges]).transpose(0, 2, 1)
    w = np.concatenate([nodes, edges.ravel()])
    every = list(naive.labellings(len(tree.features), 3))
    return np.array(every), np.array([naive.tree_features(tree, y, 3) @ w for y in every])


def with_biases(tree):
    size = len(tree.features)
    is_root = ~np.isin(np.arange(size), tree.edges[:, 1])
    is_leaf = ~np.isin(np.arange(size), tree.edges[:, 0])
    return np.column_stack([tree.features, np.ones(size), is_root, is_leaf])


def test_learns_and_certifies(svm, trees):
    X, y = trees
    assert svm.status_ is Status.OPTIMAL
    assert svm.score(X, y) > 0.9
    assert {name: part.shape for name, part in svm.coef_.items()} == {
        "emissions": (3, 3),
        "transitions": (3, 3),
        "edges": (1, 3, 3),
        "bias": (3,),
        "root": (3,),
        "leaf": (3,),
    }
    follows = svm.coef_.transitions + svm.coef_.edges[0]  # parent by child
    assert (follows.argmax(axis=1) == [1, 2, 0]).all()
    assert (svm.coef_.transitions.argmax(axis=1) == [2, 0, 1]).all()


def test_predictions_are_the_best_labellings(svm, trees):
    X = trees[0][:8]
    for x, y, (found, scores), decision in zip(
        X, svm.predict(X), svm.predict_topk(X, 5), svm.decision_function(X), strict=True
    ):
        every, values = enumerate_scores(svm, x)
        order = np.argsort(-values)[:5]
        assert np.array_equal(y, NAMES[every[order[0]]])
        assert np.allclose(scores, values[order], atol=1e-4)
        assert len(found) == min(5, len(every))
        through = np.where(every[:, :, None] == np.arange(3), values[:, None, None], -np.inf).max(axis=0)
        assert np.allclose(decision, through, atol=1e-4)


@pytest.mark.parametrize("cost", ["hamming", "normalized_hamming", np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0.0]])])
def test_the_objective_is_the_documented_one(trees, cost):
    X, y = ([part[i] for i in range(len(part)) if len(trees[1][i]) <= 3][:6] for part in trees)
    fitted = TreeSVM(C=0.7, cost=cost, class_weight={"b": 2.0}, random_state=0).fit(X, y)
    matrix = (1 - np.eye(3) if isinstance(cost, str) else cost) * np.array([[1], [2], [1]])
    blocks = []
    for tree, labels in zip(X, y, strict=True):
        whole = Tree(with_biases(tree), tree.edges, tree.edge_features)
        gold = np.searchsorted(NAMES, labels)
        every = list(naive.labellings(len(gold), 3))
        scale = np.full(len(gold), 1 / len(gold) if isinstance(cost, str) and cost != "hamming" else 1.0)
        psi = np.array([naive.tree_features(whole, gold, 3) - naive.tree_features(whole, other, 3) for other in every])
        blocks.append((psi, np.array([naive.chain_cost(gold, other, matrix, scale) for other in every])))
    _, optimum = naive.solve(blocks, 0.7)
    assert fitted.trace_.dual[-1] <= optimum * (1 + 1e-5)
    assert optimum <= fitted.trace_.primal[-1] * (1 + 1e-5)


def test_marginals_and_likelihoods_equal_enumeration(crf, trees):
    X, y = (part[:10] for part in trees)
    assert crf.status_ is Status.OPTIMAL
    found = crf.predict_marginals(X), crf.log_likelihood(X, y), crf.edge_probabilities(iter(X))
    for x, labels, marginal, log_p, of_edges in zip(X, y, *found, strict=True):
        every, scores = enumerate_scores(crf, x)
        p = np.exp(scores - np.logaddexp.reduce(scores))
        expected = [[p[every[:, t] == b].sum() for b in range(3)] for t in range(len(labels))]
        assert np.allclose(marginal, expected)
        assert of_edges.shape == (len(x.edges), 3, 3)
        for (parent, child), table in zip(x.edges, of_edges, strict=True):
            pairs = np.zeros((3, 3))
            np.add.at(pairs, (every[:, parent], every[:, child]), p)
            assert np.allclose(table, pairs)
        assert np.isclose(log_p, np.log(p[(NAMES[every] == labels).all(axis=1)].item()))


def test_the_likelihood_is_the_documented_objective(crf, trees):
    X, y = trees
    squared = sum((part**2).sum() for part in crf.coef_.values())
    assert np.isclose(squared / (2 * len(X)) - crf.log_likelihood(X, y).mean(), crf.trace_.primal[-1])


def test_allowed_labels_hold_in_training_and_predictions(trees):
    X, y = trees
    rng = np.random.default_rng(1)
    sets = [[None if rng.random() < 0.5 else {label, "c"} for label in labels] for labels in y]
    restricted = [x._replace(allowed=allowed) for x, allowed in zip(X, sets, strict=True)]
    for model in (TreeSVM(random_state=0), TreeCRF()):
        model.fit(restricted, y)
        for labels, allowed in zip(model.predict(restricted), sets, strict=True):
            assert all(some is None or label in some for label, some in zip(labels, allowed, strict=True))
    assert model.predict_marginals([restricted[0]._replace(allowed=[{"b"}] * len(y[0]))])[0][:, 1].min() > 0.999


def test_plain_tuples_sparse_features_and_no_edge_features(trees):
    X, y = trees
    options = {"random_state": 0, "max_passes": 5, "tol": 1e-9}
    plain = TreeSVM(**options).fit([(x.features, x.edges) for x in X], y)
    assert "edges" not in plain.coef_
    sparse = plain.predict([(sp.csr_array(x.features), x.edges.tolist()) for x in X])
    dense = plain.predict([(x.features, x.edges) for x in X])
    assert all(np.array_equal(a, b) for a, b in zip(sparse, dense, strict=True))
    integers = TreeSVM(fit_intercept=False, **options).fit(X, [np.searchsorted(NAMES, labels) for labels in y])
    assert integers.predict(X[:1])[0].dtype.kind == "i"
    assert list(integers.coef_) == ["emissions", "transitions", "edges"]


def test_bounds_warm_starts_threads_and_paths(trees):
    X, y = trees
    bounded = TreeSVM(bounds={"transitions": (0, None), "edges": (None, 0.2)}, random_state=0).fit(X, y)
    assert bounded.coef_.transitions.min() >= 0
    assert bounded.coef_.edges.max() <= np.float32(0.2)
    warm = TreeSVM(warm_start=True, random_state=0, n_jobs=2).fit(X, y)
    assert warm.fit(X, y).n_iter_ == 0
    assert warm.fit([x._replace(edges=x.edges[:0], edge_features=None) for x in X], y).n_iter_ > 0
    field = TreeCRF(warm_start=True, tol=1e-4).fit(X, y)
    first = field.n_iter_
    assert field.fit(X, y).n_iter_ == 1 < first
    path = regularization_path(TreeSVM(), X, y, eps=0.3, X_dev=X, y_dev=y)
    assert path.model_at(path.best_lambda).score(X, y) > 0.9


# --- bad input ------------------------------------------------------------------------------------------------------

F = np.eye(3) + 1
GOOD = [Tree(F, [(0, 1), (1, 2)]), Tree(F[:2], [(1, 0)])]
LABELS = [["a", "b", "c"], ["a", "b"]]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((F, [(0, 1), (1, 2), (2, 0)]), r"The edges of X\[1\] form a cycle through nodes 0, 1, 2, but must form .*"),
        ((F, [(0, 1), (1, 0)]), r"The edges of X\[1\] form a cycle through nodes 0, 1, but must form .*"),
        ((F, [(2, 2)]), r"The edges of X\[1\] form a cycle through node 2, but must form a tree or a forest."),
        ((F, [(0, 3)]), r"Edge 0 of X\[1\] is \(0, 3\), but the nodes are 0 to 2."),
        ((F, [(-1, 1)]), r"Edge 0 of X\[1\] is \(-1, 1\), but the nodes are 0 to 2."),
        ((F, [(0, 1), (2, 1)]), r"Node 1 of X\[1\] has two parents, 0 and 2: edges run from parent to child."),
        ((F, [(0, 1), (0, 1)]), r"X\[1\] has the edge \(0, 1\) twice."),
        ((F, [(0, 1, 2)]), r"The edges of X\[1\] must be an \(E, 2\) array of integers, .*"),
        ((F, [(0, 1), (2,)]), r"The edges of X\[1\] must be an \(E, 2\) array .* its rows have different lengths."),
        ((F, [(0.0, 1.0)]), r"The edges of X\[1\] must be an \(E, 2\) array of integers, .*"),
        ((F[:, :2], [(0, 1)]), r"X\[1\] has 2 features, but X\[0\] has 3."),
        ((np.full((3, 3), np.nan), []), r"X\[1\] contains NaN or infinity, in row 0."),
        ((np.zeros((0, 3)), []), r"X\[1\] is empty: every tree needs at least one row."),
        ((F,), r"X\[1\] must be a Tree, or a tuple \(features, edges\), not a tuple."),
        (F, r"X\[1\] must be a Tree, or a tuple \(features, edges\), not an ndarray."),
        ((F, [(0, 1)], None, [{"a"}]), r"The allowed labels of X\[1\] must be a list with 3 entries, one per node."),
        (
            (F, [(0, 1)], None, [{"z"}, None, None]),
            r"The allowed labels of X\[1\] contain 'z', which is not a label .*",
        ),
        ((F, [(0, 1)], None, [set(), None, None]), r"The allowed labels of node 0 of X\[1\] must be a collection .*"),
        ((F, [(0, 1)], None, [{"b"}, None, None]), r"y\[1\] has the label 'a' at node 0, which is not allowed there."),
    ],
)
def test_bad_trees(second, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        TreeSVM().fit([GOOD[0], second], [LABELS[0], ["a", "b", "c"]])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (None, r"X\[1\] has 0 features per edge, but 1 are expected."),
        ([[1, 2]], r"X\[1\] has 2 features per edge, but 1 are expected."),
        ([[1], [2]], r"The edge features of X\[1\] must be a matrix of numbers with 1 rows, one per edge, not .*"),
        ([[np.inf]], r"The edge features of X\[1\] must be numbers within 1e\+12."),
    ],
)
def test_bad_edge_features(second, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TreeSVM().fit([GOOD[0]._replace(edge_features=[[0], [1]]), GOOD[1]._replace(edge_features=second)], LABELS)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X must hold at least one tree, but it is empty."),
        (None, LABELS, "X must be a list of trees, not None."),
        (GOOD, LABELS[:1], "X has 2 trees, but y has 1."),
        (GOOD, [["a", "b", "c"], ["a"]], r"y\[1\] has 1 label, but X\[1\] has 2 rows."),
        (GOOD, None, "y must be a list with one sequence of labels per tree of X."),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        TreeSVM().fit(X, y)


def test_bad_parameters_and_predictions(svm, trees):
    with pytest.raises(
        ValueError, match="bounds names 'nodes', but the weights are emissions, transitions, bias, root"
    ):
        TreeSVM(bounds={"nodes": (0, 1)}).fit(GOOD, LABELS)
    with pytest.raises(ValueError, match="cost must be one of hamming, normalized_hamming or a matrix, not 'edit'"):
        TreeSVM(cost="edit").fit(GOOD, LABELS)
    solvers = "auto, casimir, exponentiated-gradient, lbfgs, sgd, svrg"
    with pytest.raises(ValueError, match=f"solver must be a Solver of the log loss or one of {solvers}"):
        TreeCRF(solver=BCFW()).fit(GOOD, LABELS)
    with pytest.raises(ValueError, match=r"X\[0\] has 0 features per edge, but 1 are expected"):
        svm.predict(GOOD)
    with pytest.raises(ValueError, match=r"X has 2 features, but the model was fitted with 3"):
        svm.predict([(np.eye(2), [])])
    plain = TreeSVM(random_state=0).fit(GOOD, LABELS)
    with pytest.raises(ValueError, match=r"X\[0\] has 1 features per edge, but 0 are expected"):
        plain.predict(trees[0])
    with pytest.raises(ValueError, match=r"y contains no label that was seen in fit: 'z' is none"):
        plain.score(GOOD, [["z"] * len(labels) for labels in LABELS])
