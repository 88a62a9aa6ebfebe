"""Sequences to a `ChainProblem`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, places_in
from maxmargin.checks import check_choice
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import find_labels, flatten_weights
from maxmargin.encode.inputs.node_edge_encoder import NodeEdgeEncoder
from maxmargin.encode.inputs.rows import Rows, append_columns, stack_rows
from maxmargin.encode.names.vocabulary import Vocabulary, known_by_name, learn_names, read_sequences
from maxmargin.encode.partial.annotations import Annotations, find_weak, learn_annotations, supervise_annotations
from maxmargin.encode.partial.completions import MeanPaths, complete_paths, mean_paths
from maxmargin.encode.partial.cost_tables import read_transition_costs
from maxmargin.encode.sentences.transition_rows import learn_transitions, read_transitions, with_constant
from maxmargin.encode.sequences.transition_rules import (
    check_feasible,
    check_transitions,
    scheme_penalties,
    transition_penalties,
)
from maxmargin.features import ConstantFeatures
from maxmargin.problem import IMPOSSIBLE, all_true_outputs
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.chains.edge_chain_problem import EdgeChainProblem
from maxmargin.structures.chains.sparse_chain_problem import sparse_chain, with_chain
from maxmargin.structures.chains.sparse_transitions import Transitions, are_few, list_transitions
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import LabelSupervision
from maxmargin.supervision.shares import expect_share
from maxmargin.supervision.weak import Learned
from maxmargin.wording import quote

if TYPE_CHECKING:
    from maxmargin.encode.inputs.lone import LoneSequence

BIASES = ("bias", "first", "last")  # features of every row, of the first and of the last row of a sequence

ONE_ROW = Rows(np.ones((1, 1)), np.array([0, 1]))


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainEncoder(NodeEdgeEncoder[ChainProblem | EdgeChainProblem]):
    """The encoder of sequences."""

    takes_edge_features: ClassVar[bool] = True
    penalty: np.ndarray  # (L, L) potentials of transitions before any weight
    end_penalty: np.ndarray  # (2, L) those of the first and of the last label
    n_edge_features: int = 0  # of transitions, besides the constant one
    edge_vocabulary: Vocabulary | None = None  # of those, if they have names

    @property
    def n_all_edge_features(self) -> int:
        return 1 + self.n_edge_features

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        n_labels, named = len(self.classes), self.edge_vocabulary
        yield "edge_vocabulary", named is None or named.size == self.n_edge_features
        for name, n_rows in (("penalty", n_labels), ("end_penalty", 2)):
            table = getattr(self, name)
            yield name, table.shape == (n_rows, n_labels) and table.dtype == self.dtype
            yield name, bool(np.isin(table, np.array([0, IMPOSSIBLE], table.dtype)).all())

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        allowed_transitions: object,
        constraints: object = None,
        with_grams: bool,
        cost: object = None,
        class_weight: object = None,
        only_observed: bool | str,
        least_observed: float = 0.0,
        min_count: int = 1,
        n_hashed: int | None = None,
        lengths: object = None,
        position_weight: object = None,
        label_share: Mapping[object, float] | None = None,
        transition_cost: object = None,
        edge_features: object = None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: ChainEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training sequences; arguments are those of `ChainSVM` and `ChainCRF`."""
        names, labels = (None, None) if former is None else (former.vocabulary, former.classes)
        vocabulary, rows = learn_names(X, min_count=min_count, n_hashed=n_hashed, former=names)
        rows = stack_rows(rows, lengths)
        edge_vocabulary, edges = learn_transitions(
            X, edge_features, rows.lengths, min_count=min_count, n_hashed=n_hashed
        )
        if edges is not None and not cls.takes_edge_features:
            raise TypeError("edge_features must be None: only ChainSVM and ChainCRF have features of transitions.")
        if former is not None and edge_vocabulary != former.edge_vocabulary:
            raise ValueError("edge_features must have the names that they had before.")
        is_stacked = lengths is not None
        annotated = learn_annotations(y, rows.lengths, rows.starts, "sequence", is_stacked=is_stacked, former=labels)
        classes = annotated.classes
        if isinstance(allowed_transitions, str):
            check_choice("allowed_transitions", allowed_transitions, ("observed",))
            allowed_transitions = observed_transitions(annotated, rows.starts)
        penalty = transition_penalties(allowed_transitions, classes, dtype)
        if annotated.allowed is None:
            check_transitions(penalty, annotated.labels, rows.starts, classes)
        scheme_penalty, end_penalty = scheme_penalties(constraints, annotated, rows.starts, dtype)
        penalty = np.minimum(penalty, scheme_penalty)
        if annotated.allowed is not None:
            completed = complete_paths(annotated.allowed, penalty == 0, end_penalty == 0, rows.starts, "y")
            annotated = annotated._replace(labels=completed)
        weights = flatten_weights(position_weight, rows.lengths, "position_weight", "sequence")
        supervision = supervise_annotations(annotated, cost, class_weight, rows.lengths, dtype, weights)
        known = {"has_bias": fit_intercept, "classes": classes, "vocabulary": vocabulary}
        known |= {"penalty": penalty, "end_penalty": end_penalty, "edge_vocabulary": edge_vocabulary}
        known["n_edge_features"] = 0 if edges is None else edges.matrix.shape[1]
        encoder = cls.of(rows, dtype, stores_sparse=bool(only_observed), former=former, **known)
        rows = encoder.stored(rows, append_biases)
        if only_observed:
            occurring = occurring_labels(annotated, rows.starts, edges)
            encoder = encoder.observe(only_observed, rows.matrix, *occurring, least_observed, rows.dense_columns)
        encoder = encoder.remember(annotated, rows.starts).after(former)
        options: dict[str, Any] = {"with_grams": with_grams, "may_split": True}
        if transition_cost is not None:
            options["transition_cost"] = read_transition_costs(transition_cost, annotated, rows.starts)
        problem = encoder.assemble(rows, supervision, edges, **options)
        learned = Learned(encoder, problem, find_weak(encoder, problem, annotated, encoder.neighbours(rows.starts)))
        return learned if label_share is None else expect_labels(learned, annotated, label_share)

    def problem(
        self, X: Any, y: Any = None, *, lengths: Any = None, edge_features: Any = None
    ) -> ChainProblem | EdgeChainProblem:
        if lengths is None:
            named = read_sequences(X, self.vocabulary, self.n_features_in)
        else:
            named = known_by_name(X, self.vocabulary, may_be_empty=True)
        rows = stack_rows(named, lengths, self.n_features_in, may_be_empty=True)
        if y is not None and not len(rows.lengths):
            raise ValueError("X must hold at least one sequence, but it is empty.")
        check_feasible(self.penalty == 0, self.end_penalty == 0, rows.lengths)
        labels = self.truth(y, rows, "sequence", is_stacked=lengths is not None)
        edges = read_transitions(X, edge_features, rows.lengths, self.edge_vocabulary, self.n_edge_features)
        return self.assemble(self.stored(rows, append_biases), self.unsupervised(labels), edges, is_once=y is None)

    def joined(self, other: ChainEncoder) -> ChainEncoder:
        """As of others; transitions that one of them allows are allowed: others may have been observed by each.

        Those between labels that neither has both of are not, until there are data whose encoder knows both.
        """
        both = super().joined(other)
        penalty = np.full((len(both.classes),) * 2, IMPOSSIBLE, self.dtype)
        ends = np.zeros((2, len(both.classes)), self.dtype)
        for one in (self, other):
            at = find_labels(one.classes, both.classes)
            penalty[np.ix_(at, at)] = np.maximum(penalty[np.ix_(at, at)], one.penalty)
            ends[:, at] = one.end_penalty
        return replace(both, penalty=penalty, end_penalty=ends)

    @cached_property
    def lone_sequences(self) -> list[LoneSequence]:
        """Those of `maxmargin.encode.inputs.lone` that are not in use."""
        return []

    @cached_property
    def transitions(self) -> Any:
        """The one feature of transitions."""
        return ConstantFeatures() if self.edge_pairs is None else self.features(ONE_ROW, self.edge_pairs)

    @cached_property
    def few_transitions(self) -> Transitions | None:
        """The transitions that are allowed, where these are so few that problems go along each of them."""
        allowed = self.penalty == 0
        if type(self) is not ChainEncoder or self.n_edge_features or not are_few(allowed):
            return None
        return list_transitions(allowed, None if self.edge_pairs is None else self.edge_pairs.labels)

    def assemble(
        self,
        rows: Rows,
        supervision: LabelSupervision,
        edges: Rows | None = None,
        *,
        with_grams: bool = False,
        is_once: bool = False,
        transition_cost: np.ndarray | None = None,
        **options: Any,
    ) -> Any:
        """Put stored rows, what is known of their labels, and rows of transitions together; see `features`."""
        options |= {"with_grams": with_grams, "is_once": is_once}
        costs = np.zeros((0, len(self.classes) ** 2)) if transition_cost is None else transition_cost
        shared: dict[str, Any] = {
            "features": self.features(rows, self.node_pairs, **options),
            "starts": rows.starts.astype(np.int64),
            "supervision": supervision,
            "transition_cost": np.ascontiguousarray(costs, self.dtype),
            "excluded": nothing_excluded(len(rows.lengths)),
            "penalty": np.ascontiguousarray(self.penalty),
            "end_penalty": np.ascontiguousarray(self.end_penalty),
            "n_features": rows.matrix.shape[1],
        }
        if edges is None:
            chain = ChainProblem(edge_features=self.transitions, **shared)
            return chain if self.few_transitions is None else sparse_chain(chain, self.few_transitions)
        whole = with_constant(edges)
        return EdgeChainProblem(
            edge_features=self.features(whole, self.edge_pairs, with_grams=with_grams, is_once=is_once),
            edge_starts=whole.starts.astype(np.int64),
            n_edge_features=self.n_all_edge_features,
            **shared,
        )

    def neighbours(self, starts: np.ndarray) -> np.ndarray:
        """(M, 2) positions whose labels have a score together."""
        return find_neighbours(starts)

    def supervised(self, problem: Any, supervision: LabelSupervision) -> Any:
        """A problem with something else known of its labels."""
        return with_chain(problem, supervision=supervision)

    def remember(self, known: Annotations, starts: np.ndarray) -> Self:
        """The same with what it must know of the training labels, of sequences that begin there, besides pairs."""
        return self

    def check_left(self, problem: ChainProblem | EdgeChainProblem, allowed: np.ndarray, name: str) -> None:
        complete_paths(allowed, self.penalty == 0, self.end_penalty == 0, all_true_outputs(problem).starts, name)

    def mean_paths(self, problem: ChainProblem | EdgeChainProblem, shares: np.ndarray) -> MeanPaths:
        """What is expected of labels with these probabilities, (N, L), where they keep to allowed transitions."""
        return mean_paths(shares, self.penalty == 0, self.end_penalty == 0, all_true_outputs(problem).starts)

    def mean_parts(self, problem: ChainProblem | EdgeChainProblem, means: np.ndarray) -> Blocks:
        blocks, paths, allowed = [], self.mean_paths(problem, means), self.penalty == 0
        for lo, hi in pairwise(all_true_outputs(problem).starts.tolist()):
            before, after = paths.leaving[lo : max(hi - 1, lo)], paths.arriving[lo + 1 : hi]
            each = before[:, :, np.newaxis] * after[:, np.newaxis] if self.n_edge_features else None
            transitions = np.where(allowed, before.T @ after if each is None else each, 0)
            if self.few_transitions is not None:
                transitions = transitions[allowed]
            blocks.append(np.append(paths.means[lo:hi], transitions))
        return as_blocks(blocks, self.dtype)

    def dual_shape(self, problem: ChainProblem | EdgeChainProblem) -> tuple[object, ...]:
        return (all_true_outputs(problem).starts,)

    def names(self, w: np.ndarray) -> Bunch:
        emissions, biases, edges = self.tables(w, 1)
        named = Bunch(emissions=emissions, transitions=edges[0], **dict(zip(BIASES, biases, strict=False)))
        if self.n_edge_features:
            named.edges = edges[1:] if self.edge_pairs is None else self.edge_table(w)[1:]
        return named


