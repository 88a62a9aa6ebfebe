"""The metrics of sklearn-crfsuite: those of scikit-learn on the labels of all sequences in one row.

`maxmargin.metrics` has those of entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn import metrics

from maxmargin.metrics import sequence_accuracy

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "sequence_accuracy_score",
]

Sequences = Sequence[Iterable[object]] | np.ndarray  # of labels


def _flat(y: Sequences) -> list[object]:
    return [*chain.from_iterable(y)]


def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of labels that are right.

    Examples
    --------
    >>> from maxmargin.crfsuite.metrics import flat_accuracy_score
    >>> flat_accuracy_score([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.75
    """
    return metrics.accuracy_score(_flat(y_true), _flat(y_pred))


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    """Precision of labels, with the options of scikit-learn's `precision_score`."""
    return metrics.precision_score(_flat(y_true), _flat(y_pred), **options)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    """Recall of labels, with the options of scikit-learn's `recall_score`."""
    return metrics.recall_score(_flat(y_true), _flat(y_pred), **options)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    """F1 of labels, with the options of scikit-learn's `f1_score`.

    Examples
    --------
    >>> from maxmargin.crfsuite.metrics import flat_f1_score
    >>> flat_f1_score([["a", "b"]], [["a", "a"]], average="weighted", labels=["a"])
    0.6666666666666666
    """
    return metrics.f1_score(_flat(y_true), _flat(y_pred), **options)


def flat_fbeta_score(y_true: Sequences, y_pred: Sequences, beta: float, **options: Any) -> Any:
    """F-beta of labels, with the options of scikit-learn's `fbeta_score`."""
    return metrics.fbeta_score(_flat(y_true), _flat(y_pred), beta=beta, **options)


def flat_classification_report(
    y_true: Sequences, y_pred: Sequences, labels: Sequence[object] | None = None, **options: Any
) -> Any:
    """scikit-learn's `classification_report` of labels, with its options."""
    return metrics.classification_report(_flat(y_true), _flat(y_pred), labels=labels, **options)


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of sequences whose labels are all right.

    Examples
    --------
    >>> from maxmargin.crfsuite.metrics import sequence_accuracy_score
    >>> sequence_accuracy_score([["a", "b"], ["a"]], [["a", "b"], ["b"]])
    0.5
    """
    return sequence_accuracy(y_true, y_pred) if len(y_true) else 0
