"""What chains and trees share: weights of nodes and edges, all or those of observed pairs, and names of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.blocks import starts_of
from maxmargin.checks import check_choice
from maxmargin.encode.inputs.base_encoder import Encoder, LabellingEncoder, P
from maxmargin.encode.inputs.example_checks import find_labels, join_classes
from maxmargin.encode.inputs.rows import WRITABLE, DenseBlock, Rows, pair_features, row_features
from maxmargin.encode.names.vocabulary import Vocabulary, join_features, places_of
from maxmargin.features import layout_of_rows, with_gram
from maxmargin.features.mixed import mix_features
from maxmargin.features.pairs import (
    NONE,
    NOWHERE,
    Pairs,
    PairTable,
    all_pairs,
    are_pairs,
    find_pairs,
    find_rare_pairs,
    move_weights,
)

N_BIASES = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeEdgeEncoder(LabellingEncoder[P]):
    """An encoder of structures whose weights are those of nodes, then those of edges, which have two labels each."""

    vocabulary: Vocabulary | None = None  # of features that have names
    node_pairs: Pairs | None = None  # those that have a weight, if not all do
    edge_pairs: Pairs | None = None

    @property
    def n_all_edge_features(self) -> int:
        """The number of features of edges, the constant one included."""
        return 1

    @property
    def n_node_features(self) -> int:
        """The number of features of nodes, those of biases included."""
        return self.n_features_in + N_BIASES * self.has_bias

    @property
    def n_weights(self) -> int:
        if self.node_pairs is not None and self.edge_pairs is not None:
            return len(self.node_pairs.labels) + len(self.edge_pairs.labels)
        n_labels = len(self.classes)
        return self.n_node_features * n_labels + self.n_all_edge_features * n_labels**2

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        n_labels = len(self.classes)
        yield "vocabulary", self.vocabulary is None or self.vocabulary.size == self.n_features_in
        yield "vocabulary", self.vocabulary is None or 0 < self.vocabulary.dense_factor < np.inf
        yield "edge_pairs", (self.node_pairs is None) == (self.edge_pairs is None)
        yield "node_pairs", are_pairs(self.node_pairs, self.n_node_features, n_labels)
        yield "edge_pairs", are_pairs(self.edge_pairs, self.n_all_edge_features, n_labels**2)

    def compact(self, w: np.ndarray) -> tuple[Self, np.ndarray]:
        """Without the names and pairs whose weights are zero, as L1 leaves most."""
        if self.vocabulary is None or self.vocabulary.n_hashed is not None or self.node_pairs is None:
            return self, w
        start, labels = self.node_pairs
        has_weight, width = w[: len(labels)] != 0, self.n_features_in
        n_own = width - self.vocabulary.n_dense - self.vocabulary.n_rare
        has_weight[start[n_own] : start[width]] = True  # dense columns, and those for rare names, stay together
        n_weights = np.diff(starts_of(has_weight)[start])
        is_kept = (n_weights[:width] > 0) | (np.arange(width) >= n_own)
        if not is_kept.any():
            return self, w
        kept = replace(
            self,
            vocabulary=self.vocabulary.selected(is_kept),
            n_features_in=int(is_kept.sum()),
            node_pairs=Pairs(
                starts_of([*n_weights[:width][is_kept], *n_weights[width:]]).astype(np.uint32), labels[has_weight]
            ),
        )
        return kept, np.concatenate([w[: len(labels)][has_weight], w[len(labels) :]])

    @property
    def pair_tables(self) -> tuple[PairTable, PairTable]:
        """The weights of nodes, and those of edges, whose columns are pairs of labels."""
        n_labels = len(self.classes)
        nodes = PairTable(self.n_node_features, n_labels, self.node_pairs)
        return nodes, PairTable(self.n_all_edge_features, n_labels**2, self.edge_pairs)

    def joined(self, other: Self) -> Self:
        vocabulary, n_features = join_features(self, other)
        if self.n_all_edge_features != other.n_all_edge_features or self.has_bias != other.has_bias:
            raise ValueError("X must have as many features of edges, and intercepts, as before.")
        classes = join_classes(self.classes, other.classes)
        both = replace(other, vocabulary=vocabulary, n_features_in=n_features, classes=classes, dtype=self.dtype)
        if (self.node_pairs is None) != (other.node_pairs is None):
            raise ValueError("only_observed must be what it was before.")
        if self.node_pairs is None:
            return both
        numbers = [merge(*known) for known in zip(self._numbers_in(both), other._numbers_in(both), strict=True)]
        nodes, edges = (table.with_numbers(found) for table, found in zip(both.pair_tables, numbers, strict=True))
        return replace(both, node_pairs=nodes.pairs, edge_pairs=edges.pairs)

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        same = super().weights_of(other, w)
        if same is not None or not isinstance(other, NodeEdgeEncoder) or type(other) is not type(self):
            return same
        if self.n_all_edge_features != other.n_all_edge_features or places_of(other, self) is None:
            return None
        numbers = other._numbers_in(self)
        parts = np.split(w, [len(numbers[0])])
        return np.concatenate([*map(move_weights, parts, numbers, self.pair_tables)])

    def _numbers_in(self, other: NodeEdgeEncoder) -> list[np.ndarray]:
        """The numbers of its pairs, of nodes and of edges, in the tables of another encoder."""
        features = places_of(self, other)
        assert features is not None
        biases = other.n_features_in + np.arange(N_BIASES * self.has_bias) if other.has_bias else [NOWHERE] * N_BIASES
        labels = find_labels(self.classes, other.classes)
        before, after = np.meshgrid(labels, labels, indexing="ij")
        pairs = np.where((before < 0) | (after < 0), NOWHERE, before * len(other.classes) + after).ravel()
        places = (np.append(features, biases).astype(np.int64), labels), (np.arange(self.n_all_edge_features), pairs)
        tables = zip(self.pair_tables, other.pair_tables, places, strict=True)
        return [mine.numbers_in(theirs, *where) for mine, theirs, where in tables]

    def observe(
        self,
        which: bool | str,
        nodes: sp.csr_array,
        labels: np.ndarray,
        edges: sp.csr_array,
        edge_labels: np.ndarray,
        least: float = 0.0,
        dense: slice = NONE,
    ) -> Self:
        """The same with weights only of what occurs: rows of nodes and edges, sparse, and the label of each row.

        `which` says of what: "features" of nodes, "transitions", or both if it is True; those of the others are all
        there. What occurs less often than `least` in sum is left out, but for `dense` columns of nodes, which have all.
        """
        check_choice("only_observed", which, (True, "features", "transitions"))
        n_labels, n_pairs = len(self.classes), len(self.classes) ** 2
        has_nodes, has_edges = which in (True, "features"), which in (True, "transitions")
        node_pairs = find_pairs(nodes, labels, n_labels, least, dense) if has_nodes else all_pairs(nodes, n_labels)
        if has_edges and edge_labels.ndim == 1:
            edge_pairs = find_rare_pairs(edges, edge_labels, n_pairs, least)
        else:
            edge_pairs = find_pairs(edges, edge_labels, n_pairs, least) if has_edges else all_pairs(edges, n_pairs)
        if not node_pairs.labels.size + edge_pairs.labels.size:
            raise ValueError(f"No pair of a feature and a label, or of two labels, occurs {least:g} times or more.")
        return replace(self, node_pairs=node_pairs, edge_pairs=edge_pairs)

    def features(
        self,
        rows: Rows,
        pairs: Pairs | None,
        *,
        with_grams: bool = False,
        may_split: bool = False,
        is_once: bool = False,
    ) -> Any:
        """Rows as features that have weights for all labels, or for these pairs.

        Those of pairs may be split in two parts, if said so, or be for one pass only.
        """
        if pairs is None:
            found = row_features(rows, self.dtype, with_grams=with_grams and rows.dense is None)
        else:
            found = pair_features(rows, pairs, len(self.classes), self.dtype, may_split=may_split, is_once=is_once)
        return found if rows.dense is None else self._mix(found, rows, rows.dense, pairs, with_grams)

    def _mix(self, sparse: object, rows: Rows, dense: DenseBlock, pairs: Pairs | None, with_grams: bool) -> Any:
        """Features with dense columns beside them: their weights stand together, however the others lie."""
        n_labels, width = len(self.classes), rows.matrix.shape[1]
        begin = dense.first * n_labels if pairs is None else int(pairs.start[dense.first])
        place = layout_of_rows(sparse, width, n_labels).place
        table, which = np.require(dense.table, self.dtype, WRITABLE), np.require(dense.which, np.int32, WRITABLE)
        begin = begin if place is None else int(place[begin])
        mixed = mix_features(sparse, table, which, begin, len(rows.lengths))
        return with_gram(mixed, rows.starts, width) if with_grams and pairs is None else mixed

    def tables(self, w: np.ndarray, n_edge_features: int) -> tuple[object, np.ndarray, np.ndarray]:
        """The weights of features (F, L), of biases, and of the first features of edges (F_edge, L, L).

        They are views. Of observed pairs those of features are a sparse matrix, whose data are a view, and the others
        have zeros for what was not observed: they are copies, which cannot be changed.
        """
        n_labels, width = len(self.classes), self.n_features_in
        if self.node_pairs is None or self.edge_pairs is None:
            cut = w.size - self.n_all_edge_features * n_labels**2
            nodes = w[:cut].reshape(-1, n_labels)
            return nodes[:width], nodes[width:], w[cut:].reshape(-1, n_labels, n_labels)
        start, labels = self.node_pairs
        cut = int(start[width])
        emissions = sp.csr_array((w[:cut], labels[:cut], start[: width + 1]), (width, n_labels))
        emissions.data = w[:cut]  # of which SciPy may have made a copy
        parts = (w[cut : labels.size], labels[cut:], start[width:] - start[width])
        biases = sp.csr_array(parts, (len(start) - 1 - width, n_labels)).toarray()
        edges = self.edge_table(w)[:n_edge_features].toarray()
        biases.flags.writeable = edges.flags.writeable = False
        return emissions, biases, edges.reshape(-1, n_labels, n_labels)

    def edge_table(self, w: np.ndarray) -> sp.csr_array:
        """The weights of all features of edges, (F_edge, L^2), where only observed pairs have one."""
        assert self.node_pairs is not None
        assert self.edge_pairs is not None
        start, labels = self.edge_pairs
        weights = w[self.node_pairs.labels.size :]
        return sp.csr_array((weights, labels, start), (self.n_all_edge_features, len(self.classes) ** 2))


def merge(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What is in one of two arrays that are sorted, for the most part; far faster than by `np.union1d`."""
    both = np.sort(np.concatenate([a, b]), kind="stable")
    return both[np.append(True, both[1:] != both[:-1])[: len(both)]]
