import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import maxmargin
from maxmargin import DependencyCRF, DependencySVM
from maxmargin.encode.sentences.head_trees import are_trees, find_crossing, lift_crossing, read_trees
from maxmargin.text import ArcFeatures
from maxmargin.trace import Status
from tests import naive
from tests.small import labelled_parses, parses

X = [
    [("She", "PRON"), ("sings", "VERB")],
    [("Dogs", "NOUN"), ("bark", "VERB"), ("loudly", "ADV")],
    [("the", "DET"), ("dog", "NOUN"), ("sings", "VERB")],
]
Y = [[(2, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root"), (2, "advmod")], [(2, "det"), (3, "nsubj"), (0, "root")]]
CROSSING = [3, 4, 0, 3, 2]  # the arc from 3 to 1 crosses that from 4 to 2


@pytest.fixture(scope="module")
def labelled():
    return labelled_parses(np.random.default_rng(0))


@pytest.mark.parametrize("options", [{}, {"only_observed": False}, {"n_hashed": 256}])
def test_features_by_name(options, interpreted_loops):
    arcs = ArcFeatures().transform(X)
    model = DependencySVM(C=10.0, tol=0.1, random_state=0, **options).fit(arcs, Y)
    assert model.score(arcs, Y) == 1
    assert model.predict(arcs) == Y
    assert [*model.classes_] == ["advmod", "det", "nsubj", "root"]
    lists = [[*x] for x in arcs]  # of names
    again = DependencySVM(max_passes=1, random_state=0, **options).fit(lists, Y)
    assert again.coef_.labels.shape == model.coef_.labels.shape
    assert model.predict(lists) == Y
    if "n_hashed" not in options:
        assert len(model.feature_names_in_) == model.n_features_in_ == len(model.coef_.arcs)


def test_names_of_true_arcs_alone_have_weights(interpreted_loops):
    arcs = ArcFeatures().transform(X)
    few, many = (DependencySVM(only_observed=flag, max_passes=2, random_state=0).fit(arcs, Y) for flag in (True, False))
    true = {
        name for i, tree in enumerate(Y) for m, (h, _) in enumerate(tree) for name in arcs[i][m * (len(tree) + 1) + h]
    }
    assert {*few.feature_names_in_} == true < {*many.feature_names_in_}
    assert {*DependencySVM(min_count=2, max_passes=1).fit(arcs, Y).feature_names_in_} < true
    which = [*few.feature_names_in_].index("mt=DET<")
    assert few.coef_.labels.toarray()[which].nonzero()[0].tolist() in ([], [1])  # no label but that of articles
    assert many.coef_.labels.shape == (many.n_features_in_, 4)


@pytest.mark.parametrize("projective", [True, False])
def test_saved_models_predict_the_same(projective, tmp_path, interpreted_loops):
    arcs = ArcFeatures().transform(X)
    model = DependencyCRF(projective=projective).fit(arcs, Y)
    model.save(tmp_path / "model")
    loaded = maxmargin.load(tmp_path / "model")
    assert loaded.predict(arcs) == model.predict(arcs)
    pairs = zip(loaded.predict_marginals(arcs), model.predict_marginals(arcs), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    pipeline = make_pipeline(ArcFeatures(between=False), DependencyCRF()).fit(X, Y)
    maxmargin.save(pipeline, tmp_path / "pipeline")
    assert maxmargin.load(tmp_path / "pipeline").predict(X) == pipeline.predict(X)


def test_predictions_agree_with_each_other(labelled, interpreted_loops):
    x, y, _ = labelled
    model = DependencyCRF(C=1.0, tol=1e-6).fit(x, y)
    assert model.status_ is Status.OPTIMAL
    for best, (several, scores), marginals, through, certified in zip(
        model.predict(x),
        model.predict_topk(x, 3),
        model.predict_marginals(x),
        model.decision_function(x),
        model.predict_certified(x),
        strict=True,
    ):
        n = len(best)
        assert several[0] == best == certified.output
        assert certified.is_exact
        assert marginals.shape == through.shape == (n, n + 1, 2)
        assert np.allclose(marginals.sum(axis=(1, 2)), 1)
        assert np.isclose(through.max(), scores[0])
        assert np.isneginf(through[np.arange(n), np.arange(n) + 1]).all()
    trees = [[(h, "a") for h in tree] for tree in naive.dependency_trees(3, projective=True)]
    shares = [np.exp(model.log_likelihood(x[:1], [[(int(h), "a") for h, _ in tree]])) for tree in trees]
    assert 0 < np.sum(shares) < 1


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_posterior_trees_have_the_most_right_heads(projective, single_root, interpreted_loops):
    rng = np.random.default_rng(0)
    x = [rng.standard_normal((n, n + 1, 4)) for n in (1, 2, 3, 4, 4)]
    y = [[*range(len(table))] for table in x]
    model = DependencyCRF(C=0.3, projective=projective, single_root=single_root, dtype="float64").fit(x, y)
    allowed = [None, None, [None, {0, 1}, None], [None, 1, None, None], None]
    pairs = zip(model.predict_marginals(x, allowed=allowed), model.predict_posterior(x, allowed=allowed), strict=True)
    for known, (share, found) in zip(allowed, pairs, strict=True):
        n = len(found)
        trees = naive.dependency_trees(n, single_root=single_root, projective=projective)
        sets = [{*range(n + 1)} if known is None or k is None else {k} if k == 1 else k for k in known or [None] * n]
        agree = [tree for tree in trees if all(head in heads for head, heads in zip(tree, sets, strict=True))]
        best = max(share[np.arange(n), list(tree)].sum() for tree in agree)
        assert tuple(found) in {tuple(tree) for tree in agree}
        assert np.isclose(share[np.arange(n), found].sum(), best)


def test_posterior_trees_have_labels(labelled, interpreted_loops):
    x, y, _ = labelled
    model = DependencyCRF(C=1.0).fit(x, y)
    shares, classes = model.predict_marginals(x), model.classes_.tolist()
    for share, found in zip(shares, model.predict_posterior(x), strict=True):
        assert [label for _, label in found] == [classes[share[m, head].argmax()] for m, (head, _) in enumerate(found)]


def test_sparse_and_dense_features_are_alike(interpreted_loops):
    x, y, _ = parses(np.random.default_rng(0))
    flat = [sp.csr_array(a.reshape(-1, a.shape[2])) for a in x]
    models = [DependencySVM(random_state=0, dtype="float64").fit(data, y) for data in (x, flat)]
    assert np.allclose(models[0].coef_.arcs, models[1].coef_.arcs)
    assert np.array_equal(models[0].predict(flat)[0], models[1].predict(x)[0])


def test_weights_of_words(interpreted_loops):
    x, y, _ = parses(np.random.default_rng(0))
    nothing = [np.zeros(len(tree)) for tree in y]
    assert not DependencySVM(random_state=0).fit(x, y, word_weight=nothing).coef_.arcs.any()


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([[1, 3]], r"y\[0\] has the head 3 at word 2, but heads are 0, the root, to 2"),
        ([[-1, 0]], r"y\[0\] has the head -1 at word 1"),
        ([[2, 1]], r"y\[0\] is no tree: from head to head, the words 1, 2 lead back to 1"),
        ([[1, 0]], r"y\[0\] is no tree: word 1 is its own head"),
        ([[0, 0]], r"y\[0\] has the root as the head of the words 1 and 2: with single_root, one word has"),
        ([[0]], r"y\[0\] has 1 heads, but there are 2 words"),
        ([[0, 1.5]], r"y\[0\] has the head 1.5 at word 2, but a head must be an integer"),
        ([[(0, "a"), 1]], r"y\[0\] must hold pairs of a head and a label alone, as y\[0\] begins with \(0, 'a'\)"),
        ([[(0, "a"), (1, "b", "c")]], r"y\[0\] has \(1, 'b', 'c'\) at word 2, not a pair of a head and a label"),
        (["01"], r"y\[0\] must be a list of heads"),
        ([[0, 1], [0]], r"X has 1 sentences, but y has 2"),
    ],
)
def test_bad_trees(trees, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DependencySVM().fit([np.ones((2, 3, 1))], trees)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([], "X must hold at least one sentence"),
        (
            [np.ones((2, 2, 1))],
            r"X\[0\] must have n \(n \+ 1\) arcs, of n words with n \+ 1 heads each, but has the shape",
        ),
        ([[["a"]] * 5], r"X\[0\] must have n \(n \+ 1\) arcs, .* but there are 5"),
        ([[]], r"X\[0\] is empty: every sentence needs at least one word"),
        ([np.full((2, 3, 1), np.nan)], r"X\[0\] contains NaN or infinity"),
        ([np.ones((2, 3, 0))], "X must have at least one feature"),
    ],
)
def test_bad_sentences(x, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DependencySVM().fit(x, [[0, 1]] * len(x))


def test_bad_predictions(labelled, interpreted_loops):
    x, y, _ = labelled
    model = DependencySVM(random_state=0).fit(x, y)
    with pytest.raises(ValueError, match="y must have labels of arcs if it had them in fit"):
        model.score(x[:1], [[2, 0, 2]])
    with pytest.raises(TypeError, match="X must hold features by name"):
        model.predict([[["a"], ["b"]]])
    assert model.score(x[:1], [[(2, "z"), (0, "z"), (2, "z")]]) == 0
    crf = DependencyCRF().fit(x, y)
    with pytest.raises(ValueError, match=r"y\[0\] contains a label that was not seen in fit, at word 1"):
        crf.log_likelihood(x[:1], [[(2, "z"), (0, "a"), (2, "a")]])


def agrees(tree, known):
    """By definition: what is known of a word is None, a head, a pair of a head and a label, or a set of these."""
    some = [{arc, arc[0]} for arc in tree]
    return known is None or all(
        one is None or arcs & (one if isinstance(one, set) else {one}) for arcs, one in zip(some, known, strict=True)
    )


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize(
    "known", [None, [None, None, 2], [{2, 3}, None, {0, 1}], [None, {(0, "a"), 1}, None], [(2, "b"), None, {(2, "a")}]]
)
def test_predictions_agree_with_what_is_known_of_heads(projective, known, labelled, interpreted_loops):
    x, y, _ = labelled
    model = DependencyCRF(C=1.0, projective=projective, lift=True, tol=0.1).fit(x, y)
    pairs = itertools.product("ab", repeat=3)
    shapes = [tree for tree in naive.dependency_trees(3, projective=projective) if list(tree).count(0) == 1]
    trees = [[*zip(map(int, h), names, strict=True)] for h, names in itertools.product(shapes, [*pairs])]
    left = [tree for tree in trees if agrees(tree, known)]
    shares = [model.log_likelihood(x[:1], [tree])[0] for tree in left]
    assert model.predict(x[:1], allowed=[known]) == [left[int(np.argmax(shares))]]
    assert np.isclose(model.log_likelihood(x[:1], [known])[0], np.logaddexp.reduce(shares), atol=1e-5)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([None, 4, None], r"allowed\[0\] has 4 at word 2, but heads are 0, the root, to 3"),
        ([{(1, "z")}, None, None], r"allowed\[0\] has \(1, 'z'\) at word 1, but .* labels those of fit"),
        ([None, set(), None], r"allowed\[0\] has an empty set of heads at word 2"),
        ([None, None], r"allowed\[0\] has 2 heads, but there are 3 words"),
        ("abc", r"allowed\[0\] must be a list of heads"),
        ([2, 1, None], r"allowed\[0\] leaves no output of X\[0\]"),
        ([0, 0, None], r"allowed\[0\] leaves no output of X\[0\]"),
    ],
)
def test_what_cannot_be_known_of_heads(known, message, labelled, interpreted_loops):
    x, y, _ = labelled
    with pytest.raises((TypeError, ValueError), match=message):
        DependencySVM(max_passes=1).fit(x, y).predict(x[:1], allowed=[known])


