"""When work must end: a clock, slices of work short enough to look at it in between, and passes that are broken off."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

SLICE = 0.1  # seconds between two looks at the clock and the interrupt flag
GRACE = 1.0  # seconds that a pass may take although time is up
LATE = 0.1  # of the limit, by which the last pass may be late: how long it takes is only estimated


class BrokenOff(Exception):  # no error, the way out of a pass
    """A pass over the examples was not finished, as the run must end."""


class Rate(NamedTuple):
    """What is known of one kind of work."""

    size: int = 1  # items of the next slice
    n_items: int = 0  # so far, without the first slice, in which code may be compiled
    seconds: float = 0.0  # that they took

    @property
    def per_item(self) -> float:
        return self.seconds / self.n_items if self.n_items else 0.0


class Clock:
    """The time since a run began, its limit, and how long each kind of its work takes.

    Parameters
    ----------
    limit
        Seconds after which to stop; None for no limit.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = float("inf") if limit is None else float(limit)
        self.interrupted = False
        self.began = time.perf_counter()
        self._rates: dict[Hashable, Rate] = {}
        self._passes: set[Hashable] = set()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the beginning."""
        return time.perf_counter() - self.began

    def seconds_of(self, *kinds: Hashable) -> float:
        """How long one item takes on average, in total of several kinds of work; 0 for what is not known."""
        return sum(self._rates.get(kind, Rate()).per_item for kind in kinds)

    def seconds_of_passes(self) -> float:
        """As `seconds_of`, of all kinds of passes there were."""
        return self.seconds_of(*self._passes)

    def slices(self, kind: Hashable, lo: int, hi: int) -> Iterator[tuple[int, int]]:
        """Ranges of the items lo:hi, the first ones short, as they may be slow, the others of `SLICE` seconds."""
        while lo < hi:
            is_first = kind not in self._rates
            size, n_items, seconds = self._rates.get(kind, Rate())
            end, began = min(hi, lo + size), time.perf_counter()
            yield lo, end
            taken = max(time.perf_counter() - began, 1e-9)
            size = max(1, min(16 * size, int(SLICE * (end - lo) / taken)))
            self._rates[kind] = Rate(size, *(0, 0.0) if is_first else (n_items + end - lo, seconds + taken))
            lo = end

    @contextmanager
    def timing(self, kind: Hashable, n_items: int) -> Iterator[None]:
        """Of a pass that is made elsewhere as a whole; raises `BrokenOff` if it would take long and time is up."""
        self._passes.add(kind)
        is_first, rate = kind not in self._rates, self._rates.get(kind, Rate())
        if rate.per_item * n_items > GRACE and (self.interrupted or self.seconds > self.limit):
            raise BrokenOff
        began = time.perf_counter()
        yield
        taken = time.perf_counter() - began
        self._rates[kind] = (
            rate if is_first else rate._replace(n_items=rate.n_items + n_items, seconds=rate.seconds + taken)
        )

    def slices_of_pass(self, kind: Hashable, lo: int, hi: int) -> Iterator[tuple[int, int]]:
        """As `slices`; raises `BrokenOff` if the pass takes long and time is up, or the run was interrupted."""
        self._passes.add(kind)
        is_long = self.seconds_of(kind) * (hi - lo) > GRACE
        if is_long and (self.interrupted or self.seconds > self.limit):
            raise BrokenOff
        since = None
        for bounds in self.slices(kind, lo, hi):
            if since is not None and self.is_late(since):
                raise BrokenOff
            yield bounds
            since = since or time.perf_counter()

    def is_late(self, since: float) -> bool:
        """Whether to break off what began at `since`."""
        is_over = self.interrupted or self.seconds > self.limit + max(GRACE, LATE * self.limit)
        return is_over and time.perf_counter() - since > GRACE
