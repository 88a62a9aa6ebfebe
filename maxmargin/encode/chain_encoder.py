"""Sequences to a `ChainProblem`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import check_array, find_labels, flatten_weights, locate
from maxmargin.encode.inputs.node_edge_encoder import NodeEdgeEncoder
from maxmargin.encode.inputs.rows import Rows, append_columns, stack_rows
from maxmargin.encode.names.vocabulary import Vocabulary, learn_names
from maxmargin.encode.partial.annotations import (
    Annotations,
    find_weak,
    learn_annotations,
    supervise_annotations,
)
from maxmargin.encode.partial.completions import complete_paths
from maxmargin.encode.partial.cost_tables import read_transition_costs
from maxmargin.encode.sentences.transition_rows import learn_transitions, read_transitions, with_constant
from maxmargin.features import ConstantFeatures
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.chains.edge_chain_problem import EdgeChainProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import LabelSupervision
from maxmargin.supervision.shares import expect_share
from maxmargin.supervision.weak import Learned
from maxmargin.text.schemes import fitting_scheme, read_tags, scheme_named, scheme_table, violation
from maxmargin.wording import quote

BIASES = ("bias", "first", "last")  # features of every row, of the first and of the last row of a sequence

ONE_ROW = Rows(np.ones((1, 1)), np.array([0, 1]))


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainEncoder(NodeEdgeEncoder[ChainProblem | EdgeChainProblem]):
    """The encoder of sequences."""

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
        dtype: DTypeLike,
        fit_intercept: bool,
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
        label_share: Any = None,
        transition_cost: object = None,
        edge_features: object = None,
        former: ChainEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training sequences; arguments are those of `ChainSVM` and `ChainCRF`."""
        names, labels = (None, None) if former is None else (former.vocabulary, former.classes)
        vocabulary, rows = learn_names(X, min_count=min_count, n_hashed=n_hashed, former=names)
        rows = stack_rows(rows, lengths)
        edge_vocabulary, edges = learn_transitions(
            X, edge_features, rows.lengths, min_count=min_count, n_hashed=n_hashed
        )
        if edges is not None and cls is not ChainEncoder:
            raise TypeError("edge_features must be None: only ChainSVM and ChainCRF have features of transitions.")
        if former is not None and edge_vocabulary != former.edge_vocabulary:
            raise ValueError("edge_features must have the names that they had before.")
        is_stacked = lengths is not None
        annotated = learn_annotations(y, rows.lengths, rows.starts, "sequence", is_stacked=is_stacked, former=labels)
        classes = annotated.classes
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
        if former is not None:
            encoder = former.joined(encoder)
        problem = encoder.assemble(rows, supervision, edges, with_grams=with_grams, may_split=True)
        if transition_cost is not None:
            costs = read_transition_costs(transition_cost, annotated, rows.starts)
            problem = problem._replace(transition_cost=np.ascontiguousarray(costs, dtype))
        learned = Learned(encoder, problem, find_weak(encoder, problem, annotated, neighbours(rows.starts)))
        return learned if label_share is None else expect_labels(learned, annotated, label_share)

    def problem(
        self, X: Any, y: Any = None, *, lengths: Any = None, edge_features: Any = None
    ) -> ChainProblem | EdgeChainProblem:
        is_list = isinstance(X, Sequence) or (isinstance(X, np.ndarray) and X.ndim)
        if lengths is None and is_list and not isinstance(X, str) and not len(X):
            named: Any = Rows(np.zeros((0, self.n_features_in)), np.zeros(1, np.int64))
        else:
            named = self.by_name(X, may_be_empty=True)
        rows = stack_rows(named, lengths, self.n_features_in, may_be_empty=True)
        if y is not None and not len(rows.lengths):
            raise ValueError("X must hold at least one sequence, but it is empty.")
        check_feasible(self.penalty == 0, self.end_penalty == 0, rows.lengths)
        labels = self.truth(y, rows, "sequence", is_stacked=lengths is not None)
        edges = read_transitions(X, edge_features, rows.lengths, self.edge_vocabulary, self.n_edge_features)
        return self.assemble(self.stored(rows, append_biases), self.unsupervised(labels), edges, is_once=y is None)

    def joined(self, other: ChainEncoder) -> ChainEncoder:
        """As of others; what arguments forbid of labels that only one of them has is not known here."""
        both = super().joined(other)
        at = find_labels(other.classes, both.classes)
        penalty, ends = np.zeros((len(both.classes),) * 2, self.dtype), np.zeros((2, len(both.classes)), self.dtype)
        penalty[np.ix_(at, at)], ends[:, at] = other.penalty, other.end_penalty
        return replace(both, penalty=penalty, end_penalty=ends)

    @cached_property
    def lone_sequences(self) -> list[Any]:
        """Those of `maxmargin.encode.inputs.lone` that are not in use."""
        return []

    @cached_property
    def transitions(self) -> Any:
        """The one feature of transitions."""
        return ConstantFeatures() if self.edge_pairs is None else self.features(ONE_ROW, self.edge_pairs)

    def assemble(
        self,
        rows: Rows,
        supervision: LabelSupervision,
        edges: Rows | None = None,
        *,
        with_grams: bool = False,
        is_once: bool = False,
        **options: Any,
    ) -> ChainProblem | EdgeChainProblem:
        """Put stored rows, what is known of their labels, and rows of transitions together; see `features`."""
        options |= {"with_grams": with_grams, "is_once": is_once}
        shared: dict[str, Any] = {
            "features": self.features(rows, self.node_pairs, **options),
            "starts": rows.starts.astype(np.int64),
            "supervision": supervision,
            "transition_cost": np.zeros((0, len(self.classes) ** 2), self.dtype),
            "excluded": nothing_excluded(len(rows.lengths)),
            "penalty": np.ascontiguousarray(self.penalty),
            "end_penalty": np.ascontiguousarray(self.end_penalty),
            "n_features": rows.matrix.shape[1],
        }
        if edges is None:
            return ChainProblem(transitions=self.transitions, **shared)
        whole = with_constant(edges)
        return EdgeChainProblem(
            edge_features=self.features(whole, self.edge_pairs, with_grams=with_grams, is_once=is_once),
            edge_starts=whole.starts.astype(np.int64),
            n_edge_features=self.n_all_edge_features,
            **shared,
        )

    def check_left(self, problem: ChainProblem | EdgeChainProblem, allowed: np.ndarray, name: str) -> None:
        complete_paths(allowed, self.penalty == 0, self.end_penalty == 0, problem.starts, name)

    def mean_parts(self, problem: ChainProblem | EdgeChainProblem, means: np.ndarray) -> Blocks:
        blocks = []
        for lo, hi in pairwise(problem.starts.tolist()):
            before, after = means[lo : max(hi - 1, lo)], means[lo + 1 : hi]
            each = before[:, :, np.newaxis] * after[:, np.newaxis] if self.n_edge_features else None
            transitions = before.T @ after if each is None else each
            blocks.append(np.append(means[lo:hi], transitions))
        return as_blocks(blocks, self.dtype)

    def dual_shape(self, problem: ChainProblem | EdgeChainProblem) -> tuple[object, ...]:
        return (problem.starts,)

    def names(self, w: np.ndarray) -> Bunch:
        emissions, biases, edges = self.tables(w, 1)
        named = Bunch(emissions=emissions, transitions=edges[0], **dict(zip(BIASES, biases, strict=False)))
        if self.n_edge_features:
            named.edges = edges[1:] if self.edge_pairs is None else self.edge_table(w)[1:]
        return named


