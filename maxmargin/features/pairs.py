"""Pairs of a feature and a label that have a weight: which they are, and what becomes of them in another model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.blocks import starts_of
from maxmargin.persist.registry import register

ROWS = 20_000  # looked at at once: less memory than all of them
NONE = slice(0)
NOWHERE = -1  # of what the other model has not


@register
class Pairs(NamedTuple):
    """The pairs that have a weight: feature f and labels[start[f]:start[f + 1]].

    Unsigned: Numba checks signed indices for negative ones, which doubles the time of a pass.
    """

    start: np.ndarray  # (F + 1,) uint32
    labels: np.ndarray  # (P,) uint32


def are_pairs(pairs: Pairs | None, n_features: int, n_labels: int) -> bool:
    """Whether pairs are those of so many features and labels, or there are none."""
    if pairs is None:
        return True
    start, labels = pairs
    return bool(
        all(isinstance(part, np.ndarray) and part.dtype == np.uint32 and part.ndim == 1 for part in pairs)
        and len(start) == n_features + 1
        and start[0] == 0
        and (start[1:] >= start[:-1]).all()
        and start[-1] == len(labels)
        and (labels < n_labels).all()
    )


def pair_numbers(pairs: Pairs, features: np.ndarray, n_labels: int) -> np.ndarray:
    """A number for each pair, ascending, where pairs are those of these features."""
    return np.repeat(features, np.diff(pairs.start)) * n_labels + pairs.labels


def find_pairs(
    matrix: sp.csr_array, labels: np.ndarray, n_labels: int, least: float = 0.0, always: slice = NONE
) -> Pairs:
    """The pairs of a feature and a label that occur in sparse rows, which have a label each, `least` times or more.

    `labels` may also be a table with how often each row has each label. Some features are in `always` pairs with all
    labels.
    """
    if labels.ndim == 2:
        entries = matrix.data if least > 0 else np.ones(matrix.nnz)
        counts = sp.csr_array((entries, matrix.indices, matrix.indptr), matrix.shape).T @ labels.astype(np.float64)
        is_pair = counts >= least if least > 0 else counts > 0
        is_pair[always] = True
        return pairs_of(is_pair)
    counts = np.zeros((matrix.shape[1], n_labels), np.float64 if least > 0 else bool)
    for lo in range(0, len(labels), ROWS):
        starts = matrix.indptr[lo : lo + ROWS + 1]
        entries = slice(starts[0], starts[-1])
        where = matrix.indices[entries], np.repeat(labels[lo : lo + ROWS], np.diff(starts))
        if least > 0:
            np.add.at(counts, where, matrix.data[entries])
        else:
            counts[where] = True
    is_pair = counts >= least if least > 0 else counts
    is_pair[always] = True
    return pairs_of(is_pair)


def find_rare_pairs(matrix: sp.csr_array, labels: np.ndarray, n_labels: int, least: float = 0.0) -> Pairs:
    """As `find_pairs`, for so many labels that a table of all pairs would be large."""
    numbers = matrix.indices.astype(np.int64) * n_labels + np.repeat(labels, np.diff(matrix.indptr))
    numbers, which = np.unique(numbers, return_inverse=True)
    if least > 0:
        numbers = numbers[np.bincount(which, matrix.data, len(numbers)) >= least]
    features, found = np.divmod(numbers, n_labels)
    start = np.searchsorted(features, np.arange(matrix.shape[1] + 1))
    return Pairs(start.astype(np.uint32), found.astype(np.uint32))


def all_pairs(matrix: sp.csr_array, n_labels: int) -> Pairs:
    """All pairs of a feature and a label."""
    return pairs_of(np.ones((matrix.shape[1], n_labels), bool))


def pairs_of(is_pair: np.ndarray) -> Pairs:
    """The pairs of a table of features and labels."""
    return Pairs(starts_of(is_pair.sum(axis=1)).astype(np.uint32), np.nonzero(is_pair)[1].astype(np.uint32))


class PairTable(NamedTuple):
    """Features and labels of a model, or columns of another kind, and their pairs that have a weight, if not all do."""

    n_features: int
    n_labels: int
    pairs: Pairs | None

    @property
    def numbers(self) -> np.ndarray:
        """A number for each pair that has a weight, ascending, in the order of the weights."""
        if self.pairs is None:
            return np.arange(self.n_features * self.n_labels)
        return pair_numbers(self.pairs, np.arange(self.n_features), self.n_labels)

    def numbers_in(self, other: PairTable, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The numbers of the same pairs in another table, given where its features and labels are, or are NOWHERE."""
        feature, label = np.divmod(self.numbers, self.n_labels)
        is_known = (features[feature] != NOWHERE) & (labels[label] != NOWHERE)
        return np.where(is_known, features[feature] * other.n_labels + labels[label], NOWHERE)

    def with_numbers(self, numbers: np.ndarray) -> PairTable:
        """The table in which the pairs of these ascending numbers have weights."""
        feature, label = np.divmod(numbers, self.n_labels)
        counts = np.bincount(feature, minlength=self.n_features)
        return self._replace(pairs=Pairs(starts_of(counts).astype(np.uint32), label.astype(np.uint32)))


def move_weights(w: np.ndarray, numbers: np.ndarray, table: PairTable) -> np.ndarray:
    """The weights of a table, given others and their numbers in it; zero where there are none."""
    known = table.numbers
    moved = np.zeros(len(known), w.dtype)
    at = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
    is_there = known[at] == numbers if len(known) else np.zeros(len(numbers), bool)
    moved[at[is_there]] = w[is_there]
    return moved
