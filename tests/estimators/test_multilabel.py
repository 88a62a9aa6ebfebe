import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import check_estimator

from maxmargin import MultiLabelCRF, MultiLabelSVM, Status
from maxmargin.encode.inputs.label_graphs import chow_liu_tree
from maxmargin.problem import IMPOSSIBLE, add_output, augment, new_weights, part_sizes, score_output, scores
from maxmargin.structures.graphs import elimination_plan
from maxmargin.structures.graphs.elimination_plan import TreewidthError
from tests import naive

SQUARE = np.array([(0, 1), (2, 1), (3, 2), (0, 3)])


@pytest.fixture(scope="module")
def pieces():
    """Forty rows with four labels that depend on the features and on each other."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    first = X[:, 0] + 0.5 * rng.normal(size=40) > 0
    second = first ^ (rng.random(40) < 0.2)
    third = X[:, 1] > 0.3
    return X, np.stack([first, second, third, third & ~second], axis=1).astype(int)


def joint_features(x, y, edges):
    """By definition: of each label that is on its row and 1, and the indicators of each pair."""
    of_labels = np.outer(y, np.append(x, 1.0))
    of_pairs = np.zeros((len(edges), 2, 2))
    of_pairs[np.arange(len(edges)), y[edges[:, 0]], y[edges[:, 1]]] = 1
    return np.concatenate([of_labels.ravel(), of_pairs.ravel()])


def outputs(n_labels):
    return np.array([*itertools.product((0, 1), repeat=n_labels)])


def blocks_of(X, Y, edges, costs):
    every = outputs(Y.shape[1])
    return [
        (joint_features(x, true, edges) - [joint_features(x, y, edges) for y in every], (every != true) @ costs)
        for x, true in zip(X, Y, strict=True)
    ]


def weights_of(model):
    """From the named parts."""
    return np.concatenate([np.column_stack([model.coef_, model.intercept_]).ravel(), model.edge_coef_.ravel()])


@pytest.mark.parametrize("cost", ["hamming", "normalized_hamming", [1.0, 0.5, 2.0, 0.0]])
def test_the_optimum_of_the_svm_is_the_documented_one(pieces, cost, interpreted_loops):
    X, Y = (part[:5] for part in pieces)
    costs = {"hamming": np.ones(4), "normalized_hamming": np.full(4, 0.25)}.get(str(cost), cost)
    blocks, weight = blocks_of(X, Y, SQUARE, costs), np.arange(1.0, 6.0)
    model = MultiLabelSVM(C=0.5, graph=SQUARE, cost=cost, tol=0.01, dtype="float64", random_state=0).fit(X, Y, weight)
    _, optimum = naive.solve(blocks, 0.5, weight)
    assert np.isclose(naive.primal(weights_of(model), blocks, 0.5, weight), model.certificate_.primal)
    assert model.certificate_.dual <= optimum + 1e-9
    assert optimum <= model.certificate_.primal <= 1.01 * optimum


def test_the_optimum_of_the_crf_is_the_documented_one(pieces, interpreted_loops):
    X, Y = (part[:8] for part in pieces)
    blocks = blocks_of(X, Y, SQUARE, np.zeros(4))
    model = MultiLabelCRF(C=0.5, graph=SQUARE, tol=1e-6).fit(X, Y)
    optimum = naive.log_primal(naive.solve_log(blocks, 0.5), blocks, 0.5)
    assert np.isclose(naive.log_primal(weights_of(model), blocks, 0.5), model.certificate_.primal)
    assert model.certificate_.dual <= optimum + 1e-9
    assert np.isclose(model.certificate_.primal, optimum, rtol=2e-6)
    losses = [np.log(np.exp(-psi @ weights_of(model)).sum()) for psi, _ in blocks]
    assert np.allclose(model.log_likelihood(X, Y), np.negative(losses))


def test_without_a_graph_labels_are_those_of_linear_models(pieces, interpreted_loops):
    X, Y = (part[:20] for part in pieces)
    svm = MultiLabelSVM(C=0.3, graph=None, tol=1e-3, dtype="float64", random_state=0).fit(X, Y)
    rows = np.column_stack([X, np.ones(len(X))])
    optimum = 0.0
    for label in range(4):
        peer = LinearSVC(loss="hinge", C=0.3, tol=1e-6, max_iter=100_000, random_state=0).fit(X, Y[:, label])
        w = np.append(peer.coef_, peer.intercept_)
        optimum += w @ w / 2 + 0.3 * np.maximum(1 - (2 * Y[:, label] - 1) * (rows @ w), 0).sum()
    assert np.isclose(svm.certificate_.primal * len(X) * 0.3, optimum, rtol=2e-3)
    assert svm.edge_coef_.shape == (0, 2, 2)
    crf = MultiLabelCRF(C=0.3, graph=None, tol=1e-7).fit(X, Y)
    for label in range(4):
        peer = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-8).fit(rows, Y[:, label])
        assert np.allclose(np.append(crf.coef_[label], crf.intercept_[label]), peer.coef_[0], atol=1e-3)
        assert np.allclose(crf.predict_proba(X)[:, label], peer.predict_proba(rows)[:, 1], atol=1e-3)


@pytest.mark.usefixtures("interpreted_loops")
@given(seed=st.integers(0, 999), n_labels=st.integers(1, 4), graph=st.sampled_from(["full", "tree", None]))
def test_predictions_are_those_of_enumeration(seed, n_labels, graph):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(3, 2)), rng.integers(0, 2, size=(3, n_labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MultiLabelCRF(graph=graph, max_passes=1).fit(X, Y)
    model._w[:] = rng.integers(-2, 3, size=model._w.size)  # ties are likely
    every = outputs(n_labels)
    found, best_with, marginals = model.predict(X), model.decision_function(X), model.predict_proba(X)
    for i, x in enumerate(X):
        scores = np.array([joint_features(x, y, model.edges_) @ weights_of(model) for y in every])
        probabilities = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        assert np.isclose(scores[(every == found[i]).all(axis=1)][0], scores.max())
        assert np.allclose(marginals[i], probabilities @ every)
        for label in range(n_labels):
            is_on = every[:, label] == 1
            assert np.isclose(best_with[i, label], scores[is_on].max() - scores[~is_on].max())
        labels, values = model.predict_topk([x], 3)[0]
        assert np.allclose(values, np.sort(scores)[::-1][:3])
        assert np.allclose([joint_features(x, y, model.edges_) @ weights_of(model) for y in labels], values)


@given(st.integers(0, 999))
def test_the_tree_tells_most(seed):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, size=(12, 4))
    Y[:, 1] = Y[:, 0] ^ (rng.random(12) < 0.1)
    pairs = [*itertools.combinations(range(4), 2)]
    told = {pair: mutual_info_score(*Y[:, pair].T) for pair in pairs}
    trees = [three for three in itertools.combinations(pairs, 3) if reaches_all(three)]
    found = [tuple(sorted(edge)) for edge in chow_liu_tree(Y).tolist()]
    assert reaches_all(found)
    assert np.isclose(sum(told[edge] for edge in found), max(sum(told[edge] for edge in tree) for tree in trees))


def reaches_all(tree):
    reached = {0}
    for _ in tree:
        reached |= {node for edge in tree if reached & {*edge} for node in edge}
    return len(reached) == 4


def test_small_trees():
    assert chow_liu_tree(np.array([[0], [1]])).shape == (0, 2)
    assert chow_liu_tree(np.ones((2, 2), int)).tolist() == [[0, 1]]


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("kind", [MultiLabelSVM, MultiLabelCRF])
def test_it_stands_where_classifiers_of_scikit_learn_stand(pieces, kind):
    X, Y = pieces[0], pieces[1][:, :2]
    model = kind(random_state=0, tol=0.1)
    predicted = cross_val_predict(model, X, Y, cv=2)
    assert (predicted.shape, predicted.dtype.kind) == (Y.shape, "i")
    assert cross_val_predict(model, X, Y, cv=2, method="decision_function").shape == Y.shape
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {f"{kind.__name__.lower()}__graph": ["full", None]},
        scoring=["accuracy", "f1_macro", "roc_auc"],
        refit="f1_macro",
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert search.score(X, Y) > 0.6
    assert cross_val_score(model, X, Y.astype(bool), cv=2, error_score="raise").shape == (2,)
    assert not hasattr(MultiLabelSVM(), "predict_proba")


@pytest.mark.usefixtures("interpreted_loops")
def test_rows_and_labels_may_be_stored_in_many_ways(pieces):
    X, Y = pieces[0][:16], pieces[1][:16, :3]
    X = np.where(np.abs(X) < 0.5, 0, X)
    model = MultiLabelCRF(graph="full").fit(X, Y)
    assert np.allclose(MultiLabelCRF(graph="full").fit(sp.csr_array(X), Y == 1).coef_, model.coef_, atol=1e-6)
    assert np.allclose(model.predict_proba(sp.csc_array(X)), model.predict_proba(X))
    for labels in (Y.astype(float), sp.csr_matrix(Y), sp.coo_array(Y)):
        assert np.allclose(MultiLabelCRF(graph="full").fit(X.tolist(), labels).coef_, model.coef_)
    assert model.score(X, sp.csr_array(Y)) == model.score(X, Y)
    assert np.array_equal(cross_val_predict(model, X, Y, cv=2, method="predict_proba").shape, Y.shape)
    probabilities, is_exact = model.predict_marginals(X, return_exact=True)
    assert np.array_equal(probabilities, model.predict_proba(X))
    assert is_exact.all()
    assert not MultiLabelCRF(fit_intercept=False).fit(X, Y).intercept_.any()


@pytest.mark.usefixtures("interpreted_loops")
def test_labels_that_are_never_or_always_on(pieces):
    X, Y = pieces[0][:10], pieces[1][:10].copy()
    Y[:, 1], Y[:, [2, 3]] = 1, 0
    with pytest.warns(UserWarning, match="on in training") as caught:
        model = MultiLabelSVM(C=1.0, random_state=0).fit(X, Y)
    assert sorted(str(warning.message) for warning in caught) == [
        "Labels in column 1 of y are always on in training.",
        "Labels in columns 2, 3 of y are never on in training.",
    ]
    assert model.predict(X)[:, 1:].tolist() == [[1, 0, 0]] * 10


class OfAnyTarget(MultiLabelSVM):
    """Takes the classes of scikit-learn's checks: the labels of odd ones are on."""

    def fit(self, X, y, sample_weight=None, **options):
        return super().fit(X, odd(y), sample_weight, **options)

    def score(self, X, y, sample_weight=None):
        return super().score(X, odd(y), sample_weight)


