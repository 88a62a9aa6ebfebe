"""Costs of mistakes by which a tagger finds more entities, or fewer that are none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.checks import check_choice
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.text.partial_tags import tags_in
from maxmargin.text.schemes import OUTSIDE, LabelSequences

PREFERENCES = ("recall", "precision")
EXTRA = 2.0  # what the mistakes cost that are to be fewer, beyond others


def check_preference(prefer: object, model: ChainCRF | ChainSVM, *, have_entities: bool) -> None:
    """Raise unless it can be told which mistakes are to be fewer."""
    check_choice("prefer", prefer, PREFERENCES)
    if not have_entities or not isinstance(model.cost, str | None) or model.cost != type(model)().cost:
        raise ValueError("prefer needs tags that spell entities, and a model without a cost of its own.")


def weigh_mistakes(model: ChainCRF | ChainSVM, prefer: str | None, y: LabelSequences) -> ChainCRF | ChainSVM:
    """The model, with costs of mistakes on the tags that it is to learn, if one of both is preferred."""
    if prefer is None:
        return model
    others = 0.0 if isinstance(model, ChainCRF) else 1.0
    return model.set_params(cost=preference_costs(sorted(tags_in(y)), prefer, others))


def preference_costs(tags: Sequence[str], prefer: str, others: float) -> np.ndarray:
    """(L, L) costs of the tags of columns where those of rows are true; mistakes cost as much as `others`.

    For recall, tags of entities that are taken to be outside cost more; for precision the reverse.
    """
    costs = others * (1 - np.eye(len(tags)))
    is_outside = np.array([tag == OUTSIDE for tag in tags])
    missed = ~is_outside[:, np.newaxis] & is_outside
    costs[missed if prefer == "recall" else missed.T] += EXTRA
    return costs
