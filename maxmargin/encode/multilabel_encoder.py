"""Rows of features with several labels each to graphs: a node per label, all examples in the same graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import LARGEST, as_numbers, check_choice
from maxmargin.encode.inputs.base_encoder import RowEncoder
from maxmargin.encode.inputs.edges import check_ends
from maxmargin.encode.inputs.example_checks import check_array, check_truths
from maxmargin.encode.inputs.label_graphs import edges_of, price_of, warn_of_price
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import Rows, append_constant, row_features, stack_rows
from maxmargin.encode.partial.annotations import Annotations, find_weak
from maxmargin.encode.partial.node_states import mean_parts_of_states
from maxmargin.losses import BaseLoss
from maxmargin.problem import part_sizes, true_outputs
from maxmargin.structures.graphs.cliques import EdgeType
from maxmargin.structures.graphs.graph_problem import WithOracles, make_graph_problem
from maxmargin.structures.graphs.independent import IndependentProblem
from maxmargin.structures.graphs.loopy import with_oracles
from maxmargin.supervision.costs import COSTS, class_weights
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import (
    NO_LABEL,
    LabelSupervision,
    supervise,
    supervise_evenly,
    without_costs,
)
from maxmargin.supervision.tallies import in_portions
from maxmargin.supervision.weak import Learned

ClassWeight = str | Mapping[int, float] | None

OFF_ON = np.array([-1, 0])  # of the two states of a label, the second has weights
ONE = Rows(np.ones((1, 1)), np.array([0, 1]))  # the feature of all edges


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiLabelEncoder(RowEncoder[Any]):
    """The encoder of rows with several labels each."""

    published = ("edges", "n_features_in")

    n_labels: int
    edges: np.ndarray  # (E, 2)
    is_wide: bool = False  # whether weights are (F, L), as those of an `IndependentProblem`, in place of (L, F)
    feature_names_in: np.ndarray | None  # of the columns of a data frame

    @property
    def n_weights(self) -> int:
        return self.n_labels * super().n_weights + 4 * len(self.edges)

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "is_wide", not (self.is_wide and len(self.edges))
        yield "edges", np.array_equal(self.edges, check_ends(self.edges, "graph", self.n_labels))

    @classmethod
    def learn(
        cls,
        X: np.ndarray | sp.csr_array,
        y: ArrayLike,
        *,
        graph: str | int | ArrayLike | None,
        feature_names: np.ndarray | None,
        loss: BaseLoss,
        cost: str | ArrayLike | None = None,
        class_weight: ClassWeight | Sequence[ClassWeight] = None,
        label_weight: ArrayLike | None = None,
        known: np.ndarray | None = None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: MultiLabelEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training data, whose rows scikit-learn has checked.

        If not all labels are certain, (n, L) probabilities say what is `known` of them, NaN where nothing is; y has the
        likelier sides.
        """
        rows = stack_rows(X, np.ones(X.shape[0], np.int64))
        labels = check_indicators(y, X.shape[0])
        chances = labels.astype(float) if known is None else known
        is_known = ~np.isnan(chances)
        check_known(is_known)
        sides = factors_of_labels(class_weight, label_weight, labels, is_known)
        sides *= costs_of_labels(cost, labels.shape[1])[:, np.newaxis]
        supervision = supervise_evenly(labels.ravel(), choose_side(sides, labels).ravel(), 2, dtype)
        if known is not None:  # to leave a label off costs as much as it is likely to be on
            table = np.where(
                is_known[:, :, np.newaxis], sides[:, :, ::-1] * np.stack([chances, 1 - chances], axis=2), 0.0
            )
            table = table.reshape(-1, 2)
            supervision = supervise(labels.ravel(), table, np.ones(labels.size), dtype, np.arange(labels.size))
        if not in_portions():
            warn_of_constant(labels, is_known)
        is_whole = is_known.all(axis=1)
        edges = former.edges if former else edges_of(graph, labels[is_whole] if is_whole.any() else labels)
        price = price_of(edges, labels.shape[1], len(labels), takes_sums=loss.oracle in ("exp", "topk"))
        warn_of_price(price, edges, labels.shape[1])
        encoder = cls.of(
            rows,
            dtype,
            former=former,
            has_bias=fit_intercept,
            n_labels=labels.shape[1],
            edges=edges,
            is_wide=not len(edges) and loss.name != "relaxed",
            feature_names_in=feature_names,
        ).after(former)
        most_entries = price.n_entries if np.isfinite(price.n_entries) else 0
        problem = encoder.assemble(rows, supervision, most_entries)
        if known is None:
            return Learned(encoder, problem)
        ends = labels.shape[1] * np.arange(len(labels))[:, np.newaxis, np.newaxis] + edges
        return Learned(
            encoder, problem, find_weak(encoder, problem, as_annotations(labels, chances), ends.reshape(-1, 2))
        )

    def problem(self, X: np.ndarray | sp.csr_array, y: ArrayLike | None = None) -> WithOracles | IndependentProblem:
        n = np.shape(X)[0]
        rows = stack_rows(X, np.ones(n, np.int64), self.n_features_in)
        labels = np.full((n, self.n_labels), NO_LABEL) if y is None else check_indicators(y, n, self.n_labels)
        return self.assemble(rows, without_costs(labels.ravel(), 2, self.dtype))

    def assemble(
        self, rows: Rows, supervision: LabelSupervision, most_entries: float = np.inf
    ) -> WithOracles | IndependentProblem:
        """Put rows and what is known of their labels together; elimination has tables of up to so many entries."""
        rows = self.stored(rows, append_constant)  # whose weights are the intercepts
        if self.is_wide:
            return self._assemble_wide(rows, supervision)
        n, n_edges = len(rows.lengths), len(self.edges)
        problem = make_graph_problem(
            row_features(rows, self.dtype),
            row_features(ONE, self.dtype),
            widths=(rows.matrix.shape[1], 1),
            starts=self.n_labels * np.arange(n + 1),
            edge_starts=n_edges * np.arange(n + 1),
            ends=np.tile(self.edges, (n, 1)),
            supervision=supervision,
            n_states=[2] * self.n_labels,
            edge_types=[EdgeType(a, b) for a, b in self.edges.tolist()],
            node_type=np.tile(np.arange(self.n_labels), n),
            edge_type=np.tile(np.arange(n_edges), n),
            node_row=np.repeat(np.arange(n), self.n_labels),
            edge_row=np.zeros(n * n_edges, int),
            node_columns=[OFF_ON] * self.n_labels,
        )
        return with_oracles(problem, most=most_entries)

    def _assemble_wide(self, rows: Rows, supervision: LabelSupervision) -> IndependentProblem:
        matrix = rows.matrix
        squares = matrix.multiply(matrix) if self.stores_sparse else np.square(matrix, dtype=np.float64)
        return IndependentProblem(
            features=row_features(rows, self.dtype),
            supervision=supervision,
            excluded=nothing_excluded(len(rows.lengths)),
            squared_norms=np.asarray(squares.sum(axis=1), np.float64),
            n_features=matrix.shape[1],
            n_labels=self.n_labels,
        )

    def is_partial(self, y: object) -> bool:
        return find_unknown(y) is not None

    def exclusions(self, problem: object, known: object, name: str) -> Blocks:
        n, kind = len(part_sizes(problem)), f"{INDICATORS}, with None or NaN for what is not known"
        unknown = find_unknown(known)
        labels = check_array(known if unknown is None else as_floats(known), name, kind, (n, self.n_labels))
        if not np.isin(labels[~np.isnan(labels)], (0, 1)).all():
            raise ValueError(f"{name} must be {kind}.")
        return self.exclude(problem, np.stack([labels == 1, labels == 0], axis=2))

    def exclude(self, problem: object, excluded: np.ndarray) -> Blocks:
        """What `restrict` takes to rule out sides of labels, of which there are 2 n L."""
        return self._by_example(excluded)

    def mean_parts(self, problem: Any, means: np.ndarray) -> Blocks:
        of_labels = self._by_example(means.astype(self.dtype))
        return of_labels if self.is_wide else mean_parts_of_states(problem.graphs, of_labels, self.dtype)

    def _by_example(self, table: np.ndarray) -> Blocks:
        """Both sides of all labels as parts of examples have them."""
        sides = table.reshape(-1, self.n_labels, 2)
        ordered = sides.transpose(0, 2, 1) if self.is_wide else sides
        return Blocks(ordered.ravel(), 2 * self.n_labels * np.arange(len(sides) + 1))

    def dual_shape(self, problem: object) -> tuple[int, ...]:
        return (len(true_outputs(problem).values),)

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        of_nodes, of_edges = np.split(w, [w.size - 4 * len(self.edges)])
        table = of_nodes.reshape(-1, self.n_labels).T if self.is_wide else of_nodes.reshape(self.n_labels, -1)
        names = {} if self.feature_names_in is None else {"feature_names_in_": self.feature_names_in}
        return {
            **super().attributes(w),
            "classes_": np.tile(np.arange(2), (self.n_labels, 1)),
            "coef_": table[:, : self.n_features_in],
            "intercept_": table[:, -1] if self.has_bias else np.zeros(self.n_labels, w.dtype),
            "edge_coef_": of_edges.reshape(-1, 2, 2),
            **names,
        }

    def decode(self, problem: object, i: int, rows: np.ndarray) -> np.ndarray:
        return rows.astype(int)

    def decode_all(self, problem: object, outputs: Blocks) -> np.ndarray:
        return outputs.values.reshape(-1, self.n_labels).astype(int)

    def arrange(self, problem: object, parts: Blocks) -> np.ndarray:
        """An (n, L, 2) array of the parts of labels, off and on."""
        n = len(parts.starts) - 1
        if self.is_wide:
            return parts.values.reshape(n, 2, -1).transpose(0, 2, 1)
        return parts.values.reshape(n, -1)[:, : 2 * self.n_labels].reshape(n, -1, 2)

    def judge(self, problem: object, outputs: Blocks) -> Merits:
        return Merits((outputs.values == true_outputs(problem).values).reshape(-1, self.n_labels).all(axis=1))


