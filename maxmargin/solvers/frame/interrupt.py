"""Ctrl-C ends a run at its next safe point, with the best weights so far."""

from __future__ import annotations

import signal
import threading
import time
from typing import Protocol

PATIENCE = 2.0  # seconds in which further presses of Ctrl-C mean the same as the first


class Stoppable(Protocol):
    """What stops at its next safe point once it is interrupted."""

    interrupted: bool


class Interruptible:
    """While active, Ctrl-C sets ``run.interrupted``, to stop at the next safe point; one seconds later raises.

    A run that is part of another one passes it on.
    """

    def __init__(self, run: Stoppable) -> None:
        self.run = run
        self.pressed: float | None = None  # when
        self.is_main = threading.current_thread() is threading.main_thread()  # only it receives signals

    def __enter__(self) -> None:
        if self.is_main:
            self.previous = signal.signal(signal.SIGINT, self._handle)

    def _handle(self, *_: object) -> None:
        now = time.monotonic()
        if self.pressed is not None and now - self.pressed > PATIENCE:
            raise KeyboardInterrupt
        self.pressed = now if self.pressed is None else self.pressed
        self.run.interrupted = True

    def __exit__(self, *_: object) -> None:
        if self.is_main:
            signal.signal(signal.SIGINT, self.previous or signal.SIG_DFL)
            whole = getattr(self.previous, "__self__", None)
            if self.pressed is not None and isinstance(whole, Interruptible):
                whole.pressed, whole.run.interrupted = self.pressed, True
