"""WordArcs between words to a problem of dependency trees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.encode.inputs.base_encoder import Encoder, RowEncoder
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import (
    check_examples,
    check_truths,
    find_labels,
    flatten_weights,
    join_classes,
    locate,
)
from maxmargin.encode.inputs.rows import Rows, row_features, stack_rows
from maxmargin.encode.names.vocabulary import Vocabulary, have_names, join_vocabularies, learn_names, places_of
from maxmargin.encode.sentences.head_trees import (
    find_crossing,
    is_partial,
    make_projective,
    open_arcs,
    read_open_trees,
    read_trees,
)
from maxmargin.features.observed import observed_features
from maxmargin.features.pairs import NOWHERE, Pairs, PairTable, are_pairs, move_weights, pairs_of
from maxmargin.inference import possible_outputs
from maxmargin.problem import restrict
from maxmargin.structures.dependencies.arc_tables import DependencySupervision
from maxmargin.structures.dependencies.dependency_problem import NonprojectiveProblem, ProjectiveProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.text.syntax_features.arc_features import WordArcs
from maxmargin.wording import quote

NO_LABELS = np.zeros(0, "U1")


@dataclass(frozen=True, eq=False, kw_only=True)
class DependencyEncoder(RowEncoder[ProjectiveProblem | NonprojectiveProblem]):
    """The encoder of arcs between words."""

    published = ("n_features_in", "classes")

    classes: np.ndarray  # the labels of arcs, none if trees have none
    is_projective: bool
    single_root: bool
    vocabulary: Vocabulary | None = None  # of features that have names
    pairs: Pairs | None = None  # of a feature and an arc, or a label of arcs, that have a weight, if not all do

    @property
    def n_weights(self) -> int:
        return self.n_features_in * (1 + len(self.classes)) if self.pairs is None else len(self.pairs.labels)

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "classes", self.classes.ndim == 1
        yield "vocabulary", self.vocabulary is None or self.vocabulary.size == self.n_features_in
        yield "pairs", are_pairs(self.pairs, self.n_features_in, 1 + len(self.classes))

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        dtype: DTypeLike,
        projective: bool,
        single_root: bool,
        lift: bool,
        only_observed: bool,
        with_grams: bool,
        label_cost: float = 1.0,
        min_count: int = 1,
        n_hashed: int | None = None,
        word_weight: object = None,
        former: DependencyEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training sentences; arguments are those of `DependencySVM`."""
        are_named, X = have_names(X)
        X = check_sentences(X)
        lengths = count_words(X)
        y = [*y] if isinstance(y, Iterator) else y
        are_whole = not isinstance(y, (list, tuple)) or not any(map(is_partial, y))
        is_listed = are_named and only_observed and n_hashed is None and are_whole  # the names are those of true arcs
        classes = None if former is None else former.classes
        if are_whole or not isinstance(y, (list, tuple)):
            heads, given = read_trees(y, lengths, single_root=single_root)
            heads = make_projective(heads, lift=lift) if projective else heads
            classes, labels = learn_labels(given, classes)
            arcs = np.concatenate(heads) * max(len(classes), 1) + labels
        else:
            classes, tables = read_open_trees(y, lengths, classes, lift=projective and lift)
        vocabulary, given_rows = learn_names(
            true_items(X, heads) if is_listed else X,
            min_count=min_count,
            n_hashed=n_hashed,
            former=None if former is None else former.vocabulary,
        )
        rows = read_arcs(X, vocabulary) if is_listed or vocabulary is None else given_rows
        known: dict[str, Any] = {
            "classes": classes,
            "is_projective": bool(projective),
            "single_root": bool(single_root),
        }
        encoder = cls.of(rows, dtype, stores_sparse=are_named, vocabulary=vocabulary, **known)
        if are_named and only_observed and len(classes):
            truth = (true_rows(heads, rows.starts), labels) if are_whole else rows_of_labels(tables)
            known["pairs"] = observe(rows.matrix[truth[0]], np.asarray(truth[1]), len(classes))
            encoder = cls.of(rows, dtype, stores_sparse=True, vocabulary=vocabulary, **known)
        if former is not None:
            encoder = former.joined(encoder)
        weights = flatten_weights(word_weight, lengths, "word_weight", "sentence")
        if are_whole:
            return Learned(encoder, encoder.assemble(rows, lengths, arcs, weights, label_cost, with_grams=with_grams))
        is_certain = np.concatenate([table[:, :, min(len(classes), 1) :].sum(axis=(1, 2)) == 1 for table in tables])
        unknown = np.zeros(len(weights), np.int64)
        problem = encoder.assemble(rows, lengths, unknown, weights * is_certain, label_cost, with_grams=with_grams)
        excluded = as_blocks([~table.ravel() for table in tables], bool)
        completions = possible_outputs(restrict(problem, excluded), "y")
        problem = problem._replace(supervision=problem.supervision._replace(arcs=completions.values))
        is_weak = np.array([not part.all() for part in np.split(is_certain, starts_of(lengths)[1:-1])])
        return Learned(encoder, problem, Weak(restrict(problem, excluded), is_weak=is_weak))

    @property
    def pair_table(self) -> PairTable:
        """The weights of features of arcs, and of each label of arcs."""
        return PairTable(self.n_features_in, 1 + len(self.classes), self.pairs)

    def joined(self, other: DependencyEncoder) -> DependencyEncoder:
        if (self.pairs is None) != (other.pairs is None):
            raise ValueError("only_observed, and whether arcs have labels, must be what they were before.")
        vocabulary, classes = join_vocabularies(self, other), join_classes(self.classes, other.classes)
        n_features = self.n_features_in if vocabulary is None else vocabulary.size
        both = replace(self, vocabulary=vocabulary, n_features_in=n_features, classes=classes, pairs=None)
        if self.pairs is None:
            return both
        numbers = np.union1d(self._numbers_in(both), other._numbers_in(both))
        return replace(both, pairs=both.pair_table.with_numbers(numbers).pairs)

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(other, DependencyEncoder) or places_of(other, self) is None:
            return None
        return move_weights(w, other._numbers_in(self), self.pair_table)

    def _numbers_in(self, other: DependencyEncoder) -> np.ndarray:
        """The numbers of its pairs in the table of another encoder."""
        features, labels = places_of(self, other), find_labels(self.classes, other.classes)
        assert features is not None
        columns = np.append(0, np.where(labels < 0, NOWHERE, labels + 1))
        return self.pair_table.numbers_in(other.pair_table, features, columns)

    def problem(self, X: object, y: object = None) -> ProjectiveProblem | NonprojectiveProblem:
        are_named, X = have_names(X)
        X = check_sentences(X)
        if are_named != (self.vocabulary is not None):
            raise TypeError("X must hold features by name, dictionaries or lists of strings, if it did so in fit.")
        lengths, rows = count_words(X), read_arcs(X, self.vocabulary, self.n_features_in)
        arcs = np.zeros(lengths.sum(), np.int64)
        if y is not None:
            heads, given = read_trees(y, lengths, single_root=False)
            arcs = np.concatenate(heads)
            if (given is None) != (len(self.classes) == 0):
                raise ValueError("y must have labels of arcs if it had them in fit, and none if not.")
            if given is not None:
                labels = find_labels(given, self.classes)
                arcs = np.where(labels < 0, -1, arcs * len(self.classes) + labels)
        return self.assemble(rows, lengths, arcs, np.zeros(len(arcs)), 0.0)

    def assemble(
        self,
        rows: Rows,
        lengths: np.ndarray,
        arcs: np.ndarray,
        word_cost: np.ndarray,
        label_cost: float,
        *,
        with_grams: bool = False,
    ) -> ProjectiveProblem | NonprojectiveProblem:
        """Put arcs, true trees and costs together."""
        stored = self.stored(rows)
        features = row_features(stored, self.dtype, with_grams=with_grams and self.pairs is None)
        if self.pairs is not None:
            features = observed_features(features, self.pairs)
        return (ProjectiveProblem if self.is_projective else NonprojectiveProblem)(
            features=features,
            starts=starts_of(lengths),
            arc_starts=rows.starts.astype(np.int64),
            supervision=DependencySupervision(arcs.astype(np.int32), word_cost.astype(self.dtype), float(label_cost)),
            excluded=nothing_excluded(len(lengths)),
            n_features=self.n_features_in,
            n_labels=len(self.classes),
            single_root=self.single_root,
        )

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(map(is_partial, y))

    def exclusions(self, problem: ProjectiveProblem | NonprojectiveProblem, known: Any, name: str) -> Blocks:
        lengths = np.diff(problem.starts).tolist()
        check_truths(known, len(lengths), "what is known of the heads of each sentence", "sentence", name)
        classes = self.classes.tolist()
        tables = [open_arcs(tree, lengths[i], classes, f"{name}[{i}]") for i, tree in enumerate(known)]
        excluded = as_blocks([~is_open.ravel() for is_open in tables], bool)
        possible_outputs(restrict(problem, excluded), name)
        return excluded

    def dual_shape(self, problem: ProjectiveProblem | NonprojectiveProblem) -> tuple[object, ...]:
        return (problem.starts,)

    def names(self, w: np.ndarray) -> Bunch:
        width = 1 + len(self.classes)
        if width == 1:
            return Bunch(arcs=w)
        if self.pairs is None:
            table: Any = w.reshape(-1, width)
            return Bunch(arcs=table[:, 0], labels=table[:, 1:])
        table = sp.csr_array((w, self.pairs.labels.astype(np.int32), self.pairs.start.astype(np.int64)))
        table.resize(self.n_features_in, width)
        return Bunch(arcs=table[:, [0]].toarray().ravel(), labels=table[:, 1:])

    def decode(self, problem: ProjectiveProblem | NonprojectiveProblem, i: int, rows: np.ndarray) -> Any:
        n_labels = len(self.classes)
        if not n_labels:
            return rows
        classes = self.classes.tolist()
        return [[(arc // n_labels, classes[arc % n_labels]) for arc in row] for row in rows.tolist()]

    def arrange(self, problem: ProjectiveProblem | NonprojectiveProblem, parts: Blocks) -> list[np.ndarray]:
        shapes = [(n, n + 1, 1 + len(self.classes)) for n in np.diff(problem.starts).tolist()]
        tables = [part.reshape(shape) for part, shape in zip(super().arrange(problem, parts), shapes, strict=True)]
        return [table[:, :, 1:] if len(self.classes) else table[:, :, 0] for table in tables]

    def check_seen(self, problem: ProjectiveProblem | NonprojectiveProblem) -> None:
        if (problem.supervision.arcs < 0).any():
            i, place = locate(np.flatnonzero(problem.supervision.arcs < 0)[0], problem.starts)
            raise ValueError(f"y[{i}] contains a label that was not seen in fit, at word {place + 1}.")
        heads = np.split(problem.supervision.arcs // max(len(self.classes), 1), problem.starts[1:-1])
        for i, tree in enumerate(heads if self.is_projective else ()):
            if find_crossing(tree):
                raise ValueError(f"y[{i}] has arcs that cross, which this model gives no probability.")


def learn_labels(given: np.ndarray | None, former: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The labels of arcs, with those of a former model, and their numbers; none where arcs have none."""
    if former is not None and (given is None) != (not len(former)):
        raise ValueError("y must have labels of arcs if it had them before, and none if not.")
    if given is None:
        return NO_LABELS, np.zeros(1, np.int64)
    classes, labels = np.unique(given, return_inverse=True)
    joined = join_classes(former, classes)
    return joined, np.searchsorted(joined, classes)[labels]


def check_sentences(X: Any) -> Sequence[object]:
    """Sentences as a list, checked to be one."""
    X = [*X] if isinstance(X, Iterable) and not (isinstance(X, (Sequence, np.ndarray)) or sp.issparse(X)) else X
    check_examples(X, "(n, n + 1, F) arrays, or of lists with the features of n (n + 1) arcs", "sentence")
    return X


def count_words(X: Iterable[object]) -> np.ndarray:
    """The numbers of words of sentences, from those of their arcs."""
    if isinstance(X, WordArcs):
        return X.lengths
    return np.array([_count(x, i) for i, x in enumerate(X)], np.int64)


def _count(x: Any, i: int) -> int:
    if not (hasattr(x, "shape") or isinstance(x, Sequence)):
        raise TypeError(f"X[{i}] must hold the features of n (n + 1) arcs, not {quote(x)}.")
    n_arcs = math.prod(x.shape[:-1]) if hasattr(x, "shape") and len(x.shape) > 1 else len(x)
    n = math.isqrt(n_arcs)
    if n == 0:
        raise ValueError(f"X[{i}] is empty: every sentence needs at least one word.")
    if n * (n + 1) != n_arcs or (hasattr(x, "shape") and len(x.shape) == 3 and x.shape[0] != n):
        found = f"has the shape {x.shape}" if hasattr(x, "shape") else f"has {n_arcs} arcs"
        raise ValueError(f"X[{i}] must have n (n + 1) arcs, of n words with n + 1 heads each, but {found}.")
    return n


def true_rows(heads: Sequence[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """The rows of the arcs of trees."""
    return np.concatenate(
        [start + np.arange(len(tree)) * (len(tree) + 1) + tree for start, tree in zip(starts, heads, strict=False)]
    )


def rows_of_labels(tables: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of arcs that agree with what is known, and each label that does."""
    flat = np.concatenate([table.reshape(-1, table.shape[2]) for table in tables])
    rows, labels = np.nonzero(flat[:, 1:])
    return rows, labels


def true_items(X: Any, heads: Sequence[np.ndarray]) -> Any:
    """The features of the arcs of trees alone."""
    if isinstance(X, WordArcs):
        return X.of_heads(heads)
    return [[x[m * (len(tree) + 1) + h] for m, h in enumerate(tree)] for x, tree in zip(X, heads, strict=True)]


def read_arcs(X: Any, vocabulary: Vocabulary | None, n_features: int | None = None) -> Rows:
    """The features of all arcs, those by name as a vocabulary knows them."""
    if vocabulary is None:
        flat = [x.reshape(-1, x.shape[2]) if np.ndim(x) == 3 else x for x in X]
        return stack_rows(flat, None, n_features, noun="sentence")
    if not isinstance(X, WordArcs):
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
    return Rows(matrix, starts_of(X.lengths * (X.lengths + 1)))


def observe(truth: sp.csr_array, labels: np.ndarray, n_labels: int) -> Pairs:
    """All features of arcs, and the pairs of a feature and a label that occur in true arcs."""
    is_pair = np.zeros((truth.shape[1], 1 + n_labels), bool)
    is_pair[:, 0] = True
    is_pair[truth.indices, 1 + np.repeat(labels, np.diff(truth.indptr))] = True
    return pairs_of(is_pair)