INDICATORS = "a matrix of 0 and 1, a row per example and a column per label, as MultiLabelBinarizer makes it"

BINARY = "Only binary classification is supported, of each label."  # as scikit-learn wants it said


def check_indicators(y: Any, n: int, n_labels: int | None = None) -> np.ndarray:
    """Check the labels of n examples, rows of 0 and 1, as many as in training."""
    labels = y.toarray() if sp.issparse(y) else y
    if np.ndim(labels) == 1:
        raise ValueError(f"y must be {INDICATORS}, not a single column. {BINARY}")
    labels = check_array(labels, "y", INDICATORS, (None, None))
    check_truths(labels, n, INDICATORS, "row")
    if n_labels is not None and labels.shape[1] != n_labels:
        raise ValueError(f"y has {labels.shape[1]} labels, but the model was fitted with {n_labels}.")
    is_wrong = (labels != 0) & (labels != 1)
    if is_wrong.any():
        i, label = np.argwhere(is_wrong)[0].tolist()
        raise ValueError(f"y[{i}, {label}] is {labels[i, label]}, but labels must be 0 or 1: {BINARY}")
    return labels.astype(np.int32)


def as_floats(y: object) -> np.ndarray:
    """A matrix of numbers, with NaN for None."""
    return np.array(y, dtype=float)


