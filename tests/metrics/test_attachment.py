import pytest

from maxmargin.metrics import las, uas
from maxmargin.text import Sentence, Word

TRUE = [[(2, "nsubj"), (0, "root"), (2, "punct")]]


def test_shares_of_heads_and_labels():
    found = [[(2, "obj"), (0, "root"), (1, "punct")]]
    assert uas(TRUE, found) == 2 / 3
    assert las(TRUE, found) == 1 / 3
    assert uas(TRUE, found, words=[["She", "sings", "?!"]]) == 1
    assert (
        las(TRUE, found, words=[[("She", "PRON"), ("sings", "VERB"), ("\N{LEFT DOUBLE QUOTATION MARK}", "P")]]) == 0.5
    )
    assert uas([[2, 0, 2]], found, words=[["She", "sings", "$"]]) == 2 / 3  # a currency is no punctuation


def test_bad_words():
    with pytest.raises(ValueError, match="words must be the sentences of y_true"):
        uas(TRUE, TRUE, words=[["She"]])
    with pytest.raises(ValueError, match="at least one word that is not punctuation"):
        uas([[0]], [[0]], words=[["."]])


def test_trees_of_sentences():
    sentence = Sentence([Word("1", "She"), Word("1-2", "Shesings"), Word("2", "sings")])
    parsed = sentence.with_arcs([(2, "nsubj"), (0, "root")])
    assert parsed.arcs == [(2, "nsubj"), (0, "root")]
    assert sentence.with_arcs([2, 0]).column("deprel") == ["_", "_"]
    with pytest.raises(ValueError, match="Word 1, 'She', has the head '_', not a number"):
        sentence.arcs  # noqa: B018
    with pytest.raises(ValueError, match="values must hold 2 strings, one per word, but holds 1"):
        sentence.with_arcs([0])
