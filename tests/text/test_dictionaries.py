"""Dictionaries as annotation."""

import pytest

from maxmargin.text import tag_names

LISTS = {"LOC": ["New York", "York", "Paris"], "PER": ["Ann", "Paris Hilton", "Paris"]}


def test_names_are_known_and_the_rest_is_not():
    X = [["Ann", "saw", "New", "York"], ["Paris", "Hilton", "saw", "York"], ["ann", "ran"]]
    assert tag_names(X, LISTS) == [
        ["B-PER", None, "B-LOC", "I-LOC"],
        ["B-PER", "I-PER", None, "B-LOC"],
        [None, None],  # spelled otherwise
    ]


def test_a_name_of_two_lists_is_one_of_both():
    assert tag_names([[("in", "IN"), ("Paris", "NNP")]], LISTS) == [[None, {"B-LOC", "B-PER"}]]
    both = {"LOC": ["San Jose"], "ORG": ["San Jose"]}
    assert tag_names([["San", "Jose"]], both) == [[{"B-LOC", "B-ORG"}, {"I-LOC", "I-ORG"}]]


def test_other_words_may_be_likely_to_be_outside():
    (tags,) = tag_names([["Ann", "ran"]], LISTS, outside=0.8)
    assert tags[0] == "B-PER"
    assert tags[1] == pytest.approx({"O": 0.8, "B-LOC": 0.05, "I-LOC": 0.05, "B-PER": 0.05, "I-PER": 0.05})


def test_with_probabilities_all_are():
    (tags,) = tag_names([["Paris", "fell"]], LISTS, outside=0.8)
    assert tags[0] == {"B-LOC": 0.5, "B-PER": 0.5}


def test_bad_input():
    with pytest.raises(ValueError, match="outside"):
        tag_names([["Ann"]], LISTS, outside=1.5)
    with pytest.raises(ValueError, match="must be a list of names"):
        tag_names([["Ann"]], {"PER": "Ann"})
