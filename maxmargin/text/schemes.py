"""Tags that spell entities: IOB1, IOB2, IOE1, IOE2, IOBES and BILOU, found, checked and converted.

A tag is O, outside of all entities, or a prefix and the type of an entity, such as B-PER. In IOB2 (BIO) an entity
begins with B and goes on with I; in IOBES it also ends with E, and S is one of a single token; BILOU calls these L and
U. In IOB1 all tokens have an I, but B begins an entity that follows one of its own type; IOE2 and IOE1 mark ends
likewise.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.wording import name_type, quote

if TYPE_CHECKING:
    from maxmargin.text.entity_chances import ScoredEntity

OUTSIDE = "O"

TagSequences = Iterable[Iterable[str]]
LabelSequences = Iterable[Iterable[object]]  # which may be tags, or not


class Scheme(NamedTuple):
    """Prefixes, and whether the second of two may follow the first; sequences begin and end as if between Os."""

    prefixes: str
    allows: Callable[[str, str, bool], bool]  # the third says whether both are of the same type


# In the order in which they are tried: tags that fit more than one mean the same in each of these.
SCHEMES = {
    "IOB2": Scheme("OBI", lambda a, b, same: b != "I" or (a in "BI" and same)),
    "IOBES": Scheme("OBIES", lambda a, b, same: b in "IE" and same if a in "BI" else b in "OBS"),
    "BILOU": Scheme("OBILU", lambda a, b, same: b in "IL" and same if a in "BI" else b in "OBU"),
    "IOB1": Scheme("OBI", lambda a, b, same: b != "B" or (a in "BI" and same)),
    "IOE2": Scheme("OIE", lambda a, b, same: a != "I" or (b in "IE" and same)),
    "IOE1": Scheme("OIE", lambda a, b, same: a != "E" or (b in "IE" and same)),
}
# The prefixes of an entity of n tokens, by whether it follows one of its own type, and whether such a one follows.
SPELLINGS: dict[str, Callable[[int, bool, bool], str]] = {
    "IOB2": lambda n, follows, is_followed: "B" + "I" * (n - 1),
    "IOBES": lambda n, follows, is_followed: "S" if n == 1 else "B" + "I" * (n - 2) + "E",
    "BILOU": lambda n, follows, is_followed: "U" if n == 1 else "B" + "I" * (n - 2) + "L",
    "IOB1": lambda n, follows, is_followed: ("B" if follows else "I") + "I" * (n - 1),
    "IOE2": lambda n, follows, is_followed: "I" * (n - 1) + "E",
    "IOE1": lambda n, follows, is_followed: "I" * (n - 1) + ("E" if is_followed else "I"),
}
ALIASES = {"BIO": "IOB2", "IOB": "IOB2", "BIOES": "IOBES"}


class Entity(NamedTuple):
    """An entity: its first token, the one after its last, and its type.

    Examples
    --------
    >>> from maxmargin.text import Entity, find_entities
    >>> find_entities([["O", "B-PER", "I-PER"]]) == [[Entity(start=1, end=3, type="PER")]]
    True
    """

    start: int
    end: int
    type: str


class Spans(NamedTuple):
    """The entities of all sequences, in one row of tokens."""

    start: np.ndarray
    end: np.ndarray
    type: np.ndarray


class Tagging(NamedTuple):
    """The tags of all sequences, in one row: tokens starts[i]:starts[i + 1] are those of sequence i."""

    distinct: list[str]
    codes: np.ndarray  # (N,) into `distinct`
    starts: np.ndarray

    def spans(self) -> Spans:
        """The entities, as conlleval reads them, of tags of any scheme and of tags that break its rules.

        An entity begins with B, S or U, after O, E, L, S or U, and where the type changes.
        """
        parts = [tag.partition("-") for tag in self.distinct]
        prefix, type_ = (np.array([part[k] for part in parts])[self.codes] for k in (0, 2))
        before = np.concatenate([[OUTSIDE], prefix[:-1]])
        before[self.starts[:-1][np.diff(self.starts) > 0]] = OUTSIDE
        is_inside = prefix != OUTSIDE
        begins = is_inside & (np.isin(prefix, [*"BSU"]) | np.isin(before, [*"OELSU"]) | (type_ != np.roll(type_, 1)))
        ends = is_inside & np.append(begins[1:] | ~is_inside[1:], True)
        return Spans(np.flatnonzero(begins), np.flatnonzero(ends) + 1, type_[begins])


class TagError(ValueError):
    """A tag that breaks the rules.

    Attributes
    ----------
    sequence, position
        Where.

    Examples
    --------
    >>> from maxmargin.text import TagError, check_tags
    >>> try:
    ...     check_tags([["O", "I-PER"]], "IOB2")
    ... except TagError as error:
    ...     error.sequence, error.position
    (0, 1)
    """

    def __init__(self, subject: str, sequence: int, position: int, fault: str) -> None:
        super().__init__(f"{subject}[{sequence}] {fault}.")
        self.sequence, self.position, self.fault = sequence, position, fault


def read_tags(y: LabelSequences, name: str = "y") -> Tagging:
    """Check that sequences are of tags, of some scheme, and put them in one row."""
    numbers: dict[str, int] = {}
    codes: list[int] = []
    starts = [0]
    for i, tags in enumerate(sequences_of(y, name)):
        try:
            codes.extend(map(numbers.__getitem__, tags))
        except (KeyError, TypeError):  # of new tags, and of what is none
            del codes[starts[-1] :]
            for t, tag in enumerate(tags):
                if not isinstance(tag, str) or (tag not in numbers and not is_tag(tag)):
                    wanted = "tags are O, or one of B, I, E, S, L and U with a type, such as B-PER"
                    raise TagError(name, i, t, f"has {quote(tag)} at position {t}, but {wanted}") from None
                codes.append(numbers.setdefault(tag, len(numbers)))
        starts.append(len(codes))
    return Tagging([*numbers], np.array(codes, np.int64), np.array(starts))


def sequences_of(y: LabelSequences, name: str) -> Iterator[list[Any]]:
    """The sequences of tags as lists."""
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise TypeError(f"{name} must be a list of sequences of tags, not {name_type(y)}.")
    for i, tags in enumerate(y):
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            raise TypeError(f"{name}[{i}] must be a sequence of tags, not {quote(tags)}.")
        yield tags.tolist() if isinstance(tags, np.ndarray) else [*tags]


def is_tag(tag: str) -> bool:
    """Whether it is O, or begins as tags of entities do."""
    return tag == OUTSIDE or tag.partition("-")[0] in {*"BIESLU"}


def scheme_named(name: object, argument: str = "scheme") -> str:
    """The scheme of a name, in any case; "bio" is IOB2, "bioes" IOBES."""
    found = ALIASES.get(str(name).upper(), str(name).upper())
    if found not in SCHEMES:
        raise ValueError(f"{argument} must be one of {', '.join(SCHEMES)}, not {name!r}.")
    return found


def scheme_table(tags: Sequence[str], scheme: str) -> np.ndarray:
    """(L + 1, L + 1) whether the column may follow the row, among tags and, last, the end of a sequence."""
    allows = SCHEMES[scheme].allows
    parts = [tag.partition("-")[::2] for tag in [*tags, OUTSIDE]]
    return np.array([[allows(a, b, type_ == other) for b, other in parts] for a, type_ in parts])


def breaks(tagging: Tagging, scheme: str) -> tuple[np.ndarray, np.ndarray]:
    """Sequences and positions of tags that may not follow the one before; the end is the position after the last."""
    table = scheme_table(tagging.distinct, scheme)
    table[:, :-1] &= np.array([tag[0] in SCHEMES[scheme].prefixes for tag in tagging.distinct], bool)
    borders = tagging.starts + np.arange(len(tagging.starts))  # before, between and after the sequences, in one row
    row = np.insert(tagging.codes, tagging.starts, len(tagging.distinct))
    broken = np.flatnonzero(~table[row[:-1], row[1:]])
    sequences = np.searchsorted(borders, broken, side="right") - 1
    return sequences, broken - borders[sequences]


def broken_rule(tagging: Tagging, scheme: str, i: int, t: int, name: str = "y") -> TagError:
    """What is wrong at one of the `breaks`."""
    tags = [tagging.distinct[code] for code in tagging.codes[tagging.starts[i] : tagging.starts[i + 1]]]
    if t < len(tags) and tags[t][0] not in SCHEMES[scheme].prefixes:
        return TagError(name, i, t, f"has {quote(tags[t])} at position {t}, which is no tag of {scheme}")
    if t == 0:
        return TagError(name, i, t, f"begins with {quote(tags[t])}, which {scheme} forbids")
    if t == len(tags):
        return TagError(name, i, t - 1, f"ends with {quote(tags[-1])}, which {scheme} forbids")
    steps = f"{quote(tags[t - 1])} to {quote(tags[t])}"
    return TagError(name, i, t, f"goes from {steps} at position {t}, which {scheme} forbids")


def violation(tagging: Tagging, scheme: str, name: str = "y") -> TagError | None:
    """What breaks the rules of a scheme first, if anything does."""
    sequences, positions = breaks(tagging, scheme)
    return broken_rule(tagging, scheme, int(sequences[0]), int(positions[0]), name) if len(sequences) else None


def check_tags(y: TagSequences, scheme: str) -> None:
    """Raise a ValueError that says where tags first break the rules of a scheme, if they do.

    Parameters
    ----------
    y : list of sequences of tags
    scheme
        {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"}.

    Examples
    --------
    >>> from maxmargin.text import check_tags
    >>> check_tags([["B-PER", "I-PER", "O"]], "IOB2")
    >>> check_tags([["O", "I-PER"]], "IOB2")
    Traceback (most recent call last):
    ...
    maxmargin.text.schemes.TagError: y[0] goes from 'O' to 'I-PER' at position 1, which IOB2 forbids.
    """
    found = violation(read_tags(y), scheme_named(scheme))
    if found:
        raise found


def find_scheme(y: TagSequences) -> str:
    """The scheme whose rules tags keep; of several, in which they then mean the same, the most common one.

    Parameters
    ----------
    y : list of sequences of tags

    Returns
    -------
    str
        "IOB2", "IOBES", "BILOU", "IOB1", "IOE2" or "IOE1". A ValueError says what is wrong with tags of none.

    Examples
    --------
    >>> from maxmargin.text import find_scheme
    >>> find_scheme([["U-PER", "O", "B-LOC", "L-LOC"]])
    'BILOU'
    """
    return fitting_scheme(read_tags(y))


def fitting_scheme(tagging: Tagging) -> str:
    """The scheme whose rules tags keep."""
    used = {tag[0] for tag in tagging.distinct}
    fitting = [name for name, scheme in SCHEMES.items() if used <= {*scheme.prefixes}]
    if not fitting:
        raise ValueError(f"y has tags that begin with {', '.join(sorted(used))}, which no scheme has together.")
    found = best_scheme(tagging)
    reason = violation(tagging, found)
    if reason is not None:
        raise ValueError(f"y breaks the rules of {', '.join(fitting)}: {reason}") from reason
    return found


def best_scheme(tagging: Tagging, first: str | None = None) -> str:
    """The scheme whose rules the fewest tags break; of several, `first`, or the most common one."""
    return min([*([] if first is None else [first]), *SCHEMES], key=lambda name: len(breaks(tagging, name)[0]))


def find_entities(y: TagSequences) -> list[list[Entity]]:
    """The entities that tags of any scheme spell, as conlleval reads them.

    Parameters
    ----------
    y : list of sequences of tags

    Returns
    -------
    list with the entities of each sequence: first token, the one after the last, type

    Examples
    --------
    >>> from maxmargin.text import find_entities
    >>> find_entities([["O", "B-PER", "I-PER", "B-LOC"]])
    [[Entity(start=1, end=3, type='PER'), Entity(start=3, end=4, type='LOC')]]
    """
    tagging = read_tags(y)
    spans = tagging.spans()
    cuts = np.searchsorted(spans.start, tagging.starts)
    found = [*zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True)]
    return [
        [Entity(start - first, end - first, type_) for start, end, type_ in found[lo:hi]]
        for first, (lo, hi) in zip(tagging.starts.tolist(), pairwise(cuts.tolist()), strict=False)
    ]


def count_entities(y: TagSequences) -> int:
    """How many entities tags of any scheme spell."""
    return len(read_tags(y).spans().start)


def spell_entities(entities: Sequence[Entity | ScoredEntity], length: int, scheme: str) -> list[str]:
    """The tags of a sequence of that length with these entities, of any class, which are in order and apart."""
    row = [OUTSIDE] * length
    for before, entity, after in zip([None, *entities], entities, [*entities[1:], None], strict=False):
        follows = before is not None and (before.end, before.type) == (entity.start, entity.type)
        is_followed = after is not None and (after.start, after.type) == (entity.end, entity.type)
        row[entity.start : entity.end] = _spell(scheme, entity.type, entity.end - entity.start, follows, is_followed)
    return row


@functools.lru_cache(maxsize=1000)
def _spell(scheme: str, type_: str, length: int, follows: bool, is_followed: bool) -> list[str]:
    """The tags of an entity, which follows one of its type or not, and is followed by one."""
    prefixes = SPELLINGS[scheme](length, follows, is_followed)
    return [sys.intern(f"{prefix}-{type_}".rstrip("-")) for prefix in prefixes]


def check_spans(entities: Iterable[tuple[Any, ...]], length: int, i: int) -> list[Entity]:
    """Entities of your choice, of sequence i; raises where one is none of so many tokens."""
    found = [Entity(*entity[:3]) for entity in entities]
    for start, end, type_ in found:
        if not 0 <= start < end <= length:
            raise ValueError(f"entities[{i}] has {type_!r} from {start} to {end}, but X[{i}] has {length} tokens.")
    return found
