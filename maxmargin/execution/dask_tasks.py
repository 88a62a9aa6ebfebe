"""Calls of functions on a cluster of Dask, which end whether its workers stay or not.

What a task needs is part of it, or the result of another one, never data that were put on some worker: so the
scheduler can compute everything again that is lost with a worker. A task whose workers have died a few times is given
up by the scheduler, as it may be what kills them; it is tried again here, and only given up after many times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import cycle
from typing import Any, TypeVar
from weakref import WeakSet

from distributed import Client, Future, KilledWorker, LocalCluster, get_worker, wait
from distributed.client import FutureCancelledError

from maxmargin.execution.clock import BrokenOff, Clock

LOOK = 0.2  # seconds between two looks at the clock
PATIENCE = 60.0  # seconds without any worker, after which there is no hope
ATTEMPTS = 20  # at a task whose workers die
CONNECTING = 10.0  # seconds, after which there is no scheduler
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # to Ctrl-C, which a terminal sends to all
ANY_PORT = "127.0.0.1:0"  # of the pages of Dask, which None puts where others may be, with a warning
SILENT = 100  # a level that no message has: what matters is raised
LOST = KilledWorker, CancelledError, FutureCancelledError
DROPPED = "The cluster has dropped the fit: its scheduler has ended or begun anew."
T = TypeVar("T")


class Tasks:
    """What is called on a cluster.

    Parameters
    ----------
    client
        The one of Dask that is connected to the cluster.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._submitted: WeakSet[Future] = WeakSet()

    def submit(self, function: Callable[..., object], *args: object, **where: object) -> Future:
        """Call a function on some worker: a module-level one, of arguments that can be pickled, or futures."""
        future = self.client.submit(function, *args, pure=False, **where)
        self._submitted.add(future)
        return future

    def submit_evenly(self, function: Callable[..., object], calls: Iterable[tuple[object, ...]]) -> list[Future]:
        """Calls whose results stay, as many on each thread of the workers that are there; others may take over."""
        threads = [[worker] for worker, n_threads in sorted(self.client.nthreads().items()) for _ in range(n_threads)]
        return [
            self.submit(function, *args, workers=workers, allow_other_workers=True)
            for args, workers in zip(calls, cycle(threads or [[]]), strict=False)
        ]

    def results(self, futures: list[Future], clock: Clock | None = None) -> list[Any]:
        """What tasks return, in their order; none is left running where one fails or the clock breaks them off.

        Where one fails, all that was ever submitted ends: who holds on to the error holds on to futures, too.
        """
        try:
            for attempt in range(ATTEMPTS + 1):
                self._wait(futures, clock)
                lost = [future.key for future in futures if is_lost(future)]
                if not lost or attempt == ATTEMPTS:
                    break
                self.client.sync(self._retry, lost)
            return self.client.gather(futures)
        except BaseException as error:
            if isinstance(error, BrokenOff):
                self.client.cancel([future for future in futures if not future.done()], force=True)
            else:
                self.end()
            if isinstance(error, KilledWorker):
                raise ConnectionError(
                    f"A task of the fit was given up after {ATTEMPTS} attempts, as the workers that ran it died: they "
                    "may be out of memory; smaller portions of the data need less."
                ) from error
            if isinstance(error, CancelledError | FutureCancelledError):
                raise ConnectionError(DROPPED) from error
            raise

    def end(self) -> None:
        """Drop all that was ever submitted, with its results; whoever holds on to futures has nothing of them."""
        for future in [*self._submitted]:
            future.release()

    async def _retry(self, keys: list[str]) -> None:
        """As `Client.retry`, which fails where what was lost follows from futures that nobody here has any more."""
        for key in await self.client.scheduler.retry(keys=keys, client=self.client.id):
            if key in self.client.futures:
                self.client.futures[key].retry()

    def _wait(self, futures: list[Future], clock: Clock | None) -> None:
        """Until all are done; raises `BrokenOff` when the clock says so, or an error when all workers are gone."""
        began = with_workers = time.perf_counter()
        while True:
            try:
                wait(futures, timeout=LOOK)
                return
            except TimeoutError:
                now = time.perf_counter()
            except (CancelledError, FutureCancelledError):
                return
            if clock is not None and clock.is_late(began):
                raise BrokenOff
            if now - with_workers > PATIENCE / 4:
                if self._has_workers():
                    with_workers = now
                elif now - with_workers > PATIENCE:
                    raise ConnectionError(f"The cluster has had no workers for {PATIENCE:.0f} seconds.")

    def _has_workers(self) -> bool:
        try:
            return bool(self.client.nthreads())
        except OSError as error:
            raise ConnectionError(DROPPED) from error


def is_lost(future: Future) -> bool:
    """Whether a task has failed with its workers, not by itself."""
    return future.status == "error" and isinstance(future.exception(), LOST)


class TaskClock(Clock):
    """The clock of passes on a worker: they are broken off where nobody waits for them any more."""

    def __init__(self) -> None:
        worker = get_worker()
        self._task = worker.state.tasks.get(worker.get_current_task())
        super().__init__()

    @property
    def interrupted(self) -> bool:
        """Whether the task was cancelled."""
        return self._task is not None and self._task.state == "cancelled"

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        """What others say does not count."""


@contextmanager
def connect(address: str | None, n_processes: int | None) -> Iterator[Client]:
    """The client of the scheduler at an address or, without one, of so many processes on this machine."""
    if address is None:
        options = {"threads_per_worker": 1, "dashboard_address": ANY_PORT, "preload": [DEAF], "silence_logs": SILENT}
        with LocalCluster(n_workers=n_processes, **options) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=CONNECTING)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"There is no scheduler of Dask at {address!r}.") from error
    with client:
        yield client


def hold(value: T) -> T:
    """A task that has a value, to be handed on from worker to worker."""
    return value
