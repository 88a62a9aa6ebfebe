"""Text chunking on CoNLL-2000 with the features of CRFsuite's tutorial.

A token has the words and parts of speech of a window of two tokens on either side, alone and joined with their
neighbours, and marks of the first and of the last token of a sentence. The template gives 335,674 features on the
training sentences and, counted as CRFsuite does, 452,755: pairs of a feature and a tag, or of two successive tags, that
occur.

http://www.chokkan.org/software/crfsuite/tutorial.html
"""

from __future__ import annotations

from collections.abc import Iterable
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


def load_chunking(min_count: int = 1) -> tuple[list, list, list, list]:
    """X_train, y_train, X_test, y_test: binary CSR matrices and tags, one per sentence.

    Features that occur less than `min_count` times in the training sentences are left out.
    """
    from maxmargin.datasets import load_conll2000

    data = load_conll2000()
    sentences = [*data.X_train, *data.X_test]
    ends = np.cumsum([len(sentence) for sentence in sentences])
    keys = feature_keys(sentences, ends)
    n_train = ends[len(data.X_train) - 1]
    known, counts = np.unique(keys[:n_train], return_counts=True)
    known = known[(counts >= min_count) & (known != NOTHING)]

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