def neighbours(starts: np.ndarray) -> np.ndarray:
    """(M, 2) positions that follow each other in a sequence."""
    goes_on = np.ones(starts[-1], bool)
    goes_on[starts[1:][np.diff(starts) > 0] - 1] = False
    first = np.flatnonzero(goes_on)
    return np.column_stack([first, first + 1])


def expect_labels(learned: Learned, known: Annotations, label_share: Mapping[object, float]) -> Learned:
    """What training sequences teach if a share of all positions is expected to have a label."""
    _, problem, weak = learned
    ((label, share),) = label_share.items()
    if label not in known.classes.tolist():
        raise ValueError(f"label_share names {quote(label)}, which is not a label in y.")
    if weak is None or weak.consistent is None or known.allowed is None:
        raise ValueError("label_share needs labels in y that are not known.")
    is_open, _ = known.open_and_soft()
    allowed, dtype = known.allowed & is_open[:, np.newaxis], problem.supervision.weight.dtype
    what = known.classes == label, known.labels, known.means(), allowed
    expected, supervision = expect_share(share, *what, problem.starts, dtype, f"label_share[{label!r}]")
    return learned._replace(
        weak=weak._replace(consistent=weak.consistent._replace(supervision=supervision), share=expected)
    )


def append_biases(rows: Rows) -> Rows:
    """Three more features: 1 for every row, for the first and for the last row of each sequence."""
    columns = np.zeros((rows.starts[-1], len(BIASES)))
    columns[:, 0] = 1
    has_rows = rows.lengths > 0
    columns[rows.starts[:-1][has_rows], 1] = 1
    columns[rows.starts[1:][has_rows] - 1, 2] = 1
    return append_columns(rows, columns)


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


