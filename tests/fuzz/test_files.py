"""Mutated files of sentences: a result, or one clear error that names the file.

With those of tests/persist, and those that are marked as long, these are more than 5,000 cases; MAXMARGIN_FUZZ is their
number for each format, if more are to be tried.
"""

import io
import json
import os
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import ChainCRF, Tagger
from maxmargin.text import Layout, check_tags, find_scheme, mend_tags, read_document
from tests.sentences import column_text, tagged_sentences

NUMBERS = [300, pytest.param(int(os.environ.get("MAXMARGIN_FUZZ", "1200")), marks=pytest.mark.long)]
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
    *(b" o\n", b" b-PER\n", b" ?\n", b" I-PER\n", b"\x1b]52;c;QUJD\x07"),
    b"[" * 5000,
    b"x" * 3000,
]


places, sizes = st.integers(0, 10_000), st.integers(0, 60)
edits = st.one_of(
    st.tuples(st.just("insert"), places, st.sampled_from(PIECES) | st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("delete"), places, sizes),
    st.tuples(st.just("replace"), places, st.binary(min_size=1, max_size=1)),
    st.tuples(st.just("repeat"), places, sizes),
    st.tuples(st.just("cut"), places, st.none()),
)


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


@pytest.mark.parametrize("n_cases", NUMBERS)
@pytest.mark.parametrize("format", TEXTS)
def test_files_are_read_or_refused(format, n_cases):
    counts = Counter()

    @settings(max_examples=n_cases, derandomize="MAXMARGIN_FUZZ" not in os.environ, database=None)
    @given(
        st.lists(edits, min_size=1, max_size=4),
        st.sampled_from([None, "#"]),
        st.sampled_from([None, " ", "\t"]),
        st.booleans(),
        st.integers(0, 2**32),
    )
    def meet(changes, comments, separator, needs_tags, seed):
        counts["met"] += 1
        layout = Layout(format, comments=comments, separator=separator) if format == "columns" else Layout(format)
        data = mutated(TEXTS[format], changes)
        try:
            document = read_document(io.BytesIO(data), layout, needs_tags=needs_tags, name="the file")
        except ValueError as error:
            check_message(error, "the file")
            return
        counts["read"] += 1
        check(document, random.Random(seed))
        if document.y is not None and seed % 40 == 0:
            counts["trained"] += train(document)

    meet()
    assert counts["met"] >= n_cases
    assert counts["read"] > n_cases / 20
    assert counts["trained"] > 0


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
        for find in (find_scheme, check_mended):
            try:
                find(document.y)
            except ValueError as error:
                check_message(error, "y")


def check_mended(y):
    """Tags that are mended keep to their scheme, and all that was no fault stays."""
    mended = mend_tags(y)
    check_tags(mended.y, mended.scheme)
    assert mended.faults or mended.y == y
    assert [len(tags) for tags in mended.y] == [len(tags) for tags in y]


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
