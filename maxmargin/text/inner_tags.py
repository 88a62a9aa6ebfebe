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


def beside_tag(tag: str, scheme: str) -> str:
    """The tag of a scheme of `DEPENDS` where an entity meets another one of its type."""
    _, dash, type_ = tag.partition("-")
    return SPELLINGS[scheme](1, True, True) + dash + type_


def outer_classes(tags: Sequence[str], scheme: str) -> np.ndarray:
    """The tags of a scheme that inner ones stand for, sorted."""
    besides = {beside_tag(tag, scheme) for tag in tags if tag != OUTSIDE and scheme in DEPENDS}
    return np.array(sorted({outer_tag(tag, scheme) for tag in tags} | besides))


def find_meetings(tags: Sequence[str]) -> np.ndarray:
    """The transitions of IOBES or BILOU in which an entity ends and another one of its type begins: (K, 2) numbers."""
    ends, begins = ([k for k, tag in enumerate(tags) if tag[0] in prefixes] for prefixes in ("ELSU", "BSU"))
    pairs = [(a, b) for a in ends for b in begins if tags[a][1:] == tags[b][1:]]
    return np.array(pairs, np.int64).reshape(-1, 2)


def merge_columns(
    table: np.ndarray, tags: Sequence[str], scheme: str, meetings: np.ndarray | None = None
) -> np.ndarray:
    """Probabilities of tags of a scheme, (T, L), of those of inner ones.

    Schemes of `DEPENDS` need the probabilities of `find_meetings`, too, (T - 1, K): what meets another entity of its
    type is marked, where it begins (IOB1) or where it ends (IOE1).
    """
    outer = outer_classes(tags, scheme)
    merged = np.zeros((len(table), len(outer)), table.dtype)
    for column, tag in zip(table.T, tags, strict=True):
        merged[:, np.searchsorted(outer, outer_tag(tag, scheme))] += column
    if meetings is not None:
        marked = merged[1:] if scheme == "IOB1" else merged[:-1]
        for column, (tag, _) in zip(meetings.T, find_meetings(tags), strict=True):
            marked[:, np.searchsorted(outer, outer_tag(tags[tag], scheme))] -= column
            marked[:, np.searchsorted(outer, beside_tag(tags[tag], scheme))] += column
    return np.maximum(merged, 0)
