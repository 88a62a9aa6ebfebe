"""Work over ranges of examples on several threads.

Loops release the GIL, so threads of one process run them side by side without copying data. Ranges are fixed by
the problem and the number of threads, and partial results are summed in order, so results do not vary between runs.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from numbers import Integral
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

CACHE_LINE = 64  # bytes
MOST_THREADS = 1024


def aligned(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Zeros that share no cache line with any other array, so that threads do not slow each other down."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 2 * CACHE_LINE, np.uint8)
    start = -raw.__array_interface__["data"][0] % CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def count_cores() -> int:
    """The number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads(n_jobs: int | None) -> int:
    """The number of threads that scikit-learn's `n_jobs` asks for: None is 1, -1 all cores, -2 all but one, ..."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or not 1 <= abs(n_jobs) <= MOST_THREADS:
        raise ValueError(f"n_jobs must be None or a non-zero integer of at most {MOST_THREADS}, not {n_jobs!r}.")
    return n_jobs if n_jobs > 0 else max(1, count_cores() + 1 + n_jobs)


def split_evenly(sizes: np.ndarray, n_ranges: int) -> list[tuple[int, int]]:
    """Consecutive ranges of examples whose sizes add up to about the same."""
    ends = np.cumsum(sizes)
    total = ends[-1] if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(1, n_ranges) * total / n_ranges)
    edges = [0, *(int(c) for c in cuts), len(sizes)]
    return list(itertools.pairwise(edges))


class OneBlasThread:
    """Products of vectors stay on the caller's thread while anyone asks for it: others would wait, at full speed.

    The limit is one of the whole process: fits in several threads share it, and the last one lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users = 0
        self._limited: ThreadpoolController | None = None
        self._limits = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            libraries = _libraries(len(sys.modules))
            if libraries is not self._limited:
                self._limits.enter_context(libraries.limit(limits=1, user_api="blas"))
                self._limited = libraries
            self._n_users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                self._limits.close()
                self._limited = None


one_blas_thread = OneBlasThread()


@functools.lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """The libraries that are loaded, looked up anew where imports since then may have loaded more."""
    return ThreadpoolController()


class Ranges:
    """Ranges of examples, each with a thread of its own.

    Parameters
    ----------
    sizes
        The sizes of the examples.
    n_threads
        The number of ranges, at most one per example.
    """

    def __init__(self, sizes: np.ndarray, n_threads: int) -> None:
        self.bounds = split_evenly(sizes, min(n_threads, len(sizes)))

    def __len__(self) -> int:
        return len(self.bounds)

    def run(self, function: Callable[[int, int, int], T]) -> list[T]:
        """Call ``function(k, lo, hi)`` for each range k, on its thread; return the results in order."""
        if len(self.bounds) == 1:
            return [function(0, *self.bounds[0])]
        with idle_threads.take(len(self.bounds)) as pool:
            futures = [pool.submit(function, k, lo, hi) for k, (lo, hi) in enumerate(self.bounds)]
            return [future.result() for future in futures]


class IdleThreads:
    """Threads that wait for the next run, of any ranges, by their number; they end before the process is forked."""

    def __init__(self) -> None:
        self._pools: dict[int, deque[ThreadPoolExecutor]] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.end)

    @contextmanager
    def take(self, n: int) -> Iterator[ThreadPoolExecutor]:
        """So many threads, which nobody else has meanwhile."""
        waiting = self._pools.setdefault(n, deque())
        try:
            pool = waiting.pop()
        except IndexError:
            pool = ThreadPoolExecutor(n)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False)  # some may be at work still
            raise
        waiting.append(pool)

    def end(self) -> None:
        """End all threads that wait."""
        for waiting in [*self._pools.values()]:
            with suppress(IndexError):
                while True:
                    waiting.pop().shutdown()


idle_threads = IdleThreads()
