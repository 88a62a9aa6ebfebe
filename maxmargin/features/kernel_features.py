"""Kernels: rows of features that are known by their inner products with the N rows of the training examples.

The weights of such features are combinations of these rows, W = sum_t phi(x_t) a_t'. Kept are, for each label, its N
coefficients a, then the N scores s = K a that they give to the training rows. Scores are read off.
A step on a row changes its coefficients, and adds multiples of a row of the Gram matrix K to the scores of the labels
that change: few, between two outputs. Sums over all examples are of coefficients only, and are then completed by one
product of matrices. Both tables are linear, so mixtures of weights have no need of K; <W, W'> = <a, s'>.

Rows of K are kept up to a limit: those of the first training rows at first, then of those that have coefficients. The
others are computed when they are needed. Linear features, such as biases, stand beside the kernel:
K = k(x, x') + <extra, extra'>.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import add_scaled, copy_into
from maxmargin.arrays.views import matrix, multiply
from maxmargin.features import linear_map
from maxmargin.features.kernels import LINEAR, Kernel, Shape, apply_kernel, squared_lengths
from maxmargin.features.layout import WeightLayout, keep_complete, lay_out
from maxmargin.features.linear_map import Gram
from maxmargin.features.parts import squared_norm_parts, squared_spreads
from maxmargin.runtime.dispatch import helper, implements

PIECE = 256  # rows of a Gram matrix that are multiplied at once


class KernelFeatures(NamedTuple):
    """The N training rows, and the rows of their Gram matrix that are kept.

    Where the whole matrix is kept from the beginning, `rows` and `columns` are empty.
    """

    rows: np.ndarray  # (N, F)
    columns: np.ndarray  # (F, N) the same
    squares: np.ndarray  # (N,) their squared norms
    extra: np.ndarray  # (N, E) linear features
    shape: Shape
    kept: np.ndarray  # (R, N) rows of the Gram matrix, in any order
    slot: np.ndarray  # (N,) where the row of each training row is, -1 if it is not kept
    free: np.ndarray  # (R,) a stack of the places that hold no row
    n_free: np.ndarray  # (1,)
    room: np.ndarray  # (1, N) for a row
    gram: Gram  # of each example
    n_labels: int
    follows: bool  # whether the scores follow each change of coefficients, or are completed afterwards


def kernel_features(
    rows: np.ndarray, extra: np.ndarray, starts: np.ndarray, n_labels: int, shape: Shape, n_kept: int
) -> KernelFeatures:
    """Features of dense rows, of which up to `n_kept` rows of the Gram matrix are kept."""
    blocks = [Kernel(shape)(rows[lo:hi], rows[lo:hi]) + extra[lo:hi] @ extra[lo:hi].T for lo, hi in pairwise(starts)]
    n, n_kept = len(rows), min(n_kept, len(rows))
    features = KernelFeatures(
        rows=np.ascontiguousarray(rows),
        columns=np.ascontiguousarray(rows.T),
        squares=squared_lengths(rows),
        extra=np.ascontiguousarray(extra, rows.dtype),
        shape=shape,
        kept=np.empty((n_kept, n), rows.dtype),
        slot=np.full(n, -1),
        free=np.arange(n_kept)[::-1].copy(),
        n_free=np.array([n_kept]),
        room=np.empty((1, n), rows.dtype),
        gram=gram_of(blocks),
        n_labels=n_labels,
        follows=False,
    )
    for part in _pieces(np.arange(n_kept)):
        _keep(features, part, _rows_of_gram(features, part))
    return features


def whole_gram_features(gram: np.ndarray, extra: np.ndarray, starts: np.ndarray, n_labels: int) -> KernelFeatures:
    """Features of a Gram matrix that is known."""
    gram = np.ascontiguousarray(gram + extra @ extra.T, extra.dtype)
    blocks = [gram[lo:hi, lo:hi] for lo, hi in pairwise(starts)]
    n, nothing = len(gram), np.empty((0, 0), gram.dtype)
    return KernelFeatures(
        rows=nothing,
        columns=nothing,
        squares=nothing[:, 0:0].ravel(),
        extra=extra,
        shape=Shape(LINEAR, 1.0, 0.0, 1),
        kept=gram,
        slot=np.arange(n),
        free=np.zeros(0, np.int64),
        n_free=np.zeros(1, np.int64),
        room=nothing,
        gram=gram_of(blocks),
        n_labels=n_labels,
        follows=False,
    )


def gram_of(blocks: list[np.ndarray]) -> Gram:
    """The Gram matrices of all examples."""
    sizes = linear_map.folded_size(np.array([len(block) for block in blocks]))
    return Gram(
        np.concatenate([linear_map.fold(block.astype(np.float64)) for block in blocks]), np.cumsum(sizes) - sizes
    )


# --- in loops -------------------------------------------------------------------------------------------------------


@implements(linear_map.weight_shape, KernelFeatures)
def both_tables(features, n_features, n_labels):
    return 2 * n_labels, n_features


@implements(linear_map.score_rows, KernelFeatures)
def score_kernel(features, weights, lo, hi, out):
    for label in range(out.shape[1]):
        for t in range(lo, hi):
            out[t - lo, label] = weights[2 * label + 1, t]


@implements(linear_map.spread_rows, KernelFeatures)
def spread_kernel(features, weights, lo, hi, delta, scale):
    step = weights.dtype.type(scale)
    for label in range(delta.shape[1]):
        for t in range(lo, hi):
            weights[2 * label, t] += step * delta[t - lo, label]
    if not features.follows:
        return
    for t in range(lo, hi):
        if linear_map.row_is_zero(delta, t - lo):
            continue
        if features.slot[t] < 0:
            multiply(features.rows[t : t + 1], features.columns, features.room)
            finish_row(features, t, features.room[0])
            add_to_scores(weights, delta[t - lo], step, features.room[0])
        else:
            add_to_scores(weights, delta[t - lo], step, features.kept[features.slot[t]])


@implements(linear_map.dot_row, KernelFeatures)
def dot_kernel_row(features, t, dense):
    return dense[features.slot.size + t]


@implements(linear_map.add_row, KernelFeatures)
def add_kernel_row(features, t, scale, dense):
    step = dense.dtype.type(scale)
    dense[t] += step
    if not features.follows:
        return
    scores = dense[features.slot.size :]
    if features.slot[t] < 0:
        multiply(features.rows[t : t + 1], features.columns, features.room)
        finish_row(features, t, features.room[0])
        add_scaled(scores, features.room[0], step)
    else:
        add_scaled(scores, features.kept[features.slot[t]], step)


@helper
def finish_row(features, t, row):
    """Turn inner products with row t into a row of the Gram matrix; keep it if there is a place."""
    apply_kernel(row, features.squares[t], features.squares, features.shape)
    for e in range(features.extra.shape[1]):
        if features.extra[t, e] != 0:
            add_scaled(row, features.extra[:, e], features.extra[t, e])
    if features.n_free[0] > 0:
        features.n_free[0] -= 1
        place = features.free[features.n_free[0]]
        copy_into(features.kept[place], row)
        features.slot[t] = place


@helper
def add_to_scores(weights, delta, step, row):
    """The scores of each label += step * delta[label] * row."""
    for label in range(delta.size):
        if delta[label] != 0:
            add_scaled(weights[2 * label + 1], row, step * delta[label])


@implements(linear_map.squared_norm_rows, KernelFeatures)
def squared_norm_kernel(features, i, lo, hi, delta, buffer):
    return linear_map.gram_squared_norm(features.gram, i, hi - lo, delta)


@implements(squared_norm_parts, KernelFeatures)
def squared_norm_kernel_parts(features, i, lo, hi, delta, buffer):
    return linear_map.gram_squared_norm(features.gram, i, hi - lo, matrix(delta, 0, hi - lo, 1))


@implements(linear_map.bound_sums, KernelFeatures)
def bound_sums_of_kernel(features, counts):
    """Those of all rows of an example, for each of the groups that it has."""
    sums = np.add.reduceat(np.abs(features.gram.values), features.gram.at)
    return np.repeat(sums, counts.shape[0] // len(sums))


@implements(squared_spreads, KernelFeatures)
def squared_kernel_spreads(features, starts):
    grams = [linear_map.unfold(features.gram, i, int(n)) for i, n in enumerate(np.diff(starts))]
    return np.array([*map(_squared_spread, grams)])


# --- in Python ------------------------------------------------------------------------------------------------------


def tables(features: KernelFeatures, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients and the scores in weights, (L, N) each, as views."""
    pairs = w[: 2 * features.n_labels * len(features.slot)].reshape(features.n_labels, 2, len(features.slot))
    return pairs[:, 0], pairs[:, 1]


