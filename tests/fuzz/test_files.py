"""Mutated files of sentences: a result, or one clear error that names the file."""

import io
import json
import os
import random

import pytest

from maxmargin import ChainCRF, Tagger
from maxmargin.text import Layout, find_scheme, read_document
from tests.sentences import column_text, tagged_sentences

N_CASES = int(os.environ.get("MAXMARGIN_FUZZ", "1500"))
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


def mutated(text, rng):
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 4)):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(5)
        if kind == 0:
            data[at:at] = rng.choice(PIECES)
        elif kind == 1:
            del data[at : min(end, at + 30)]
        elif kind == 2 and data:
            data[min(at, len(data) - 1)] = rng.randrange(256)
        elif kind == 3:
            data[at:at] = data[at : min(end, at + 60)]
        else:
            del data[end:]
    return bytes(data)


@pytest.mark.parametrize("format", TEXTS)
def test_files_are_read_or_refused(format):
    n_read = n_trained = 0
    for seed in range(N_CASES):
        rng = random.Random(seed)
        data = mutated(TEXTS[format], rng)
        layout = Layout(format, comments=rng.choice([None, "#"]), separator=rng.choice([None, None, " ", "\t"]))
        if format != "columns":
            layout = Layout(format)
        try:
            document = read_document(io.BytesIO(data), layout, needs_tags=rng.random() < 0.5, name="the file")
        except ValueError as error:
            check_message(error, "the file")
            continue
        n_read += 1
        check(document, rng, seed)
        if document.y is not None and n_read % 60 == 1:
            n_trained += train(document)
    assert n_read > N_CASES / 20
    assert n_trained > 0


def check_message(error, names):
    """One sentence that says what it is about."""
    assert names in str(error), error
    assert "\n" not in str(error)
    assert len(str(error)) < 400


def check(document, rng, seed):
    """A document is sound, and can be written with other tags and read again."""
    assert document.X
    assert all(document.X), seed
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
        assert again.y == tags, seed
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
