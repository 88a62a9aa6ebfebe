"""What encoders of pairs of places in sentences share, arcs and spans: their features, and weights of labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.base_encoder import Encoder, P, RowEncoder
from maxmargin.encode.inputs.example_checks import check_examples, find_labels, join_classes
from maxmargin.encode.inputs.rows import Rows, row_features, stack_rows
from maxmargin.encode.names.named_rows import have_names
from maxmargin.encode.names.vocabulary import Vocabulary, join_features, learn_names, places_of
from maxmargin.features.observed import observed_features
from maxmargin.features.pairs import NOWHERE, Pairs, PairTable, are_pairs, move_weights, pairs_of
from maxmargin.text.syntax_features.word_pairs import WordPairs
from maxmargin.wording import quote


@dataclass(frozen=True, eq=False, kw_only=True)
class PairEncoder(RowEncoder[P]):
    """The encoder of rows of pairs, which have columns of weights: some that all share, then one per label."""

    published = ("n_features_in", "classes")
    n_shared: ClassVar[int] = 0
    share: ClassVar[int]  # a sentence of n words has n (n + 1) / share pairs
    expected: ClassVar[str]  # what a sentence has, in messages

    classes: np.ndarray  # the labels
    vocabulary: Vocabulary | None = None  # of features that have names
    pairs: Pairs | None = None  # of a feature and a column that have a weight, if not all do

    @property
    def n_columns(self) -> int:
        """The number of weights of a feature, if it has all of them."""
        return self.n_shared + len(self.classes)

    @property
    def n_weights(self) -> int:
        return self.n_features_in * self.n_columns if self.pairs is None else len(self.pairs.labels)

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "classes", self.classes.ndim == 1
        yield "vocabulary", self.vocabulary is None or self.vocabulary.size == self.n_features_in
        yield "pairs", are_pairs(self.pairs, self.n_features_in, self.n_columns)

    @property
    def pair_table(self) -> PairTable:
        """The weights of features."""
        return PairTable(self.n_features_in, self.n_columns, self.pairs)

    def joined(self, other: Self) -> Self:
        if (self.pairs is None) != (other.pairs is None):
            raise ValueError("only_observed, and whether there are labels, must be what they were before.")
        (vocabulary, n_features), classes = join_features(self, other), join_classes(self.classes, other.classes)
        both = replace(self, vocabulary=vocabulary, n_features_in=n_features, classes=classes, pairs=None)
        if self.pairs is None:
            return both
        numbers = np.union1d(self._numbers_in(both), other._numbers_in(both))
        return replace(both, pairs=both.pair_table.with_numbers(numbers).pairs)

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(other, type(self)) or places_of(other, self) is None:
            return None
        return move_weights(w, other._numbers_in(self), self.pair_table)

    def _numbers_in(self, other: Self) -> np.ndarray:
        """The numbers of its pairs in the table of another encoder."""
        features, labels = places_of(self, other), find_labels(self.classes, other.classes)
        assert features is not None
        columns = np.append(np.arange(self.n_shared), np.where(labels < 0, NOWHERE, labels + self.n_shared))
        return self.pair_table.numbers_in(other.pair_table, features, columns)

    def observing(self, rows: sp.csr_array, labels: np.ndarray) -> Self:
        """With weights of labels only where a feature and a label occur together: in these rows, with a label each."""
        is_pair = np.zeros((rows.shape[1], self.n_columns), bool)
        is_pair[:, : self.n_shared] = True
        is_pair[rows.indices, self.n_shared + np.repeat(labels, np.diff(rows.indptr))] = True
        return replace(self, pairs=pairs_of(is_pair))

    def features_of(self, rows: Rows, with_grams: bool) -> Any:
        """The features of rows, as loops read them."""
        features = row_features(self.stored(rows), self.dtype, with_grams=with_grams and self.pairs is None)
        return features if self.pairs is None else observed_features(features, self.pairs)

    def read(self, X: object) -> tuple[np.ndarray, Rows]:
        """The numbers of words of other sentences, and the rows of their pairs."""
        are_named, sentences, lengths = self.read_sentences(X)
        if are_named != (self.vocabulary is not None):
            raise TypeError("X must hold features by name, dictionaries or lists of strings, if it did so in fit.")
        return lengths, read_pairs(sentences, self.vocabulary, self.n_features_in)

    def label_weights(self, w: np.ndarray) -> Any:
        """The weights as a table of features and columns, sparse if not all have one."""
        if self.pairs is None:
            return w.reshape(-1, self.n_columns)
        table = sp.csr_array((w, self.pairs.labels.astype(np.int32), self.pairs.start.astype(np.int64)))
        table.resize(self.n_features_in, self.n_columns)
        return table

    @classmethod
    def read_sentences(cls, X: object) -> tuple[bool, Any, np.ndarray]:
        """Whether features have names, the sentences as a list, and their numbers of words."""
        are_named, X = have_names(X)
        X = [*X] if isinstance(X, Iterable) and not (isinstance(X, (Sequence, np.ndarray)) or sp.issparse(X)) else X
        X = check_examples(X, f"sentences with the features of {cls.expected}", "sentence")
        if not isinstance(X, WordPairs):
            return are_named, X, np.array([cls._count(x, i) for i, x in enumerate(X)], np.int64)
        if (X.lengths == 0).any():
            raise ValueError(f"X[{np.argmin(X.lengths)}] is empty: every sentence needs at least one word.")
        return are_named, X, X.lengths

    @classmethod
    def _count(cls, x: Any, i: int) -> int:
        """The number of words of a sentence, from that of its pairs."""
        if not (hasattr(x, "shape") or isinstance(x, Sequence)):
            raise TypeError(f"X[{i}] must hold the features of {cls.expected}, not {quote(x)}.")
        n_rows = math.prod(x.shape[:-1]) if hasattr(x, "shape") and len(x.shape) > 1 else len(x)
        n = math.isqrt(cls.share * n_rows)
        if n == 0:
            raise ValueError(f"X[{i}] is empty: every sentence needs at least one word.")
        if n * (n + 1) != cls.share * n_rows or (hasattr(x, "shape") and len(x.shape) == 3 and x.shape[0] != n):
            found = f"has the shape {x.shape}" if hasattr(x, "shape") else f"there are {n_rows}"
            raise ValueError(f"X[{i}] must have {cls.expected}, but {found}.")
        return n


def true_items(X: Any, rows: Sequence[np.ndarray]) -> Any:
    """The features of these pairs of each sentence alone."""
    if isinstance(X, WordPairs):
        return X.of_rows(rows)
    return [[x[k] for k in chosen] for x, chosen in zip(X, rows, strict=True)]


def learn_pairs(
    X: Any, true_pairs: Sequence[np.ndarray] | None, former: PairEncoder | None, **options: Any
) -> tuple[Vocabulary | None, Rows]:
    """The vocabulary of training sentences, or of their true pairs alone if there are any, and the rows of all pairs.

    See `learn_names` for the options.
    """
    before = None if former is None else former.vocabulary
    if true_pairs is None:
        vocabulary, rows = learn_names(X, former=before, **options)
        return vocabulary, rows if vocabulary is not None else read_pairs(X, None)
    vocabulary, _ = learn_names(true_items(X, true_pairs), former=before, may_be_empty=True, **options)
    return vocabulary, read_pairs(X, vocabulary)


def stack_places(places: Iterable[np.ndarray], rows: Rows) -> np.ndarray:
    """The rows, among those of all sentences, of places in each."""
    return np.concatenate([start + chosen for start, chosen in zip(rows.starts, places, strict=False)])


def read_pairs(X: Any, vocabulary: Vocabulary | None, n_features: int | None = None) -> Rows:
    """The features of all pairs, those by name as a vocabulary knows them."""
    if vocabulary is None:
        flat = [x.reshape(math.prod(x.shape[:2]), x.shape[2]) if np.ndim(x) == 3 else x for x in X]
        return stack_rows(flat, None, n_features, noun="sentence")
    if not isinstance(X, WordPairs):
        return vocabulary.rows(X)
    blocks = [*X.find_columns(vocabulary.known)]
    indices = np.concatenate([block.values for block in blocks])
    lengths = np.concatenate([np.diff(block.starts) for block in blocks])
    indptr = starts_of(lengths).astype(np.int32 if len(indices) < 2**31 else np.int64)
    matrix = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), (len(lengths), vocabulary.size))
    matrix.sort_indices()
    if not matrix.has_canonical_format:  # names that are hashed onto the same column
        matrix.data = matrix.data.astype(np.float64)
        matrix.sum_duplicates()
    return Rows(matrix, X.starts)