def complete(features: KernelFeatures, w: np.ndarray) -> None:
    """Make the scores in weights those of the coefficients; rows of the Gram matrix without any give up their place."""
    coefficients, whole = tables(features, w)
    coefficients, scores = coefficients.astype(np.float64), np.zeros(whole.shape)
    is_used = coefficients.any(axis=0)
    missing = np.flatnonzero(is_used & (features.slot < 0))
    if missing.size:
        _release(features, np.flatnonzero(~is_used & (features.slot >= 0)))
    stored = np.flatnonzero(is_used & (features.slot >= 0))
    stored = stored[np.argsort(features.slot[stored])]
    for part in _pieces(stored):
        places = features.slot[part]
        is_range = places[-1] - places[0] == len(part) - 1
        rows = features.kept[places[0] : places[-1] + 1] if is_range else features.kept[places]
        scores += coefficients[:, part] @ rows.astype(np.float64, copy=False)
    for part in _pieces(missing):
        rows = _rows_of_gram(features, part)
        scores += coefficients[:, part] @ rows.astype(np.float64, copy=False)
        _keep(features, part, rows)
    whole[:] = scores


def _rows_of_gram(features: KernelFeatures, part: np.ndarray) -> np.ndarray:
    return Kernel(features.shape)(features.rows[part], features.rows) + features.extra[part] @ features.extra.T


