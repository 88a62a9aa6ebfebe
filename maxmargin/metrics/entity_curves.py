"""Entities by their probability: what precision and recall are left where improbable ones are not predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.checks import check_share
from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.text.schemes import Entity, LabelSequences, find_entities


class EntityCurve(NamedTuple):
    """Precision and recall of the entities whose probability is at least each threshold, the highest first."""

    thresholds: np.ndarray
    precision: np.ndarray
    recall: np.ndarray

    def threshold_for(self, precision: float) -> float:
        """The lowest threshold at which so many of the entities are right; raises where there is none."""
        check_share("precision", precision)
        reached = np.flatnonzero(self.precision >= precision)
        if not len(reached):
            best = f"{self.precision.max():.4g} is the most" if len(self.precision) else "no entity was predicted"
            raise ValueError(f"precision must be one that some threshold reaches, but {precision:.4g} is not: {best}.")
        return float(self.thresholds[reached[-1]])


def entity_curve(y_true: LabelSequences, found: Sequence[Sequence[ScoredEntity]]) -> EntityCurve:
    """Precision and recall of entities for every threshold of their probability.

    Parameters
    ----------
    y_true
        List of sequences of tags, of any scheme.
    found
        `Tagger.predict_entities` of the same sequences.

    Examples
    --------
    >>> from maxmargin.metrics import entity_curve
    >>> found = [[ScoredEntity(0, 1, "PER", 0.9), ScoredEntity(2, 3, "LOC", 0.4)]]
    >>> curve = entity_curve([["B-PER", "O", "B-ORG"]], found)
    >>> curve.thresholds.tolist(), curve.precision.tolist(), curve.recall.tolist()
    ([0.9, 0.4], [1.0, 0.5], [0.5, 0.5])
    >>> curve.threshold_for(precision=0.8)
    0.9
    """
    true = find_entities(y_true)  # type: ignore[arg-type]
    if len(true) != len(found):
        raise ValueError(f"y_true has {len(true)} sequences, but found has {len(found)}.")
    scored = [
        (entity.probability, Entity(*entity[:3]) in known)
        for known, row in zip(map(set, true), found, strict=True)
        for entity in row
    ]
    p, is_right = (np.array(column) for column in zip(*scored, strict=True)) if scored else (np.zeros(0), np.zeros(0))
    order = np.argsort(-p, kind="stable")
    p, n_right = p[order], np.cumsum(is_right[order])
    last = np.flatnonzero(np.append(p[1:] != p[:-1], np.ones(min(len(p), 1), bool)))  # of those that are equal
    n_true = max(sum(map(len, true)), 1)
    return EntityCurve(p[last], n_right[last] / (last + 1), n_right[last] / n_true)
