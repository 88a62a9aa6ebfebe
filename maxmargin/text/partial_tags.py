"""Tags that are known in part: None where nothing is, a set where it is one of several, a dict of probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from maxmargin.checks import check_share
from maxmargin.text.schemes import OUTSIDE, SPELLINGS, LabelSequences, TagError, best_scheme, read_tags, sequences_of
from maxmargin.wording import quote


def is_partial(tag: object) -> bool:
    """Whether it stands for more than one tag."""
    return not isinstance(tag, str) and (tag is None or isinstance(tag, (set, frozenset, Mapping)))


def have_partial(y: LabelSequences) -> bool:
    """Whether some of the tags are known in part."""
    kinds = {*map(type, chain.from_iterable(sequences_of(y, "y")))}  # few, of tags that are many
    return any(kind is type(None) or issubclass(kind, (set, frozenset, Mapping)) for kind in kinds)


def check_known(y: LabelSequences, name: str) -> None:
    """Raise where a tag is known in part only."""
    for i, tags in enumerate(sequences_of(y, name)):
        for t, tag in enumerate(tags):
            if is_partial(tag):
                raise TagError(name, i, t, f"has {quote(tag)} at position {t}, but tags to compare with must be known")


def tags_in(y: LabelSequences) -> set[Any]:
    """All tags that are named somewhere."""
    found: set[Any] = set()
    for tags in sequences_of(y, "y"):
        for tag in tags:
            if is_partial(tag):
                found.update(tag or ())
            else:
                found.add(tag)
    return found


def outside_where_partial(y: LabelSequences) -> LabelSequences:
    """The tags that are known, and O in place of others."""
    if not have_partial(y):
        return y
    return [[OUTSIDE if is_partial(tag) else tag for tag in tags] for tags in sequences_of(y, "y")]


def complete_unknown(y: Sequence[Sequence[object]], scheme: str) -> list[list[object]]:
    """The tags with the set of all that are named somewhere, and of those that go with them, in place of None.

    Where only entities are known, nobody has named O, which most of the other tags are; of a rare type only the middle
    of an entity may be known, which has a beginning.
    """
    everything = frozenset({OUTSIDE}.union(*(spell_around(tag, scheme) for tag in tags_in(y) - {OUTSIDE})))
    return [[everything if tag is None else tag for tag in tags] for tags in y]


def spell_around(tag: str, scheme: str) -> set[str]:
    """The tags of the shortest entity, or of two neighbours, that have a given one."""
    spell = SPELLINGS[scheme]
    spellings = [*(spell(n, False, False) for n in (1, 2, 3)), spell(1, False, True) + spell(1, True, False)]
    prefix, _, kind = tag.partition("-")
    return {f"{found}-{kind}" for found in next((spelling for spelling in spellings if prefix in spelling), prefix)}


def scheme_of_partial(y: Sequence[Sequence[object]], target: str | None, prefer: str | None, name: str) -> str:
    """The scheme that fits what is known of tags best; raises where they would have to be converted to another."""
    known = outside_where_partial(y)
    read_tags([[tag] for tag in tags_in(y)], name)
    if not any("-" in tag for tag in tags_in(y)):
        raise ValueError(f"{name} must hold at least one tag of an entity.")
    source = best_scheme(read_tags(known, name), prefer or target)
    if target not in (None, source):
        raise ValueError(
            f"scheme must be 'auto' or {source!r}, the scheme of {name}, not {target!r}: tags that are known in part "
            "cannot be converted."
        )
    return source


def check_entity_share(share: float, y: Sequence[Sequence[object]]) -> None:
    """Raise unless a share of tokens may be part of entities, by the tags that are known."""
    check_share("entity_share", share)
    tags = [tag for row in y for tag in row]
    if any(isinstance(tag, Mapping) for tag in tags) and not any(isinstance(tag, (set, frozenset)) for tag in tags):
        raise ValueError(
            "entity_share needs tags that are None, or in a set, but y has only known ones and probabilities, such as "
            "those of tag_names(outside=), which tell how many entities are expected already."
        )
    least = sum(isinstance(tag, str) and tag != OUTSIDE for tag in tags) / len(tags)
    most = 1 - tags.count(OUTSIDE) / len(tags)
    if not least < share < most:
        raise ValueError(
            f"entity_share must be between {least:.4g} and {most:.4g}, by what is known of y, not {share:.4g}."
        )


def replace_unknown(y: Iterable[list[object]], unknown: str | None) -> list[list[object]]:
    """The tags with None in place of the one that means that a tag is not known."""
    if unknown is None:
        return [*y]
    return [[None if tag == unknown else tag for tag in tags] for tags in y]
