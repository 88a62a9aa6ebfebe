"""Classes of words learned from text that nobody has tagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_count
from maxmargin.text.resources.exchange import Neighbours, count_pairs, exchange, find_paths
from maxmargin.text.sentence_files.line_files import Lines
from maxmargin.wording import count_of

CHUNK = 4_000_000  # pairs of words that are counted at once

Text = str | PathLike[str] | Sequence[Sequence[str]]


def learn_classes(
    text: Text | Sequence[Text],
    *,
    n_classes: int = 256,
    min_count: int = 2,
    max_passes: int = 20,
    encoding: str = "utf-8",
) -> dict[str, str]:
    """Learn classes of words from sentences: words that have like neighbours are in one class.

    By the exchange algorithm words are put where a bigram model of classes explains the text best; classes are then
    merged, so that each has a path of 0 and 1 in a tree, as Brown's do: its prefixes are larger classes. Files are read
    twice, a line at a time, and need not fit in memory; the pairs of words that occur must.

    Parameters
    ----------
    text
        A file with a sentence in each line and blanks between its words, or a list of sentences, lists of words; or a
        tuple of such.
    n_classes
        The number of classes.
    min_count
        How often words must occur to have a class.
    max_passes
        How often words may move at most; fewer times, if hardly any does.
    encoding
        Of files.

    Returns
    -------
    dict of the path of each word, the most frequent first

    Examples
    --------
    >>> from maxmargin.text import learn_classes
    >>> sentences = [[who, does, "it"] for who in ("Ann", "Bob") for does in ("sees", "has")]
    >>> classes = learn_classes(sentences, n_classes=3)
    >>> classes["Ann"] == classes["Bob"] != classes["it"], classes["sees"] == classes["has"]
    (True, True)
    """
    for name, value in (("n_classes", n_classes), ("min_count", min_count), ("max_passes", max_passes)):
        check_count(name, value)
    texts = text if isinstance(text, tuple) else (text,)
    words = frequent_words(texts, min_count, encoding)
    if len(words) <= n_classes - 1 or len(words) < 2:
        raise ValueError(
            f"n_classes must be at most the number of words that occur {count_of(min_count, 'time')} or more, "
            f"{len(words)}, not {n_classes}: take more text, or fewer classes."
        )
    neighbours = count_neighbours(texts, words, encoding)
    classes = exchange(neighbours, n_classes, max_passes)
    paths = find_paths(count_pairs(neighbours, np.append(classes, n_classes), n_classes + 1))
    return {word: paths[k] or "0" for word, k in zip(words, classes.tolist(), strict=True)}


def frequent_words(texts: Iterable[Text], min_count: int, encoding: str) -> list[str]:
    """The words that occur so often, the most frequent first."""
    found = Counter(word for part in texts for sentence in sentences_in(part, encoding) for word in sentence)
    return [word for word, n in sorted(found.items(), key=lambda item: (-item[1], item[0])) if n >= min_count]


def sentences_in(text: Text, encoding: str) -> Iterator[Sequence[str]]:
    """The sentences of a file, or of a list."""
    if isinstance(text, str | PathLike):
        lines, n_words = Lines(text, encoding), 0
        for _, line in lines:
            if line:
                sentence = line.split()
                n_words += len(sentence)
                yield sentence
        lines.check_any(n_words, "words")
    else:
        yield from text


def count_neighbours(texts: Iterable[Text], words: Sequence[str], encoding: str) -> Neighbours:
    """How often words follow each other; what is not among them counts as the end of a sentence."""
    number, other = {word: k for k, word in enumerate(words)}, len(words)
    size = other + 1
    total = sp.csr_array((size, size), dtype=np.int64)
    codes: list[int] = [other]
    for text in texts:
        for sentence in sentences_in(text, encoding):
            codes += [number.get(word, other) for word in sentence]
            codes.append(other)
            if len(codes) > CHUNK:
                total, codes = total + _pairs(codes, size), [other]
    total = sp.csr_array(total + _pairs(codes, size))
    total.sum_duplicates()
    flipped = sp.csr_array(total.T)
    parts = (part.astype(np.int64) for m in (total, flipped) for part in (m.indptr, m.indices, m.data))
    return Neighbours(*parts)


def _pairs(codes: list[int], size: int) -> sp.csr_array:
    row = np.array(codes)
    pairs = row[:-1], row[1:]
    return sp.csr_array((np.ones(len(row) - 1, np.int64), pairs), (size, size))
