"""Labels of one sequence at a time, as services ask for them.

To put a problem together, and to make it ready for loops, takes several times as long as to label a sentence. Here
both are done once: the arrays of the problem have room to spare, and each sequence is written into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from maxmargin import inference
from maxmargin.arrays.blocks import Blocks
from maxmargin.encode.chain_encoder import ChainEncoder
from maxmargin.encode.inputs.rows import Rows
from maxmargin.encode.names.name_columns import MOST_KEPT
from maxmargin.encode.names.named_rows import Codes, has_names, read_codes
from maxmargin.encode.sequences.transition_rules import check_feasible
from maxmargin.execution.prediction_loops import decode
from maxmargin.execution.runner import Runner
from maxmargin.features.observed import ObservedFeatures
from maxmargin.problem import part_sizes
from maxmargin.runtime.modes import is_interpreted
from maxmargin.structures.chains.sparse_chain_problem import chain_of, with_chain
from maxmargin.supervision.label_supervision import NO_LABEL
from maxmargin.text.token_features.named_features import is_named

ROOM = 128, 8192  # for positions and their features, at first
MOST_ROOM = 4000, 1_000_000  # that is kept


def best_labels(encoder: object, X: object, w: np.ndarray) -> np.ndarray | None:
    """The best labels of X, if it is one sequence with features by name that are all 1; None of anything else."""
    if type(encoder) is not ChainEncoder or not isinstance(X, Sequence) or len(X) != 1 or is_interpreted.get():
        return None
    if encoder.n_edge_features:
        return None
    has_name = is_named(X) or (isinstance(X[0], list | tuple) and has_names(X[0]))
    if encoder.vocabulary is None or encoder.vocabulary.n_dense or not encoder.stores_sparse or not has_name:
        return None
    pool = encoder.lone_sequences
    lone = pool.pop() if pool else LoneSequence(encoder)  # each thread takes one
    try:
        return lone.best_labels(X, w)
    finally:
        if all(room <= most for room, most in zip(lone.room, MOST_ROOM, strict=True)):
            pool.append(lone)


class LoneSequence:
    """A problem of one sequence of binary features, which is another one each time.

    Parameters
    ----------
    encoder
        A `ChainEncoder` of features by name, which stores rows sparse.
    """

    def __init__(self, encoder: ChainEncoder) -> None:
        self.encoder = encoder
        self.feasible: set[int] = set()  # lengths
        self.codes = self._new_codes()
        self._make_room(*ROOM)

    def _new_codes(self) -> Codes:
        return Codes(self.encoder.vocabulary.known)  # type: ignore[union-attr]

    def _make_room(self, n_rows: int, n_entries: int) -> None:
        """Make the problem, for sequences of at most so many positions, and features of these."""
        self.room = n_rows, n_entries
        row = Rows(sp.csr_array(([1.0], [0], [0, 1]), (1, self.encoder.n_node_features)), np.array([0, 1]))
        problem = self.encoder.assemble(row, self.encoder.unsupervised(np.full(n_rows, NO_LABEL)), is_once=True)
        features = chain_of(problem).features
        self.is_observed = isinstance(features, ObservedFeatures)
        rows = features.rows if self.is_observed else features
        self.rows = rows._replace(
            indptr=np.zeros(n_rows + 1, np.int64), indices=np.zeros(n_entries, rows.indices.dtype)
        )
        self.ends = np.zeros(n_entries, np.uint32)
        features = features._replace(rows=self.rows, ends=self.ends) if self.is_observed else self.rows
        self.outputs = Blocks(np.zeros(n_rows, np.int32), np.array([0, n_rows]))
        self.runner = Runner(with_chain(problem, features=features, starts=self.outputs.starts))

    def best_labels(self, X: Iterable[object], w: np.ndarray) -> np.ndarray | None:
        """The best labels of the one sequence in X; None if its features are not all 1."""
        entries, ends, _ = read_codes(X, self.codes)
        n_rows, width = len(ends) - 1, self.encoder.n_node_features
        if self.codes.other_columns or len(self.codes) > MOST_KEPT:
            self.codes = self._new_codes()
            return None
        if not n_rows:
            return None
        starts = width * np.arange(n_rows + 1)
        places = (np.repeat(starts[:-1], np.diff(ends)) + entries)[entries >= 0]  # in a table of rows and columns
        if self.encoder.has_bias:
            bias = self.encoder.n_features_in  # of every row, of the first and of the last one: see `append_biases`
            places = np.concatenate([places, starts[:-1] + bias, [bias + 1, starts[-2] + bias + 2]])
        places.sort()
        if (places[1:] == places[:-1]).any():  # a name that an item has twice
            return None
        self._write(places % width, np.searchsorted(places, starts))
        bound = self.runner.problem
        inference.run(self.runner, decode, w, part_sizes(bound), self.outputs)
        return self.encoder.classes[self.outputs.values[:n_rows]]

    def _write(self, columns: np.ndarray, ends: np.ndarray) -> None:
        """Become the problem of a sequence, whose row t has ones in the columns ends[t]:ends[t + 1]."""
        n_rows, n_entries = len(ends) - 1, len(columns)
        if n_rows not in self.feasible:
            check_feasible(self.encoder.penalty == 0, self.encoder.end_penalty == 0, np.array([n_rows]))
            self.feasible.add(n_rows)
        if n_rows > self.room[0] or n_entries > self.room[1]:
            self._make_room(2 * n_rows, 2 * n_entries)
        self.outputs.starts[1] = n_rows
        self.rows.indptr[: n_rows + 1] = ends
        if self.is_observed:
            starts = self.encoder.node_pairs.start  # type: ignore[union-attr]
            columns, self.ends[:n_entries] = starts[columns], starts[1:][columns]
        self.rows.indices[:n_entries] = columns
