"""Tags of files as they are: of the scheme that fits best, with a few that break its rules, or are none."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from maxmargin.text import schemes
from maxmargin.text.partial_tags import complete_unknown, have_partial, scheme_of_partial
from maxmargin.text.schemes import OUTSIDE, LabelSequences, TagError
from maxmargin.text.tag_conversion import convert_tags
from maxmargin.wording import count_of, quote

FEW = 0.1  # at most how many tags that are none there may be, per tag of an entity
SHOWN = 3  # faults that a message names


class Mended(NamedTuple):
    """Tags that keep to the rules of a scheme, and what was wrong with them.

    Attributes
    ----------
    y : list of lists of tags
    scheme
        Theirs.
    source
        The scheme that fitted best before.
    faults
        A `TagError` for each tag that broke its rules, or was none, in the order of the sentences.
    n_tags
        The number of all tags.
    """

    y: list[list[Any]]
    scheme: str
    source: str
    faults: list[TagError]
    n_tags: int

    def tell(self, say: Callable[[TagError], str] = str) -> str:
        """How many tags were wrong, and the first of them, each as `say` says it."""
        n, rest = len(self.faults), len(self.faults) - SHOWN
        are = "is" if n == 1 else "are"
        first = f"{n:,} of {count_of(self.n_tags, 'tag')} {are} wrong in {self.source}, the scheme that fits best"
        more = [f"and {rest:,} more"] if rest > 0 else []
        lines = [f"{first}, and {are} read as conlleval does:", *map(say, self.faults[:SHOWN]), *more]
        return "\n  ".join(lines)


def mend_tags(y: LabelSequences, scheme: str | None = None, *, prefer: str | None = None, name: str = "y") -> Mended:
    """Tags of the scheme that fits them best, with those that break its rules mended, as conlleval reads them.

    The best scheme is the one whose rules the fewest tags break. Tags that are none are read, too, if they are few:
    prefixes in lower case, such as "o" and "b-PER", as if in upper case, others, such as "?", as O.

    Where some tags are known in part, None, a set of tags or a dict of probabilities, the scheme is that of the others,
    and nothing is mended; None becomes the set of all tags, to which O belongs.

    Parameters
    ----------
    y : list of sequences of tags
    scheme
        The scheme to convert them to; by default the best one.
    prefer
        Of schemes that fit alike, the one to take; else the most common one.
    name
        What messages call y.

    Returns
    -------
    Mended
        Tags, schemes and faults. A ValueError says what is wrong with tags that spell no entities, such as parts of
        speech.

    Examples
    --------
    >>> from maxmargin.text import mend_tags
    >>> mended = mend_tags([["I-PER", "O", "I-LOC"], ["I-LOC", "B-LOC"], ["O", "B-ORG"]])
    >>> mended.y[2], mended.scheme
    (['O', 'I-ORG'], 'IOB1')
    >>> print(mended.tell())
    1 of 7 tags is wrong in IOB1, the scheme that fits best, and is read as conlleval does:
      y[2] goes from 'O' to 'B-ORG' at position 1, which IOB1 forbids.
    """
    target = None if scheme is None else schemes.scheme_named(scheme)
    tags = [*schemes.sequences_of(y, name)]
    if have_partial(tags):
        source = scheme_of_partial(tags, target, prefer, name)
        return Mended(complete_unknown(tags, source), source, source, [], sum(map(len, tags)))
    known, odd = _readable(tags, name)
    tagging = schemes.read_tags(known, name)
    source = schemes.best_scheme(tagging, prefer or target)
    places = zip(*(found.tolist() for found in schemes.breaks(tagging, source)), strict=True)
    broken = [schemes.broken_rule(tagging, source, i, t, name) for i, t in places]
    if broken and target is None and not any("-" in tag for tag in tagging.distinct):
        raise broken[0]  # other labels, which happen to be B, I, E, S, L or U
    faults = {(fault.sequence, fault.position): fault for fault in [*broken, *odd]}
    is_right = (target or source) == source and not broken
    mended = known if is_right else convert_tags(known, target or source)
    return Mended(mended, target or source, source, [faults[place] for place in sorted(faults)], len(tagging.codes))


def spells_entities(y: LabelSequences) -> bool:
    """Whether most tags are O, or of entities of a type, though others may be none."""
    tags = [tag for row in schemes.sequences_of(y, "y") for tag in row if isinstance(tag, str) and tag != OUTSIDE]
    return 2 * sum("-" in tag and schemes.is_tag(tag) for tag in tags) > len(tags)


def _readable(y: list[list[Any]], name: str) -> tuple[list[list[Any]], list[TagError]]:
    """The sequences with what is read in place of tags that are none, and where those are; unless they are too many."""
    counts = Counter(tag for row in y for tag in row if isinstance(tag, str))
    read = {tag: tag if schemes.is_tag(tag) else _read(tag) for tag in counts}
    n_typed = sum(n for tag, n in counts.items() if "-" in read[tag])
    n_lost = sum(n for tag, n in counts.items() if read[tag] == OUTSIDE != tag.upper())
    if n_lost > FEW * n_typed or not n_typed:
        return y, []
    odd = {tag: quote(found) for tag, found in read.items() if tag != found}
    faults = [
        TagError(name, i, t, f"has {quote(tag)} at position {t}, which is no tag, and is read as {odd[tag]}")
        for i, row in enumerate(y if odd else ())
        for t, tag in enumerate(row)
        if isinstance(tag, str) and tag in odd
    ]
    return ([[read.get(tag, tag) for tag in row] for row in y] if odd else y), faults


def _read(tag: str) -> str:
    prefix, dash, type_ = tag.partition("-")
    upper = prefix.upper() + dash + type_
    return upper if schemes.is_tag(upper) else OUTSIDE


def mend_in_scheme(y: LabelSequences, scheme: str | None, name: str = "y") -> Mended | None:
    """Tags in a scheme, or with "auto" in the best one, with a warning of what was mended; None where none fits."""
    if scheme is None:
        return None
    try:
        mended = mend_tags(y, None if scheme == "auto" else scheme, name=name)
    except ValueError as error:
        if scheme != "auto":
            raise
        if spells_entities(y):
            warnings.warn(f"{error} Without a scheme, predictions keep to no rules.", UserWarning, stacklevel=4)
        return None
    if mended.faults:
        warnings.warn(mended.tell(), UserWarning, stacklevel=4)
    return mended