def find_neighbours(starts: np.ndarray, distance: int = 1) -> np.ndarray:
    """(M, 2) positions of a sequence that are so far from each other."""
    first = np.arange(starts[-1])
    first = first[places_in(np.diff(starts)[::-1])[::-1] >= distance]  # with as many after them
    return np.column_stack([first, first + distance])


def expect_labels(learned: Learned, known: Annotations, label_share: Mapping[object, float]) -> Learned:
    """What training sequences teach if a share of all positions is expected to have a label."""
    encoder, problem, weak = learned
    ((label, share),) = label_share.items()
    if label not in known.classes.tolist():
        raise ValueError(f"label_share names {quote(label)}, which is not a label in y.")
    if weak is None or weak.consistent is None or known.allowed is None:
        raise ValueError("label_share needs labels in y that are not known.")
    is_open, _ = known.open_and_soft()
    allowed, starts = known.allowed & is_open[:, np.newaxis], all_true_outputs(problem).starts
    what = known.classes == label, known.labels, encoder.mean_paths(problem, known.means()).means, allowed
    expected, supervision = expect_share(share, *what, starts, encoder.dtype, f"label_share[{label!r}]")
    consistent = encoder.supervised(weak.consistent, supervision)
    return learned._replace(weak=weak._replace(consistent=consistent, share=expected))


