"""Tags that a model has inside, of another scheme than those that its user sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from maxmargin.text.schemes import OUTSIDE, SCHEMES, SPELLINGS, TagError, scheme_table
from maxmargin.wording import quote

DEPENDS = ("IOB1", "IOE1")  # schemes in which a tag depends on the entities beside it
LENGTHS = {"B": (2, 0), "I": (3, 1), "E": (2, 1), "L": (2, 1), "S": (1, 0), "U": (1, 0)}  # entities, and places in them


def outer_tag(tag: str, scheme: str) -> str:
    """The tag of a scheme that stands for one of IOBES or BILOU, whatever is beside it."""
    prefix, dash, type_ = tag.partition("-")
    if tag == OUTSIDE:
        return tag
    length, place = LENGTHS[prefix]
    return SPELLINGS[scheme](length, False, False)[place] + dash + type_


def stands_alone(scheme: str | None, inside: str | None) -> bool:
    """Whether each tag of a scheme says which ones of another it may be, whatever is beside it."""
    return scheme not in DEPENDS and inside in ("IOBES", "BILOU")


def known_inside(known: Iterable[Any], scheme: str, inside: str, tags: Sequence[str] | None, name: str) -> list[Any]:
    """What is known of the tags of sentences, as it is of those of IOBES or BILOU, all or only some `tags`: sets.

    Sequences of the one that keep to its rules and agree with what is known are those of the other that do so.
    """

    @cache
    def inner(tag: Any) -> frozenset[object]:
        prefix, dash, type_ = tag.partition("-") if isinstance(tag, str) else (OUTSIDE, "", "")
        letters = SCHEMES[inside].prefixes.replace(OUTSIDE, "")
        every = [OUTSIDE] if prefix == OUTSIDE else [f"{letter}{dash}{type_}" for letter in letters]
        found = [one for one in every if outer_tag(one, scheme) == tag and (tags is None or one in tags)]
        return frozenset(found or [tag])  # as what is no tag is seen elsewhere

    @cache
    def inner_of(several: frozenset[object]) -> frozenset[object]:
        return frozenset().union(*map(inner, several))

    def find(tag: object, i: int, t: int) -> object:
        if isinstance(tag, Mapping):
            raise TagError(name, i, t, f"has probabilities at position {t}, which tags of {inside} inside cannot have")
        if isinstance(tag, set | frozenset):
            return inner_of(frozenset(tag))
        return inner(tag) if isinstance(tag, str) else tag

    return [
        row
        if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray)
        else [find(tag, i, t) for t, tag in enumerate(row)]
        for i, row in enumerate(known)
    ]


def keep_possible(known: Iterable[Sequence[frozenset[str]]], inside: str, name: str) -> list[list[Any]]:
    """Of the sets of tags of each position those that some sequence has that keeps to the rules; tags, if it is one."""
    rows = [[*row] for row in known]
    every = sorted(frozenset().union(*(several for row in rows for several in row)))
    number = {tag: k for k, tag in enumerate(every)}
    table = scheme_table(every, inside)  # of which the last is what is before and after a sequence

    @cache
    def fitting(several: frozenset[str], beside: frozenset[str] | None, *, comes_after: bool) -> frozenset[str]:
        others = [-1] if beside is None else [number[tag] for tag in beside]
        may_follow = np.any((table if comes_after else table.T)[others], axis=0)
        return frozenset(tag for tag in several if may_follow[number[tag]])

    beside: frozenset[str] | None
    for i, row in enumerate(rows):
        for comes_after, places in ((True, range(len(row))), (False, reversed(range(len(row))))):
            beside = None
            for t in places:
                found = fitting(row[t], beside, comes_after=comes_after)
                if not found:
                    raise TagError(
                        name, i, t, f"has {quote({*row[t]})} at position {t}, which nothing beside it allows"
                    )
                row[t] = beside = found
    return [[next(iter(tags)) if len(tags) == 1 else tags for tags in row] for row in rows]


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


def merge_pairs(tables: np.ndarray, tags: Sequence[str], scheme: str) -> np.ndarray:
    """Probabilities of pairs of tags of a scheme that is none of `DEPENDS`, (T, L, L), of those of inner ones."""
    for _ in range(2):  # second tags, then first ones
        merged = merge_columns(tables.reshape(-1, len(tags)), tags, scheme)
        tables = merged.reshape(*tables.shape[:2], merged.shape[1]).swapaxes(1, 2)
    return tables
