import numpy as np

from maxmargin.text import SpanFeatures

SENTENCES = [[("The", "DT"), ("old", "JJ"), ("dog", "NN"), ("barks", "VB")], [("Stop", "VB")]]


def test_names_of_a_span():
    spans = SpanFeatures().transform(SENTENCES)
    assert [len(rows) for rows in spans] == [10, 1]
    names = {*spans[0][2]}  # of the words 0 to 3
    assert {"fw=The", "fw=The 3", "lw=dog", "bw=<start>", "aw=barks", "ft lt=DT NN 3", "lw aw=dog barks"} <= names
    assert {"ft ft+1 lt-1 lt=DT JJ JJ NN 3", "bt ft lt at=<start> DT NN VB"} <= names
    assert {"bt at=<start> <end>", "ft lt=VB VB 1"} <= {*spans[1][0]}
    assert all(len({*names}) == len(names) for rows in spans for names in rows)


def test_some_spans_have_the_names_that_they_have_among_all():
    spans = SpanFeatures().transform(iter(SENTENCES))
    chosen = spans.of_rows([np.array([2, 7]), np.array([0])])
    assert [{*names} for names in chosen[0]] == [{*spans[0][2]}, {*spans[0][7]}]
    assert len(chosen[1]) == 1


def test_words_alone_and_several_tags():
    assert SpanFeatures().transform([["dogs"]])[0][0][:4] == ["span=", "span= 1", "fw=dogs", "fw=dogs 1"]
    assert "2 ft=NNS" in SpanFeatures().transform([[("dogs", "NOUN", "NNS")]])[0][0]