def read_numbers(y: object) -> np.ndarray | None:
    """Rows of numbers, with NaN for None, if there are any that are not integers."""
    if sp.issparse(y) or (isinstance(y, np.ndarray) and y.dtype.kind in "biu"):
        return None
    try:
        numbers = as_floats(y)
    except (TypeError, ValueError):  # which those who read labels will tell
        return None
    return numbers if numbers.ndim == 2 else None


def find_chances(y: object) -> np.ndarray | None:
    """(n, L) probabilities of labels, NaN for those that are not known, if not all are certain."""
    chances = read_numbers(y)
    if chances is None or np.isin(chances, (0, 1)).all() or (chances < 0).any() or (chances > 1).any():
        return None
    return chances


def find_unknown(y: object) -> np.ndarray | None:
    """(n, L) flags of labels that are None or NaN, if there are any."""
    numbers = read_numbers(y)
    return None if numbers is None or not np.isnan(numbers).any() else np.isnan(numbers)


def as_annotations(labels: np.ndarray, chances: np.ndarray) -> Annotations:
    """What is known of all labels, as of nodes that are off or on."""
    chances = chances.ravel()
    sides = np.stack([1 - chances, chances], axis=1)
    is_soft = (chances > 0) & (chances < 1)
    allowed = np.isnan(sides) | (sides > 0)
    shares = np.where(is_soft[:, np.newaxis], sides, 0.0) if is_soft.any() else None
    return Annotations(np.arange(2), labels.ravel().astype(np.int64), allowed, shares)