def odd(y):
    classes = np.asarray(y)
    return np.reshape(classes % 2, (len(classes), -1)) if classes.ndim and classes.dtype.kind in "iuf" else y


@pytest.mark.long
def test_scikit_learn_checks():
    """All but those that need the names of classes, or compare two fits to more digits than the tolerance asks for."""
    reasons = {
        "two fits agree within tol, not to ten digits": [
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ],
        "labels are 0 or 1, not classes": [
            "check_class_weight_classifiers",
            "check_classifiers_classes",
            "check_classifiers_one_label",
            "check_classifiers_regression_target",
            "check_classifiers_train",
            "check_dtype_object",
        ],
        "classes_ has a row per label": ["check_classifier_multioutput"],
        "classes are made two": ["check_classifier_not_supporting_multiclass"],
    }
    expected = {check: reason for reason, checks in reasons.items() for check in checks}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(OfAnyTarget(random_state=0), expected_failed_checks=expected)


@pytest.mark.skipif(sklearn.__version__.startswith("1.6."), reason="its checks ask for three classes all the same")
@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("model", [MultiLabelSVM, MultiLabelCRF])
def test_scikit_learn_knows_that_labels_have_two_classes(model):
    assert get_tags(model()).classifier_tags.multi_class is False
    for check in (
        estimator_checks.check_classifier_not_supporting_multiclass,
        estimator_checks.check_fit_idempotent,
        estimator_checks.check_fit2d_predict1d,
        estimator_checks.check_estimators_overwrite_params,
        estimator_checks.check_n_features_in,
    ):
        check(model.__name__, model(random_state=0, max_passes=3))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 0], r"y must be a matrix of 0 and 1, .*, not one of shape \(3,\) and dtype int64"),
        ([[0, 1], [1, 2], [0, 0]], r"y\[1, 1\] is 2, but labels must be 0 or 1"),
        ([[0, 1], [1, 0], [1.5, 0]], r"y\[2, 0\] is 1.5, but labels must be 0 or 1"),
        ([["a", "b"]] * 3, "y must be a matrix of 0 and 1"),
        (
            [["a"], ["a", "b"], []],
            "y must be a matrix of 0 and 1, .* as MultiLabelBinarizer makes it, but its rows have",
        ),
        ([[0, 1], [1, 0]], "inconsistent numbers of samples"),
        (np.zeros((3, 0), int), r"0 feature\(s\) \(shape=\(3, 0\)\)"),  # by scikit-learn
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelSVM().fit(np.eye(3), y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "forest"}, "graph must be one of auto, full, tree, not 'forest'"),
        ({"graph": [(0, 0)]}, "Edge 0 of graph joins node 0 to itself"),
        ({"graph": [(0, 1), (1, 0)]}, r"Edges 0 and 1 of graph, \(0, 1\) and \(1, 0\), are the same"),
        ({"graph": [(0, 1), (1, 3)]}, r"Edge 1 of graph is \(1, 3\), but the nodes are 0 to 2"),
        ({"graph": [(0, 1, 2)]}, r"The edges of graph must be an \(E, 2\) array"),
        ({"cost": "zero"}, "cost must be one of hamming, normalized_hamming, not 'zero'"),
        ({"cost": [1.0, 2.0]}, "cost must hold 3 numbers from 0 to 1e[+]12, one per label"),
        ({"cost": [1.0, 2.0, -1.0]}, "cost must hold 3 numbers"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelSVM(**options).fit(np.eye(3), 1 - np.eye(3, dtype=int))


def test_graphs_of_too_large_a_treewidth(pieces, interpreted_loops, monkeypatch):
    X, Y = (part[:8] for part in pieces)
    exact = MultiLabelSVM(C=0.5, graph="full", tol=0.01, random_state=0).fit(X, Y)
    monkeypatch.setattr(elimination_plan, "LARGEST_TABLES", 8)
    model = MultiLabelSVM(C=0.5, graph="full", tol=0.01, random_state=0).fit(X, Y)
    assert model.certificate_.dual <= exact.certificate_.primal
    assert exact.certificate_.dual <= model.certificate_.primal
    assert model.score(X, Y) >= 0.5
    with pytest.raises(TreewidthError, match=r"decision_function needs graphs of small treewidth, .* X\[0\] is too"):
        model.decision_function(X)
    with pytest.raises(TreewidthError, match="predict_topk needs graphs of small treewidth"):
        model.predict_topk(X, 2)
    crf = MultiLabelCRF(graph="full", C=0.1, tol=0.05, random_state=0).fit(X, Y)
    assert crf.status_ is Status.OPTIMAL
    assert ((crf.predict_proba(X) >= 0) & (crf.predict_proba(X) <= 1)).all()
    assert not crf.predict_marginals(X, return_exact=True)[1].any()
    with pytest.raises(TreewidthError, match="log_likelihood needs graphs of small treewidth"):
        crf.log_likelihood(X, Y)
    with pytest.raises(TypeError, match="Auto needs the exp oracle for the log loss"):
        MultiLabelCRF(graph="full", loss="log").fit(X, Y)


@pytest.mark.usefixtures("interpreted_loops")
def test_bad_labels_after_training(pieces):
    X, Y = (part[:6] for part in pieces)
    model = MultiLabelSVM(tol=0.5, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="y has 2 labels, but the model was fitted with 4"):
        model.score(X, Y[:, :2])
    with pytest.raises(ValueError, match="X has 6 rows, but y has 1"):
        model.score(X, Y[:1])


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("graph", [None, "full"])
@pytest.mark.parametrize("make", [MultiLabelSVM, MultiLabelCRF])
def test_labels_that_are_not_known(make, graph):
    """None and NaN alike: all outputs that agree cost nothing and are left, others not."""
    rng = np.random.default_rng(0)
    X, known = rng.normal(size=(6, 2)), rng.integers(0, 2, (6, 3)).astype(float)
    known[0], known[1] = 0, 1
    known[2, 1] = known[3, 0] = known[3, 1] = np.nan
    encoder, problem, weak = make(graph=graph, cost="hamming")._learn(X, known)
    assert weak.is_weak.tolist() == [False, False, True, True, False, False]
    w = rng.normal(size=new_weights(problem).size).astype(new_weights(problem).dtype)
    model = make(graph=graph, random_state=0, max_passes=3).fit(X, known)
    listed = [[None if np.isnan(label) else int(label) for label in row] for row in known]
    assert np.array_equal(make(graph=graph, random_state=0, max_passes=3).fit(X, listed)._w, model._w)
    allowed = model.predict(X, allowed=known)
    for i, labels in enumerate(known):
        theta, costs = np.zeros((2, part_sizes(problem)[i]), w.dtype)
        scores(weak.consistent, w, i, theta)
        augment(problem, i, costs)
        for y in naive.labellings(3, 2):
            n_wrong = np.sum((labels != y) & ~np.isnan(labels))
            assert np.isclose(score_output(problem, i, costs, y), n_wrong)
            assert (score_output(problem, i, theta, y) < IMPOSSIBLE / 2) == (n_wrong > 0)
        assert ((allowed[i] == labels) | np.isnan(labels)).all()
    if make is MultiLabelCRF:
        assert np.allclose(model.log_likelihood(X, np.full(known.shape, np.nan)), 0, atol=1e-6)
    assert encoder.n_labels == 3
    known[:, 1] = np.nan
    with pytest.raises(ValueError, match="Nothing is known of the labels in column 1 of y"):
        make(graph=graph).fit(X, known)
    with pytest.raises(ValueError, match=r"allowed must be a matrix of 0 and 1.* not one of shape \(2, 3\)"):
        model.predict(X, allowed=known[:2])


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("graph", [None, "full"])
@pytest.mark.parametrize("make", [MultiLabelSVM, MultiLabelCRF])
def test_labels_that_are_likely(make, graph):
    """Their mean parts and costs are expected ones, by enumeration, and fits are convex."""
    rng = np.random.default_rng(0)
    X, chances = rng.normal(size=(6, 2)), rng.random((6, 3)).round(1)
    chances[0], chances[1] = 0, 1
    arguments = {"graph": graph, "cost": "hamming", "class_weight": [{0: 1.0, 1: 3.0}] * 3}
    _, problem, weak = make(**arguments)._learn(X, chances)
    assert weak.consistent is None
    for i, on in enumerate(chances):
        expected, costs = np.zeros((2, part_sizes(problem)[i]))
        augment(problem, i, costs)
        for y in naive.labellings(3, 2):
            add_output(problem, i, y.astype(np.int32), np.prod(np.where(y, on, 1 - on)), expected)
            cost = np.sum(np.where(y, 1 - on, 3 * on))
            assert np.isclose(score_output(problem, i, costs, y), cost, atol=1e-5)
        assert np.allclose(weak.target.values[weak.target.starts[i] : weak.target.starts[i + 1]], expected, atol=1e-5)
    assert make(**arguments, random_state=0).fit(X, chances).status_ is Status.OPTIMAL
    chances[2] = 0.5, np.nan, 1
    if graph is None:
        assert make(random_state=0, graph=None).fit(X, chances).status_ is Status.STATIONARY
    else:
        with pytest.raises(ValueError, match=r"y\[2\] has probabilities of the labels at place 0, but"):
            make(graph=graph).fit(X, chances)
