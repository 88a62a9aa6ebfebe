"""Features by name: the same model as of the matrices they stand for, and one sentence for what is no feature."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction import DictVectorizer
from sklearn.utils import murmurhash3_32

from maxmargin import ChainCRF, ChainSVM, Tree, TreeSVM, load, save
from maxmargin.encode.names.vocabulary import learn_names

pytestmark = pytest.mark.usefixtures("interpreted_loops")

X = [
    [{"word": "the", "length": 3}, {"word": "dog", "length": 3, "last": True}],
    [{"word": "dogs", "length": 4, "first": np.bool_(True)}, {"word": "bark", "last": True, "first": False}],
]
Y = [["D", "N"], ["N", "V"]]
values = st.booleans() | st.integers(-3, 3) | st.floats(-9, 9) | st.sampled_from(["x", "y", "", "ä:"])
items = st.dictionaries(st.sampled_from(["a", "b", "c", "d e"]), values, max_size=4)


def learn(X, min_count=1, n_hashed=None):
    return learn_names(X, min_count=min_count, n_hashed=n_hashed)


@given(st.lists(st.lists(items, min_size=1, max_size=4), min_size=1, max_size=4))
def test_rows_are_those_of_a_dict_vectorizer(X):
    vectorizer = DictVectorizer(separator=":", sparse=False)
    expected = vectorizer.fit_transform([item for sequence in X for item in sequence])
    names = [name for name, column in zip(vectorizer.feature_names_, expected.T, strict=True) if column.any()]
    if not names:
        with pytest.raises(ValueError, match="at least one feature"):
            learn(X)
        return
    vocabulary, rows = learn(X)
    assert {*vocabulary.columns} == {*names}
    order = [vectorizer.vocabulary_[name] for name in vocabulary.columns]
    assert np.array_equal(rows.matrix.toarray(), expected[:, order])
    assert rows.lengths.tolist() == [len(sequence) for sequence in X]
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again == vocabulary
    assert np.array_equal(again.rows(X).matrix.toarray(), rows.matrix.toarray())


def test_nested_features_and_lists_of_names():
    vocabulary, rows = learn(
        [[{"in": {"title": 2, "list": ["a", "b"]}, "x": {"y": {"z": "w"}}}, ["x:y:z:w", "q", "q"]]]
    )
    assert [*vocabulary.columns] == ["in:title", "in:list:a", "in:list:b", "x:y:z:w", "q"]
    assert rows.matrix.toarray().tolist() == [[2, 1, 1, 1, 0], [0, 0, 0, 1, 2]]


def test_iterators_are_read_once():
    expected = learn(X)[1].matrix.toarray()
    for same in (iter(X), (iter(x) for x in X), [iter(x) for x in X], np.array(X), tuple(map(tuple, X))):
        assert np.array_equal(learn(same)[1].matrix.toarray(), expected)
    matrices = [np.eye(2), np.eye(2)]
    assert learn(iter(matrices)) == (None, matrices)
    assert ChainSVM(C=10.0, random_state=0).fit(iter(X), iter(Y)).score(iter(X), iter(Y)) == 1


def test_rare_names_are_left_out_and_unknown_ones_ignored():
    model = ChainCRF(min_count=2).fit(X, Y)
    assert model.feature_names_in_.tolist() == ["length", "last"]
    strange = [[{"word": "cat", "length": 3}, {"new": 7}]]
    assert np.allclose(model.decision_function(strange)[0], model.decision_function([[{"length": 3}, {}]])[0])


def test_names_are_hashed():
    model = ChainCRF(n_hashed=8).fit(X, Y)
    assert model.n_features_in_ == 8
    assert model.coef_.emissions.shape == (8, 3)
    assert not hasattr(model, "feature_names_in_")
    matrix = learn(X, n_hashed=8)[1].matrix
    assert matrix.sum() == learn(X)[1].matrix.sum()
    assert model.predict([[{"never seen": 1.0}]])[0].size == 1


@pytest.mark.parametrize("options", [{}, {"only_observed": True}, {"only_observed": True, "l1_ratio": 0.5}])
def test_rare_names_are_hashed(options, interpreted_loops, tmp_path):
    model = ChainCRF(min_count=2, n_hashed=4, **options).fit(X, Y)
    shared = [f"hashed:{k}" for k in range(4)]
    assert [*model.feature_names_in_] == [
        *(name for name in ("length", "last") if name in model.feature_names_in_),
        *shared,
    ]
    vocabulary, rows = learn(X, min_count=2, n_hashed=4)
    assert vocabulary.names == ["length", "last", *shared]
    whole, common = (learn(X, min_count=k)[1].matrix.toarray() for k in (1, 2))
    assert np.array_equal(rows.matrix.toarray()[:, :2], common)
    assert np.array_equal(rows.matrix.sum(axis=1), whole.sum(axis=1))
    assert np.array_equal(vocabulary.rows(X).matrix.toarray(), rows.matrix.toarray())
    assert vocabulary.rows([[["never seen"]]]).matrix[:, 2:].sum() == 1
    save(model, tmp_path / "any.model")
    for same in (pickle.loads(pickle.dumps(model)), load(tmp_path / "any.model")):
        assert np.array_equal(same.decision_function(X)[0], model.decision_function(X)[0])


def test_rare_names_of_odd_names():
    X = [[["hashed:1", "a"], ["hashed:1", "b"]]]  # that of a column onto which names are hashed
    vocabulary, rows = learn(X, min_count=2, n_hashed=2)
    assert vocabulary.names == ["hashed:0", "hashed:1"]
    assert np.array_equal(rows.matrix.toarray(), vocabulary.rows(X).matrix.toarray())
    both = vocabulary.joined(learn([[["c"], ["c"]]], min_count=2, n_hashed=2)[0])
    assert both.names == ["c", "hashed:0", "hashed:1"]
    assert both.n_rare == 2
    with pytest.raises(ValueError, match=r"^n_hashed must be 2, as before, not 3\.$"):
        vocabulary.joined(learn(X, min_count=2, n_hashed=3)[0])
    with pytest.raises(ValueError, match=r"^min_count must be above 1, as before: "):
        vocabulary.joined(learn(X, n_hashed=2)[0])


@pytest.mark.parametrize("only_observed", [False, True])
def test_the_model_is_that_of_the_matrices(only_observed):
    matrices = learn(X)[1].split()
    named, plain = (ChainCRF(only_observed=only_observed).fit(data, Y) for data in (X, matrices))
    assert np.array_equal(named._w, plain._w)
    assert not hasattr(plain, "feature_names_in_")
    trees, plain_trees = ([Tree(x, [(0, 1)]) for x in data] for data in (X, matrices))
    named, plain = (TreeSVM(only_observed=only_observed, random_state=0).fit(data, Y) for data in (trees, plain_trees))
    assert np.allclose(named._w, plain._w)
    assert named.feature_names_in_[0] == "word:the"
    assert named.score(iter(trees), Y) == plain.score(plain_trees, Y)


def test_held_out_data_and_warm_starts_have_names():
    model = ChainCRF(warm_start=True).fit(X, Y, X_dev=X, y_dev=Y)
    assert model.trace_.dev_score.max() == 1
    cold = len(ChainCRF().fit(X, Y).trace_)
    assert len(model.fit(X, Y).trace_) < cold
    renamed = [[{f"other {name}": value for name, value in item.items()} for item in sequence] for sequence in X]
    assert len(model.fit(renamed, Y).trace_) == cold


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["the dog"], r"X\[0\] must be a list of items, dictionaries or lists of names, not a str."),
        ([["the", "dog"]], r"X\[0\] has 'the' at position 0, but an item must be a dictionary or a list of names."),
        ([[{"a": 1}, 3]], r"X\[0\] has 3 at position 1, but an item must be a dictionary or a list of names."),
        (
            [[{"a": 1}], [{"a": 1}, {"b": None}]],
            r"X\[1\] has the feature \('b', None\) at position 1, but names must .*",
        ),
        ([[{"a": 1, 2: 1}]], r"X\[0\] has the feature \(2, 1\) at position 0, but names must be strings, and .*"),
        ([[{"a": 10**400}]], r"X\[0\] has the feature \('a', 1000.*\.\.\. at position 0, but names must be .*"),
        ([[{"a": [1]}]], r"X\[0\] has the feature \('a', \[1\]\) at position 0, .*"),
        ([[{"a": {2: ["b"]}}]], r"X\[0\] has the feature \('a', {2: \['b'\]}\) at position 0, .*"),
        ([[{"a": np.nan}]], r"X\[0\] contains NaN or infinity, in row 0."),
        ([[{"a": 1}], []], r"X\[1\] is empty: every sequence needs at least one item."),
        ([[{"a": 1}], np.eye(1)], r"X\[1\] must be a list of items, dictionaries or lists of names, not an ndarray."),
        (
            [np.eye(1), [{"a": 1}]],
            r"X\[1\] must be a \(T, F\) matrix of numbers, but holds dictionaries or strings, .*",
        ),
        ([[{"a": 0}]], "X must have at least one feature, but its items are empty."),
        (iter([]), "X must hold at least one sequence, but it is empty."),
    ],
)
def test_what_is_no_feature(X, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        ChainCRF().fit(X, [["A"], ["A"]])


odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2)
odder = st.recursive(odd, lambda x: st.lists(x) | st.dictionaries(odd, x) | st.tuples(x, x) | st.frozensets(odd))


@given(st.lists(st.lists(items | odder, min_size=1, max_size=4), min_size=1, max_size=4))
def test_anything_is_read_or_refused(X):
    try:
        vocabulary, rows = learn([[{"a": 1}], *X])
    except (TypeError, ValueError) as error:
        if not str(error).startswith(("X[", "X must have")):
            raise
    else:
        assert rows.matrix.shape == (1 + sum(map(len, X)), len(vocabulary.columns))


def test_a_cyclic_dictionary():
    cyclic = {}
    cyclic["a"] = cyclic
    with pytest.raises(TypeError, match=r"X\[0\] has the feature \('a', .* at position 0"):
        ChainCRF().fit([[cyclic]], [["A"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count must be an integer, at least 1, not 0."),
        ({"n_hashed": 1.5}, "n_hashed must be an integer, at least 1, not 1.5."),
        ({"n_hashed": 2**31}, "n_hashed must be at most 2147483647, not 2147483648."),
        ({"min_count": 9}, "X must have at least one feature, but min_count=9 leaves none."),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ChainCRF(**options).fit(X, Y)


def test_numbers_for_a_model_of_names():
    model = ChainCRF().fit(X, Y)
    for other in ([np.eye(7)], [sp.eye_array(7).tocsr()], iter([np.eye(7)])):
        with pytest.raises(
            TypeError, match="X must hold features by name, dictionaries or lists of strings, as in fit"
        ):
            model.predict(other)
    with pytest.raises(TypeError, match="holds dictionaries or strings"):
        ChainCRF().fit(X[0], ["D", "N"], lengths=[2])
    with pytest.raises(ValueError, match="X holds features by name: leave out lengths"):
        ChainCRF().fit(X, Y, lengths=[2, 2])


@given(st.lists(st.text(st.characters(), max_size=3), unique=True, min_size=1, max_size=6))
def test_packed_names_are_the_names(names):
    vocabulary, _ = learn([[names]])
    assert vocabulary._columns is None
    assert (vocabulary.names, vocabulary.size) == (names, len(names))
    assert [*vocabulary.columns.items()] == [(name, k) for k, name in enumerate(names)]
    assert (vocabulary.names, vocabulary.size) == (names, len(names))


def test_any_string_is_hashed():
    names = ["é", "\ud800", "", "a\0b"]
    vocabulary, rows = learn([[names]], n_hashed=1000)
    assert rows.matrix.sum() == len(names)
    assert (vocabulary.rows([[["é"]]]).matrix.indices == murmurhash3_32("é", positive=True) % 1000).all()
