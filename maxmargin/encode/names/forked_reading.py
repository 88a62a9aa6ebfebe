"""Names read on several processes: the same columns as on one.

Each process reads some of the sequences, with columns of its own, which begin as those that are known; then these are
looked up by name, from the first process to the last, and in the order in which each has met them: so every new name
gets the column that it would have had. Processes are forked, so that nothing need be sent to them. One reads all where
that is not safe, as there are other threads than our own or it is not Linux, and where there is little to read.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.encode.names.name_columns import NOWHERE
from maxmargin.encode.names.named_rows import Codes, read_codes
from maxmargin.execution.threads import count_threads, idle_threads

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LEAST = 1_000  # sequences of a process: fewer are read in less time than it takes to begin

_n_processes = ContextVar("_n_processes", default=1)


class Read(NamedTuple):
    """What a process has read: as `read_codes`, with the names and the features of its own that codes stand for."""

    entries: np.ndarray
    ends: np.ndarray
    starts: list[int]
    names: list[str]
    other_columns: np.ndarray
    other_values: np.ndarray


@contextmanager
def reading_on(n_jobs: int | None) -> Iterator[None]:
    """A context in which names are read on so many processes, as in scikit-learn."""
    token = _n_processes.set(count_threads(n_jobs))
    try:
        yield
    finally:
        _n_processes.reset(token)


def read_all_codes(X: Any, codes: Codes) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """As `read_codes`, on the processes of the context."""
    n = min(_n_processes.get(), len(X) // LEAST) if isinstance(X, Sequence) else 1
    can_be_read_again = n > 1 and not isinstance(X[0], Iterator)
    found = _read_on_processes(n, X, codes) if can_be_read_again and _can_fork() else None
    return read_codes(X, codes) if found is None else found


def _can_fork() -> bool:
    from multiprocessing import current_process  # which few need

    idle_threads.end()
    return sys.platform == "linux" and threading.active_count() == 1 and not current_process().daemon


def _read_on_processes(n: int, X: Sequence[object], codes: Codes) -> tuple[np.ndarray, np.ndarray, list[int]] | None:
    """What n processes have read, this one among them; None where one of them has failed: it may not tell why."""
    n_known = len(codes.columns)
    cuts = np.linspace(0, len(X), n + 1).astype(int).tolist()
    children = [_Child(X[lo:hi], codes, n_known) for lo, hi in pairwise(cuts[1:])]
    try:
        first, *others = read_codes(X[: cuts[1]], codes), *(child.receive() for child in children)
    finally:
        for child in children:
            child.process.kill()
            child.process.join()
    entries, ends, starts = [first[0]], [first[1]], [np.asarray(first[2])]
    for read in others:
        if read is None:
            return None
        entries.append(_renumber(read, codes, n_known))
        ends.append(read.ends[1:] + ends[-1][-1])
        starts.append(np.asarray(read.starts[1:]) + starts[-1][-1])
    return np.concatenate(entries), np.concatenate(ends), np.concatenate(starts).tolist()


def _renumber(read: Read, codes: Codes, n_known: int) -> np.ndarray:
    """The codes of another process as those of this one, whose columns and other features come to include them."""
    entries, columns, is_column = read.entries, read.other_columns, read.entries > NOWHERE
    if codes.columns.grows:
        places = np.append(np.arange(n_known), codes.columns.find(read.names)).astype(np.int32)
        entries[is_column], columns = places[entries[is_column]], places[columns]
    entries[entries < NOWHERE] -= len(codes.other_columns)
    codes.other_columns.extend(columns.tolist())
    codes.other_values.extend(read.other_values.tolist())
    return entries


class _Child:
    """A process that reads some of the sequences."""

    def __init__(self, X: Iterable[object], codes: Codes, n_known: int) -> None:
        from multiprocessing import get_context

        context = get_context("fork")
        self.receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=_read_and_send, args=(X, codes, n_known, sender), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, such as those of BLAS, which sleep
            self.process.start()
        sender.close()

    def receive(self) -> Read | None:
        try:
            return self.receiver.recv()
        except EOFError:
            return None
        finally:
            self.receiver.close()


def _read_and_send(X: Iterable[object], codes: Codes, n_known: int, sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a terminal sends to all: the parent ends this one
    try:
        found = read_codes(X, codes)
        names = [*islice(codes.columns, n_known, None)] if codes.columns.grows else []
        sender.send(Read(*found, names, np.asarray(codes.other_columns), np.asarray(codes.other_values)))
    except (TypeError, ValueError, OverflowError, MemoryError):
        pass  # the parent reads all, and says what is wrong where
