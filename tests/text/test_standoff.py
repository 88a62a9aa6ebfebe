"""Texts as they come: tokens by characters, entities apart from the text, and files of both."""

import io
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import Tagger
from maxmargin.text import AnnotatedText, Layout, TextEntity, read_document, read_texts, tokenize, write_texts
from maxmargin.text.standoff.annotated_texts import align
from maxmargin.text.standoff.text_documents import texts_of, tokenize_texts
from maxmargin.text.standoff.tokenizer import find_tokenizer, split_blanks, tokenize_lines

TEXT = "Ann Lee left. She's in New York!"
ENTITIES = [TextEntity(0, 7, "PER", "Ann Lee"), TextEntity(23, 31, "LOC", "New York")]


def words(text, tokenizer=tokenize):
    return [[text[start:end] for start, end in sentence] for sentence in tokenizer(text)]


def entity(start, end, type_="X", text=TEXT):
    return TextEntity(start, end, type_, text[start:end])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('He said "No." Then left.', [["He", "said", '"', "No", ".", '"'], ["Then", "left", "."]]),
        ("O'Neill's dog-sitter can\u2019t.", [["O'Neill", "'s", "dog-sitter", "ca", "n\u2019t", "."]]),
        ("J. Doe, Inc. v. x 3.14%...", [["J.", "Doe", ",", "Inc.", "v", ".", "x", "3.14", "%", "..."]]),
        ("Write to a.b@c.de or https://x.y/z?q=1.", [["Write", "to", "a.b@c.de", "or", "https://x.y/z?q=1", "."]]),
        ("one\ntwo\n\nthree", [["one", "two"], ["three"]]),
        ("naïve हिन्दी 😀😀 e\u0301t\u00e9", [["naïve", "हिन्दी", "😀", "😀", "e\u0301t\u00e9"]]),
        (" \n\t", []),
    ],
)
def test_tokens(text, wanted):
    assert words(text) == wanted


@given(st.text(alphabet=st.one_of(st.sampled_from("aB.'\u2019-+@1 \n\"n"), st.characters()), max_size=40))
def test_tokens_are_all_of_a_text_but_blanks(text):
    for tokenizer in (tokenize, tokenize_lines, split_blanks):
        spans = [span for sentence in tokenizer(text) for span in sentence]
        assert all(start < end for start, end in spans)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        assert "".join(text[start:end] for start, end in spans) == "".join(text.split())


def test_odd_texts_take_no_longer_than_others():
    for piece in ("+", "a.", "a'", "-", "a@", "n't", "1,", "http://", "."):
        tokenize(50_000 * piece)  # quadratic time would not end


def test_lines_and_blanks():
    assert words("a, b.\nC", tokenize_lines) == [["a", ",", "b", "."], ["C"]]
    assert words("a, b.\n\nC", split_blanks) == [["a,", "b."], ["C"]]
    with pytest.raises(ValueError, match="tokenizer must be rules, lines, blanks, spacy:LANGUAGE, or a function"):
        find_tokenizer("nltk")


def doccano(**record):
    return io.StringIO(json.dumps(record))


def test_entities_become_tags_of_tokens():
    document = read_document(doccano(text=TEXT, label=[[0, 7, "PER"]]), Layout("doccano"))
    assert document.y == [["B-PER", "I-PER", "O", "O"], ["O"] * 6]
    assert document.X.documents == [0, 0]
    assert document.where(1, 2) == "the stream, record 1, character 20"
    (line,) = document.tagged([["O"] * 4, ["O", "O", "O", "B-LOC", "I-LOC", "O"]])
    assert json.loads(line) == {"text": TEXT, "label": [[23, 31, "LOC"]]}


def test_entities_that_are_no_tokens():
    odd = [entity(1, 7), entity(13, 14), entity(4, 12), entity(8, 17), entity(22, 32)]
    sentences, entities, faults = align(AnnotatedText(TEXT, odd, "t"), tokenize)
    assert faults == [
        "t: 'X' from 1 to 7, 'nn Lee', is no whole token, and is taken for 'Ann Lee'",
        "t: 'X' from 13 to 14, ' ', has no token, and is left out",
        "t: 'X' at 4 overlaps with a longer one or an earlier one, and is left out",
    ]
    assert len(sentences) == 1  # the fourth goes from one to the other
    assert entities == [[(0, 2, "X"), (2, 5, "X"), (7, 10, "X")]]
    with pytest.warns(UserWarning, match="1 of 1 entity does not fit tokens:\n  the stream, record 1: 'P' from 0 to 2"):
        assert read_document(doccano(text="Ann", label=[[0, 2, "P"]]), Layout("doccano")).y == [["B-P"]]


