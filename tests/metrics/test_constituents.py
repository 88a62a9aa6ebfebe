import pytest

from maxmargin.metrics import bracket_f1, bracket_report
from maxmargin.text import read_brackets

TOKENS = [("Ann", "NNP"), (",", ","), ("who", "WP"), ("sings", "VBZ"), (",", ","), ("left", "VBD"), (".", ".")]
TRUE = [(0, 7, "TOP::S"), (0, 5, "NP-SBJ"), (0, 1, "NP"), (2, 4, "SBAR"), (5, 6, "VP::PRT"), (1, 2, "X")]


def test_counts_are_those_of_evalb():
    """By hand: without punctuation the words are 0 Ann, 1 who, 2 sings, 3 left; X is around nothing."""
    found = [(0, 6, "S"), (0, 4, "NP"), (2, 6, "SBAR"), (5, 7, "ADVP::VP"), (0, 1, "VP")]
    report = bracket_report([TRUE], [found], tokens=[TOKENS])
    assert report.overall == (6, 6, 4)  # S, NP, VP and PRT as ADVP
    assert report.labels["NP"] == (2, 1, 1)
    assert (report.n_sentences, report.n_exact, report.n_uncrossed, report.n_crossing) == (1, 0, 0, 1)
    assert report.overall.f1 == bracket_f1([TRUE], [found], [TOKENS]) == 4 / 6
    same = bracket_report([TRUE] * 2, [TRUE, found], tokens=[TOKENS] * 2)
    assert (same.n_exact, same.n_uncrossed) == (1, 1)
    assert "Bracketing FMeasure       =  83.33\nComplete match            =  50.00" in str(same)


def test_all_words_count_if_tags_are_not_told():
    assert bracket_report([TRUE], [[(0, 6, "S"), (1, 2, "X")]]).overall == (7, 2, 1)


def test_a_label_that_is_there_twice_is_found_twice():
    assert bracket_report([[(0, 2, "NP::NP")]], [[(0, 2, "NP")]]).overall == (2, 1, 1)


def test_traces_do_not_count(tmp_path):
    (tmp_path / "true").write_text("( (S (NP-SBJ-1 (NNP Ann)) (VP (VBD left) (NP (-NONE- *-1))) (. .)))")
    [tree] = read_brackets(tmp_path / "true")
    assert bracket_report([tree.spans], [tree.spans], tokens=[tree.tokens]).overall == (3, 3, 3)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([], []), "y_true must hold at least one sentence"),
        (([TRUE], []), "y_true has 1 sequences, but y_pred has 0"),
        (([TRUE], [TRUE], []), "tokens must be the 1 sentences of y_true, but there are 0"),
        (([TRUE], [TRUE], [TOKENS[:3]]), r"y_true\[0\] and y_pred\[0\] must be lists of triples .* within their"),
        (([TRUE], [[(0, 1)]]), r"must be lists of triples"),
    ],
)
def test_bad_input(args, message):
    with pytest.raises(ValueError, match=message):
        bracket_report(*args)
