"""Quality of entities, spelled by tags of any scheme: precision, recall and F1 as conlleval counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from maxmargin.display.markup import Markup, table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.metrics.labels import check_pairs, token_accuracy
from maxmargin.text.schemes import Spans, read_tags


class EntityScore(NamedTuple):
    """How many entities there are, how many were predicted, and how many of these are right: bounds and type.

    Examples
    --------
    >>> from maxmargin.metrics import EntityScore
    >>> score = EntityScore(n_true=4, n_predicted=2, n_right=1)
    >>> score.precision, score.recall, round(score.f1, 3)
    (0.5, 0.25, 0.333)
    """

    n_true: int
    n_predicted: int
    n_right: int

    @property
    def precision(self) -> float:
        """The share of predicted entities that are right; 0 where there are none."""
        return self.n_right / max(self.n_predicted, 1)

    @property
    def recall(self) -> float:
        """The share of true entities that were found; 0 where there are none."""
        return self.n_right / max(self.n_true, 1)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where nothing is right."""
        return 2 * self.n_right / max(self.n_true + self.n_predicted, 1)


class EntityReport(NamedTuple):
    """Scores of entities, overall and by type; printed as conlleval does.

    Attributes
    ----------
    overall
        EntityScore.
    types
        Dict of EntityScore by type, sorted.
    accuracy
        The share of tags that are right.
    n_tokens
        The number of tags.
    """

    overall: EntityScore
    types: dict[str, EntityScore]
    accuracy: float
    n_tokens: int

    def __str__(self) -> str:
        n_true, n_predicted, n_right = self.overall
        return "\n".join(
            [
                f"processed {self.n_tokens} tokens with {n_true} phrases; found: {n_predicted} phrases; "
                f"correct: {n_right}.",
                f"accuracy: {100 * self.accuracy:6.2f}%; {_percentages(self.overall)}",
                *(f"{kind:>17}: {_percentages(score)}  {score.n_predicted}" for kind, score in self.types.items()),
            ]
        )

    def _repr_html_(self) -> str:
        accuracy = tag("p", f"{100 * self.accuracy:.2f} % of {self.n_tokens:,} tags are right.")
        return show_in_notebook(tabulate_scores("type", self.overall, self.types), accuracy)


def tabulate_scores(title: str, overall: EntityScore, scores: Mapping[str, EntityScore]) -> Markup:
    """A table of scores of all, and by type or label, as the title says."""
    rows = [
        (kind, *(f"{100 * share:.2f}" for share in (score.precision, score.recall, score.f1)), *score)
        for kind, score in [("all", overall), *scores.items()]
    ]
    return table((title, "precision", "recall", "F1", "true", "found", "right"), rows, class_="numbers")


def _percentages(score: EntityScore) -> str:
    precision, recall, f1 = 100 * score.precision, 100 * score.recall, 100 * score.f1
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def entity_report(y_true: object, y_pred: object) -> EntityReport:
    """Compare entities: overall and by type, with the share of tags that are right.

    Parameters
    ----------
    y_true, y_pred
        Lists of sequences of tags, of any scheme; those that break its rules are read as conlleval does.

    Examples
    --------
    >>> from maxmargin.metrics import entity_report
    >>> report = entity_report([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-ORG"]])
    >>> print(report)
    processed 4 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  75.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                  LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
                  ORG: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
                  PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    >>> report.types["PER"].f1
    1.0
    """
    y_true, y_pred = check_pairs(y_true, y_pred)
    true, predicted, right = _entities(y_true, y_pred)
    kinds = np.union1d(true.type, predicted.type).tolist()
    counts = [[int((types == kind).sum()) for types in (true.type, predicted.type, right)] for kind in kinds]
    types = {kind: EntityScore(*count) for kind, count in zip(kinds, counts, strict=True)}
    overall = EntityScore(len(true.type), len(predicted.type), len(right))
    return EntityReport(overall, types, token_accuracy(y_true, y_pred), sum(map(len, y_true)))


def _entities(y_true: object, y_pred: object) -> tuple[Spans, Spans, np.ndarray]:
    """The true and the predicted entities, and the types of those that are both."""
    pairs = zip(("y_true", "y_pred"), check_pairs(y_true, y_pred), strict=True)
    true, predicted = (read_tags(y, name).spans() for name, y in pairs)
    _, left, right = np.intersect1d(true.start, predicted.start, assume_unique=True, return_indices=True)
    is_right = (true.end[left] == predicted.end[right]) & (true.type[left] == predicted.type[right])
    return true, predicted, true.type[left][is_right]


def _overall(y_true: object, y_pred: object) -> EntityScore:
    true, predicted, right = _entities(y_true, y_pred)
    return EntityScore(len(true.type), len(predicted.type), len(right))


def entity_precision(y_true: object, y_pred: object) -> float:
    """The share of predicted entities that are right, of outputs as in `entity_report`.

    Examples
    --------
    >>> from maxmargin.metrics import entity_precision
    >>> entity_precision([["B-PER", "O", "O"]], [["B-PER", "O", "B-LOC"]])
    0.5
    """
    return _overall(y_true, y_pred).precision


def entity_recall(y_true: object, y_pred: object) -> float:
    """The share of true entities that were found, of outputs as in `entity_report`.

    Examples
    --------
    >>> from maxmargin.metrics import entity_recall
    >>> entity_recall([["B-PER", "O", "O"]], [["B-PER", "O", "B-LOC"]])
    1.0
    """
    return _overall(y_true, y_pred).recall


def entity_f1(y_true: object, y_pred: object) -> float:
    """The harmonic mean of the precision and recall of entities, of outputs as in `entity_report`.

    Examples
    --------
    >>> from maxmargin.metrics import entity_f1
    >>> entity_f1([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-ORG"]])
    0.5
    """
    return _overall(y_true, y_pred).f1
