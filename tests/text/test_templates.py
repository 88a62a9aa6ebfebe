"""Templates of CRF++ and Wapiti: the features that their manuals describe, taggers with them, and broken ones."""

import pytest

import maxmargin
from maxmargin import ChainCRF, Tagger
from maxmargin.text import TemplateFeatures, read_template
from tests.cli.conftest import input_error, run
from tests.sentences import column_text, tagged_sentences

CHUNKING = """\
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]

U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""
SENTENCE = [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT"), ("current", "JJ"), ("account", "NN")]
TAGGED = tagged_sentences(12)
X, Y = [[token[:2] for token in s] for s in TAGGED], [[token[2] for token in s] for s in TAGGED]


def names_of(template, t, sentence=SENTENCE):
    return TemplateFeatures(template=template).transform([sentence])[0][t]


def test_macros_of_the_manual():
    lines = ["%x[0,0]", "%x[0,1]", "%x[-1,0]", "%x[-2,1]", "%x[0,0]/%x[0,1]", "ABC%x[0,1]123"]
    expected = ["the", "DT", "reckons", "PRP", "the/DT", "ABCDT123"]
    template = "\n".join(f"U{k}:{line}" for k, line in enumerate(lines))
    assert names_of(template, 2) == [f"U{k}:{value}" for k, value in enumerate(expected)]


def test_the_chunking_template():
    rows = TemplateFeatures(template=CHUNKING).transform([SENTENCE])
    assert rows.edge_features() is None  # B alone is the weights of transitions
    assert rows[0][2] == [
        *("U00:He", "U01:reckons", "U02:the", "U03:current", "U04:account", "U05:reckons/the", "U06:the/current"),
        *("U10:PRP", "U11:VBZ", "U12:DT", "U13:JJ", "U14:NN", "U15:PRP/VBZ", "U16:VBZ/DT", "U17:DT/JJ", "U18:JJ/NN"),
        *("U20:PRP/VBZ/DT", "U21:VBZ/DT/JJ", "U22:DT/JJ/NN"),
    ]
    assert rows[0][0][:7] == [
        *("U00:_B-2", "U01:_B-1", "U02:He", "U03:reckons", "U04:the", "U05:_B-1/He", "U06:He/reckons")
    ]
    assert rows[0][4][3:5] == ["U03:_B+1", "U04:_B+2"]


@pytest.mark.parametrize(
    ("line", "t", "expected"),
    [
        ("u:%x[-1,0]", 0, "u:_x-1"),
        ("u:%X[0,1]", 0, "u:prp"),
        ("u:%x[@0,0]", 3, "u:He"),
        ("u:%x[@-1,0]", 0, "u:account"),
        ('u:%t[0,0,"^\\u"]', 0, "u:true"),
        ('u:%t[0,0,"^\\u"]', 1, "u:false"),
        ('u:%m[0,0,"^..?"]', 1, "u:re"),
        ('u:%m[0,0,"\\d*$"]', 1, "u:"),
        ('u:%M[0,0,"^\\U*\\l"]', 1, "u:reckons"),
        ('u:%t[0,0,"a.b"]', 0, "u:false"),
        ("*:%x[0,0]", 1, "*:reckons"),
    ],
)
def test_macros_of_wapiti(line, t, expected):
    assert names_of(line, t) == [expected]


def test_transitions():
    rows = TemplateFeatures(template="U:%x[0,0]\nB\nB1:%x[-1,1]/%x[0,1]\n*2:%x[0,0]").transform(
        [SENTENCE, [("a", "b")]]
    )
    edges = rows.edge_features()
    assert edges[0][:2] == [["B1:PRP/VBZ", "*2:reckons"], ["B1:VBZ/DT", "*2:the"]]
    assert [len(sequence) for sequence in edges] == [4, 0]
    assert rows[0][1] == ["U:reckons", "*2:reckons"]
    assert rows[1:][0] == rows[1]


def test_a_template_of_another_encoding(tmp_path):
    (tmp_path / "template").write_bytes("U0:%x[0,0]\n# Größe\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"template, line 2: it is not utf-8: pass the encoding of the file."):
        read_template(tmp_path / "template")
    assert read_template(tmp_path / "template", encoding="latin-1").transform([["a"]])[0] == [["U0:a"]]


def test_taggers(tmp_path, interpreted_loops):
    (tmp_path / "template").write_text("U0:%x[0,0]\nU1:%x[-1,0]\nB1:%x[0,1]\n")
    features = read_template(tmp_path / "template")
    tagger = Tagger(features=features, model=ChainCRF(only_observed=True, C=10.0)).fit(X, Y)
    assert {*tagger.model_.edge_feature_names_in_} == {f"B1:{pos}" for pos in ("NNP", "VB", ".")}
    assert tagger.score(X, Y) > 0.9
    tagger.save(tmp_path / "a.model")
    assert maxmargin.load(tmp_path / "a.model").predict(X) == tagger.predict(X)
    found = tagger.explain(X[0], 1)
    assert abs(sum(part.value for part in found.contributions) - found.margin) < 1e-6


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("U0:%x[0,0]\nU1:%x[0", "Line 2 of the template has a broken macro"),
        ("U0:%x[0,-1]", "Line 1 of the template has a broken macro"),
        ("U0:%x(0,0)", "Line 1 of the template has a broken macro"),
        ("U0%:%x[0,0]", "Line 1 of the template has a broken macro"),
        ("U0:%x[0,0]\nU1:%", "Line 2 of the template has a broken macro"),
        ("U0:%y[0,0]", "a macro that is none"),
        ("U0:%t[0,0]", "a macro that is none"),
        ('U0:%x[0,0,"a"]', "a macro that is none"),
        ("U0:%x[5000,0]", "a macro that is none"),
        ('U0:%t[0,0,"**"]', "has the expression"),
        ("V0:%x[0,0]", "must begin with U, B or"),
        ("B", "no line of features of positions"),
        ("", "no line of features of positions"),
    ],
)
def test_broken_templates(template, message):
    with pytest.raises(ValueError, match=message):
        TemplateFeatures(template=template).fit(None)


def test_columns_that_are_not_there():
    with pytest.raises(ValueError, match=r"'U0:%x\[0,2\]' asks for column 2, but tokens of X\[0\] have 2 columns"):
        names_of("U0:%x[0,2]", 0)
    with pytest.raises(TypeError, match="template must be the text of a template, not an int"):
        TemplateFeatures(template=3).fit(None)


def test_the_command_line(tmp_path, interpreted_loops):
    (tmp_path / "train.txt").write_text(column_text(TAGGED))
    (tmp_path / "template").write_text("U0:%x[0,0]\nB1:%x[0,1]\n")
    options = ["train", tmp_path / "train.txt", "--template", tmp_path / "template", "--max-passes", 30]
    options += ["--model", tmp_path / "a.model"]
    for order in (1, 2):
        assert run(*options, "--order", order).code == 0
        assert run("predict", tmp_path / "a.model", text="Ann NNP\nleft VB\n").out.startswith("Ann NNP B-PER\n")
    (tmp_path / "template").write_text("U0:%x[0,0\n")
    assert "Line 1 of the template has a broken macro" in input_error(*options)
    usage = run(*options, "--affixes", 3)
    assert usage.code == 2
    assert "leave out --affixes" in usage.err


def test_templates_beside_other_sources_on_the_command_line(tmp_path, interpreted_loops):
    (tmp_path / "train.txt").write_text(column_text(TAGGED))
    (tmp_path / "template").write_text("U0:%x[0,0]\n")
    (tmp_path / "classes").write_text("Ann 01\nleft 1\n")
    (tmp_path / "text").write_text("Ann left\n" * 3)
    options = ["train", tmp_path / "train.txt", "--template", tmp_path / "template", "--max-passes", 2]
    options += ["--model", tmp_path / "a.model", "--window", 1, "--classes"]
    assert run(*options, f"own={tmp_path / 'classes'}").code == 0
    assert {"U0:Ann", "own=01", "own[-1]=1"} <= {*maxmargin.load(tmp_path / "a.model").model_.feature_names_in_}
    assert run("predict", tmp_path / "a.model", tmp_path / "train.txt").code == 0
    usage = run(*options, f"class={tmp_path / 'classes'}", "--unlabelled", tmp_path / "text")
    assert usage.code == 2
    assert "--unlabelled calls its classes 'class'" in usage.err
