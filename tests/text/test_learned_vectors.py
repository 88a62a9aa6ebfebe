"""Vectors of words learned from text: those of a dense decomposition, whatever the file; and classes by them."""

import io
from itertools import pairwise

import numpy as np
import pytest

from maxmargin.text import (
    VectorFile,
    WordVectors,
    cluster_vectors,
    learn_vectors,
    read_classes,
    read_vectors,
    write_vectors,
)
from maxmargin.text.resources import learned_classes
from tests.cli.conftest import run

RNG = np.random.default_rng(0)
NAMES, VERBS, THINGS = ([f"{kind}{k}" for k in range(4)] for kind in "NVT")
TEXT = [[str(RNG.choice(part)) for part in (NAMES, VERBS, ["the"], THINGS)] for _ in range(200)]


def test_products_are_those_of_the_best_table_of_low_rank():
    size = 4
    vectors = learn_vectors(TEXT, size=size)
    number = {word: k for k, word in enumerate(vectors.words)}
    n = len(number)
    after, before = np.zeros((2, n, n + 1))
    for sentence in TEXT:
        row = [n, *(number[word] for word in sentence), n]
        for first, second in pairwise(row):
            if first < n:
                after[first, second] += 1
            if second < n:
                before[second, first] += 1
    table = np.log1p(np.hstack([after, before]))
    left, values, _ = np.linalg.svd(table, full_matrices=False)
    expected = left[:, :size] * np.sqrt(values[:size])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors.vectors @ vectors.vectors.T, expected @ expected.T, atol=1e-5)


def test_words_with_like_neighbours_are_of_one_class(tmp_path, monkeypatch):
    vectors = learn_vectors(TEXT, size=4)
    classes = cluster_vectors(vectors, 4)
    assert [len({classes[word] for word in group}) for group in (NAMES, VERBS, THINGS)] == [1, 1, 1]
    assert len({*classes.values()}) == 4
    assert {*"".join(classes.values())} == {"0", "1"}
    path = tmp_path / "text.txt"
    path.write_text("\n".join(map(" ".join, TEXT)))
    monkeypatch.setattr(learned_classes, "CHUNK", 50)  # pairs that are counted at once
    for again in (learn_vectors(path, size=4), learn_vectors((TEXT[:9], TEXT[9:]), size=4)):
        assert again.words == vectors.words
        assert again.vectors.tobytes() == vectors.vectors.tobytes()


def test_words_without_any_neighbour_of_their_own():
    vectors = learn_vectors([["a"], ["b"], ["c"]] * 2, size=2)  # which all have the ends of sentences beside them
    assert np.isfinite(vectors.vectors).all()
    np.testing.assert_allclose(vectors.vectors[1:], vectors.vectors[:1].repeat(2, axis=0), atol=1e-6)
    with pytest.raises(ValueError, match="n_classes must be at most 1, the number of different vectors, not 2"):
        cluster_vectors(WordVectors(["a", "b"], [[1.0], [1.0]]), 2)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"size must be less than the number of words that occur 2 times or more, 13"):
        learn_vectors(TEXT)
    with pytest.raises(ValueError, match="size must be an integer, at least 1, not 0"):
        learn_vectors(TEXT, size=0)
    (tmp_path / "any.vec").write_text("a 1 2\n")
    for use in (cluster_vectors, lambda vectors: write_vectors(io.StringIO(), vectors)):
        with pytest.raises(TypeError, match="vectors must be WordVectors"):
            use(read_vectors(tmp_path / "any.vec", most_read=0))
    with pytest.raises(ValueError, match="has the word ' ', but it may not be blank"):
        write_vectors(tmp_path / "other.vec", WordVectors([" "], [[1.0]]))


def test_on_the_command_line(tmp_path):
    text, target, classes = (tmp_path / name for name in ("text.txt", "words.vec", "classes.tsv"))
    text.write_text("\n".join(map(" ".join, TEXT)))
    outcome = run("vectors", text, "-o", target, "--size", 4)
    assert outcome.code == 0
    assert "Vectors of 13 words are in" in outcome.err
    found, vectors = read_vectors(target), learn_vectors(TEXT, size=4)
    assert found.words == vectors.words
    assert found.vectors.tobytes() == vectors.vectors.tobytes()
    assert run("vectors", text, "-o", text).code == 1
    assert run("clusters", text, "-o", classes, "--classes", 4, "--by", "vectors", "--size", 4).code == 0
    assert read_classes(classes) == cluster_vectors(vectors, 4)
    assert isinstance(read_vectors(target, most_read=0), VectorFile)
