"""Memory that is no longer in use: when to look for it, and when to give it back."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading


class _Pause:
    """A context in which Python does not look for garbage: until the last thread has left it.

    It does so in vain where many objects are made that all stay in use.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside and self._was_enabled:
                gc.enable()


no_garbage_collection = _Pause()


def give_back(*, of_names: bool = True) -> None:
    """Give free memory back to the system: Python and the C library keep much of it, in case it is needed again.

    Where names were read, all objects are looked through: that alone empties the lists of free ones, each of which
    holds on to what is around. Elsewhere only young ones are: what is loaded is old, and to look through it takes long.
    """
    gc.collect(2 if of_names else 1)
    with contextlib.suppress(AttributeError, OSError):  # there is no such function but in the GNU C library
        ctypes.CDLL(None).malloc_trim(0)
