"""Tags that a model has inside, of another scheme than those that its user sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.text.schemes import OUTSIDE, SPELLINGS

DEPENDS = ("IOB1", "IOE1")  # schemes in which a tag depends on the entities beside it
LENGTHS = {"B": (2, 0), "I": (3, 1), "E": (2, 1), "L": (2, 1), "S": (1, 0), "U": (1, 0)}  # entities, and places in them


def outer_tag(tag: str, scheme: str) -> str:
    """The tag of a scheme that stands for one of IOBES or BILOU, whatever is beside it."""
    prefix, dash, type_ = tag.partition("-")
    if tag == OUTSIDE:
        return tag
    length, place = LENGTHS[prefix]
    return SPELLINGS[scheme](length, False, False)[place] + dash + type_


def outer_classes(tags: Sequence[str], scheme: str) -> np.ndarray:
    """The tags of a scheme that inner ones stand for, sorted."""
    prefix = SPELLINGS[scheme](1, True, True)
    besides = {f"{prefix}-{tag.partition('-')[2]}" for tag in tags if tag != OUTSIDE and scheme in DEPENDS}
    return np.array(sorted({outer_tag(tag, scheme) for tag in tags} | besides))


def merge_columns(table: np.ndarray, tags: Sequence[str], scheme: str) -> np.ndarray:
    """Probabilities of tags of a scheme, (T, L), of those of inner ones."""
    if scheme in DEPENDS:
        raise ValueError(f"Tags of {scheme} depend on those beside them, and have no probabilities: train with IOB2.")
    outer = outer_classes(tags, scheme)
    merged = np.zeros((len(table), len(outer)), table.dtype)
    for column, tag in zip(table.T, tags, strict=True):
        merged[:, np.searchsorted(outer, outer_tag(tag, scheme))] += column
    return merged
