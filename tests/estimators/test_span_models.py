import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import maxmargin
from maxmargin import SpanCRF, SpanSVM
from maxmargin.encode.sentences.span_trees import are_crossing, binarize, read_span_trees, spans_within
from maxmargin.problem import IMPOSSIBLE, augment, part_sizes, score_output, scores
from maxmargin.text import SpanFeatures
from maxmargin.trace import Status
from tests import naive
from tests.small import constituents

X = [
    [("She", "PRP"), ("sings", "VBZ")],
    [("The", "DT"), ("dog", "NN"), ("barks", "VBZ")],
    [("Ann", "NNP"), ("saw", "VBD"), ("a", "DT"), ("cat", "NN")],
]
Y = [[(0, 2, "S"), (0, 1, "NP")], [(0, 3, "S"), (0, 2, "NP")], [(0, 4, "S"), (0, 1, "NP"), (1, 4, "VP"), (2, 4, "NP")]]


@pytest.mark.parametrize("n_labels", [1, 2])
def test_every_tree_is_binarized(n_labels):
    lengths = np.array([n for n in (1, 2, 3) for _ in naive.span_trees(n, n_labels)])
    trees = [tree for n in (1, 2, 3) for tree in naive.span_trees(n, n_labels)]
    labels = np.zeros((len(trees), 4, 5), np.int64)  # what is beyond a sentence does not matter
    for table, spans, n in zip(labels, read_span_trees(trees, lengths), lengths.tolist(), strict=True):
        table[:n, : n + 1] = spans.table(np.asarray(spans.labels, np.int64), n)
    outputs = [naive.span_output(tree, n, n_labels) for tree, n in zip(trees, lengths.tolist(), strict=True)]
    assert binarize(labels, lengths, n_labels).tolist() == np.concatenate(outputs).tolist()
    assert not are_crossing(spans_within(labels, lengths))


def test_sets_of_spans_that_cross_are_no_trees():
    lo, hi = np.triu_indices(4)
    labels, trees = np.full((2 ** len(lo), 4, 5), -1), {frozenset(tree) for tree in naive.span_trees(4, 1)}
    for table, chosen in zip(labels, itertools.product([-1, 0], repeat=len(lo)), strict=True):
        table[lo, hi + 1] = chosen
        is_tree = frozenset((a, b, 0) for a, b in np.argwhere(table == 0).tolist()) in trees
        assert are_crossing(spans_within(table[np.newaxis], np.array([4]))) is not is_tree


@pytest.mark.parametrize("options", [{}, {"only_observed": False}, {"n_hashed": 256}])
def test_features_by_name(options, interpreted_loops):
    spans = SpanFeatures().transform(X[:2])
    model = SpanSVM(C=10.0, tol=0.5, random_state=0, **options).fit(spans, Y[:2])
    assert model.score(spans, Y[:2]) == 1
    assert model.predict(spans) == Y[:2]
    assert [*model.classes_] == ["NP", "S"]
    assert model.predict([[*x] for x in spans]) == Y[:2]  # of lists of names
    if not options:
        true = {*spans[0][0], *spans[0][1], *spans[1][1], *spans[1][2]}
        assert {*model.feature_names_in_} == true
        assert model.n_features_in_ == model.coef_.labels.shape[0] == len(true)