def _keep(features: KernelFeatures, part: np.ndarray, rows: np.ndarray) -> None:
    """Keep rows of the Gram matrix, as many as there are places for."""
    n_stored = min(len(part), int(features.n_free[0]))
    features.n_free[0] -= n_stored
    places = features.free[features.n_free[0] :][:n_stored][::-1]
    features.kept[places] = rows[:n_stored]
    features.slot[part[:n_stored]] = places


def _squared_spread(gram: np.ndarray) -> float:
    """The largest squared distance between two rows, of which this is the Gram matrix."""
    squares = np.diag(gram)
    return float((squares[:, np.newaxis] + squares - 2 * gram).max())


def _pieces(indices: np.ndarray) -> list[np.ndarray]:
    return np.split(indices, np.arange(PIECE, len(indices), PIECE)) if len(indices) else []


def _release(features: KernelFeatures, unused: np.ndarray) -> None:
    n_free = int(features.n_free[0])
    features.free[n_free : n_free + len(unused)] = features.slot[unused]
    features.n_free[0] += len(unused)
    features.slot[unused] = -1


class KernelLayout(WeightLayout):
    """Of each label the coefficients, which are the weights of a model, and the scores that they give to the rows."""

    is_explicit = False

    def __init__(self, features: KernelFeatures) -> None:
        n_solved = 2 * features.n_labels * len(features.slot)
        super().__init__(n_solved, tables(features, np.arange(n_solved, dtype=np.uint32))[0].ravel())
        self.features = features

    def complete(self, w: np.ndarray) -> None:
        complete(self.features, w)

    def inner(self, a: np.ndarray, b: np.ndarray) -> float:
        coefficients, scores = tables(self.features, a)[0], tables(self.features, b)[1]
        return float(np.einsum("lt,lt->", coefficients, scores, dtype=np.float64))

    def squared_length(self, w: np.ndarray) -> float:
        """As that of other weights, rounded up by what the scores may be rounded by."""
        coefficients, scores = tables(self.features, w)
        rounding = float(np.finfo(w.dtype).eps) * float(np.einsum("lt,lt->", np.abs(coefficients), np.abs(scores)))
        return max(self.inner(w, w), 0.0) + rounding


@implements(lay_out, KernelFeatures)
def lay_out_kernel(features, n_features, n_labels):
    return KernelLayout(features)


@implements(keep_complete, KernelFeatures)
def follow_coefficients(field):
    return field._replace(follows=True)


class KnownScores(NamedTuple):
    """Rows whose scores are known, as those of new rows under the coefficients of a model; weights are not read."""

    scores: np.ndarray  # (M, L)
    width: int  # of the weights, for each label


@implements(linear_map.weight_shape, KnownScores)
def known_table(features, n_features, n_labels):
    return n_labels, features.width


@implements(linear_map.dot_row, KnownScores)
def dot_known_row(features, t, dense):
    return features.scores[t, 0]


@implements(linear_map.score_rows, KnownScores)
def score_known(features, weights, lo, hi, out):
    for t in range(lo, hi):
        for label in range(out.shape[1]):
            out[t - lo, label] = features.scores[t, label]
