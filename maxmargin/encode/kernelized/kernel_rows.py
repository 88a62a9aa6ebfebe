"""What makes an encoder of linear features one of a kernel: rows that have coefficients in place of weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.inputs.base_encoder import Encoder, P, RowEncoder
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.kernelized.kernel_checks import (
    as_dense,
    check_gram,
    check_kernel,
    check_memory,
    check_size,
    check_square,
    check_values,
    is_finite,
    is_shape,
    make_kernel,
)
from maxmargin.features import as_matrix
from maxmargin.features.kernel_features import KernelFeatures, KnownScores, kernel_features, whole_gram_features
from maxmargin.features.kernels import RBF, Kernel
from maxmargin.supervision.weak import Learned

BLOCK = 10_000_000  # entries of a Gram matrix that are computed at once for predictions


class LinearRows(NamedTuple):
    """The rows of a problem, those of example i from starts[i] to starts[i + 1]."""

    features: Any
    starts: np.ndarray
    width: int  # the number of features, biases included


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelRows(RowEncoder[P]):
    """An encoder that has a kernel where the one beside it, its next base, has weights of features.

    Before a fit it holds all training rows, afterwards the support rows. Rows that the kernel is applied to have a
    `center` subtracted, where it makes no difference but to rounding.
    """

    linear_options: ClassVar[dict[str, object]] = {}  # of `learn` of linear features
    n_biases: ClassVar[int] = 1  # features of an intercept

    kernel: Kernel | None = None  # None for one that is precomputed
    center: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    basis: Any = field(default=None, compare=False)  # (S, F) rows that have coefficients; None if precomputed
    extra: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), compare=False)  # (S, biases) of these
    support: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), compare=False)  # (S,) among all rows

    # --- what structures say ----------------------------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """How many functions of a row there are."""
        raise NotImplementedError

    def linear_rows(self, problem: Any) -> LinearRows:
        """The rows of a problem of linear features."""
        return LinearRows(problem.features, problem.starts, problem.n_features)

    def with_features(self, problem: Any, features: KernelFeatures | KnownScores, width: int) -> Any:
        """A problem with others in place of its features, of that many coefficients for each label."""
        return problem._replace(features=features, n_features=width)

    def names_of_edges(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of the linear weights by their names, as views."""
        return {}

    # --- what they share --------------------------------------------------------------------------------------------

    def joined(self, other: object) -> Any:
        if self != other:
            raise ValueError("Kernel models cannot go on with other data: their weights are those of rows to train on.")
        return self

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        return Encoder.weights_of(self, other, w)

    @property
    def n_weights(self) -> int:
        of_features = self.n_features_in + self.has_bias * self.n_biases
        return super().n_weights + self.n_columns * (len(self.support) - of_features)

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        n, width = self.support.size, self.n_features_in
        yield "support", self.support.shape == (n,) and self.support.dtype.kind == "i"
        largest = width if self.kernel is None else np.inf
        yield "support", bool(((self.support >= 0) & (self.support < largest)).all())
        yield "extra", self.extra.shape == (n, self.has_bias * self.n_biases) and is_finite(self.extra, self.dtype)
        yield "center", self.center.shape in ((0,), (width,)) and is_finite(self.center, None)
        if self.kernel is None:
            yield "basis", self.basis is None
            return
        yield "basis", isinstance(self.basis, np.ndarray) and self.basis.shape == (n, width)
        yield "basis", is_finite(self.basis, self.dtype)
        yield "kernel", is_shape(self.kernel.shape)

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        kernel: object,
        gamma: object,
        degree: int,
        coef0: float,
        cache_size: float,
        **options: object,
    ) -> Learned:
        """The encoder and the problem of training data; arguments are those of `KernelChainSVM` and its kin."""
        check_kernel(kernel, gamma, degree, coef0, cache_size)
        encoder, linear, weak = super().learn(X, y, **options | cls.linear_options)  # type: ignore[misc]
        assert isinstance(encoder, cls)
        rows, extra = encoder.split(linear)
        room = int(1e6 * cache_size)
        if rows.shape[0] * rows.shape[1] * rows.dtype.itemsize <= room or kernel == "precomputed":
            rows = as_dense(rows)
        starts, n_columns, n = encoder.linear_rows(linear).starts, encoder.n_columns, rows.shape[0]
        if kernel == "precomputed":
            check_square(rows)
            check_gram(rows, "X")
            features = whole_gram_features(rows, extra, starts, n_columns)
        else:
            made = make_kernel(kernel, rows, gamma, degree, coef0)
            encoder, rows = encoder.centered(made, rows)
            n_bytes = n * rows.dtype.itemsize  # of a row of the Gram matrix
            if made.shape is None or sp.issparse(rows):
                check_memory(n, n * n_bytes, room)
                gram = check_values(made(rows, rows), (n, n), rows.dtype)
                if made.shape is None:
                    check_gram(gram, "The matrix that kernel returns")
                features = whole_gram_features(gram, extra, starts, n_columns)
            else:
                check_memory(n, n_bytes, room)
                features = kernel_features(rows, extra, starts, n_columns, made.shape, min(n, room // n_bytes))
            encoder = replace(encoder, basis=rows)
        check_size(features.gram.values)
        encoder = replace(encoder, extra=extra, support=np.arange(n))
        if weak is not None and weak.consistent is not None:
            weak = weak._replace(consistent=encoder.with_features(weak.consistent, features, n))
        return Learned(encoder, encoder.with_features(linear, features, n), weak)

    def centered(self, kernel: Kernel, rows: np.ndarray | sp.csr_array) -> tuple[Self, np.ndarray | sp.csr_array]:
        """With a kernel, and rows as it takes them: for one of distances, less their mean, which loses fewer digits."""
        if sp.issparse(rows) or kernel.shape is None or kernel.shape.kind != RBF:
            return replace(self, kernel=kernel), rows
        center = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        return replace(self, kernel=kernel, center=center), rows - center

    def split(self, problem: P) -> tuple[np.ndarray | sp.csr_array, np.ndarray]:
        """The rows of a problem of linear features, and their biases."""
        features, starts, width = self.linear_rows(problem)
        matrix = as_matrix(features, int(starts[-1])).astype(self.dtype)
        if sp.issparse(matrix):
            matrix.resize(matrix.shape[0], width)
        return matrix[:, : self.n_features_in], np.ascontiguousarray(as_dense(matrix[:, self.n_features_in :]))

    def scored(self, problem: P, w: np.ndarray) -> P:
        """A problem of new rows, whose scores under these weights are known."""
        coefficients = self.coefficients(w).T.astype(self.dtype)
        n_basis = len(coefficients)
        rows, extra = self.split(problem)
        scores = np.empty((rows.shape[0], self.n_columns), self.dtype)
        step = max(1, BLOCK // max(n_basis, 1))
        for lo in range(0, len(scores), step):
            part = slice(lo, lo + step)
            scores[part] = self._values(rows[part]) @ coefficients
        scores += extra @ (self.extra.T @ coefficients)
        check_size(scores)
        return self.with_features(problem, KnownScores(np.ascontiguousarray(scores), n_basis), n_basis)

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Those of the rows for each label, (L, S), as a view of the weights of a model."""
        return w[: self.n_columns * len(self.support)].reshape(self.n_columns, len(self.support))

    def _values(self, rows: np.ndarray | sp.csr_array) -> np.ndarray:
        """The values of the kernel of rows with those that have coefficients."""
        if self.kernel is None:
            return as_dense(rows)[:, self.support]
        if not sp.issparse(self.basis):
            rows = as_dense(rows)
        if self.center.size:
            rows = rows - self.center
        values = self.kernel(rows, self.basis)
        return values if self.kernel.shape else check_values(values, (rows.shape[0], len(self.support)), self.dtype)

    def fitted(self, w: np.ndarray) -> tuple[Self, np.ndarray]:
        coefficients = self.coefficients(w)
        which = np.flatnonzero(coefficients.any(axis=0))
        encoder = replace(self, extra=self.extra[which], support=self.support[which])
        if self.basis is not None:
            encoder = replace(encoder, basis=self.basis[which])
        return encoder, np.append(coefficients[:, which], w[coefficients.size :])

    def names(self, w: np.ndarray) -> Bunch:
        dual = self.coefficients(w)
        return Bunch(dual=dual.T, **self.names_of_edges(w[dual.size :]))

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        found = {**Encoder.attributes(self, w), "support_": self.support}
        if self.basis is not None:
            found["support_vectors_"] = self.basis + self.center if self.center.size else self.basis
        return found
