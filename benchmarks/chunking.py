"""Text chunking on CoNLL-2000 with the features of CRFsuite's tutorial.

A token has the words and parts of speech within two tokens of it, alone and joined with their neighbours, and marks of
the first and the last token of a sentence. ``python -m benchmarks.chunking`` counts what the template gives on the
training sentences: 335,674 features. CRFsuite counts the pairs of a feature and a tag, and of two successive tags, that
occur: 452,755 (http://www.chokkan.org/software/crfsuite/tutorial.html).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

WORD, POS = 0, 1
TEMPLATES = [  # a column and the positions, relative to the token, whose entries are joined
    *((WORD, (t,)) for t in (-2, -1, 0, 1, 2)),
    *((WORD, (t, t + 1)) for t in (-1, 0)),
    *((POS, (t,)) for t in (-2, -1, 0, 1, 2)),
    *((POS, (t, t + 1)) for t in (-2, -1, 0, 1)),
    *((POS, (t, t + 1, t + 2)) for t in (-2, -1, 0)),
]
NOTHING = -1


def load_chunking() -> tuple[list, list, list, list]:
    """X_train, y_train, X_test, y_test: a binary CSR matrix and a list of tags per sentence.

    The columns are the features that occur in the training sentences.
    """
    from maxmargin.datasets import load_conll2000

    data = load_conll2000()
    sentences = [*data.X_train, *data.X_test]
    ends = np.cumsum([len(sentence) for sentence in sentences])
    keys = feature_keys(sentences, ends)
    n_train = ends[len(data.X_train) - 1]
    known = np.setdiff1d(keys[:n_train], NOTHING)

    columns = np.searchsorted(known, keys)
    is_known = known[np.minimum(columns, len(known) - 1)] == keys
    row_ends = np.concatenate([[0], np.cumsum(is_known.sum(axis=1))])
    indices = columns[is_known].astype(np.int32)
    matrix = sp.csr_array((np.ones(len(indices), np.float32), indices, row_ends), (len(keys), len(known)))
    matrix.sort_indices()
    X = [matrix[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]
    return X[: len(data.X_train)], data.y_train, X[len(data.X_train) :], data.y_test


def feature_keys(sentences: list, ends: np.ndarray) -> np.ndarray:
    """(tokens, templates) numbers, one for each feature of a token and different for different features, or NOTHING."""
    tokens = [token for sentence in sentences for token in sentence]
    columns = [codes(token[column] for token in tokens) for column in (WORD, POS)]
    lengths = np.diff(ends, prepend=0)
    before = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)  # tokens before this one in its sentence
    after = np.repeat(lengths, lengths) - 1 - before
    keys = np.full((len(tokens), len(TEMPLATES) + 2), NOTHING)
    for k, (column, positions) in enumerate(TEMPLATES):
        values = columns[column]
        exists = (before >= -positions[0]) & (after >= positions[-1])
        joined = np.zeros(exists.sum(), int)
        for t in positions:
            joined = joined * (values.max() + 1) + values[np.flatnonzero(exists) + t]
        keys[exists, k] = joined * keys.shape[1] + k
    for k, distance in enumerate((before, after), start=len(TEMPLATES)):
        keys[distance == 0, k] = k
    return keys


def codes(values: Iterable[Any]) -> np.ndarray:
    """Numbers of the values, the same for the same value."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values])


def main() -> None:
    began = time.process_time()
    X, y, _, _ = load_chunking()
    seconds = time.process_time() - began
    matrix = sp.vstack(X)
    tags = codes(tag for sentence in y for tag in sentence)
    pairs = np.unique(matrix.indices * (tags.max() + 1) + np.repeat(tags, np.diff(matrix.indptr)))
    successions = {pair for sentence in y for pair in pairwise(sentence)}
    print(f"{len(X)} sentences, {matrix.shape[0]} tokens, {matrix.nnz} entries, encoded in {seconds:.1f} s of CPU time")
    print(f"{matrix.shape[1]} features; with tags {len(pairs)} + {len(successions)} = {len(pairs) + len(successions)}")


if __name__ == "__main__":
    main()