def transition_penalties(allowed: object, classes: np.ndarray, dtype: DTypeLike) -> np.ndarray:
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


def check_transitions(penalty: np.ndarray, labels: np.ndarray, starts: np.ndarray, classes: np.ndarray) -> None:
    """Raise where true labels have a transition that is not allowed."""
    is_forbidden = penalty[labels[:-1], labels[1:]] != 0
    is_forbidden[starts[1:-1] - 1] = False  # from one sequence to the next
    if is_forbidden.any():
        token = int(np.flatnonzero(is_forbidden)[0])
        before, after = classes[labels[token : token + 2]].tolist()
        i, _ = locate(token, starts)
        raise ValueError(f"y[{i}] goes from {before!r} to {after!r}, which allowed_transitions forbids.")


def scheme_penalties(
    constraints: object, known: Annotations, starts: np.ndarray, dtype: DTypeLike
) -> tuple[np.ndarray, np.ndarray]:
    """The potentials of transitions, (L, L), and of the first and last label, (2, L), that a scheme of tags leaves."""
    classes = known.classes
    if constraints is None:
        return np.zeros((len(classes), len(classes)), dtype), np.zeros((2, len(classes)), dtype)
    sequences = np.split(classes[known.labels], starts[1:-1])
    if known.allowed is not None:
        sequences = [tags for tags, is_weak in zip(sequences, known.is_weak(starts), strict=True) if not is_weak]
        if constraints == "auto" and not sequences:
            raise ValueError('constraints="auto" needs a sequence in y whose labels are all known: name the scheme.')
        read_tags([[tag] for tag in classes.tolist()], "classes")
    tagging = read_tags(sequences)
    scheme = fitting_scheme(tagging) if constraints == "auto" else scheme_named(constraints, "constraints")
    broken = violation(tagging, scheme)
    if broken:
        raise ValueError(f"{broken} maxmargin.text.convert_tags(y, {scheme!r}) repairs tags, as conlleval reads them.")
    table = np.where(scheme_table(classes.tolist(), scheme), 0, IMPOSSIBLE).astype(dtype)
    return table[:-1, :-1], np.stack([table[-1, :-1], table[:-1, -1]])


def check_feasible(allowed: np.ndarray, ends_allowed: np.ndarray, lengths: np.ndarray) -> None:
    """Raise where no labelling of some sequence has only transitions, first and last labels that are allowed."""
    reachable, is_last = ends_allowed
    missing = np.unique(lengths)
    for length in range(1, int(lengths.max(initial=0)) + 1):
        if length in missing and not (reachable & is_last).any():
            i = int(np.flatnonzero(lengths == length)[0])
            raise ValueError(
                f"No labelling of X[{i}], of length {length}, keeps to allowed_transitions and constraints."
            )
        before, reachable = reachable, allowed[reachable].any(axis=0)
        if (before == reachable).all() and (reachable & is_last).any():  # and so for all that are longer
            return
