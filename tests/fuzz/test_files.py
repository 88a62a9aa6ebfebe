"""Mutated files of sentences: a result, or one clear error that names the file.

With those of tests/persist these are more than 5,000 cases; MAXMARGIN_FUZZ is their number for each format, if more are
to be tried.
"""

import io
import json
import os
import random
from collections import Counter

import pytest

from maxmargin import ChainCRF, Tagger
from maxmargin.text import Layout, find_scheme, read_document
from tests.sentences import column_text, tagged_sentences

N_CASES = int(os.environ.get("MAXMARGIN_FUZZ", "1200"))
SENTENCES = tagged_sentences(6)
TEXTS = {
    "columns": column_text(SENTENCES),
    "conllu": "".join(
        "# text\n"
        + "".join(f"{k}\t{w}\t_\t{pos}\t_\t_\t{k - 1}\tx\t_\t_\n" for k, (w, pos, _) in enumerate(sentence, start=1))
        + "\n"
        for sentence in SENTENCES
    ),
    "json": "".join(
        json.dumps({"tokens": [t[0] for t in sentence], "tags": [t[2] for t in sentence]}) + "\n"
        for sentence in SENTENCES
    ),
}
PIECES = [
    *(bytes([k]) for k in (0, 9, 10, 13, 32, 34, 44, 45, 91, 93, 123, 125, 127, 128, 255)),
    *(
        "\u00a0 \u2028 \ufeff \U0001f600 é -DOCSTART- B- I-X O B-PER null [] {} 1e999 NaN # \t\t \r\n".encode().split(
            b" "
        )
    ),
    b"\n\n\n",
    b'"tokens": []',
    b"[" * 5000,
    b"x" * 3000,
]


def random_edit(rng):
    """A kind of edit, where, and what with."""
    kind, place = rng.choice(["insert", "delete", "replace", "repeat", "cut"]), rng.randrange(10_000)
    if kind == "insert":
        return kind, place, rng.choice([*PIECES, rng.randbytes(rng.randint(1, 4))])
    return kind, place, rng.randbytes(1) if kind == "replace" else rng.randint(0, 60)


def mutated(text, changes):
    data = bytearray(text.encode())
    for kind, place, what in changes:
        at = place % (len(data) + 1)
        if kind == "insert":
            data[at:at] = what
        elif kind == "delete":
            del data[at : at + what]
        elif kind == "replace":
            data[at : at + 1] = what
        elif kind == "repeat":
            data[at:at] = data[at : at + what]
        else:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("format", TEXTS)
def test_files_are_read_or_refused(format):
    counts = Counter()
    for case in range(N_CASES):
        try:
            meet(format, random.Random(case), counts)
        except Exception as error:
            error.add_note(f"In case {case}.")
            raise
    assert counts["read"] > N_CASES / 20
    assert counts["trained"] > 0


def meet(format, rng, counts):
    layout = Layout(format)
    if format == "columns":
        layout = Layout(format, comments=rng.choice([None, "#"]), separator=rng.choice([None, " ", "\t"]))
    data = mutated(TEXTS[format], [random_edit(rng) for _ in range(rng.randint(1, 4))])
    try:
        document = read_document(io.BytesIO(data), layout, needs_tags=rng.random() < 0.5, name="the file")
    except ValueError as error:
        check_message(error, "the file")
        return
    counts["read"] += 1
    check(document, rng)
    if document.y is not None and rng.random() < 0.1:
        counts["trained"] += train(document)


def check_message(error, names):
    """One sentence that says what it is about."""
    assert names in str(error), error
    assert "\n" not in str(error)
    assert len(str(error)) < 400


def check(document, rng):
    """A document is sound, and can be written with other tags and read again."""
    assert document.X
    assert all(document.X)
    assert [len(x) for x in document.X] == [len(y) for y in document.y or document.X]
    tags = [[rng.choice(["O", "B-X"]) for _ in x] for x in document.X]
    lines = [*document.tagged(tags)]
    assert document.where(len(document.X) - 1, 10**6).startswith("the file, line ")
    if document.layout.format == "columns":
        again = read_document(
            io.StringIO("\n".join(lines)),
            Layout(separator=document.layout.separator, comments=document.layout.comments),
            name="the file",
        )
        assert again.y == tags
    if document.y is not None:
        try:
            find_scheme(document.y)
        except ValueError as error:
            check_message(error, "y")


def train(document):
    """Train and tag; whether that was possible."""
    tagger = Tagger(model=ChainCRF(max_passes=2, only_observed=True), layout=document.layout)
    try:
        tagger.fit(document.X, document.y)
    except (TypeError, ValueError) as error:
        check_message(error, "y")
        return False
    assert [len(tags) for tags in tagger.predict(document.X)] == [len(x) for x in document.X]
    return True
