"""Entities and labels are counted as conlleval counts them, by a reference that goes by its rules one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.metrics import (
    confusion,
    entity_f1,
    entity_precision,
    entity_recall,
    entity_report,
    sequence_accuracy,
    token_accuracy,
)
from maxmargin.text import convert_tags
from maxmargin.text.schemes import SCHEMES
from tests import naive

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "B-Z-1", "I-Z-1"]


@st.composite
def pairs(draw):
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    chosen = st.sampled_from(draw(st.sampled_from([TAGS, [tag.replace("B", "E") for tag in TAGS]])))
    return tuple([draw(st.lists(chosen, min_size=n, max_size=n)) for n in lengths] for _ in range(2))


@given(pairs())
def test_scores_are_those_of_conlleval(pair):
    report = entity_report(*pair)
    expected = naive.conlleval(*pair)
    assert str(report) == expected
    overall = report.overall
    assert (overall.precision, overall.recall) == (entity_precision(*pair), entity_recall(*pair))
    assert overall.f1 == entity_f1(*pair)
    assert sum(score.n_right for score in report.types.values()) == overall.n_right


@given(pairs(), st.sampled_from([*SCHEMES]), st.sampled_from([*SCHEMES]))
def test_the_scheme_does_not_matter(pair, first, second):
    converted = convert_tags(pair[0], first), convert_tags(pair[1], second)
    assert entity_report(*converted)[:2] == entity_report(*pair)[:2]


@given(pairs())
def test_labels_are_counted(pair):
    true, predicted = (np.concatenate(y) for y in pair)
    assert token_accuracy(*pair) == np.mean(true == predicted)
    assert sequence_accuracy(*pair) == np.mean([a == b for a, b in zip(*pair, strict=True)])
    labels, counts = confusion([np.array(row) for row in pair[0]], pair[1])
    assert labels == sorted({*true, *predicted})
    assert counts.tolist() == [[np.sum((true == a) & (predicted == b)) for b in labels] for a in labels]


def test_numbers_are_labels_too():
    assert token_accuracy([np.array([0, 1])], [[0, 0]]) == 0.5
    assert confusion([[0, 10]], [[10, 10]]).counts.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entity_f1([["O"]], [["O"], ["O"]]), "y_true has 1 sequences, but y_pred has 2."),
        (lambda: entity_f1([["O"]], [["O", "O"]]), r"y_true\[0\] has 1 labels, but y_pred\[0\] has 2."),
        (lambda: entity_f1([[]], [[]]), "y_true must hold at least one label."),
        (lambda: entity_f1(["O"], ["O"]), r"y_true\[0\] must be a list, not a str."),
        (lambda: token_accuracy(["a"], 3), r"y_true\[0\] must be a list, not a str."),
        (lambda: entity_f1([["O"]], [["DET"]]), r"y_pred\[0\] has 'DET' at position 0, but tags are O, or one of .*"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        call()
