"""What turns examples into problems, in training and prediction alike, and weights into named parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.encode.inputs.example_checks import find_labels, flatten_labels, locate, refuse_unknown
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows, as_stored
from maxmargin.encode.partial.annotations import flatten_known, have_partial, read_known
from maxmargin.inference import possible_outputs
from maxmargin.persist.registry import register
from maxmargin.problem import AnyProblem, all_true_outputs, restrict, true_outputs
from maxmargin.supervision.exclusions import exclude_labels
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, without_costs
from maxmargin.wording import quote

P = TypeVar("P")  # the problems of an encoder

# Dense rows with fewer non-zeros than this are stored sparse: scoring and updates then cost less.
SPARSE_BELOW = 0.35


def same(a: Any, b: Any) -> bool:
    """Whether two values, arrays or tuples of such are equal."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or np.array_equal(a, b)


@dataclass(frozen=True, eq=False)
class Encoder(Generic[P]):
    """What a model must remember of its training data to read other data, and to name its weights.

    Each structure has its own, with a classmethod `learn` that makes one, and the problem, of training data. Encoders
    are equal if weights mean the same to both, whatever they are stored as.
    """

    published: ClassVar[tuple[str, ...]] = ()  # fields that are attributes of fitted models, with an underscore

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.compare
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, object]:
        """What is pickled and copied: the fields, and nothing that was made of them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        register(cls)  # saved by its fields

    @classmethod
    def argument_names(cls) -> set[str]:
        """The arguments of a model, and what can come with training data, that `learn` takes by name."""
        names: set[str] = set()
        for base in cls.__mro__:
            if "learn" in vars(base):
                taken = inspect.signature(base.learn).parameters.values()  # type: ignore[attr-defined]
                names |= {argument.name for argument in taken if argument.kind is argument.KEYWORD_ONLY}
                if all(argument.kind is not argument.VAR_KEYWORD for argument in taken):
                    break  # the others are not passed on
        return names

    @property
    def n_weights(self) -> int:
        """The number of weights of a model."""
        raise NotImplementedError

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        """What must be true of the fields, and of weights, besides their types: names, and whether it is.

        Encoders of training data keep to it; one that was read from a file need not: see `file_guard`. Each claim is
        put only where those before it hold.
        """
        yield from ()

    def problem(self, X: Any, y: Any = None) -> P:
        """Check other examples and put their problem together; with true outputs y, to compare predictions with.

        Costs and what else only training needs are left out.
        """
        raise NotImplementedError

    def is_partial(self, y: object) -> bool:
        """Whether outputs, as users give them, are such that less than one output is known of some example."""
        return False

    def exclusions(self, problem: P, known: object, name: str) -> Any:
        """What `restrict` takes to leave only those outputs that agree with what is known of them."""
        raise TypeError(f"{name} must be None: outputs of a {type(problem).__name__} cannot be ruled out by it.")

    def agreeing(self, problem: P, known: object, name: str) -> Any:
        """The problem with only those outputs that agree with what is known of them, `name` in messages."""
        return restrict(problem, self.exclusions(problem, known, name))

    def names(self, w: np.ndarray) -> Any:
        """The parts of the weights by their names, as views."""
        return w

    def limits(self, bounds: object, n_weights: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The lower and upper bounds of all weights, from those of parts of them by their names; or None and None."""
        if bounds is None:
            return None, None
        if not isinstance(bounds, Mapping):
            raise TypeError(f"bounds must be a dictionary of pairs by the names of weights, not {quote(bounds)}.")
        limits = np.full(n_weights, -np.inf), np.full(n_weights, np.inf)
        parts = self.names(np.arange(1, n_weights + 1))  # numbers of weights, 0 where there is none
        for name, pair in bounds.items():
            if name not in parts:
                raise ValueError(f"bounds names {name!r}, but the weights are {', '.join(parts)}.")
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ValueError(f"bounds[{name!r}] must be a pair of a lower and an upper bound, not {pair!r}.")
            part, shape = parts[name], parts[name].shape
            where = part.nonzero()
            which = (part.data if sp.issparse(part) else part[where]) - 1
            for limit, bound in zip(limits, pair, strict=True):
                if bound is not None:
                    if np.shape(bound) not in ((), shape):
                        raise ValueError(f"bounds[{name!r}] has the shape {np.shape(bound)}, but the part has {shape}.")
                    limit[which] = np.broadcast_to(bound, shape)[where]
            if not (limits[0] <= limits[1]).all():
                raise ValueError(f"bounds[{name!r}] must be numbers, the lower ones at most the upper ones.")
        return limits

    def fitted(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        """The encoder and the weights of a model, from the weights of a solver: less, where predictions need less."""
        return self, w

    def compact(self, w: np.ndarray) -> tuple[object, np.ndarray]:
        """The encoder and the weights that predict the same, and take less room in a file."""
        return self, w

    def joined(self, other: Self) -> Self:
        """The encoder of the data of both: what only the other knows comes after what this one does."""
        if self != other:
            raise ValueError("y and X must be of the kinds and sizes that they were before.")
        return self

    def after(self, former: Self | None) -> Self:
        """The encoder of these training data and of those of a former model, if there is one."""
        return self if former is None else former.joined(self)

    def weights_of(self, other: Encoder[P], w: np.ndarray) -> np.ndarray | None:
        """Weights of another encoder where this one has them, zero where the other has none; None if nothing fits."""
        return w if self == other else None

    def scored(self, problem: P, w: np.ndarray) -> P:
        """A problem of other examples, ready for predictions with these weights."""
        return problem

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        """The attributes of a model with these weights."""
        return {"coef_": self.names(w), **{f"{name}_": getattr(self, name) for name in self.published}}

    def dual_shape(self, problem: P) -> tuple[object, ...]:
        """What a dual point depends on besides the encoder: one of another layout would give false certificates."""
        raise NotImplementedError

    def decode(self, problem: P, i: int, rows: np.ndarray) -> Any:
        """Outputs of example i as users know them, from rows of integers."""
        return rows

    def decode_all(self, problem: P, outputs: Blocks) -> Any:
        """One output per example as users know them."""
        rows = np.split(outputs.values, outputs.starts[1:])[:-1]
        return [self.decode(problem, i, row[np.newaxis])[0] for i, row in enumerate(rows)]

    def arrange(self, problem: P, parts: Blocks) -> Any:
        """Numbers of all parts, such as marginals, in the shapes that users know."""
        return np.split(parts.values, parts.starts[1:-1])

    def check_seen(self, problem: P) -> None:
        """Raise where a true output has something that was not there in training."""

    def judge(self, problem: P, outputs: Blocks) -> Merits:
        """How good outputs are, compared with the true ones: which of their entries are right."""
        truth = true_outputs(problem)
        values = truth.values if isinstance(truth, Blocks) else np.ravel(truth)
        return Merits(outputs.values == values, np.diff(outputs.starts))


@dataclass(frozen=True, eq=False, kw_only=True)
class RowEncoder(Encoder[P]):
    """What structures share whose features are rows of numbers."""

    published: ClassVar[tuple[str, ...]] = ("n_features_in",)

    n_features_in: int
    dtype: np.dtype = field(compare=False)
    stores_sparse: bool = field(compare=False)
    has_bias: bool = False

    @property
    def n_weights(self) -> int:
        return self.n_features_in + self.has_bias

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "n_features_in", self.n_features_in > 0

    @classmethod
    def of(
        cls, rows: Rows, dtype: DTypeLike, *, stores_sparse: bool = False, former: Self | None = None, **fields: Any
    ) -> Self:
        """The encoder of training rows, which stores others in the same way; as a `former` one did, if there is one."""
        matrix = rows.matrix
        is_sparse = stores_sparse or sp.issparse(matrix) or np.count_nonzero(matrix) < SPARSE_BELOW * matrix.size
        if former is not None:
            is_sparse = former.stores_sparse
        return cls(n_features_in=matrix.shape[1], dtype=np.dtype(dtype), stores_sparse=is_sparse, **fields)

    def check_width(self, other: RowEncoder) -> None:
        """Raise unless another encoder has as many features."""
        if (self.n_features_in, self.has_bias) != (other.n_features_in, other.has_bias):
            raise ValueError(f"X has {other.n_features_in} features, but {self.n_features_in} before.")

    def stored(self, rows: Rows, append_bias: Callable[[Rows], Rows] | None = None) -> Rows:
        """Rows, dense or sparse as those of training, with the features of biases if there are any."""
        rows = as_stored(rows, self.stores_sparse)
        return append_bias(rows) if self.has_bias and append_bias else rows


@dataclass(frozen=True, eq=False, kw_only=True)
class LabellingEncoder(RowEncoder[P]):
    """What structures share whose outputs are labels, one per row."""

    published: ClassVar[tuple[str, ...]] = ("classes", "n_features_in")
    noun: ClassVar[str] = "position"  # what has a label

    classes: np.ndarray

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "classes", self.classes.ndim == 1 and len(self.classes) > 0

    def truth(self, y: object, rows: Rows, noun: str, *, is_stacked: bool = False) -> np.ndarray:
        """The numbers of true labels, -1 for those that were not seen in training, or where there are none."""
        if y is None:
            return np.full(rows.starts[-1], NO_LABEL, np.int32)
        try:
            labels = flatten_labels(y, rows.lengths, noun, is_stacked=is_stacked)
        except (TypeError, ValueError):
            if not self.is_partial(y):
                raise
            raise ValueError(
                f"y must hold one label of each {self.noun} to compare predictions with, but says less."
            ) from None
        codes = find_labels(labels, self.classes)
        if labels.dtype.kind == self.classes.dtype.kind == "i" and NO_LABEL in labels[codes < 0]:
            refuse_unknown(labels, rows.starts)
        if codes.size and (codes < 0).all():
            raise ValueError(f"y contains no label that was seen in fit: {labels[0].item()!r} is none, for example.")
        return codes

    def unsupervised(self, labels: np.ndarray, weight: np.ndarray | None = None) -> LabelSupervision:
        """True labels to compare predictions with, and no costs."""
        return without_costs(labels, len(self.classes), self.dtype, weight)

    def is_partial(self, y: object) -> bool:
        return have_partial(y)

    def exclusions(self, problem: P, known: object, name: str) -> Blocks:
        starts = all_true_outputs(problem).starts
        flat = flatten_known(known, np.diff(starts), "example", name, is_stacked=True)
        read = read_known(flat, self.classes, starts, name, noun=self.noun)
        _, is_soft = read.open_and_soft()
        if is_soft.any():
            i, place = locate(int(np.argmax(is_soft)), starts)
            raise ValueError(f"{name}[{i}] has probabilities at {self.noun} {place}, which only y of fit may have.")
        allowed = read.allowed
        assert allowed is not None
        self.check_left(problem, allowed, name)
        return self.exclude(problem, ~allowed)

    def check_left(self, problem: P, allowed: np.ndarray, name: str) -> None:
        """Raise where no output of an example has only labels of nodes that are allowed, (N, L)."""

    def exclude(self, problem: P, table: np.ndarray) -> Blocks:
        """What `restrict` takes to rule labels of nodes out, (N, L)."""
        return exclude_labels(table, all_true_outputs(problem).starts)

    def mean_parts(self, problem: P, means: np.ndarray) -> Blocks:
        """Those of labels that are independent of each other, with probabilities (N, L)."""
        raise NotImplementedError

    def check_seen(self, problem: P) -> None:
        labels, starts = true_outputs(problem)
        if (labels < 0).any():
            example, place = locate(np.flatnonzero(labels < 0)[0], starts)
            raise ValueError(f"y[{example}] contains a label that was not seen in fit, at {self.noun} {place}.")

    def decode(self, problem: P, i: int, rows: np.ndarray) -> np.ndarray:
        return self.classes[rows]

    def decode_all(self, problem: P, outputs: Blocks) -> list[np.ndarray]:
        return np.split(self.classes[outputs.values], outputs.starts[1:])[:-1]

    def arrange(self, problem: P, parts: Blocks) -> Any:
        return by_row(parts, all_true_outputs(problem).starts, len(self.classes))


def complete_outputs(problem: Any, excluded: Blocks, field: str) -> tuple[Any, Any]:
    """A problem, and the same with consistent outputs alone, whose true ones, in that field, some of these become."""
    consistent = restrict(problem, excluded)
    supervision = problem.supervision._replace(**{field: possible_outputs(consistent, "y").values})
    return problem._replace(supervision=supervision), consistent._replace(supervision=supervision)


def check_exclusions(problem: AnyProblem, excluded: Blocks, name: str) -> Blocks:
    """What is excluded by what `name` says, if it leaves an output of every example."""
    possible_outputs(restrict(problem, excluded), name)
    return excluded


def by_row(parts: Blocks, starts: np.ndarray, width: int) -> list[np.ndarray]:
    """The first parts of each example as a table of `width` columns with a row for each of its rows."""
    sizes = width * np.diff(starts)
    return [parts.values[at : at + size].reshape(-1, width) for at, size in zip(parts.starts[:-1], sizes, strict=True)]
