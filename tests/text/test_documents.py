"""Files of any format: what is read, where it is, and how it is written again."""

import io
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.text import Layout, TagError, check_tags, find_format, read_document, stream_documents

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
    assert read_document(io.StringIO("ran\n"), layout, needs_tags=False).X == [["ran"]]
    for text, needs_tags, expected in (
        ("ran VBD\n", True, "3"),
        ("ran\n", True, "3"),
        ("ran VBD O O\n", False, "3 or, without tags, 1 or 2"),
    ):
        with pytest.raises(ValueError, match=rf"line 1: it has . columns?, but {expected} were expected"):
            read_document(io.StringIO(text), layout, needs_tags=needs_tags)


@pytest.mark.parametrize(
    ("x", "y", "text", "found"),
    [
        ((0, 2), 3, "a b c\n", ("a", "c")),  # all but the tags
        ((0, 2), 3, "a c\n", ("a", "c")),  # the tokens alone
        ((0,), 3, "a b\n", "a"),
        ((1,), 2, "a\n", "a"),
        ((0, 2), 1, "a c\n", ("a", "c")),  # where tags were in between
    ],
)
def test_what_is_no_part_of_tokens_may_be_missing(x, y, text, found):
    document = read_document(io.StringIO(text), Layout(x=x, y=y, width=4), needs_tags=False)
    assert (document.X, document.y) == ([[found]], None)


def test_a_single_column_is_that_of_words():
    document = read_document(io.StringIO("He\nran\n"), needs_tags=False)
    assert (document.X, document.y, document.layout.width) == ([["He", "ran"]], None, 2)
    assert [*document.tagged([["A", "B"]])] == ["He A", "ran B"]
    with pytest.raises(ValueError, match="has one column only"):
        read_document(io.StringIO("He\n"))


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


CONLLU = "".join(f"# text\n1\t{w}" + "\t_" * 8 + "\n2\té" + "\t_" * 8 + "\n\n" for w in "abc")
STREAMS = {
    "columns": "\ufeff-DOCSTART- x\r\n\r\nHe B-NP\r\nran é\r\n\r\n\r\nStop O\n\n \nGo \U0001f600\n\n# the end\n",
    "conllu": CONLLU,
    "json": '{"tokens": ["He", "é"], "tags": [1, 2]}\n\n{"tokens": ["Stop"]}\n{"tokens": ["\\ud800"]}',
}


class Pieces(io.RawIOBase):
    """A stream that holds so many bytes at a time."""

    def __init__(self, content, sizes):
        self.content, self.sizes = content, iter(sizes)

    def readable(self):
        return True

    def read1(self, size):
        n = min(size, next(self.sizes, size))
        piece, self.content = self.content[:n], self.content[n:]
        return piece


@given(st.sampled_from([*STREAMS]), st.lists(st.integers(1, 30), max_size=30), st.integers(1, 4))
def test_parts_of_streams_are_those_of_the_whole(format, sizes, most):
    content, layout = STREAMS[format].encode(), Layout(format, comments="#")
    whole = read_document(io.BytesIO(content), layout, needs_tags=False)
    parts = [*stream_documents(Pieces(content, sizes), layout, most=most)]
    assert [x for part in parts for x in part.X] == whole.X
    assert [number for part in parts for number in part.numbers] == whole.numbers
    assert all(len(part.X) <= most for part in parts)
    assert {part.layout for part in parts} == {whole.layout}
    tags = [["T"] * len(x) for x in whole.X]
    lines = [line for part in parts for line in part.tagged([["T"] * len(x) for x in part.X])]
    assert lines == [*whole.tagged(tags)]
    assert "\n".join(lines).encode()  # which halves of surrogate pairs would prevent


@pytest.mark.parametrize("format", STREAMS)
def test_sentences_of_a_pipe_do_not_wait_for_the_next(format):
    inner, outer = os.pipe()
    with os.fdopen(inner, "rb") as source, os.fdopen(outer, "wb", buffering=0) as pipe:
        parts = stream_documents(source, Layout(format, comments="#"))
        sentence = {"columns": "He O\n\n", "conllu": CONLLU[: CONLLU.index("\n\n") + 2], "json": '{"tokens": ["He"]}\n'}
        for part in range(2):
            pipe.write(sentence[format].encode() + b"#"[: format != "json"])  # and what does not end there
            assert len(next(parts).X) == 1, part
            pipe.write(b"\n"[: format != "json"])


def test_errors_of_streams_name_the_line():
    parts = stream_documents(Pieces(b"a O\n\nb O\n\nc\n", [5, 5]), Layout(), name="it")
    assert len([next(parts), next(parts)]) == 2
    with pytest.raises(ValueError, match="it, line 5: it has 1 column, but line 1 has 2"):
        next(parts)
    with pytest.raises(ValueError, match="it, line 3: it is not utf-8"):
        [*stream_documents(Pieces(b"a O\n\n\xc3", [5]), Layout(), name="it")]
    with pytest.raises(ValueError, match="it holds no sentence"):
        [*stream_documents(Pieces(b"\n\n", []), Layout(), name="it")]


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
