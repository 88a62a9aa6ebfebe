"""Rows of features with a class each to a `MulticlassProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.costs import label_costs
from maxmargin.encode.base import LabellingEncoder
from maxmargin.encode.features import append_constant, row_features
from maxmargin.encode.rows import Rows, as_stored, check_truths, find_labels, stack_rows
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.multiclass import MulticlassProblem


@dataclass(frozen=True, eq=False, kw_only=True)
class MulticlassEncoder(LabellingEncoder):
    """The encoder of single rows with a class each."""

    feature_names_in: np.ndarray | None  # of the columns of a data frame

    @classmethod
    def learn(
        cls, X: Any, y: np.ndarray, *, dtype: Any, fit_intercept: bool, cost: Any, feature_names: np.ndarray | None
    ) -> tuple[MulticlassEncoder, MulticlassProblem]:
        """The encoder and the problem of training data that scikit-learn has checked."""
        rows = as_rows(X, None, dtype)
        classes, labels = np.unique(y, return_inverse=True)
        costs = label_costs("hamming" if cost is None else cost, classes, np.bincount(labels))
        encoder = cls.of(rows, dtype, has_bias=fit_intercept, classes=classes, feature_names_in=feature_names)
        return encoder, encoder._assemble(rows, labels, costs)

    def problem(self, X: Any, y: Any = None) -> MulticlassProblem:
        rows = as_rows(X, self.n_features_in, self.dtype)
        n, n_classes = len(rows.lengths), len(self.classes)
        labels = np.zeros(n)
        if y is not None:
            check_truths(y, n, "one class per example", "example")
            labels = find_labels(np.asarray(y), self.classes)
        return self._assemble(rows, labels, np.zeros((n_classes, n_classes)))

    def _assemble(self, rows: Rows, labels: np.ndarray, costs: np.ndarray) -> MulticlassProblem:
        return multiclass_problem(
            rows, labels, costs, self.dtype, sparse=self.stores_sparse, with_intercept=self.has_bias
        )

    def layout(self, problem: MulticlassProblem) -> tuple[Any, ...]:
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

    def judge(self, problem: MulticlassProblem, outputs: Blocks) -> tuple[np.ndarray, Any]:
        return outputs.values == problem.labels, 1


def as_rows(X: Any, n_features: int | None, dtype: Any) -> Rows:
    """One row per example, each of which `dtype` can hold."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return stack_rows(X, np.ones(n, np.int64), n_features, dtype)


def multiclass_problem(
    rows: Rows, labels: np.ndarray, costs: np.ndarray, dtype: Any, *, sparse: bool, with_intercept: bool
) -> MulticlassProblem:
    """Put the checked parts together; an intercept is the weight of one more feature, 1 everywhere."""
    rows = as_stored(rows, sparse)
    if with_intercept:
        rows = append_constant(rows)
    matrix = rows.matrix
    squares = matrix.multiply(matrix) if sparse else np.square(matrix, dtype=np.float64)
    return MulticlassProblem(
        features=row_features(rows, dtype),
        labels=labels.astype(np.int32),
        cost_matrix=np.ascontiguousarray(costs, dtype),
        squared_norms=np.asarray(squares.sum(axis=1), np.float64),
        n_features=matrix.shape[1],
    )
