import numpy as np
import pytest

from maxmargin.encode.names.name_columns import Columns
from maxmargin.text import ArcFeatures

SENTENCES = [
    [("The", "DET"), ("old", "ADJ"), ("dog", "NOUN"), ("barks", "VERB")],
    [("Stop", "VERB")],
    [("dog", "NOUN"), ("barks", "VERB")],
]


def test_names_of_an_arc():
    arcs = ArcFeatures().transform(SENTENCES)
    names = arcs[0][0 * 5 + 4]  # of the article with the verb as its head
    assert {"hw=barks<", "mw=The<3", "hw mw=barks The<", "ht mt=VERB DET<3", "ht-1 ht mt=NOUN VERB DET<"} <= {*names}
    assert {name for name in names if "between" in name} == {
        f"{name}<{length}"
        for length in ("", "3")
        for tag in ("ADJ", "NOUN")
        for name in (f"ht between mt=VERB {tag} DET", f"ht between count=VERB {tag} 1", f"between count mt={tag} 1 DET")
    }
    assert "ht ht+1 mt-1 mt=<root> VERB <root> VERB>1" in arcs[1][0]
    assert not any("between" in name for name in ArcFeatures(between=False).transform(SENTENCES)[0][4])


def test_tags_between_are_counted_up_to_three():
    for n_between, count in ((1, "1"), (2, "2"), (3, "3+"), (5, "3+")):
        sentence = [("a", "A"), *[("b", "B")] * n_between, ("c", "C")]
        names = ArcFeatures().transform([sentence])[0][n_between + 2]  # of the first word, with the last as its head
        assert [name for name in names if name.startswith("ht between count") and name.endswith("<")] == [
            f"ht between count=C B {count}<"
        ]


def test_all_arcs_are_there_and_none_to_itself():
    arcs = ArcFeatures().transform(iter(SENTENCES))
    assert [len(rows) for rows in arcs] == [20, 2, 6]
    for rows, n in zip(arcs, (4, 1, 2), strict=True):
        assert [k for k, names in enumerate(rows) if not names] == [m * (n + 1) + m + 1 for m in range(n)]
        assert all(len({*names}) == len(names) for names in rows)
    assert len(arcs[1:]) == 2


def test_columns_are_those_of_the_names():
    arcs = ArcFeatures().transform(SENTENCES)
    some = {name for names in arcs[2] for name in names}
    columns = Columns(sorted(some))
    for rows, found in zip(arcs, arcs.look_up(columns), strict=True):
        expected = [sorted(columns[name] for name in names if name in some) for names in rows]
        assert [sorted(row) for row in found] == expected


def test_arcs_of_some_heads():
    arcs, heads = ArcFeatures().transform(SENTENCES), [np.array([3, 3, 4, 0]), np.array([0]), np.array([2, 0])]
    chosen = arcs.of_rows([np.arange(len(tree)) * (len(tree) + 1) + tree for tree in heads])
    for i, tree in enumerate(heads):
        assert [{*names} for names in chosen[i]] == [{*arcs[i][m * (len(tree) + 1) + h]} for m, h in enumerate(tree)]


def test_words_alone_and_several_tags():
    words = ArcFeatures().transform([["dogs", "bark"]])
    assert words[0][0] == [
        "hw=<root>>",
        "hw=<root>>1",
        "mw=dogs>",
        "mw=dogs>1",
        "hw mw=<root> dogs>",
        "hw mw=<root> dogs>1",
    ]
    both = ArcFeatures().transform([[("dogs", "NOUN", "NNS"), ("bark", "VERB", "VBP")]])
    assert {"mt=NOUN>", "2 mt=NNS>", "2 hw mt=<root> NNS>"} <= {*both[0][0]}


@pytest.mark.parametrize("sentences", ["dogs", 3, ["dogs"], [[3]]])
def test_bad_sentences(sentences):
    with pytest.raises(TypeError, match=r"X(\[0\])? (must be a list of|has)"):
        [*ArcFeatures().transform(sentences)]
