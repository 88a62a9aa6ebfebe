"""Vectors of words learned from text that nobody has tagged, and classes of words by their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_count
from maxmargin.text.resources.exchange import Neighbours, spell_paths
from maxmargin.text.resources.learned_classes import Text, count_neighbours, frequent_words
from maxmargin.text.resources.word_vectors import WordVectors
from maxmargin.wording import count_of, quote

SMALL = 1e-6  # a vector, of the longest one: hardly more than rounding


def learn_vectors(
    text: Text | Sequence[Text], *, size: int = 50, min_count: int = 2, encoding: str = "utf-8"
) -> WordVectors:
    """Learn vectors of words from sentences: words that have like neighbours have like vectors.

    Of a word it is counted how often each word is before it, and after it. Where rows of both log(1 + count) of all
    words are U S V', by a singular value decomposition cut to its largest values, vectors are the rows of U S^(1/2),
    scaled to the length 1. The same text has the same vectors. Files are read twice, a line at a time, and need not fit
    in memory; the pairs of words that occur must.

    Parameters
    ----------
    text
        As that of `learn_classes`.
    size
        The length of vectors.
    min_count
        How often words must occur to have a vector.
    encoding
        Of files.

    Returns
    -------
    WordVectors, the most frequent word first

    Examples
    --------
    >>> from maxmargin.text import cluster_vectors, learn_vectors
    >>> sentences = [[who, does, "it"] for who in ("Ann", "Bob") for does in ("sees", "has")]
    >>> vectors = learn_vectors(sentences, size=2)
    >>> found, rows = vectors.find(["Ann", "Bob"])
    >>> bool(abs(found[rows[0]] - found[rows[1]]).max() < 1e-5)
    True
    >>> classes = cluster_vectors(vectors, 3)
    >>> classes["Ann"] == classes["Bob"] != classes["it"]
    True
    """
    check_count("size", size)
    check_count("min_count", min_count)
    texts = text if isinstance(text, tuple) else (text,)
    words = frequent_words(texts, min_count, encoding)
    if len(words) <= size:
        raise ValueError(
            f"size must be less than the number of words that occur {count_of(min_count, 'time')} or more, "
            f"{len(words)}, not {size}: take more text, or shorter vectors."
        )
    return WordVectors(words, embed(count_neighbours(texts, words, encoding), size))


def embed(neighbours: Neighbours, size: int) -> np.ndarray:
    """The vectors of words; the last row of neighbours, which is that of the ends of sentences, has none."""
    from scipy.sparse.linalg import svds  # which classes do without

    n = len(neighbours.after_starts) - 1
    sides = neighbours[:3], neighbours[3:]
    parts = [sp.csr_array((np.log1p(counts), words, starts), (n, n)) for starts, words, counts in sides]
    table = sp.csr_array(sp.hstack(parts, format="csr")[: n - 1])
    left, values, right = svds(table, size, v0=np.random.default_rng(0).normal(size=n - 1))
    strongest = right[np.arange(size), np.abs(right).argmax(axis=1)]
    rows = (left * np.copysign(np.sqrt(values), strongest))[:, ::-1]  # whose signs would do either way
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > SMALL * lengths.max(), lengths, 1.0)


def cluster_vectors(vectors: WordVectors, n_classes: int = 256) -> dict[str, str]:
    """Classes of words by k-means of their vectors, for `WindowFeatures(classes=...)`.

    Means are joined in a tree, two at a time, as Ward does, so that each class has a path of 0 and 1 in it, as those of
    `learn_classes`: its prefixes are larger classes.

    Parameters
    ----------
    vectors
        As `learn_vectors` and `read_vectors` return them; not those of a file that is mapped.
    n_classes
        The number of classes.

    Returns
    -------
    dict of the path of each word

    Examples
    --------
    >>> from maxmargin.text import WordVectors, cluster_vectors
    >>> vectors = WordVectors(["a", "b", "c", "d"], [[0.0, 0.0], [0.0, 0.1], [1.0, 1.0], [0.0, 3.0]])
    >>> classes = cluster_vectors(vectors, 3)
    >>> classes["a"] == classes["b"], len(set(classes.values()))
    (True, 3)
    """
    if not isinstance(vectors, WordVectors):
        raise TypeError(f"vectors must be WordVectors, not {quote(vectors)}.")
    check_count("n_classes", n_classes, 2)
    n_different = len(np.unique(vectors.vectors, axis=0))
    if n_classes > n_different:
        raise ValueError(f"n_classes must be at most {n_different}, the number of different vectors, not {n_classes}.")
    from sklearn.cluster import KMeans

    found = KMeans(n_classes, n_init=1, random_state=0).fit(vectors.vectors)
    paths = paths_of(found.cluster_centers_)
    return {word: paths[k] for word, k in zip(vectors.words, found.labels_.tolist(), strict=True)}


def paths_of(means: np.ndarray) -> list[str]:
    """The paths of means in the tree that joins them."""
    from scipy.cluster.hierarchy import ward

    n = len(means)
    return spell_paths(n, ((int(first), int(second), n + k) for k, (first, second, *_) in enumerate(ward(means))))
