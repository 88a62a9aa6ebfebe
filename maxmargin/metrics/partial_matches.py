"""Entities that are right in part: the four ways of counting of SemEval 2013, task 9, as nervaluate has them."""

from __future__ import annotations

from typing import NamedTuple

from maxmargin.display.markup import table
from maxmargin.display.notebook import show_in_notebook
from maxmargin.metrics.labels import check_pairs
from maxmargin.text.schemes import Entity, find_entities


class MatchScore(NamedTuple):
    """How many entities match, in one way of counting.

    Attributes
    ----------
    correct, incorrect, partial
        Of predicted entities that overlap a true one: right, wrong, or half right.
    missed
        True entities that no predicted one was compared with.
    spurious
        Predicted entities that were compared with none.

    Examples
    --------
    >>> from maxmargin.metrics import MatchScore
    >>> score = MatchScore(correct=1, incorrect=0, partial=1, missed=0, spurious=1)
    >>> score.precision, score.recall
    (0.5, 0.75)
    """

    correct: int = 0
    incorrect: int = 0
    partial: int = 0
    missed: int = 0
    spurious: int = 0

    @property
    def precision(self) -> float:
        """The share of predicted entities that are right, half ones by half; 0 where there are none."""
        return self._share(self.spurious)

    @property
    def recall(self) -> float:
        """The share of entities that were found, half ones by half; 0 where there are none."""
        return self._share(self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where both are."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def _share(self, others: int) -> float:
        return (self.correct + 0.5 * self.partial) / max(self.correct + self.incorrect + self.partial + others, 1)


class MatchReport(NamedTuple):
    """Scores of entities in four ways of counting; printed as a table.

    Attributes
    ----------
    strict
        Bounds and type must be right.
    exact
        Bounds must be right, whatever the type.
    partial
        Entities that overlap count by half, whatever the type.
    type
        The type must be right, of entities that overlap.
    """

    strict: MatchScore
    exact: MatchScore
    partial: MatchScore
    type: MatchScore

    def __str__(self) -> str:
        head = f"{'':8}{'precision':>11}{'recall':>9}{'F1':>9}{'correct':>10}{'wrong':>8}{'partial':>9}{'missed':>8}"
        rows = [
            f"{name:8}{100 * s.precision:11.2f}{100 * s.recall:9.2f}{100 * s.f1:9.2f}"
            f"{s.correct:10}{s.incorrect:8}{s.partial:9}{s.missed:8}{s.spurious:10}"
            for name, s in zip(self._fields, self, strict=True)
        ]
        return "\n".join([f"{head}{'spurious':>10}", *rows])

    def _repr_html_(self) -> str:
        titles, *rows = map(str.split, str(self).splitlines())
        return show_in_notebook(table(("counted", *titles), rows, class_="numbers"))


def match_report(y_true: object, y_pred: object) -> MatchReport:
    """Compare entities in four ways, three of which count those that are right in part.

    A predicted entity is compared with the first true one that it overlaps and that none before was compared with;
    where types are counted, rather with one of its type, the nearest. So each true entity is counted once.

    Parameters
    ----------
    y_true, y_pred
        As in `entity_report`.

    Examples
    --------
    >>> from maxmargin.metrics import match_report
    >>> true = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG"]]
    >>> print(match_report(true, [["B-PER", "O", "O", "B-ORG", "O", "O"]]))
              precision   recall       F1   correct   wrong  partial  missed  spurious
    strict         0.00     0.00     0.00         0       2        0       1         0
    exact         50.00    33.33    40.00         1       1        0       1         0
    partial       75.00    50.00    60.00         1       0        1       1         0
    type          50.00    33.33    40.00         1       1        0       1         0
    """
    counts = {name: dict.fromkeys(MatchScore._fields, 0) for name in MatchReport._fields}
    true, predicted = (find_entities(y) for y in check_pairs(y_true, y_pred))
    for known, found in zip(true, predicted, strict=True):
        pairs, typed = _pair(found, known), _pair(found, known, by_type=True)
        for name, chosen in (("strict", pairs), ("exact", pairs), ("partial", pairs), ("type", typed)):
            for entity, other in chosen:
                counts[name][_judge(name, entity, other)] += 1
            counts[name]["missed"] += len(known) - sum(other is not None for _, other in chosen)
    return MatchReport(*(MatchScore(**ways) for ways in counts.values()))


def _pair(found: list[Entity], known: list[Entity], *, by_type: bool = False) -> list[tuple[Entity, Entity | None]]:
    """Predicted entities with the true ones that they are compared with, each of which is taken once."""
    free, pairs = [*known], list[tuple[Entity, Entity | None]]()
    for entity in found:
        touched = [other for other in free if other.start < entity.end and entity.start < other.end]
        same = [other for other in touched if other.type == entity.type] if by_type else []
        chosen = min(same, key=lambda other: _distance(other, entity)) if same else next(iter(touched), None)
        if chosen is not None:
            free.remove(chosen)
        pairs.append((entity, chosen))
    return pairs


def _distance(a: Entity, b: Entity) -> int:
    return abs(a.start - b.start) + abs(a.end - b.end)


def _judge(way: str, entity: Entity, other: Entity | None) -> str:
    """What a predicted entity is, compared with a true one."""
    if other is None:
        return "spurious"
    has_bounds, has_type = entity[:2] == other[:2], entity.type == other.type
    is_right = {"strict": has_bounds and has_type, "exact": has_bounds, "partial": has_bounds, "type": has_type}
    return "correct" if is_right[way] else "partial" if way == "partial" else "incorrect"
