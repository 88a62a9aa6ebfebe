"""Work without Python's search for garbage, which is in vain where many objects are made that all stay in use."""

from __future__ import annotations

import gc
import threading


class _Pause:
    """A context in which Python does not look for garbage: until the last thread has left it."""

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
