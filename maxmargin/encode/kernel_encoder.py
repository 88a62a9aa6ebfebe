"""Sequences to a `ChainProblem` whose features are those of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.checks import LARGEST, check_cost, check_count, check_positive
from maxmargin.encode.chain_encoder import BIASES, ChainEncoder
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.features import as_matrix
from maxmargin.features.kernel_features import KnownScores, kernel_features, whole_gram_features
from maxmargin.features.kernels import RBF, SHAPES, Kernel, Shape
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.supervision.weak import Learned
from maxmargin.wording import quote

KERNELS = (*SHAPES, "precomputed")
NOT_POSITIVE = 1e-5  # of the largest entry: more negative eigenvalues than that are not rounding
NOT_SYMMETRIC = 1e-5
MOST_DEGREE = 1000
BLOCK = 10_000_000  # entries of a Gram matrix that are computed at once for predictions


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelChainEncoder(ChainEncoder):
    """The encoder of sequences for a kernel.

    Before a fit it holds all training rows, afterwards the support rows. Rows that the kernel is applied to have a
    `center` subtracted, where it makes no difference but to rounding.
    """

    published: ClassVar[tuple[str, ...]] = ("classes", "n_features_in", "support")

    kernel: Kernel | None = None  # None for one that is precomputed
    center: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    basis: Any = field(default=None, compare=False)  # (S, F) rows that have coefficients; None if precomputed
    extra: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)  # (S, 3 or 0) their biases
    support: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), compare=False)  # (S,) among all rows

    def joined(self, other: Any) -> Any:
        if self != other:
            raise ValueError("Kernel models cannot go on with other data: their weights are those of rows to train on.")
        return self

    def weights_of(self, other: Encoder, w: np.ndarray) -> np.ndarray | None:
        return Encoder.weights_of(self, other, w)

    @property
    def n_weights(self) -> int:
        return len(self.classes) * (len(self.support) + len(self.classes))

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        n, width = self.support.size, self.n_features_in
        yield "support", self.support.shape == (n,) and self.support.dtype.kind == "i"
        largest = width if self.kernel is None else np.inf
        yield "support", bool(((self.support >= 0) & (self.support < largest)).all())
        yield "extra", self.extra.shape == (n, self.has_bias * len(BIASES)) and is_finite(self.extra, self.dtype)
        yield "center", self.center.shape in ((0,), (width,)) and is_finite(self.center, None)
        if self.kernel is None:
            yield "basis", self.basis is None
            return
        yield "basis", isinstance(self.basis, np.ndarray) and self.basis.shape == (n, width)
        yield "basis", is_finite(self.basis, self.dtype)
        yield "kernel", is_shape(self.kernel.shape)

    @classmethod
    def learn(  # type: ignore[override]
        cls,
        X: Iterable[object],
        y: object,
        *,
        kernel: Any,
        gamma: object,
        degree: int,
        coef0: float,
        cache_size: float,
        with_grams: bool,
        **options: Any,
    ) -> Learned:
        """The encoder and the problem of training sequences; arguments are those of `KernelChainSVM`."""
        check_kernel(kernel, gamma, degree, coef0, cache_size)
        encoder, linear, weak = super().learn(X, y, with_grams=False, only_observed=False, **options)
        assert isinstance(encoder, KernelChainEncoder)
        rows, extra = encoder.split(linear)
        room = int(1e6 * cache_size)
        if rows.shape[0] * rows.shape[1] * rows.dtype.itemsize <= room or kernel == "precomputed":
            rows = as_dense(rows)
        starts, n_labels, n = linear.starts, len(encoder.classes), rows.shape[0]
        n_bytes = n * n * rows.dtype.itemsize
        if kernel == "precomputed":
            check_square(rows)
            check_gram(rows, "X")
            features = whole_gram_features(rows, extra, starts, n_labels)
        else:
            made = make_kernel(kernel, rows, gamma, degree, coef0)
            encoder, rows = encoder.centered(made, rows)
            if made.shape is None or sp.issparse(rows):
                check_memory(n, n_bytes, room)
                gram = check_values(made(rows, rows), (n, n), rows.dtype)
                if made.shape is None:
                    check_gram(gram, "The matrix that kernel returns")
                features = whole_gram_features(gram, extra, starts, n_labels)
            else:
                check_memory(n, n * rows.dtype.itemsize, room)
                n_kept = min(n, room // (n * rows.dtype.itemsize))
                features = kernel_features(rows, extra, starts, n_labels, made.shape, n_kept)
            encoder = replace(encoder, basis=rows)
        check_size(features.gram.values)
        encoder = replace(encoder, extra=extra, support=np.arange(n))
        if weak is not None and weak.consistent is not None:
            weak = weak._replace(consistent=weak.consistent._replace(features=features, n_features=n))
        return Learned(encoder, linear._replace(features=features, n_features=n), weak)

    def centered(self, kernel: Kernel, rows: Any) -> tuple[KernelChainEncoder, Any]:
        """With a kernel, and rows as it takes them: for one of distances, less their mean, which loses fewer digits."""
        if sp.issparse(rows) or kernel.shape is None or kernel.shape.kind != RBF:
            return replace(self, kernel=kernel), rows
        center = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        return replace(self, kernel=kernel, center=center), rows - center

    def split(self, problem: ChainProblem) -> tuple[Any, np.ndarray]:
        """The rows of a problem of linear features, and their biases."""
        matrix = as_matrix(problem.features, int(problem.starts[-1])).astype(self.dtype)
        if sp.issparse(matrix):
            matrix.resize(matrix.shape[0], problem.n_features)
        return matrix[:, : self.n_features_in], np.ascontiguousarray(as_dense(matrix[:, self.n_features_in :]))

    def scored(self, problem: ChainProblem, w: np.ndarray) -> ChainProblem:  # type: ignore[override]
        """A problem of new rows, whose scores under these weights are known."""
        n_labels, n_basis = len(self.classes), len(self.support)
        coefficients = w[: n_labels * n_basis].reshape(n_labels, n_basis).T.astype(self.dtype)
        rows, extra = self.split(problem)
        scores = np.empty((rows.shape[0], n_labels), self.dtype)
        step = max(1, BLOCK // max(n_basis, 1))
        for lo in range(0, len(scores), step):
            part = slice(lo, lo + step)
            scores[part] = self._values(rows[part]) @ coefficients
        scores += extra @ (self.extra.T @ coefficients)
        check_size(scores)
        width = (w.size - n_labels**2) // n_labels
        return problem._replace(features=KnownScores(np.ascontiguousarray(scores), width))

    def _values(self, rows: Any) -> np.ndarray:
        """The values of the kernel of rows with those that have coefficients."""
        if self.kernel is None:
            return as_dense(rows)[:, self.support]
        if not sp.issparse(self.basis):
            rows = as_dense(rows)
        if self.center.size:
            rows = rows - self.center
        values = self.kernel(rows, self.basis)
        return values if self.kernel.shape else check_values(values, (rows.shape[0], len(self.support)), self.dtype)

    def fitted(self, w: np.ndarray) -> tuple[KernelChainEncoder, np.ndarray]:
        n_labels, n = len(self.classes), len(self.support)
        coefficients = w[: n_labels * n].reshape(n_labels, n)
        which = np.flatnonzero(coefficients.any(axis=0))
        encoder = replace(self, extra=self.extra[which], support=self.support[which])
        if self.basis is not None:
            encoder = replace(encoder, basis=self.basis[which])
        return encoder, np.concatenate([coefficients[:, which].ravel(), w[-(n_labels**2) :]])

    def names(self, w: np.ndarray) -> Bunch:
        n_labels, n = len(self.classes), len(self.support)
        dual = w[: n_labels * n].reshape(n_labels, n).T
        return Bunch(dual=dual, transitions=w[-(n_labels**2) :].reshape(n_labels, n_labels))

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        found = super().attributes(w)
        if self.basis is not None:
            found["support_vectors_"] = self.basis + self.center if self.center.size else self.basis
        return found


def is_shape(shape: object) -> bool:
    """Whether these can be the kind and the parameters of a kernel."""
    return (
        isinstance(shape, Shape)
        and all(isinstance(number, (int, float)) for number in shape)
        and shape.kind in SHAPES.values()
        and 1 <= shape.degree <= MOST_DEGREE
        and 0 < shape.gamma < np.inf
        and 0 <= shape.coef0 < np.inf
    )


def is_finite(values: np.ndarray, dtype: np.dtype | None) -> bool:
    """Whether an array holds finite numbers, of a dtype if there is one."""
    return values.dtype.kind == "f" and (dtype is None or values.dtype == dtype) and bool(np.isfinite(values).all())


def as_dense(matrix: Any) -> Any:
    """A matrix of SciPy as an array."""
    return matrix.toarray() if sp.issparse(matrix) else matrix


def make_kernel(kernel: Any, rows: Any, gamma: Any, degree: int, coef0: float) -> Kernel:
    """The kernel of a name, or of a function."""
    if callable(kernel):
        return Kernel(function=kernel)
    if isinstance(gamma, str):
        spread = float(rows.mean() * -rows.mean() + rows.multiply(rows).mean()) if sp.issparse(rows) else rows.var()
        spread = float(spread) if gamma == "scale" else 1.0
        gamma = 1.0 / (rows.shape[1] * spread) if spread > 0 else 1.0
    return Kernel(Shape(SHAPES[kernel], float(gamma), float(coef0), int(degree)))


def check_kernel(kernel: object, gamma: object, degree: int, coef0: object, cache_size: object) -> None:
    """Raise unless these are a kernel and its parameters."""
    if not (callable(kernel) or (isinstance(kernel, str) and kernel in KERNELS)):
        raise ValueError(f"kernel must be a function or one of {', '.join(KERNELS)}, not {quote(kernel)}.")
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be a positive number, 'scale' or 'auto', not {gamma!r}.")
    else:
        check_positive("gamma", gamma)
    check_count("degree", degree)
    if degree > MOST_DEGREE:
        raise ValueError(f"degree must be at most {MOST_DEGREE}, not {degree}.")
    check_cost("coef0", coef0)  # the polynomial of a kernel is one if its coefficients are not negative
    check_positive("cache_size", cache_size)


def check_memory(n: int, n_bytes: int, room: int) -> None:
    """Raise where so many bytes, for n rows, are more than there is room for."""
    if n_bytes > room:
        raise ValueError(
            f"The kernel of {n} rows takes {n_bytes:,} bytes, but cache_size leaves {room:,}: raise it, or "
            "train a ChainSVM on features of sklearn.kernel_approximation.Nystroem."
        )


def check_square(matrix: np.ndarray) -> None:
    """Raise unless there is a column for every row."""
    n, width = matrix.shape
    if n != width:
        raise ValueError(
            f"A precomputed kernel must be square: X has {n} rows in all, so that each must have {n} entries, its "
            f"values with all rows, but they have {width}."
        )


def check_values(values: object, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
    """What a function returned as the values of a kernel, as an array of that shape."""
    try:
        found = np.asarray(as_dense(values), dtype)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != shape:
        raise ValueError(f"kernel must return a matrix of numbers of the shape {shape}, but returned {quote(values)}.")
    return found


def check_gram(gram: np.ndarray, name: str) -> None:
    """Raise unless a matrix is symmetric and positive semidefinite, but for rounding."""
    size = float(np.abs(gram).max())
    check_size(gram)
    uneven = np.abs(gram - gram.T)
    if uneven.max() > NOT_SYMMETRIC * size:
        t, u = np.unravel_index(np.argmax(uneven), gram.shape)
        raise ValueError(
            f"{name} must be symmetric, but its entries at ({t}, {u}) and ({u}, {t}) are {gram[t, u]:g} and "
            f"{gram[u, t]:g}."
        )
    shifted = gram.astype(np.float64)
    shifted[np.diag_indices(len(gram))] += NOT_POSITIVE * size
    try:
        scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        least = scipy.linalg.eigvalsh(gram.astype(np.float64), subset_by_index=[0, 0])[0]
        raise ValueError(f"{name} must be positive semidefinite, but its smallest eigenvalue is {least:.3g}.") from None


def check_size(values: np.ndarray) -> None:
    """Raise where values of a kernel, or sums of them, are too large to compute with."""
    largest = float(np.abs(values).max(initial=0))
    if not largest <= LARGEST**2:  # False for NaN
        raise ValueError(f"Values of the kernel reach {largest:.3g}, beyond {LARGEST**2:g}: scale the features.")
