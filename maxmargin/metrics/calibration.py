"""Quality of probabilities: whether labels that have probability p are right in a share p of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import check_count, check_positive
from maxmargin.display.markup import table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.panels import new_axes, stack_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWEST = 1e-300  # probabilities below are taken for it: their logarithms are finite

Tables = Sequence[np.ndarray] | np.ndarray  # probabilities of the labels of sequences, or of rows


class Reliability(NamedTuple):
    """Labels by the probability of the most probable one, in bins: its mean, the share of right labels, their number.

    Bins without labels have NaN. `ece` is the expected calibration error, the mean distance of the first two.
    """

    edges: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray

    @property
    def ece(self) -> float:
        """The expected calibration error."""
        is_used = self.counts > 0
        return float(np.average(np.abs(self.confidence - self.accuracy)[is_used], weights=self.counts[is_used]))

    def _repr_html_(self) -> str:
        rows = [
            (f"{low:.2f} to {high:.2f}", f"{confidence:.4f}", f"{accuracy:.4f}", f"{n:,}")
            for low, high, confidence, accuracy, n in zip(self.edges, self.edges[1:], *self[1:], strict=False)
            if n
        ]
        titles = ("probability", "on average", "share that is right", "labels")
        told = tag("p", f"The expected calibration error is {self.ece:.4f}.")
        return show_in_notebook(table(titles, rows, class_="numbers"), told)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the share of right labels against their probability, equal where labels are calibrated; below, counts.

        They are drawn in the place of the Matplotlib axes `ax`, or on new ones; returns the axes of the shares.
        """
        ax = new_axes("Reliability.plot()", (5, 5)) if ax is None else ax
        shares, below = stack_panels(ax, [3, 1], "probability of the most probable label")
        shares.plot([0, 1], [0, 1], color="grey", linestyle=":", label="calibrated")
        label = f"calibration error {self.ece:.3f}"
        shares.plot(self.confidence, self.accuracy, marker="o", color="C0", label=label)
        shares.set(xlim=(0, 1), ylim=(0, 1), ylabel="share that is right")
        shares.legend()
        below.bar(self.edges[:-1], self.counts, np.diff(self.edges), align="edge", color="C0", edgecolor="white")
        below.set_ylabel("labels")
        return shares


def reliability(y_true: object, marginals: Tables, classes: ArrayLike, n_bins: int = 10) -> Reliability:
    """How often the most probable label is right, by its probability.

    Parameters
    ----------
    y_true : list of sequences of labels, or (n,) array
    marginals
        List of (T_i, L) arrays of probabilities, or one (n, L) array: `predict_marginals` of a model.
    classes
        (L,) the labels of the columns: its `classes_`.
    n_bins
        The number of bins of equal width between 0 and 1.

    Returns
    -------
    Reliability
        Labels that are not in `classes` count as wrong.

    Examples
    --------
    >>> from maxmargin.metrics import reliability
    >>> found = reliability([["a", "b"]], [[[0.9, 0.1], [0.9, 0.1]]], ["a", "b"], n_bins=2)
    >>> found.confidence.tolist(), found.accuracy.tolist(), found.counts.tolist(), round(found.ece, 3)
    ([nan, 0.9], [nan, 0.5], [0, 2], 0.4)
    """
    check_count("n_bins", n_bins)
    p, labels = _flatten(y_true, marginals, classes)
    confidence, is_right = p.max(axis=1), p.argmax(axis=1) == labels
    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    sums = [np.bincount(bins, weights=values, minlength=n_bins) for values in (confidence, is_right)]
    means = [np.divide(total, counts, out=np.full(n_bins, np.nan), where=counts > 0) for total in sums]
    return Reliability(np.linspace(0, 1, n_bins + 1), means[0], means[1], counts)


def expected_calibration_error(y_true: object, marginals: Tables, classes: ArrayLike, n_bins: int = 10) -> float:
    """The mean distance between how probable labels are and how often they are right.

    Parameters
    ----------
    y_true, marginals, classes, n_bins
        As in `reliability`.

    Examples
    --------
    >>> from maxmargin.metrics import expected_calibration_error
    >>> expected_calibration_error([["a", "a"]], [[[1.0, 0.0], [1.0, 0.0]]], ["a", "b"])
    0.0
    """
    return reliability(y_true, marginals, classes, n_bins).ece


def temper(marginals: Tables, temperature: float) -> Any:
    """Probabilities at another temperature, p^(1/T) rescaled to sums of 1: above 1 they are more alike.

    Parameters
    ----------
    marginals : list of (T_i, L) arrays of probabilities, or one (n, L) array
    temperature
        T.

    Returns
    -------
    the same with other probabilities

    Examples
    --------
    >>> from maxmargin.metrics import temper
    >>> temper([[[0.9, 0.1]]], 2.0)
    [array([[0.75, 0.25]])]
    """
    check_positive("temperature", temperature)
    if isinstance(marginals, np.ndarray) and marginals.ndim == 2:
        return _temper_rows(marginals, temperature)
    return [_temper_rows(np.asarray(p, np.float64), temperature) for p in marginals]


def _temper_rows(p: np.ndarray, temperature: float) -> np.ndarray:
    logs = np.log(np.maximum(p, LOWEST)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def find_temperature(y_true: object, marginals: Tables, classes: ArrayLike) -> float:
    """The temperature at which the labels are most likely, from 0.01 to 100: find it on held-out data.

    Parameters
    ----------
    y_true, marginals, classes
        As in `reliability`; labels that are not in `classes` are left out.

    Returns
    -------
    float
        For `temper`. Above 1 the probabilities given are too sure.

    Examples
    --------
    >>> from maxmargin.metrics import find_temperature
    >>> sure = [[[0.9, 0.1]] * 4]
    >>> round(find_temperature([["a", "a", "a", "b"]], sure, ["a", "b"]), 3)
    2.0
    """
    from scipy.optimize import minimize_scalar  # slow to import

    p, labels = _flatten(y_true, marginals, classes)
    p, labels = p[labels >= 0], labels[labels >= 0]
    if not len(labels):
        raise ValueError("y_true must hold at least one label that is in classes.")

    def surprise(log_temperature: float) -> float:
        tempered = _temper_rows(p, np.exp(log_temperature))
        return -float(np.log(np.maximum(tempered[np.arange(len(labels)), labels], LOWEST)).mean())

    found = minimize_scalar(surprise, bounds=(np.log(0.01), np.log(100.0)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def _flatten(y_true: Any, marginals: Tables, classes: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """All rows of probabilities, and the columns of the true labels, -1 for those that have none."""
    if isinstance(marginals, np.ndarray) and marginals.ndim == 2:
        marginals, y_true = [marginals], [y_true]
    index = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    if len(y_true) != len(marginals) or not len(marginals):
        raise ValueError(f"y_true and marginals must hold as many sequences, not {len(y_true)} and {len(marginals)}.")
    tables = [np.asarray(p, np.float64) for p in marginals]
    for i, (labels, p) in enumerate(zip(y_true, tables, strict=True)):
        if p.shape != (len(labels), len(index)):
            raise ValueError(f"marginals[{i}] must have the shape {(len(labels), len(index))}, but has {p.shape}.")
        if not ((p >= -1e-6).all() and (np.abs(p.sum(axis=1) - 1) <= 1e-3).all()):
            raise ValueError(f"marginals[{i}] must hold probabilities, whose rows add up to 1.")
    codes = [index.get(label, -1) for labels in y_true for label in np.asarray(labels).tolist()]
    return np.concatenate(tables), np.array(codes)
