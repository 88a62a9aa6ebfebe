"""Arcs between words to a problem of dependency trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.encode.inputs.base_encoder import check_exclusions, complete_outputs
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import check_truths, find_labels, flatten_weights, join_classes, locate
from maxmargin.encode.inputs.rows import Rows
from maxmargin.encode.sentences.head_trees import (
    find_crossing,
    is_partial,
    make_projective,
    open_arcs,
    read_open_trees,
    read_trees,
)
from maxmargin.encode.sentences.pair_encoder import PairEncoder, learn_pairs, stack_places
from maxmargin.structures.dependencies.arc_tables import ROOT, DependencySupervision
from maxmargin.structures.dependencies.dependency_problem import NonprojectiveProblem, ProjectiveProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned, Weak

NO_LABELS = np.zeros(0, "U1")


@dataclass(frozen=True, eq=False, kw_only=True)
class DependencyEncoder(PairEncoder[ProjectiveProblem | NonprojectiveProblem]):
    """The encoder of arcs between words, with a column of weights of arcs, and one for each label of them."""

    n_shared = 1
    share = 1
    expected = "n (n + 1) arcs, of n words with n + 1 heads each"

    is_projective: bool
    single_root: bool

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        projective: bool,
        single_root: bool,
        lift: bool,
        only_observed: bool,
        with_grams: bool,
        label_cost: float = 1.0,
        min_count: int = 1,
        n_hashed: int | None = None,
        word_weight: object = None,
        dtype: DTypeLike,
        former: DependencyEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training sentences; arguments are those of `DependencySVM`."""
        are_named, X, lengths = cls.read_sentences(X)
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
        true_pairs = [*map(rows_of_tree, heads)] if is_listed else None
        vocabulary, rows = learn_pairs(X, true_pairs, former, min_count=min_count, n_hashed=n_hashed)
        encoder = cls.of(
            rows,
            dtype,
            stores_sparse=are_named,
            vocabulary=vocabulary,
            classes=classes,
            is_projective=bool(projective),
            single_root=bool(single_root),
        )
        if are_named and only_observed and len(classes):
            truth = (stack_places(map(rows_of_tree, heads), rows), labels) if are_whole else rows_of_labels(tables)
            encoder = encoder.observing(rows.matrix[truth[0]], np.asarray(truth[1]))
        encoder = encoder.after(former)
        weights = flatten_weights(word_weight, lengths, "word_weight", "sentence")
        if are_whole:
            return Learned(encoder, encoder.assemble(rows, lengths, arcs, weights, label_cost, with_grams=with_grams))
        is_certain = np.concatenate([table[:, :, min(len(classes), 1) :].sum(axis=(1, 2)) == 1 for table in tables])
        unknown = np.zeros(len(weights), np.int64)
        problem = encoder.assemble(rows, lengths, unknown, weights * is_certain, label_cost, with_grams=with_grams)
        excluded = as_blocks([~table.ravel() for table in tables], bool)
        problem, consistent = complete_outputs(problem, excluded, "arcs")
        is_weak = np.array([not part.all() for part in np.split(is_certain, starts_of(lengths)[1:-1])])
        return Learned(encoder, problem, Weak(consistent, is_weak=is_weak))

    def problem(self, X: object, y: object = None) -> ProjectiveProblem | NonprojectiveProblem:
        lengths, rows = self.read(X)
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
        return (ProjectiveProblem if self.is_projective else NonprojectiveProblem)(
            features=self.features_of(rows, with_grams),
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

    def exclusions(self, problem: ProjectiveProblem | NonprojectiveProblem, known: object, name: str) -> Blocks:
        lengths = np.diff(problem.starts).tolist()
        known = check_truths(known, len(lengths), "what is known of the heads of each sentence", "sentence", name)
        classes = self.classes.tolist()
        tables = [open_arcs(tree, lengths[i], classes, f"{name}[{i}]") for i, tree in enumerate(known)]
        return check_exclusions(problem, as_blocks([~is_open.ravel() for is_open in tables], bool), name)

    def dual_shape(self, problem: ProjectiveProblem | NonprojectiveProblem) -> tuple[object, ...]:
        return (problem.starts,)

    def names(self, w: np.ndarray) -> Bunch:
        table = self.label_weights(w)
        if not len(self.classes):
            return Bunch(arcs=table[:, 0])
        arcs = table[:, [0]].toarray().ravel() if sp.issparse(table) else table[:, 0]
        return Bunch(arcs=arcs, labels=table[:, 1:])

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
        for i, tree in enumerate(heads):
            if self.is_projective and find_crossing(tree):
                raise ValueError(f"y[{i}] has arcs that cross, which this model gives no probability.")
            if self.single_root and np.count_nonzero(tree == ROOT) > 1:
                raise ValueError(f"y[{i}] has several roots, which this model gives no probability.")


def learn_labels(given: np.ndarray | None, former: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The labels of arcs, with those of a former model, and their numbers; none where arcs have none."""
    if former is not None and (given is None) != (not len(former)):
        raise ValueError("y must have labels of arcs if it had them before, and none if not.")
    if given is None:
        return NO_LABELS, np.zeros(1, np.int64)
    classes, labels = np.unique(given, return_inverse=True)
    joined = join_classes(former, classes)
    return joined, np.searchsorted(joined, classes)[labels]


def rows_of_tree(heads: np.ndarray) -> np.ndarray:
    """The rows of the arcs of a tree."""
    return np.arange(len(heads)) * (len(heads) + 1) + heads


def rows_of_labels(tables: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of arcs that agree with what is known, and each label that does."""
    flat = np.concatenate([table.reshape(-1, table.shape[2]) for table in tables])
    rows, labels = np.nonzero(flat[:, 1:])
    return rows, labels
