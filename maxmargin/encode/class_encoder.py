"""Rows of features with a class each to a `MulticlassProblem`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.encode.inputs.base_encoder import Encoder, LabellingEncoder
from maxmargin.encode.inputs.example_checks import check_truths, find_labels, join_classes
from maxmargin.encode.inputs.rows import Rows, append_constant, row_features, stack_rows
from maxmargin.encode.partial.annotations import (
    Annotations,
    find_weak,
    is_partial,
    learn_annotations,
    price_annotations,
)
from maxmargin.features.pairs import PairTable, move_weights
from maxmargin.structures.choices.class_problem import MulticlassProblem
from maxmargin.supervision.costs import label_costs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, supervise
from maxmargin.supervision.weak import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class MulticlassEncoder(LabellingEncoder[MulticlassProblem]):
    """The encoder of single rows with a class each."""

    noun: ClassVar[str] = "row"

    feature_names_in: np.ndarray | None  # of the columns of a data frame

    @property
    def n_weights(self) -> int:
        return super().n_weights * len(self.classes)

    @classmethod
    def learn(
        cls,
        X: np.ndarray | sp.csr_array,
        y: np.ndarray,
        *,
        cost: object,
        feature_names: np.ndarray | None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: MulticlassEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training data that scikit-learn has checked."""
        rows = stack_rows(X, np.ones(X.shape[0], np.int64))
        known = read_classes(y, None if former is None else former.classes)
        counts = known.counts(np.ones(len(known.labels)))
        costs = label_costs("hamming" if cost is None else cost, known.classes, counts)
        prices, annotation = price_annotations(known, costs)
        supervision = supervise(known.labels, prices, np.ones(len(known.labels)), dtype, annotation)
        named: dict[str, Any] = {"classes": known.classes, "feature_names_in": feature_names}
        encoder = cls.of(rows, dtype, former=former, has_bias=fit_intercept, **named).after(former)
        problem = encoder.assemble(rows, supervision)
        return Learned(encoder, problem, find_weak(encoder, problem, known))

    @property
    def pair_table(self) -> PairTable:
        """The weights of features, the constant one included, and classes."""
        return PairTable(self.n_features_in + self.has_bias, len(self.classes), None)

    def joined(self, other: MulticlassEncoder) -> MulticlassEncoder:
        self.check_width(other)
        return replace(self, classes=join_classes(self.classes, other.classes))

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(other, MulticlassEncoder) or self.pair_table.n_features != other.pair_table.n_features:
            return None
        features, labels = np.arange(self.pair_table.n_features), find_labels(other.classes, self.classes)
        return move_weights(w, other.pair_table.numbers_in(self.pair_table, features, labels), self.pair_table)

    def problem(self, X: np.ndarray | sp.csr_array, y: object = None) -> MulticlassProblem:
        n = np.shape(X)[0]
        rows = stack_rows(X, np.ones(n, np.int64), self.n_features_in)
        labels = np.full(n, NO_LABEL)
        if y is not None:
            y = check_truths(y, n, "one class per example", "example")
            if are_partial(y):
                raise ValueError("y must hold one class of each example to compare predictions with, but says less.")
            labels = find_labels(np.asarray(y), self.classes)
        return self.assemble(rows, self.unsupervised(labels))

    def is_partial(self, y: object) -> bool:
        return are_partial(y)

    def exclusions(self, problem: MulticlassProblem, known: object, name: str) -> Blocks:
        known = check_truths(known, len(problem.squared_norms), "what is known of each example", "example", name)
        return super().exclusions(problem, [[entry] for entry in known], name)

    def mean_parts(self, problem: MulticlassProblem, means: np.ndarray) -> Blocks:
        return Blocks(means.ravel().astype(self.dtype), means.shape[1] * np.arange(len(means) + 1))

    def assemble(self, rows: Rows, supervision: LabelSupervision) -> MulticlassProblem:
        rows = self.stored(rows, append_constant)  # whose weight is the intercept
        matrix = rows.matrix
        squares = matrix.multiply(matrix) if self.stores_sparse else np.square(matrix, dtype=np.float64)
        return MulticlassProblem(
            features=row_features(rows, self.dtype),
            supervision=supervision,
            squared_norms=np.asarray(squares.sum(axis=1), np.float64),
            excluded=nothing_excluded(len(rows.lengths)),
            n_features=matrix.shape[1],
        )

    def dual_shape(self, problem: MulticlassProblem) -> tuple[object, ...]:
        return (len(problem.squared_norms),)

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        table = w.reshape(-1, len(self.classes))
        intercept = table[-1] if self.has_bias else np.zeros(len(self.classes), w.dtype)
        weights = {"coef_": table[: self.n_features_in].T, "intercept_": intercept}
        return {**super().attributes(w), **weights, **self.column_names}

    @property
    def column_names(self) -> dict[str, np.ndarray]:
        """The attribute of the names of columns, if they have any."""
        return {} if self.feature_names_in is None else {"feature_names_in_": self.feature_names_in}

    def decode(self, problem: MulticlassProblem, i: int, rows: np.ndarray) -> np.ndarray:
        return self.classes[rows[:, 0]]

    def decode_all(self, problem: MulticlassProblem, outputs: Blocks) -> Any:
        return self.classes[outputs.values]

    def arrange(self, problem: MulticlassProblem, parts: Blocks) -> np.ndarray:
        return parts.values.reshape(-1, len(self.classes))


def are_partial(y: object) -> bool:
    """Whether less, or other, than one class is known of some example: floats in two dimensions are probabilities."""
    if isinstance(y, np.ndarray) and y.dtype != object:
        return y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind == "f"
    if not isinstance(y, (list, tuple, np.ndarray)):
        return False
    are_strings = any(isinstance(entry, str) for entry in y)
    return any(_says_less(entry, are_strings) for entry in y)


def _says_less(entry: Any, are_strings: bool) -> bool:
    """Whether an entry is None, a set, a dictionary, a row of several numbers or, among strings, NaN."""
    is_row = isinstance(entry, (list, tuple, np.ndarray))
    return is_partial(entry) and (are_strings or not isinstance(entry, float)) and (not is_row or np.size(entry) > 1)


def read_classes(y: Any, former: np.ndarray | None = None) -> Annotations:
    """The classes that are named, or that a former model has, and what is known of each example."""
    if are_partial(y):
        lengths = np.ones(len(y), np.int64)
        return learn_annotations([[entry] for entry in y], lengths, np.arange(len(y) + 1), "example", former=former)
    classes, labels = np.unique(y, return_inverse=True)
    joined = join_classes(former, classes)
    return Annotations(joined, np.searchsorted(joined, classes)[labels])
