"""Sequences to a `SegmentProblem`: rows, listed segments, and outputs that are segments or tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.encode.chain_encoder import append_biases
from maxmargin.encode.inputs.base_encoder import Encoder, RowEncoder, by_row, check_exclusions, complete_outputs
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import find_labels, flatten_weights, join_classes, locate
from maxmargin.encode.inputs.node_edge_encoder import N_BIASES
from maxmargin.encode.inputs.rows import Rows, in_one_matrix, pair_features, row_features, stack_rows
from maxmargin.encode.names.vocabulary import (
    Vocabulary,
    join_features,
    learn_names,
    places_of,
    read_sequences,
)
from maxmargin.encode.sentences.listed_rows import ListedRows, learn_listed, list_more, read_listed
from maxmargin.encode.sentences.segment_outputs import is_partial, read_outputs
from maxmargin.encode.sequences.transition_rules import check_transitions, transition_penalties
from maxmargin.features.pairs import NOWHERE, Pairs, PairTable, are_pairs, find_pairs, move_weights
from maxmargin.inference import possible_outputs
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.segments.segment_problem import SegmentProblem
from maxmargin.supervision.exclusions import exclude_labels, nothing_excluded
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, supervise, without_costs
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.text.schemes import OUTSIDE, Entity, spell_entities

ROLES = ("begin", "inside", "end")  # of a row in a segment: a group of columns of parts, and of weights


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentEncoder(RowEncoder[SegmentProblem]):
    """The encoder of sequences that are cut into segments."""

    published = ("classes", "n_features_in", "scheme")

    classes: np.ndarray  # the labels of segments
    longest: np.ndarray  # (L,) int64, the longest segment of each
    scheme: str | None  # of tags that spell them; None of segments
    penalty: np.ndarray  # (L, L) potentials of transitions before any weight
    vocabulary: Vocabulary | None = None  # of features of rows that have names
    pairs: Pairs | None = None  # of a feature of rows and a column that have a weight, if not all do
    n_segment_features: int = 0  # of listed segments
    segment_vocabulary: Vocabulary | None = None  # of those, if they have names

    @property
    def tables(self) -> tuple[PairTable, ...]:
        """The weights of rows, of listed segments, of lengths and of transitions."""
        n_labels = len(self.classes)
        rows = PairTable(self.n_features_in + N_BIASES * self.has_bias, len(ROLES) * n_labels, self.pairs)
        counts = (self.n_segment_features, int(self.longest.max()), n_labels)
        return rows, *(PairTable(n, n_labels, None) for n in counts)

    @property
    def sizes(self) -> list[int]:
        """The number of weights of each of the `tables`."""
        return [len(t.pairs.labels) if t.pairs is not None else t.n_features * t.n_labels for t in self.tables]

    @property
    def n_weights(self) -> int:
        return sum(self.sizes)

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        n_labels, longest = len(self.classes), self.longest
        yield "classes", self.classes.ndim == 1 and n_labels > 0
        yield "longest", longest.shape == (n_labels,) and longest.dtype == np.int64 and bool((longest > 0).all())
        yield "penalty", self.penalty.shape == (n_labels, n_labels) and self.penalty.dtype == self.dtype
        yield "penalty", bool(np.isin(self.penalty, np.array([0, IMPOSSIBLE], self.dtype)).all())
        yield "n_segment_features", self.n_segment_features >= 0
        for name, width in (("vocabulary", self.n_features_in), ("segment_vocabulary", self.n_segment_features)):
            named = getattr(self, name)
            yield name, named is None or named.size == width
        yield "pairs", are_pairs(self.pairs, self.tables[0].n_features, self.tables[0].n_labels)

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        max_length: object,
        allowed_transitions: object,
        only_observed: bool,
        with_grams: bool,
        min_count: int = 1,
        n_hashed: int | None = None,
        segment_features: object = None,
        position_weight: object = None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: SegmentEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training sequences; arguments are those of `SegmentSVM`."""
        names, labels = (None, None) if former is None else (former.vocabulary, former.classes)
        vocabulary, rows = learn_names(X, min_count=min_count, n_hashed=n_hashed, former=names)
        rows = in_one_matrix(stack_rows(rows))
        segment_vocabulary, listed = learn_listed(
            X, segment_features, rows.lengths, min_count=min_count, n_hashed=n_hashed
        )
        outputs = read_outputs(y, rows.lengths)
        classes = outputs.learn_labels(labels)
        longest = outputs.learn_limits(classes, max_length)
        penalty = transition_penalties(allowed_transitions, classes, dtype)
        fields: dict[str, Any] = {"classes": classes, "longest": longest, "penalty": penalty, "scheme": outputs.scheme}
        fields |= {"vocabulary": vocabulary, "segment_vocabulary": segment_vocabulary, "has_bias": bool(fit_intercept)}
        width = listed.rows.matrix.shape[1]
        stores_sparse = bool(only_observed)
        encoder = cls.of(rows, dtype, stores_sparse=stores_sparse, former=former, n_segment_features=width, **fields)
        rows = encoder.stored(rows, append_biases)
        is_whole = outputs.is_whole
        allowed = np.zeros((0, 2 * len(classes)), bool) if is_whole.all() else outputs.allowed(classes, "y")
        states = outputs.states(classes) if is_whole.all() else np.zeros(len(allowed), np.int64)
        if only_observed:
            table = rows.matrix
            if is_whole.all():
                ends = ending_rows(states, len(classes))
                occurring = np.append(states, states[ends] % len(classes) + 2 * len(classes))
                table = sp.csr_array(sp.vstack([table, table[ends]], format="csr"))
            else:
                begin, inside = np.split(allowed, 2, axis=1)
                occurring = np.hstack([begin, inside, begin | inside])
            pairs = find_pairs(table, occurring, encoder.tables[0].n_labels)
            encoder = replace(encoder, pairs=pairs)
        encoder = encoder.after(former)
        weights = flatten_weights(position_weight, rows.lengths, "position_weight", "sequence")
        if is_whole.all():
            check_transitions(penalty, *follow_each_other(states, rows.starts, len(classes)), classes)
            supervision = encoder.supervise(states, 1.0 - np.eye(2 * len(classes)), weights, states)
            return Learned(encoder, encoder.assemble(rows, listed, supervision, with_grams=with_grams, may_split=True))
        known, annotation = np.unique(allowed, axis=0, return_inverse=True)
        supervision = encoder.supervise(states, 1.0 - known, weights, annotation.ravel())
        problem = encoder.assemble(rows, listed, supervision, with_grams=with_grams, may_split=True)
        problem, consistent = complete_outputs(problem, encoder.exclude(problem, allowed), "labels")
        return Learned(encoder, problem, Weak(consistent, is_weak=~outputs.is_certain))

    def supervise(
        self, states: np.ndarray, cost: np.ndarray, weight: np.ndarray, annotation: np.ndarray
    ) -> LabelSupervision:
        """True states, and costs (A, 2 L) of other ones; that a row is the last of a segment costs nothing."""
        nothing = np.zeros((len(cost), len(self.classes)))
        return supervise(states, np.hstack([cost, nothing]), weight, self.dtype, annotation)

    def problem(
        self,
        X: Any,
        y: object = None,
        *,
        segment_features: object = None,
        asked: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> SegmentProblem:
        named = read_sequences(X, self.vocabulary, self.n_features_in)
        rows = in_one_matrix(stack_rows(named, None, self.n_features_in, may_be_empty=True))
        lengths = rows.lengths
        listed = read_listed(X, segment_features, lengths, self.segment_vocabulary, self.n_segment_features)
        listed = listed if asked is None else list_more(listed, asked, lengths)
        states = np.full(rows.starts[-1], NO_LABEL, np.int32)
        if y is not None:
            if not len(lengths):
                raise ValueError("X must hold at least one sequence, but it is empty.")
            outputs = read_outputs(y, lengths)
            outputs.check_whole()
            states = outputs.states(self.classes)
        supervision = without_costs(states, self.tables[0].n_labels, self.dtype)
        problem = self.assemble(self.stored(rows, append_biases), listed, supervision, is_once=y is None)
        if self.penalty.any():
            possible_outputs(problem, "allowed_transitions")
        return problem

    def assemble(
        self,
        rows: Rows,
        listed: ListedRows,
        supervision: LabelSupervision,
        *,
        with_grams: bool = False,
        may_split: bool = False,
        is_once: bool = False,
    ) -> SegmentProblem:
        """Put stored rows, listed segments and what is known of outputs together; see `pair_features`."""
        n_columns = self.tables[0].n_labels
        if self.pairs is None:
            features = row_features(rows, self.dtype, with_grams=with_grams)
        else:
            features = pair_features(rows, self.pairs, n_columns, self.dtype, may_split=may_split, is_once=is_once)
        return SegmentProblem(
            features=features,
            segment_features=row_features(listed.rows, self.dtype, with_grams=with_grams),
            starts=rows.starts.astype(np.int64),
            listed=listed.segments,
            supervision=supervision,
            excluded=nothing_excluded(len(rows.lengths)),
            penalty=np.ascontiguousarray(self.penalty),
            limits=np.ascontiguousarray(self.longest),
            n_features=rows.matrix.shape[1],
            n_segment_features=self.n_segment_features,
            n_columns=n_columns,
        )

    def is_partial(self, y: object) -> bool:
        return is_partial(y)

    def exclude(self, problem: SegmentProblem, allowed: np.ndarray) -> Blocks:
        """What `restrict` takes to leave only some states, (N, 2 L)."""
        either_way = np.zeros((len(allowed), len(self.classes)), bool)
        return exclude_labels(np.hstack([~allowed, either_way]), problem.starts)

    def exclusions(self, problem: SegmentProblem, known: object, name: str) -> Blocks:
        outputs = read_outputs(known, np.diff(problem.starts), name, has_gaps=True)
        return check_exclusions(problem, self.exclude(problem, outputs.allowed(self.classes, name)), name)

    def joined(self, other: SegmentEncoder) -> SegmentEncoder:
        alike = ("scheme", "has_bias", "n_segment_features", "segment_vocabulary")
        if any(getattr(self, name) != getattr(other, name) for name in alike):
            raise ValueError("y, fit_intercept and segment_features must be of the kinds that they were before.")
        if (self.pairs is None) != (other.pairs is None):
            raise ValueError("only_observed must be what it was before.")
        (vocabulary, n_features), classes = join_features(self, other), join_classes(self.classes, other.classes)
        longest = np.ones(len(classes), np.int64)
        penalty = np.zeros((len(classes), len(classes)), self.dtype)
        for one in (self, other):
            at = find_labels(one.classes, classes)
            longest[at] = np.maximum(longest[at], one.longest)
            penalty[np.ix_(at, at)] = one.penalty
        fields: dict[str, Any] = {"classes": classes, "longest": longest, "penalty": penalty, "pairs": None}
        both = replace(self, vocabulary=vocabulary, n_features_in=n_features, **fields)
        if self.pairs is None:
            return both
        numbers = np.union1d(self._numbers_in(both)[0], other._numbers_in(both)[0])
        return replace(both, pairs=both.tables[0].with_numbers(numbers).pairs)

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(other, SegmentEncoder) or places_of(other, self) is None:
            return None
        alike = ("has_bias", "n_segment_features", "segment_vocabulary")
        if any(getattr(self, name) != getattr(other, name) for name in alike):
            return None
        parts = np.split(w, np.cumsum(other.sizes)[:-1])
        return np.concatenate([*map(move_weights, parts, other._numbers_in(self), self.tables)])

    def _numbers_in(self, other: SegmentEncoder) -> list[np.ndarray]:
        """The numbers of its weights in the tables of another encoder."""
        features, labels = places_of(self, other), find_labels(self.classes, other.classes).astype(np.int64)
        assert features is not None
        features = np.append(features, other.n_features_in + np.arange(N_BIASES * self.has_bias)).astype(np.int64)
        columns = [np.where(labels < 0, NOWHERE, labels + k * len(other.classes)) for k in range(len(ROLES))]
        lengths = np.arange(int(self.longest.max()))
        lengths[int(other.longest.max()) :] = NOWHERE
        places = [features, np.arange(self.n_segment_features), lengths, labels]
        each = zip(self.tables, other.tables, places, [np.concatenate(columns), *[labels] * 3], strict=True)
        return [mine.numbers_in(theirs, rows, names) for mine, theirs, rows, names in each]

    def dual_shape(self, problem: SegmentProblem) -> tuple[object, ...]:
        return problem.starts, problem.listed.begin, problem.listed.end

    def names(self, w: np.ndarray) -> Bunch:
        n_labels, width = len(self.classes), self.n_features_in
        of_rows, of_segments, of_lengths, of_pairs = np.split(w, np.cumsum(self.sizes)[:-1])
        if self.pairs is None:
            table: Any = of_rows.reshape(-1, len(ROLES) * n_labels)
        else:
            shape = self.tables[0].n_features, self.tables[0].n_labels
            table = sp.csr_array(
                (of_rows, self.pairs.labels.astype(np.int32), self.pairs.start.astype(np.int64)), shape
            )
        named = Bunch({role: table[:width, k * n_labels : (k + 1) * n_labels] for k, role in enumerate(ROLES)})
        named.lengths, named.transitions = of_lengths.reshape(-1, n_labels), of_pairs.reshape(n_labels, n_labels)
        if self.n_segment_features:
            named.segments = of_segments.reshape(-1, n_labels)
        if self.has_bias:
            biases = table[width:]
            named.intercepts = (biases.toarray() if sp.issparse(biases) else biases).reshape(N_BIASES, len(ROLES), -1)
        return named

    def find_segments(self, states: np.ndarray) -> list[tuple[int, int, Any]]:
        """The segments of a row of states, as users know them."""
        begins = np.flatnonzero(states < len(self.classes))
        ends = np.append(begins, len(states))[1:]
        return [*zip(begins.tolist(), ends.tolist(), self.classes[states[begins]].tolist(), strict=True)]

    def decode(self, problem: SegmentProblem, i: int, rows: np.ndarray) -> Any:
        if self.scheme is None:
            return [self.find_segments(states) for states in rows]
        found = [[Entity(*e) for e in self.find_segments(states) if e[2] != OUTSIDE] for states in rows]
        return np.array([spell_entities(row, rows.shape[1], self.scheme) for row in found], str).reshape(rows.shape)

    def arrange(self, problem: SegmentProblem, parts: Blocks) -> list[np.ndarray]:
        """(T, 2, L): where segments of each label begin, and where they go on."""
        tables = by_row(parts, problem.starts, problem.n_columns)
        return [table[:, : 2 * len(self.classes)].reshape(len(table), 2, len(self.classes)) for table in tables]

    def check_seen(self, problem: SegmentProblem) -> None:
        states, starts, n_labels = problem.supervision.labels, problem.starts, len(self.classes)
        if (states < 0).any():
            i, place = locate(np.flatnonzero(states < 0)[0], starts)
            raise ValueError(f"y[{i}] contains a label that was not seen in fit, at row {place}.")
        begins = np.flatnonzero(states < n_labels)
        sizes = np.diff(np.append(begins, len(states)))
        is_long = sizes > self.longest[states[begins]]
        if is_long.any():
            k = int(np.argmax(is_long))
            i, place = locate(begins[k], starts)
            limit = self.longest[states[begins[k]]]
            raise ValueError(f"y[{i}] has a segment of {sizes[k]} rows at row {place}, but max_length allows {limit}.")


def ending_rows(states: np.ndarray, n_labels: int) -> np.ndarray:
    """The last rows of all segments."""
    return np.flatnonzero(np.append(states[1:] < n_labels, True))


def follow_each_other(states: np.ndarray, starts: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels of all segments, and where those of each example start."""
    begins = states < n_labels
    return states[begins], starts_of(begins)[starts]
