"""Potentials of trees of words: of arcs between them, and of labelled spans."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.sentences.head_trees import are_trees, make_projective, read_trees
from maxmargin.encode.sentences.span_trees import (
    ABSENT,
    are_crossing,
    binarize,
    read_span_trees,
    spans_within,
)
from maxmargin.features import ConstantFeatures
from maxmargin.problem import AnyProblem
from maxmargin.structures.dependencies.arc_tables import DependencySupervision
from maxmargin.structures.dependencies.dependency_problem import NonprojectiveProblem, ProjectiveProblem
from maxmargin.structures.derived.selected import NOTHING
from maxmargin.structures.spans.span_problem import SpanProblem, SpanSupervision, no_signs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.torch.label_potentials import check_labels
from maxmargin.torch.potentials import (
    IGNORED,
    BatchRows,
    Costs,
    Labelled,
    Numbers,
    RowPotentials,
    as_integers,
    check_tensors,
    tensor_at,
)


class Dependencies(RowPotentials):
    """Scores of arcs between words, of which a dependency tree has one to each word.

    Parameters
    ----------
    scores
        (B, n, n + 1) scores of the arcs to each word from each head, the root first; or (B, n, n + 1, L), those of arcs
        with each label. What they are of arcs from a word to itself does not matter.
    lengths
        (B,) numbers of words, or a (B, n) mask of them; None where all sentences have n.
    projective, single_root
        As of `maxmargin.DependencySVM`.

    True outputs y are (B, n) heads of words, counted from 1, 0 for the root; of arcs with labels (B, n, 2), the head
    and the label of each word; -100 as all heads of a sentence of which nothing is known. A wrong head costs 1, and so
    does a wrong label at the right head.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Dependencies, decode
    >>> scores = torch.tensor([[[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]]])
    >>> decode(Dependencies(scores))
    tensor([[2, 0]])
    >>> labels = torch.tensor([0.5, 1.5])  # of all arcs
    >>> heads, labels = decode(Dependencies(scores[..., None] + labels)).unbind(-1)
    >>> heads, labels
    (tensor([[2, 0]]), tensor([[1, 1]]))
    """

    scores: Tensor = tensor_at(0, "Those of arcs, or of labelled arcs.")

    def __init__(
        self, scores: Tensor, lengths: Numbers | None = None, *, projective: bool = True, single_root: bool = True
    ) -> None:
        check_tensors(scores=scores)
        if scores.ndim not in (3, 4) or scores.shape[2] != scores.shape[1] + 1 or not scores.numel():
            expected = "(B, n, n + 1), or (B, n, n + 1, L) of labelled arcs"
            raise ValueError(f"scores must have the shape {expected}, not {tuple(scores.shape)}.")
        self.n_labels = scores.shape[3] if scores.ndim == 4 else 0
        self.rows = BatchRows("scores", scores.flatten(2)[:, :, 0], lengths, 0)
        self.projective, self.single_root = projective, single_root
        self.tensors, (n_words, n_heads) = (scores,), scores.shape[1:3]
        words, heads = self.rows.first[:, np.newaxis] + np.arange(n_words), self.rows.lengths[:, np.newaxis] + 1
        is_word = np.arange(n_words) < self.rows.lengths[:, np.newaxis]
        self.starts, self.sizes = n_heads * words, np.where(is_word, heads, 0)
        if self.n_labels:  # arcs have no scores of their own
            arcs = self.starts[:, :, np.newaxis] + np.arange(n_heads)
            is_arc = is_word[:, :, np.newaxis] & (np.arange(n_heads) < heads[:, np.newaxis])
            pairs = np.stack([np.full(arcs.shape, NOTHING), arcs * self.n_labels], axis=-1)
            self.starts = pairs.reshape(self.n, -1)
            self.sizes = (is_arc[..., np.newaxis] * np.array([1, self.n_labels])).reshape(self.n, -1)

    def replaced(self, tensors: tuple[Tensor, ...]) -> Dependencies:
        return self._of_rows(self.rows.given, *tensors)

    def ignoring(self, y: Numbers) -> Dependencies:
        n_words, has_labels = self.scores.shape[1], bool(self.n_labels)
        table = as_integers("y", y, (self.rows.n_entries, n_words, 2)[: 2 + has_labels])
        is_known = (table[..., 0] if has_labels else table) != IGNORED
        of_trees = (is_known & self.rows.flags).any(axis=1, keepdims=True)
        kept = self.rows.keep(np.repeat(of_trees, n_words, axis=1))
        return self if kept is None else self._of_rows(kept, self.scores)

    def _of_rows(self, lengths: Numbers | Labelled, scores: Tensor) -> Dependencies:
        return Dependencies(scores, lengths, projective=self.projective, single_root=self.single_root)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        if not self.n_labels:
            return super().arranged(rows)
        pairs = [np.where(row < 0, -1, np.divmod(row, self.n_labels)) for row in rows]
        return torch.stack([self.rows.arrange([pair[which] for pair in pairs]) for which in (0, 1)], dim=-1)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AnyProblem:
        if cost is not None:
            raise ValueError("cost must be None for dependency trees: a wrong head costs 1.")
        lengths, starts = self.rows.lengths, self.rows.starts
        arcs = np.zeros(starts[-1], np.int64) if y is None else self._true_arcs(y)
        costs = np.full(len(arcs), 0 if y is None else 1, dtype)
        return (ProjectiveProblem if self.projective else NonprojectiveProblem)(
            features=ConstantFeatures(),
            starts=starts,
            arc_starts=starts_of(lengths * (lengths + 1)),
            supervision=DependencySupervision(arcs.astype(np.int32), costs, 1.0),
            excluded=nothing_excluded(self.n),
            n_features=1,
            n_labels=self.n_labels,
            single_root=self.single_root,
        )

    def _true_arcs(self, y: Numbers) -> np.ndarray:
        """The heads of all words, or these times the number of labels plus their labels, of trees."""
        lengths, starts, width = self.rows.lengths, self.rows.starts, self.scores.shape[1]
        heads, labels = y, None
        if self.n_labels:
            pairs = as_integers("y", y, (self.rows.n_entries, width, 2))
            heads, labels = pairs[..., 0], self.rows.pick("y", pairs[..., 1])
            check_labels(labels, self.n_labels, self.rows)
        arcs, rules = self.rows.pick("y", heads), {"single_root": self.single_root}
        if (arcs == IGNORED).any():
            i, place = self.rows.locate(int(np.argmax(arcs == IGNORED)))
            raise ValueError(
                f"y holds {IGNORED} at position {place} of batch entry {i}, but words have heads: where these are not "
                "known, partial_loss takes flags of all arcs to the word."
            )
        if not are_trees(arcs, starts, projective=self.projective, **rules):
            trees, _ = read_trees(np.split(arcs, starts[1:-1]), lengths, **rules)  # these say why not
            make_projective(trees, lift=False)
        return arcs if labels is None else arcs * self.n_labels + labels


class SpanTrees(RowPotentials):
    """Scores of labelled spans of words, of which a tree has those that do not cross.

    Parameters
    ----------
    scores
        (B, n, n + 1, L) scores of the labels of the span from a word to another, which is no longer part of it; what
        they are of spans that end before they start does not matter. Spans without a label have the score 0.
    lengths
        (B,) numbers of words, or a (B, n) mask of them; None where all sentences have n.

    True outputs y are (B, n, n + 1) labels, and -1 of spans that a tree does not have. A labelled span that only one of
    two trees has costs 1.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import SpanTrees, decode
    >>> scores = torch.tensor([[[0.0, -1.0, 2.0], [0.0, 0.0, 1.0]]])  # of the spans 0:1, 0:2 and 1:2
    >>> decode(SpanTrees(scores[..., None]))
    tensor([[[-1, -1,  0],
             [-1, -1,  0]]])
    """

    scores: Tensor = tensor_at(0, "Those of labelled spans.")

    def __init__(self, scores: Tensor, lengths: Numbers | None = None) -> None:
        check_tensors(scores=scores)
        if scores.ndim != 4 or scores.shape[2] != scores.shape[1] + 1 or not scores.shape[3]:
            raise ValueError(f"scores must have the shape (B, n, n + 1, L), not {tuple(scores.shape)}.")
        self.rows = BatchRows("scores", scores[:, :, 0, 0], lengths, 0)
        n_words, n_ends, self.n_labels = scores.shape[1:]
        bare = scores.new_zeros(self.n, n_words * n_ends // 2)  # of spans without a label
        self.tensors = scores, bare
        lengths, lo = self.rows.lengths, np.arange(n_words)
        first = n_ends * (self.rows.first[:, np.newaxis] + lo) + lo + 1
        sizes = np.maximum(lengths[:, np.newaxis] - lo, 0)
        at = scores.numel() + bare.shape[1] * np.arange(self.n)
        self.starts = np.column_stack([first * self.n_labels, at])
        self.sizes = np.column_stack([sizes * self.n_labels, lengths * (lengths + 1) // 2])

    def replaced(self, tensors: tuple[Tensor, ...]) -> SpanTrees:
        other = SpanTrees(tensors[0], self.rows.lengths)
        other.tensors = tensors
        return other

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        labels = np.full(self.scores.shape[:3], -1)
        for table, row, n_words in zip(labels, rows, self.rows.lengths.tolist(), strict=True):
            lo, hi = np.triu_indices(n_words)
            spans, found = np.divmod(row[(row >= 0) & (row < len(lo) * self.n_labels)], self.n_labels)
            table[lo[spans], hi[spans] + 1] = found
        return torch.as_tensor(labels)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> SpanProblem:
        if cost is not None:
            raise ValueError("cost must be None for trees of spans: a labelled span too many or too few costs 1.")
        lengths = self.rows.lengths
        labels = np.full(self.scores.shape[:3], ABSENT) if y is None else self._true_labels(y)
        return SpanProblem(
            features=ConstantFeatures(),
            starts=self.rows.starts,
            span_starts=starts_of(lengths * (lengths + 1) // 2),
            supervision=SpanSupervision(
                binarize(labels, lengths, self.n_labels),
                np.full(self.n, 0 if y is None else 1, dtype),
                no_signs(self.n),
            ),
            excluded=nothing_excluded(self.n),
            n_features=1,
            n_labels=self.n_labels,
        )

    def _true_labels(self, y: Numbers) -> np.ndarray:
        """Those of the spans of trees."""
        labels, lengths = as_integers("y", y, tuple(self.scores.shape[:3])), self.rows.lengths
        is_span = spans_within(labels, lengths)
        is_wrong = (is_span & ((labels < 0) | (labels >= self.n_labels))).any(axis=(1, 2))
        if is_wrong.any():
            i = int(np.argmax(is_wrong))
            raise ValueError(f"y[{i}] must hold labels 0 to {self.n_labels - 1}, and -1 for spans without one.")
        if are_crossing(is_span):
            pairs = [np.argwhere(flags).tolist() for flags in is_span]
            found = [
                [(lo, hi, table[lo][hi]) for lo, hi in tree] for tree, table in zip(pairs, labels.tolist(), strict=True)
            ]
            read_span_trees(found, lengths)  # this says which
        return labels
