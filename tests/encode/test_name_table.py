"""Tables of names: the columns of a dictionary, whatever the names, of many at once, in compiled and in plain loops."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import ChainCRF
from maxmargin.encode.names import name_table
from maxmargin.encode.names.name_columns import Columns
from maxmargin.encode.names.name_table import JoinedNames, NameTable
from maxmargin.encode.names.vocabulary import Vocabulary
from maxmargin.runtime import interpreted
from maxmargin.runtime.modes import as_on_much_data
from maxmargin.text import WindowFeatures
from maxmargin.text.strings import Affixes, Strings

STRINGS = st.lists(st.text(st.sampled_from("ab\n\0é\ud800😀"), max_size=3), min_size=1, max_size=80)


@given(STRINGS, STRINGS, st.sampled_from(["", "a", "é\n"]))
def test_columns_are_those_of_a_dictionary(names, others, title):
    names = [*dict.fromkeys(names)]
    table, known = NameTable(JoinedNames.of(names)), Columns(names)
    values = [*others, None, *names, None, "a", ""]
    assert table.find(values) == known.find(values)
    expected = known.find([None if value is None else title + value for value in values])
    assert table.find_titled(title, Strings(values)).tolist() == expected
    with interpreted():
        assert NameTable(JoinedNames.of(names)).find_titled(title, Strings(values)).tolist() == expected
    assert [table[name] for name in names] == [*range(len(names))]


@given(STRINGS, STRINGS, st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_affixes_of_many_strings_are_those_of_each(names, strings, n):
    names, whole = [*dict.fromkeys(names)], Strings(strings)
    cut = [(string[:n] if n > 0 else string[n:]) if len(string) >= abs(n) else None for string in strings]
    assert [*Affixes(whole, n)] == cut == [*Affixes(whole, n)[:]]
    assert [Affixes(whole, n)[k] for k in range(len(cut))] == cut
    found = NameTable(JoinedNames.of(names)).find_titled("", Affixes(whole, n))
    assert found.tolist() == Columns(names).find(cut)


@given(STRINGS)
def test_packed_names_are_unpacked(names):
    packed = JoinedNames.of(names)
    assert packed.unpack() == names
    assert packed.unpack(len(names) // 2) == names[len(names) // 2 :]


@pytest.mark.parametrize("seed", range(3))
def test_names_that_share_a_slot_are_told_apart(seed):
    names = [*"abc", *np.random.default_rng(seed).permutation(5000).astype(str).tolist()]
    known = names[::2]
    assert NameTable(JoinedNames.of(known)).find([*names, *names[::3]]) == Columns(known).find([*names, *names[::3]])


def test_names_of_one_hash(monkeypatch):
    monkeypatch.setattr(name_table, "PRIME", 0)
    names = [*"abcdefgh"]
    with interpreted():
        table = NameTable(JoinedNames.of(names))
        assert table.find(["h", "x", "a", None, "e"]) == [7, -1, 0, -1, 4]


def test_a_dictionary_is_made_where_few_names_are_asked_for_often(monkeypatch):
    monkeypatch.setattr(name_table, "ENOUGH", 2)
    table = NameTable(JoinedNames.of(["a", "b"]))
    assert [table.find(["b", "c", None]) for _ in range(4)] == 4 * [[1, -1, -1]]
    assert "columns" in vars(table)


def test_a_vocabulary_of_many_names_has_a_table():
    with as_on_much_data():
        vocabulary = Vocabulary(["a", "b", "c\n"])
        assert isinstance(vocabulary.known, NameTable)
        assert vocabulary.names == ["a", "b", "c\n"]
        assert vocabulary == pickle.loads(pickle.dumps(vocabulary)) == Vocabulary.packed(vocabulary.columns)
        with pytest.raises(ValueError, match=r"^names must differ from each other\.$"):
            Vocabulary(["a", "b", "a"])
        assert Vocabulary(n_hashed=3).known.find(["a", None]) == Vocabulary(n_hashed=3).known.find(["a", None])
        dense = [Vocabulary.packed(Columns(["a", "b", "c"]), n_dense) for n_dense in (1, 1, 2)]
        assert dense[0] == dense[1] != dense[2]
    assert vocabulary == Vocabulary(["a", "b", "c\n"])
    assert vocabulary != Vocabulary(["a", "b"])


def test_a_model_predicts_the_same_by_a_table():
    X = [["the", "dog"], ["dogs", "bark"], ["the", "Dog", "barks", "é"]]
    y = [["D", "N"], ["N", "V"], ["D", "N", "V", "X"]]
    features = WindowFeatures()
    model = ChainCRF(C=10.0).fit(features.transform(X), y)
    lists = [*map(list, features.transform(X))]
    expected = model.decision_function(lists)
    with as_on_much_data():
        again = pickle.loads(pickle.dumps(model))
        assert isinstance(again._encoder.vocabulary.known, NameTable)
        for rows in (WindowFeatures().transform(X), lists):
            assert all(map(np.array_equal, again.decision_function(rows), expected))
        found = [again.predict(WindowFeatures().transform([x]))[0].tolist() for x in X]
    assert found == [tags.tolist() for tags in model.predict(lists)]