def choose_side(table: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n, L) what a table (n, L, 2) has for the sides that labels are on."""
    return np.take_along_axis(table, labels[:, :, np.newaxis].astype(np.int64), axis=2)[:, :, 0]


def check_known(is_known: np.ndarray) -> None:
    """Raise where nothing is known of a label."""
    if not is_known.any(axis=0).all():
        raise ValueError(f"Nothing is known of the labels in column {int(np.argmin(is_known.any(axis=0)))} of y.")


def warn_of_constant(labels: np.ndarray, is_known: np.ndarray) -> None:
    """Name the labels of which training data show one side only."""
    for share, when in ((0, "never"), (1, "always")):
        found = np.flatnonzero((labels * is_known).sum(axis=0) == share * is_known.sum(axis=0))
        if found.size:
            columns = f"column{'s' if found.size > 1 else ''} {', '.join(map(str, found))}"
            warnings.warn(f"Labels in {columns} of y are {when} on in training.", UserWarning, stacklevel=2)


def costs_of_labels(cost: str | ArrayLike | None, n_labels: int) -> np.ndarray:
    """(L,) what it costs to get each label wrong; zeros where there is no cost."""
    if cost is None:
        return np.zeros(n_labels)
    if isinstance(cost, str):
        check_choice("cost", cost, COSTS)
        return np.full(n_labels, 1 / n_labels if cost == "normalized_hamming" else 1.0)
    costs = as_numbers("cost", cost)
    if costs.shape != (n_labels,) or not ((costs >= 0).all() and (costs <= LARGEST).all()):
        raise ValueError(f"cost must hold {n_labels} numbers from 0 to {LARGEST:g}, one per label.")
    return costs


def factors_of_labels(
    class_weight: ClassWeight | Sequence[ClassWeight],
    label_weight: ArrayLike | None,
    labels: np.ndarray,
    is_known: np.ndarray,
) -> np.ndarray:
    """(n, L, 2) factors of the costs, by whether a label is off or on in truth, for all labels or for each."""
    n_labels = labels.shape[1]
    by_label = class_weight if isinstance(class_weight, (list, tuple)) else [class_weight] * n_labels
    if len(by_label) != n_labels:
        raise ValueError(f"class_weight must have {n_labels} entries, one per label, not {len(by_label)}.")
    n_on = (labels * is_known).sum(axis=0)
    counts = np.stack([is_known.sum(axis=0) - n_on, n_on], axis=1)
    weights = [
        class_weights(weight, np.arange(2), count, least=1) for weight, count in zip(by_label, counts, strict=True)
    ]
    factors = np.tile(weights, (len(labels), 1, 1))
    if label_weight is None:
        return factors
    given = as_numbers("label_weight", label_weight)
    if given.shape != labels.shape or not ((given >= 0).all() and (given <= LARGEST).all()):
        raise ValueError(f"label_weight must hold numbers from 0 to {LARGEST:g}, in the shape of y, {labels.shape}.")
    return factors * given[:, :, np.newaxis]