def test_crossing_arcs_are_named_or_lifted(interpreted_loops):
    x = [np.ones((5, 6, 1))]
    with pytest.raises(ValueError, match=r"y\[0\] is not projective: its arcs from 3 to 1 and from 4 to 2 cross"):
        DependencySVM().fit(x, [CROSSING])
    assert DependencySVM(projective=False, random_state=0).fit(x, [CROSSING]).score(x, [CROSSING]) >= 0
    model = DependencyCRF(lift=True).fit(x, [CROSSING])
    assert 0 <= model.score(x, [CROSSING]) <= 1
    with pytest.raises(ValueError, match=r"y\[0\] has arcs that cross, which this model gives no probability"):
        model.log_likelihood(x, [CROSSING])
    with pytest.raises(ValueError, match=r"y\[0\] has several roots, which this model gives no probability"):
        model.log_likelihood(x, [[0, 0, 2, 2, 2]])


def test_lifted_trees():
    """They are projective trees; those that were so stay as they are."""
    for single_root in (True, False):
        for tree in naive.dependency_trees(4, single_root=single_root):
            lifted = lift_crossing(tree.astype(np.int64))
            assert naive.is_tree(lifted.tolist())
            assert not naive.crossing(lifted.tolist())
            assert find_crossing(lifted) is None
            if not naive.crossing(tree.tolist()):
                assert (lifted == tree).all()
            elif single_root:
                assert (lifted == 0).sum() == 1
    assert lift_crossing(np.array(CROSSING)).tolist() == [3, 3, 0, 3, 3]
    assert read_trees([[2, 0]], np.array([2]), single_root=True)[1] is None


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("are_labelled", [False, True])
def test_trees_that_are_known_in_part(are_labelled):
    """The objective is that of the probability of all trees that agree, and weights that of a fit on whole trees."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, n + 1, 2)) for n in (1, 2, 3, 3)]
    whole = [[0], [2, 0], [0, 1, 2], [2, 0, 2]]
    known = [[0], [2, None], None, [{0, 2}, 0, 2]]
    if are_labelled:
        whole = [[(head, "a" if head else "root") for head in tree] for tree in whole]
        known = [[(0, "root")], [(2, "a"), None], None, [{(2, "a"), (2, "root")}, 0, (2, "a")]]
    model = DependencyCRF(dtype="float64", tol=1e-6).fit(X, known)
    w = model._w
    assert model.status_ is Status.STATIONARY
    assert np.isclose(model.certificate_.primal, w @ w / 8 - model.log_likelihood(X, known).mean())
    certain = [[{arc} for arc in tree] for tree in whole]
    models = [DependencyCRF(dtype="float64", tol=1e-9).fit(X, trees) for trees in (whole, certain)]
    assert np.allclose(models[0]._w, models[1]._w, atol=1e-3)
    assert DependencySVM(random_state=0).fit(X, known).status_ is Status.STATIONARY
    for bad, message in (
        ([None] * 4, "y must hold at least one head, but nothing of it is known"),
        ([[set()], None, None, None], r"y\[0\] has an empty set of heads at word 1"),
        ([None, [2, 1], None, None], r"y\[1\] leaves no output of X\[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            DependencyCRF().fit(X, bad)


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("projective", [False, True])
def test_trees_are_told_from_what_is_none(single_root, projective):
    """Alone and among others: every choice of heads of up to three words, some out of range, and some of four."""

    def is_right(heads):
        is_tree = all(0 <= h <= len(heads) for h in heads) and naive.is_tree(heads)
        return is_tree and not (single_root and heads.count(0) > 1) and not (projective and naive.crossing(heads))

    rules = {"single_root": single_root, "projective": projective}
    sets = [heads for n in (1, 2, 3) for heads in itertools.product(range(-1, n + 2), repeat=n)]
    sets += [(3, 4, 0, 3), (3, 4, 0, 2), (0, 1, 1, 3), (2, 3, 4, 0), (0, 0, 1, 2)]
    found = [are_trees(np.array(heads), np.array([0, len(heads)]), **rules) for heads in sets]
    assert found == [is_right(heads) for heads in sets]
    right = [heads for heads in sets if is_right(heads)]
    for heads in sets[::5]:
        batch = [*right, heads, *right[:3]]
        starts = np.cumsum([0, *map(len, batch)])
        assert are_trees(np.concatenate(batch), starts, **rules) == is_right(heads)
