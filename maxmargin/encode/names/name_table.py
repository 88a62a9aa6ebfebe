"""The columns of many names at once: by a table of hashes in compiled loops, which ask for its memory ahead.

Half a million names do not fit in the caches of a processor. A dictionary waits three times for each of them: for its
place, for the string, and for the characters to compare with. Here lookups wait together, a group of names at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.prefetch import prefetch
from maxmargin.encode.names.name_columns import DIFFER, NOWHERE, Columns
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.text.strings import Affixes, Strings, Texts

BASIS, PRIME, BITS, SHIFT = 0x811C9DC5, 0x01000193, 0xFFFFFFFF, 15  # the hash is FNV-1a, of 32 bits
HALF = 1 << 31  # what is taken from it for an int32
GROUP = 32  # names whose memory is asked for together
SPARE = 2  # times as many slots as names, at least
COLUMN, HASH = 0, 1  # what is in a slot
FEW, ENOUGH = 100, 100  # names, and how often so few are asked for until a dictionary is made


class JoinedNames(NamedTuple):
    """Names as one text in UTF-8, with a line end after each, and where these are."""

    text: bytes
    ends: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str]) -> JoinedNames:
        """Those of a list."""
        found = Texts.of(names)
        return cls(found.text.tobytes(), found.ends)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The same as loops read it."""
        return np.frombuffer(self.text, np.uint8), self.ends

    def unpack(self, first: int = 0) -> list[str]:
        """The names from the first on."""
        begin = self.ends[first - 1] + 1 if first else 0
        names = self.text[begin:].decode("utf-8", "surrogatepass").split("\n")[:-1]
        if len(names) == len(self.ends) - first:
            return names
        places = pairwise([begin - 1, *self.ends[first:].tolist()])
        return [self.text[start + 1 : end].decode("utf-8", "surrogatepass") for start, end in places]


class NameTable:
    """The columns of names that a model knows, which are their numbers.

    Few names at a time are looked up in a dictionary, once that was worth its making.

    Parameters
    ----------
    names
        As one text.
    """

    grows = False

    def __init__(self, names: JoinedNames) -> None:
        self.names, self.n_few = names, 0
        n_slots = 1 << (SPARE * len(names.ends)).bit_length()
        self.slots = np.full((n_slots, 2), NOWHERE, np.int32)
        if not fill_slots(*names.arrays, self.slots, np.empty(GROUP, np.int64)):
            raise ValueError(DIFFER)

    @cached_property
    def columns(self) -> Columns:
        """A dictionary of the same."""
        return Columns(self.names.unpack())

    @property
    def __getitem__(self) -> Callable[[str], int]:  # noqa: PLE0302  (that of the dictionary, which is faster)
        return self.columns.__getitem__

    def find(self, names: Sequence[str | None]) -> list[int]:
        """The columns of names; None has none."""
        if len(names) < FEW:
            self.n_few += 1
            if self.n_few > ENOUGH:
                return self.columns.find(names)
        return self.find_titled("", Strings(names)).tolist()

    def find_titled(self, title: str, values: Strings | Affixes) -> np.ndarray:
        """The columns of names that a title and these values make; None has none."""
        head = np.frombuffer(title.encode("utf-8", "surrogatepass"), np.uint8)
        found, work = np.empty(len(values), np.int32), np.empty((2, GROUP), np.int64)
        find_names(head, *values.texts, *self.names.arrays, self.slots, found, *work)
        return found


@helper
def begin_of(ends, k):
    """Where name k begins."""
    return ends[k - 1] + 1 if k > 0 else 0


@helper
def add_to_hash(hashed, text, begin, end):
    """The hash of what was read before and of more text."""
    for p in range(begin, end):
        hashed = ((hashed ^ np.int64(text[p])) * PRIME) & BITS
    return hashed


@helper
def as_slot(slots, hashed):
    """Where to look first."""
    return (hashed ^ (hashed >> SHIFT)) & (slots.shape[0] - 1)


@helper
def next_slot(slots, s, hashed):
    """The slot from s on that is empty, or has this hash."""
    while slots[s, COLUMN] != NOWHERE and slots[s, HASH] != hashed - HALF:
        s = (s + 1) & (slots.shape[0] - 1)
    return s


@helper
def is_name(head, text, begin, end, known, first, last):
    """Whether known[first:last] is the head and then text[begin:end]."""
    if last - first != head.size + end - begin:
        return False
    for p in range(head.size):
        if known[first + p] != head[p]:
            return False
    for p in range(begin, end):
        if known[first + head.size + p - begin] != text[p]:
            return False
    return True


@helper
def find_slot(head, text, begin, end, known, known_ends, slots, s, hashed):
    """The slot of a name, or an empty one for it, from s on, which is empty or has its hash."""
    while slots[s, COLUMN] != NOWHERE:
        column = slots[s, COLUMN]
        if is_name(head, text, begin, end, known, begin_of(known_ends, column), known_ends[column]):
            break
        s = next_slot(slots, (s + 1) & (slots.shape[0] - 1), hashed)
    return s


@loop
def fill_slots(text, ends, slots, hashes):
    """Write each name into a slot; return whether all differ."""
    for lo in range(0, ends.size, GROUP):
        hi = min(lo + GROUP, ends.size)
        for i in range(lo, hi):
            hashes[i - lo] = add_to_hash(BASIS, text, begin_of(ends, i), ends[i])
            prefetch(slots, 2 * as_slot(slots, hashes[i - lo]))
        for i in range(lo, hi):
            s = next_slot(slots, as_slot(slots, hashes[i - lo]), hashes[i - lo])
            s = find_slot(text[:0], text, begin_of(ends, i), ends[i], text, ends, slots, s, hashes[i - lo])
            if slots[s, COLUMN] != NOWHERE:
                return False
            slots[s, COLUMN] = i
            slots[s, HASH] = hashes[i - lo] - HALF
    return True


@loop
def find_names(head, text, begins, ends, known, known_ends, slots, found, hashes, places):
    """Write the columns of names, a head and text[begins[i]:ends[i]]: each step asks for what the next one reads."""
    start = add_to_hash(BASIS, head, 0, head.size)
    for lo in range(0, ends.size, GROUP):
        size = min(GROUP, ends.size - lo)
        for k in range(size):
            hashes[k] = add_to_hash(start, text, begins[lo + k], ends[lo + k] if begins[lo + k] >= 0 else NOWHERE)
            prefetch(slots, 2 * as_slot(slots, hashes[k]))
        for k in range(size):
            places[k] = next_slot(slots, as_slot(slots, hashes[k]), hashes[k])
            prefetch(known_ends, max(slots[places[k], COLUMN] - 1, 0))
        for k in range(size):
            prefetch(known, begin_of(known_ends, max(slots[places[k], COLUMN], 0)))
        for k in range(size):
            begin, end = begins[lo + k], ends[lo + k]
            if begin < 0:
                found[lo + k] = NOWHERE
                continue
            s = find_slot(head, text, begin, end, known, known_ends, slots, places[k], hashes[k])
            found[lo + k] = slots[s, COLUMN]
