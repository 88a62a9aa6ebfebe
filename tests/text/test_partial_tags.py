"""Tags that are known in part: how files have them, and which scheme they are of."""

import io

import pytest

from maxmargin.text import Layout, mend_tags, read_columns, read_document, read_json_lines
from maxmargin.text.partial_tags import check_known, tags_in

EVERYTHING = {"B-PER", "I-PER", "O"}


def test_columns_with_a_tag_that_means_unknown():
    text = "Ann B-PER\nLee I-PER\nran UNK\n\nStop UNK\n"
    assert read_columns(io.StringIO(text), unknown="UNK")[1] == [["B-PER", "I-PER", None], [None]]
    assert read_document(io.StringIO(text), Layout(unknown="UNK")).y == [["B-PER", "I-PER", None], [None]]
    assert read_columns(io.StringIO(text))[1] == [["B-PER", "I-PER", "UNK"], ["UNK"]]


def test_json_lines_with_null_and_lists():
    line = '{"tokens": ["Ann", "Lee", "ran"], "tags": ["B-PER", ["I-PER", "O"], null]}\n'
    expected = [["B-PER", {"I-PER", "O"}, None]]
    assert read_json_lines(io.StringIO(line))[1] == expected
    document = read_document(io.StringIO(line), Layout("json"))
    assert document.y == expected
    assert '"predicted": ["O", "O", "O"]' in next(document.tagged([["O", "O", "O"]]))  # lines stay as they were
    assert '["I-PER", "O"], null]' in next(document.tagged([["O", "O", "O"]]))


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ('["O", []]', r"line 1: 'tags' holds a list without a label: \['O', \[\]\]"),
        ('["O", [1]]', r"line 1: 'tags' must hold strings in all lines or integers in all, not both"),
        ('["O", [["O"]]]', r"line 1: 'tags' must hold strings or integers, not"),
        ('["O", {"O": 1}]', r"line 1: 'tags' must hold strings or integers, not"),
    ],
)
def test_bad_json(tags, message):
    with pytest.raises(ValueError, match=message):
        read_json_lines(io.StringIO(f'{{"tokens": ["a", "b"], "tags": {tags}}}\n'))


def test_the_scheme_is_that_of_what_is_known():
    found = mend_tags([["B-PER", "I-PER", None], [None, {"B-PER", "O"}]])
    assert (found.scheme, found.source, found.faults) == ("IOB2", "IOB2", [])
    assert found.y == [["B-PER", "I-PER", EVERYTHING], [EVERYTHING, {"B-PER", "O"}]]
    assert mend_tags([["B-PER", "L-PER", None], [None, "U-PER"]]).scheme == "BILOU"


def test_tags_known_in_part_are_not_converted():
    y = [["B-PER", "I-PER", None]]
    assert mend_tags(y, "bio").scheme == "IOB2"
    with pytest.raises(ValueError, match="scheme must be 'auto' or 'IOB2', the scheme of y, not 'BILOU'"):
        mend_tags(y, "bilou")
    with pytest.raises(ValueError, match="has 'X' at position 0, but tags are O, or one of"):
        mend_tags([["B-PER", {"X"}]])
    with pytest.raises(ValueError, match="y must hold at least one tag of an entity"):
        mend_tags([["O", None]])


def test_tags_to_compare_with_are_known():
    check_known([["O", 1]], "y_dev")
    with pytest.raises(ValueError, match=r"y_dev\[1\] has None at position 0, but tags to compare with must be known"):
        check_known([["O"], [None]], "y_dev")


def test_all_tags_that_are_named():
    assert tags_in([["a", None], [{"b", "c"}, {"d": 0.5, "a": 0.5}]]) == {*"abcd"}