def append_biases(rows: Rows) -> Rows:
    """Three more features: 1 for every row, for the first and for the last row of each sequence."""
    columns = np.zeros((rows.starts[-1], len(BIASES)))
    columns[:, 0] = 1
    has_rows = rows.lengths > 0
    columns[rows.starts[:-1][has_rows], 1] = 1
    columns[rows.starts[1:][has_rows] - 1, 2] = 1
    return append_columns(rows, columns)


def observed_transitions(known: Annotations, starts: np.ndarray) -> np.ndarray:
    """The (L, L) table of those that occur; all that agree with labels that are known in part."""
    n_labels = len(known.classes)
    _, _, found = occurring_labels(known, starts, None)
    is_observed = np.zeros(n_labels**2, bool)
    is_observed[found if found.ndim == 1 else np.flatnonzero(found)] = True
    return is_observed.reshape(n_labels, n_labels)


def occurring_labels(
    known: Annotations, starts: np.ndarray, edges: Rows | None
) -> tuple[np.ndarray, sp.csr_array, np.ndarray]:
    """What observed weights are of: labels, features of transitions and these; all that agree, if in part."""
    follows = np.ones(len(known.labels), bool)
    follows[starts[:-1]] = False
    after = np.flatnonzero(follows)
    if known.allowed is None:
        transitions = known.labels[after - 1] * len(known.classes) + known.labels[after]
        rows = sp.csr_array(np.ones((len(after), 1)) if edges is None else with_constant(edges).matrix)
        return known.labels, rows, transitions
    if edges is not None:
        pairs = known.allowed[after - 1][:, :, np.newaxis] & known.allowed[after][:, np.newaxis]
        return known.allowed, sp.csr_array(with_constant(edges).matrix), pairs.reshape(len(after), -1)
    allowed = known.allowed.astype(np.float64)
    return known.allowed, sp.csr_array(np.ones((1, 1))), (allowed[after - 1].T @ allowed[after]).reshape(1, -1)
