"""The metrics of sklearn-crfsuite: those of scikit-learn on the labels of all sequences in one row.

`maxmargin.metrics` has those of entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def _flatten(metric: Callable[..., object], *third: str) -> Callable[..., Any]:
    """scikit-learn's metric of all labels in one row, with its options, one of which may be the third argument."""

    def flat(y_true: Sequences, y_pred: Sequences, *given: object, **options: object) -> Any:
        rows = ([*chain.from_iterable(y)] for y in (y_true, y_pred))
        return metric(*rows, **dict(zip(third, given, strict=True)) if given else {}, **options)

    flat.__name__ = flat.__qualname__ = f"flat_{metric.__name__}"  # by which it is pickled
    flat.__doc__ = f"scikit-learn's `{metric.__name__}` of the labels of all sequences, with its options."
    return flat


flat_accuracy_score = _flatten(metrics.accuracy_score)
flat_precision_score = _flatten(metrics.precision_score)
flat_recall_score = _flatten(metrics.recall_score)
flat_f1_score = _flatten(metrics.f1_score)
flat_fbeta_score = _flatten(metrics.fbeta_score, "beta")
flat_classification_report = _flatten(metrics.classification_report, "labels")


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of sequences whose labels are all right.

    Examples
    --------
    >>> from maxmargin.crfsuite.metrics import flat_f1_score, sequence_accuracy_score
    >>> sequence_accuracy_score([["a", "b"], ["a"]], [["a", "b"], ["b"]])
    0.5
    >>> flat_f1_score([["a", "b"]], [["a", "a"]], average="weighted", labels=["a"])
    0.6666666666666666
    """
    return sequence_accuracy(y_true, y_pred) if len(y_true) else 0
