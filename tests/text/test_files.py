"""Files of tagged sentences: what is written is read again, and errors name file and line."""

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.text import (
    Sentence,
    Word,
    read_columns,
    read_conllu,
    read_json_lines,
    write_columns,
    write_conllu,
    write_json_lines,
)

words = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=5).filter(
    lambda word: word.strip() == word and word != "-DOCSTART-" and word[0] != "\ufeff"
)
sentences = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=4)
TREE = """# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
2.1\tlejos\t_\t_\t_\t_\t_\t_\t_\t_
3\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_

"""


def file(text):
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    stream.name = "train.txt"
    return stream


@given(sentences, st.sampled_from([" ", "\t", ";;"]))
def test_columns_are_read_as_they_were_written(X, separator):
    X = [[word.replace(";", ":") for word in sentence] for sentence in X]
    y = [[word[::-1] for word in sentence] for sentence in X]
    target = io.StringIO()
    write_columns(target, X, y, separator=separator)
    assert read_columns(io.StringIO(target.getvalue()), separator=separator) == (X, y)
    both = [[*zip(*pair, strict=True)] for pair in zip(X, y, strict=True)]
    again = io.StringIO()
    write_columns(again, both, separator=separator)
    assert again.getvalue() == target.getvalue()
    if separator != ";;":
        assert read_columns(io.StringIO(target.getvalue()), y=None) == (both, None)


def test_line_ends_marks_documents_and_comments(tmp_path):
    path = tmp_path / "data.txt"
    text = "\ufeff-DOCSTART- -X- O\r\n\r\n# a comment\r\nEuropa  NE\tB-LOC \r\n \t\r\n\r\n# # O"
    path.write_bytes(text.encode())
    X, y = read_columns(path, comments="# a")
    assert (X, y) == ([[("Europa", "NE")], [("#", "#")]], [["B-LOC"], ["O"]])
    assert read_columns(str(path), x=0, comments="# a")[0] == [["Europa"], ["#"]]
    assert read_columns(path, x=[-1, 0], y=1, comments="# a") == (
        [[("B-LOC", "Europa")], [("O", "#")]],
        [["NE"], ["#"]],
    )
    path.write_bytes("Straße O\n".encode("latin-1"))
    assert read_columns(path, encoding="latin-1")[0] == [["Straße"]]
    write_columns(path, [["Straße"]])
    assert path.read_bytes() == "Straße\n\n".encode()


@given(sentences)
def test_json_lines_are_read_as_they_were_written(X):
    y = [[len(word) for word in sentence] for sentence in X]
    target = io.StringIO()
    write_json_lines(target, tokens=X, tags=map_to_arrays(y))
    assert read_json_lines(io.StringIO(target.getvalue())) == (X, y)
    assert read_json_lines(io.StringIO("\n" + target.getvalue()), y=None) == (X, None)


def map_to_arrays(y):
    return [np.array(labels) for labels in y]