@pytest.mark.parametrize("format", ["standoff", "doccano", "labelstudio", "spacy"])
def test_what_is_written_is_read_again(format, tmp_path):
    texts = [AnnotatedText(TEXT, ENTITIES), AnnotatedText("\ud83d nobody \U0001f600 <b>\r\n", [])]
    path = tmp_path / "texts"
    write_texts(path, texts, format)
    found = read_texts(path, format)
    assert [(text.text, text.entities) for text in found] == [(text.text, text.entities) for text in texts]


def test_what_a_model_finds_is_no_annotation(tmp_path):
    write_texts(tmp_path / "tasks", [AnnotatedText("Ann", [TextEntity(0, 3, "PER", "Ann", 0.9)])], "labelstudio")
    (task,) = json.loads((tmp_path / "tasks").read_text())
    assert task["predictions"][0]["result"][0]["score"] == 0.9
    assert read_texts(tmp_path / "tasks", "labelstudio")[0].entities is None


def test_brat(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"Ann\r\nin New York, Rome")
    (tmp_path / "a.ann").write_text("T1\tPER 0 3\tAnn\nR1\tin Arg1:T1 Arg2:T2\nT2\tLOC 8 11;12 16\tNew York\n")
    (tmp_path / "b.txt").write_text("Nobody")
    (found, other) = read_texts(tmp_path)
    assert found.entities == [TextEntity(0, 3, "PER", "Ann"), TextEntity(8, 16, "LOC", "New York")]
    assert other.entities is None
    with pytest.raises(ValueError, match=r"b.txt has no entities, and none to say that there are none"):
        read_document(tmp_path)
    assert read_document(tmp_path / "a.ann").y == [["B-PER", "O", "B-LOC", "I-LOC", "O", "O"]]
    write_texts(tmp_path / "new", [found, other], "brat")
    assert [text.entities for text in read_texts(tmp_path / "new")] == [found.entities, []]
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"Ann\r\nin New York, Rome"
    write_texts(tmp_path / "lone.ann", [found])
    assert (tmp_path / "lone.txt").read_bytes() == b"Ann\r\nin New York, Rome"
    assert read_texts(tmp_path / "lone.ann")[0].entities == found.entities
    with pytest.raises(
        ValueError, match=r"b\.txt, beside b\.ann, must hold the text of its entities, but holds another"
    ):
        write_texts(tmp_path / "b.ann", [found])
    out = io.StringIO()
    write_texts(out, [found], "brat")
    assert out.getvalue() == "T1\tPER 0 3\tAnn\nT2\tLOC 8 16\tNew York\n"
    with pytest.raises(ValueError, match="for brat a folder, not to a stream"):
        write_texts(out, [found, other], "brat")


def test_entities_of_brat_in_pieces_are_told(tmp_path):
    (tmp_path / "a.txt").write_text("North and South America")
    (tmp_path / "a.ann").write_text("T1\tLOC 0 5;16 23\tNorth America\nT2\tLOC 10 15;16 23\tSouth America\n")
    told = (
        r"1 of 2 entities do not fit one pair of bounds:\n.*a.ann, line 1: 'LOC' is in pieces, and is taken for 'North"
    )
    with pytest.warns(UserWarning, match=told):
        (found,) = read_texts(tmp_path / "a.ann")
    assert [entity.text for entity in found.entities] == ["North and South America", "South America"]


