"""What users say of segments: lists of (start, end, label), or tags that spell them, whole or in part.

Inside, every row has a *state*: its label where a segment begins, the number of labels plus its label where one goes
on. In tags, each O is a segment of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from maxmargin.encode.inputs.example_checks import as_labels, check_truths, is_integer, join_classes, members_of
from maxmargin.text.schemes import OUTSIDE, Entity, find_entities, fitting_scheme, read_tags
from maxmargin.wording import count_of, quote

TAGS = "IOB2"  # the scheme of tags that are known in part

Label = Any  # a string or an integer


class Known(NamedTuple):
    """What is known of some rows in a row: that they are a segment, with one of these labels, or nothing."""

    begin: int
    end: int
    labels: frozenset[Label] | None  # None if any of them will do
    is_segment: bool = True
    tags: frozenset[tuple[bool, Label]] | None = None  # of one row: whether a segment begins there, and its label


class KnownOutputs(NamedTuple):
    """What is known of the segments of all examples."""

    examples: list[list[Known]]
    scheme: str | None  # of the tags that say it; None of segments

    @property
    def is_whole(self) -> np.ndarray:
        """(n,) flags of examples whose segments and labels are all known."""
        return np.array([all(k.is_segment and len(k.labels or ()) == 1 for k in row) for row in self.examples])

    @property
    def is_certain(self) -> np.ndarray:
        """(n,) flags of examples of which one output is known, be it by segments or by one tag of each row."""
        return self.is_whole | [all(len(k.tags or ()) == 1 for k in row) for row in self.examples]

    def check_whole(self) -> None:
        """Raise where less than one output is known."""
        if not self.is_whole.all():
            i = int(np.argmin(self.is_certain))
            raise ValueError(f"y[{i}] must tell all segments and their labels, but some are not known.")

    def learn_labels(self, former: np.ndarray | None) -> np.ndarray:
        """The labels that are named, sorted, with those of a former model."""
        names = {label for row in self.examples for known in row for label in known.labels or ()}
        if self.scheme is not None:
            names.add(OUTSIDE)
        if not names and former is None:
            raise ValueError("y must name at least one label, but nothing of it is known.")
        try:
            return join_classes(former, np.unique(as_labels([*names], "y")))
        except TypeError:
            raise TypeError("y must have labels that are all integers, or all strings.") from None

    def learn_limits(self, classes: np.ndarray, max_length: object) -> np.ndarray:
        """(L,) the longest segment of each label: as said, or the longest there is."""
        at = {label: k for k, label in enumerate(classes.tolist())}
        longest = np.ones(len(classes), np.int64)
        for row in self.examples:
            for known in row:
                for label in known.labels or () if known.is_segment else ():
                    longest[at[label]] = max(longest[at[label]], known.end - known.begin)
            for label, size in _runs(row):
                longest[at[label]] = max(longest[at[label]], size)
        given = max_length if isinstance(max_length, Mapping) else dict.fromkeys(at, max_length)
        for label, limit in given.items():
            if label not in at:
                raise ValueError(f"max_length names {quote(label)}, which is not a label in y.")
            if limit is not None and not (is_integer(limit) and limit >= 1):
                raise ValueError(f"max_length must be a positive integer, or a dict of such by label, not {limit!r}.")
            longest[at[label]] = longest[at[label]] if limit is None else int(limit)
        if self.scheme is not None:
            longest[at[OUTSIDE]] = 1
        self.check_limits(classes, longest)
        return longest

    def check_limits(self, classes: np.ndarray, limits: np.ndarray) -> None:
        """Raise where a segment is longer than those of its label may be."""
        limit = dict(zip(classes.tolist(), limits.tolist(), strict=True))
        for i, row in enumerate(self.examples):
            for known in row:
                most = max([limit.get(label, 0) for label in known.labels or classes.tolist()])
                if known.is_segment and most and known.end - known.begin > most:
                    size = count_of(known.end - known.begin, "row")
                    raise ValueError(f"y[{i}] has {_show(known)} of {size}, but max_length allows {most}.")

    def states(self, classes: np.ndarray) -> np.ndarray:
        """(N,) the states of all rows of examples that are wholly known, -1 of labels that are no classes."""
        at = {label: k for k, label in enumerate(classes.tolist())}
        rows = []
        for known in (known for row in self.examples for known in row):
            (label,) = known.labels or (None,)
            state, size = at.get(label, -1), known.end - known.begin
            rows.append(np.full(size, -1 if state < 0 else len(classes) + state))
            rows[-1][0] = state
        return np.concatenate(rows).astype(np.int64)

    def allowed(self, classes: np.ndarray, name: str) -> np.ndarray:
        """(N, 2 L) flags of the states that agree with what is known."""
        at, n_labels = {label: k for k, label in enumerate(classes.tolist())}, len(classes)
        tables = []
        for i, row in enumerate(self.examples):
            table = np.ones((row[-1].end if row else 0, 2 * n_labels), bool)
            for known in row:
                unknown = [label for label in known.labels or () if label not in at]
                if unknown:
                    raise ValueError(
                        f"{name}[{i}] names {quote(unknown[0])}, which is not a label that was seen in fit."
                    )
                agrees = np.ones(n_labels, bool)
                if known.labels is not None:
                    agrees = np.isin(np.arange(n_labels), [at[label] for label in known.labels])
                if known.tags is not None:
                    states = [at[label] + (0 if begins else n_labels) for begins, label in known.tags]
                    table[known.begin] = np.isin(np.arange(2 * n_labels), states)
                elif known.is_segment:
                    table[known.begin : known.end] = np.concatenate([np.zeros(n_labels, bool), agrees])
                    table[known.begin] = np.concatenate([agrees, np.zeros(n_labels, bool)])
                    if known.end < len(table):
                        table[known.end, n_labels:] = False
            tables.append(table)
        return np.concatenate(tables)


def _runs(row: list[Known]) -> Iterator[tuple[Label, int]]:
    """The labels of rows that are known to go on with a segment, one after the other, and their numbers, plus one."""
    size = 1
    for known in row:
        goes_on = known.tags is not None and len(known.tags) == 1 and not next(iter(known.tags))[0]
        size = size + 1 if goes_on else 1
        if goes_on:
            yield next(iter(known.tags or ()))[1], size


def are_tags(y: object) -> bool:
    """Whether outputs are sequences of tags, judged by the first entry that says anything."""
    for row in y if isinstance(y, Iterable) else ():
        for entry in row if isinstance(row, Iterable) and not isinstance(row, str) else ():
            if entry is not None:
                return isinstance(entry, (str, set, frozenset, Mapping))
    return False


def read_outputs(y: object, lengths: np.ndarray, name: str = "y", *, has_gaps: bool = False) -> KnownOutputs:
    """Read what is known of sequences of these lengths; where `has_gaps`, nothing is known between segments."""
    y = [*y] if isinstance(y, Iterator) else y
    y = check_truths(y, len(lengths), "segments, or tags, of each sequence", "sequence", name)
    if are_tags(y):
        return _read_tags(y, lengths, name)
    examples = []
    for i, (row, length) in enumerate(zip(y, lengths.tolist(), strict=True)):
        found = [] if row is None else _read_segments(row, length, f"{name}[{i}]")
        examples.append(_fill_gaps(found, length, f"{name}[{i}]", has_gaps or row is None))
    return KnownOutputs(examples, None)


def is_partial(y: object) -> bool:
    """Whether less than all segments and labels is known of some sequence."""
    if not isinstance(y, (Sequence, np.ndarray)):
        return False
    for row in y:
        if row is None or not isinstance(row, (Sequence, np.ndarray)):
            return True
        for entry in row:
            label = entry[2:] if isinstance(entry, (tuple, list)) else (entry,)
            if not label or label[0] is None or isinstance(label[0], (set, frozenset)):
                return True
    return False


def _read_segments(row: object, length: int, name: str) -> list[Known]:
    if isinstance(row, str) or not isinstance(row, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a list of segments, (start, end, label), or of tags, not {quote(row)}.")
    found = []
    for entry in row:
        if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 3):
            raise TypeError(f"{name} must be a list of segments, (start, end, label), but holds {quote(entry)}.")
        begin, end, *label = entry
        if not (is_integer(begin) and is_integer(end)):
            raise TypeError(f"{name} has the segment {quote(entry)}, but start and end must be integers.")
        if not 0 <= int(begin) < int(end) <= length:
            raise ValueError(
                f"{name} has the segment {quote(entry)}, but segments are within 0 to {length}, and not empty."
            )
        is_unknown = not label or label[0] is None
        labels = None if is_unknown else frozenset(map(_plain, members_of(label[0])))
        found.append(Known(int(begin), int(end), labels, bool(label)))
    return sorted(found, key=lambda known: known.begin)


def _plain(label: object) -> Label:
    return label.item() if isinstance(label, np.generic) else label


def _show(known: Known) -> str:
    label = "" if known.labels is None else f", {', '.join(map(repr, sorted(known.labels)))}"
    return f"the segment ({known.begin}, {known.end}{label})"


def _fill_gaps(found: list[Known], length: int, name: str, has_gaps: bool) -> list[Known]:
    """Segments one after the other; raises where they overlap, or leave a gap, unless they may."""
    for one, other in pairwise(found):
        if other.begin < one.end:
            raise ValueError(f"{name} has {_show(one)} and {_show(other)}, which overlap.")
    filled, at = [], 0
    for known in [*found, Known(length, length, None)]:
        if known.begin > at:
            if not has_gaps:
                raise ValueError(
                    f"{name} leaves a gap from row {at} to {known.begin}: give it a label, or write ({at}, "
                    f"{known.begin}) if nothing is known of it."
                )
            filled.append(Known(at, known.begin, None, False))
        filled.append(known)
        at = known.end
    return filled[:-1]


def _read_tags(y: Any, lengths: np.ndarray, name: str) -> KnownOutputs:
    rows: list[list[Any]] = [[None] * n if row is None else [*row] for row, n in zip(y, lengths.tolist(), strict=True)]
    for i, (row, length) in enumerate(zip(rows, lengths.tolist(), strict=True)):
        if len(row) != length:
            raise ValueError(f"{name}[{i}] has {count_of(len(row), 'tag')}, but X[{i}] has {count_of(length, 'row')}.")
    if not is_partial(rows):
        scheme = fitting_scheme(read_tags(rows, name))
        return KnownOutputs([*map(_spell_out, find_entities(rows), map(len, rows))], scheme)
    return KnownOutputs([_read_partial(row, f"{name}[{i}]") for i, row in enumerate(rows)], TAGS)


def _spell_out(entities: Sequence[Entity], length: int) -> list[Known]:
    """Entities, and a segment for each row between them."""
    row, at = [], 0
    for begin, end, label in [*entities, (length, length, None)]:
        row += [Known(t, t + 1, frozenset([OUTSIDE])) for t in range(at, begin)]
        row.append(Known(begin, end, frozenset([label])))
        at = end
    return row[:-1]


def _read_partial(tags: list[object], name: str) -> list[Known]:
    """What tags say that are known in part: something of each row."""
    row: list[Known] = []
    for t, tag in enumerate(tags):
        given = {tag} if isinstance(tag, str) else tag
        if given is not None and not isinstance(given, (set, frozenset)):
            raise TypeError(f"{name} has {quote(tag)} at position {t}, but tags are strings, sets of such or None.")
        states = None if given is None else frozenset(_read_tag(one, t, name) for one in given)
        labels = None if states is None else frozenset(label for _, label in states)
        row.append(Known(t, t + 1, labels, False, states))
    return row


def _read_tag(tag: str, t: int, name: str) -> tuple[bool, Label]:
    """Whether a segment begins there, and its label."""
    prefix, _, label = tag.partition("-")
    if prefix not in ("B", "I") and tag != OUTSIDE:
        raise ValueError(f"{name} has {quote(tag)} at position {t}, which is no tag of {TAGS}.")
    return prefix != "I", label if tag != OUTSIDE else OUTSIDE
