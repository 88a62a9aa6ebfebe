"""Observed pairs as solvers keep them: rows of weights for features that meet many labels, pairs for the others.

On text a few thousand features, such as tags, prefixes and frequent words, meet many labels each, and nearly all of the
work is theirs: with a weight for every label, and zero for pairs that were not observed, they are rows of vectors. The
others meet one or two labels, and keep a weight for each. Both stand in the order in which memory is best used: rows by
how often they occur, pairs by their first use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import places_in, starts_of
from maxmargin.arrays.lanes import BLOCK, LANES, as_precise, fetch, times
from maxmargin.arrays.views import matrix
from maxmargin.features import linear_map
from maxmargin.features.layout import PartialLayout, WeightLayout, drop_unmet, lay_out
from maxmargin.features.linear_map import Gram
from maxmargin.features.observed import select_entries
from maxmargin.features.pairs import Pairs
from maxmargin.features.sparse import SparseRows, entry, meet, spread_block
from maxmargin.runtime.dispatch import implements
from maxmargin.runtime.modes import is_enough

MANY = 1 / 4  # of all labels: features that meet more have a row of weights
LONG = 100  # rows of an example: those with more have no Gram matrix
ENOUGH_VISITS = 1_000_000  # of weights in a pass: with fewer there is little to gain
MOST = 2**16  # features with a row of weights, and labels
MOST_MET = 2 / 3  # of the weights of rare features, where the others are left out: to tell them apart takes time, too
ENTRIES = 500_000  # looked at at once: less memory than all of them


class SplitFeatures(NamedTuple):
    """Sparse or binary rows, in two parts: their entries of frequent features, and the others.

    An entry p of `rare` meets the weights from rare.indices[p] on, n_met[p] of them.
    """

    frequent: SparseRows
    is_observed: np.ndarray  # (F, L) which weights of frequent features there are, as numbers 0 and 1
    rare: SparseRows
    n_met: np.ndarray  # uint16
    labels: np.ndarray  # uint16, of the weights of rare features, which come after those of the frequent ones
    place: np.ndarray  # (P,) where the weight of each pair is; after the last one, if it is not there
    gram: Gram  # of all features, whatever pairs they have


def split_features(
    rows: SparseRows, pairs: Pairs, n_labels: int, n_examples: int, dtype: DTypeLike
) -> SplitFeatures | None:
    """Sparse or binary rows with weights for these pairs, in two parts; None if that is not worth it."""
    n_met = np.diff(pairs.start)
    n_uses, first_use = _uses(rows.indices, len(n_met))
    if not is_enough(int(n_uses @ n_met), ENOUGH_VISITS) or n_labels >= MOST:
        return None
    frequent = np.flatnonzero((n_met > MANY * n_labels) & (n_uses > 0))
    frequent = frequent[np.argsort(-n_uses[frequent], kind="stable")][:MOST]
    is_frequent = np.zeros(len(n_met), bool)
    is_frequent[frequent] = True
    rare = np.flatnonzero(~is_frequent)
    rare = rare[np.argsort(first_use[rare], kind="stable")]
    begin = np.zeros(len(n_met), np.uint32)  # of the rows, or of the pairs
    begin[frequent] = np.arange(len(frequent))
    begin[rare] = starts_of(n_met[rare])[:-1]

    owner = np.repeat(np.arange(len(n_met)), n_met)  # the feature of each pair
    is_in_row, n_rows = is_frequent[owner], len(frequent) * n_labels
    within = places_in(n_met)
    place = np.where(is_in_row, begin[owner].astype(np.int64) * n_labels + pairs.labels, n_rows + begin[owner] + within)
    is_observed = np.zeros((len(frequent), n_labels), dtype)
    is_observed.ravel()[place[is_in_row]] = 1
    labels = np.empty(len(owner) - np.count_nonzero(is_in_row), np.uint16)
    labels[place[~is_in_row] - n_rows] = pairs.labels[~is_in_row]

    met_from = np.zeros(len(labels) + 1, np.uint16)  # the number of weights of the feature that begins there
    met_from[begin[rare]] = n_met[rare]
    rare_rows = select_entries(rows, ~is_frequent & (n_met > 0), begin, n_met)
    return SplitFeatures(
        frequent=select_entries(rows, is_frequent, begin.astype(np.uint16)),
        is_observed=is_observed,
        rare=rare_rows,
        n_met=met_from[rare_rows.indices],
        labels=labels,
        place=place.astype(np.uint32),
        gram=Gram(np.empty(0, np.float32), np.full(n_examples, -1, np.int64)),
    )


def _uses(indices: np.ndarray, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each feature occurs, and its first entry, or one after all where it does not; little by little."""
    n_uses, first_use = np.zeros(n_features, np.int64), np.full(n_features, len(indices))
    for lo in range(0, len(indices), ENTRIES)[::-1]:
        part = indices[lo : lo + ENTRIES]
        n_uses += np.bincount(part, minlength=n_features)
        first_use[part[::-1]] = np.arange(lo, lo + len(part))[::-1]
    return n_uses, first_use


@implements(linear_map.weight_shape, SplitFeatures)
def table_and_column(features, n_features, n_labels):
    return features.is_observed.size + features.labels.size, 1