def test_conllu_is_read_and_written():
    sentence = read_conllu(file("\n" + TREE.replace("\n", "\r\n")))[0]
    assert sentence.column("form") == ["vamos", "nos", "mar"]
    assert sentence.edges == [(0, 1), (0, 2)]
    assert sentence.comments == ["sent_id = 1", "text = vámonos al mar"]
    target = io.StringIO()
    write_conllu(target, [sentence])
    assert target.getvalue() == TREE
    other = sentence.with_column("upos", np.array(["V", "P", "N"]))
    assert other.column("upos") == ["V", "P", "N"]
    assert [line.upos for line in other.lines] == ["_", "V", "P", "_", "N"]
    assert Sentence([Word("1", "a")]).edges == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: read_columns(file("a\tO\nb\t\n"), separator="\t"),
            r"train.txt, line 2: the tag, column 1, is empty\.",
        ),
        (lambda: read_columns(file("a N O\n"), x=[0, 2]), r"x names the column 2 of train.txt, which is y, .*\."),
        (lambda: read_columns(file("a N O\n"), x=-1), r"x names the column 2 of train.txt, which is y, .*\."),
        (lambda: read_columns(file("a O\n\nb\n")), r"train.txt, line 3: it has 1 column, but line 1 has 2\."),
        (lambda: read_columns(file("\n\n")), r"train.txt holds no sentence\."),
        (lambda: read_columns(file("")), r"train.txt holds no sentence\."),
        (
            lambda: read_columns(file(b"a O\n\xff O\n")),
            r"train.txt, line 2: it is not utf-8: pass the encoding of .*\.",
        ),
        (lambda: read_columns(file("a O\n"), y=2), r"y names the column 2, but train.txt has 2, from 0 to 1\."),
        (
            lambda: read_columns(file("a O\n"), x=[0, "b"]),
            r"x names the column 'b', but train.txt has 2, from 0 to 1\.",
        ),
        (lambda: read_columns(file("a\n")), r"train.txt has one column, of tags: pass y=None if it is one of words\."),
        (
            lambda: write_columns(io.StringIO(), [["a b"]]),
            r"Token 0 of sentence 0 has 'a b', but a column must be .*\.",
        ),
        (
            lambda: write_columns(io.StringIO(), [["a"]], [[""]]),
            r"Token 0 of sentence 0 has '', but a column must .*\.",
        ),
        (lambda: write_columns(io.StringIO(), [["a"]], [["b", "c"]]), r"Sentence 0 has 1, 2 tokens in its columns\."),
        (lambda: write_columns(io.StringIO(), [["a"]], []), r"columns must be lists of the same number of sentences\."),
        (lambda: read_conllu(file("1\ta\n")), r"train.txt, line 1: it has 2 columns, but CoNLL-U has 10, .*\."),
        (
            lambda: read_conllu(file(TREE.replace("\n2\t", "\n5\t"))),
            r"train.txt, line 5: the id is 5, but 2 comes next\.",
        ),
        (
            lambda: Sentence([Word("1", "a")]).with_column("upos", ["X", "Y"]),
            r"values must hold 1 strings, one per word, but holds 2\.",
        ),
        (
            lambda: write_conllu(io.StringIO(), [Sentence([Word("1", "a\tb")])]),
            r"Word 1 of sentence 0 has the form 'a\\tb', but it must be .*\.",
        ),
        (lambda: read_conllu(file("# nothing\n")), r"train.txt holds no sentence\."),
        (lambda: read_json_lines(file("{")), r"train.txt, line 1: it is not JSON: .*\."),
        (lambda: read_json_lines(file("[" * 100_000)), r"train.txt, line 1: it is not JSON: .*\."),
        (
            lambda: read_json_lines(file("[]")),
            r"train.txt, line 1: an object must hold a list 'tokens', but there is .*",
        ),
        (
            lambda: read_json_lines(file('{"tokens": ["a"]}')),
            r"train.txt, line 1: an object must hold a list 'tags', .*",
        ),
        (
            lambda: read_json_lines(file('\n{"tokens": ["a"], "tags": []}')),
            r"train.txt, line 2: 'tokens' has 1 entries, but 'tags' has 0\.",
        ),
        (
            lambda: read_json_lines(file('{"tokens": ["a"], "tags": [true]}')),
            r"train.txt, line 1: 'tags' must hold strings or integers, not \[True\]\.",
        ),
        *(
            (lambda text=text: read_json_lines(file(text)), r"train.txt, line .: 'tags' must hold strings in all .*")
            for text in (
                '{"tokens": ["a", "b"], "tags": ["O", 1]}',
                '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["b"], "tags": [1]}',
            )
        ),
        (
            lambda: read_columns(file("a O\n"), encoding="utf-16"),
            r"train.txt, line 1: it is not utf-16: pass the encoding of the file\.",
        ),
        (lambda: read_json_lines(file("")), r"train.txt holds no sequence\."),
        (lambda: write_json_lines(io.StringIO(), a=[[1]], b=[]), r"fields must be lists of the same number of .*\."),
    ],
)
def test_errors_name_file_and_line(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()


@given(st.binary(max_size=80) | st.text(max_size=60).map(str.encode), st.integers(0, 2**32 - 1))
def test_odd_bytes_are_read_or_refused(garbage, seed):
    """Good files with something odd in them."""
    rng = np.random.default_rng(seed)
    record = json.dumps({"tokens": ["a", "b"], "tags": ["O", "B-X"]})
    for read, good in ((read_columns, "a O\nb B-X\n\nc O\n"), (read_conllu, TREE), (read_json_lines, f"{record}\n")):
        data = good.encode()
        at = int(rng.integers(len(data) + 1))
        try:
            assert read(file(data[:at] + garbage + data[at:]))
        except ValueError as error:
            if not str(error).startswith("train.txt"):
                raise
