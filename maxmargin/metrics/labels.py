"""Quality of labels: the shares of labels and of sequences that are right, and what is taken for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.display.markup import table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.panels import new_axes
from maxmargin.wording import name_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SHOWN = 30  # labels of a table in a notebook


def check_pairs(y_true: object, y_pred: object) -> tuple[list[Any], list[Any]]:
    """Raise unless both are lists of sequences of the same lengths, with at least one label; return them as lists."""
    true, predicted = check_lists(y_true, y_pred)
    for i, (a, b) in enumerate(zip(true, predicted, strict=True)):
        if len(a) != len(b):
            raise ValueError(f"y_true[{i}] has {len(a)} labels, but y_pred[{i}] has {len(b)}.")
    if not any(true):
        raise ValueError("y_true must hold at least one label.")
    return true, predicted


def check_lists(y_true: object, y_pred: object) -> tuple[list[Any], list[Any]]:
    """Raise unless both are lists of as many sequences; return them as lists."""
    true, predicted = (
        [_as_list(labels, f"{name}[{i}]") for i, labels in enumerate(_as_list(y, name))]
        for name, y in (("y_true", y_true), ("y_pred", y_pred))
    )
    if len(true) != len(predicted):
        raise ValueError(f"y_true has {len(true)} sequences, but y_pred has {len(predicted)}.")
    return true, predicted


def _as_list(values: object, name: str) -> list[object]:
    if isinstance(values, np.ndarray) and values.ndim:
        return values.tolist() if values.dtype != object else [*values]
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list, not {name_type(values)}.")
    return [*values]


def token_accuracy(y_true: object, y_pred: object) -> float:
    """The share of labels that are right.

    Parameters
    ----------
    y_true, y_pred : lists of sequences of labels

    Examples
    --------
    >>> from maxmargin.metrics import token_accuracy
    >>> token_accuracy([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.75
    """
    true, predicted = check_pairs(y_true, y_pred)
    is_right = [a == b for pair in zip(true, predicted, strict=True) for a, b in zip(*pair, strict=True)]
    return sum(is_right) / len(is_right)


def sequence_accuracy(y_true: object, y_pred: object) -> float:
    """The share of sequences whose labels are all right.

    Parameters
    ----------
    y_true, y_pred : lists of sequences of labels

    Examples
    --------
    >>> from maxmargin.metrics import sequence_accuracy
    >>> sequence_accuracy([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.5
    """
    true, predicted = check_pairs(y_true, y_pred)
    return sum(a == b for a, b in zip(true, predicted, strict=True)) / len(true)


class Confusion(NamedTuple):
    """How often each label, the row, was predicted as each, the column."""

    labels: list[Any]
    counts: np.ndarray

    def __str__(self) -> str:
        names = [str(label) for label in self.labels]
        width = max(len(name) for name in [*names, str(self.counts.max())])
        cells = [["", *names], *([name, *map(str, row)] for name, row in zip(names, self.counts.tolist(), strict=True))]
        return "\n".join("  ".join(cell.rjust(width) for cell in row).rstrip() for row in cells)

    def _repr_html_(self) -> str:
        names = [str(label) for label in self.labels]
        which = np.sort(np.argsort(-self.counts.sum(axis=1), kind="stable")[:MOST_SHOWN])
        rows = [(names[a], *self.counts[a, which].tolist()) for a in which]
        shown = table(("true, in rows", *(names[b] for b in which)), rows, class_="numbers")
        cut = f"Of {len(names):,} labels, the {MOST_SHOWN} most frequent ones."
        return show_in_notebook(shown, tag("p", cut) if len(names) > MOST_SHOWN else "")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the table: colours are shares of the true labels, as some are far more frequent, numbers are counts.

        Parameters
        ----------
        ax
            Matplotlib axes, new ones by default.

        Returns
        -------
        The axes.
        """
        n = len(self.labels)
        if ax is None:
            ax = new_axes("Confusion.plot()", (2 + 0.45 * n, 1.5 + 0.45 * n))
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for row, column in zip(*np.nonzero(self.counts), strict=True):
            color = "white" if shares[row, column] > 0.5 else "black"
            ax.text(column, row, self.counts[row, column], ha="center", va="center", color=color, fontsize="small")
        names = [str(label) for label in self.labels]
        ax.set_xticks(range(n), names, rotation=90)
        ax.set_yticks(range(n), names)
        ax.set(xlabel="predicted", ylabel="true")
        return ax


def confusion(y_true: object, y_pred: object) -> Confusion:
    """Count how often each label was predicted as each.

    Parameters
    ----------
    y_true, y_pred : lists of sequences of labels

    Returns
    -------
    Confusion
        The labels, sorted, and (L, L) counts: true labels in rows, predicted ones in columns.

    Examples
    --------
    >>> from maxmargin.metrics import confusion
    >>> print(confusion([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]]))
       a  b
    a  2  1
    b  0  1
    """
    true, predicted = check_pairs(y_true, y_pred)
    pairs = [pair for rows in zip(true, predicted, strict=True) for pair in zip(*rows, strict=True)]
    labels = sorted({label for pair in pairs for label in pair})
    index = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(counts, tuple(np.array([[index[label] for label in pair] for pair in pairs]).T), 1)
    return Confusion(labels, counts)
