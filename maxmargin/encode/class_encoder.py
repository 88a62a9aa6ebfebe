"""Rows of features with a class each to a `MulticlassProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.encode.inputs.base_encoder import LabellingEncoder
from maxmargin.encode.inputs.example_checks import check_truths, find_labels
from maxmargin.encode.inputs.rows import Rows, append_constant, row_features, stack_rows
from maxmargin.structures.choices.class_problem import MulticlassProblem
from maxmargin.supervision.costs import label_costs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.weak import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class MulticlassEncoder(LabellingEncoder):
    """The encoder of single rows with a class each."""

    feature_names_in: np.ndarray | None  # of the columns of a data frame

    @property
    def n_weights(self) -> int:
        return super().n_weights * len(self.classes)

    @classmethod
    def learn(
        cls,
        X: Any,
        y: np.ndarray,
        *,
        dtype: DTypeLike,
        fit_intercept: bool,
        cost: Any,
        feature_names: np.ndarray | None,
    ) -> Learned:
        """The encoder and the problem of training data that scikit-learn has checked."""
        rows = stack_rows(X, np.ones(X.shape[0], np.int64))
        classes, labels = np.unique(y, return_inverse=True)
        costs = label_costs("hamming" if cost is None else cost, classes, np.bincount(labels))
        encoder = cls.of(rows, dtype, has_bias=fit_intercept, classes=classes, feature_names_in=feature_names)
        return Learned(encoder, encoder.assemble(rows, labels, costs))

    def problem(self, X: Any, y: Any = None) -> MulticlassProblem:
        n, n_classes = np.shape(X)[0], len(self.classes)
        rows = stack_rows(X, np.ones(n, np.int64), self.n_features_in)
        labels = np.zeros(n)
        if y is not None:
            check_truths(y, n, "one class per example", "example")
            labels = find_labels(np.asarray(y), self.classes)
        return self.assemble(rows, labels, np.zeros((n_classes, n_classes)))

    def assemble(self, rows: Rows, labels: np.ndarray, costs: np.ndarray) -> MulticlassProblem:
        rows = self.stored(rows, append_constant)  # whose weight is the intercept
        matrix = rows.matrix
        squares = matrix.multiply(matrix) if self.stores_sparse else np.square(matrix, dtype=np.float64)
        return MulticlassProblem(
            features=row_features(rows, self.dtype),
            labels=labels.astype(np.int32),
            cost_matrix=np.ascontiguousarray(costs, self.dtype),
            squared_norms=np.asarray(squares.sum(axis=1), np.float64),
            excluded=nothing_excluded(len(labels)),
            n_features=matrix.shape[1],
        )

    def dual_shape(self, problem: MulticlassProblem) -> tuple[Any, ...]:
        return (len(problem.labels),)

    def attributes(self, w: np.ndarray) -> dict[str, Any]:
        table = w.reshape(-1, len(self.classes))
        intercept = table[-1] if self.has_bias else np.zeros(len(self.classes), w.dtype)
        names = {} if self.feature_names_in is None else {"feature_names_in_": self.feature_names_in}
        return {**super().attributes(w), "coef_": table[: self.n_features_in].T, "intercept_": intercept, **names}

    def decode(self, problem: Any, i: int, rows: np.ndarray) -> np.ndarray:
        return self.classes[rows[:, 0]]

    def decode_all(self, problem: Any, outputs: Blocks) -> Any:
        return self.classes[outputs.values]

    def arrange(self, problem: Any, parts: Blocks) -> np.ndarray:
        return parts.values.reshape(-1, len(self.classes))