@implements(lay_out, SplitFeatures)
def lay_out_pairs(features, n_features, n_labels):
    n_solved, place = features.is_observed.size + features.labels.size, features.place
    which = np.flatnonzero(place < n_solved).astype(np.uint32)
    return (
        WeightLayout(n_solved, place)
        if len(which) == len(place)
        else PartialLayout(n_solved, place[which], which, len(place))
    )


@implements(drop_unmet, SplitFeatures)
def drop_unmet_pairs(features):
    """Rare features that do not occur come last; a few of them stay."""
    rare, first = features.rare, features.is_observed.size
    n_met = int((rare.indices + features.n_met).max(initial=0))
    if n_met > MOST_MET * features.labels.size:
        return features
    return features._replace(
        labels=features.labels[:n_met].copy(), place=np.minimum(features.place, np.uint32(first + n_met))
    )


@implements(linear_map.as_matrix, SplitFeatures)
def split_matrix(features, n_rows):
    return sp.hstack(
        [linear_map.as_matrix(features.frequent, n_rows), linear_map.as_matrix(features.rare, n_rows)], format="csr"
    )


@implements(linear_map.score_rows, SplitFeatures)
def score_split(features, weights, lo, hi, out):
    table = matrix(weights, 0, features.is_observed.shape[0], features.is_observed.shape[1])
    linear_map.score_rows(features.frequent, table, lo, hi, out)
    rare, n_met, labels = features.rare, features.n_met, features.labels
    after = features.is_observed.size
    for t in range(lo, hi):
        for p in range(rare.indptr[t], rare.indptr[t + 1]):
            x = entry(rare, p)
            for k in range(rare.indices[p], rare.indices[p] + n_met[p]):
                out[t - lo, labels[k]] += x * weights[after + k, 0]


@implements(linear_map.spread_rows, SplitFeatures)
def spread_split(features, weights, lo, hi, delta, scale):
    rare, n_met, labels = features.rare, features.n_met, features.labels
    table = matrix(weights, 0, features.is_observed.shape[0], features.is_observed.shape[1])
    after = features.is_observed.size
    n_labels = delta.shape[1]
    step = weights.dtype.type(scale)
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        begin = features.frequent.indptr[t]
        end = features.frequent.indptr[t + 1]
        if n_labels >= LANES:
            for c in range(0, n_labels, BLOCK):
                spread_block(features, features.frequent, table, begin, end, delta, t - lo, c, step)
        else:
            for p in range(begin, end):
                f = np.int64(features.frequent.indices[p])
                x = entry(features.frequent, p) * step
                for label in range(n_labels):
                    table[f, label] += x * features.is_observed[f, label] * delta[t - lo, label]
        for p in range(rare.indptr[t], rare.indptr[t + 1]):
            x = entry(rare, p) * step
            for k in range(rare.indices[p], rare.indices[p] + n_met[p]):
                weights[after + k, 0] += x * delta[t - lo, labels[k]]


@implements(meet, SplitFeatures)
def meet_observed(features, x, f, c, weights):
    return times(x, as_precise(fetch(features.is_observed, f, c), weights))


@implements(linear_map.squared_norm_rows, SplitFeatures)
def squared_norm_split(features, i, lo, hi, delta, buffer):
    """With a Gram matrix an upper bound: it is that of directions in which all pairs have a weight."""
    if features.gram.at[i] >= 0:
        return linear_map.gram_squared_norm(features.gram, i, hi - lo, delta)
    linear_map.spread_rows(features, buffer, lo, hi, delta, 1.0)
    frequent, rare = features.frequent, features.rare
    table = matrix(buffer, 0, features.is_observed.shape[0], features.is_observed.shape[1])
    after = features.is_observed.size
    total = 0.0
    for p in range(frequent.indptr[lo], frequent.indptr[hi]):  # cleared as read: each weight counts once
        f = np.int64(frequent.indices[p])
        for label in range(table.shape[1]):
            total += table[f, label] * table[f, label]
            table[f, label] = 0
    for p in range(rare.indptr[lo], rare.indptr[hi]):
        for k in range(rare.indices[p], rare.indices[p] + features.n_met[p]):
            total += buffer[after + k, 0] * buffer[after + k, 0]
            buffer[after + k, 0] = 0
    return total


@implements(linear_map.row_stretches, SplitFeatures)
def split_stretches(features, lo, hi):
    of_both = [part for rows in (features.frequent, features.rare) for part in linear_map.row_stretches(rows, lo, hi)]
    return [*of_both, *linear_map.gram_stretches(features.gram, lo, hi)]


@implements(linear_map.with_gram, SplitFeatures)
def split_with_gram(features, starts, width):
    """Of all examples: it is cheaper than the sums of both parts, but for very long ones."""
    lengths = np.diff(starts)
    gram = linear_map.new_gram(lengths, lengths <= LONG, np.float32)
    linear_map.fill_gram(features.frequent, starts, gram.at, gram.values, len(features.is_observed))
    linear_map.fill_gram(features.rare, starts, gram.at, gram.values, features.labels.size)
    return features._replace(gram=gram)
