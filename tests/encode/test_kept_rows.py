"""Rows that were kept while names were learned, against those that are read again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encode.inputs.node_edge_encoder import merge
from maxmargin.encode.names.kept_rows import KeptRows, keeping_rows
from maxmargin.encode.names.vocabulary import learn_names
from maxmargin.persist.spilled import SpillFile

names = st.sampled_from(["a", "b", "c", "d", "e:f"])
items = st.lists(names, max_size=4) | st.dictionaries(names, st.sampled_from([0, 1, 2.5, "x", True]), max_size=3)
portions = st.lists(st.lists(st.lists(items, min_size=1, max_size=4), min_size=1, max_size=3), min_size=1, max_size=4)


@given(portions)
def test_kept_rows_are_those_that_are_read_again(portions):
    if not all(any(name for sequence in X for item in sequence for name in item) for X in portions):
        return
    home, union, all_kept = SpillFile(), None, []
    for X in portions:
        all_kept.append(KeptRows(home))
        with keeping_rows(all_kept[-1]):
            try:
                vocabulary, _ = learn_names(X, min_count=1, n_hashed=None, former=union)
            except ValueError:  # no feature but zeros
                return
        union = vocabulary if union is None else union.joined(vocabulary)
    for X, kept in zip(portions, all_kept, strict=True):
        read_again, rows = learn_names(X, min_count=1, n_hashed=None, former=union)
        with keeping_rows(kept, again=True):
            taken_from, taken = learn_names([[["of no use"]]], min_count=1, n_hashed=None, former=union)
        assert taken_from == read_again == union
        assert taken.matrix.shape == rows.matrix.shape
        assert (taken.matrix != rows.matrix).nnz == 0
        assert np.array_equal(taken.starts, rows.starts)
        assert taken.matrix.data.dtype == rows.matrix.data.dtype


def test_rare_names_are_read_again():
    kept = KeptRows(SpillFile())
    with keeping_rows(kept):
        vocabulary, _ = learn_names([[["a", "b"]], [["a"]]], min_count=2, n_hashed=None)
    with keeping_rows(kept, again=True):
        assert learn_names([[["a"]]], min_count=2, n_hashed=None, former=vocabulary)[1].matrix.toarray().tolist() == [
            [1]
        ]


def test_vocabularies_that_begin_with_others():
    def learn(X, former=None):
        return learn_names(X, min_count=1, n_hashed=None, former=former)[0]

    first, other = learn([[["a", "b"]]]), learn([[["c", "a"]]])
    longer = learn([[["c", "a"]]], first)
    assert first.joined(longer) is longer
    assert longer.names == ["a", "b", "c"]
    assert first.columns_in(longer).tolist() == [0, 1]
    assert first.joined(other).names == ["a", "b", "c"]
    assert other.columns_in(longer).tolist() == [2, 0]
    assert learn([[["ab"]]]).columns_in(learn([[["abc"]]])).tolist() == [-1]


@given(st.lists(st.integers(-2, 9)), st.lists(st.integers(-2, 9)))
def test_merged_numbers(a, b):
    assert np.array_equal(merge(np.array(a, np.int64), np.array(b, np.int64)), np.union1d(a, b))