def test_saved_models_predict_the_same(tmp_path, interpreted_loops):
    parser = make_pipeline(SpanFeatures(), SpanCRF()).fit(X, Y)
    maxmargin.save(parser, tmp_path / "model")
    loaded = maxmargin.load(tmp_path / "model")
    assert loaded.predict(X) == parser.predict(X)
    spans = SpanFeatures().transform(X)
    pairs = zip(loaded[-1].predict_marginals(spans), parser[-1].predict_marginals(spans), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def small():
    return constituents(np.random.default_rng(0))[:2]


def test_predictions_agree_with_each_other(small, interpreted_loops):
    x, y = small
    model = SpanCRF(C=1.0, tol=1e-6).fit(x, y)
    assert model.status_ is Status.OPTIMAL
    for i, (best, (several, found), marginals, through) in enumerate(
        zip(
            model.predict(x), model.predict_topk(x, 2), model.predict_marginals(x), model.decision_function(x),
            strict=True,
        )
    ):  # fmt: skip
        n = marginals.shape[0]
        assert several[0] == best
        assert marginals.shape == through.shape == (n, n + 1, 2)
        is_none = np.tri(n, n + 1, dtype=bool)  # it would end before it starts
        assert (marginals[is_none] == 0).all()
        assert (through[is_none] == -np.inf).all()
        trees = [[(lo, hi, "NS"[label]) for lo, hi, label in tree] for tree in naive.span_trees(n, 2)]
        shares = np.exp(model.log_likelihood([x[i]] * len(trees), trees))
        assert np.isclose(shares.sum(), 1, atol=1e-5)
        assert np.isclose(marginals[0, n, 1], sum(p for p, t in zip(shares, trees, strict=True) if (0, n, "S") in t))
        for start, end, label in best:
            assert np.isclose(through[start, end, "NS".index(label)], found[0])


@pytest.mark.parametrize("known", [None, {(1, 3)}, {(0, 2, "N"), (0, 1)}, [(0, 3, "S"), (2, 3, "N")]])
def test_predictions_agree_with_what_is_known_of_spans(known, small, interpreted_loops):
    x, y = small
    model = SpanCRF(tol=0.1).fit(x, y)
    trees = [[(lo, hi, "NS"[label]) for lo, hi, label in tree] for tree in naive.span_trees(3, 2)]
    left = [tree for tree in trees if all(any(span[: len(k)] == k for span in tree) for k in known or ())]
    shares = model.log_likelihood([x[1]] * len(left), left)
    [found] = model.predict(x[1:2], allowed=[known])
    assert {*found} == {*left[int(np.argmax(shares))]}
    if not isinstance(known, list):
        assert np.isclose(model.log_likelihood(x[1:2], [known])[0], np.logaddexp.reduce(shares), atol=1e-5)


SOME = [{(1, 3)}, {(0, 2, "N"), (0, 1)}, {(0, 3, frozenset("NS")), (2, 3, "N")}, set(), None]


def agrees(tree, known):
    """Whether a tree has all these spans."""
    return all(any(span[:2] == k[:2] and (len(k) == 2 or span[2] in k[2]) for span in tree) for k in known or ())


@pytest.mark.parametrize("known", SOME)
def test_what_agrees_is_left_and_costs_nothing(known, small, interpreted_loops):
    """Others cost 1 for each known span that they have not, and for each labelled one that no tree that agrees has."""
    x, y = small
    _, problem, weak = SpanSVM(dtype="float64")._learn(x[:3], [y[0], known, y[2]])
    assert weak.is_weak.tolist() == [False, True, False]
    cost, potentials = np.zeros((2, part_sizes(problem)[1]))
    augment(problem, 1, cost)
    scores(weak.consistent, np.zeros(4), 1, potentials)
    trees = [[(lo, hi, "NS"[label]) for lo, hi, label in tree] for tree in naive.span_trees(3, 2)]
    possible = {span for tree in trees if agrees(tree, known) for span in tree}
    for tree, codes in zip(trees, naive.span_trees(3, 2), strict=True):
        row = naive.span_output(codes, 3, 2)
        wrong = sum(not agrees(tree, [k]) for k in known or ()) + len({*tree} - possible)
        assert np.isclose(score_output(problem, 1, cost, row), wrong)
        assert (score_output(weak.consistent, 1, potentials, row) > IMPOSSIBLE / 2) == agrees(tree, known)


@pytest.mark.parametrize("make", [SpanSVM, SpanCRF])
def test_trees_known_in_part(make, small, interpreted_loops):
    x, y = small
    model = make(C=10.0, random_state=0).fit(x, [*y[:3], *({tree[0]} for tree in y[3:6]), {(0, 1)}, None])
    assert model.status_ is Status.STATIONARY
    assert model.score(x, y) == 1
    names = make_pipeline(SpanFeatures(), make(C=10.0, random_state=0)).fit(X, [Y[0], {Y[1][1]}, Y[2]])
    assert (1, 3) not in [span[:2] for span in names.predict(X)[1]]


def test_sparse_and_dense_features_are_alike(small, interpreted_loops):
    x, y = small
    models = [SpanCRF(dtype="float64").fit(data, y) for data in (x, [*map(sp.csr_array, x)])]
    assert np.allclose(models[0].coef_.labels, models[1].coef_.labels)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([[(0, 2, "a"), (1, 3, "a")]], r"y\[0\] has spans that cross: \(0, 2, 'a'\) and \(1, 3, 'a'\)"),
        ([[(0, 2, "a"), (0, 2, "b")]], r"y\[0\] has two labels of the words 0 to 2, 'a' and 'b': join them"),
        ([[(0, 4, "a")]], r"y\[0\] has \(0, 4, 'a'\), but spans are within 0 to 3, and not empty"),
        ([[(1, 1, "a")]], r"y\[0\] has \(1, 1, 'a'\), but spans are within 0 to 3"),
        ([[(0, 1.5, "a")]], r"y\[0\] has \(0, 1.5, 'a'\), but a span must start and end at integers"),
        ([[(0, 1)]], r"y\[0\] has \(0, 1\), which is not a triple of start, end and label"),
        (["abc"], r"y\[0\] must be a list of triples"),
        ([{(0, 2, "a"), (1, 3)}], r"y\[0\] leaves no output of X\[0\]"),
        ([{(0, 2, frozenset())}], r"y\[0\] has an empty set of labels"),
        ([{(0, 2)}], "y must hold at least one labelled span"),
        ([None], "y must hold at least one labelled span"),
        ([[]], "y must hold at least one labelled span"),
        ([[(0, 1, "a")], []], "X has 1 sentences, but y has 2"),
    ],
)
def test_bad_trees(trees, message, interpreted_loops):
    with pytest.raises((TypeError, ValueError), match=message):
        SpanSVM().fit([np.ones((6, 1))], trees)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([], "X must hold at least one sentence"),
        ([np.ones((5, 1))], r"X\[0\] must have n \(n \+ 1\) / 2 spans, of n words, but has the shape \(5, 1\)"),
        ([[["a"]] * 4], r"X\[0\] must have n \(n \+ 1\) / 2 spans, of n words, but there are 4"),
        ([[]], r"X\[0\] is empty: every sentence needs at least one word"),
    ],
)
def test_bad_sentences(x, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SpanSVM().fit(x, [[(0, 1, "a")]] * len(x))


def test_bad_predictions(small, interpreted_loops):
    x, y = small
    model = SpanCRF(tol=0.1).fit(x, y)
    with pytest.raises(ValueError, match=r"y\[0\] contains a label that was not seen in fit"):
        model.log_likelihood(x[:1], [[(0, 1, "z")]])
    assert model.score(x[:1], [[(0, 1, "z")]]) < 1
    for known, message in (
        ({(0, 1, "z")}, r"allowed\[0\] has the label 'z', which was not seen in fit"),
        ({(0, 3)}, r"allowed\[0\] has \(0, 3\), but spans are within 0 to 2"),
        ("ab", r"allowed\[0\] must be a set of spans, or None"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            model.predict(x[:1], allowed=[known])
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no output of X\[0\]"):
        model.predict(x[1:2], allowed=[{(0, 2), (1, 3)}])