def test_other_dialects():
    newer = doccano(text="Ann", entities=[{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3}], relations=[])
    assert read_texts(newer, "doccano")[0].entities == [TextEntity(0, 3, "PER", "Ann")]
    least = [{"id": 1, "text": "\U0001f600 Ann", "label": [{"start": 3, "end": 6, "text": "Ann", "labels": ["PER"]}]}]
    assert read_texts(io.StringIO(json.dumps(least)), "labelstudio")[0].entities == [TextEntity(2, 5, "PER", "Ann")]
    pair = ["Ann", {"entities": [[0, 3, "PER"]]}]
    for records in (pair, [pair], [{"text": "Ann", "ents": [{"start": 0, "end": 3, "label": "PER"}]}]):
        assert read_texts(io.StringIO(json.dumps(records)), "spacy")[0].entities == [TextEntity(0, 3, "PER", "Ann")]
    tokens = {"text": "AnnLee", "tokens": [{"start": 0, "end": 3}, {"start": 3, "end": 6}], "ents": []}
    assert read_document(io.StringIO(json.dumps(tokens)), Layout("spacy")).X == [["Ann", "Lee"]]


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        (
            "doccano",
            b'{"text": "Ann", "label": [[0, 4, "PER"]]}',
            r"'PER' is from 0 to 4, but the text has 3 characters",
        ),
        (
            "standoff",
            '{"text": "é Ann", "entities": [{"start": 3, "end": 6, "type": "PER", "text": "Ann"}]}'.encode(),
            r"'PER' is from 3 to 6, but the text has 5 characters",
        ),
        (
            "standoff",
            '{"text": "é Ann.", "entities": [{"start": 3, "end": 6, "type": "PER", "text": "Ann"}]}'.encode(),
            r"'PER' from 3 to 6 is 'nn.', but should be 'Ann': bounds must be counted in characters",
        ),
        ("doccano", b'{"text": "Ann", "label": [[0, "3", "PER"]]}', "two whole numbers and a type that is not empty"),
        ("doccano", b'{"text": "Ann", "label": [[0, 3]]}', "an entity must be a start, an end and a type"),
        ("doccano", b'{"text": "Ann", "label": 3}', "'label' must be a list, not 3"),
        ("doccano", b'{"text": "Ann"}\n{"text": ', "line 2: it is not JSON"),
        ("doccano", b'{"tokens": []}', "an object must hold a string 'text'"),
        ("doccano", b"", "holds no text"),
        ("text", b"caf\xe9", "line 1: it is not utf-8: pass the encoding of the file"),
        ("text", b" \n", "holds no text"),
        ("labelstudio", b"[3]", "a task must be an object, not 3"),
        ("spacy", b'{"text": "Ann", "tokens": [{"start": 0}]}', "tokens and sentences must have a start and an end"),
        ("brat", b"", "Files of brat are two"),
    ],
)
def test_bad_files(format, content, message):
    with pytest.raises(ValueError, match=message):
        read_texts(io.BytesIO(content), format)


def test_more_bad_input(tmp_path):
    (tmp_path / "a.txt").write_text("Ann")
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "a.ann").write_text("T1\tPER x 3\tAnn\n")
    with pytest.raises(ValueError, match="line 1: an entity must be T1"):
        read_texts(tmp_path / "a.txt", "brat")
    for bounds, message in (("0 9", "but the text has 3 characters"), ("1 3", "is 'nn', but should be 'Ann'")):
        (tmp_path / "a.ann").write_text(f"T1\tPER {bounds}\tAnn\n")
        with pytest.raises(ValueError, match=f"a.ann, line 1: 'PER' .*{message}"):
            read_texts(tmp_path / "a.txt", "brat")
    with pytest.raises(ValueError, match="holds no"):
        read_texts(empty)
    with pytest.raises(ValueError, match="Plain text has no place for entities"):
        write_texts(io.StringIO(), [AnnotatedText("Ann", [])], "text")
    with pytest.raises(ValueError, match="have no columns"):
        Layout("brat", x=0)
    with pytest.raises(ValueError, match="a token from 0 to 9 is none that begins after 0"):
        tokenize_texts(["Ann"], lambda text: [[(0, 9)]])


def test_sentences_of_files_as_texts():
    document = read_document(
        io.StringIO("-DOCSTART- O\n\nAnn B-PER\nran O\n\nRome B-LOC\n\n-DOCSTART- O\n\nBob B-PER\n")
    )
    first, second = texts_of(document, [[(0, 1, "PER")], [(0, 1, "LOC")], [(0, 1, "PER")]])
    assert (first.text, second.text) == ("Ann ran\nRome", "Bob")
    assert first.entities == [TextEntity(0, 3, "PER", "Ann"), TextEntity(8, 12, "LOC", "Rome")]


def test_taggers_of_texts(interpreted_loops):
    X = [["Ann", "Lee", "ran"], ["Rome", "fell"], ["In", "Rome"]]
    tagger = Tagger().fit(X, [["B-PER", "I-PER", "O"], ["B-LOC", "O"], ["O", "B-LOC"]])
    text = "\nAnn  Lee,\u00a0 Rome"
    person, place = tagger.tag(text)
    assert (person[:4], place[:4]) == ((1, 9, "PER", "Ann  Lee"), (12, 16, "LOC", "Rome"))
    assert 0.3 < person.probability < 1
    assert tagger.tag_all([text, "", "\n"]) == [[person, place], [], []]
    assert tagger.tag("AnnLee", lambda text: [[(0, 3), (3, 6)]])[0].text == "AnnLee"
    speech = Tagger().fit(X, [["NN", "NN", "VB"], ["NN", "VB"], ["IN", "NN"]])
    assert [found[:3] for found in speech.tag("Rome ran")] == [(0, 4, "NN"), (5, 8, "VB")]
    with pytest.raises(TypeError, match=r"texts\[0\] must be a string, not 3"):
        tagger.tag(3)
    columns = Tagger(layout=Layout(x=(0, 1), y=2, width=3)).fit([[("Ann", "NN")]], [["B-PER"]])
    with pytest.raises(ValueError, match="trained on tokens of 2 columns, but texts have words only"):
        columns.tag("Ann")
