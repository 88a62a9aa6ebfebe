"""Sequences to a `SecondOrderProblem`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.encode.chain_encoder import ChainEncoder, find_neighbours
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import find_labels
from maxmargin.encode.partial.annotations import Annotations
from maxmargin.features.pairs import NOWHERE
from maxmargin.problem import all_true_outputs, new_weights
from maxmargin.structures.second_order.contexts import Contexts, find_contexts
from maxmargin.structures.second_order.second_order_problem import SecondOrderProblem
from maxmargin.supervision.label_supervision import LabelSupervision


@dataclass(frozen=True, eq=False, kw_only=True)
class SecondOrderEncoder(ChainEncoder):
    """The encoder of sequences whose labels are scored by three in a row, too."""

    trigrams: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # (Q,) (a L + b) L + c, ascending

    @property
    def n_weights(self) -> int:
        return super().n_weights + len(self.trigrams)

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        found, n_all = self.trigrams, len(self.classes) ** 3
        yield "trigrams", found.ndim == 1 and found.dtype == np.int64
        yield "trigrams", bool(((found >= 0) & (found < n_all)).all() and (np.diff(found) > 0).all())

    def remember(self, known: Annotations, starts: np.ndarray) -> Self:
        """With the trigrams that occur in the training labels, where these are known."""
        first = find_neighbours(starts, distance=2)[:, 0]
        is_known = ~np.any(known.open_and_soft(), axis=0)
        first = first[is_known[first] & is_known[first + 1] & is_known[first + 2]]
        a, b, c = (known.labels[first + k].astype(np.int64) for k in range(3))
        n_labels = len(self.classes)
        return replace(self, trigrams=np.unique((a * n_labels + b) * n_labels + c))

    @cached_property
    def contexts(self) -> Contexts:
        """The trigrams, as problems have them."""
        return find_contexts(self.trigrams, len(self.classes))

    @property
    def labels_in_trigrams(self) -> tuple[np.ndarray, ...]:
        """The first, second and third labels of trigrams."""
        return np.unravel_index(self.trigrams, (len(self.classes),) * 3)

    def assemble(self, *given: Any, **options: Any) -> SecondOrderProblem:
        base = super().assemble(*given, **options)
        return SecondOrderProblem(base, self.contexts, new_weights(base).size)

    def neighbours(self, starts: np.ndarray) -> np.ndarray:
        return np.concatenate([find_neighbours(starts, distance) for distance in (1, 2)])

    def supervised(self, problem: SecondOrderProblem, supervision: LabelSupervision) -> SecondOrderProblem:
        return problem._replace(base=super().supervised(problem.base, supervision))

    def mean_parts(self, problem: Any, means: np.ndarray) -> Blocks:
        parts, (_, leaving, through, arriving) = super().mean_parts(problem, means), self.mean_paths(problem, means)
        first, second, third = self.labels_in_trigrams
        is_allowed = (self.penalty[first, second] == 0) & (self.penalty[second, third] == 0)
        blocks = []
        for (lo, hi), of_chain in zip(
            pairwise(all_true_outputs(problem).starts.tolist()), np.split(parts.values, parts.starts[1:-1]), strict=True
        ):
            begins, goes_on, ends = leaving[lo:hi], through[lo:hi], arriving[lo:hi]
            found = begins[:-2, first] * goes_on[1:-1, second] * ends[2:, third]
            blocks.append(np.append(of_chain, np.where(is_allowed, found.sum(axis=0), 0)))
        return as_blocks(blocks, self.dtype)

    def names(self, w: np.ndarray) -> Bunch:
        weights, n_labels = w[w.size - len(self.trigrams) :], len(self.classes)
        named = super().names(w[: w.size - len(self.trigrams)])
        contexts, after = np.divmod(self.trigrams, n_labels)
        starts = np.searchsorted(contexts, np.arange(n_labels**2 + 1))
        table = sp.csr_array((weights, after, starts), (n_labels**2, n_labels))
        table.data = weights  # of which SciPy may have made a copy
        named.trigrams = table
        return named

    def joined(self, other: Any) -> Any:
        both: Any = super().joined(other)
        found = [encoder.trigrams_among(both.classes) for encoder in (self, other)]
        return replace(both, trigrams=np.unique(np.concatenate(found)))

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(other, SecondOrderEncoder):
            return None
        cut = w.size - len(other.trigrams)
        of_chain = super().weights_of(other, w[:cut])
        if of_chain is None:
            return None
        _, here, there = np.intersect1d(self.trigrams, other.trigrams_among(self.classes), return_indices=True)
        of_trigrams = np.zeros(len(self.trigrams), w.dtype)
        of_trigrams[here] = w[cut:][there]
        return np.concatenate([of_chain, of_trigrams])

    def trigrams_among(self, classes: np.ndarray) -> np.ndarray:
        """The numbers of its trigrams where there are these labels, NOWHERE if some are not."""
        places = find_labels(self.classes, classes)
        found = np.stack([places[labels] for labels in self.labels_in_trigrams])
        numbers = np.ravel_multi_index(np.maximum(found, 0), (len(classes),) * 3)
        return np.where((found < 0).any(axis=0), NOWHERE, numbers)
