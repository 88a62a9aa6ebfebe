"""Tags of the same entities in another scheme."""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import repeat

from maxmargin.text.schemes import OUTSIDE, SPELLINGS, TagSequences, is_tag, read_tags, scheme_named, sequences_of


def convert_tags(y: TagSequences, scheme: str) -> list[list[str]]:
    """Tags of the same entities in another scheme.

    They may be of any scheme, and may break its rules: entities are read as conlleval reads them, so that converting
    tags to their own scheme repairs them.

    Parameters
    ----------
    y, scheme
        As those of `check_tags`.

    Returns
    -------
    list of lists of tags

    Examples
    --------
    >>> from maxmargin.text import convert_tags
    >>> convert_tags([["I-PER", "I-PER", "O", "B-LOC"]], "BILOU")
    [['B-PER', 'L-PER', 'O', 'U-LOC']]
    """
    target, rows = scheme_named(scheme), [*sequences_of(y, "y")]
    try:
        return [[*map(_spell, repeat(target), [OUTSIDE, *tags], tags, [*tags[1:], OUTSIDE])] for tags in rows]
    except (TypeError, ValueError):
        read_tags(rows)  # which says what is no tag, and where
        raise


@lru_cache(maxsize=100_000)
def _spell(scheme: str, before: str, tag: str, after: str) -> str:
    """A tag between two others, in a scheme: what it is there depends on nothing else."""
    if not is_tag(tag):
        raise ValueError
    if tag == OUTSIDE:
        return tag
    (_, of_before), (_, type_), (_, of_after) = (part.partition("-")[::2] for part in (before, tag, after))
    begins, ends = begins_at(before, tag), after == OUTSIDE or begins_at(tag, after)
    beside = before != OUTSIDE and begins and of_before == type_, after != OUTSIDE and ends and of_after == type_
    prefix = SPELLINGS[scheme](3 - begins - ends, *beside)[not begins]
    return sys.intern(f"{prefix}-{type_}".rstrip("-"))


def begins_at(before: str, tag: str) -> bool:
    """Whether an entity begins at a tag that is not outside, as conlleval reads it."""
    (end, of_before), (prefix, type_) = before.partition("-")[::2], tag.partition("-")[::2]
    return prefix in "BSU" or end in "OELSU" or type_ != of_before
