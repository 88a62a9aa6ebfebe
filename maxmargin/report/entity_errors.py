"""Which entities are wrong, and how: missed, spurious, of a wrong type, or with wrong ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from maxmargin.text.schemes import Entity

RIGHT, MISSED, SPURIOUS, BOUNDARY, TYPE = "right", "missed", "spurious", "boundary", "type"
ERRORS = (MISSED, SPURIOUS, BOUNDARY, TYPE)
ALL = "all"  # types of entities


class Judged(NamedTuple):
    """A true entity, a predicted one, or both where they meet, and what became of them."""

    error: str
    true: Entity | None
    found: Entity | None

    @property
    def types(self) -> set[str]:
        """The types that it concerns."""
        return {str(entity[2]) for entity in (self.true, self.found) if entity is not None}


def judge_entities(true: Sequence[Entity], found: Sequence[Entity]) -> Iterator[Judged]:
    """What became of the entities of a sentence.

    An entity of the same words but another type is an error of type; one that overlaps another, which nothing else
    accounts for, an error of its ends. The others are missed, or spurious.

    Examples
    --------
    >>> from maxmargin.report.entity_errors import judge_entities
    >>> [judged.error for judged in judge_entities([(0, 2, "PER"), (4, 5, "LOC")], [(0, 1, "PER"), (4, 5, "ORG")])]
    ['type', 'boundary']
    """
    left, others = {*true}, {*found}
    for entity in sorted(left & others):
        yield Judged(RIGHT, entity, entity)
    missing, extra = sorted(left - others), sorted(others - left)
    for error, meets in ((TYPE, _same_words), (BOUNDARY, _overlap)):
        for entity in [*missing]:
            other = next((one for one in extra if meets(entity, one)), None)
            if other is not None:
                missing.remove(entity)
                extra.remove(other)
                yield Judged(error, entity, other)
    yield from (Judged(MISSED, entity, None) for entity in missing)
    yield from (Judged(SPURIOUS, None, entity) for entity in extra)


def count_errors(judged: Sequence[Sequence[Judged]]) -> defaultdict[str, Counter[str]]:
    """How often each error concerns each type, and all of them together, where one of two types counts once."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in (one for sentence in judged for one in sentence):
        for kind in (ALL, *one.types):
            counts[kind][one.error] += 1
    return counts


def _same_words(a: Entity, b: Entity) -> bool:
    return a[:2] == b[:2]


def _overlap(a: Entity, b: Entity) -> bool:
    return a[0] < b[1] and b[0] < a[1]
