"""Schemes: every labelling with entities is spelled, read back and told apart as their definitions say."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.text import Entity, check_tags, convert_tags, find_entities, find_scheme
from maxmargin.text.schemes import SCHEMES, spell_entities
from tests.naive import conlleval_chunks

PREFIXES = {name: [p for p in scheme.prefixes if p != "O"] for name, scheme in SCHEMES.items()}


def sets_of_entities(length):
    """All ways to put entities of two types on a few tokens."""
    if length == 0:
        yield []
        return
    for rest in sets_of_entities(length - 1):
        yield rest
    for start, kind in itertools.product(range(length), "XY"):
        for rest in sets_of_entities(start):
            yield [*rest, Entity(start, length, kind)]


def spelled(entities, length, scheme):
    """Tags by the definition of each scheme, token by token."""
    tags = ["O"] * length
    for start, end, kind in entities:
        for t in range(start, end):
            begins, ends = t == start, t == end - 1
            after_same = any(e.end == start and e.type == kind for e in entities)
            before_same = any(e.start == end and e.type == kind for e in entities)
            tags[t] = {
                "IOB1": "B" if begins and after_same else "I",
                "IOB2": "B" if begins else "I",
                "IOE1": "E" if ends and before_same else "I",
                "IOE2": "E" if ends else "I",
                "IOBES": "S" if begins and ends else "B" if begins else "E" if ends else "I",
                "BILOU": "U" if begins and ends else "B" if begins else "L" if ends else "I",
            }[scheme] + f"-{kind}"
    return tags


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_valid_labellings_are_those_that_spell_entities(scheme):
    length = 3
    valid = {}
    for entities in sets_of_entities(length):
        tags = spelled(entities, length, scheme)
        valid[tuple(tags)] = entities
        assert find_entities([tags]) == [entities]
        check_tags([tags], scheme)
        for other in SCHEMES:
            assert convert_tags([tags], other) == [spelled(entities, length, other)]
    everything = ["O", *(f"{p}-{kind}" for p in PREFIXES[scheme] for kind in "XY")]
    for tags in itertools.product(everything, repeat=length):
        if tags not in valid:
            with pytest.raises(ValueError, match=rf"^y\[0\] (goes|begins|ends) .*, which {scheme} forbids\.$"):
                check_tags([tags], scheme)


@given(st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), max_size=6), max_size=4))
def test_entities_are_those_of_conlleval(y):
    assert find_entities(y) == [conlleval_chunks(tags) for tags in y]
    assert find_entities(convert_tags(y, "bio")) == find_entities(y)
    check_tags(convert_tags(y, "IOB2"), "IOB2")


@given(st.lists(st.lists(st.sampled_from(["O", "E-X", "I-X", "E-Y", "I-Y"]), max_size=6), max_size=4))
def test_entities_with_ends_are_those_of_conlleval(y):
    assert find_entities(y) == [conlleval_chunks(tags) for tags in y]


@given(st.lists(st.lists(st.sampled_from(["O", "B", *(f"{p}-{kind}" for p in "BIESLU" for kind in "XY")]))))
def test_converted_tags_spell_the_same_entities(y):
    for scheme in SCHEMES:
        rows = zip(find_entities(y), map(len, y), strict=True)
        assert convert_tags(y, scheme) == [spell_entities(entities, length, scheme) for entities, length in rows]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_are_found(scheme):
    entities = [Entity(0, 2, "X"), Entity(2, 3, "X"), Entity(3, 5, "X"), Entity(6, 7, "Y")]
    assert find_scheme([spelled(entities, 8, scheme), np.array(["O"])]) == scheme


def test_what_fits_several_schemes():
    assert find_scheme([["O", "O"]]) == find_scheme([]) == "IOB2"
    assert find_scheme([["I-X", "I-X", "O"]]) == "IOB1"
    assert find_scheme([["B", "I", "O"]]) == "IOB2"
    assert convert_tags([["B", "I", "O"]], "BIOES") == [["B", "E", "O"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: find_scheme([["O", "NN"]]),
            r"y\[0\] has 'NN' at position 1, but tags are O, or one of B, I, E, S, L .*",
        ),
        (lambda: find_scheme([["O"], ["O-X"]]), r"y\[1\] has 'O-X' at position 0, but tags are .*"),
        (lambda: find_scheme([[1]]), r"y\[0\] has 1 at position 0, but tags are .*"),
        (lambda: find_scheme([[["O"]]]), r"y\[0\] has \['O'\] at position 0, but tags are .*"),
        (lambda: find_scheme(["O", "O"]), r"y\[0\] must be a sequence of tags, not 'O'\."),
        (lambda: find_scheme("O"), r"y must be a list of sequences of tags, not a str\."),
        (lambda: find_scheme([["L-X", "E-X"]]), r"y has tags that begin with E, L, which no scheme has together\."),
        (
            lambda: find_scheme([["B-X", "O", "I-X"]]),
            r"y breaks the rules of IOB2, IOBES, BILOU, IOB1: y\[0\] goes from 'O' to 'I-X' at position 2, .*",
        ),
        (
            lambda: find_scheme([["I-X", "O"], ["I-X"], ["O", "B-X"]]),
            r"y breaks the rules of .*: y\[2\] goes from 'O' to 'B-X' at position 1, which IOB1 forbids\.",
        ),
        (lambda: check_tags([["S-X"]], "bio"), r"y\[0\] has 'S-X' at position 0, which is no tag of IOB2\."),
        (lambda: check_tags([["I-X"]], "BIO"), r"y\[0\] begins with 'I-X', which IOB2 forbids\."),
        (lambda: check_tags([["O", "B-X"]], "bilou"), r"y\[0\] ends with 'B-X', which BILOU forbids\."),
        (lambda: convert_tags([["O"], ["O", "P-X"]], "IOB2"), r"y\[1\] has 'P-X' at position 1, but tags are O, .*\."),
        (lambda: convert_tags([["O", []]], "IOB2"), r"y\[0\] has \[\] at position 1, but tags are O, .*\."),
        (lambda: convert_tags([["O"]], "IOB3"), r"scheme must be one of IOB2, IOBES, .*, not 'IOB3'\."),
    ],
)
def test_what_is_no_scheme(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        call()
