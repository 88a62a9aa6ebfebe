"""Spans of words to a problem of trees of labelled spans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.encode.inputs.base_encoder import check_exclusions
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import check_truths, find_labels, join_classes, locate
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows
from maxmargin.encode.sentences.pair_encoder import PairEncoder, learn_pairs, stack_places
from maxmargin.encode.sentences.span_trees import (
    LabelledSpans,
    binarize,
    exclude_spans,
    is_partial,
    labels_of_spans,
    read_span_trees,
    signs_of_parts,
)
from maxmargin.inference import possible_outputs
from maxmargin.problem import restrict, true_outputs
from maxmargin.structures.spans.span_problem import SpanProblem, SpanSupervision, no_signs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned, Weak


@dataclass(frozen=True, eq=False, kw_only=True)
class SpanEncoder(PairEncoder[SpanProblem]):
    """The encoder of spans, with a column of weights for each label."""

    share = 2
    expected = "n (n + 1) / 2 spans, of n words"

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        only_observed: bool,
        with_grams: bool,
        min_count: int = 1,
        n_hashed: int | None = None,
        dtype: DTypeLike,
        former: SpanEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training sentences; arguments are those of `SpanSVM`."""
        are_named, X, lengths = cls.read_sentences(X)
        given: Any = [*y] if isinstance(y, Iterator) else y
        given = check_truths(given, len(lengths), "the labelled spans of each sentence", "sentence")
        is_weak = np.array([*map(is_partial, given)])
        trees = read_span_trees([() if is_partial(tree) else tree for tree in given], lengths)
        known = {int(i): given[i] for i in np.flatnonzero(is_weak)}
        labels = _join_labels([tree.labels for tree in trees])
        named = _join_labels([labels, *(labels_of_spans(tree, lengths[i], f"y[{i}]") for i, tree in known.items())])
        if not len(named):
            raise ValueError("y must hold at least one labelled span, but its trees have none.")
        chosen = [tree.rows(n_words) for tree, n_words in zip(trees, lengths.tolist(), strict=True)]
        is_listed = are_named and only_observed and n_hashed is None and not known  # the names are those of true spans
        true_pairs = chosen if is_listed else None
        vocabulary, rows = learn_pairs(X, true_pairs, former, min_count=min_count, n_hashed=n_hashed)
        classes = join_classes(None if former is None else former.classes, np.unique(named))
        encoder = cls.of(rows, dtype, stores_sparse=are_named, vocabulary=vocabulary, classes=classes)
        if are_named and only_observed:
            places, codes = stack_places(chosen, rows), find_labels(labels, classes)
            for i, tree in known.items():  # with all labels that agree
                flags = exclude_spans(tree, lengths[i], classes.tolist(), f"y[{i}]")
                spans, more = np.nonzero(signs_of_parts(flags, len(classes)).reshape(-1, len(classes)) < 1)
                places, codes = np.append(places, rows.starts[i] + spans), np.append(codes, more)
            encoder = encoder.observing(rows.matrix[places], codes)
        encoder = encoder.after(former)
        problem = encoder.assemble(rows, lengths, trees, np.ones(len(lengths)), with_grams=with_grams)
        if not known:
            return Learned(encoder, problem)
        consistent, signs = encoder.restrict_trees(problem, known)
        outputs = possible_outputs(consistent, "y")
        supervision = problem.supervision._replace(parts=outputs.values, signs=signs)
        problem, consistent = (each._replace(supervision=supervision) for each in (problem, consistent))
        return Learned(encoder, problem, Weak(consistent, is_weak=is_weak))

    def restrict_trees(self, problem: SpanProblem, known: dict[int, object]) -> tuple[SpanProblem, Blocks]:
        """The problem with the trees alone that agree with what is known of some, and the signs of their parts."""
        truth, classes = true_outputs(problem), self.classes.tolist()
        trees = np.split(truth.values, truth.starts[1:-1])
        flags, signs = [], []
        for i, (n_words, tree) in enumerate(zip(np.diff(problem.starts).tolist(), trees, strict=True)):
            excluded = np.ones(n_words * (n_words + 1) // 2 * (1 + len(classes)), bool)
            excluded[tree] = False
            signs.append(np.zeros(0, np.int8))
            if i in known:
                excluded = exclude_spans(known[i], n_words, classes, f"y[{i}]")
                signs[-1] = signs_of_parts(excluded, len(classes))
            flags.append(excluded)
        return restrict(problem, as_blocks(flags, bool)), as_blocks(signs, np.int8)

    def problem(self, X: object, y: object = None) -> SpanProblem:
        lengths, rows = self.read(X)
        nothing = LabelledSpans(np.zeros(0, np.int64), np.zeros(0, np.int64), self.classes[:0])
        trees = [nothing] * len(lengths) if y is None else read_span_trees(y, lengths)
        return self.assemble(rows, lengths, trees, np.zeros(len(lengths)))

    def assemble(
        self, rows: Rows, lengths: np.ndarray, trees: list[LabelledSpans], cost: np.ndarray, *, with_grams: bool = False
    ) -> SpanProblem:
        """Put spans, true trees and costs together."""
        codes = find_labels(_join_labels([tree.labels for tree in trees]), self.classes)
        places = starts_of([len(tree.lo) for tree in trees])
        outputs = [
            binarize(tree.table(codes[lo:hi], n_words)[np.newaxis], np.array([n_words]), len(self.classes))
            for tree, n_words, lo, hi in zip(trees, lengths.tolist(), places[:-1], places[1:], strict=True)
        ]
        return SpanProblem(
            features=self.features_of(rows, with_grams),
            starts=starts_of(lengths),
            span_starts=rows.starts.astype(np.int64),
            supervision=SpanSupervision(np.concatenate(outputs), cost.astype(self.dtype), no_signs(len(lengths))),
            excluded=nothing_excluded(len(lengths)),
            n_features=self.n_features_in,
            n_labels=len(self.classes),
        )

    def is_partial(self, y: object) -> bool:
        return hasattr(y, "__iter__") and any(map(is_partial, y))

    def exclusions(self, problem: SpanProblem, known: object, name: str) -> Blocks:
        lengths = np.diff(problem.starts).tolist()
        known = check_truths(known, len(lengths), "what is known of the spans of each sentence", "sentence", name)
        classes = self.classes.tolist()
        flags = [exclude_spans(spans, lengths[i], classes, f"{name}[{i}]") for i, spans in enumerate(known)]
        return check_exclusions(problem, as_blocks(flags, bool), name)

    def dual_shape(self, problem: SpanProblem) -> tuple[object, ...]:
        return (problem.starts,)

    def names(self, w: np.ndarray) -> Bunch:
        return Bunch(labels=self.label_weights(w))

    def decode(self, problem: SpanProblem, i: int, rows: np.ndarray) -> list[list[tuple[int, int, Any]]]:
        n_words, n_labels, classes = int(np.diff(problem.starts)[i]), len(self.classes), self.classes.tolist()
        lo, hi = np.triu_indices(n_words)
        found = []
        for row in rows:
            spans, labels = np.divmod(row[row < len(lo) * n_labels], n_labels)
            ends = zip(lo[spans].tolist(), (hi[spans] + 1).tolist(), labels.tolist(), strict=True)
            found.append([(begin, end, classes[label]) for begin, end, label in ends])
        return found

    def arrange(self, problem: SpanProblem, parts: Blocks, missing: float = 0.0) -> list[np.ndarray]:
        tables = []
        for flat, n_words in zip(super().arrange(problem, parts), np.diff(problem.starts).tolist(), strict=True):
            lo, hi = np.triu_indices(n_words)
            table = np.full((n_words, n_words + 1, len(self.classes)), missing, flat.dtype)
            table[lo, hi + 1] = flat[: len(lo) * len(self.classes)].reshape(len(lo), -1)
            tables.append(table)
        return tables

    def judge(self, problem: SpanProblem, outputs: Blocks) -> Merits:
        truth = true_outputs(problem)
        pairs = zip(*(np.split(blocks.values, blocks.starts[1:-1]) for blocks in (truth, outputs)), strict=True)
        return Merits(np.concatenate([np.isin(true, found) for true, found in pairs]), np.diff(outputs.starts))

    def check_seen(self, problem: SpanProblem) -> None:
        truth = true_outputs(problem)
        if (truth.values < 0).any():
            i, _ = locate(np.flatnonzero(truth.values < 0)[0], truth.starts)
            raise ValueError(f"y[{i}] contains a label that was not seen in fit.")


def _join_labels(of_trees: list[np.ndarray]) -> np.ndarray:
    """The labels of all trees."""
    labels = [labels for labels in of_trees if len(labels)]
    if len({array.dtype.kind == "U" for array in labels}) > 1:
        raise TypeError("y must hold labels that are all strings, or all integers.")
    return np.concatenate(labels) if labels else np.zeros(0, "U1")
