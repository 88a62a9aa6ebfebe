"""Sequences to a `ChainProblem` or an `ObservedChainProblem`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from maxmargin.costs import labelling_costs
from maxmargin.encode.base import LabellingEncoder
from maxmargin.encode.checks import check_array, flatten_labels, flatten_weights, locate
from maxmargin.encode.rows import Rows, append_columns, row_features, stack_rows
from maxmargin.features import SparseFeatures
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.chain import ChainProblem
from maxmargin.structures.observed_chain import ObservedChainProblem, Pairs

BIASES = ("bias", "first", "last")  # features of every row, of the first and of the last row of a sequence


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainEncoder(LabellingEncoder):
    """The encoder of sequences."""

    penalty: np.ndarray  # (L, L) potentials of transitions before any weight
    pairs: Pairs | None = None  # those that have a weight, if not all do

    @classmethod
    def learn(
        cls,
        X: Any,
        y: Any,
        *,
        dtype: Any,
        fit_bias: bool,
        allowed_transitions: Any,
        with_grams: bool,
        cost: Any = None,
        class_weight: Any = None,
        only_observed: bool = False,
        lengths: Any = None,
        position_weight: Any = None,
    ) -> tuple[ChainEncoder, Any]:
        """The encoder and the problem of training sequences; arguments are those of `ChainSVM` and `ChainCRF`."""
        rows = stack_rows(X, lengths)
        flat = flatten_labels(y, rows.lengths, "sequence", is_stacked=lengths is not None)
        classes, labels = np.unique(flat, return_inverse=True)
        penalty = transition_penalties(allowed_transitions, classes, dtype)
        check_feasible(penalty, rows.lengths)
        is_forbidden = penalty[labels[:-1], labels[1:]] != 0
        is_forbidden[rows.offsets[1:-1] - 1] = False  # from one sequence to the next
        if is_forbidden.any():
            token = int(np.flatnonzero(is_forbidden)[0])
            before, after = classes[labels[token : token + 2]].tolist()
            i, _ = locate(token, rows.offsets)
            raise ValueError(f"y[{i}] goes from {before!r} to {after!r}, which allowed_transitions forbids.")
        weights = flatten_weights(position_weight, rows.lengths, "position_weight", "sequence")
        costs = labelling_costs(cost, class_weight, classes, labels, rows.lengths, weights)
        encoder = cls.of(rows, dtype, has_bias=fit_bias, classes=classes, penalty=penalty, stores_sparse=only_observed)
        rows = encoder.stored(rows, append_biases)
        if only_observed:
            encoder = replace(encoder, pairs=observed_pairs(rows, labels, len(classes)))
        return encoder, encoder.assemble(rows, labels, *costs, with_grams=with_grams)

    def problem(self, X: Any, y: Any = None, *, lengths: Any = None) -> Any:
        rows = stack_rows(X, lengths, self.n_features_in)
        check_feasible(self.penalty, rows.lengths)
        labels = self.truth(y, rows, "sequence", is_stacked=lengths is not None)
        costs = labelling_costs(None, None, self.classes, labels, rows.lengths)
        return self.assemble(self.stored(rows, append_biases), labels, *costs)

    def assemble(
        self, rows: Rows, labels: np.ndarray, costs: np.ndarray, scales: np.ndarray, *, with_grams: bool = False
    ) -> Any:
        """Put stored rows, true labels, costs of labels and weights of positions together."""
        shared: dict[str, Any] = {
            "offsets": rows.offsets.astype(np.int64),
            "labels": labels.astype(np.int32),
            "token_cost": scales.astype(self.dtype),
            "cost_matrix": np.ascontiguousarray(costs, self.dtype),
            "penalty": np.ascontiguousarray(self.penalty),
        }
        features = row_features(rows, self.dtype, with_grams=with_grams)
        pairs = self.pairs
        if pairs is None:
            return ChainProblem(features=features, n_features=rows.matrix.shape[1], **shared)
        # Entries hold the first weight of their feature in place of its number, and `ends` says where these end. Those
        # of a row are sorted by the number of weights: then loops over these are of similar length, and a pass takes a
        # third less time.
        starts, ends = pairs.start[features.indices], pairs.start[features.indices + 1]
        arrays = [starts, ends]
        if isinstance(features, SparseFeatures):
            features = features._replace(values=features.values.copy())
            arrays.append(features.values)
        row = np.repeat(np.arange(len(features.indptr) - 1, dtype=np.int32), np.diff(features.indptr))
        for lo in range(0, len(row), 500_000):  # less memory than all at once; a row that is cut is sorted in two parts
            part = slice(lo, lo + 500_000)
            order = np.lexsort((ends[part] - starts[part], row[part]))
            for array in arrays:
                array[part] = array[part][order]
        return ObservedChainProblem(features=features._replace(indices=starts), ends=ends, pairs=pairs, **shared)

    def layout(self, problem: Any) -> tuple[Any, ...]:
        return (problem.offsets,)

    def names(self, w: np.ndarray) -> Bunch:
        n_labels, width = len(self.classes), self.n_features_in
        if self.pairs is None:
            table, transitions = w[: -(n_labels**2)].reshape(-1, n_labels), w[-(n_labels**2) :]
            named = Bunch(emissions=table[:width], transitions=transitions.reshape(n_labels, n_labels))
            biases = table[width:]
        else:
            start, labels, sources, targets = self.pairs
            table = sp.csr_array((w[: labels.size], labels, start), (len(start) - 1, n_labels))
            named = Bunch(emissions=table[:width], transitions=np.zeros((n_labels, n_labels), w.dtype))
            named.transitions[sources, targets] = w[labels.size :]
            biases = table[width:].toarray()
        if self.has_bias:
            named.update(zip(BIASES, biases, strict=True))
        return named


def append_biases(rows: Rows) -> Rows:
    """Three more features: 1 for every row, for the first and for the last row of each sequence."""
    columns = np.zeros((rows.offsets[-1], len(BIASES)))
    columns[:, 0] = 1
    columns[rows.offsets[:-1], 1] = 1
    columns[rows.offsets[1:] - 1, 2] = 1
    return append_columns(rows, columns)


def transition_penalties(allowed: Any, classes: np.ndarray, dtype: Any) -> np.ndarray:
    """The potentials of transitions before any weight: zero, or IMPOSSIBLE for those that are not allowed."""
    n_labels = len(classes)
    if allowed is None:
        return np.zeros((n_labels, n_labels), dtype)
    if isinstance(allowed, (set, frozenset, list, tuple)) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in allowed
    ):
        index = {label: k for k, label in enumerate(classes.tolist())}
        mask = np.zeros((n_labels, n_labels), bool)
        for before, after in allowed:
            for label in (before, after):
                if label not in index:
                    raise ValueError(f"allowed_transitions names {label!r}, which is not a label in y.")
            mask[index[before], index[after]] = True
    else:
        kind = f"a boolean matrix of shape ({n_labels}, {n_labels}) or a set of pairs of labels"
        mask = check_array(allowed, "allowed_transitions", kind, (n_labels, n_labels), dtypes="b")
    return np.where(mask, 0, IMPOSSIBLE).astype(dtype)


def check_feasible(penalty: np.ndarray, lengths: np.ndarray) -> None:
    """Raise where no labelling of some sequence avoids the forbidden transitions."""
    allowed = penalty == 0
    reachable = np.ones(len(penalty), bool)
    # Paths longer than the number of labels contain a cycle, so there are some of any length.
    for length in range(2, int(min(lengths.max(), len(penalty) + 1)) + 1):
        reachable = allowed[reachable].any(axis=0)
        if not reachable.any():
            i = int(np.flatnonzero(lengths >= length)[0])
            raise ValueError(f"allowed_transitions leaves no labelling for X[{i}], of length {lengths[i]}.")


def observed_pairs(rows: Rows, labels: np.ndarray, n_labels: int) -> Pairs:
    """The pairs of a feature and a label, and of two successive labels, that occur in sequences of sparse rows."""
    is_seen = np.zeros((rows.matrix.shape[1], n_labels), bool)
    is_seen[rows.matrix.indices, np.repeat(labels, np.diff(rows.matrix.indptr))] = True
    follows = np.ones(len(labels), bool)
    follows[rows.offsets[:-1]] = False
    is_transition = np.zeros((n_labels, n_labels), bool)
    is_transition[labels[np.flatnonzero(follows) - 1], labels[follows]] = True
    sources, targets = np.nonzero(is_transition)
    return Pairs(
        start=np.concatenate([[0], np.cumsum(is_seen.sum(axis=1))]).astype(np.uint32),
        labels=np.nonzero(is_seen)[1].astype(np.uint32),
        sources=sources.astype(np.uint32),
        targets=targets.astype(np.uint32),
    )
