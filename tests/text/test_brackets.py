import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encode.sentences.span_trees import read_span_trees
from maxmargin.text import Constituents, read_brackets, write_brackets
from tests import naive

WSJ = """
( (S
    (NP-SBJ-1 (NNP Ann))
    (VP (VBD wanted)
      (S (NP-SBJ (-NONE- *-1))
        (VP (TO to) (VP (VB sing)))))
    (. .)))
(TOP (S (VP (VB Stop))))
"""


def read(text):
    return read_brackets(io.StringIO(text))


def written(trees):
    target = io.StringIO()
    write_brackets(target, trees)
    return target.getvalue()


def test_trees_of_a_file():
    first, second = read(WSJ)
    assert first.tokens[2:4] == [("*-1", "-NONE-"), ("to", "TO")]
    assert first.brackets[:3] == [(0, 6, ""), (0, 6, "S"), (0, 1, "NP-SBJ-1")]
    plain = first.simplified()
    assert [word for word, _ in plain.tokens] == ["Ann", "wanted", "to", "sing", "."]
    assert plain.spans == [(0, 5, "S"), (0, 1, "NP"), (1, 4, "VP"), (2, 4, "S::VP"), (3, 4, "VP")]
    assert plain.with_spans(plain.spans) == plain
    assert second.spans == [(0, 1, "S::VP")]
    assert second.with_spans([]).brackets == [(0, 1, "TOP")]
    assert read(written([first, second])) == [first, second]


@given(st.data())
def test_trees_are_read_as_they_are_written(data):
    n = data.draw(st.integers(1, 3))
    spans = data.draw(st.sampled_from([*naive.span_trees(n, 2)]))
    named = sorted(((lo, hi, ["A", "B::C"][label]) for lo, hi, label in spans), key=lambda span: (span[0], -span[1]))
    tree = Constituents([(f"w{k}", "T") for k in range(n)]).with_spans(named)
    assert tree.spans == named
    [again] = read(written([tree]))
    assert (again.tokens, again.spans) == (tree.tokens, tree.spans)
    assert len(read_span_trees([again.spans], np.array([n]))[0].lo) == len(named)


def test_brackets_that_are_words():
    assert written([Constituents([("(", "-LRB-"), ("a", "DT")], [(0, 2, "X")])]) == "(X (-LRB- -LRB-) (DT a))\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (A a))\n(S (A a)", "line 2: a bracket is opened that is not closed"),
        ("(S\n(A a)))", "line 2: a bracket is closed that was not opened"),
        ("(S (A a))\nb", "line 2: 'b' is in no bracket"),
        ("(S (A a) b)", "line 1: 'b' stands beside others, but words need a bracket of their own"),
        ("(S (A a b))", "line 1: 'b' stands beside others"),
        ("(S a (B b))", "line 1: 'a' stands beside a bracket"),
        ("(S (A a)\n(B ))", "line 2: the bracket 'B' has no words"),
        ("()", "line 1: the bracket '' has no words"),
        (" \n", "holds no tree"),
    ],
)
def test_bad_brackets(text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Constituents([("a b", "T")]), "'a b' cannot stand in brackets: words, tags and labels must have no blanks"),
        (Constituents([("a", "T")], [(0, 1, "X Y")]), "'X Y' cannot stand in brackets"),
        (Constituents([("", "T")]), "words and tags must not be empty"),
    ],
)
def test_what_cannot_be_written(tree, message):
    with pytest.raises(ValueError, match=message):
        written([tree])
