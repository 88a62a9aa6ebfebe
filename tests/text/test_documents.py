"""Files of any format: what is read, where it is, and how it is written again."""

import io
import json

import pytest

from maxmargin.text import Layout, TagError, check_tags, find_format, read_document

COLUMNS = "\ufeff# a comment\r\nHe PRP B-NP\r\nran VBD B-VP\r\n\r\n-DOCSTART- -X- O\r\n\r\nStop VB B-VP"


def test_columns():
    document = read_document(io.StringIO(COLUMNS), Layout(comments="#"), name="a.txt")
    assert document.X == [[("He", "PRP"), ("ran", "VBD")], [("Stop", "VB")]]
    assert document.y == [["B-NP", "B-VP"], ["B-VP"]]
    assert [document.where(0, 1), document.where(1)] == ["a.txt, line 3", "a.txt, line 7"]
    assert document.layout == Layout(x=(0, 1), y=2, width=3, comments="#")
    lines = [*document.tagged([["X", "Y"], ["Z"]], [[0.5, 1.0], [0.25]])]
    assert lines[1:3] == ["He PRP B-NP X 0.5000", "ran VBD B-VP Y 1.0000"]
    assert lines[6:] == ["Stop VB B-VP Z 0.2500"]


def test_a_layout_that_was_read_reads_others():
    layout = read_document(io.StringIO("He PRP B-NP\n"), Layout(x=[0], y=2)).layout
    assert (layout.x, layout.y, layout.width) == (0, 2, 3)
    without = read_document(io.StringIO("ran VBD\n"), layout, needs_tags=False)
    assert (without.X, without.y) == ([["ran"]], None)
    for text, needs_tags in (("ran VBD\n", True), ("ran\n", False), ("ran VBD O O\n", False)):
        with pytest.raises(ValueError, match=r"line 1: there are . columns, but 3 were expected"):
            read_document(io.StringIO(text), layout, needs_tags=needs_tags)


def test_separators_stay():
    document = read_document(io.StringIO("New York\tO\n"), Layout(separator="\t"))
    assert document.X == [["New York"]]
    assert [*document.tagged([["B-LOC"]])] == ["New York\tO\tB-LOC"]
    assert [*read_document(io.StringIO("York\tO\n")).tagged([["B-LOC"]])] == ["York\tO\tB-LOC"]


def test_json_lines():
    lines = '{"id": 7, "tokens": ["He", "ran"], "tags": [1, 2]}\n\n{"tokens": ["Stop"], "tags": [2]}\n'
    document = read_document(io.StringIO(lines), Layout("json"), name="a.jsonl")
    assert (document.X, document.y) == ([["He", "ran"], ["Stop"]], [[1, 2], [2]])
    assert document.where(1, 0) == "a.jsonl, line 3"
    written = [json.loads(line) for line in document.tagged([[1, 1], [2]]) if line]
    assert written[0] == {"id": 7, "tokens": ["He", "ran"], "tags": [1, 2], "predicted": [1, 1]}
    for text, problem in (
        ('{"tokens": ["a", ["b", "c"]]}', "has 2 strings, but the first token 1"),
        ('{"tokens": [1]}', "tokens must be strings or lists of strings, not 1"),
        ('{"tokens": [[]]}', "tokens must be strings"),
        ('{"tokens": ["a"], "tags": "O"}', "must hold a list 'tags'"),
    ):
        with pytest.raises(ValueError, match=f"a.jsonl, line 1: .*{problem}"):
            read_document(io.StringIO(text), Layout("json"), needs_tags=False, name="a.jsonl")


def test_conllu():
    text = "# text\n1-2\tdu" + "\t_" * 8 + "\n1\tde\t_\tADP\tP" + "\t_" * 5 + "\n2\tle\t_\tDET\tD" + "\t_" * 5 + "\n\n"
    document = read_document(io.StringIO(text), Layout("conllu", x=["form", "xpos"]), name="a.conllu")
    assert (document.X, document.y) == ([[("de", "P"), ("le", "D")]], [["ADP", "DET"]])
    assert document.where(0, 1) == "a.conllu, line 4"
    assert "\n".join([*document.tagged([["X", "Y"]]), ""]) == text.replace("ADP", "X").replace("DET", "Y")
    bare = text.replace("ADP", "_").replace("DET", "_")
    with pytest.raises(ValueError, match="has no tags in its column 'upos'"):
        read_document(io.StringIO(bare), Layout("conllu"))
    assert read_document(io.StringIO(bare), Layout("conllu"), needs_tags=False).y is None


def test_bad_layouts():
    for options in ({"format": "xml"}, {"x": "form"}, {"format": "conllu", "x": "word"}, {"y": [0, 1]}):
        with pytest.raises(ValueError, match="must be"):
            Layout(**options)
    with pytest.raises(ValueError, match="Column 3 was asked for, but the stream has 2"):
        read_document(io.StringIO("a O\n"), Layout(x=3))
    assert [find_format(name) for name in ("a.CONLLU", "a.ndjson", "a", None)] == [
        "conllu",
        "json",
        "columns",
        "columns",
    ]


def test_errors_of_tags_say_where():
    with pytest.raises(TagError) as found:
        check_tags([["O"], ["O", "O", "I-X"]], "IOB2")
    assert (found.value.sequence, found.value.position) == (1, 2)
