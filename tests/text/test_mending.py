"""The scheme that fits best, and tags that break its rules, or are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.text import check_tags, convert_tags, find_entities, mend_tags
from maxmargin.text.mending import spells_entities
from maxmargin.text.schemes import SCHEMES

IOB1 = [
    ["I-ORG", "O", "I-MISC", "O", "O", "I-MISC"],
    ["I-PER", "I-PER"],
    ["I-LOC", "O"],
    ["O", "I-LOC", "B-LOC", "O"],
    ["O", "B-MISC", "O"],
    ["I-LOC", "O", "B-LOC"],
]


def test_a_few_tags_that_break_the_rules():
    mended = mend_tags(IOB1)
    assert (mended.scheme, mended.source, mended.n_tags) == ("IOB1", "IOB1", 20)
    assert [(fault.sequence, fault.position) for fault in mended.faults] == [(4, 1), (5, 2)]
    assert mended.y == [*IOB1[:4], ["O", "I-MISC", "O"], ["I-LOC", "O", "I-LOC"]]
    assert find_entities(mended.y) == find_entities(IOB1)
    assert mended.tell().startswith("2 of 20 tags are wrong in IOB1, the scheme that fits best")
    assert mend_tags(IOB1, "bilou").y == convert_tags(IOB1, "BILOU")
    assert mend_tags(IOB1, "bilou").source == "IOB1"


def test_a_message_names_the_first_faults():
    lines = mend_tags([*IOB1, *(["O", "B-LOC"] for _ in range(3))]).tell(lambda fault: f"{fault.sequence}").split("\n")
    assert lines[1:] == ["  4", "  5", "  6", "  and 2 more"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_sentence_of_odd_tags(scheme):
    y = convert_tags(IOB1 * 2, scheme)
    mended = mend_tags([*y, ["o", "b-PER", "?", "i-PER"]])
    assert mended.scheme == scheme
    assert mended.y[:-1] == y
    assert find_entities(mended.y[-1:]) == find_entities([["O", "B-PER", "O", "B-PER"]])
    assert {fault.sequence for fault in mended.faults} == {len(y)}
    assert "has '?' at position 2, which is no tag, and is read as 'O'" in mended.faults[-2].fault


TAGS = ["O", *(f"{prefix}-{kind}" for prefix in "BIESLU" for kind in "XY")]


@given(st.lists(st.lists(st.sampled_from(TAGS), max_size=6), max_size=4), st.sampled_from([None, *SCHEMES]))
def test_entities_stay(y, scheme):
    mended = mend_tags(y, scheme)
    check_tags(mended.y, mended.scheme)
    assert find_entities(mended.y) == find_entities(y)
    assert mended.faults or mended.y == y or mended.scheme == scheme


def test_of_schemes_that_fit_alike():
    assert mend_tags([["O"]]).scheme == "IOB2"
    assert mend_tags([["O"]], prefer="BILOU").source == "BILOU"


@pytest.mark.parametrize(
    ("y", "fault"),
    [
        ([["NN", "VB"]], "has 'NN' at position 0"),
        ([["E", "S"], ["S", "E"]], "begins with 'E', which IOBES forbids"),  # labels of some other kind
        ([["b", "i"]], "has 'b' at position 0"),
        ([["B-X", "M-X", "E-X"]], "has 'M-X' at position 1"),  # a scheme of others: O would lose its entities
        ([[1, 2]], "has 1 at position 0"),
        ([[["O"]]], r"has \['O'\] at position 0"),
    ],
)
def test_what_is_no_scheme(y, fault):
    with pytest.raises(ValueError, match=fault):
        mend_tags(y)


def test_tags_that_look_like_those_of_a_scheme():
    assert spells_entities([["B-X", "M-X", "E-X", "O"]])
    assert not spells_entities([["NN", "VB", "O"]])
    assert not spells_entities([["O", "O"]])
    assert not spells_entities([[1, 2]])
